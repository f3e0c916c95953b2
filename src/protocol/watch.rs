//! News from a record that is still arriving: what is new since the last look, and nothing twice.

use super::ReadOptions;
use crate::reply::Value;
use crate::reply::json::{Field, Fields, Machine, OpenPart, Record};

/// A piece of a member's value.
pub(crate) enum Piece<'a> {
    /// More of a string, decoded.
    Text(&'a str),
    /// More of an array, object, number or literal, as its text stands in the reply.
    Json(&'a str),
    /// The member is complete.
    End(&'a Field),
}

/// The id that a field holds: text, or the number that spells it.
pub(crate) fn id(field: &Field) -> Option<&str> {
    match &*field.value {
        Value::String(text) => Some(text.trim()),
        Value::Number(number) => Some(number.as_str()),
        _ => None,
    }
}

/// Whether a field is text of no length: no piece of it is told.
pub(crate) fn is_empty(field: &Field) -> bool {
    field.value.as_str() == Some("")
}

/// How much of one record was told.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Nobody listens.
    off: bool,
    /// Members told to their end.
    done: usize,
    /// Bytes told of the member after them.
    sent: usize,
}

impl Watch {
    /// For a reply that is read so.
    pub(crate) fn new(options: &ReadOptions) -> Self {
        Self { off: options.whole, ..Self::default() }
    }

    /// Tells what is new of the record at `index` in the machine's payload, key by key.
    pub(crate) fn poll(&mut self, text: &str, machine: &Machine, index: usize, tell: &mut dyn FnMut(&str, Piece<'_>)) {
        if self.off {
            return;
        }
        if let Some(record) = machine.records().get(index) {
            self.fields(text, &record.fields, tell);
        } else if machine.records().len() == index
            && let Some(fields) = machine.open_record()
        {
            self.fields(text, fields, tell);
            self.open(text, machine, fields, tell);
        }
    }

    /// Tells what is new of a record that is complete.
    pub(crate) fn record(&mut self, text: &str, record: &Record, tell: &mut dyn FnMut(&str, Piece<'_>)) {
        if !self.off {
            self.fields(text, &record.fields, tell);
        }
    }

    fn fields(&mut self, text: &str, fields: &Fields, tell: &mut dyn FnMut(&str, Piece<'_>)) {
        while let Some((key, field)) = fields.object().at(self.done) {
            let (all, string) = match &*field.value {
                Value::String(value) => (value.as_str(), true),
                _ => (field.span.of(text), false),
            };
            if let Some(rest) = all.get(self.sent..)
                && !rest.is_empty()
            {
                tell(key, if string { Piece::Text(rest) } else { Piece::Json(rest) });
            }
            tell(key, Piece::End(field));
            self.done += 1;
            self.sent = 0;
        }
    }

    fn open(&mut self, text: &str, machine: &Machine, fields: &Fields, tell: &mut dyn FnMut(&str, Piece<'_>)) {
        let Some(open) = machine.open_field(text) else { return };
        // A key that stands a second time says the same, or the reply is refused.
        if self.sent == 0 && fields.contains_key(open.key) {
            return;
        }
        match open.part {
            OpenPart::Text(decoded, plain) => {
                if let Some(rest) = decoded.get(self.sent..)
                    && !rest.is_empty()
                {
                    tell(open.key, Piece::Text(rest));
                    self.sent = decoded.len();
                }
                if let Some(rest) = plain.get(self.sent - decoded.len()..)
                    && !rest.is_empty()
                {
                    tell(open.key, Piece::Text(rest));
                    self.sent = decoded.len() + plain.len();
                }
            }
            OpenPart::Json(json) => {
                if let Some(rest) = json.get(self.sent..)
                    && !rest.is_empty()
                {
                    tell(open.key, Piece::Json(rest));
                    self.sent = json.len();
                }
            }
            OpenPart::Nothing => {}
        }
    }
}
