//! Calls without tags in the text of a chatty reply.

use super::call;
use super::wrong_tags::{Places, foreign_tag, form};
use crate::protocol::{Code, ReadOptions, Violation};
use crate::reply::json::{Field, Fields, JsonReader, Progress, Settings};
use crate::reply::tag::{Match, Tag};
use crate::reply::{BoxedViolation, RepairPolicy, Span};

/// A call without tags: the whole reply, or an object or array of calls that begins a line.
pub(super) fn untagged(text: &str, body: usize, code: &[Span], options: &ReadOptions) -> Option<Span> {
    let whole = whole_payload(text, body);
    seek(text, body, whole, code, options, &call_like)
}

/// A second move after a block: a call without tags, or in the tags of another protocol.
pub(super) fn another_call(
    text: &str,
    from: usize,
    code: &[Span],
    own: (&Tag, &Tag),
    options: &ReadOptions,
) -> Option<Span> {
    let complete = |fields: &Fields, _| ["tool_name", "arguments"].iter().all(|key| fields.contains_key(key));
    let untagged = seek(text, from, None, code, options, &complete);
    untagged.or_else(|| foreign_tag(text, from, code, own).and_then(|fault| fault.span))
}

/// The violation of a call in the fence that a reply ends with: it may be meant, and it may be shown.
pub(super) fn in_last_fence(
    text: &str,
    code: &[Span],
    own: (&Tag, &Tag),
    options: &ReadOptions,
) -> Option<BoxedViolation> {
    let fence = code.last().filter(|code| text.get(code.end..).is_some_and(|after| after.trim().is_empty()))?;
    let whole = fence.of(text).trim_end();
    let inside = whole.trim_start_matches(['`', '~']);
    let ticks = whole.len() - inside.len();
    let word = inside.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let content = word.trim_start();
    let start = fence.start + whole.len() - content.len();
    let content = content.trim_end_matches(['`', '~']).trim_end();
    let place = Span::new(start, start + content.len());
    if let Match::Yes { length, .. } = own.0.at(content, true) {
        let rest = content.get(length..)?;
        let block = rest.trim_start().starts_with(['[', '{', '`']);
        let message = "expected the tool block by itself: got it in a fence";
        return (block && ticks > 0).then(|| {
            Box::new(
                Violation::new(Code::FencedToolCall, message).at(place).expected(form(own)).hint(
                    "write the block again without the fence, or go on with text after it where it is only shown",
                ),
            )
        });
    }
    let begins = content.starts_with(['[', '{']).then_some(place.start)?;
    seek(text, begins, Some(begins), &[], options, &call_like).filter(|found| found.start == begins)?;
    Some(without_tags(place, own))
}

/// The violation of a call without tags.
pub(super) fn without_tags(place: Span, own: (&Tag, &Tag)) -> BoxedViolation {
    Box::new(
        Violation::new(Code::UntaggedToolCall, "expected the calls between the tags: got them without tags")
            .at(place)
            .expected(form(own))
            .hint("put the array of calls between the tags, or answer in plain text"),
    )
}

/// Seeks a call among the values that begin a line outside Markdown code, and at `whole`; one that is cut or broken counts
/// as well.
fn seek(
    text: &str,
    from: usize,
    whole: Option<usize>,
    code: &[Span],
    options: &ReadOptions,
    is_call: &dyn Fn(&Fields, bool) -> bool,
) -> Option<Span> {
    let mut code = Places::new(code);
    let mut settings = Settings::new(RepairPolicy::Default, options.limits);
    settings.records = true;
    settings.keys = call::KEYS;
    let (mut at, mut line_begins) = (from, true);
    while let Some(&byte) = text.as_bytes().get(at) {
        match byte {
            b'[' | b'{' => {}
            b'\n' => line_begins = true,
            _ => line_begins &= byte.is_ascii_whitespace(),
        }
        let is_whole = whole == Some(at);
        if !matches!(byte, b'[' | b'{') || !is_whole && (!line_begins || code.holds(at)) {
            line_begins &= !matches!(byte, b'[' | b'{');
            at += 1;
            continue;
        }
        let mut reader = JsonReader::new(settings.clone(), at);
        let broken = reader.run(text, true) != Progress::Done;
        let span = Span::new(at, reader.position());
        let closed = reader.records().iter().map(|record| &record.fields);
        // With text behind it, it is not the whole reply.
        let alone = || text.get(span.end..).is_some_and(|rest| rest.trim_matches(after_call).is_empty());
        let is_whole = is_whole && (broken || alone());
        if closed.chain(reader.open_record()).any(|fields| is_call(fields, is_whole)) {
            return Some(span);
        }
        at = span.end.max(at + 1);
        line_begins = false;
    }
    None
}

/// What may stand behind a call that is the whole reply: blanks, the end of its fence, surplus brackets.
fn after_call(c: char) -> bool {
    c.is_whitespace() || matches!(c, '`' | '~' | ']' | '}')
}

/// Where the payload begins if the reply is one payload, perhaps in a fence.
fn whole_payload(text: &str, body: usize) -> Option<usize> {
    let rest = text.get(body..)?;
    let trimmed = rest.trim_start();
    let start = trimmed.find(['[', '{'])?;
    let before = trimmed.get(..start)?;
    let fenced = before.starts_with(['`', '~']) && crate::protocol::surrounding_text::fence_before(before) == Some(0);
    (start == 0 || fenced).then(|| body + (rest.len() - trimmed.len()) + start)
}

/// Whether an object is a call: of this protocol, or, where it is the whole reply, of any.
fn call_like(fields: &Fields, any: bool) -> bool {
    let has = |keys: &[&str]| keys.iter().any(|key| fields.contains_key(key));
    // The description of a tool has the keys of a call, and a schema in the place of arguments.
    let schema = |field: &Field| field.value.as_object().is_some_and(|object| object.contains_key("properties"));
    if fields.get("parameters").is_some_and(schema) {
        return false;
    }
    has(&["tool_name"]) && has(&["arguments", "call_id"])
        || any
            && has(&["name", "tool", "function", "action", "tool_name"])
            && has(&["arguments", "parameters", "args", "input", "action_input", "payload"])
}
