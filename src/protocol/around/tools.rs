//! The text around a move, judged by the tools of the run: names of parameters with a value, and calls in words.

use super::keys;
use crate::protocol::untagged_call::NAMESPACES;
use crate::protocol::{Move, Protocol, Reply, ToolCall, violations};
use crate::reply::{BoxedViolation, Code, RepairCode, Span, Value, Violation};
use crate::tool::ToolSet;
use std::collections::HashSet;

/// A tool that the move calls.
#[derive(Debug, Clone)]
struct CalledTool<'a> {
    /// Where the call stands.
    place: Span,
    /// The names of its parameters.
    parameters: Vec<&'a str>,
}

/// The reply, or its violation where the text around its calls may be a part of them or another call of these tools.
pub(crate) fn judged(protocol: &dyn Protocol, tools: &ToolSet, reply: Reply) -> Reply {
    let Ok(Move::Call { calls }) = &reply.outcome else { return reply };
    let closed = reply.repairs.iter().any(|repair| repair.code == RepairCode::ClosedBrackets);
    if reply.around.is_empty() && !closed {
        return reply;
    }
    let found: Vec<_> = calls.iter().map(|call| (call.span, tools.find(&call.tool, protocol.routes()))).collect();
    let called: Vec<CalledTool<'_>> = found
        .iter()
        .filter_map(|(place, found)| {
            let properties = found.as_ref().ok()?.tool.parameters.get("properties")?.as_object()?;
            Some(CalledTool { place: *place, parameters: properties.keys().map(String::as_str).collect() })
        })
        .collect();
    if closed && let Some((call, key)) = one_too_deep(calls, &called) {
        let message = format!("expected '}}' before the end of the reply: '{key}' may belong inside or outside of it");
        let violation = Violation::new(Code::UnbalancedBrackets, message)
            .at(call)
            .hint("close every bracket where its object ends");
        return reply.refused(violation);
    }
    let names: HashSet<&str> = tools.names().collect();
    match judge(&reply.raw, &reply.around, &called, &names, &protocol.call_form()) {
        Ok(()) => reply,
        Err(violation) => reply.refused(*violation),
    }
}

/// An argument that stands in another one, where a closing bracket is missing: it may have been meant beside it.
fn one_too_deep<'a>(calls: &'a [ToolCall], called: &[CalledTool<'_>]) -> Option<(Span, &'a str)> {
    calls.iter().find_map(|call| {
        let tool = called.iter().find(|tool| tool.place == call.span)?;
        let given = call.arguments.as_object()?;
        let missing = |key: &str| tool.parameters.contains(&key) && !given.contains_key(key);
        Some((call.span, in_last_value(given.values().last()?, &missing)?))
    })
}

/// The first key of a kind in a value, or in what it ends with.
fn in_last_value<'a>(value: &'a Value, wanted: &impl Fn(&str) -> bool) -> Option<&'a str> {
    match value {
        Value::Object(object) => object
            .keys()
            .find(|key| wanted(key))
            .or_else(|| object.values().last().and_then(|last| in_last_value(last, wanted))),
        Value::Array(items) => items.last().and_then(|last| in_last_value(last, wanted)),
        _ => None,
    }
}

/// Words of the lines that name a tool: "Action: search".
const LABELS: [&str; 9] =
    ["action", "tool", "tool name", "tool_name", "function", "function name", "call", "tool call", "invoke"];
/// Marks of Markdown around a label and its value.
const MARKS: [char; 8] = ['*', '_', '#', '-', '`', '"', '\'', ' '];

/// Refuses the calls where a piece of the text around them holds the name of a parameter with a value, or another call
/// of a tool. `tools` are the names of all the run's tools.
fn judge(
    raw: &str,
    around: &[Span],
    called: &[CalledTool<'_>],
    tools: &HashSet<&str>,
    form: &str,
) -> Result<(), BoxedViolation> {
    let Some(first) = called.first() else { return Ok(()) };
    let parameters: Vec<&str> = called.iter().flat_map(|tool| &tool.parameters).copied().collect();
    for piece in around {
        if let Some((place, name)) = keys::find(raw, *piece, &[], &parameters) {
            let message = format!("expected every argument inside the call: got '{name}' outside it");
            return Err(Box::new(
                Violation::new(Code::ExtraData, message)
                    .at(place)
                    .related(first.place, "the call")
                    .hint("put every argument into the call, and write no names of arguments around it"),
            ));
        }
        let marked = || in_marks(raw, keys::without_lead(raw, *piece), tools);
        if let Some(second) = in_words(raw, *piece, tools).or_else(marked) {
            return Err(violations::several(first.place, second, form));
        }
    }
    Ok(())
}

/// A line that calls a tool in words: its name after a label, or before arguments in brackets.
fn in_words(raw: &str, piece: Span, tools: &HashSet<&str>) -> Option<Span> {
    let mut at = piece.start;
    for line in piece.of(raw).split_inclusive('\n') {
        let place = Span::new(at, at + line.trim_end().len());
        at += line.len();
        let said = line.trim().trim_matches(MARKS);
        let labelled = said.split_once([':', '=']).is_some_and(|(label, value)| {
            let label = label.trim_matches(MARKS).to_ascii_lowercase();
            let value = value.trim_matches(MARKS);
            LABELS.contains(&label.as_str()) && tools.contains(&value) || label == "final answer" && !value.is_empty()
        });
        let said = without_lead_in(said, tools);
        let called = said.split_once('(').is_some_and(|(name, rest)| {
            let (arguments, behind) = rest.split_once(')').unwrap_or((rest, ""));
            // `search (call_1): found` is what a result looks like; `search() finds it` is prose.
            let result = behind.starts_with(':');
            let alone = !behind.contains(char::is_alphanumeric);
            tools.contains(&name.trim_end()) && (alone || !arguments.trim().is_empty()) && !result
        });
        let headed = said.split_once(['{', '[']).is_some_and(|(name, _)| {
            let name = name.trim_end();
            let routed = METHODS.iter().find_map(|method| name.strip_prefix(method));
            tools.contains(name) || routed.is_some_and(|name| tools.contains(name))
        });
        let listed = || {
            let inside = line.trim().strip_prefix('[').map_or("", str::trim_start);
            let name = inside.strip_prefix(['"', '\'']).and_then(|rest| rest.split_once(['"', '\'']));
            name.is_some_and(|(name, rest)| tools.contains(name) && rest.trim_start().starts_with(','))
        };
        if labelled || called || headed || listed() {
            return Some(place);
        }
    }
    None
}

/// What may stand before a call in a program or in a list, as long as no other word does: `1. `, `r = `, `await `, `print(`.
fn without_lead_in<'t>(line: &'t str, tools: &HashSet<&str>) -> &'t str {
    let mut said = line;
    for _ in 0..LEAD_INS {
        let marks = said.trim_start_matches(|c: char| !keys::is_name(c) && !keys::is_quote(c));
        let length = marks.find(|c: char| !keys::is_name(c)).unwrap_or(marks.len());
        let (word, rest) = marks.split_at(length);
        let number = word.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with(['.', ')']);
        let assigned = rest.trim_start().starts_with('=') && !rest.trim_start().starts_with("==");
        let passed = rest.starts_with('(') || matches!(word, "await" | "return" | "yield" | "let" | "const" | "var");
        if word.is_empty() || tools.contains(word) || !(number || assigned || passed) {
            return marks;
        }
        said = rest;
    }
    said
}

/// How many such beginnings are passed.
const LEAD_INS: usize = 5;

/// Keys of a call's name, in JSON and in tags.
const NAMES: [&str; 12] = [
    "action",
    "call",
    "function",
    "function_name",
    "invoke",
    "name",
    "operation",
    "recipient",
    "recipient_name",
    "route",
    "tool",
    "tool_name",
];

/// The name of a tool in the marks of another form: as the value of such a key, as a tag or in one, behind a control token.
fn in_marks(raw: &str, piece: Span, tools: &HashSet<&str>) -> Option<Span> {
    let text = piece.of(raw);
    let found = keys::words(text).find(|span| tools.contains(span.of(text)) && is_marked(text, *span));
    let other = || {
        // Names of several words are rare.
        let several = tools.iter().filter(|name| !name.is_empty() && !name.chars().all(keys::is_name)).take(MOST);
        let mut places = several.flat_map(|name| {
            text.match_indices(name).map(|(start, _)| Span::new(start, start + name.len())).take(MOST)
        });
        places.find(|span| is_marked(text, *span))
    };
    let place = found.or_else(other)?;
    Some(Span::new(piece.start + place.start, piece.start + place.end))
}

/// What stands before the name of a tool in a route.
const METHODS: [&str; 5] = ["GET /", "POST /", "PUT /", "PATCH /", "DELETE /"];
/// Characters of a mark before a name that are looked at.
const LONGEST_MARK: usize = 120;
/// Names of several words, and places of one, that are looked at.
const MOST: usize = 40;

/// Whether the name of a tool at this place is that of a call.
fn is_marked(text: &str, place: Span) -> bool {
    let (before, after) = (text.get(..place.start).unwrap_or(""), text.get(place.end..).unwrap_or(""));
    if after.starts_with(keys::is_name) {
        return false;
    }
    let before = METHODS.iter().find_map(|method| before.strip_suffix(method)).unwrap_or(before);
    if NAMESPACES.iter().any(|space| before.ends_with(space)) {
        return true;
    }
    let quote = |c: char| keys::is_quote(c) || c == '\\';
    let bare = before.trim_end_matches(quote);
    let label = |text: &str| {
        let key = text.trim_end().trim_end_matches(quote);
        let start = key
            .rfind(|c: char| !keys::is_name(c))
            .map_or(0, |at| at + key.get(at..).and_then(|c| c.chars().next()).map_or(1, char::len_utf8));
        key.get(start..).is_some_and(|key| NAMES.contains(&key.to_ascii_lowercase().as_str()))
    };
    let valued = |text: &str| text.strip_suffix([':', '=', '：']).is_some_and(label);
    let quoted = bare.len() < before.len() && after.starts_with(quote);
    // `"name": "search"`, `<function=search>`, `name="search"`.
    if quoted && valued(bare.trim_end()) || valued(bare) && after.starts_with(['>', '"', '\'', '}', '|']) {
        return true;
    }
    // `<search>` and `</search>`, and what follows a control token or stands between tags of calls.
    let tag = before.strip_suffix(['<']).or_else(|| before.strip_suffix("</")).is_some()
        && after.starts_with(|c: char| matches!(c, '>' | '/') || c.is_whitespace());
    let inside = before.trim_end();
    let token = inside.ends_with(['>', '｜']) || bare.trim_end().ends_with(['>', '｜']);
    let of_calls = || {
        let mark: String = inside.chars().rev().take(LONGEST_MARK).take_while(|c| *c != '<').collect();
        let mark: String = mark.chars().rev().collect::<String>().to_ascii_lowercase();
        ["tool", "func", "call", "name", "invoke", "action", "|"].iter().any(|word| mark.contains(word))
    };
    tag || token && of_calls()
}

#[cfg(test)]
mod tests {
    use super::{in_marks, in_words};
    use crate::reply::Span;

    #[test]
    fn calls_in_words() {
        let tools = ["search", "drop_table"].into();
        let calls = |text: &str| in_words(text, Span::new(0, text.len()), &tools).is_some();
        for text in [
            "Action: search",
            "so\n**Tool:** `drop_table`",
            "search(\"x\")",
            "- drop_table(1) now",
            "[search(q=1)]",
            "search {\"q\": 1}",
            "search()",
            "[search()]",
            "r = search(\"x\")",
            "print(search(q='x'))",
            "x = await search(1);",
            "1. drop_table(1)",
            "[\"search\", {\"q\": 1}]",
            "search[x]",
            "Final Answer: done",
        ] {
            assert!(calls(text), "{text}");
        }
        for text in [
            "Action: searching",
            "I use search() now",
            "search it",
            "Action: none",
            "the tool: a search",
            "search (call_1): found",
            "search() finds it",
            "print(1)",
            "Final answer:",
            "[\"search\"]",
            "a = b (so)",
        ] {
            assert!(!calls(text), "{text}");
        }
    }

    #[test]
    fn calls_in_marks() {
        let tools = ["search", "drop_table", "POST /send"].into();
        let calls = |text: &str| in_marks(text, Span::new(0, text.len()), &tools).is_some();
        for text in [
            "{\"name\": \"search\", \"arguments\": {}}",
            "{'tool': 'drop_table'}",
            "{\\\"name\\\": \\\"search\\\"}",
            "[{\"tool_name\":\"search\"}]",
            "<search><q>1</q></search>",
            "<function=search>",
            "<invoke name=\"search\">",
            "<|tool_call_begin|>functions.search:0<|x|>",
            "<｜tool▁sep｜>search\n",
            "<tool_call>search\n<arg_key>",
            "{\"route\": \"POST /send\"}",
            "<|channel|>commentary to=functions.search<|message|>",
        ] {
            assert!(calls(text), "{text}");
        }
        for text in [
            "I use the `search` tool",
            "the name: \"searching\"",
            "'search' finds it",
            "<b>so</b> I search",
            "I search for \"name\"",
            "my search.",
            "a < search > b",
            "use \"search\": it finds",
        ] {
            assert!(!calls(text), "{text}");
        }
    }
}
