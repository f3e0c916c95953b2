//! A look at the value while it is still arriving: what is there, and what only grows.

use super::frame::Kind;
use super::{Fields, Machine, State, Token};

/// The member of the open record whose value is being read.
#[derive(Debug, Clone, Copy)]
pub struct OpenField<'a> {
    /// Its key.
    pub key: &'a str,
    /// What of the value is certain.
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

impl Machine {
    /// The members of the record that is open, if one is.
    pub fn open_record(&self) -> Option<&Fields> {
        let open = self.stack.iter().find_map(|frame| match &frame.kind {
            Kind::Record(fields) => Some(fields),
            _ => None,
        });
        open.or(self.inner.as_ref().map(|record| &record.fields))
    }

    /// The member of the open record that is being read.
    pub fn open_field<'a>(&'a self, text: &'a str) -> Option<OpenField<'a>> {
        let at = self.stack.iter().position(|frame| matches!(frame.kind, Kind::Record(_)))?;
        let key = self.stack.get(at)?.key.as_ref()?;
        let part = match (self.stack.get(at + 1), self.token) {
            (Some(above), token) => {
                // What follows the last value may be a closing bracket or a comment that does not count.
                let between = matches!(token, Token::None | Token::LineComment { .. } | Token::BlockComment { .. });
                let end = if between && self.state == State::After { self.last.span.end } else { self.position };
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
