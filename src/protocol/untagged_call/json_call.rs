//! Calls that are written as JSON.

use super::{Tools, is_parameter};
use crate::reply::json::{JsonReader, Progress, Settings};
use crate::reply::{Object, ReadLimits, RepairPolicy, Value};
use crate::tool::ToolSpec;

/// Keys of a tool's name.
const NAMES: [&str; 13] = [
    "action",
    "call",
    "command",
    "func",
    "function",
    "function_name",
    "name",
    "operation",
    "recipient",
    "recipient_name",
    "route",
    "tool",
    "tool_name",
];
/// Keys of its arguments.
const ARGUMENTS: [&str; 15] = [
    "action_input",
    "args",
    "arguments",
    "body",
    "input",
    "inputs",
    "kwargs",
    "parameters",
    "params",
    "payload",
    "properties",
    "tool_args",
    "tool_arguments",
    "tool_input",
    "tool_parameters",
];
/// Keys that stand beside the name of a tool in a call without arguments.
const BESIDE: [&str; 13] = [
    "call_id",
    "id",
    "index",
    "reason",
    "reasoning",
    "recipient",
    "step",
    "thought",
    "thoughts",
    "tool_call_id",
    "tool_use_id",
    "type",
    "description_of_call",
];
/// Objects inside objects that are looked at.
const DEPTH: usize = 24;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Call,
    Other,
}

/// Whether the text is one or several values, one of which is a call; broken JSON counts by its keys.
pub(super) fn verdict(text: &str, tools: &Tools<'_>) -> Verdict {
    let mut at = 0;
    let mut found = false;
    loop {
        let rest = text.get(at..).unwrap_or("");
        let next = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ';' | ',' | '}' | ']'));
        if next.is_empty() {
            return if found { Verdict::Call } else { Verdict::Other };
        }
        at += rest.len() - next.len();
        let Some((value, end)) = value(text, at).filter(|_| next.starts_with(['{', '['])) else { break };
        found |= is_call(&value, tools, true, DEPTH);
        at = end.max(at + 1);
    }
    // What follows the last whole value is broken, or text.
    let rest = text.get(at..).unwrap_or("");
    let broken = rest.starts_with(['{', '[']) && text.ends_with(['}', ']', '"']);
    if broken && names_in_text(rest, tools) { Verdict::Call } else { Verdict::Other }
}

/// Whether an object that stands behind the name of a tool is its arguments. `labelled` says that a word calls it so.
pub(super) fn are_arguments(text: &str, tool: &ToolSpec, labelled: bool) -> bool {
    let Some((value, end)) = value(text, 0) else {
        // Arguments in a form of their own, or broken ones.
        return text.trim_end().ends_with(['}', ')', ']', '"', '>']) && !text.contains("\n\n");
    };
    let rest =
        text.get(end..).unwrap_or("").trim_matches(|c: char| c.is_whitespace() || matches!(c, '}' | ']' | ';' | ')'));
    let Value::Object(object) = &value else { return false };
    let known = object.iter().all(|(key, _)| is_parameter(tool, key));
    (rest.is_empty() || is_tag(rest)) && !is_schema(object, tool) && (known || labelled)
}

/// Whether the text is nothing but tags and tokens.
fn is_tag(text: &str) -> bool {
    text.starts_with('<') && text.ends_with('>') && !text.contains(' ')
}

fn value(text: &str, at: usize) -> Option<(Value, usize)> {
    let mut reader = JsonReader::new(Settings::new(RepairPolicy::Default, ReadLimits::default()), at);
    if reader.run(text, true) != Progress::Done {
        return None;
    }
    let end = reader.position();
    Some((reader.into_value().0, end))
}

/// Whether a value is a call, or holds one. `top` says that nothing but wrappers stands around it.
fn is_call(value: &Value, tools: &Tools<'_>, top: bool, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    match value {
        Value::Array(items) => items.iter().any(|item| is_call(item, tools, top && items.len() == 1, depth)),
        Value::Object(object) => {
            let alone = top && object.iter().count() == 1;
            is_call_object(object, tools, top)
                || object.iter().any(|(key, value)| key != "properties" && is_call(value, tools, alone, depth))
        }
        _ => false,
    }
}

fn is_call_object(object: &Object, tools: &Tools<'_>, top: bool) -> bool {
    // `{"get_weather": {"city": "Oslo"}}`.
    let called = |(key, value): (&str, &Value)| match (tools.get(key), value.as_object()) {
        (Some(tool), Some(given)) => given.iter().all(|(key, _)| is_parameter(tool, key)),
        _ => false,
    };
    if object.iter().count() > 0 && object.iter().all(called) {
        return true;
    }
    object.iter().any(|(key, value)| {
        let Some(tool) = value.as_str().and_then(|name| tools.get(name)) else { return false };
        let beside = || object.iter().filter(|(other, _)| *other != key);
        let known = NAMES.contains(&key.to_ascii_lowercase().as_str());
        beside().any(|(key, value)| is_argument(key, value, tool))
            || known && top && beside().all(|(key, _)| BESIDE.contains(&key.to_ascii_lowercase().as_str()))
    })
}

/// Whether a member beside the name of a tool is its arguments, or one of them.
fn is_argument(key: &str, value: &Value, tool: &ToolSpec) -> bool {
    if let Value::Object(object) = value {
        let fits = || object.iter().count() > 0 && object.iter().all(|(key, _)| is_parameter(tool, key));
        return !is_schema(object, tool) && (ARGUMENTS.contains(&key.to_ascii_lowercase().as_str()) || fits());
    }
    is_parameter(tool, key) || ARGUMENTS.contains(&key.to_ascii_lowercase().as_str())
}

/// Whether an object describes arguments and gives none.
fn is_schema(object: &Object, tool: &ToolSpec) -> bool {
    let has = |key: &str| object.iter().any(|(other, _)| other == key) && !is_parameter(tool, key);
    let described = |(_, value): (&str, &Value)| {
        value
            .as_object()
            .is_some_and(|inside| inside.iter().any(|(key, _)| matches!(key, "type" | "description" | "enum")))
    };
    has("properties")
        || has("type") && object.iter().any(|(key, value)| key == "type" && value.as_str() == Some("object"))
        || object.iter().count() > 0 && object.iter().all(described)
}

/// Whether a key of broken JSON names a tool.
fn names_in_text(text: &str, tools: &Tools<'_>) -> bool {
    let (mut before, mut key) = ("", "");
    for part in text.split(['"', '\'']).map(str::trim) {
        if before == ":" && NAMES.contains(&key.to_ascii_lowercase().as_str()) && tools.names(part) {
            return true;
        }
        key = if matches!(part, ":" | "" | "," | ", ") { key } else { part };
        before = part;
    }
    false
}
