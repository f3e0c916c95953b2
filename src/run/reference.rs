//! References between calls (chatty): a string argument that is exactly `$call_id` stands for that call's result.

use crate::reply::Value;

/// One string argument that may be a reference.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mention<'a> {
    /// The name after the `$`.
    pub(super) name: &'a str,
    /// JSON pointer of the string in the arguments.
    pub(super) pointer: String,
}

/// All strings of the form `$name` in `arguments`; `$$name` is a literal and is none.
pub(super) fn mentions(arguments: &Value) -> Vec<Mention<'_>> {
    let mut found = Vec::new();
    visit(arguments, &mut String::new(), &mut found);
    found
}

fn visit<'a>(value: &'a Value, pointer: &mut String, found: &mut Vec<Mention<'a>>) {
    let length = pointer.len();
    match value {
        Value::String(text) => {
            if let Some(name) = text.strip_prefix('$').filter(|name| !name.is_empty() && !name.starts_with('$')) {
                found.push(Mention { name, pointer: pointer.clone() });
            }
        }
        Value::Array(items) => {
            for (position, item) in items.iter().enumerate() {
                pointer.push('/');
                pointer.push_str(&position.to_string());
                visit(item, pointer, found);
                pointer.truncate(length);
            }
        }
        Value::Object(object) => {
            for (name, item) in object.iter() {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                visit(item, pointer, found);
                pointer.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The arguments with each `$name` that `result` knows replaced by that call's result, and `$$x` by `$x`.
pub(super) fn substitute(arguments: &Value, result: &dyn Fn(&str) -> Option<Value>) -> Value {
    match arguments {
        Value::String(text) => match text.strip_prefix('$') {
            Some(literal) if literal.starts_with('$') => Value::from(literal),
            Some(name) => result(name).unwrap_or_else(|| arguments.clone()),
            None => arguments.clone(),
        },
        Value::Array(items) => Value::Array(items.iter().map(|item| substitute(item, result)).collect()),
        Value::Object(object) => {
            Value::Object(object.iter().map(|(name, item)| (name, substitute(item, result))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn only_whole_strings_are_mentions() {
        let arguments = value(r#"{"a": "$one", "b": ["x $two", {"c/d": "$three"}], "e": "$$four", "f": "$"}"#);
        let found: Vec<_> = mentions(&arguments).into_iter().map(|mention| (mention.name, mention.pointer)).collect();
        assert_eq!(found, [("one", "/a".to_owned()), ("three", "/b/1/c~1d".to_owned())]);
    }

    #[test]
    fn results_keep_their_type_and_unknown_names_stay() {
        let result = |name: &str| (name == "one").then(|| value("[1, 2]"));
        assert_eq!(
            substitute(&value(r#"{"a": "$one", "b": "$five", "c": "$$one"}"#), &result),
            value(r#"{"a": [1, 2], "b": "$five", "c": "$one"}"#)
        );
    }
}
