//! Text that is neither an answer for a person nor a call: a call in the tags of another protocol, or half of a pair of
//! tags.

use super::call;
use crate::protocol::{Code, Violation};
use crate::reply::tag::{Match, Tag};
use crate::reply::{BoxedViolation, Span};
use std::sync::LazyLock;

/// Names of the tags that only calls stand in.
const CALL_NAMES: [&str; 8] =
    ["tool_call", "tool_calls", "tool_use", "toolcall", "function_call", "function_calls", "functioncall", "invoke"];
/// Names of tags in which other protocols put calls, and which may also be anything else.
static OTHERS: LazyLock<[Tag; 7]> =
    LazyLock::new(|| ["tool", "tools", "function", "action", "output", "call", "calls"].map(Tag::open));
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
/// What stands before the names of some models' tags.
const MARK: &str = "｜DSML｜";

/// Characters of a channel's header that are looked at.
const LONGEST_HEADER: usize = 200;

/// The smallest correct block.
pub(super) fn form(own: (&Tag, &Tag)) -> String {
    format!("{}[{}]{}", own.0.literal(), call::CALL, own.1.literal())
}

/// Whether a place is inside Markdown code; places are asked for in order.
pub(super) struct Places<'a> {
    spans: &'a [Span],
}

impl<'a> Places<'a> {
    pub(super) fn new(spans: &'a [Span]) -> Self {
        Self { spans }
    }

    pub(super) fn holds(&mut self, at: usize) -> bool {
        while let [first, rest @ ..] = self.spans {
            if first.end > at {
                return first.start <= at;
            }
            self.spans = rest;
        }
        false
    }
}

/// A tag that only calls stand in.
struct CallTag {
    span: Span,
    name: &'static str,
    closing: bool,
}

/// The tag with one of `CALL_NAMES` that begins at `at`, perhaps with a prefix to its name.
fn call_tag(text: &str, at: usize) -> Option<CallTag> {
    let rest = text.get(at..)?.strip_prefix('<')?;
    let inside = rest.strip_prefix('/').unwrap_or(rest);
    let closing = inside.len() < rest.len();
    let name = inside.strip_prefix(MARK).unwrap_or(inside);
    let prefix = name.bytes().take(16).take_while(u8::is_ascii_alphanumeric).count();
    let name = name.get(prefix..).and_then(|rest| rest.strip_prefix(':')).unwrap_or(name);
    let length = name.bytes().take(20).take_while(|byte| byte.is_ascii_alphabetic() || *byte == b'_').count();
    let (word, after) = name.split_at_checked(length)?;
    let known = CALL_NAMES.iter().find(|known| known.eq_ignore_ascii_case(word))?;
    let marked = inside.starts_with(MARK);
    let ends = after.starts_with(['>', ' ', '\n', '/']) || marked && after.is_empty();
    ends.then(|| CallTag { span: Span::new(at, text.len() - after.len()), name: known, closing })
}

/// A call in the tags of another protocol. `code` are the places of Markdown code, in order.
pub(super) fn foreign_tag(text: &str, body: usize, code: &[Span], own: (&Tag, &Tag)) -> Option<BoxedViolation> {
    let mut tags = Vec::new();
    let mut code = Places::new(code);
    let bytes = text.as_bytes().get(body..)?;
    for offset in memchr::memchr2_iter(b'<', b'[', bytes) {
        let at = body + offset;
        let Some(rest) = text.get(at..) else { continue };
        if code.holds(at) || [own.0, own.1].iter().any(|tag| tag.at(rest, true) != Match::No) {
            continue;
        }
        let other = OTHERS.iter().find_map(|tag| match tag.at(rest, true) {
            Match::Yes { length, .. } => Some(length),
            _ => None,
        });
        let opening = OPENINGS.iter().find(|opening| rest.starts_with(**opening)).map(|opening| opening.len());
        let tag = call_tag(text, at);
        let length =
            other.or(opening).or(tag.as_ref().filter(|tag| !tag.closing).map(|tag| tag.span.end - tag.span.start));
        if let Some(length) = length {
            let after = rest.get(length..).unwrap_or("");
            let after = if opening.is_none() && other.is_none() { past_attributes(after) } else { after }.trim_start();
            // `[TOOL_CALLS]name[ARGS]{…}`, whole or cut.
            let named = rest.strip_prefix("[TOOL_CALLS]").is_some_and(|name| name.starts_with(char::is_alphanumeric));
            let marked = rest.strip_prefix('<').is_some_and(|rest| rest.starts_with(MARK));
            if after.starts_with(['[', '{', '<']) || rest.starts_with("<function=") || named || marked {
                return Some(wrong_tag(rest, Span::new(at, at + length), own));
            }
        }
        if channel_call(rest) {
            return Some(wrong_tag(rest, Span::new(at, at + "<|channel|>".len()), own));
        }
        tags.extend(tag);
    }
    unpaired(text, &tags, own)
}

/// What stands after the attributes of a tag.
fn past_attributes(after: &str) -> &str {
    let inside = after.get(..after.len().min(120)).unwrap_or(after);
    inside.find('>').and_then(|end| after.get(end + 1..)).unwrap_or(after)
}

/// A call in a channel of a model's chat template: `<|channel|>commentary to=functions.name`.
fn channel_call(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix("<|channel|>") else { return false };
    let rest = rest.char_indices().nth(LONGEST_HEADER).map_or(rest, |(end, _)| rest.get(..end).unwrap_or(rest));
    let line = rest.lines().next().unwrap_or("");
    line.split("<|message|>").next().is_some_and(|header| header.contains(" to="))
}

/// Judges tags whatever stands between them: a pair is a call, an end tag alone is the end of one.
fn unpaired(text: &str, tags: &[CallTag], own: (&Tag, &Tag)) -> Option<BoxedViolation> {
    let pairs =
        |tag: &&CallTag| tags.iter().any(|end| end.closing && end.name == tag.name && end.span.start > tag.span.start);
    let openings = CALL_NAMES.iter().filter_map(|name| tags.iter().find(|tag| tag.name == *name && !tag.closing));
    if let Some(tag) = openings.filter(pairs).min_by_key(|tag| tag.span.start) {
        return Some(wrong_tag(text.get(tag.span.start..)?, tag.span, own));
    }
    let orphan = tags.iter().find(|tag| {
        let after = text.get(tag.span.end..).unwrap_or("").trim_start_matches('>');
        let before = text.get(..tag.span.start).unwrap_or("").trim_end_matches([' ', '\t']);
        let alone = after.trim_start_matches([' ', '\t']).starts_with('\n') && before.ends_with('\n');
        tag.closing && (alone || after.trim().is_empty())
    })?;
    let message = "expected a call before this end tag: got none";
    Some(Box::new(Violation::new(Code::OrphanCloseTag, message).at(orphan.span).expected(form(own))))
}

fn wrong_tag(rest: &str, place: Span, own: (&Tag, &Tag)) -> BoxedViolation {
    let found: String = rest.chars().take(40).take_while(|c| *c != '\n').collect();
    let message = format!("expected a tool block in {}: got a call in other tags", own.0.literal());
    Box::new(
        Violation::new(Code::WrongTag, message)
            .at(place)
            .found(found)
            .expected(form(own))
            .hint("use exactly the tags of this conversation; to speak of other tags, put them in backticks"),
    )
}

/// One of the own tags that the end of the text cuts.
pub(super) fn truncated_tag(text: &str, code: &[Span], own: (&Tag, &Tag)) -> Option<BoxedViolation> {
    let text = text.trim_end();
    let cut = [own.0, own.1].into_iter().find_map(|tag| {
        let all_but_its_end = tag.literal().get(..tag.literal().len() - 1).filter(|part| part.len() >= 3)?;
        text.ends_with(all_but_its_end).then_some(all_but_its_end.len())
    })?;
    let place = Span::new(text.len() - cut, text.len());
    if Places::new(code).holds(place.start) {
        return None;
    }
    let message = "expected the whole tag: the text ended inside it";
    Some(Box::new(Violation::new(Code::Truncated, message).at(place).expected(form(own))))
}
