//! The forms, each from its mark to its end.

use super::call::{self, Call};
use super::cursor::{Cursor, name};
use super::find_form::{Form, INPUT, MARKDOWN, Mark};
use crate::protocol::ReadOptions;
use crate::reply::{Object, Span, Value};

/// The calls of a reply, which stand one after the other.
pub(super) struct Block {
    pub(super) calls: Vec<Call>,
    pub(super) end: usize,
    /// An end tag or the arguments are missing at the end of the text.
    pub(super) open: bool,
}

/// Reads the calls that begin at a mark; `None` where that needs a guess.
pub(super) fn read(text: &str, mark: Mark, options: &ReadOptions) -> Option<Block> {
    let mut cursor = Cursor::new(text, mark.span.start, options);
    let mut reader = Reader { calls: Vec::new(), open: false };
    // The first mark may be written with blanks or in other case.
    cursor.at = mark.span.end;
    reader.one(mark.form, &mut cursor, mark.span.of(text))?;
    while !reader.open {
        let mut next = cursor;
        let Some(begins) = begins_with(mark.form).iter().find(|begins| next.eat(begins)) else { break };
        reader.one(mark.form, &mut next, begins)?;
        cursor = next;
    }
    let calls = reader.calls;
    (!calls.is_empty()).then_some(Block { calls, end: cursor.at, open: reader.open })
}

/// What another call of the same form begins with.
fn begins_with(form: Form) -> &'static [&'static str] {
    match form {
        Form::Tagged => &["<tool_call>"],
        Form::Listed => &["[TOOL_CALLS]"],
        Form::Python => &["<|python_tag|>", ";"],
        Form::Function => &["<function="],
        Form::Invoke => &["<invoke ", "<antml:invoke "],
        Form::Section => &["<|tool_call_begin|>"],
        Form::Channel => &["<|channel|>commentary to=", "<|start|>assistant<|channel|>commentary to="],
        Form::Action => &[],
        Form::Dotted => &["functions."],
    }
}

struct Reader {
    calls: Vec<Call>,
    open: bool,
}

impl Reader {
    /// Reads what follows one mark.
    fn one(&mut self, form: Form, cursor: &mut Cursor<'_>, mark: &str) -> Option<()> {
        let start = cursor.at - mark.len();
        match form {
            Form::Tagged => self.tagged(cursor, start),
            Form::Listed => self.listed(cursor, start),
            Form::Python => self.json(cursor),
            Form::Function => self.function(cursor, start),
            Form::Invoke => self.invokes(cursor, start, mark),
            Form::Section => self.section(cursor, start, mark),
            Form::Channel => self.channel(cursor, start),
            Form::Action => self.action(cursor, start),
            Form::Dotted => self.dotted(cursor, start),
        }
    }

    fn push(&mut self, tool: (String, Span), arguments: Object, arguments_span: Span, span: Span) {
        self.calls.push(Call::new(tool, arguments, arguments_span, span));
    }

    /// Passes the end tag, which may be missing at the end of the text alone.
    fn close(&mut self, cursor: &mut Cursor<'_>, tag: &str) -> Option<()> {
        if cursor.eat(tag) {
            return Some(());
        }
        self.open = true;
        cursor.rest().trim().is_empty().then_some(())
    }

    /// JSON objects that name their tools.
    fn json(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        self.calls.extend(call::of_json(cursor.json()?)?);
        Some(())
    }

    /// A JSON object of arguments for `tool`.
    fn arguments(&mut self, cursor: &mut Cursor<'_>, tool: (String, Span), start: usize) -> Option<()> {
        let (arguments, place, repairs) = cursor.arguments()?;
        self.push(tool, arguments, place, Span::new(start, cursor.at));
        self.calls.last_mut()?.repairs = repairs;
        Some(())
    }

    fn tagged(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Option<()> {
        cursor.blanks();
        if cursor.rest().starts_with(['{', '[']) {
            self.json(cursor)?;
        } else if cursor.eat("<function=") {
            self.function(cursor, start)?;
        } else {
            let tool = cursor.name(&['<', '\n']).filter(|(tool, _)| !tool.contains(char::is_whitespace))?;
            let pairs = parameters(cursor, "</tool_call>", &mut |cursor| {
                if !cursor.eat("<arg_key>") {
                    return None;
                }
                let key = cursor.until("</arg_key>")?.of(cursor.text).trim().to_owned();
                if !cursor.eat("<arg_value>") {
                    return None;
                }
                Some((key, cursor.parameter("</arg_value>")?))
            })?;
            self.push(tool, pairs, Span::new(start, cursor.at), Span::new(start, cursor.at));
            return Some(());
        }
        self.close(cursor, "</tool_call>")
    }

    fn listed(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Option<()> {
        cursor.blanks();
        if cursor.rest().starts_with(['{', '[']) {
            return self.json(cursor);
        }
        let tool = cursor.name(&['['])?;
        let id = if cursor.eat("[CALL_ID]") {
            let rest = cursor.rest();
            let length = rest.find('[')?;
            cursor.at += length;
            rest.get(..length).map(|id| id.trim().to_owned())
        } else {
            None
        };
        if !cursor.eat("[ARGS]") {
            return None;
        }
        self.arguments(cursor, tool, start)?;
        self.calls.last_mut()?.id = id.filter(|id| !id.is_empty());
        Some(())
    }

    /// `name>` and then JSON or parameters, up to `</function>`.
    fn function(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Option<()> {
        let tool = cursor.name(&['>'])?;
        cursor.eat(">");
        cursor.blanks();
        if cursor.rest().starts_with('{') {
            self.arguments(cursor, tool, start)?;
            return self.close(cursor, "</function>");
        }
        let given = parameters(cursor, "</function>", &mut |cursor| {
            if !cursor.eat("<parameter=") {
                return None;
            }
            let key = cursor.until(">")?.of(cursor.text).trim().to_owned();
            Some((key, cursor.parameter("</parameter>")?))
        })?;
        self.push(tool, given, Span::new(start, cursor.at), Span::new(start, cursor.at));
        Some(())
    }

    fn invokes(&mut self, cursor: &mut Cursor<'_>, start: usize, mark: &str) -> Option<()> {
        let lower = mark.to_ascii_lowercase();
        let prefix = if lower.contains("antml:") { "antml:" } else { "" };
        if !lower.contains("function_calls") {
            return self.invoke(cursor, start, prefix);
        }
        let (open, close) = (format!("<{prefix}invoke "), format!("</{prefix}function_calls>"));
        loop {
            cursor.blanks();
            let start = cursor.at;
            if !cursor.eat(&open) {
                break;
            }
            self.invoke(cursor, start, prefix)?;
        }
        self.close(cursor, &close)
    }

    /// `name="…">` and then parameters, up to `</invoke>`.
    fn invoke(&mut self, cursor: &mut Cursor<'_>, start: usize, prefix: &str) -> Option<()> {
        let tool = attribute(cursor)?;
        let tool = (name(&tool.0)?, tool.1);
        let open = format!("<{prefix}parameter ");
        let end = format!("</{prefix}parameter>");
        let given = parameters(cursor, &format!("</{prefix}invoke>"), &mut |cursor| {
            if !cursor.eat(&open) {
                return None;
            }
            let (key, _) = attribute(cursor)?;
            Some((key, cursor.parameter(&end)?))
        })?;
        self.push(tool, given, Span::new(start, cursor.at), Span::new(start, cursor.at));
        Some(())
    }

    fn section(&mut self, cursor: &mut Cursor<'_>, start: usize, mark: &str) -> Option<()> {
        if mark.contains("section") {
            loop {
                cursor.blanks();
                let start = cursor.at;
                if !cursor.eat("<|tool_call_begin|>") {
                    break;
                }
                self.section(cursor, start, "")?;
            }
            return self.close(cursor, "<|tool_calls_section_end|>");
        }
        let header = cursor.until("<|tool_call_argument_begin|>")?;
        let id = header.of(cursor.text).trim();
        let (tool, number) = id.rsplit_once(':')?;
        if number.is_empty() || !number.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        self.arguments(cursor, (name(tool)?, header), start)?;
        self.calls.last_mut()?.id = Some(id.to_owned());
        self.close(cursor, "<|tool_call_end|>")
    }

    fn channel(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Option<()> {
        let tool = cursor.name(&[' ', '<'])?;
        let header = cursor.until("<|message|>")?.of(cursor.text).trim();
        if !matches!(header, "" | "json" | "<|constrain|>json" | "<|constrain|> json") {
            return None;
        }
        self.arguments(cursor, tool, start)?;
        cursor.eat("<|call|>");
        Some(())
    }

    fn action(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Option<()> {
        let rest = cursor.rest();
        let line = rest.find('\n')?;
        let written = rest.get(..line)?;
        let place = Span::new(cursor.at, cursor.at + line);
        let tool = (name(written.trim().trim_matches([' ', '*', '`', '"', '\'', '[', ']']))?, place);
        let rest = rest.get(line..)?.trim_start_matches(|c: char| c.is_whitespace() || MARKDOWN.contains(&c));
        let rest = rest.get(INPUT.len()..)?.trim_start_matches(['*', '_']).trim_start();
        cursor.at = cursor.text.len() - rest.len();
        if rest.is_empty() {
            self.open = true;
            self.push(tool, Object::new(), place, Span::new(start, cursor.at));
            return Some(());
        }
        let ticks = rest.len() - rest.trim_start_matches('`').len();
        if ticks > 0 {
            cursor.at += ticks;
            cursor.eat("json");
        }
        self.arguments(cursor, tool, start)?;
        if ticks > 0 && !cursor.eat(&"`".repeat(ticks)) {
            return None;
        }
        Some(())
    }

    /// `name({…})`, `name:0 {…}` or `name()`.
    fn dotted(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Option<()> {
        let tool = cursor.name(&[':', '(', ' ', '\n', '{'])?;
        let rest = cursor.rest();
        if let Some(number) = rest.strip_prefix(':') {
            cursor.at = cursor.text.len() - number.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        }
        let called = cursor.eat("(");
        if called && cursor.eat(")") {
            self.push(tool, Object::new(), Span::at(cursor.at), Span::new(start, cursor.at));
            return Some(());
        }
        self.arguments(cursor, tool, start)?;
        if called { cursor.eat(")").then_some(()) } else { Some(()) }
    }
}

/// Parameters, each once, up to the end tag, which can't be missing: the last value may be cut.
fn parameters(
    cursor: &mut Cursor<'_>,
    close: &str,
    one: &mut dyn FnMut(&mut Cursor<'_>) -> Option<(String, Value)>,
) -> Option<Object> {
    let mut parameters = Object::new();
    while !cursor.eat(close) {
        let (key, value) = one(cursor)?;
        if key.is_empty() || parameters.contains_key(&key) {
            return None;
        }
        parameters.insert(key, value);
    }
    Some(parameters)
}

/// `name="…">`, the only attribute of a tag.
fn attribute(cursor: &mut Cursor<'_>) -> Option<(String, Span)> {
    if !cursor.eat("name=\"") {
        return None;
    }
    let value = cursor.until("\"")?;
    let text = value.of(cursor.text);
    (!text.contains(['<', '>', '\n']) && cursor.eat(">")).then(|| (text.trim().to_owned(), value))
}
