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

/// A tag around calls in a template of chatty that is not the agent's: the default one wherever it stands, any other one
/// before a call. A model that reads of two tags writes either.
pub(super) fn other_tag<'a>(template: &'a str, own: (&str, &str)) -> Option<(&'a str, usize)> {
    let others = ["<tool>", "</tool>"].into_iter().filter(|tag| !own.0.contains(tag) && !own.1.contains(tag));
    let named = others.filter_map(|tag| Some(Span::new(template.find(tag)?, template.find(tag)? + tag.len())));
    let before_calls =
        objects(template, &["tool_name"]).into_iter().filter_map(|call| tag_before(template, call.start));
    let found = named.chain(before_calls).filter(|tag| tag.of(template) != own.0).min_by_key(|tag| tag.start)?;
    Some((found.of(template), found.start))
}

/// The tag that stands right before a call, or before its array or its fence.
fn tag_before(text: &str, call: usize) -> Option<Span> {
    let before = text.get(..call)?.trim_end();
    let before = before.strip_suffix('[').unwrap_or(before).trim_end();
    let before = match before.rsplit_once('\n') {
        Some((above, line)) if line.trim_start().starts_with("```") => above.trim_end(),
        _ => before,
    };
    let inside = before.strip_suffix('>')?;
    let start = inside.rfind('<')?;
    let name = inside.get(start + 1..)?;
    let is_tag =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    is_tag.then(|| Span::new(start, before.len()))
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

#[cfg(test)]
mod tests {
    use super::other_tag;

    #[test]
    fn a_tag_before_a_call_is_found_and_no_other() {
        let call = r#"[{"call_id": "a", "tool_name": "t", "arguments": {}}]"#;
        let tag = |template: &str, own| other_tag(template, own).map(|(tag, at)| (tag.to_owned(), at));
        let own = ("[[T]]", "[[/T]]");
        assert_eq!(tag("Use the `<tool>` block.", own), Some(("<tool>".to_owned(), 9)));
        assert_eq!(tag(&format!("So:\n<call>\n```json\n{call}\n```\n</call>"), own), Some(("<call>".to_owned(), 4)));
        assert_eq!(
            tag(&format!("<tool>{call}</tool> and <x>{call}"), ("<tool>", "</tool>")).map(|(tag, _)| tag),
            Some("<x>".to_owned())
        );
        for text in ["{TOOL_TAG_START}", "[[T]]\n", "<b>Calls</b>\n", "a > "] {
            assert_eq!(tag(&format!("{text}{call}"), own), None, "{text}");
        }
        assert_eq!(tag(&format!("<tool>{call}</tool>"), ("<tool>", "</tool>")), None);
    }
}
