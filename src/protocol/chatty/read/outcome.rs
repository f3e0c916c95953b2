//! What a whole chatty reply comes to: its calls or its answer with everything that was repaired, or the violation.

use super::after_start_tag::{AfterStartTag, Next};
use super::block::{Block, Step};
use super::call::{self, Calls};
use super::narrated_fence::{self, Beginning};
use super::{ChattyDecoder, EndedBlock, untagged, wrong_tags};
use crate::protocol::around::Around;
use crate::protocol::following_text;
use crate::protocol::reasoning::gaps;
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::surrounding_text::{self, trailing};
use crate::protocol::text_spans::clipped;
use crate::protocol::{FinishReason, Move, violations};
use crate::reply::tag::Match;
use crate::reply::{BoxedViolation, Code, RepairCode, RepairPolicy, Span, Value, Violation};
use std::sync::Arc;

impl ChattyDecoder {
    /// What the whole reply comes to.
    pub(super) fn outcome(
        &mut self,
        raw: &str,
        reason: FinishReason,
        notes: &mut RepairNotes,
        discarded: &mut Vec<Span>,
        around: &mut Vec<Span>,
    ) -> Result<Move, BoxedViolation> {
        let form = wrong_tags::form(self.tags.pair());
        if let Some(fault) = self.fault.take() {
            return Err(violations::mention_truncation(fault, reason, &form));
        }
        let mark = super::byte_order_mark(raw);
        if mark > 0 {
            notes.note(RepairCode::BomStripped, Span::new(0, mark))?;
        }
        if self.blocks.ended.is_empty() {
            if let Some(start) = self.unclosed_reasoning(raw) {
                return Err(violations::unclosed_think(start, raw.len(), reason, &form));
            }
            if reason == FinishReason::Length {
                return Err(violations::truncated_answer(raw, &form));
            }
            self.set_template_reasoning_aside(raw, raw.len());
            self.note_reasoning(raw.len(), notes)?;
            if let Some((block, fence)) = self.fenced_block(raw)? {
                notes.note(RepairCode::FenceAroundBlock, Span::new(fence, raw.len()))?;
                return self.fenced_calls(raw, (block, fence), notes, discarded, around);
            }
            let answer = self.answer(raw, notes, &form)?;
            // A control token is the end that the model wrote.
            let is_marked = notes.first(RepairCode::SpecialTokenStripped).is_some()
                || matches!(&answer, Move::Finish { value, .. } if value.as_str().is_some_and(violations::ends_with_mark));
            if reason == FinishReason::Unknown && !is_marked {
                return Err(violations::unmarked_end(raw, &form));
            }
            return Ok(answer);
        }
        if reason != FinishReason::Stop && self.blocks.ended.last().is_some_and(|block| block.open_list) {
            let message = format!("expected {} after the calls: the text ended", self.tags.end.literal());
            let fault = Violation::new(Code::Truncated, message).at(Span::at(raw.len()));
            return Err(violations::mention_truncation(Box::new(fault), reason, &form));
        }
        let first = self.blocks.ended.first().map_or(Span::at(0), |block| block.span);
        if let Some(second) = self.blocks.apart {
            return Err(violations::several(first, second, call::CALL));
        }
        if following_text::in_quotes(raw, Span::new(first.start, self.blocks.joined_end)) {
            return Err(violations::mention_truncation(following_text::quoted(first), reason, &form));
        }
        let outcome = self.calls_between_text(raw, first, notes, discarded, around)?;
        violations::cut_behind((raw, self.blocks.joined_end), reason, notes, &self.reasoning, &form)?;
        Ok(outcome)
    }

    /// The calls of a block in a fence, with narration before it.
    fn fenced_calls(
        &mut self,
        raw: &str,
        (block, fence): (EndedBlock, usize),
        notes: &mut RepairNotes,
        discarded: &mut Vec<Span>,
        around: &mut Vec<Span>,
    ) -> Result<Move, BoxedViolation> {
        let place = block.span;
        self.blocks.ended.push(block);
        self.blocks.begun = true;
        if fence > self.body(raw) {
            self.tell(raw, fence, &mut Vec::new());
        }
        self.narration.sent = raw.len();
        let before = gaps(0, fence, &self.reasoning.spans());
        let text = Around::new(raw, place, before, Vec::new()).showing(Vec::new());
        let outcome = self.calls(raw, notes, discarded, None)?;
        text.check(call::KEYS, &outcome, notes, Some(&self.tags.end))?;
        *around = text.into_pieces();
        Ok(outcome)
    }

    /// The calls of the blocks from `first` on, if the text around them belongs to none of them.
    fn calls_between_text(
        &mut self,
        raw: &str,
        first: Span,
        notes: &mut RepairNotes,
        discarded: &mut Vec<Span>,
        around: &mut Vec<Span>,
    ) -> Result<Move, BoxedViolation> {
        self.set_template_reasoning_aside(raw, first.start);
        self.note_reasoning(first.start, notes)?;
        let place = Span::new(first.start, self.blocks.joined_end);
        let before = gaps(0, first.start, &self.reasoning.spans());
        let mut holes: Vec<Span> = self.blocks.ended.iter().skip(1).map(|block| block.span).collect();
        holes.extend(self.reasoning.spans());
        holes.sort_by_key(|hole| hole.start);
        let mut after: Vec<Span> = self.blocks.ended.iter().flat_map(|block| block.junk.clone()).collect();
        after.extend(gaps(place.end, raw.len(), &holes));
        let code = self.envelope.code(raw.len());
        let outcome = self.calls(raw, notes, discarded, Some(first))?;
        // A fence before the block shows something to the user, except one with calls; code in a line is a part of its
        // sentence.
        let fence = |code: &Span| {
            let words = code.of(raw).trim_start().strip_prefix("```");
            code.end <= place.start && words.is_some_and(|words| !words.starts_with("tool_c"))
        };
        let shown = code.into_iter().filter(fence).collect();
        let text = Around::new(raw, place, before, after).showing(shown);
        text.check(call::KEYS, &outcome, notes, Some(&self.tags.end))?;
        *around = text.into_pieces();
        Ok(outcome)
    }

    fn note_reasoning(&self, until: usize, notes: &mut RepairNotes) -> Result<(), BoxedViolation> {
        for (block, implicit) in self.reasoning.blocks.iter().filter(|(block, _)| block.end <= until) {
            let code = if *implicit { RepairCode::ImplicitThink } else { RepairCode::ReasoningStripped };
            notes.note(code, *block)?;
        }
        Ok(())
    }

    /// The calls, with what stands after their blocks.
    fn calls(
        &mut self,
        raw: &str,
        notes: &mut RepairNotes,
        discarded: &mut Vec<Span>,
        first: Option<Span>,
    ) -> Result<Move, BoxedViolation> {
        let spans: Vec<Span> = self.blocks.ended.iter().map(|block| block.span).collect();
        for block in self.blocks.ended.drain(..) {
            notes.extend(block.notes.into_sorted());
        }
        if let Some(first) = first {
            let after = gaps(first.end, raw.len(), spans.get(1..).unwrap_or_default());
            discarded.extend(trailing(raw, &after, false, notes)?);
            let end = spans.last().map_or(first.end, |last| last.end);
            let code = self.envelope.code(raw.len());
            if let Some(second) = untagged::another_call(raw, end, &code, self.tags.pair(), &self.options) {
                return Err(violations::several(first, second, call::CALL));
            }
        }
        // A bracket too few in one block and one too many in another: one list is cut in two.
        if let (Some(closed), Some(second)) = (notes.first(RepairCode::ClosedBrackets), spans.get(1))
            && notes.first(RepairCode::ExtraClosers).is_some()
        {
            return Err(violations::several(closed, *second, call::CALL));
        }
        surrounding_text::certain(raw, notes)?;
        Ok(Move::Call { calls: std::mem::take(&mut self.blocks.calls).into_all() })
    }

    /// A reasoning block that never ends, unless it is a tag that an answer speaks of.
    fn unclosed_reasoning(&mut self, raw: &str) -> Option<usize> {
        let start = self.envelope.reasoning_start()?;
        let inside = raw.get(start..).unwrap_or("");
        let leading = self.leading(raw, start) && !self.envelope.reasoning_is_words();
        (leading || inside.contains(self.tags.start.literal())).then_some(start)
    }

    /// The block of a reply that is one fence around it, and where the fence begins: with the reply, or behind one line
    /// of narration in quotes.
    fn fenced_block(&mut self, raw: &str) -> Result<Option<(EndedBlock, usize)>, BoxedViolation> {
        let body = self.body(raw);
        let rest = raw.get(body..).unwrap_or("").trim_start();
        let trimmed = match narrated_fence::beginning(rest) {
            Beginning::Fence(at) => rest.get(at..).unwrap_or(""),
            _ => rest,
        };
        let inside = trimmed.trim_start_matches(['`', '~']);
        let Some(fence) = trimmed.get(..trimmed.len() - inside.len()).filter(|fence| fence.len() >= 3) else {
            return Ok(None);
        };
        let content = inside.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').trim_start();
        let at = raw.len() - content.len();
        let Match::Yes { length, exact } = self.tags.start.at(content, true) else { return Ok(None) };
        let tail = raw.trim_end();
        let until = tail.strip_suffix(fence).map_or(tail.len(), str::len).max(at + length);
        let tag = Span::new(at, at + length);
        let text = raw.get(..until).unwrap_or(raw);
        if AfterStartTag::new(tag.end).read(text, &self.tags.end, true) != Next::Block {
            return Ok(None);
        }
        // The fence is a repair itself: strictness refuses it wherever the block is one.
        let mut options = self.options;
        if options.repairs == RepairPolicy::Strict {
            options.repairs = RepairPolicy::Default;
        }
        let mut block = Block::new(options, self.tags.pair(), tag, 0);
        if !exact {
            block.notes.note(RepairCode::TagForm, tag)?;
        }
        let mut calls = Calls::default();
        let step = block.run(text, true, &mut calls, &mut Vec::new());
        let end = match step {
            Step::Failed => {
                let close = self.tags.end.literal();
                text.rfind(close).filter(|close| *close >= tag.end).map_or(text.len(), |at| at + close.len())
            }
            _ => block.end,
        };
        if !text.get(end..).unwrap_or("").trim().is_empty() {
            // Text in the fence, or after it: then it only shows a block.
            return Ok(None);
        }
        if let Some(fault) = block.fault.take() {
            return Err(fault);
        }
        self.blocks.calls = calls;
        let span = Span::new(tag.start, block.end);
        let ended = EndedBlock { span, junk: Vec::new(), open_list: block.open_list(), notes: block.notes };
        Ok(Some((ended, raw.len() - trimmed.len())))
    }

    /// A direct answer, if nothing speaks against it.
    fn answer(&mut self, raw: &str, notes: &mut RepairNotes, form: &str) -> Result<Move, BoxedViolation> {
        let body = self.body(raw);
        let code = self.envelope.code(raw.len());
        let own = self.tags.pair();
        if let Some(fault) = wrong_tags::foreign_tag(raw, body, &code, own) {
            return Err(fault);
        }
        if let Some(orphan) = self.orphan {
            let message = format!("expected {} before this end tag: got none", self.tags.start.literal());
            return Err(Box::new(Violation::new(Code::OrphanCloseTag, message).at(orphan).expected(form)));
        }
        if let Some(place) = untagged::untagged(raw, body, &code, &self.options) {
            return Err(untagged::without_tags(place, own));
        }
        if let Some(fault) = untagged::in_last_fence(raw, &code, own, &self.options) {
            return Err(fault);
        }
        if let Some(fault) = wrong_tags::truncated_tag(raw, &code, own) {
            return Err(fault);
        }
        let told = self.narration.text.len();
        self.tell(raw, raw.len(), &mut Vec::new());
        let mut said = std::mem::take(&mut self.narration.text);
        let spans = said.take_spans();
        let text = said.into_text().unwrap_or_default();
        let (kept, token) = surrounding_text::answer(&text);
        // Published text is not taken back.
        let (kept, token) = if kept.end < told { (Span::new(kept.start, text.len()), None) } else { (kept, token) };
        if let Some(token) = token {
            let start = last_of(raw, &gaps(0, raw.len(), &self.reasoning.spans()), text.len() - token.start);
            notes.note(RepairCode::SpecialTokenStripped, Span::new(start, raw.len()))?;
        }
        self.answer = clipped(&spans, kept);
        let text = kept.of(&text);
        if text.is_empty() {
            return Err(match self.reasoning.alone(raw) {
                Some(place) => violations::only_reasoning(Code::Empty, place, form),
                None => violations::blank(form),
            });
        }
        Ok(Move::Finish { value: Arc::new(Value::from(text)), success: None, coerced: Vec::new() })
    }
}

/// Where the last `length` bytes of the text in `pieces` begin, without the blanks at its end.
fn last_of(raw: &str, pieces: &[Span], length: usize) -> usize {
    let (mut left, mut start) = (length, raw.len());
    for piece in pieces.iter().rev() {
        let text = piece.of(raw);
        let text = if left == length { text.trim_end() } else { text };
        start = piece.start + text.len().saturating_sub(left);
        left = left.saturating_sub(text.len());
        if left == 0 {
            break;
        }
    }
    start
}
