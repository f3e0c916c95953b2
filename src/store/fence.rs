//! Which records may come next: two drivers of one run can't both win.

use super::LogError;
use crate::run::{Event, Record};
use std::sync::Arc;

/// The first position of a new run's log: 0, or the position of its snapshot.
pub(super) fn begin(records: &[Arc<Record>]) -> u64 {
    records.first().map_or(0, |first| if matches!(first.event, Event::Compacted { .. }) { first.seq } else { 0 })
}

/// Whether these are the next records. Says the position after them.
pub(super) fn check(next: u64, records: &[Arc<Record>]) -> Result<u64, LogError> {
    let mut expected = next;
    for record in records {
        if record.seq != expected {
            return Err(LogError { expected, got: record.seq });
        }
        expected += 1;
    }
    Ok(expected)
}

/// Whether a snapshot can take the place of the records up to `seq` of a log that begins at `first`.
pub(super) fn check_snapshot(first: u64, next: u64, seq: u64) -> Result<(), LogError> {
    if seq < first {
        return Err(LogError { expected: first, got: seq });
    }
    if seq >= next {
        return Err(LogError { expected: next.saturating_sub(1), got: seq });
    }
    Ok(())
}
