//! Lossless coercions: where a value has the wrong type and exactly one reading has the right one, that reading is
//! taken and its place recorded. A value that the schema admits as it is stays as it is.

use super::types::{Schema, Types};
use crate::reply::json_text;
use crate::reply::{Number, Value};

/// Digits of an integer that is written out from a fraction or an exponent, or read from a string.
const DIGITS: usize = 1_000;

/// `value` with every lossless coercion that `schema` asks for, and the JSON pointers of the values that changed.
pub(crate) fn coerce(value: &Value, schema: Schema<'_>) -> (Value, Vec<String>) {
    let mut walk = Walk { pointers: Vec::new() };
    let value = walk.value(value, schema, "");
    (value, walk.pointers)
}

struct Walk {
    pointers: Vec<String>,
}

impl Walk {
    fn value(&mut self, value: &Value, schema: Schema<'_>, pointer: &str) -> Value {
        let changed = read_as(value, schema.types());
        if changed.is_some() {
            self.pointers.push(pointer.to_owned());
        }
        match changed.as_ref().unwrap_or(value) {
            Value::Object(object) => {
                let branch = schema.tagged(object);
                let property = |key: &str| schema.property(key).or_else(|| branch?.property(key));
                let required = schema.required_names();
                let left_out = |(key, value): &(&str, &Value)| {
                    pointer.is_empty()
                        && **value == Value::Null
                        && !required.contains(key)
                        && property(key).is_some_and(|schema| !schema.types().contains(Types::NULL))
                };
                // A `null` where the schema has none says that an argument is not given.
                self.pointers.extend(object.iter().filter(left_out).map(|(key, _)| join(pointer, key)));
                let read = |(key, value): (_, &Value)| match property(key) {
                    Some(schema) => (key, self.value(value, schema, &join(pointer, key))),
                    None => (key, value.clone()),
                };
                Value::Object(object.iter().filter(|member| !left_out(member)).map(read).collect())
            }
            Value::Array(items) => Value::Array(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, value)| match schema.item(index) {
                        Some(schema) => self.value(value, schema, &join(pointer, &index.to_string())),
                        None => value.clone(),
                    })
                    .collect(),
            ),
            plain => plain.clone(),
        }
    }
}

/// Adds one step to a JSON pointer.
pub(crate) fn join(pointer: &str, step: &str) -> String {
    format!("{pointer}/{}", crate::json_pointer::escape(step))
}

/// Whether the JSON pointer `inner` is `outer` or leads into it.
pub(crate) fn within(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The one reading of `value` that has one of `types`, where its own type is not among them.
fn read_as(value: &Value, types: Types) -> Option<Value> {
    if types.contains(Types::of(value)) {
        return None;
    }
    match value {
        Value::Number(number) if types.contains(Types::INTEGER) => {
            whole(number.as_str()).and_then(|text| Number::new(&text)).map(Value::Number)
        }
        Value::String(text) => {
            let text = text.trim();
            let reading = match text.bytes().next()? {
                b'{' | b'[' => json_text::parse(text)?,
                b't' | b'f' if text == "true" || text == "false" => Value::Bool(text == "true"),
                b'-' | b'0'..=b'9' if text.len() <= DIGITS => Value::Number(Number::new(text)?),
                _ => return None,
            };
            if types.contains(Types::of(&reading)) { Some(reading) } else { read_as_number(&reading, types) }
        }
        _ => None,
    }
}

/// `"5.0"` for an integer: a second step, allowed because the value stays the same.
fn read_as_number(reading: &Value, types: Types) -> Option<Value> {
    if matches!(reading, Value::Number(_)) { read_as(reading, types) } else { None }
}

/// The integer that a number with fraction or exponent is exactly: `5.0` and `5e0` are `5`.
pub(super) fn whole(text: &str) -> Option<String> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{integer}{fraction}");
    let scale = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    let digits = if let Ok(zeros) = usize::try_from(scale) {
        if digits.len().saturating_add(zeros) > DIGITS {
            return None;
        }
        format!("{digits}{}", "0".repeat(zeros))
    } else {
        let surplus = usize::try_from(scale.unsigned_abs()).ok()?;
        let kept = digits.len().checked_sub(surplus).filter(|kept| *kept > 0)?;
        let (kept, dropped) = digits.split_at_checked(kept)?;
        if dropped.bytes().any(|digit| digit != b'0') {
            return None;
        }
        kept.to_owned()
    };
    Some(format!("{sign}{digits}"))
}

#[cfg(test)]
mod tests {
    use super::{coerce, json_text::parse, whole};
    use crate::tool::types::Schema;
    use serde_json::json;

    fn coerced(schema: &serde_json::Value, text: &str) -> (String, Vec<String>) {
        let (value, pointers) = coerce(&parse(text).unwrap(), Schema::root(schema));
        (value.to_json(), pointers)
    }

    #[test]
    fn a_whole_number_is_an_integer_however_it_is_written() {
        for (text, expected) in [
            ("5.0", "5"),
            ("-5.00", "-5"),
            ("1e3", "1000"),
            ("1.5E1", "15"),
            ("1500e-2", "15"),
            ("0.0", "0"),
            ("-0.0", "0"),
            ("0e99", "0"),
            ("12345678901234567890.0", "12345678901234567890"),
        ] {
            assert_eq!(whole(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["5.5", "1e-1", "15e-2", "1e999999999", "1e99999999999999", "0.5"] {
            assert_eq!(whole(text), None, "{text}");
        }
    }

    #[test]
    fn a_value_that_fits_stays_as_it_is() {
        let any = json!({"type": "object", "properties": {"a": {"type": ["string", "integer"]}, "b": {"type": "number"}, "c": {}}});
        let text = r#"{"a":"5","b":5.0,"c":"{}"}"#;
        assert_eq!(coerced(&any, text), (text.to_owned(), vec![]));
    }

    #[test]
    fn one_reading_is_taken_and_recorded() {
        let schema = json!({"type": "object", "properties": {
            "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "flag": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "integer"}},
            "a/b": {"type": "object", "properties": {"x": {"type": "number"}}},
        }});
        assert_eq!(
            coerced(
                &schema,
                r#"{"n":"123456789012345678901234567890","flag":"true","list":"[\"1\",2.0]","a/b":{"x":"1.50"}}"#
            ),
            (
                r#"{"n":123456789012345678901234567890,"flag":true,"list":[1,2],"a/b":{"x":1.50}}"#.to_owned(),
                ["/n", "/flag", "/list", "/list/0", "/list/1", "/a~1b/x"].map(str::to_owned).to_vec()
            )
        );
    }

    #[test]
    fn null_for_an_optional_argument_says_that_it_is_not_given() {
        let schema = json!({
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": ["string", "null"]},
                "d": {"properties": {"e": {"type": "string"}}}},
            "required": ["b"],
        });
        let text = r#"{"a":null,"b":null,"c":null,"d":{"e":null}}"#;
        assert_eq!(coerced(&schema, text), (r#"{"b":null,"c":null,"d":{"e":null}}"#.to_owned(), vec!["/a".to_owned()]));
    }

    #[test]
    fn guesses_are_not_made() {
        let schema = json!({"properties": {
            "n": {"type": "integer"}, "flag": {"type": "boolean"}, "list": {"type": "array"}, "text": {"type": "string"},
        }});
        let text = r#"{"n":"five","flag":"yes","list":"a, b","text":5}"#;
        assert_eq!(coerced(&schema, text), (text.to_owned(), vec![]));
        let text = r#"{"n":"05","flag":1,"list":"{\"a\":1}"}"#;
        assert_eq!(coerced(&schema, text), (text.to_owned(), vec![]));
        let text = r#"{"n":5.5,"flag":"True","list":5,"text":true}"#;
        assert_eq!(coerced(&schema, text), (text.to_owned(), vec![]));
    }

    #[test]
    fn the_tag_of_a_union_says_what_is_read() {
        let branch = |kind: &str, size: &str| json!({"type": "object", "properties": {"kind": {"const": kind}, "size": {"type": size}}});
        let schema = json!({"properties": {"pet": {"anyOf": [
            {"oneOf": [branch("cat", "integer"), branch("dog", "boolean")]}, {"type": "null"},
        ]}}});
        let text = r#"{"pet":{"kind":"cat","size":"5"}}"#;
        assert_eq!(coerced(&schema, text), (text.replace("\"5\"", "5"), vec!["/pet/size".to_owned()]));
        for text in [r#"{"pet":{"kind":"fox","size":"5"}}"#, r#"{"pet":{"size":"5"}}"#] {
            assert_eq!(coerced(&schema, text), (text.to_owned(), vec![]));
        }
    }

    #[test]
    fn recursive_schemas_end() {
        let schema = json!({"$ref": "#/$defs/node", "$defs": {"node": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
        }}});
        assert_eq!(
            coerced(&schema, r#"{"value":"1","next":{"value":"2","next":null}}"#),
            (
                r#"{"value":1,"next":{"value":2,"next":null}}"#.to_owned(),
                vec!["/value".to_owned(), "/next/value".to_owned()]
            )
        );
    }
}
