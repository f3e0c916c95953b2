//! A stretch of a document that is kept as text and read when it is first needed. A tree of all of it would take many
//! times the text's memory, and most of it is never looked at.

use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::sync::{Arc, OnceLock};

#[derive(Debug, Clone)]
pub(crate) struct LazyJson {
    text: Arc<str>,
    value: OnceLock<Json>,
}

impl LazyJson {
    /// Keeps text that is known to be JSON, without its white space: in a log it stands on one line.
    pub(crate) fn new(raw: &RawValue) -> Self {
        Self { text: compact(raw.get()).into(), value: OnceLock::new() }
    }

    /// The same part, not yet read.
    pub(crate) fn unread(&self) -> Self {
        Self { text: Arc::clone(&self.text), value: OnceLock::new() }
    }

    /// What it says; `null` where it is nested too deep to be read.
    pub(crate) fn value(&self) -> &Json {
        self.value.get_or_init(|| self.read())
    }

    /// The same without keeping it.
    pub(crate) fn read(&self) -> Json {
        self.value.get().cloned().or_else(|| serde_json::from_str(&self.text).ok()).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl From<Json> for LazyJson {
    fn from(value: Json) -> Self {
        Self { text: value.to_string().into(), value: OnceLock::new() }
    }
}

impl PartialEq for LazyJson {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Serialize for LazyJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(&self.text) {
            Ok(raw) => raw.serialize(serializer),
            Err(_) => serializer.serialize_unit(),
        }
    }
}

/// JSON text without the white space between its tokens.
fn compact(text: &str) -> String {
    let mut compacted = String::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    let mut kept = 0;
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            compacted.push_str(text.get(kept..at).unwrap_or_default());
            kept = at + 1;
        } else {
            in_string = byte == b'"';
        }
    }
    compacted.push_str(text.get(kept..).unwrap_or_default());
    compacted
}

#[cfg(test)]
mod tests {
    use super::compact;

    #[test]
    fn only_white_space_between_tokens_goes() {
        let text = "{ \"a b\\\\\" :\t[ 1 ,\r\n\"\\\" ü x\" , { } ] }";
        assert_eq!(compact(text), "{\"a b\\\\\":[1,\"\\\" ü x\",{}]}");
        assert_eq!(compact("[1]"), "[1]");
    }
}
