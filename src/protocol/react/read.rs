//! Reads react replies: one JSON object, with whatever stands around it.

mod object;

use crate::protocol::after::{self, Following, Follows};
use crate::protocol::around::{certain, leading, trailing};
use crate::protocol::notes::{Fault, Notes};
use crate::protocol::reasoning::{Reasoning, gaps};
use crate::protocol::refusal;
use crate::protocol::seek::Seeker;
use crate::protocol::watch::Watch;
use crate::protocol::{Decoder, Delta, FinishReason, ReadOptions, Reply, Status};
use crate::reply::buffer::Buffer;
use crate::reply::envelope::{Envelope, Look, Mark};
use crate::reply::{Code, RepairCode, RepairPolicy, Span, Violation};
use object::{Object, Teller};
pub(super) use object::{call_form, corrected, written_call};

/// Keys that show an object to be a move.
pub(super) const MOVE_KEYS: &[&str] = &["action", "args", "final_answer", "task_successful"];

/// What counts around the object.
const LOOK: Look = Look { brackets: true, reasoning: true, code: false };

/// A decoder of one react reply.
pub fn decoder(options: ReadOptions, reasoning: &[(String, String)]) -> Box<dyn Decoder> {
    let mut seeker = Seeker::new(&object::SOUGHT, &options, Vec::new());
    seeker.misfit = Some(if options.repairs == RepairPolicy::Strict {
        |record| object::misfit(record, RepairPolicy::Strict)
    } else {
        |record| object::misfit(record, RepairPolicy::Default)
    });
    Box::new(ReactDecoder {
        options,
        buffer: Buffer::default(),
        envelope: Envelope::new(Vec::new(), &[], options.think_prefilled).reasoning(reasoning),
        seeker,
        watch: Watch::new(&options),
        teller: Teller::default(),
        reasoning: Reasoning::default(),
        following: Following::fenced(),
        object: None,
        fault: None,
    })
}

struct ReactDecoder {
    options: ReadOptions,
    buffer: Buffer,
    envelope: Envelope,
    seeker: Seeker,
    watch: Watch,
    teller: Teller,
    reasoning: Reasoning,
    following: Following,
    /// The first object, read.
    object: Option<Result<Object, Fault>>,
    /// What ended the reading.
    fault: Option<Fault>,
}

impl Decoder for ReactDecoder {
    fn push(&mut self, chunk: &[u8], deltas: &mut Vec<Delta>) -> Status {
        self.buffer.push(chunk);
        self.advance(false, deltas);
        match (&self.fault, &self.object, &self.seeker.first) {
            (Some(_), ..) | (None, Some(Err(_)), _) => Status::Doomed,
            (None, Some(Ok(_)), Some(found)) => {
                let text = refusal::bound(self.buffer.text(), &self.options);
                match self.following.look(text, found.root, found.proven, &self.seeker.copies) {
                    Follows::Open if self.following.is_stuck() && self.seeker.second.is_some() => Status::Doomed,
                    Follows::Open | Follows::Apart => Status::Complete(found.proven),
                    Follows::Refused => Status::Doomed,
                }
            }
            _ => Status::Open,
        }
    }

    fn settled(&self) -> Option<usize> {
        let found =
            self.seeker.first.as_ref().filter(|_| self.fault.is_none() && matches!(self.object, Some(Ok(_))))?;
        (self.following.found() == Some(Follows::Apart)).then_some(found.proven)
    }

    fn finish(mut self: Box<Self>, reason: FinishReason) -> Reply {
        self.buffer.close();
        self.advance(true, &mut Vec::new());
        let raw = std::mem::take(&mut self.buffer).into_text();
        let mut notes = Notes::new(self.options.repairs);
        let mut discarded = Vec::new();
        let read = self.judge(&raw, reason, &mut notes, &mut discarded);
        let reasoning = self.reasoning.text.into_text();
        let (outcome, thoughts, repairs) = match read {
            Ok(object) => (Ok(object.outcome), object.thought, notes.into_sorted()),
            Err(fault) => (Err(*fault), None, Vec::new()),
        };
        Reply { raw, thoughts, reasoning, narration: None, outcome, repairs, discarded }
    }
}

impl ReactDecoder {
    fn advance(&mut self, end: bool, deltas: &mut Vec<Delta>) {
        if self.fault.is_some() {
            return;
        }
        let buffer = std::mem::take(&mut self.buffer);
        let bound = refusal::bound(buffer.text(), &self.options);
        self.scan(bound, end && bound.len() == buffer.text().len(), deltas);
        if bound.len() < buffer.text().len() && self.fault.is_none() {
            self.fault = Some(refusal::too_large(&self.options));
        }
        self.buffer = buffer;
    }

    /// The smallest correct call.
    fn form(&self) -> &'static str {
        object::call_form(self.options.repairs)
    }

    fn scan(&mut self, text: &str, end: bool, deltas: &mut Vec<Delta>) {
        loop {
            if self.seeker.machine().is_some() {
                let resumed = self.seeker.run(text, end);
                if self.seeker.first.is_none()
                    && let Some(machine) = self.seeker.machine()
                    && machine.meant()
                {
                    let teller = &mut self.teller;
                    self.watch.poll(text, machine, 0, &mut |key, piece| teller.tell(key, &piece, deltas));
                }
                let Some(position) = resumed else { return };
                if self.object.is_none()
                    && let Some(found) = &self.seeker.first
                {
                    let teller = &mut self.teller;
                    self.watch.record(text, &found.record, &mut |key, piece| teller.tell(key, &piece, deltas));
                    let object = match self.seeker.second {
                        // Both stand in one array, which can't be cut between them.
                        Some(second) => Err(refusal::several(found.record.span, second, self.form())),
                        None => object::read(found, text, &self.options),
                    };
                    self.teller.close(&object, deltas);
                    self.object = Some(object);
                }
                if let Some(fault) = self.seeker.fault.take() {
                    self.fault = Some(fault);
                    return;
                }
                self.envelope.resume(position);
            }
            let mark = self.envelope.next(text, end, LOOK);
            if self.seeker.first.is_none() {
                deltas.extend(self.reasoning.look(text, &self.envelope, mark).map(Delta::Reasoning));
            }
            match mark {
                Some(Mark::Bracket(at)) => self.seeker.open(text, at),
                Some(Mark::Reasoning { whole, .. }) => self.seeker.begin_at(whole.end),
                Some(Mark::Tag { .. }) => {}
                None => return,
            }
        }
    }

    /// What the whole reply comes to.
    fn judge(
        &mut self,
        raw: &str,
        reason: FinishReason,
        notes: &mut Notes,
        discarded: &mut Vec<Span>,
    ) -> Result<Object, Fault> {
        if let Some(fault) = self.fault.take() {
            return Err(refusal::cut(fault, reason, self.form()));
        }
        let (Some(found), Some(object)) = (&self.seeker.first, self.object.take()) else {
            return Err(self.nothing(raw, reason));
        };
        if let Some(second) = self.seeker.second {
            return Err(refusal::several(found.record.span, second, self.form()));
        }
        let object = object.map_err(|fault| refusal::cut(fault, reason, self.form()))?;
        if after::in_quotes(raw, found.root) {
            return Err(refusal::cut(after::quoted(found.root), reason, self.form()));
        }

        for (block, implicit) in &self.reasoning.blocks {
            let code = if *implicit { RepairCode::ImplicitThink } else { RepairCode::ReasoningStripped };
            notes.note(code, *block)?;
        }
        let before = gaps(0, found.root.start, &self.reasoning.spans());
        let fenced = leading(raw, &before, notes)?;
        notes.extend(found.repairs.iter().cloned());
        notes.extend(object.repairs.iter().cloned());
        for copy in &self.seeker.copies {
            notes.note(RepairCode::DuplicateObjectDropped, *copy)?;
        }
        let after = gaps(found.root.end, raw.len(), &self.seeker.copies);
        discarded.extend(trailing(raw, &after, fenced, notes)?);
        certain(raw, notes)?;
        Ok(object)
    }

    /// What is wrong with a reply without an object.
    fn nothing(&mut self, raw: &str, reason: FinishReason) -> Fault {
        if let Some(start) = self.envelope.reasoning_start() {
            return refusal::unclosed_think(start, raw.len(), reason, self.form());
        }
        if let Some(fault) = self.seeker.doubt.take() {
            return refusal::cut(fault, reason, self.form());
        }
        if raw.trim().is_empty() && reason == FinishReason::Stop {
            return refusal::blank(self.form());
        }
        if reason == FinishReason::Length {
            return refusal::cut_before_move(raw.len(), self.form());
        }
        if let Some(place) = self.reasoning.alone(raw) {
            return refusal::only_reasoning(Code::NoAction, place, self.form());
        }
        match &self.seeker.other {
            Some(record) => object::misfit(record, self.options.repairs),
            None => Box::new(
                Violation::new(Code::NoAction, "expected one JSON object with 'action': got none")
                    .expected(self.form())
                    .hint("reply with the object alone, without text around it"),
            ),
        }
    }
}
