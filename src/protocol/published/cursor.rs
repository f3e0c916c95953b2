//! Reads the parts of a form, one after the other.

use super::families::Trim;
use crate::protocol::{ReadOptions, unknown_keys};
use crate::reply::json::{JsonReader, Progress, Record, Settings};
use crate::reply::{Object, Repair, Span, Value};

/// Marks of the forms whose parameters are tags.
const OWN: [&str; 9] = [
    "<parameter",
    "parameter>",
    "<arg_key>",
    "<arg_value>",
    "</tool_call>",
    "<function=",
    "</function>",
    "invoke name=",
    "invoke>",
];

/// A place in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    options: &'a ReadOptions,
}

/// A JSON object or array.
pub(super) struct Json {
    pub(super) records: Vec<Record>,
    pub(super) span: Span,
    pub(super) repairs: Vec<Repair>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, at: usize, options: &'a ReadOptions) -> Self {
        Self { text, at, options }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    pub(super) fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Passes blanks and `literal`, where it stands here.
    pub(super) fn eat(&mut self, literal: &str) -> bool {
        let next = self.rest().trim_start();
        let found = next.starts_with(literal);
        if found {
            self.at = self.text.len() - next.len() + literal.len();
        }
        found
    }

    /// Items between square brackets, if a list begins here and each of them can be read.
    pub(super) fn list(&mut self, item: &mut dyn FnMut(&mut Self) -> Option<Value>) -> Option<Value> {
        if !self.eat("[") {
            return None;
        }
        let mut items = Vec::new();
        while !self.eat("]") {
            items.push(item(self)?);
            self.blanks();
            if !self.rest().starts_with(']') && !self.eat(",") {
                return None;
            }
        }
        Some(Value::Array(items))
    }

    /// The text up to `literal`, which is passed.
    pub(super) fn until(&mut self, literal: &str) -> Option<Span> {
        let length = self.rest().find(literal)?;
        let span = Span::new(self.at, self.at + length);
        self.at = span.end + literal.len();
        Some(span)
    }

    /// The name of a tool up to one of `ends`, without the namespace that some models write before it.
    pub(super) fn name(&mut self, ends: &[char]) -> Option<(String, Span)> {
        self.blanks();
        let rest = self.rest();
        let length = rest.find(ends)?;
        let span = Span::new(self.at, self.at + length);
        self.at = span.end;
        name(span.of(self.text)).map(|name| (name, span))
    }

    /// A JSON object, or an array, whose objects are its records.
    pub(super) fn json(&mut self) -> Option<Json> {
        self.blanks();
        if !self.rest().starts_with(['{', '[']) {
            return None;
        }
        let mut settings = Settings::new(self.options.repairs, self.options.limits);
        settings.records = true;
        let mut reader = JsonReader::new(settings, self.at);
        if reader.run(self.text, true) != Progress::Done {
            return None;
        }
        let span = reader.span();
        self.at = reader.position();
        let (records, repairs) = reader.into_records();
        Some(Json { records, span, repairs })
    }

    /// A JSON object that is the arguments of a call.
    pub(super) fn arguments(&mut self) -> Option<(Object, Span, Vec<Repair>)> {
        self.blanks();
        if !self.rest().starts_with('{') {
            return None;
        }
        let Json { records, span, repairs } = self.json()?;
        let [record] = records.as_slice() else { return None };
        if record.supplied {
            return None;
        }
        let members = record.fields.iter().map(|(key, field)| (key, (*field.value).clone()));
        Some((members.collect(), span, repairs))
    }

    /// The value of a parameter up to its end tag: its text. Where it holds marks of the form itself, its end is a guess.
    pub(super) fn parameter(&mut self, close: &str, trim: Trim) -> Option<Value> {
        let text = self.until(close)?.of(self.text);
        if OWN.iter().any(|mark| text.contains(mark)) {
            return None;
        }
        Some(Value::from(match trim {
            Trim::Nothing => text,
            Trim::Blanks => text.trim(),
            Trim::Line => {
                let text = text.strip_prefix('\n').unwrap_or(text);
                text.strip_suffix('\n').unwrap_or(text)
            }
        }))
    }
}

/// The name of a tool, without the namespace that some models write before it.
pub(super) fn name(text: &str) -> Option<String> {
    let text = text.trim();
    let name = text.strip_prefix("functions.").unwrap_or(text);
    let plain = !name.is_empty()
        && name.len() <= 200
        && !name.contains(|c: char| c.is_control() || matches!(c, '<' | '>' | '{' | '}' | '(' | ')' | '"'));
    (plain && !crate::protocol::correction::is_answer(name) && !unknown_keys::is_remark(name)).then(|| name.to_owned())
}
