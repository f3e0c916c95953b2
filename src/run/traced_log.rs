//! Where the values of calls come from that were made without anybody asking. The log is read again for it, so that a run
//! in which nobody asks pays nothing.

use super::event::{Event, Record};
use super::machine::RunMachine;
use super::resume::{self, LoadError};
use super::traced_texts::Origins;
use crate::ticket::TicketId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The origins of a log's calls, each as of its opening.
#[derive(Debug)]
pub struct TracedLog {
    machine: RunMachine,
    /// The position of the first record.
    first: u64,
    /// How many records were read.
    read: usize,
    found: BTreeMap<TicketId, Origins>,
}

impl TracedLog {
    /// Nothing is read yet. `run` has the texts of the runs above.
    ///
    /// # Errors
    /// It is not the log of a run.
    pub fn new(run: &RunMachine, records: &[Arc<Record>]) -> Result<Self, LoadError> {
        let mut machine = RunMachine::of(resume::start(records)?.clone());
        machine.above.clone_from(&run.above);
        let first = records.first().map_or(0, |first| first.seq);
        machine.seq = first;
        Ok(Self { machine, first, read: 0, found: BTreeMap::new() })
    }

    /// Whether it is of a log that begins there.
    pub fn begins_at(&self, first: u64) -> bool {
        self.first == first
    }

    /// Reads the records that were added. `run` has the texts of the runs below.
    ///
    /// # Errors
    /// They can't follow.
    pub fn read(&mut self, run: &RunMachine, records: &[Arc<Record>]) -> Result<(), LoadError> {
        self.machine.traced.answers.clone_from(&run.traced.answers);
        for record in records.get(self.read..).unwrap_or_default() {
            if let Event::TicketOpened(opened) = &record.event
                && opened.origins.is_empty()
                && self.machine.start.traces_values()
            {
                let origins = self.machine.trace_opened(opened, record.at);
                self.found.insert(opened.ticket, origins);
            }
            self.machine.fold_one(record, record.seq == self.first)?;
            self.read += 1;
        }
        Ok(())
    }

    /// The origins of a call; `None` if the log has them, or has no call of this number.
    pub fn origins(&self, ticket: TicketId) -> Option<&Origins> {
        self.found.get(&ticket)
    }
}
