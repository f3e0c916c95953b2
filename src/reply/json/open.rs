//! Reads a value while it is still arriving: its complete and its growing parts.

use super::frame::{Frame, Kind};
use super::{Fields, JsonReader, State, Token};
use crate::reply::{Object, Value};

/// The member of the open record that is being read.
#[derive(Debug, Clone, Copy)]
pub struct OpenField<'a> {
    /// The key of the member.
    pub key: &'a str,
    /// The certain part of the value.
    pub part: OpenPart<'a>,
}

/// The certain part of a value that is still open.
#[derive(Debug, Clone, Copy)]
pub enum OpenPart<'a> {
    /// A string, decoded, in two pieces.
    Text(&'a str, &'a str),
    /// An array or object, as its text stands in the reply.
    Json(&'a str),
    /// A token that may still change.
    Nothing,
}

/// An array or object that is open, with the members that are complete.
#[derive(Debug, Clone, Copy)]
pub struct OpenContainer<'a> {
    /// The members that are complete.
    pub members: Complete<'a>,
    /// The key of the member that is being read, in an object.
    pub key: Option<&'a str>,
    /// The key stands a second time: its value says the same as the first, or the text is refused.
    pub again: bool,
}

/// Complete members of one container.
#[derive(Debug, Clone, Copy)]
pub enum Complete<'a> {
    /// The members of an array.
    Items(&'a [Value]),
    /// The members of an object.
    Members(&'a Object),
}

impl<'a> Complete<'a> {
    /// The members of a value that is complete, if it has some.
    pub fn of(value: &'a Value) -> Option<Self> {
        match value {
            Value::Array(items) => Some(Self::Items(items)),
            Value::Object(object) => Some(Self::Members(object)),
            _ => None,
        }
    }

    /// The member at a position, with its key in an object.
    pub fn at(self, position: usize) -> Option<(Option<&'a str>, &'a Value)> {
        match self {
            Self::Items(items) => items.get(position).map(|value| (None, value)),
            Self::Members(object) => object.at(position).map(|(key, value)| (Some(key), value)),
        }
    }
}

impl JsonReader {
    /// The arrays and objects that are open, outermost first, in a text that is read without records.
    pub fn open_containers(&self) -> impl Iterator<Item = OpenContainer<'_>> {
        self.stack.iter().filter_map(|Frame { kind, key, .. }| {
            let (members, again) = match (kind, key) {
                (Kind::Array(items), _) => (Complete::Items(items), false),
                (Kind::Object(members), Some(key)) => {
                    (Complete::Members(members.object()), !key.fresh && members.contains_key(&key.text))
                }
                (Kind::Object(members), None) => (Complete::Members(members.object()), false),
                // Two braces in a row are one.
                _ => return None,
            };
            Some(OpenContainer { members, key: key.as_ref().map(|key| key.text.as_str()), again })
        })
    }

    /// The string that is being read as a value, decoded, in two pieces.
    pub fn open_text<'a>(&'a self, text: &'a str) -> Option<(&'a str, &'a str)> {
        (self.token == Token::String && !self.string.key)
            .then(|| (self.string.decoded.as_str(), text.get(self.string.from..self.position).unwrap_or("")))
    }

    /// The whole value, once it is done.
    pub fn value(&self) -> Option<&Value> {
        (self.state == State::Done).then_some(&self.output.value)
    }

    /// The members of the record that is open, if one is.
    pub fn open_record(&self) -> Option<&Fields> {
        let open = self.stack.iter().find_map(|frame| match &frame.kind {
            Kind::Record(fields) => Some(fields),
            _ => None,
        });
        open.or(self.output.inner.as_ref().map(|record| &record.fields))
    }

    /// The member of the open record that is being read.
    pub fn open_field<'a>(&'a self, text: &'a str) -> Option<OpenField<'a>> {
        let at = self.stack.iter().position(|frame| matches!(frame.kind, Kind::Record(_)))?;
        let key = self.stack.get(at)?.key.as_ref()?;
        let part = match (self.stack.get(at + 1), self.token) {
            (Some(above), token) => {
                // After the last value there may be a closing bracket, or a comment that does not count.
                let between = matches!(token, Token::None | Token::LineComment { .. } | Token::BlockComment { .. });
                let end = if between && self.state == State::After { self.recent.last.span.end } else { self.position };
                OpenPart::Json(text.get(above.open..end).unwrap_or(""))
            }
            (None, Token::String) => {
                OpenPart::Text(&self.string.decoded, text.get(self.string.from..self.position).unwrap_or(""))
            }
            _ => OpenPart::Nothing,
        };
        Some(OpenField { key: &key.text, part })
    }
}
