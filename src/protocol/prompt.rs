//! System prompts from templates. Each protocol has the placeholder style of the prompt it comes from.

use thiserror::Error;

/// How placeholders are written in a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `{{name}}`; single braces are text (ticket).
    DoubleBraces,
    /// `{NAME}` in capitals, and `${instructions}`; all other braces are text (chatty).
    Capitals,
    /// `{name}`, with `{{` and `}}` for braces, as Python's `str.format` has it (react).
    Format,
}

/// One placeholder: its name, what is filled in, and whether a template must have it.
#[derive(Debug, Clone, Copy)]
pub struct Placeholder<'a> {
    /// Its name, without braces.
    pub name: &'static str,
    /// What is filled in.
    pub value: &'a str,
    /// Whether a template without it is an error.
    pub required: bool,
}

/// A template that cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// A required placeholder is not there.
    #[error("the template has no {written}: add it where {purpose} should stand")]
    Missing {
        /// As it would be written.
        written: String,
        /// What it stands for.
        purpose: &'static str,
    },
    /// A placeholder that the protocol does not know.
    #[error("line {line} of the template has the unknown placeholder {written}: this protocol knows {known}")]
    Unknown {
        /// As it is written.
        written: String,
        /// Line, from 1.
        line: usize,
        /// The placeholders that the protocol knows.
        known: String,
    },
    /// A tag around calls that is not the one that is read (chatty).
    #[error(
        "line {line} of the template has {written}, which is not the tag of this protocol: write {{TOOL_TAG_START}} and \
         {{TOOL_TAG_END}}, which stand for {own}, or pass tool_tag"
    )]
    OtherTag {
        /// As it is written.
        written: String,
        /// Line, from 1.
        line: usize,
        /// The tags that are read.
        own: String,
    },
    /// A brace that neither opens a placeholder nor is doubled.
    #[error("line {line} of the template has a single '{brace}': write '{brace}{brace}' for a brace in the text")]
    LoneBrace {
        /// The brace.
        brace: char,
        /// Line, from 1.
        line: usize,
    },
}

impl Style {
    fn write(self, name: &str) -> String {
        match self {
            Self::DoubleBraces => format!("{{{{{name}}}}}"),
            Self::Capitals if name == INSTRUCTIONS => format!("${{{name}}}"),
            Self::Capitals | Self::Format => format!("{{{name}}}"),
        }
    }
}

/// The place of the program's own instructions.
const INSTRUCTIONS: &str = "instructions";

/// Another name of that place, which templates of react have.
pub(super) const PERSONA: &str = "persona";

/// Fills the placeholders of `template`, and that of the instructions. Without a place for them, they follow it.
///
/// # Errors
/// A required placeholder that is missing, an unknown one, and in the `Format` style a lone brace.
pub fn render(
    template: &str,
    style: Style,
    placeholders: &[Placeholder<'_>],
    instructions: &str,
) -> Result<String, TemplateError> {
    let own = Placeholder { name: INSTRUCTIONS, value: instructions, required: false };
    let placeholders: Vec<Placeholder<'_>> = placeholders.iter().copied().chain([own]).collect();
    let (mut prompt, used) = fill(template, style, &placeholders)?;
    if !instructions.is_empty() && !used.contains(&INSTRUCTIONS) && !used.contains(&PERSONA) {
        prompt = format!("{}\n\n{instructions}\n", prompt.trim_end());
    }
    Ok(prompt)
}

/// The filled template, and the names of the placeholders that it has.
fn fill(
    template: &str,
    style: Style,
    placeholders: &[Placeholder<'_>],
) -> Result<(String, Vec<&'static str>), TemplateError> {
    let mut out = String::with_capacity(template.len());
    let mut used = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let line = || line_of(template, template.len() - tail.len());
        match token(tail, style, before.ends_with('$')) {
            Token::Placeholder { name, length } => {
                let Some(known) = placeholders.iter().find(|placeholder| placeholder.name == name) else {
                    let names: Vec<String> = placeholders.iter().map(|known| style.write(known.name)).collect();
                    return Err(TemplateError::Unknown {
                        written: style.write(name),
                        line: line(),
                        known: names.join(", "),
                    });
                };
                rest = tail.get(length..).unwrap_or("");
                used.push(known.name);
                if known.name == INSTRUCTIONS {
                    if style == Style::Capitals {
                        // Its `$`.
                        out.pop();
                    }
                    if known.value.is_empty() {
                        rest = without_line(&mut out, rest);
                    }
                }
                out.push_str(known.value);
            }
            Token::Text { text, length } => {
                out.push_str(text);
                rest = tail.get(length..).unwrap_or("");
            }
            Token::Lone(brace) => return Err(TemplateError::LoneBrace { brace, line: line() }),
        }
    }
    out.push_str(rest);
    for placeholder in placeholders {
        if placeholder.required && !used.contains(&placeholder.name) {
            return Err(TemplateError::Missing {
                written: style.write(placeholder.name),
                purpose: purpose(placeholder.name),
            });
        }
    }
    Ok((out, used))
}

/// Leaves no trace of a placeholder that is empty and alone on its line: neither the line nor a second blank one.
/// Returns what is left of the rest.
fn without_line<'a>(out: &mut String, rest: &'a str) -> &'a str {
    let starts_line = out.is_empty() || out.ends_with('\n');
    let Some(after) = rest.strip_prefix('\n').or_else(|| rest.is_empty().then_some(rest)).filter(|_| starts_line)
    else {
        return rest;
    };
    if out.is_empty() {
        return after.strip_prefix('\n').unwrap_or(after);
    }
    if out.ends_with("\n\n") && (after.is_empty() || after.starts_with('\n')) {
        out.pop();
    }
    after
}

pub(super) fn line_of(text: &str, position: usize) -> usize {
    crate::reply::LineColumn::of(text, position).line
}

fn purpose(name: &str) -> &'static str {
    match name {
        "TOOL_TAG_START" => "the opening tag of a tool block",
        "TOOL_TAG_END" => "the closing tag of a tool block",
        _ => "the list of tools",
    }
}

enum Token<'a> {
    Placeholder { name: &'a str, length: usize },
    Text { text: &'a str, length: usize },
    Lone(char),
}

/// What the brace at the start of `tail` is. `after_dollar` is whether a `$` stands before it.
fn token(tail: &str, style: Style, after_dollar: bool) -> Token<'_> {
    let (open, close) = if style == Style::DoubleBraces { ("{{", "}}") } else { ("{", "}") };
    let name = tail.strip_prefix(open).and_then(|inner| inner.split_once(close)).map(|(name, _)| name);
    let is_name = |name: &str| match style {
        Style::Capitals if name == INSTRUCTIONS => after_dollar,
        Style::Capitals => {
            name.starts_with(|first: char| first.is_ascii_uppercase())
                && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        }
        Style::DoubleBraces | Style::Format => {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        }
    };
    let brace = if tail.starts_with('{') { "{" } else { "}" };
    if style == Style::Format {
        if tail.starts_with("{{") || tail.starts_with("}}") {
            return Token::Text { text: brace, length: 2 };
        }
        return match name {
            Some(name) if is_name(name) => Token::Placeholder { name, length: name.len() + 2 },
            _ => Token::Lone(if brace == "{" { '{' } else { '}' }),
        };
    }
    match name.filter(|name| is_name(name.trim())) {
        Some(name) => Token::Placeholder { name: name.trim(), length: name.len() + 2 * open.len() },
        None => Token::Text { text: brace, length: 1 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: Placeholder<'static> = Placeholder { name: "tools", value: "[T]", required: true };

    #[test]
    fn format_style_unescapes_braces() {
        assert_eq!(render("{{\"a\": 1}} {tools}", Style::Format, &[TOOLS], "").unwrap(), "{\"a\": 1} [T]");
    }

    #[test]
    fn format_style_refuses_a_lone_brace_and_says_where() {
        let error = render("{tools}\n{ \"a\": 1", Style::Format, &[TOOLS], "").unwrap_err();
        assert_eq!(error, TemplateError::LoneBrace { brace: '{', line: 2 });
    }

    #[test]
    fn capitals_style_leaves_json_alone() {
        let tools = Placeholder { name: "TOOLS", value: "[T]", required: true };
        assert_eq!(render("{ \"a\": {} } {TOOLS}", Style::Capitals, &[tools], "").unwrap(), "{ \"a\": {} } [T]");
        assert!(matches!(
            render("{TOOLS} {OTHER}", Style::Capitals, &[tools], ""),
            Err(TemplateError::Unknown { line: 1, .. })
        ));
    }

    #[test]
    fn double_braces_leave_single_ones_alone() {
        assert_eq!(render("{a} {{tools}}", Style::DoubleBraces, &[TOOLS], "").unwrap(), "{a} [T]");
    }

    #[test]
    fn a_missing_placeholder_is_named_as_it_is_written() {
        let error = render("nothing", Style::DoubleBraces, &[TOOLS], "").unwrap_err();
        assert_eq!(error.to_string(), "the template has no {{tools}}: add it where the list of tools should stand");
    }

    #[test]
    fn instructions_stand_in_their_place_in_each_style() {
        let render = |template, style| render(template, style, &[], "Be brief.").unwrap();
        assert_eq!(render("A {{instructions}} B {instructions}", Style::DoubleBraces), "A Be brief. B {instructions}");
        assert_eq!(render("A ${instructions} B {instructions}", Style::Capitals), "A Be brief. B {instructions}");
        assert_eq!(render("A {instructions} B", Style::Format), "A Be brief. B");
    }

    #[test]
    fn instructions_without_a_place_follow_the_template() {
        assert_eq!(render("{tools}\n", Style::Format, &[TOOLS], "Be brief.").unwrap(), "[T]\n\nBe brief.\n");
        assert_eq!(render("{tools}\n", Style::Format, &[TOOLS], "").unwrap(), "[T]\n");
        let persona = Placeholder { name: PERSONA, value: "Be brief.", required: false };
        assert_eq!(render("A {persona}", Style::Format, &[persona], "Be brief.").unwrap(), "A Be brief.");
    }

    #[test]
    fn a_line_for_instructions_that_are_not_there_leaves_no_trace() {
        let render = |template| render(template, Style::DoubleBraces, &[], "").unwrap();
        assert_eq!(render("A\n\n{{instructions}}\n"), "A\n");
        assert_eq!(render("A\n\n{{instructions}}"), "A\n");
        assert_eq!(render("{{instructions}}\n\nA\n"), "A\n");
        assert_eq!(render("A\n\n{{instructions}}\n\nB\n"), "A\n\nB\n");
        assert_eq!(render("A\n{{instructions}}\nB\n"), "A\nB\n");
        assert_eq!(render("A {{instructions}}\nB\n"), "A \nB\n");
    }

    #[test]
    fn dollars_and_braces_in_instructions_are_text() {
        let text = "${instructions} {{instructions}} {tools} $";
        assert_eq!(render("${instructions}", Style::Capitals, &[], text).unwrap(), text);
    }
}
