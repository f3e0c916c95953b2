//! A log in memory.

use crate::run::Record;
use std::sync::Arc;
use thiserror::Error;

/// A record that is not the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("expected event {expected} of the run: got {got}, so another driver has written to this log")]
pub struct LogError {
    /// The next position.
    pub expected: u64,
    /// The position of the record.
    pub got: u64,
}

/// The events of one run, in order.
#[derive(Debug, Default)]
pub struct Log {
    records: Vec<Arc<Record>>,
}

impl Log {
    /// Appends records, all or none.
    ///
    /// # Errors
    /// The first is not the next one of this log, or they leave a gap.
    pub fn append(&mut self, records: Vec<Arc<Record>>) -> Result<(), LogError> {
        for (record, expected) in records.iter().zip(self.records.len() as u64..) {
            if record.seq != expected {
                return Err(LogError { expected, got: record.seq });
            }
        }
        self.records.extend(records);
        Ok(())
    }

    /// The records from `seq` on.
    pub fn since(&self, seq: usize) -> &[Arc<Record>] {
        self.records.get(seq..).unwrap_or_default()
    }
}
