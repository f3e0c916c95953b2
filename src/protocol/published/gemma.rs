//! The arguments of Gemma 4: `{city:<|"|>Oslo<|"|>,days:3}`, strings between tokens of their own and keys bare.

use super::cursor::Cursor;
use crate::reply::{Number, Object, Value};

/// What stands on both sides of a string. Nothing is escaped between two of them.
const QUOTE: &str = "<|\"|>";
/// Values inside values.
const DEPTH: usize = 32;

/// An object.
pub(super) fn object(cursor: &mut Cursor<'_>) -> Option<Object> {
    members(cursor, DEPTH)
}

fn members(cursor: &mut Cursor<'_>, depth: usize) -> Option<Object> {
    if !cursor.eat("{") {
        return None;
    }
    let mut members = Object::new();
    while !cursor.eat("}") {
        cursor.blanks();
        let key = if cursor.rest().starts_with(QUOTE) { string(cursor)? } else { bare(cursor, &[':'])?.to_owned() };
        let wrong = key.is_empty() || key.contains(['{', '}', '[', ']', ',', '"', '\n']);
        if wrong || !cursor.eat(":") || members.contains_key(&key) {
            return None;
        }
        members.insert(key, value(cursor, depth)?);
        cursor.blanks();
        if !cursor.rest().starts_with('}') && !cursor.eat(",") {
            return None;
        }
    }
    Some(members)
}

fn value(cursor: &mut Cursor<'_>, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    cursor.blanks();
    let rest = cursor.rest();
    if rest.starts_with(QUOTE) {
        return string(cursor).map(Value::from);
    }
    if rest.starts_with('{') {
        return members(cursor, depth).map(Value::Object);
    }
    if rest.starts_with('[') {
        return cursor.list(&mut |cursor| value(cursor, depth));
    }
    let text = bare(cursor, &[',', '}', ']'])?;
    match text {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        "null" | "None" | "none" | "nil" => Some(Value::Null),
        // A number, or text that was meant as one: the latter would be a guess.
        _ if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) => {
            Number::new(text).map(Value::Number)
        }
        _ if text.is_empty() || text.contains(['"', '\'', '<', '{', '[', ':', '\n']) => None,
        _ => Some(Value::from(text)),
    }
}

fn string(cursor: &mut Cursor<'_>) -> Option<String> {
    cursor.eat(QUOTE);
    Some(cursor.until(QUOTE)?.of(cursor.text).to_owned())
}

fn bare<'a>(cursor: &mut Cursor<'a>, ends: &[char]) -> Option<&'a str> {
    let rest = cursor.rest();
    let text = rest.get(..rest.find(ends)?)?;
    cursor.at += text.len();
    Some(text.trim())
}

#[cfg(test)]
mod tests {
    use super::object;
    use crate::protocol::ReadOptions;
    use crate::protocol::published::cursor::Cursor;

    fn read(text: &str) -> Option<String> {
        let options = ReadOptions::default();
        let mut cursor = Cursor::new(text, 0, &options);
        let read = object(&mut cursor)?;
        cursor.rest().is_empty().then(|| crate::reply::Value::Object(read).to_json())
    }

    #[test]
    fn values_are_read() {
        for (text, wanted) in [
            ("{}", "{}"),
            (r#"{city:<|"|>Oslo, {1}: "x"<|"|>,days:3}"#, r#"{"city":"Oslo, {1}: \"x\"","days":3}"#),
            (
                r#"{a:[<|"|>x<|"|>,1],b:{c:true,d:null},e:-1.5,f:word}"#,
                r#"{"a":["x",1],"b":{"c":true,"d":null},"e":-1.5,"f":"word"}"#,
            ),
        ] {
            assert_eq!(read(text).as_deref(), Some(wanted), "{text}");
        }
        for text in ["{a}", "{a:}", "{a:1,a:2}", r#"{a:"x"}"#, "{a:007}", r#"{a:<|"|>x}"#, "{a:1", "a:1}"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
