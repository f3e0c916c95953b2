//! A stretch of a document that is kept as it was written and read when it is first needed. A tree of all of it would
//! take many times the text's memory, and most of it is never looked at.

use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::sync::OnceLock;

#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// `None` where only the value was ever there.
    raw: Option<Box<RawValue>>,
    value: OnceLock<Json>,
}

impl Part {
    pub(crate) fn new(raw: &RawValue) -> Self {
        Self { raw: Some(raw.to_owned()), value: OnceLock::new() }
    }

    /// What it says; `null` where it is nested too deep to be read.
    pub(crate) fn value(&self) -> &Json {
        self.value.get_or_init(|| self.read().unwrap_or_default())
    }

    /// The same without keeping it.
    pub(crate) fn read(&self) -> Option<Json> {
        match (&self.raw, self.value.get()) {
            (_, Some(value)) => Some(value.clone()),
            (Some(raw), None) => serde_json::from_str(raw.get()).ok(),
            (None, None) => None,
        }
    }

    /// The text; `None` where only the value was ever there.
    pub(crate) fn text(&self) -> Option<&str> {
        self.raw.as_deref().map(RawValue::get)
    }
}

impl From<Json> for Part {
    fn from(value: Json) -> Self {
        Self { raw: None, value: OnceLock::from(value) }
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.raw {
            Some(raw) => raw.serialize(serializer),
            None => self.value().serialize(serializer),
        }
    }
}
