//! Where a published form begins: at one of its marks, outside reasoning and Markdown code.

use crate::reply::Span;
use crate::reply::envelope::{Envelope, Look, Mark as Found};
use crate::reply::tag::Tag;
use std::sync::{Arc, LazyLock};

/// A family of forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `<tool_call>{"name": …, "arguments": {…}}</tool_call>` (Hermes, Qwen), with tags inside (Qwen3-Coder, GLM).
    Tagged,
    /// `[TOOL_CALLS] [{…}]`, `[TOOL_CALLS]name[ARGS]{…}` (Mistral).
    Listed,
    /// `<|python_tag|>{"name": …, "parameters": {…}}` (Llama).
    Python,
    /// `<function=name>…</function>` (Llama, Qwen3-Coder).
    Function,
    /// `<invoke name="name">…</invoke>` (Claude).
    Invoke,
    /// `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>` (Kimi).
    Section,
    /// `<|channel|>commentary to=functions.name<|message|>{…}` (gpt-oss).
    Channel,
    /// `Action: name` and `Action Input: {…}` (`ReAct`).
    Action,
    /// `functions.name({…})`.
    Dotted,
}

impl Form {
    /// What it begins with, for messages.
    pub(super) const fn shown(self) -> &'static str {
        match self {
            Self::Tagged => "<tool_call>",
            Self::Listed => "[TOOL_CALLS]",
            Self::Python => "<|python_tag|>",
            Self::Function => "<function=...>",
            Self::Invoke => "<invoke ...>",
            Self::Section => "<|tool_call_begin|>",
            Self::Channel => "<|channel|>commentary to=...",
            Self::Action => "Action: and Action Input:",
            Self::Dotted => "functions.name(...)",
        }
    }

    /// Whether the tool is named outside of JSON, so that the JSON inside can't be a move.
    pub(super) const fn names_outside(self) -> bool {
        !matches!(self, Self::Tagged | Self::Listed | Self::Python)
    }
}

/// What the forms begin with.
const MARKS: &[(&str, Form)] = &[
    ("<tool_call>", Form::Tagged),
    ("[TOOL_CALLS]", Form::Listed),
    ("<|python_tag|>", Form::Python),
    ("<function=", Form::Function),
    ("<function_calls>", Form::Invoke),
    ("<invoke ", Form::Invoke),
    ("<antml:function_calls>", Form::Invoke),
    ("<antml:invoke ", Form::Invoke),
    ("<|tool_calls_section_begin|>", Form::Section),
    ("<|tool_call_begin|>", Form::Section),
    ("<|start|>assistant<|channel|>commentary to=", Form::Channel),
    ("<|channel|>commentary to=", Form::Channel),
    ("Action:", Form::Action),
    ("functions.", Form::Dotted),
];
static TAGS: LazyLock<Arc<[Tag]>> = LazyLock::new(|| MARKS.iter().map(|(mark, _)| Tag::new(*mark)).collect());
/// What follows the line of an `Action:`.
pub(super) const INPUT: &str = "action input:";
/// Marks of Markdown around the words of such lines.
pub(super) const MARKDOWN: [char; 6] = ['*', '_', '#', '>', '`', ' '];
/// Bytes of a name, and of what stands before it in its line.
const NAME: usize = 120;
const BEFORE: usize = 12;
/// Blanks between the parts of a form.
const BLANKS: usize = 8;

/// A mark that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) span: Span,
    pub(super) form: Form,
}

/// Seeks the first mark.
#[derive(Debug)]
pub(super) struct Finder {
    envelope: Envelope,
    /// The protocol's own tag among the marks.
    own: Option<usize>,
    reasoning: Vec<Span>,
    /// A mark that counts only with what follows it.
    pending: Option<Mark>,
    found: Option<Mark>,
}

impl Finder {
    pub(super) fn new(reasoning: &[(String, String)], prefilled: bool, own: Option<&str>) -> Self {
        Self {
            envelope: Envelope::new(Arc::clone(&TAGS), &[], prefilled).reasoning(reasoning),
            own: own.and_then(|own| MARKS.iter().position(|(mark, _)| own.eq_ignore_ascii_case(mark))),
            reasoning: Vec::new(),
            pending: None,
            found: None,
        }
    }

    pub(super) fn found(&self) -> Option<Mark> {
        self.found
    }

    /// The reasoning before it.
    pub(super) fn reasoning(&self) -> &[Span] {
        &self.reasoning
    }

    /// Reads on. Returns the position up to which there is no mark, whether or not the first one was found; `end` says
    /// that no more text will come.
    pub(super) fn advance(&mut self, text: &str, end: bool) -> usize {
        loop {
            if let Some(mark) = self.pending {
                match counts(text, mark, end) {
                    None => return mark.span.start,
                    Some(counts) => self.found = counts.then_some(mark),
                }
                self.pending = None;
            }
            if let Some(mark) = self.found {
                return mark.span.start;
            }
            match self.envelope.next(text, end, Look { brackets: false, reasoning: true, code: true }) {
                Some(Found::Tag { index, .. }) if Some(index) == self.own => {}
                Some(Found::Tag { index, span, .. }) => {
                    self.pending = MARKS.get(index).map(|(_, form)| Mark { span, form: *form });
                }
                Some(Found::Reasoning { whole, .. }) => self.reasoning.push(whole),
                Some(Found::Bracket(_)) => {}
                None => return self.envelope.settled(),
            }
        }
    }
}

/// Whether a mark begins its form; `None` where more text is needed.
fn counts(text: &str, mark: Mark, end: bool) -> Option<bool> {
    let unknown = if end { Some(false) } else { None };
    let after = text.get(mark.span.end..).unwrap_or("");
    match mark.form {
        Form::Action => {
            if !begins_line(text, mark.span.start) {
                return Some(false);
            }
            let Some(line) = after.find('\n').filter(|line| *line <= NAME) else {
                return if after.len() > NAME { Some(false) } else { unknown };
            };
            let rest = after.get(line..).unwrap_or("");
            let next = rest.trim_start_matches(|c: char| c.is_whitespace() || MARKDOWN.contains(&c));
            if rest.len() - next.len() > BLANKS {
                return Some(false);
            }
            match next.get(..INPUT.len()) {
                Some(word) => Some(word.eq_ignore_ascii_case(INPUT)),
                None if next.len() >= INPUT.len() => Some(false),
                None => INPUT
                    .get(..next.len())
                    .filter(|word| word.eq_ignore_ascii_case(next))
                    .map_or(Some(false), |_| unknown),
            }
        }
        Form::Dotted => {
            if !begins_line(text, mark.span.start) {
                return Some(false);
            }
            let rest =
                after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'));
            let name = after.len() - rest.len();
            let inside = rest.strip_prefix('(');
            let open = inside.unwrap_or(rest);
            let next = open.trim_start();
            if name == 0 && !rest.is_empty() || name > NAME || open.len() - next.len() > BLANKS {
                return Some(false);
            }
            match next.chars().next() {
                Some('{') => Some(true),
                Some(')') => Some(inside.is_some()),
                Some(_) => Some(false),
                None => unknown,
            }
        }
        _ => Some(true),
    }
}

/// Whether nothing but marks of Markdown stands before `at` in its line.
fn begins_line(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or("");
    let line = before.trim_end_matches(MARKDOWN);
    before.len() - line.len() <= BEFORE && (line.is_empty() || line.ends_with('\n'))
}

#[cfg(test)]
mod tests {
    use super::{Finder, Form};

    fn found(text: &str) -> Option<(usize, Form)> {
        let mut finder = Finder::new(&[], false, None);
        finder.advance(text, true);
        let whole = finder.found().map(|mark| (mark.span.start, mark.form));
        let mut finder = Finder::new(&[], false, None);
        let mut certain = 0;
        for (at, c) in text.char_indices() {
            certain = finder.advance(text.get(..at + c.len_utf8()).unwrap_or(""), false).max(certain);
        }
        finder.advance(text, true);
        assert_eq!(finder.found().map(|mark| (mark.span.start, mark.form)), whole, "{text}");
        assert!(whole.is_none_or(|(start, _)| certain <= start), "{text}");
        whole
    }

    #[test]
    fn marks_count_where_their_form_begins() {
        for (text, form) in [
            ("<tool_call>", Form::Tagged),
            ("so: [TOOL_CALLS]", Form::Listed),
            ("Action: go\nAction Input:", Form::Action),
            ("**Action:** go\n**Action Input:**", Form::Action),
            ("functions.go({", Form::Dotted),
            ("functions.go:0 {", Form::Dotted),
            ("functions.go()", Form::Dotted),
            ("<think>[TOOL_CALLS]</think><function=go>", Form::Function),
        ] {
            assert_eq!(found(text).map(|(_, form)| form), Some(form), "{text}");
        }
        for text in [
            "`<tool_call>`",
            "```\n<tool_call>\n```",
            "<think><tool_call></think>",
            "Next Action: go\nAction Input: {}",
            "Action: go\nthen Action Input: {}",
            "Action: go",
            "call functions.go({})",
            "functions.go(x)",
            "functions.",
            "[TOOL_CALL]",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn the_protocols_own_tag_is_no_mark() {
        let mut finder = Finder::new(&[], false, Some("<tool_call>"));
        finder.advance("<tool_call>[]</tool_call>", true);
        assert!(finder.found().is_none());
    }
}
