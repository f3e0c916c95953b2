//! The forms, each from its mark to its end.

use super::call::{self, Call};
use super::cursor::{Cursor, name};
use super::families::{Form, ROWS, Row, Trim};
use super::find_form::{INPUT, MARKDOWN, Mark};
use super::{bare, gemma, pythonic};
use crate::protocol::ReadOptions;
use crate::reply::json_text;
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
    let mut reader = Reader { row: mark.row, calls: Vec::new(), open: false };
    // The first mark may be written with blanks or in other case.
    cursor.at = mark.span.end;
    reader.one(&mut cursor, mark.span.start, mark.row.mark)?;
    while !reader.open {
        let mut next = cursor;
        next.blanks();
        let start = next.at;
        let Some(begins) = begins_with(mark.row).into_iter().find(|begins| next.eat(begins)) else { break };
        reader.one(&mut next, start, begins)?;
        cursor = next;
    }
    let calls = reader.calls;
    (!calls.is_empty()).then_some(Block { calls, end: cursor.at, open: reader.open })
}

/// What another call of the same form begins with.
fn begins_with(row: &Row) -> Vec<&'static str> {
    let of_form = |form| ROWS.iter().filter(move |row| row.form == form).map(|row| row.mark);
    match row.form {
        Form::Wrapped | Form::Listed | Form::Function | Form::Gemma | Form::Dotted => vec![row.mark],
        Form::Json => vec![row.mark, ";"],
        Form::Invoke => of_form(Form::Invoke).filter(|mark| mark.contains("invoke")).collect(),
        Form::Section => vec!["<|tool_call_begin|>"],
        Form::Separated => vec![CALL],
        Form::Channel => of_form(Form::Channel).collect(),
        Form::Action | Form::FinalAnswer | Form::Bare => Vec::new(),
    }
}

/// The marks of `DeepSeek`.
const CALL: &str = "<｜tool▁call▁begin｜>";
const END_CALL: &str = "<｜tool▁call▁end｜>";
const END_CALLS: &str = "<｜tool▁calls▁end｜>";
const SEPARATOR: &str = "<｜tool▁sep｜>";

struct Reader {
    row: &'static Row,
    calls: Vec<Call>,
    open: bool,
}

impl Reader {
    /// Reads what follows one mark, which begins at `start`.
    fn one(&mut self, cursor: &mut Cursor<'_>, start: usize, mark: &str) -> Option<()> {
        match self.row.form {
            Form::Wrapped => self.wrapped(cursor, start),
            Form::Listed => self.listed(cursor, start),
            Form::Json => self.json(cursor),
            Form::Function => {
                self.function(cursor, start)?;
                // The tag around it may have lost its first half alone.
                cursor.eat("</tool_call>");
                Some(())
            }
            Form::Invoke => self.invokes(cursor, start, mark),
            Form::Section => self.section(cursor, start, mark),
            Form::Separated => self.separated(cursor, start, mark),
            Form::Gemma => self.gemma(cursor, start),
            Form::Channel => self.channel(cursor, start),
            Form::Action => self.action(cursor, start),
            Form::Dotted => self.dotted(cursor, start),
            Form::FinalAnswer | Form::Bare => None,
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

    /// What a family writes between its tags: JSON, one value or several, Python, or tags of another kind.
    fn wrapped(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Option<()> {
        if self.row.mark.ends_with('[') {
            cursor.at -= 1;
        }
        cursor.blanks();
        let rest = cursor.rest();
        if rest.strip_prefix('[').is_some_and(|inside| pythonic::begins(inside.trim_start())) {
            self.calls.extend(bare::python_list(cursor)?);
        } else if rest.starts_with(['{', '[']) {
            self.json(cursor)?;
            while !self.row.close.is_empty() && cursor.rest().trim_start().starts_with('{') {
                self.json(cursor)?;
            }
        } else if cursor.eat("<function=") {
            self.function(cursor, start)?;
            while cursor.eat("<function=") {
                self.function(cursor, start)?;
            }
        } else if pythonic::begins(rest) {
            self.python(cursor)?;
        } else {
            return self.pairs(cursor, start);
        }
        match self.row.close {
            "" => Some(()),
            close => self.close(cursor, close),
        }
    }

    /// Calls one after the other, each as Python writes it.
    fn python(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        while pythonic::begins(cursor.rest().trim_start()) {
            self.calls.push(bare::python_call(cursor)?);
        }
        Some(())
    }

    /// A name, and then `<arg_key>` and `<arg_value>` by turns (GLM).
    fn pairs(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Option<()> {
        let tool = cursor.name(&['<', '\n']).filter(|(tool, _)| !tool.contains(char::is_whitespace))?;
        let pairs = parameters(cursor, self.row.close, &mut |cursor| {
            if !cursor.eat("<arg_key>") {
                return None;
            }
            let key = cursor.until("</arg_key>")?.of(cursor.text).trim().to_owned();
            if !cursor.eat("<arg_value>") {
                return None;
            }
            Some((key, cursor.parameter("</arg_value>", Trim::Nothing)?))
        })?;
        self.push(tool, pairs, Span::new(start, cursor.at), Span::new(start, cursor.at));
        Some(())
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
            Some((key, cursor.parameter("</parameter>", Trim::Line)?))
        })?;
        self.push(tool, given, Span::new(start, cursor.at), Span::new(start, cursor.at));
        Some(())
    }

    fn invokes(&mut self, cursor: &mut Cursor<'_>, start: usize, mark: &str) -> Option<()> {
        let prefix = self.row.prefix;
        if mark.contains("invoke") {
            return self.invoke(cursor, start, prefix);
        }
        let open = format!("<{prefix}invoke ");
        if pythonic::begins(cursor.rest().trim_start()) {
            self.python(cursor)?;
            return self.close(cursor, self.row.close);
        }
        loop {
            cursor.blanks();
            let start = cursor.at;
            if !cursor.eat(&open) {
                break;
            }
            self.invoke(cursor, start, prefix)?;
        }
        self.close(cursor, self.row.close)
    }

    /// `name="…">` and then parameters, up to `</invoke>`.
    fn invoke(&mut self, cursor: &mut Cursor<'_>, start: usize, prefix: &str) -> Option<()> {
        let tool = attribute(cursor)?;
        if !cursor.eat(">") {
            return None;
        }
        let tool = (name(&tool.0)?, tool.1);
        let open = format!("<{prefix}parameter ");
        let end = format!("</{prefix}parameter>");
        let trim = self.row.trim;
        // Only DeepSeek says which values are text; theirs alone may say it.
        let typed = prefix.starts_with('｜');
        let given = parameters(cursor, &format!("</{prefix}invoke>"), &mut |cursor| {
            if !cursor.eat(&open) {
                return None;
            }
            let (key, _) = attribute(cursor)?;
            let is_json = typed && cursor.eat("string=\"false\"");
            if typed && !is_json {
                cursor.eat("string=\"true\"");
            }
            if !cursor.rest().trim_start().starts_with('>') {
                return None;
            }
            cursor.eat(">");
            let value = cursor.parameter(&end, trim)?;
            match value.as_str().filter(|_| is_json) {
                Some(text) => Some((key, json_text::parse(text)?)),
                None => Some((key, value)),
            }
        })?;
        self.push(tool, given, Span::new(start, cursor.at), Span::new(start, cursor.at));
        Some(())
    }

    /// `<｜tool▁call▁begin｜>name<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`; older models write `function` before the
    /// separator, and the name and a fence behind it.
    fn separated(&mut self, cursor: &mut Cursor<'_>, start: usize, mark: &str) -> Option<()> {
        if mark.contains("calls") {
            loop {
                cursor.blanks();
                let start = cursor.at;
                if !cursor.eat(CALL) {
                    break;
                }
                self.separated(cursor, start, CALL)?;
            }
            return self.close(cursor, END_CALLS);
        }
        let header = cursor.until(SEPARATOR)?;
        if cursor.rest().trim_start().starts_with('{') {
            self.arguments(cursor, (name(header.of(cursor.text))?, header), start)?;
        } else {
            if header.of(cursor.text).trim() != "function" {
                return None;
            }
            let tool = cursor.name(&['\n'])?;
            if !cursor.eat("```json") {
                return None;
            }
            self.arguments(cursor, tool, start)?;
            if !cursor.eat("```") {
                return None;
            }
        }
        self.close(cursor, END_CALL)
    }

    fn gemma(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Option<()> {
        if !cursor.eat("call:") {
            return None;
        }
        let tool = cursor.name(&['{'])?;
        let open = cursor.at;
        let arguments = gemma::object(cursor)?;
        self.push(tool, arguments, Span::new(open, cursor.at), Span::new(start, cursor.at));
        self.close(cursor, "<tool_call|>")?;
        // The model stops with it, and some servers keep it.
        cursor.eat("<|tool_response>");
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
        let tool = cursor.name(&[' ', '<', '{', '\n'])?;
        let end = if self.row.mark.starts_with('<') { "<|message|>" } else { "{" };
        let header = cursor.until(end)?.of(cursor.text).trim();
        if end == "{" {
            cursor.at -= 1;
        }
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

/// `name="…"`, the first attribute of a tag.
fn attribute(cursor: &mut Cursor<'_>) -> Option<(String, Span)> {
    if !cursor.eat("name=\"") {
        return None;
    }
    let value = cursor.until("\"")?;
    let text = value.of(cursor.text);
    (!text.contains(['<', '>', '\n'])).then(|| (text.trim().to_owned(), value))
}
