//! Keys that a move does not have: what they may have carried. A key that may have carried a part of the call can't be
//! left out, because the call would be another one without it.

use super::retraction::{Beside, retracts};
use crate::reply::Value;
use crate::reply::doubt;
use crate::reply::json::quoted;
use crate::reply::json_text;
use std::borrow::Cow;

/// What a key may have carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carries {
    /// Arguments of the call, or a part of them.
    Arguments,
    /// Another part of a move: its tool, route or method, an answer, a second move.
    Other,
    /// A condition: when, how or whether the move is meant.
    Condition,
    /// A remark beside the move.
    Nothing,
}

/// Words of names for arguments and their parts.
const ARGUMENTS: &[&str] = &[
    "arg",
    "args",
    "argument",
    "arguments",
    "attachment",
    "attachments",
    "body",
    "config",
    "configuration",
    "content",
    "contents",
    "data",
    "field",
    "fields",
    "file",
    "files",
    "filter",
    "filters",
    "form",
    "formdata",
    "header",
    "headers",
    "input",
    "inputs",
    "json",
    "keyword",
    "keywords",
    "kwarg",
    "kwargs",
    "option",
    "options",
    "param",
    "parameter",
    "parameters",
    "params",
    "payload",
    "properties",
    "props",
    "queries",
    "query",
    "querystring",
    "request",
    "setting",
    "settings",
    "value",
    "values",
    "variable",
    "variables",
    "vars",
];
/// Words of names for tools, routes and methods, and for moves.
const MOVES: &[&str] = &[
    "action",
    "actions",
    "answer",
    "api",
    "call",
    "calls",
    "cmd",
    "command",
    "commands",
    "endpoint",
    "final",
    "finish",
    "func",
    "function",
    "functions",
    "http",
    "invoke",
    "method",
    "move",
    "moves",
    "name",
    "op",
    "operation",
    "operations",
    "output",
    "path",
    "response",
    "result",
    "return",
    "route",
    "routes",
    "tool",
    "tools",
    "uri",
    "url",
    "verb",
];
/// Names of remarks beside a call, without what spelling changes: none of them can say that the call is to be made
/// otherwise, later or not at all.
const REMARKS: &[&str] = &[
    "analysis",
    "comment",
    "comments",
    "confidence",
    "confidencescore",
    "description",
    "explanation",
    "goal",
    "justification",
    "note",
    "notes",
    "plan",
    "purpose",
    "rationale",
    "reason",
    "reasoning",
    "reasons",
    "reflection",
    "remark",
    "remarks",
    "step",
    "stepnumber",
    "summary",
    "thinking",
    "thought",
    "thoughts",
    "title",
    "why",
];

/// What a key with this value may have carried beside a move that has an effect, or beside another one.
pub(crate) fn carries(key: &str, value: &Value, effect: bool) -> Carries {
    if is_remark(key) {
        // A remark is said in words: an object in it may say how the move is meant, or be another one.
        return match said(value) {
            None => Carries::Arguments,
            Some(texts) if texts.iter().any(|text| retracts(text, Beside::Remark)) => Carries::Condition,
            Some(_) => Carries::Nothing,
        };
    }
    let words: Vec<String> = words(key);
    let any = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if any(ARGUMENTS) {
        return Carries::Arguments;
    }
    if any(MOVES) {
        return Carries::Other;
    }
    match value {
        // Whatever its name, what has parts may be the parts of the call.
        Value::Object(_) | Value::Array(_) => Carries::Arguments,
        // It may say when the call is to be made, or whether at all.
        _ if effect || words.iter().any(|word| doubt::is_condition(word)) => Carries::Condition,
        _ => Carries::Nothing,
    }
}

/// The texts of a value that has no parts with names.
fn said(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::Object(_) => None,
        Value::Array(items) => items.iter().map(said).collect::<Option<Vec<_>>>().map(|texts| texts.concat()),
        Value::String(text) => Some(vec![text]),
        _ => Some(Vec::new()),
    }
}

/// Whether a key says when, how or whether a move is meant, or names another one.
pub(crate) fn is_condition(key: &str) -> bool {
    words(key).iter().any(|word| doubt::is_condition(word) || matches!(word.as_str(), "tool" | "function"))
}

/// Whether a word outside a move says when, how or whether it is meant, and not how something went.
pub(crate) fn is_condition_of_text(key: &str) -> bool {
    words(key).iter().any(|word| doubt::is_only_condition(word))
}

/// Whether a key names a remark beside a move.
pub(crate) fn is_remark(key: &str) -> bool {
    REMARKS.contains(&plain(key).as_str())
}

/// The words of a key, in small letters: `toolInput` and `tool_input` have the same two.
fn words(key: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut small, mut begins) = (false, true);
    for c in key.chars() {
        if !c.is_alphanumeric() {
            begins = true;
            continue;
        }
        if begins || small && c.is_uppercase() {
            words.push(String::new());
        }
        (small, begins) = (c.is_lowercase() || c.is_numeric(), false);
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// A key without what spelling changes: case and the marks between words.
pub(crate) fn plain(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// Whether a value carries nothing.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => matches!(text.trim(), "" | "{}" | "[]" | "null"),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

/// A value, with text that is the JSON of an object read as that object.
pub(crate) fn decoded(value: &Value) -> Cow<'_, Value> {
    if let Value::String(text) = value
        && text.trim_start().starts_with('{')
        && let Some(Value::Object(object)) = json_text::parse(text)
    {
        return Cow::Owned(Value::Object(object));
    }
    Cow::Borrowed(value)
}

/// Keys as a message lists them: `key "a"`, `keys "a" and "b"`.
pub(crate) fn listed<'a>(keys: impl Iterator<Item = &'a str>) -> String {
    let shown: Vec<String> = keys.map(quoted).collect();
    match shown.as_slice() {
        [only] => format!("key {only}"),
        [first @ .., last] => format!("keys {} and {last}", first.join(", ")),
        [] => "keys".to_owned(),
    }
}
