//! Text that is neither an answer for a person nor a call: a call without tags, in the tags of another protocol, or
//! half of a pair of tags.

use super::call;
use crate::protocol::notes::Fault;
use crate::protocol::{Code, ReadOptions, Violation};
use crate::reply::json::{Machine, Progress, Record, Settings};
use crate::reply::tag::{Match, Tag};
use crate::reply::{RepairPolicy, Span};

/// Names of the tags that other protocols put around calls.
const NAMES: [&str; 15] = [
    "tool",
    "tools",
    "tool_call",
    "tool_calls",
    "tool_use",
    "toolcall",
    "function",
    "function_call",
    "function_calls",
    "functioncall",
    "invoke",
    "action",
    "output",
    "call",
    "calls",
];
/// Other openings of calls.
const OPENINGS: [&str; 9] = [
    "<function=",
    "<|tool_call|>",
    "<|tool_calls|>",
    "<|python_tag|>",
    "<|tool_call_start|>",
    "<|tool_calls_section_begin|>",
    "<｜tool▁calls▁begin｜>",
    "[TOOL_CALLS]",
    "[TOOL_REQUEST]",
];

/// The smallest correct block.
fn form(own: (&Tag, &Tag)) -> String {
    format!("{}[{}]{}", own.0.literal(), call::CALL, own.1.literal())
}

/// Whether a place is inside Markdown code; places are asked for in order.
struct Places<'a> {
    spans: &'a [Span],
}

impl Places<'_> {
    fn holds(&mut self, at: usize) -> bool {
        while let [first, rest @ ..] = self.spans {
            if first.end > at {
                return first.start <= at;
            }
            self.spans = rest;
        }
        false
    }
}

/// A call in the tags of another protocol. `code` are the places of Markdown code, in order.
pub(super) fn foreign_tag(text: &str, body: usize, code: &[Span], own: (&Tag, &Tag)) -> Option<Fault> {
    let tags: Vec<Tag> =
        NAMES.iter().map(|name| Tag::open(name)).filter(|tag| tag.literal() != own.0.literal()).collect();
    let mut code = Places { spans: code };
    let bytes = text.as_bytes().get(body..)?;
    for offset in memchr::memchr2_iter(b'<', b'[', bytes) {
        let at = body + offset;
        let Some(rest) = text.get(at..) else { continue };
        if code.holds(at) || own.0.at(rest, true) != Match::No {
            continue;
        }
        let length = tags.iter().find_map(|tag| match tag.at(rest, true) {
            Match::Yes { length, .. } => Some(length),
            _ => None,
        });
        let opening = OPENINGS.iter().find(|opening| rest.starts_with(**opening));
        let Some(length) = length.or(opening.map(|opening| opening.len())) else { continue };
        let after = rest.get(length..).unwrap_or("").trim_start();
        if after.starts_with(['[', '{', '<']) || rest.starts_with("<function=") {
            let found: String = rest.chars().take(40).take_while(|c| *c != '\n').collect();
            let message = format!("expected a tool block in {}: got a call in other tags", own.0.literal());
            return Some(Box::new(
                Violation::new(Code::WrongTag, message)
                    .at(Span::new(at, at + length))
                    .found(found)
                    .expected(form(own))
                    .hint("use exactly the tags of this conversation"),
            ));
        }
    }
    None
}

/// A call without tags: the whole reply, or an object or array of calls that begins a line.
pub(super) fn untagged(
    text: &str,
    body: usize,
    code: &[Span],
    own: (&Tag, &Tag),
    options: &ReadOptions,
) -> Option<Fault> {
    let mut holder = Places { spans: code };
    let mut settings = Settings::new(RepairPolicy::Default, options.limits);
    settings.records = true;
    settings.keys = call::KEYS;
    let whole = whole_payload(text, body);
    let (mut at, mut line_begins) = (body, true);
    while let Some(&byte) = text.as_bytes().get(at) {
        match byte {
            b'[' | b'{' => {}
            b'\n' => line_begins = true,
            _ => line_begins &= byte.is_ascii_whitespace(),
        }
        let is_whole = whole == Some(at);
        if !matches!(byte, b'[' | b'{') || !is_whole && (!line_begins || holder.holds(at)) {
            line_begins &= !matches!(byte, b'[' | b'{');
            at += 1;
            continue;
        }
        let mut machine = Machine::new(settings.clone(), at);
        let progress = machine.run(text, true);
        let span = Span::new(at, machine.position());
        let calls = match progress {
            Progress::Done => machine.records().iter().any(|record| call_like(record, is_whole)),
            _ => machine.meant() && machine.records().iter().any(|record| call_like(record, is_whole)),
        };
        if calls {
            let message = "expected the calls between the tags: got them without tags";
            return Some(Box::new(
                Violation::new(Code::UntaggedToolCall, message)
                    .at(span)
                    .expected(form(own))
                    .hint("put the array of calls between the tags, or answer in plain text"),
            ));
        }
        at = span.end.max(at + 1);
        line_begins = false;
    }
    None
}

/// Where the payload begins if the reply is one payload, perhaps in a fence.
fn whole_payload(text: &str, body: usize) -> Option<usize> {
    let rest = text.get(body..)?;
    let trimmed = rest.trim_start();
    let start = trimmed.find(['[', '{'])?;
    let before = trimmed.get(..start)?;
    let fenced = before.starts_with(['`', '~']) && crate::protocol::around::fence_before(before) == Some(0);
    (start == 0 || fenced).then(|| body + (rest.len() - trimmed.len()) + start)
}

/// Whether an object is a call: of this protocol, or, where it is the whole reply, of any.
fn call_like(record: &Record, any: bool) -> bool {
    let has = |keys: &[&str]| keys.iter().any(|key| record.fields.contains_key(*key));
    has(&["tool_name"]) && has(&["arguments", "call_id"])
        || any
            && has(&["name", "tool", "function", "action", "tool_name"])
            && has(&["arguments", "parameters", "args", "input", "action_input", "payload"])
}
