//! Reads react replies: one JSON object, with whatever stands around it.

mod object;

use crate::protocol::around::{self, Around};
use crate::protocol::field_stream::FieldStream;
use crate::protocol::find_payload::PayloadFinder;
use crate::protocol::following_text::{self, Copies, FollowingText, WhatFollows};
use crate::protocol::reasoning::{Reasoning, gaps};
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::surrounding_text::{certain, leading, stands_first, trailing};
use crate::protocol::violations;
use crate::protocol::{Decoder, Delta, FinishReason, Move, ReadOptions, Reply, Status, TextSpans};
use crate::reply::buffer::Buffer;
use crate::reply::envelope::{Envelope, Look, Mark};
use crate::reply::json::JsonReader;
use crate::reply::{BoxedViolation, Code, RepairCode, RepairPolicy, Span, Value, Violation};
use crate::tool::AnswerType;
pub(super) use object::{ANSWER, call_form, corrected, finish_form, written_call};
use object::{DeltaWriter, Object};
use std::sync::Arc;

/// Keys that show an object to be a move.
pub(super) const MOVE_KEYS: &[&str] = &["action", "args", "final_answer", "task_successful"];

/// What counts around the object.
const LOOK: Look = Look { brackets: true, reasoning: true, code: false };

/// A decoder of one react reply.
pub fn decoder(options: ReadOptions, reasoning: &[(String, String)], returns: Option<&AnswerType>) -> Box<dyn Decoder> {
    Box::new(ReactDecoder::new(options, reasoning.to_vec(), returns.cloned()))
}

/// Looks for the object of a reply.
fn finder(options: &ReadOptions) -> PayloadFinder {
    let mut finder = PayloadFinder::new(&object::PAYLOAD, options, Arc::default());
    let strict = options.repairs == RepairPolicy::Strict;
    finder.checks.misfit = Some(if strict {
        |record| object::misfit(record, RepairPolicy::Strict)
    } else {
        |record| object::misfit(record, RepairPolicy::Default)
    });
    finder.checks.aside = (!strict).then_some(object::is_thought);
    finder
}

struct ReactDecoder {
    options: ReadOptions,
    buffer: Buffer,
    envelope: Envelope,
    finder: PayloadFinder,
    fields: FieldStream,
    writer: DeltaWriter,
    reasoning: Reasoning,
    following: FollowingText,
    /// The first object, read.
    object: Option<Result<Object, BoxedViolation>>,
    /// The marks of reasoning that the program has added.
    reasoning_tags: Vec<(String, String)>,
    /// The type of the answer.
    returns: Option<AnswerType>,
    /// What ended the reading.
    fault: Option<BoxedViolation>,
    /// Whether only blanks, reasoning and the marks of a fence stand before the object.
    first: bool,
}

impl Decoder for ReactDecoder {
    fn push(&mut self, chunk: &[u8], deltas: &mut Vec<Delta>) -> Status {
        self.buffer.push(chunk);
        self.advance(false, deltas);
        match (&self.fault, &self.object, &self.finder.first) {
            (Some(_), ..) | (None, Some(Err(_)), _) => Status::Doomed,
            (None, Some(Ok(_)), Some(found)) => {
                let text = violations::bound(self.buffer.text(), &self.options);
                let until = self.finder.reader().map_or(self.envelope.settled(), JsonReader::start);
                let copies = Copies { found: &self.finder.copies, until };
                match self.following.look(text, found.root, found.proven, copies) {
                    WhatFollows::Open if self.following.is_stuck() && self.finder.second.is_some() => Status::Doomed,
                    WhatFollows::Open | WhatFollows::Apart => Status::Complete(found.proven),
                    WhatFollows::Refused => Status::Doomed,
                }
            }
            _ => Status::Open,
        }
    }

    fn settled(&self) -> Option<usize> {
        let found = self.finder.first.as_ref().filter(|_| self.fault.is_none() && self.first)?;
        let Some(Ok(object)) = &self.object else { return None };
        let whole = !around::is_fragile(found.repairs.iter().chain(&object.repairs));
        (whole && self.following.found() == Some(WhatFollows::Apart)).then_some(found.proven)
    }

    fn finish(mut self: Box<Self>, reason: FinishReason) -> Reply {
        self.buffer.close();
        self.advance(true, &mut Vec::new());
        let raw = std::mem::take(&mut self.buffer).into_text();
        let mut notes = RepairNotes::new(self.options.repairs);
        let (mut discarded, mut around) = (Vec::new(), Vec::new());
        let read = self.outcome(&raw, reason, &mut notes, &mut discarded, &mut around);
        let mut spans = self.text_spans(read.as_ref().ok());
        let (outcome, thoughts, repairs) = match read {
            Ok(object) => (Ok(object.outcome), object.thought, notes.into_sorted()),
            Err(fault) => {
                let (thought, span) = self.thought_so_far(&raw).unzip();
                spans.thoughts.extend(span);
                (Err(*fault), thought, Vec::new())
            }
        };
        let reasoning = self.reasoning.text.into_text();
        Reply { raw, thoughts, reasoning, narration: None, spans, outcome, repairs, discarded, around }
    }
}

impl ReactDecoder {
    fn new(options: ReadOptions, reasoning_tags: Vec<(String, String)>, returns: Option<AnswerType>) -> Self {
        Self {
            options,
            buffer: Buffer::default(),
            envelope: Envelope::new(Arc::default(), &[], options.think_prefilled).reasoning(&reasoning_tags),
            finder: finder(&options),
            fields: FieldStream::new(&options),
            writer: DeltaWriter::new(returns.as_ref()),
            reasoning: Reasoning::default(),
            following: FollowingText::fenced(),
            object: None,
            reasoning_tags,
            returns,
            fault: None,
            first: false,
        }
    }

    /// The thought of a reply that is refused, as far as its object arrived: a stream may have been stopped in it.
    fn thought_so_far(&self, raw: &str) -> Option<(String, Span)> {
        let options = ReadOptions { whole: true, ..self.options };
        let mut again = Self::new(options, self.reasoning_tags.clone(), self.returns.clone());
        again.buffer.push(raw.as_bytes());
        again.advance(false, &mut Vec::new());
        let open = || again.finder.reader().and_then(JsonReader::open_record);
        let thought = again.finder.first.as_ref().map(|found| &found.record.fields).or_else(open)?.get("thought")?;
        let text = thought.value.as_str().filter(|text| !text.is_empty())?;
        Some((text.to_owned(), thought.span))
    }

    fn advance(&mut self, end: bool, deltas: &mut Vec<Delta>) {
        if self.fault.is_some() {
            return;
        }
        let buffer = std::mem::take(&mut self.buffer);
        let bound = violations::bound(buffer.text(), &self.options);
        self.scan(bound, end && bound.len() == buffer.text().len(), deltas);
        if bound.len() < buffer.text().len() && self.fault.is_none() {
            self.fault = Some(violations::too_large(&self.options));
        }
        self.buffer = buffer;
    }

    /// The places of narration, thoughts and answer.
    fn text_spans(&self, object: Option<&Object>) -> TextSpans {
        let (Some(object), Some(found)) = (object, &self.finder.first) else { return TextSpans::default() };
        let thought = found.record.fields.get("thought").filter(|field| *field.value != Value::Null);
        let apart = || self.finder.aside().and_then(|apart| apart.fields.get("thought"));
        let answer = found.record.fields.get("final_answer");
        let says = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
        TextSpans {
            narration: Vec::new(),
            thoughts: thought
                .or_else(apart)
                .filter(|_| says(&object.thought))
                .map(|field| field.span)
                .into_iter()
                .collect(),
            answer: answer
                .filter(|_| matches!(object.outcome, Move::Finish { .. }))
                .map(|field| field.span)
                .into_iter()
                .collect(),
        }
    }

    /// The smallest correct call.
    fn form(&self) -> &'static str {
        object::call_form(self.options.repairs)
    }

    fn scan(&mut self, text: &str, end: bool, deltas: &mut Vec<Delta>) {
        loop {
            if self.finder.reader().is_some() {
                let resumed = self.finder.run(text, end);
                if self.finder.first.is_none()
                    && let Some(reader) = self.finder.reader()
                    && reader.meant()
                {
                    let writer = &mut self.writer;
                    self.fields.poll(text, reader, 0, &mut |key, piece| writer.write(key, &piece, deltas));
                }
                let Some(position) = resumed else { return };
                if self.finder.first.is_none() {
                    if let Some(apart) = self.finder.aside().filter(|apart| apart.span.end == position) {
                        let writer = &mut self.writer;
                        self.fields.record(text, apart, &mut |key, piece| writer.write(key, &piece, deltas));
                    }
                    // What is published next belongs to another object.
                    self.fields = FieldStream::new(&self.options);
                }
                if self.object.is_none()
                    && let Some(found) = &self.finder.first
                {
                    let writer = &mut self.writer;
                    self.fields.record(text, &found.record, &mut |key, piece| writer.write(key, &piece, deltas));
                    let object = match self.finder.second {
                        // Both stand in one array, which can't be cut between them.
                        Some(second) => Err(violations::several(found.record.span, second, self.form())),
                        None => object::read(found, text, &self.options, self.returns.as_ref()),
                    };
                    self.writer.close(&object, deltas);
                    self.object = Some(object);
                    self.first = stands_first(text, &gaps(0, found.root.start, &self.reasoning.spans()));
                }
                if let Some(fault) = self.finder.fault.take() {
                    self.fault = Some(fault);
                    return;
                }
                self.envelope.resume(position);
            }
            let mark = self.envelope.next(text, end, LOOK);
            if self.finder.first.is_none() {
                deltas.extend(self.reasoning.look(text, &self.envelope, mark).map(Delta::Reasoning));
            }
            match mark {
                Some(Mark::Bracket(at)) => self.finder.open(text, at),
                Some(Mark::Reasoning { whole, .. }) => self.finder.begin_at(whole.end),
                Some(Mark::Tag { .. }) => {}
                None => return,
            }
        }
    }

    /// What the whole reply comes to.
    fn outcome(
        &mut self,
        raw: &str,
        reason: FinishReason,
        notes: &mut RepairNotes,
        discarded: &mut Vec<Span>,
        around: &mut Vec<Span>,
    ) -> Result<Object, BoxedViolation> {
        if let Some(fault) = self.fault.take() {
            return Err(violations::mention_truncation(fault, reason, self.form()));
        }
        let (Some(found), Some(object)) = (&self.finder.first, self.object.take()) else {
            return Err(self.nothing(raw, reason));
        };
        if let Some(second) = self.finder.second {
            return Err(violations::several(found.record.span, second, self.form()));
        }
        let mut object = object.map_err(|fault| violations::mention_truncation(fault, reason, self.form()))?;
        if following_text::in_quotes(raw, found.root) {
            return Err(violations::mention_truncation(following_text::quoted(found.root), reason, self.form()));
        }

        for (block, implicit) in &self.reasoning.blocks {
            let code = if *implicit { RepairCode::ImplicitThink } else { RepairCode::ReasoningStripped };
            notes.note(code, *block)?;
        }
        let mut before = gaps(0, found.root.start, &self.reasoning.spans());
        // A thought in an object of its own is no text around the move that has none.
        if let Some(apart) = self.finder.aside().filter(|_| object.thought.is_none()) {
            object.thought = apart.fields.get("thought").and_then(|field| field.value.as_str()).map(str::to_owned);
            before = around::outside(&before, &[apart.span]);
        }
        let fenced = leading(raw, &before, notes)?;
        notes.extend(found.repairs.iter().cloned());
        notes.extend(object.repairs.iter().cloned());
        for copy in &self.finder.copies {
            notes.note(RepairCode::DuplicateObjectDropped, *copy)?;
        }
        let after = gaps(found.root.end, raw.len(), &self.finder.copies);
        discarded.extend(trailing(raw, &after, fenced, notes)?);
        violations::cut_behind((raw, found.root.end), reason, notes, &self.reasoning, self.form())?;
        certain(raw, notes)?;
        let mut holes = self.finder.copies.clone();
        holes.extend(self.reasoning.spans());
        holes.sort_by_key(|hole| hole.start);
        let text = Around::new(raw, found.root, before, gaps(found.root.end, raw.len(), &holes));
        text.check(object::KEYS, &object.outcome, notes, None)?;
        *around = text.into_pieces();
        Ok(object)
    }

    /// What is wrong with a reply without an object.
    fn nothing(&mut self, raw: &str, reason: FinishReason) -> BoxedViolation {
        if let Some(start) = self.envelope.reasoning_start() {
            return violations::unclosed_think(start, raw.len(), reason, self.form());
        }
        if let Some(fault) = self.finder.doubt.take() {
            return violations::mention_truncation(fault, reason, self.form());
        }
        if raw.trim().is_empty() && reason != FinishReason::Length {
            return violations::blank(self.form());
        }
        if reason == FinishReason::Length {
            return violations::truncated_before_move(raw.len(), self.form());
        }
        if let Some(place) = self.reasoning.alone(raw) {
            return violations::only_reasoning(Code::NoAction, place, self.form());
        }
        match &self.finder.other {
            Some(record) => object::misfit(record, self.options.repairs),
            None => Box::new(
                Violation::new(Code::NoAction, "expected one JSON object with 'action': got none")
                    .expected(self.form())
                    .hint("reply with the object alone, without text around it"),
            ),
        }
    }
}
