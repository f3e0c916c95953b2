//! The content of a file, as a model gives it: text, or text or base64 with a name and a type.

use super::style::plain;
use crate::reply::Value;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// The bytes of a file, and what is said about them.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) content: Vec<u8>,
    pub(super) filename: Option<String>,
    pub(super) content_type: Option<String>,
}

impl File {
    pub(super) fn of(value: &Value) -> Result<Self, String> {
        let Some(object) = value.as_object() else {
            return Ok(Self { content: plain(value).unwrap_or_default().into_bytes(), ..Self::default() });
        };
        let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
        let content = match (text("base64"), text("text")) {
            (Some(encoded), _) => decoded(&encoded)?,
            (None, Some(text)) => text.into_bytes(),
            (None, None) => value.to_json().into_bytes(),
        };
        Ok(Self { content, filename: text("filename"), content_type: text("content_type") })
    }
}

fn decoded(encoded: &str) -> Result<Vec<u8>, String> {
    let encoded: String = encoded.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    let bytes = STANDARD.decode(&encoded).or_else(|_| URL_SAFE.decode(&encoded));
    bytes.map_err(|error| format!("its base64 can't be read: {error}"))
}
