//! JSON text inside a string: read strictly, because what it means must not be a guess.

use crate::reply::{Number, Object, Value};
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Nesting beyond this is refused, as in a reply.
const DEPTH: usize = 128;

/// Reads one whole JSON value; `None` where the text is not JSON, is nested too deep or gives a key twice.
pub(crate) fn parse(text: &str) -> Option<Value> {
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    if nesting(text) > DEPTH {
        return None;
    }
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    read(raw.get())
}

fn read(text: &str) -> Option<Value> {
    Some(match text.bytes().next()? {
        b'{' => Value::Object(serde_json::Deserializer::from_str(text).deserialize_map(ObjectVisitor).ok()?),
        b'[' => Value::Array(serde_json::Deserializer::from_str(text).deserialize_seq(ArrayVisitor).ok()?),
        b'"' => Value::String(serde_json::from_str(text).ok()?),
        b't' => Value::Bool(true),
        b'f' => Value::Bool(false),
        b'n' => Value::Null,
        _ => Value::Number(Number::new(text)?),
    })
}

/// The deepest nesting of brackets outside strings; exact for valid JSON.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        if quoted {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut object = Object::new();
        while let Some((key, raw)) = map.next_entry::<String, &RawValue>()? {
            let value = read(raw.get()).ok_or_else(|| A::Error::custom("not JSON"))?;
            if object.insert(key, value).is_some() {
                return Err(A::Error::custom("a key is given twice"));
            }
        }
        Ok(object)
    }
}

struct ArrayVisitor;

impl<'de> Visitor<'de> for ArrayVisitor {
    type Value = Vec<Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<Value>, A::Error> {
        let mut array = Vec::new();
        while let Some(raw) = items.next_element::<&RawValue>()? {
            array.push(read(raw.get()).ok_or_else(|| A::Error::custom("not JSON"))?);
        }
        Ok(array)
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn numbers_keep_their_spelling() {
        let text = r#"{"a":[1.0,1e3,123456789012345678901234567890],"b":{"c":null,"d":"x\ny"}}"#;
        assert_eq!(parse(text).unwrap().to_json(), text);
        assert_eq!(parse(" [ ] ").unwrap().to_json(), "[]");
    }

    #[test]
    fn what_is_not_exactly_one_value_is_refused() {
        for text in ["", "{", "{} {}", "[1,]", "NaN", "{'a':1}", r#"{"a":1,"a":2}"#, r#"[{"a":{"b":1,"b":1}}]"#] {
            assert!(parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_before_it_is_read() {
        assert!(parse(&"[".repeat(1 << 20)).is_none());
        assert!(parse(&("[".repeat(129) + &"]".repeat(129))).is_none());
        assert!(parse(&("[".repeat(128) + &"]".repeat(128))).is_some());
    }
}
