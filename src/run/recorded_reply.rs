//! What an old log says of a reply. It is not read again: a later version may read it in another way.

use super::event::{Event, Note, REREAD, Record};
use super::machine::RunMachine;
use super::plan::Refusal;
use super::state::Phase;
use crate::protocol::{FinishReason, Move};
use std::sync::Arc;

impl RunMachine {
    /// Whether a replay takes what replies lead to from the log.
    pub(super) fn trusts_log(&self) -> bool {
        self.start.version < REREAD
    }

    /// Takes the reply that these records begin with, and what it led to.
    pub(super) fn take_recorded(&mut self, records: &[Arc<Record>], now: f64) {
        let Some((first, rest)) = records.split_first() else { return };
        let Event::ModelReplied { text, finish_reason, .. } = &first.event else { return };
        if self.state.phase != Phase::Asking {
            return;
        }
        self.stream = None;
        self.emit(first.event.clone(), now);
        if let Some(limit) = self.find_uncounted(now) {
            return self.end_uncounted(limit, now);
        }
        let mut events = rest.iter().map(|record| &record.event);
        match events.next() {
            Some(Event::Moved { moved, .. }) => self.follow_recorded(moved, rest.get(1..).unwrap_or_default(), now),
            Some(offered @ Event::AnswerOffered { .. }) => self.emit(offered.clone(), now),
            Some(Event::Violated { violation, .. }) => self.record_violation((**violation).clone(), now),
            Some(Event::Noted { note: note @ Note::Exhausted(limit) }) => {
                self.emit(Event::Noted { note: note.clone() }, now);
                self.limit(*limit, now);
            }
            Some(Event::Noted { note: Note::LastTurn(limit) }) => self.limit(*limit, now),
            first => {
                // The end of a run cancels its open calls first.
                let is_cancelled =
                    |event: &&Event| matches!(event, Event::TicketCompleted { outcome, .. } if outcome.is_cancelled());
                match first.into_iter().chain(events).find(|event| !is_cancelled(event)) {
                    Some(Event::RunFinished { reason, error, limit, .. }) => {
                        self.end(*reason, error.clone(), *limit, now);
                    }
                    // The log was cut here: nothing says what the reply led to.
                    _ => self.apply_unrecorded(text, *finish_reason, now),
                }
            }
        }
    }

    /// Makes a move that was checked when it was logged. `records` are those after it.
    fn follow_recorded(&mut self, moved: &Move, records: &[Arc<Record>], now: f64) {
        let calls = match moved {
            Move::Call { calls } => calls.len() - self.state.batch.len().min(calls.len()),
            Move::Delegate { .. } => 1,
            _ => 0,
        };
        let opened = records.iter().map(|record| &record.event);
        let opened = opened.take_while(|event| matches!(event, Event::TicketOpened(_)));
        let opened: Vec<&Event> = opened.take(calls).collect();
        // The rest of a log that was cut here.
        let missing = if opened.len() < calls {
            match self.plan(moved, now) {
                Ok(planned) => planned.into_iter().skip(opened.len()).collect(),
                Err(Refusal::Violation(violation)) => return self.record_violation(violation, now),
                Err(Refusal::Limit(limit)) => return self.limit(limit, now),
            }
        } else {
            Vec::new()
        };
        self.emit(Event::Moved { turn: self.state.turn, moved: moved.clone() }, now);
        for call in opened {
            self.emit(call.clone(), now);
        }
        for call in missing {
            self.open(call, now);
        }
        self.advance(now);
    }

    fn apply_unrecorded(&mut self, text: &str, reason: FinishReason, now: f64) {
        match self.read(text, reason).outcome {
            Ok(moved) => self.apply_move(moved, now),
            Err(violation) => self.record_violation(violation, now),
        }
    }
}
