//! Texts that grow while a reply arrives: reasoning, thoughts, narration. Published text is never taken back.

use crate::reply::Span;
use crate::reply::envelope::{Envelope, Mark};

/// Text without blanks at its ends, published as it grows.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    text: String,
    /// The places of the text in the reply, one or more for each part.
    spans: Vec<Span>,
    /// Blanks that count only if more text follows.
    blanks: String,
    /// The places of these blanks.
    blank_spans: Vec<Span>,
}

impl Growing {
    /// Takes the next piece of the reply and returns the text that is certain now.
    pub(crate) fn push(&mut self, reply: &str, piece: Span) -> Option<String> {
        let more = piece.of(reply);
        let more = if self.text.is_empty() { more.trim_start() } else { more };
        let start = piece.end - more.len();
        let kept = more.trim_end();
        if kept.is_empty() {
            if !self.text.is_empty() {
                self.blanks.push_str(more);
                extend(&mut self.blank_spans, Span::new(start, piece.end));
            }
            return None;
        }
        let mut told = std::mem::take(&mut self.blanks);
        told.push_str(kept);
        self.text.push_str(&told);
        self.blanks.push_str(more.get(kept.len()..).unwrap_or(""));
        let end = start + kept.len();
        for span in self.blank_spans.drain(..).chain([Span::new(start, end)]) {
            extend(&mut self.spans, span);
        }
        extend(&mut self.blank_spans, Span::new(end, piece.end));
        Some(told)
    }

    /// Begins a new paragraph.
    pub(crate) fn part(&mut self) {
        if !self.text.is_empty() {
            self.blanks.clear();
            self.blank_spans.clear();
            self.blanks.push('\n');
        }
    }

    /// How much was published.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// The whole text, if there is any.
    pub(crate) fn into_text(self) -> Option<String> {
        (!self.text.is_empty()).then_some(self.text)
    }

    /// The places of the text in the reply.
    pub(crate) fn take_spans(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }
}

/// Adds a span, and joins it with the last one if they touch.
fn extend(spans: &mut Vec<Span>, span: Span) {
    match spans.last_mut() {
        _ if span.start == span.end => {}
        Some(last) if last.end == span.start => last.end = span.end,
        _ => spans.push(span),
    }
}

/// The reasoning blocks of a reply.
#[derive(Debug, Default)]
pub(crate) struct Reasoning {
    /// Each with its tags, and whether the chat template had opened it.
    pub(crate) blocks: Vec<(Span, bool)>,
    pub(crate) text: Growing,
    /// Up to here it was published.
    told: usize,
}

impl Reasoning {
    /// Takes what the envelope has read of a reasoning block, and gives what is new.
    pub(crate) fn look(&mut self, text: &str, envelope: &Envelope, mark: Option<Mark>) -> Option<String> {
        let content = match mark {
            Some(Mark::Reasoning { whole, content, implicit }) => {
                self.blocks.push((whole, implicit));
                content
            }
            Some(_) => return None,
            None => envelope.open_reasoning()?,
        };
        let more = Span::new(self.told.max(content.start), content.end);
        self.told = content.end;
        let told = self.text.push(text, more);
        if mark.is_some() {
            self.text.part();
        }
        told
    }

    /// The blocks that begin at or after `from`.
    pub(crate) fn spans_from(&self, from: usize) -> Vec<Span> {
        let first = self.blocks.partition_point(|(span, _)| span.start < from);
        self.blocks.iter().skip(first).map(|(span, _)| *span).collect()
    }

    /// The last block of a reply that is nothing but reasoning.
    pub(crate) fn alone(&self, raw: &str) -> Option<Span> {
        let (last, _) = self.blocks.last()?;
        gaps(0, raw.len(), &self.spans()).iter().all(|gap| gap.of(raw).trim().is_empty()).then_some(*last)
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.blocks.iter().map(|(span, _)| *span).collect()
    }
}

/// What lies between `from` and `to` outside the holes, which are in order. The last piece always ends at `to`.
pub(crate) fn gaps(from: usize, to: usize, holes: &[Span]) -> Vec<Span> {
    let mut pieces = Vec::new();
    let mut at = from;
    for hole in holes.iter().filter(|hole| hole.start >= from && hole.end <= to) {
        pieces.push(Span::new(at, hole.start));
        at = hole.end;
    }
    pieces.push(Span::new(at, to));
    pieces
}
