//! JSON values as they were written: key order, number spelling and size are kept.

use super::Object;
use super::json::{JsonReader, Progress, Settings};
use compact_str::CompactString;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value with exact numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number with its spelling.
    Number(Number),
    /// A string without its escapes.
    String(CompactString),
    /// An array of values.
    Array(Vec<Value>),
    /// An object with its members in order.
    Object(Object),
}

/// A number as it was written: always valid JSON, of any size and precision.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Number(CompactString);

impl Number {
    /// Takes `text` as it is; `None` if it is no JSON number, or one like `1e999`, which floats can't hold.
    pub fn new(text: &str) -> Option<Self> {
        let raw: &RawValue = serde_json::from_str(text).ok()?;
        let first = raw.get().bytes().next()?;
        let number = Self(text.into());
        let is_one = raw.get().len() == text.len() && (first == b'-' || first.is_ascii_digit());
        (is_one && !number.is_infinite()).then_some(number)
    }

    /// Takes text that the JSON reader has already found to be a number.
    pub(crate) fn from_valid(text: &str) -> Self {
        Self(text.into())
    }

    /// The number as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether its exponent makes it larger than any float.
    pub(crate) fn is_infinite(&self) -> bool {
        self.0.bytes().any(|byte| matches!(byte, b'e' | b'E')) && self.0.parse::<f64>().is_ok_and(f64::is_infinite)
    }

    /// Whether it is written without fraction and exponent.
    pub fn is_integer(&self) -> bool {
        !self.0.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
    }
}

impl Value {
    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The object, if it is one.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The name of its JSON type, as messages say it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(number) if number.is_integer() => "integer",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// Compact JSON text, numbers spelled as they were.
    pub fn to_json(&self) -> String {
        // Serialising a tree of strings and checked numbers into memory has no failing case.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(flag) => serializer.serialize_bool(*flag),
            Self::Number(number) => match serde_json::from_str::<&RawValue>(&number.0) {
                Ok(raw) => raw.serialize(serializer),
                Err(error) => Err(serde::ser::Error::custom(error)),
            },
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(object) => serializer.collect_map(object.iter()),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let mut reader = JsonReader::new(Settings::plain(), 0);
        if reader.run(raw.get(), true) == Progress::Done {
            return Ok(reader.into_value().0);
        }
        Err(D::Error::custom(reader.fault().map_or("expected a JSON value", |fault| fault.message.as_str())))
    }
}
