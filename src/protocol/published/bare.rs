//! Calls without a mark, which are one only where the reply is nothing else: `{"name": …, "arguments": {…}}`,
//! `{"tool_calls": […]}`, `[f(city="Oslo")]`, a fence with a call, `<get_weather><city>Oslo</city></get_weather>`.

use super::call::{self, Call};
use super::cursor::Cursor;
use super::families::Trim;
use super::pythonic;
use crate::protocol::ReadOptions;
use crate::protocol::surrounding_text::without_tokens;
use crate::reply::json::Record;
use crate::reply::{Object, Repair, RepairCode, Span};

/// Words of fences in which families write calls.
const FENCES: [&str; 7] = ["tool_code", "tool_call", "tool_calls", "tool", "function_call", "json", ""];
/// The parameter of a tag whose value keeps its blanks, but for the line breaks of the layout.
const CONTENT: &str = "content";

/// The calls that the text from `from` on is.
pub(super) fn read(text: &str, from: usize, options: &ReadOptions) -> Option<(Vec<Call>, Span, Vec<Repair>)> {
    let rest = text.get(from..)?;
    let (kept, tokens) = without_tokens(rest);
    let kept = kept?;
    let place = Span::new(from + kept.start, from + kept.end);
    let mut repairs = Vec::new();
    if let Some(tokens) = tokens {
        repairs.push(Repair::new(RepairCode::SpecialTokenStripped, Span::new(from + tokens.start, from + tokens.end)));
    }
    let mut inside = place;
    let mut code = false;
    if let Some((content, word)) = fenced(place.of(text)) {
        inside = Span::new(place.start + content.start, place.start + content.end);
        code = word.starts_with("tool_co");
        if !FENCES.contains(&word) {
            return None;
        }
        repairs.push(Repair::new(RepairCode::FenceStripped, Span::new(place.start, inside.start)));
    }
    // Nothing behind the call is read.
    let whole = text.get(..inside.end)?;
    let mut cursor = Cursor::new(whole, inside.start, options);
    let calls = if code {
        calls_of_code(&mut cursor)?
    } else if inside.of(text).starts_with('<') {
        vec![element(&mut cursor)?]
    } else {
        calls_of_json(&mut cursor).or_else(|| {
            cursor.at = inside.start;
            python_list(&mut cursor)
        })?
    };
    cursor.rest().trim().is_empty().then_some((calls, inside, repairs))
}

/// Whether the text may yet become an element that is a call: then it is no answer.
pub(super) fn may_be_element(text: &str) -> bool {
    let Some(inside) = text.trim_start().strip_prefix('<') else { return false };
    let after = inside.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let name = inside.get(..inside.len() - after.len()).unwrap_or("");
    name.len() <= 128 && (after.is_empty() || name.contains('_') && after.starts_with('>'))
}

/// The content of a text that is one fence, and the word of the fence.
fn fenced(text: &str) -> Option<(Span, &str)> {
    let inside = text.trim_start_matches('`');
    let ticks = text.len() - inside.len();
    let word = inside.lines().next()?;
    let content = inside.get(word.len()..)?;
    let fence = text.get(..ticks).filter(|fence| fence.len() >= 3)?;
    let content = content.strip_suffix(fence)?.trim();
    let start = text.len() - inside.len() + word.len();
    let start = start + text.get(start..)?.find(content)?;
    (!content.is_empty() && !content.contains(fence)).then(|| (Span::new(start, start + content.len()), word.trim()))
}

fn calls_of_json(cursor: &mut Cursor<'_>) -> Option<Vec<Call>> {
    let start = cursor.at;
    let json = cursor.json()?;
    if let [record] = json.records.as_slice()
        && let Some(list) = record.fields.get("tool_calls")
    {
        // Other members would be lost.
        let alone = record.fields.iter().all(|(key, field)| {
            key == "tool_calls" || matches!(key, "role" | "content") && field.value.as_str().is_none_or(str::is_empty)
        });
        let at = list.span.start;
        let mut inner = *cursor;
        inner.at = at;
        inner.text = cursor.text.get(..list.span.end)?;
        return alone.then(|| call::of_json(inner.json()?)).flatten();
    }
    // The protocol's own objects are none of these.
    let foreign = |record: &Record| {
        let has = |keys: &[&str]| keys.iter().any(|key| record.fields.contains_key(key));
        (has(&["name"]) && has(&["arguments", "parameters"]) || has(&["function"]))
            && !has(&["tool_name", "action", "route"])
    };
    let calls = json.records.iter().all(foreign).then(|| call::of_json(json)).flatten();
    debug_assert!(cursor.at >= start);
    calls
}

/// `[f(city="Oslo"), g()]`.
pub(super) fn python_list(cursor: &mut Cursor<'_>) -> Option<Vec<Call>> {
    if !cursor.eat("[") {
        return None;
    }
    let mut calls = Vec::new();
    while !cursor.eat("]") {
        calls.push(python_call(cursor)?);
        cursor.blanks();
        if !cursor.rest().starts_with(']') && !cursor.eat(",") {
            return None;
        }
    }
    (!calls.is_empty()).then_some(calls)
}

/// Calls in a fence of code: a list, or one on each line, perhaps printed.
fn calls_of_code(cursor: &mut Cursor<'_>) -> Option<Vec<Call>> {
    cursor.blanks();
    if cursor.rest().starts_with('[') {
        return python_list(cursor);
    }
    let mut calls = Vec::new();
    loop {
        cursor.blanks();
        if cursor.rest().is_empty() {
            break;
        }
        let printed = cursor.eat("print(");
        calls.push(python_call(cursor)?);
        if printed && !cursor.eat(")") {
            return None;
        }
        let line = cursor.rest().trim_start_matches([' ', '\t', ';']);
        if !line.is_empty() && !line.starts_with(['\n', '\r']) {
            return None;
        }
        cursor.at = cursor.text.len() - line.len();
    }
    (!calls.is_empty()).then_some(calls)
}

pub(super) fn python_call(cursor: &mut Cursor<'_>) -> Option<Call> {
    cursor.blanks();
    let start = cursor.at;
    let (tool, arguments, place) = pythonic::call(cursor)?;
    Some(Call::new(tool, arguments, place, Span::new(start, cursor.at)))
}

/// `<name><parameter>value</parameter></name>` (Cline). A name without `_` may be that of anything.
fn element(cursor: &mut Cursor<'_>) -> Option<Call> {
    let start = cursor.at;
    let (name, place) = tag(cursor)?;
    if !name.contains('_') {
        return None;
    }
    let close = format!("</{name}>");
    let mut arguments = Object::new();
    while !cursor.eat(&close) {
        cursor.blanks();
        let (key, _) = tag(cursor)?;
        let trim = if key == CONTENT { Trim::Line } else { Trim::Blanks };
        if arguments.contains_key(key) {
            return None;
        }
        let value = cursor.parameter(&format!("</{key}>"), trim)?;
        arguments.insert(key.to_owned(), value);
    }
    let tool = (super::cursor::name(name)?, place);
    Some(Call::new(tool, arguments, Span::new(start, cursor.at), Span::new(start, cursor.at)))
}

/// `<name>`, without attributes.
fn tag<'a>(cursor: &mut Cursor<'a>) -> Option<(&'a str, Span)> {
    if !cursor.eat("<") {
        return None;
    }
    let rest = cursor.rest();
    let name = rest.get(..rest.find('>')?)?;
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let place = Span::new(cursor.at, cursor.at + name.len());
    cursor.at += name.len() + 1;
    plain.then_some((name, place))
}
