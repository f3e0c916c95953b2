//! The examples in a prompt, read as replies are read: a prompt must not teach what the runtime refuses.

use super::decoder::read_whole;
use super::{FinishReason, Protocol, ReadOptions, Reply};
use crate::reply::json::{JsonReader, Progress, Settings};
use crate::reply::tag::{Match, Tag};
use crate::reply::{ReadLimits, RepairPolicy, Span};

/// One example in a prompt.
#[derive(Debug)]
pub struct Example {
    /// Where it stands.
    pub span: Span,
    /// What is read from it.
    pub reply: Reply,
}

/// Reads every example of a reply with a move in `prompt`.
pub fn examples(protocol: &dyn Protocol, prompt: &str) -> Vec<Example> {
    // An example shows the whole reply, whatever a chat template puts before a real one.
    let options = ReadOptions { think_prefilled: false, ..protocol.read_options() };
    let read = |span: Span| Example { span, reply: read_whole(protocol, options, span.of(prompt), FinishReason::Stop) };
    protocol.examples(prompt).into_iter().map(read).collect()
}

/// The objects with one of `keys`, wherever they stand.
pub(super) fn objects(prompt: &str, keys: &'static [&'static str]) -> Vec<Span> {
    let mut settings = Settings::new(RepairPolicy::Default, ReadLimits::default());
    settings.records = true;
    settings.keys = keys;
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some(offset) = prompt.get(from..).and_then(|rest| rest.find('{')) {
        let at = from + offset;
        // A broken example must not swallow those after it.
        let end = paragraph_end(prompt, at);
        let mut reader = JsonReader::new(settings.clone(), at);
        let done = reader.run(prompt, true) == Progress::Done;
        let span = if done { reader.span() } else { Span::new(at, end) };
        if reader.meant() {
            spans.push(span);
            from = span.end;
        } else {
            from = if done { span.end } else { at + 1 };
        }
    }
    spans
}

/// What stands between the tags, with them, where a bracket or fence follows the start tag.
pub(super) fn sections(prompt: &str, start: &Tag, end: &Tag) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some((at, length)) = find(prompt, from, start) {
        from = at + length;
        let inside = prompt.get(from..).unwrap_or("").trim_start();
        if inside.starts_with(['{', '[', '`']) {
            let until = find(prompt, from, end).map_or_else(|| paragraph_end(prompt, at), |(at, length)| at + length);
            spans.push(Span::new(at, until));
            from = until;
        }
    }
    spans
}

/// The last place of `tag` in `prompt` between two places.
pub(super) fn last_before(prompt: &str, from: usize, to: usize, tag: &Tag) -> Option<usize> {
    let mut last = None;
    let mut at = from;
    while let Some((found, length)) = find(prompt, at, tag).filter(|(found, _)| *found < to) {
        last = Some(found);
        at = found + length;
    }
    last
}

fn find(prompt: &str, from: usize, tag: &Tag) -> Option<(usize, usize)> {
    let rest = prompt.get(from..)?;
    let places = rest.char_indices().filter(|(_, c)| c.eq_ignore_ascii_case(&char::from(tag.first())));
    places.into_iter().find_map(|(at, _)| match tag.at(rest.get(at..)?, true) {
        Match::Yes { length, .. } => Some((from + at, length)),
        _ => None,
    })
}

fn paragraph_end(prompt: &str, from: usize) -> usize {
    let rest = prompt.get(from..).unwrap_or("");
    from + rest.find("\n\n").unwrap_or(rest.len())
}
