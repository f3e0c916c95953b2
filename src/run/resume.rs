//! From a log back to a run: what was done stands, what was under way is dealt with, and the run goes on.

use super::command::Setup;
use super::event::{Event, Note, Record, Start, VERSION};
use super::machine::{Machine, Tree};
use super::replay;
use super::snapshot::{Snapshot, sha256};
use super::state::Phase;
use crate::ticket::{Outcome, TicketKind};
use crate::tool::Effect;
use std::sync::Arc;
use thiserror::Error;

/// A log that is not that of a run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
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
    Impossible {
        /// Its position.
        seq: u64,
    },
    /// It was written by a later version.
    #[error("the log has version {found}, this callslip reads up to {VERSION}: use a newer callslip")]
    Newer {
        /// Its version.
        found: u32,
    },
    /// A folded state that is not the one that was written.
    #[error("the state in event {seq} is not the one that was written: the log was changed")]
    Changed {
        /// Its position.
        seq: u64,
    },
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
    let machine = Machine::load(records)?;
    let start = start(records)?.clone();
    let last = records.last().ok_or(LoadError::Empty)?;
    // Records and states have no value that JSON could not say.
    let hash = sha256(records.iter().map(|record| serde_json::to_string(record).unwrap_or_default() + "\n"));
    let state = Snapshot::new(machine.state).map_err(|error| LoadError::Cut(error.to_string()))?;
    let event = Event::Compacted { start: Box::new(start), hash, sum: state.sum(), state: Box::new(state) };
    Ok(Record { seq: last.seq, at: last.at, event })
}

impl Machine {
    /// The run that wrote this log, as it was after its last record. Nothing is done about it before `resumed`.
    ///
    /// # Errors
    /// It is not the log of a run.
    pub fn load(records: &[Arc<Record>]) -> Result<Self, LoadError> {
        let mut machine = Self::fold(records)?;
        if !machine.state.midway {
            return Ok(machine);
        }
        // A log that was cut by hand: what its last reply leads to is worked out again.
        let replied = records.iter().rposition(|record| matches!(record.event, Event::ModelReplied { .. }));
        let (head, tail) = records.split_at_checked(replied.unwrap_or_default()).unwrap_or_default();
        machine = Self::fold(head)?;
        machine.tree = replay::recorded(tail);
        // What started early stands before the reply; what was not let start early does not start now.
        let setup = Arc::clone(&machine.setup);
        machine.setup = Arc::new(Setup { early_start: false, ..Setup::clone(&setup) });
        replay::step(&mut machine, tail).map_err(|error| LoadError::Cut(error.to_string()))?;
        (machine.tree, machine.setup) = (Tree::Alone, setup);
        // Nobody was given what was to be done.
        machine.ended = false;
        Ok(machine)
    }

    /// The fold of these records, and nothing else.
    pub(super) fn fold(records: &[Arc<Record>]) -> Result<Self, LoadError> {
        let mut machine = Self::of(start(records)?.clone());
        let first = records.first().map_or(0, |first| first.seq);
        machine.seq = first;
        for record in records {
            if let Event::Compacted { sum: written, state, .. } = &record.event
                && *written != state.sum()
            {
                return Err(LoadError::Changed { seq: record.seq });
            }
            if record.seq != machine.seq {
                return Err(LoadError::Gap { expected: machine.seq, got: record.seq });
            }
            if !machine.state.admits(&record.event, machine.seq == first) {
                return Err(LoadError::Impossible { seq: record.seq });
            }
            machine.state.apply(&record.event, record.at, &*machine.setup.protocol);
            machine.seq = machine.seq.checked_add(1).ok_or(LoadError::Impossible { seq: record.seq })?;
        }
        machine.pending = machine.state.open_calls.keys().copied().collect();
        machine.attended = false;
        Ok(machine)
    }

    /// The run is gone on with by another process than the one that began it, or after its model failed or it was
    /// cancelled. What was done is not done again; a call that was under way is treated as its tool's effect says.
    pub fn resumed(&mut self, now: f64) {
        if !self.state.resumable() || self.state.messages.is_empty() {
            return;
        }
        self.stream = None;
        self.started.clear();
        self.pending = self.state.open_calls.keys().copied().collect();
        self.cancelled.clear();
        (self.ended, self.attended) = (false, true);
        let answered = self.state.turn.saturating_sub(1);
        (self.asked, self.settled) = (answered, answered);
        let begun = self.state.open_calls.iter();
        let begun = begun.filter(|(ticket, call)| self.may_have_begun(**ticket, call) && !self.waits(call));
        let begun: Vec<_> = begun.map(|(ticket, _)| *ticket).collect();
        self.emit(Event::Noted { note: Note::Resumed }, now);
        let (state, tools) = (&self.state, &self.setup.tools);
        let under_way: Vec<_> = begun
            .iter()
            .filter_map(|ticket| Some((ticket, state.open_calls.get(ticket)?)))
            .map(|(ticket, call)| {
                let spec = tools.get(&call.tool);
                let is_task = state.tickets.get(*ticket).is_some_and(|ticket| ticket.kind == TicketKind::Task);
                // The run of a task has a log of its own, and goes on with that.
                let again = is_task || spec.is_some_and(|spec| spec.effect != Effect::Once || spec.reconciles);
                let early = state.phase == Phase::Asking
                    && state.tickets.get(*ticket).is_some_and(|ticket| ticket.turn == state.turn);
                (*ticket, Arc::clone(&call.tool), again, early)
            })
            .collect();
        for (ticket, tool, again, early) in under_way {
            if early {
                // It was started for a reply that never came, and the next one may ask for something else.
                self.cancel_call(ticket, true, now);
            } else if again {
                self.again.insert(ticket);
            } else {
                let message = format!(
                    "Error calling tool '{tool}': InDoubt: the process ended before this call had a result, and \
                     whether it took effect is not known. Check before you make it again."
                );
                self.emit(Event::TicketCompleted { ticket, outcome: Outcome::InDoubt { message }, spent: None }, now);
            }
        }
        self.go_on(now);
    }
}
