//! The fields of a record as they arrive: each call publishes the part that is new since the last one.

use super::ReadOptions;
use crate::reply::Value;
use crate::reply::json::{Field, Fields, JsonReader, OpenPart, Record};

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

/// Whether a field is an empty text, of which no piece is published.
pub(crate) fn is_empty(field: &Field) -> bool {
    field.value.as_str() == Some("")
}

/// How much of one record was published.
#[derive(Debug, Default)]
pub(crate) struct FieldStream {
    /// Deltas are not wanted.
    off: bool,
    /// Members that were published whole.
    done: usize,
    /// Published bytes of the next member.
    sent: usize,
}

impl FieldStream {
    /// For a reply that is read so.
    pub(crate) fn new(options: &ReadOptions) -> Self {
        Self { off: options.whole, ..Self::default() }
    }

    /// Publishes the new parts of the record at `index` in the reader's payload, key by key.
    pub(crate) fn poll(
        &mut self,
        text: &str,
        reader: &JsonReader,
        index: usize,
        tell: &mut dyn FnMut(&str, Piece<'_>),
    ) {
        if self.off {
            return;
        }
        if let Some(record) = reader.records().get(index) {
            self.fields(text, &record.fields, tell);
        } else if reader.records().len() == index
            && let Some(fields) = reader.open_record()
        {
            self.fields(text, fields, tell);
            self.open(text, reader, fields, tell);
        }
    }

    /// Publishes the new parts of a record that is complete.
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

    fn open(&mut self, text: &str, reader: &JsonReader, fields: &Fields, tell: &mut dyn FnMut(&str, Piece<'_>)) {
        let Some(open) = reader.open_field(text) else { return };
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
