//! Calls that are written like Python: `f(city="Oslo", days=3)`, perhaps in a list (Llama 4, LFM2, Olmo 3, Gemma 3).

use super::cursor::Cursor;
use crate::reply::{Number, Object, Span, Value};

/// Values inside values.
const DEPTH: usize = 32;

/// One call with keyword arguments that are literals; anything else needs a guess.
pub(super) fn call(cursor: &mut Cursor<'_>) -> Option<((String, Span), Object, Span)> {
    cursor.blanks();
    let start = cursor.at;
    let name = identifier(cursor, true)?;
    let tool = (super::cursor::name(&name)?, Span::new(start, cursor.at));
    if !cursor.rest().starts_with('(') {
        return None;
    }
    let open = cursor.at;
    cursor.eat("(");
    let mut arguments = Object::new();
    while !cursor.eat(")") {
        cursor.blanks();
        let key = identifier(cursor, false)?;
        if !cursor.eat("=") || arguments.contains_key(&key) {
            return None;
        }
        arguments.insert(key, value(cursor, DEPTH)?);
        cursor.blanks();
        if !cursor.rest().starts_with(')') && !cursor.eat(",") {
            return None;
        }
    }
    Some((tool, arguments, Span::new(open, cursor.at)))
}

/// Whether a call may begin here.
pub(super) fn begins(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    rest.len() < text.len() && rest.starts_with('(')
}

fn identifier(cursor: &mut Cursor<'_>, dotted: bool) -> Option<String> {
    let rest = cursor.rest();
    let after = rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_' || dotted && c == '.');
    let name = rest.get(..rest.len() - after.len())?;
    if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') || name.ends_with('.') {
        return None;
    }
    cursor.at += name.len();
    Some(name.to_owned())
}

fn value(cursor: &mut Cursor<'_>, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    cursor.blanks();
    let rest = cursor.rest();
    match rest.chars().next()? {
        '"' | '\'' => string(cursor).map(Value::from),
        '[' => cursor.list(&mut |cursor| value(cursor, depth)),
        '{' => {
            cursor.eat("{");
            let mut members = Object::new();
            while !cursor.eat("}") {
                cursor.blanks();
                let key = string(cursor)?;
                if !cursor.eat(":") || members.contains_key(&key) {
                    return None;
                }
                members.insert(key, value(cursor, depth)?);
                cursor.blanks();
                if !cursor.rest().starts_with('}') && !cursor.eat(",") {
                    return None;
                }
            }
            Some(Value::Object(members))
        }
        '-' | '0'..='9' => {
            let after =
                rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_'));
            let text = rest.get(..rest.len() - after.len())?;
            cursor.at += text.len();
            Number::new(text).map(Value::Number)
        }
        _ => {
            let word = identifier(cursor, false)?;
            match word.as_str() {
                "True" | "true" => Some(Value::Bool(true)),
                "False" | "false" => Some(Value::Bool(false)),
                "None" | "null" => Some(Value::Null),
                _ => None,
            }
        }
    }
}

/// A string of Python without a prefix, with its escapes read as Python reads them.
fn string(cursor: &mut Cursor<'_>) -> Option<String> {
    let rest = cursor.rest();
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let tripled = quote.to_string().repeat(3);
    let (fence, lines) = if rest.starts_with(&tripled) { (tripled, true) } else { (quote.to_string(), false) };
    let inside = rest.get(fence.len()..)?;
    let mut text = String::new();
    let mut at = 0;
    loop {
        let here = inside.get(at..)?;
        if here.starts_with(&fence) {
            break;
        }
        let c = here.chars().next()?;
        at += c.len_utf8();
        match c {
            '\n' | '\r' if !lines => return None,
            '\\' => at += escape(inside.get(at..)?, &mut text)?,
            c => text.push(c),
        }
    }
    cursor.at += fence.len() + at + fence.len();
    Some(text)
}

/// What stands behind a backslash. Returns its length.
fn escape(rest: &str, text: &mut String) -> Option<usize> {
    let c = rest.chars().next()?;
    let hex = |digits: usize| {
        let written = rest.get(1..=digits)?;
        let code = u32::from_str_radix(written, 16).ok().filter(|_| !written.starts_with('+'))?;
        Some((char::from_u32(code)?, 1 + digits))
    };
    let (read, length) = match c {
        '\n' => return Some(1),
        '\\' | '\'' | '"' => (c, 1),
        'n' => ('\n', 1),
        't' => ('\t', 1),
        'r' => ('\r', 1),
        'b' => ('\u{8}', 1),
        'f' => ('\u{c}', 1),
        'v' => ('\u{b}', 1),
        'a' => ('\u{7}', 1),
        'x' => hex(2)?,
        'u' => hex(4)?,
        'U' => hex(8)?,
        'N' | '0'..='7' => return None,
        other => {
            // Python keeps the backslash of an escape that it doesn't know.
            text.push('\\');
            (other, other.len_utf8())
        }
    };
    text.push(read);
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::call;
    use crate::protocol::ReadOptions;
    use crate::protocol::published::cursor::Cursor;

    fn read(text: &str) -> Option<String> {
        let options = ReadOptions::default();
        let mut cursor = Cursor::new(text, 0, &options);
        let (tool, arguments, _) = call(&mut cursor)?;
        cursor.rest().is_empty().then(|| format!("{} {}", tool.0, crate::reply::Value::Object(arguments).to_json()))
    }

    #[test]
    fn literals_are_read_as_python_reads_them() {
        for (text, wanted) in [
            ("f()", "f {}"),
            (r#"f(a="x\n\"y", b='it\'s',)"#, r#"f {"a":"x\n\"y","b":"it's"}"#),
            (r"f(a='\u00e5\x41\d')", r#"f {"a":"åA\\d"}"#),
            ("f(a='''x\ny''')", r#"f {"a":"x\ny"}"#),
            (
                "f(a=[1, -2.5, True, None], b={'k': [], 'l': false})",
                r#"f {"a":[1,-2.5,true,null],"b":{"k":[],"l":false}}"#,
            ),
            ("functions.f( a = 1 )", r#"f {"a":1}"#),
        ] {
            assert_eq!(read(text).as_deref(), Some(wanted), "{text}");
        }
    }

    #[test]
    fn anything_else_is_not_read() {
        for text in [
            "f(1)",
            "f(a)",
            "f(a=b)",
            "f(a=1, a=2)",
            "f(a='x' 'y')",
            "f(a=f'{x}')",
            "f(a=g())",
            "f(a=1+2)",
            "f(a=007)",
            "f(a='x\ny')",
            "f(a=1",
            "f(*x)",
            "f(a=(1, 2))",
            "f(a=1_000)",
            r"f(a='\N{DIGIT ONE}')",
            "f.(a=1)",
            "f (a=1)",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
