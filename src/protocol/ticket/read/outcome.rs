//! What a whole ticket reply comes to: its decision with everything that was repaired, or the violation.

use super::decision::{self, Decision};
use super::{ENDS, OpenSection, Sections, TicketDecoder};
use crate::protocol::around::{self, Around, strip_marks};
use crate::protocol::find_payload::FoundPayload;
use crate::protocol::following_text;
use crate::protocol::reasoning::gaps;
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::retraction::{Beside, retracts};
use crate::protocol::surrounding_text::{certain, leading, trailing};
use crate::protocol::{Code, FinishReason, Move, Violation, violations};
use crate::reply::{BoxedViolation, RepairCode, Span};

const FORM: &str = decision::OUTPUT;

impl Sections {
    /// The decision, unless the thoughts before it say that it isn't to be carried out.
    pub(super) fn meant(
        &self,
        raw: &str,
        decision: Result<Decision, BoxedViolation>,
    ) -> Result<Decision, BoxedViolation> {
        let decision = decision?;
        let Some(span) = self.thoughts.last().filter(|_| !matches!(decision.outcome, Move::Finish { .. })) else {
            return Ok(decision);
        };
        if !retracts(&strip_marks(span.of(raw)), Beside::Inside) {
            return Ok(decision);
        }
        let message = "expected an output that is meant: got one whose thoughts take it back";
        let hint = "an output takes effect at once: write it when it is meant, or write another one";
        Err(Box::new(Violation::new(Code::QuotedMove, message).at(*span).hint(hint)))
    }
}

impl TicketDecoder {
    pub(super) fn outcome(
        &mut self,
        raw: &str,
        reason: FinishReason,
        notes: &mut RepairNotes,
        discarded: &mut Vec<Span>,
        around: &mut Vec<Span>,
    ) -> Result<Decision, BoxedViolation> {
        if let Some(fault) = self.fault.take() {
            return Err(violations::mention_truncation(fault, reason, FORM));
        }
        if self.sections.output.is_none() && self.decision.is_none() {
            // Without an output the only object may still be the decision.
            std::mem::swap(&mut self.outside, &mut self.inside);
            let read = |found: &FoundPayload| decision::read(found, &self.options, self.returns.as_ref());
            self.decision = self.inside.first.as_ref().map(|found| self.sections.meant(raw, read(found)));
        } else if let (Some(inside), Some(outside)) = (&self.inside.first, &self.outside.first) {
            if !inside.record.same(&outside.record) {
                let (first, second) = in_order(inside.record.span, outside.record.span);
                return Err(violations::several(first, second, FORM));
            }
            notes.note(RepairCode::DuplicateObjectDropped, outside.root)?;
        }
        let Some(decision) = self.decision.take() else { return Err(self.nothing(raw, reason)) };
        let Some(found) = &self.inside.first else { return Err(self.nothing(raw, reason)) };
        if let Some(broken) = self.sections.broken {
            let message = "expected one JSON object in the output section: got one that can't be read";
            let fault = self
                .inside
                .doubt
                .take()
                .unwrap_or_else(|| Box::new(Violation::new(Code::InvalidJson, message).at(broken)));
            return Err(violations::mention_truncation(fault, reason, FORM));
        }
        let first = found.record.span;
        if let Some(second) = self.inside.second.or(self.outside.second) {
            let (first, second) = in_order(first, second);
            return Err(violations::several(first, second, FORM));
        }
        let mut decision = decision.map_err(|fault| violations::mention_truncation(fault, reason, FORM))?;
        if following_text::in_quotes(raw, found.root) {
            return Err(violations::mention_truncation(following_text::quoted(found.root), reason, FORM));
        }
        self.note(raw, found.root, notes, discarded)?;
        notes.extend(found.repairs.iter().cloned());
        notes.extend(decision.repairs.drain(..));
        violations::cut_behind((raw, found.root.end), reason, notes, &self.reasoning, FORM)?;
        certain(raw, notes)?;
        self.alone_in_tags(raw, found.root)?;
        let place = Span::new(
            self.sections.output.map_or(found.root.start, |tag| tag.start.min(found.root.start)),
            self.sections.end_output.map_or(found.root.end, |tag| tag.end.max(found.root.end)),
        );
        let mut holes = self.behind(raw, found.root);
        holes.extend(self.reasoning.spans());
        holes.extend(&self.sections.thoughts);
        holes.sort_by_key(|hole| hole.start);
        let parts = std::iter::once(found.root).chain(self.sections.thoughts.first().copied()).collect();
        let text =
            Around::new(raw, place, self.before(found.root), gaps(found.root.end, raw.len(), &holes)).with_parts(parts);
        text.check(decision::PAYLOAD.keys, &decision.outcome, notes, ENDS.first())?;
        *around = text.into_pieces();
        Ok(decision)
    }

    /// Refuses an object whose tags hold words that may be a part of it, and one in a tag that says more than its name.
    fn alone_in_tags(&self, raw: &str, root: Span) -> Result<(), BoxedViolation> {
        let Some(tag) = self.sections.output else {
            let before = raw.get(..root.start).unwrap_or("");
            let start = "<output".len();
            let odd = |(at, _): (usize, &str)| {
                let tag = before.get(at..at + start)?;
                let rest = before.get(at + start..)?;
                let more =
                    tag.eq_ignore_ascii_case("<output") && rest.starts_with(|c: char| c.is_whitespace() || c == '/');
                more.then(|| Span::new(at, at + start))
            };
            let Some(place) = before.match_indices('<').find_map(odd) else { return Ok(()) };
            let message = "expected <output> before the object: got a tag that says more";
            return Err(Box::new(
                Violation::new(Code::WrongTag, message).at(place).hint("write <output> alone, and nothing else in it"),
            ));
        };
        let end = self.sections.end_output.map_or(root.end, |tag| tag.start.max(root.end));
        let is_blank = |from: usize, until: usize| raw.get(from..until).is_none_or(|text| text.trim().is_empty());
        if is_blank(tag.end.min(root.start), root.start) && is_blank(root.end, end) {
            return Ok(());
        }
        let text = |from: usize, until: usize, holes: &[Span]| {
            let pieces = gaps(from, until, holes);
            pieces.iter().map(|piece| piece.of(raw)).collect::<Vec<_>>().join(" ")
        };
        let mut holes = self.reasoning.spans();
        holes.extend(&self.sections.thoughts);
        holes.sort_by_key(|hole| hole.start);
        let before = text(tag.end.min(root.start), root.start, &holes);
        let behind = text(root.end, end, &self.behind(raw, root));
        if around::has_words(&before, &behind) {
            return Err(following_text::quoted(root));
        }
        Ok(())
    }

    /// The pieces of text before the object.
    pub(super) fn before(&self, root: Span) -> Vec<Span> {
        let sections = &self.sections;
        let mut holes: Vec<Span> = self.reasoning.spans();
        holes.extend(&sections.thoughts);
        holes.extend(sections.output);
        holes.extend(self.outside.first.as_ref().filter(|_| sections.output.is_some()).map(|found| found.root));
        holes.sort_by_key(|hole| hole.start);
        gaps(0, root.start, &holes)
    }

    /// What stands after the object and is no text: copies, and tags.
    fn behind(&self, raw: &str, root: Span) -> Vec<Span> {
        let mut holes: Vec<Span> = self.inside.copies.iter().chain(&self.outside.copies).copied().collect();
        holes.extend(self.sections.end_output);
        holes.extend(self.outside.first.as_ref().map(|found| found.root));
        if !self.inside.copies.is_empty() {
            // The tags around a copy go with it.
            holes.extend(self.later_tags(raw, root.end));
        }
        holes.sort_by_key(|hole| hole.start);
        holes
    }

    /// Notes everything around the object.
    fn note(
        &self,
        raw: &str,
        root: Span,
        notes: &mut RepairNotes,
        discarded: &mut Vec<Span>,
    ) -> Result<(), BoxedViolation> {
        let sections = &self.sections;
        for (block, implicit) in self.reasoning.blocks.iter().filter(|(block, _)| block.end <= root.start) {
            let code = if *implicit { RepairCode::ImplicitThink } else { RepairCode::ReasoningStripped };
            notes.note(code, *block)?;
        }
        for tag in &sections.odd {
            notes.note(RepairCode::TagForm, *tag)?;
        }
        if let Some(thoughts) = sections.unclosed {
            notes.note(RepairCode::UnclosedThoughts, thoughts)?;
        }
        if let Some(tag) = sections.unopened {
            notes.note(RepairCode::MissingOpenTag, tag)?;
        }
        if sections.thoughts.is_empty() {
            notes.note(RepairCode::MissingThoughts, Span::at(0))?;
        }
        match (sections.output, sections.end_output) {
            (Some(_), Some(_)) => {}
            (Some(_), None) => notes.note(RepairCode::MissingCloseTag, Span::at(root.end))?,
            (None, Some(_)) => notes.note(RepairCode::MissingOpenTag, Span::at(root.start))?,
            (None, None) => notes.note(RepairCode::MissingOutputTags, root)?,
        }

        let fenced = leading(raw, &self.before(root), notes)?;
        for copy in self.inside.copies.iter().chain(&self.outside.copies) {
            notes.note(RepairCode::DuplicateObjectDropped, *copy)?;
        }
        let holes = self.behind(raw, root);
        discarded.extend(trailing(raw, &gaps(root.end, raw.len(), &holes), fenced, notes)?);
        Ok(())
    }

    /// The output tags after `from`.
    fn later_tags(&self, raw: &str, from: usize) -> Vec<Span> {
        let mut tags = Vec::new();
        let after = raw.get(from..).unwrap_or("").to_ascii_lowercase();
        for tag in ["<output>", "</output>"] {
            for (at, found) in after.match_indices(tag) {
                let span = Span::new(from + at, from + at + found.len());
                if Some(span) != self.sections.end_output {
                    tags.push(span);
                }
            }
        }
        tags
    }

    /// What is wrong with a reply without a decision.
    fn nothing(&mut self, raw: &str, reason: FinishReason) -> BoxedViolation {
        if let Some(start) = self.envelope.reasoning_start() {
            return violations::unclosed_think(start, raw.len(), reason, FORM);
        }
        if let (OpenSection::Thoughts { .. }, Some(open)) = (self.section, self.sections.open_thoughts) {
            let message = "expected </thoughts> and then the output: the text ended";
            let fault =
                Violation::new(Code::Truncated, message).at(open).hint("close the thoughts, then write the output");
            return violations::mention_truncation(Box::new(fault), reason, FORM);
        }
        if let Some(fault) =
            self.inside.doubt.take().or(self.outside.doubt.take_if(|fault| fault.code == Code::Truncated))
        {
            return violations::mention_truncation(fault, reason, FORM);
        }
        if raw.trim().is_empty() && reason != FinishReason::Length {
            return violations::blank(FORM);
        }
        if let Some(record) = &self.inside.other {
            return decision::misfit(record);
        }
        if reason == FinishReason::Length {
            return violations::truncated_before_move(raw.len(), FORM);
        }
        if let Some(place) = self.reasoning.alone(raw) {
            return violations::only_reasoning(Code::NoOutput, place, FORM);
        }
        let Some(output) = self.sections.output else {
            let message = "expected an <output> section with one JSON object: got none";
            return Box::new(Violation::new(Code::NoOutput, message).expected(FORM));
        };
        let Some(end) = self.sections.end_output else {
            let message = "expected a JSON object after <output>: the text ended";
            return Box::new(Violation::new(Code::Truncated, message).at(output).expected(FORM));
        };
        let span = Span::new(output.start, end.end);
        if raw.get(output.end..end.start).is_some_and(|inside| inside.trim().is_empty()) {
            let message = "expected a JSON object in the output section: got an empty one";
            return Box::new(Violation::new(Code::NoOutput, message).at(span).expected(FORM));
        }
        let message = "expected one JSON object in the output section: got only text";
        let text = raw.get(output.end..end.start).unwrap_or("").trim();
        let hint = "if it is the answer, return it; else write the move";
        Box::new(Violation::new(Code::NoAction, message).at(span).expected(decision::returning(text)).hint(hint))
    }
}

fn in_order(a: Span, b: Span) -> (Span, Span) {
    if a.start <= b.start { (a, b) } else { (b, a) }
}
