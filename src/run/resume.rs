//! From a log back to a run: completed calls stay completed, interrupted ones are resolved, and the run continues.

use super::command::Setup;
use super::event::{Event, Note, Record, Start, VERSION};
use super::machine::{RunMachine, SharedLimits};
use super::replay;
use super::snapshot::{Snapshot, sha256};
use super::state::Phase;
use crate::ticket::{Outcome, TicketId, TicketKind};
use crate::tool::Effect;
use std::sync::Arc;
use thiserror::Error;

/// Why a log can't be read as that of a run.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub enum LoadError {
    /// A line of the log is not JSON, or not the JSON of an event.
    #[error("line {line} is no event of a run: {cause}")]
    NotAnEvent {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        cause: String,
    },
    /// There is nothing in it.
    #[error("the log is empty: a run begins with run_started")]
    Empty,
    /// It does not begin with the beginning of a run.
    #[error("the log begins with event {0}: its first events are missing")]
    Headless(u64),
    /// A position is missing or stands twice.
    #[error("the log has event {got} where event {expected} belongs: it is damaged, or joined from two logs")]
    Gap {
        /// The position that belongs there.
        expected: u64,
        /// The position that stands there.
        got: u64,
    },
    /// An event that no run writes there.
    #[error("event {seq} can't follow those before it: the log was changed")]
    Impossible { seq: u64 },
    /// It was written by a later version.
    #[error("the log has version {found}, this callslip reads up to {VERSION}: use a newer callslip")]
    Newer { found: u32 },
    /// A folded state that is not the one that was written.
    #[error("the state in event {seq} is not the one that was written: the log was changed")]
    Changed { seq: u64 },
    /// It ends in the middle of what a reply leads to, and the reply is read differently now.
    #[error("the log is cut inside what its last reply leads to, and that reply is read differently now: {0}")]
    Cut(String),
}

/// How the run of these records began: the head of its log.
///
/// # Errors
/// The log is empty or does not begin with the beginning of a run, or a later version wrote it.
pub fn start(records: &[Arc<Record>]) -> Result<&Start, LoadError> {
    let first = records.first().ok_or(LoadError::Empty)?;
    let start = match &first.event {
        Event::RunStarted(start) if first.seq == 0 => start,
        Event::Compacted { start, .. } => start,
        _ => return Err(LoadError::Headless(first.seq)),
    };
    if start.version > VERSION {
        return Err(LoadError::Newer { found: start.version });
    }
    Ok(start)
}

/// The record that takes the place of all of these: their fold, and the hash of what they were.
///
/// # Errors
/// They are not the log of a run.
pub fn compact(records: &[Arc<Record>]) -> Result<Record, LoadError> {
    let machine = RunMachine::load(records)?;
    let start = start(records)?.clone();
    let last = records.last().ok_or(LoadError::Empty)?;
    // Records and states have no value that JSON could not say.
    let hash = sha256(records.iter().map(|record| serde_json::to_string(record).unwrap_or_default() + "\n"));
    let state = Snapshot::new(machine.state).map_err(|error| LoadError::Cut(error.to_string()))?;
    let event = Event::Compacted { start: Box::new(start), hash, sum: state.sum(), state: Box::new(state) };
    Ok(Record { seq: last.seq, at: last.at, event })
}

impl RunMachine {
    /// The run that wrote this log, as it was after its last record. It has no commands before `resume`.
    ///
    /// # Errors
    /// It is not the log of a run.
    pub fn load(records: &[Arc<Record>]) -> Result<Self, LoadError> {
        let mut machine = Self::fold(records)?;
        if !machine.state.position.midway {
            return Ok(machine);
        }
        // A log that was cut by hand: what its last reply leads to is worked out again.
        let replied = records.iter().rposition(|record| matches!(record.event, Event::ModelReplied { .. }));
        let (head, tail) = records.split_at_checked(replied.unwrap_or_default()).unwrap_or_default();
        machine = Self::fold(head)?;
        machine.shared_limits = replay::replayed_limits(tail);
        // What started early stands before the reply; what was not let start early does not start now.
        let setup = Arc::clone(&machine.setup);
        machine.setup = Arc::new(Setup { early_start: false, ..Setup::clone(&setup) });
        replay::step(&mut machine, tail).map_err(|error| LoadError::Cut(error.to_string()))?;
        (machine.shared_limits, machine.setup) = (SharedLimits::None, setup);
        // No driver has its commands.
        machine.given.ended = false;
        Ok(machine)
    }

    /// The fold of these records, and nothing else.
    pub(super) fn fold(records: &[Arc<Record>]) -> Result<Self, LoadError> {
        let mut machine = Self::of(start(records)?.clone());
        let first = records.first().map_or(0, |first| first.seq);
        machine.seq = first;
        for record in records {
            machine.fold_one(record, record.seq == first)?;
        }
        machine.given.pending = machine.state.calls.open.keys().copied().collect();
        machine.attended = false;
        Ok(machine)
    }

    pub(super) fn fold_one(&mut self, record: &Record, is_first: bool) -> Result<(), LoadError> {
        if let Event::Compacted { sum: written, state, .. } = &record.event
            && *written != state.sum()
        {
            return Err(LoadError::Changed { seq: record.seq });
        }
        if record.seq != self.seq {
            return Err(LoadError::Gap { expected: self.seq, got: record.seq });
        }
        if !self.state.admits(&record.event, is_first) {
            return Err(LoadError::Impossible { seq: record.seq });
        }
        self.state.apply(&record.event, record.at, &*self.setup.protocol);
        self.seq = self.seq.checked_add(1).ok_or(LoadError::Impossible { seq: record.seq })?;
        Ok(())
    }

    /// Adds records that another driver has written meanwhile to a run that was only loaded.
    ///
    /// # Errors
    /// They are not the next ones of its log.
    pub fn follow(&mut self, records: &[Arc<Record>]) -> Result<(), LoadError> {
        for record in records {
            self.fold_one(record, false)?;
        }
        self.given.pending = self.state.calls.open.keys().copied().collect();
        Ok(())
    }

    /// Goes on as another reading of the same run, which may have left events out: all tickets count as changed.
    pub fn replace_by(&mut self, mut other: Self) {
        other.state.calls.tickets.renew(self.state.calls.tickets.change_count());
        *self = other;
    }

    /// Resumes the run, after its process ended, its model failed or it was cancelled. Completed calls are not
    /// repeated; a call that had begun is treated as the effect of its tool says.
    pub fn resume(&mut self, now: f64) {
        if !self.state.position.resumable() || self.state.conversation.messages.is_empty() {
            return;
        }
        self.stream = None;
        let open = self.state.calls.open.keys().copied().collect();
        self.given.renew(open, self.state.position.turn.saturating_sub(1));
        self.attended = true;
        let begun = self.state.calls.open.iter();
        let begun = begun.filter(|(ticket, call)| {
            self.may_have_begun(**ticket, call) && !self.waits(call) && !self.awaits_result(**ticket)
        });
        let begun: Vec<_> = begun.map(|(ticket, _)| *ticket).collect();
        self.emit(Event::Noted { note: Note::Resumed }, now);
        self.note_more_approval(now);
        let (state, tools) = (&self.state, &self.setup.tools);
        let under_way: Vec<_> = begun
            .iter()
            .filter_map(|ticket| Some((ticket, state.calls.open.get(ticket)?)))
            .map(|(ticket, call)| {
                let spec = tools.get(&call.tool);
                let is_task = state.calls.tickets.get(*ticket).is_some_and(|ticket| ticket.kind == TicketKind::Task);
                // The run of a task has a log of its own, and continues from that.
                let again = is_task
                    || spec.is_some_and(|spec| {
                        // What came of a call that others make is asked of them.
                        spec.effect != Effect::Once || spec.reconciles || spec.queue.is_some()
                    });
                let early = state.position.phase == Phase::Asking
                    && state.calls.tickets.get(*ticket).is_some_and(|ticket| ticket.turn == state.position.turn);
                (*ticket, Arc::clone(&call.tool), again, early)
            })
            .collect();
        for (ticket, tool, again, early) in under_way {
            if let Some(outcome) = self.last_failure(ticket) {
                self.emit(Event::completed(ticket, outcome), now);
            } else if early {
                // It was started for a reply that never came, and the next one may ask for something else.
                self.cancel_call(ticket, true, now);
            } else if again {
                self.given.again.insert(ticket);
            } else {
                let message = format!(
                    "Error calling tool '{tool}': InDoubt: the process ended before this call had a result, and \
                     whether it took effect is not known. Check before you make it again."
                );
                self.emit(Event::completed(ticket, Outcome::InDoubt { message }), now);
            }
        }
        self.advance(now);
    }

    /// The outcome of a call whose attempts have all failed, in a log that ends right after the last of them.
    fn last_failure(&self, ticket: TicketId) -> Option<Outcome> {
        let message = self.state.calls.open.get(&ticket)?.failure.clone()?;
        Some(Outcome::Error { message, transient: true }.after_attempts(self.attempts(ticket)))
    }
}
