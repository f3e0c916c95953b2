//! What is done only for logs of earlier versions: the rules by which their runs began, and their replies, which are not
//! read again because a later version may read them in another way.
//!
//! At 1.0 this file can go, with each call of it: logs of 0.x are readable by the last 0.x.

use super::event::{Event, Note, Record, Start};
use super::machine::RunMachine;
use super::plan::Refusal;
use super::state::Phase;
use crate::protocol::{FinishReason, Move, Reply, TextSpans};
use std::sync::Arc;

/// The first version whose records say with which arguments a call is made that uses other calls' results.
const FILLED: u32 = 3;

/// The first version whose runs end if nothing counts what a limit bounds.
const COUNTED: u32 = 4;

/// The first version in which a message of the user lets calls be made again that were refused.
const AGAIN: u32 = 8;

/// The first version in which the run's own task is in the list of tickets that the model is shown (ticket).
const OWN_TICKET: u32 = 9;

/// The first version whose calls are planned by today's rules of references (chatty) and of whole bodies (ticket).
const WHOLE_VALUES: u32 = 9;

/// The first version whose replies a replay reads. The outcomes of earlier ones are taken from their log.
const REREAD: u32 = 9;

/// The first version whose tools say how the program reads what looks like another type.
const READ_TYPES: u32 = 9;

/// The first version whose messages keep each result in a frame that its text can't end.
const FRAMED: u32 = 9;

/// The first version whose results are read in parts.
const PARTS: u32 = 9;

/// The first version whose calls have origins.
const TRACED: u32 = 9;

impl Start {
    /// Whether the values of its calls are traced.
    pub(super) fn traces_values(&self) -> bool {
        self.version >= TRACED
    }

    /// Whether the log says with which arguments a call is made that uses other calls' results.
    pub(super) fn writes_filled_arguments(&self) -> bool {
        self.version >= FILLED
    }

    /// Whether the run ends if nothing counts what a limit bounds.
    pub(super) fn ends_uncounted(&self) -> bool {
        self.version >= COUNTED
    }

    /// Whether a message of the user lets calls be made again that were refused.
    pub(super) fn counts_calls_per_message(&self) -> bool {
        self.version >= AGAIN
    }

    /// Whether the list of tickets has the run's own task (ticket).
    pub(super) fn lists_own_task(&self) -> bool {
        self.version >= OWN_TICKET
    }

    /// Whether only whole strings are references (chatty), numbers are none, and a call may have its whole body in one
    /// value (ticket).
    pub(super) fn plans_whole_values(&self) -> bool {
        self.version >= WHOLE_VALUES
    }

    /// Whether the tools say how the program reads what looks like another type.
    pub(super) fn knows_read_types(&self) -> bool {
        self.version >= READ_TYPES
    }

    /// Whether each result is in a frame that its text can't end.
    pub(super) fn frames_results(&self) -> bool {
        self.version >= FRAMED
    }

    /// Whether the parts of a long result are read one by one.
    pub(super) fn reads_parts(&self) -> bool {
        self.version >= PARTS
    }

    /// Whether calls that need approval are written down with their defaults. Runs of earlier versions have no key for
    /// seals either.
    pub(super) fn fills_defaults(&self) -> bool {
        self.seal_key.is_some()
    }
}

impl RunMachine {
    /// Whether a replay takes what replies lead to from the log.
    pub(super) fn trusts_log(&self) -> bool {
        self.start.version < REREAD
    }

    /// Takes the reply that these records begin with, and what it led to.
    pub(super) fn take_recorded(&mut self, records: &[Arc<Record>], now: f64) {
        let Some((first, rest)) = records.split_first() else { return };
        let Event::ModelReplied { text, finish_reason, .. } = &first.event else { return };
        if self.state.position.phase != Phase::Asking {
            return;
        }
        self.stream = None;
        self.emit(first.event.clone(), now);
        if let Some(limit) = self.find_uncounted(now) {
            return self.end_uncounted(limit, now);
        }
        let mut events = rest.iter().map(|record| &record.event);
        match events.next() {
            Some(Event::Moved { moved, spans, .. }) => {
                self.follow_recorded(moved, spans, rest.get(1..).unwrap_or_default(), now);
            }
            Some(offered @ Event::AnswerOffered { .. }) => self.emit(offered.clone(), now),
            Some(Event::Violated { violation, spans, .. }) => {
                self.record_violation((**violation).clone(), spans.clone(), now);
            }
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
    fn follow_recorded(&mut self, moved: &Move, spans: &TextSpans, records: &[Arc<Record>], now: f64) {
        let calls = match moved {
            Move::Call { calls } => calls.len() - self.state.calls.batch.len().min(calls.len()),
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
                Err(Refusal::Violation(violation)) => return self.record_violation(*violation, spans.clone(), now),
                Err(Refusal::Limit(limit)) => return self.limit(limit, now),
            }
        } else {
            Vec::new()
        };
        let turn = self.state.position.turn;
        self.emit(Event::Moved { turn, moved: moved.clone(), spans: spans.clone() }, now);
        for call in opened {
            self.emit(call.clone(), now);
        }
        for call in missing {
            self.open(call, now);
        }
        self.advance(now);
    }

    fn apply_unrecorded(&mut self, text: &str, reason: FinishReason, now: f64) {
        let Reply { outcome, spans, .. } = self.read(text, reason);
        match outcome {
            Ok(moved) => self.apply_move(moved, spans, now),
            Err(violation) => self.record_violation(violation, spans, now),
        }
    }
}
