//! Reasoning that the chat template has opened: the reply begins inside it, and only its end is in the text.

use super::wrong_tags::Places;
use super::{ChattyDecoder, Narration, Opening, byte_order_mark};
use crate::protocol::reasoning::{Growing, gaps};
use crate::reply::Span;
use crate::reply::envelope::reasoning_ends;
use crate::reply::tag::{Match, Tag};
use std::sync::LazyLock;

impl ChattyDecoder {
    /// Sets such reasoning aside where its end stands before `until`. What a stream has shown of it is not taken back,
    /// but it is no part of the narration or the answer.
    pub(super) fn set_template_reasoning_aside(&mut self, raw: &str, until: usize) {
        let code = self.envelope.code(raw.len());
        let Some(end) = last_end(raw.get(..until).unwrap_or(raw), &self.reasoning.spans(), &code) else { return };
        let mark = byte_order_mark(raw);
        let before = raw.get(mark..end.start).unwrap_or("");
        let content = Span::new(mark + before.len() - before.trim_start().len(), end.start);
        let later = self.reasoning.blocks.iter().filter(|(block, _)| block.start >= end.end).copied();
        let later: Vec<(Span, bool)> = later.collect();
        let mut text = Growing::default();
        // Nobody is told: a delta of these thoughts would repeat what was published as text.
        let _ = text.push(raw, content);
        for (block, _) in &later {
            text.part();
            let _ = text.push(raw, *block);
        }
        self.reasoning.text = text;
        self.reasoning.blocks = vec![(Span::new(content.start, end.end), true)];
        self.reasoning.blocks.extend(later);
        self.narration = Narration { text: Growing::default(), sent: end.end };
        self.opening = Opening::default();
        if until < raw.len() {
            self.tell(raw, until, &mut Vec::new());
        }
    }
}

/// The ends of reasoning, and how that begins, in lower case.
static ENDS: LazyLock<Vec<(String, &'static Tag)>> = LazyLock::new(|| {
    let opening = |start: &Tag| start.literal().trim_end_matches('>').to_ascii_lowercase();
    reasoning_ends().map(|(start, end)| (opening(start), end)).collect()
});

/// The last end of reasoning that nothing has opened, outside of reasoning and Markdown code.
fn last_end(text: &str, reasoning: &[Span], code: &[Span]) -> Option<Span> {
    let mut places = Places::new(code);
    let mut last = None;
    for piece in gaps(0, text.len(), reasoning) {
        // What an end may have been opened by stands after the one before it.
        let mut from = piece.start;
        for (offset, _) in piece.of(text).match_indices(['<', '[', '◁', 'a']) {
            let at = piece.start + offset;
            let rest = text.get(at..piece.end).unwrap_or("");
            let ended = ENDS.iter().find_map(|(start, end)| match end.at(rest, true) {
                Match::Yes { length, .. } => Some((start, length)),
                _ => None,
            });
            let Some((start, length)) = ended else { continue };
            let before = text.get(from..at).unwrap_or("");
            from = at + length;
            let opened = before.to_ascii_lowercase().contains(start.as_str());
            if !opened && !places.holds(at) && !is_mention(before, rest.get(length..).unwrap_or("")) {
                last = Some(Span::new(at, from));
            }
        }
    }
    last
}

/// Whether a mark is only spoken of: it stands in the middle of a sentence, or in quotes.
fn is_mention(before: &str, after: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or("");
    if line.ends_with(['`', '"', '\'', '(', '“', '‘', '«']) {
        return true;
    }
    let apart = line.trim_end_matches([' ', '\t']);
    let in_sentence = apart.len() < line.len() && apart.ends_with(|c: char| c.is_alphanumeric() || c == ',');
    let next = after.trim_start_matches([' ', '\t']);
    let goes_on = if next.len() < after.len() {
        next.starts_with(char::is_lowercase)
    } else {
        next.starts_with(['.', ',', ';', ':', '?', '!', ')'])
    };
    in_sentence && goes_on
}

#[cfg(test)]
mod tests {
    use super::last_end;

    #[test]
    fn an_end_that_nothing_has_opened_ends_the_reasoning() {
        for text in
            ["</think>", "so 4.\n</think>\n\nHi", "a b</think>It is 4", "x\n[BEGIN FINAL RESPONSE]\nHi", "n[/THINK]y"]
        {
            assert!(last_end(text, &[], &[]).is_some(), "{text}");
        }
        for text in
            ["Use </think> to close it.", "Write </think>.", "'</think>' is a tag", "<think>a</think>", "</thought>"]
        {
            assert!(last_end(text, &[], &[]).is_none(), "{text}");
        }
    }
}
