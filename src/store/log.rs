//! The log of one run, in memory.

use super::fence;
use crate::run::Record;
use std::sync::Arc;
use thiserror::Error;

/// A record that is not the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("expected event {expected} of the run: got {got}, so another driver has written to this log")]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub struct LogError {
    pub expected: u64,
    /// The position of the record.
    pub got: u64,
}

/// The events of one run, in order. They begin at 0, or with a snapshot.
#[derive(Debug, Default)]
pub struct Log {
    records: Vec<Arc<Record>>,
}

impl Log {
    /// A log that was loaded.
    pub fn new(records: Vec<Arc<Record>>) -> Self {
        Self { records }
    }

    /// The position of the next record.
    pub fn next(&self) -> u64 {
        self.records.last().map_or(0, |last| last.seq + 1)
    }

    /// Appends records, all or none.
    ///
    /// # Errors
    /// The first is not the next one of this log, or they leave a gap.
    pub fn append(&mut self, records: Vec<Arc<Record>>) -> Result<(), LogError> {
        let next = if self.records.is_empty() { fence::begin(&records) } else { self.next() };
        fence::check(next, &records)?;
        self.records.extend(records);
        Ok(())
    }

    /// All records of the log.
    pub fn records(&self) -> &[Arc<Record>] {
        &self.records
    }

    /// The records from this position on.
    pub fn since(&self, seq: usize) -> &[Arc<Record>] {
        let first = self.records.first().map_or(0, |first| usize::try_from(first.seq).unwrap_or(usize::MAX));
        self.records.get(seq.saturating_sub(first)..).unwrap_or_default()
    }

    /// Puts a snapshot in the place of the records up to its position.
    ///
    /// # Errors
    /// There is no record at that position.
    pub fn compact(&mut self, snapshot: Arc<Record>) -> Result<(), LogError> {
        let (first, next) = (self.records.first().map_or(0, |first| first.seq), self.next());
        fence::check_snapshot(first, next, snapshot.seq)?;
        let kept = self.records.iter().position(|record| record.seq > snapshot.seq).unwrap_or(self.records.len());
        self.records.splice(..kept, [snapshot]);
        Ok(())
    }
}
