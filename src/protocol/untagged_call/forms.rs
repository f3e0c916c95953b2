//! What looks like a call of a tool.

use super::json_call::{self, Verdict};
use super::{Tools, python_call, tag_call};

/// Words that name a tool or its arguments, where nothing but them stands beside the name.
const LABELS: [&str; 34] = [
    "action",
    "action_input",
    "analysis",
    "api",
    "args",
    "arguments",
    "assistant",
    "assistantcommentary",
    "call",
    "commentary",
    "execute",
    "function",
    "function_call",
    "functions",
    "input",
    "invoke",
    "json",
    "name",
    "parameters",
    "params",
    "recipient",
    "request",
    "run",
    "thought",
    "to",
    "tool",
    "tool_call",
    "tool_code",
    "tool_input",
    "tool_name",
    "tool_use",
    "tools",
    "type",
    "use",
];
/// Those of them that say that arguments follow.
const INPUTS: [&str; 11] = [
    "action input",
    "action_input",
    "args",
    "arguments",
    "function arguments",
    "input",
    "parameters",
    "params",
    "tool arguments",
    "tool input",
    "tool_input",
];
/// Those of them that say that a tool's name follows.
const CALLS: [&str; 14] = [
    "action",
    "call",
    "function",
    "function call",
    "function name",
    "invoke",
    "tool",
    "tool call",
    "tool name",
    "tool use",
    "tool_call",
    "tool_name",
    "use tool",
    "using tool",
];
/// Bytes of what stands before arguments.
const HEAD: usize = 240;

/// Whether the text is a call and nothing else.
pub(super) fn is_call(text: &str, tools: &Tools<'_>) -> bool {
    let text = text.trim();
    match text.chars().next() {
        Some('<') => tag_call::is_call(text, tools),
        Some('{' | '[') => is_value(text, tools) || is_headed(text, tools),
        Some(_) => {
            python_call::are_calls(text, tools)
                || labelled(text).is_some_and(|(label, rest)| {
                    CALLS.contains(&label.as_str()) && !rest.contains('\n') && python_call::are_calls(rest, tools)
                })
                || is_headed(text, tools)
                || is_listed(text, tools)
        }
        None => false,
    }
}

/// The same without the tags around it.
pub(super) fn is_plain_call(text: &str, tools: &Tools<'_>) -> bool {
    !text.trim_start().starts_with('<') && is_call(text, tools)
}

fn is_value(text: &str, tools: &Tools<'_>) -> bool {
    // The bracket at its end may be what is cut off.
    let listed = text.strip_prefix('[').map(|inside| inside.trim_end().strip_suffix(']').unwrap_or(inside));
    json_call::verdict(text, tools) == Verdict::Call
        || listed.is_some_and(|inside| python_call::are_calls(inside.trim(), tools))
}

/// Whether a tool is called somewhere in a text that is meant to hold calls.
pub(super) fn names_a_call(text: &str, tools: &Tools<'_>) -> bool {
    is_call(text, tools) || python_call::holds_a_call(text, tools)
}

/// `name {…}`, `Action: name` and `Action Input: {…}`, `to=functions.name json{…}`: nothing but the name of a tool and
/// labels before an object that the text ends with.
fn is_headed(text: &str, tools: &Tools<'_>) -> bool {
    let Some(open) = text.find('{').filter(|open| *open > 0 && *open <= HEAD) else { return false };
    let (head, object) = (text.get(..open).unwrap_or(""), text.get(open..).unwrap_or(""));
    // No other words lead to the name of a tool like these.
    if head.rsplit_once("to=functions.").is_some_and(|(_, rest)| {
        let name = rest.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.')).next().unwrap_or("");
        tools.names(name)
    }) {
        return true;
    }
    if head.trim_end().lines().count() > 3 {
        return false;
    }
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let (mut named, mut labels) = (None, 0);
    for part in head.split(|c: char| !word(c)).filter(|part| !part.is_empty()) {
        if let Some(tool) = tools.get(part.trim_matches('.')) {
            if named.replace(tool).is_some_and(|before| before.name != tool.name) {
                return false;
            }
        } else if LABELS.contains(&part.trim_matches(['.', '/']).to_ascii_lowercase().as_str()) {
            labels += 1;
        } else {
            return false;
        }
    }
    let Some(tool) = named else { return false };
    json_call::are_arguments(object, tool, labels > 0)
}

/// A line with the name of a tool, and lines with its arguments in words.
fn is_listed(text: &str, tools: &Tools<'_>) -> bool {
    let Some((first, rest)) = text.split_once('\n') else { return false };
    let Some((label, name)) = labelled(first) else { return false };
    let Some((input, value)) = labelled(rest.trim_start()) else { return false };
    let bare = name.trim_matches(['*', '`', '"', '\'', '_', ' ']);
    let named = CALLS.contains(&label.as_str()) && (tools.names(bare) || tools.names(name.trim()));
    if !named || !INPUTS.contains(&input.as_str()) {
        return false;
    }
    let inside = |line: &str| line.starts_with([' ', '\t', '-']) || line.trim().is_empty();
    match value.split_once('\n') {
        None => true,
        Some((first, rest)) if first.trim().is_empty() => rest.lines().all(inside),
        Some(_) => value.trim_end().ends_with(['}', ']']) && value.trim_start().starts_with(['{', '[']),
    }
}

/// The words before the colon of a line, in lower case and without Markdown, and what follows.
fn labelled(text: &str) -> Option<(String, &str)> {
    let (label, rest) = text.split_once(':')?;
    if label.len() > 40 || label.contains('\n') {
        return None;
    }
    let label = label.trim_matches(['*', '_', '#', ' ', '"']).to_ascii_lowercase();
    Some((label, rest.trim_start_matches(['*', '_', ' '])))
}
