//! The logs of runs, stored in memory or in one `SQLite` file.

mod blob;
mod claim;
mod error;
mod fence;
mod key;
mod log;
mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
mod projection;
mod queue;
mod row;
pub mod sqlite;
mod sync;
mod ticket_texts;

use claim::Claims;
pub use claim::{Claim, Hold};
pub use error::StoreError;
pub use key::RunKey;
pub use log::{Log, LogError};
pub use memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use row::{RunFilter, RunRow, RunStatus, TicketFilter, TicketRow};
pub use sqlite::{Durability, SqliteStore};

use crate::part::Content;
use crate::run::Record;
use crate::ticket::TicketId;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A position in everything that a store was handed, over all its runs. Positions only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(u64);

impl Position {
    /// The number of units handed in up to here.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for Position {
    fn from(position: u64) -> Self {
        Self(position)
    }
}

/// Further data for the unit of commit of some records.
#[derive(Debug, Default)]
pub struct With {
    /// The bytes of the parts that the records have.
    pub contents: Vec<Content>,
    /// The messages and decisions that stand in the records now, by their numbers in a shared store.
    pub taken: Vec<i64>,
}

impl From<Vec<Content>> for With {
    fn from(contents: Vec<Content>) -> Self {
        Self { contents, taken: Vec::new() }
    }
}

/// A listener that is woken when a store has committed more.
pub trait Wake: Send + Sync {
    /// Called on the writer's thread, so it must be quick and must not call the store.
    fn wake(&self);
}

/// The logs of many runs.
pub trait Store: Send + Sync + fmt::Debug {
    /// Claims a run for one driver, until the claim is dropped. `above` is the run with the same driver, if there is
    /// one.
    ///
    /// # Errors
    /// `UnderWay`, `Elsewhere`, `Below`: it is claimed.
    fn claim(&self, run_id: &str, above: Option<&str>) -> Result<Claim, StoreError>;

    /// The same for a run that is new, which takes no time.
    ///
    /// # Errors
    /// `UnderWay`: it is claimed.
    fn claim_new(&self, run_id: &str, above: Option<&str>) -> Result<Claim, StoreError> {
        self.claim(run_id, above)
    }

    /// Claims a run that is new and has a key, which no other run has or gets then.
    ///
    /// # Errors
    /// `UnderWay`: it is claimed. `KeyTaken`: another run has the key.
    fn claim_key(&self, run_id: &str, key: &RunKey) -> Result<Claim, StoreError>;

    /// The run that has a key, or is about to begin with it.
    ///
    /// # Errors
    /// It can't be read.
    fn run_with(&self, key: &RunKey) -> Result<Option<String>, StoreError>;

    /// The ticket that others know by a key, of the runs of its owner and agent: the one that was opened first.
    ///
    /// # Errors
    /// It can't be read.
    fn ticket_with(&self, key: &RunKey) -> Result<Option<(String, TicketId)>, StoreError>;

    /// Whether a driver of this process has claimed a run just now.
    fn is_claimed(&self, run_id: &str) -> bool;

    /// Takes records of one run, all or none, as one unit of commit. Returns immediately; `wait` and `durable` tell
    /// when they are durable. A new run begins at 0, or with a `Compacted` at any position.
    ///
    /// # Errors
    /// `Conflict`: the first is not the run's next one, or they leave a gap. Or the store has failed or is closed.
    fn append(&self, run_id: &str, records: Vec<Arc<Record>>) -> Result<Position, StoreError> {
        self.append_with(run_id, records, With::default())
    }

    /// As `append`, with further data in the same unit of commit.
    ///
    /// # Errors
    /// As for `append`.
    fn append_with(&self, run_id: &str, records: Vec<Arc<Record>>, with: With) -> Result<Position, StoreError>;

    /// Whether everything up to this position is durable; waits no longer than the timeout.
    ///
    /// # Errors
    /// The store failed before it was.
    fn wait(&self, position: Position, timeout: Duration) -> Result<bool, StoreError>;

    /// The position up to which everything is durable. Does not wait.
    ///
    /// # Errors
    /// The store has failed.
    fn durable(&self) -> Result<Position, StoreError>;

    /// From now on, `wake` is called after each commit and after a failure, for as long as someone else holds it.
    fn subscribe(&self, wake: Weak<dyn Wake>);

    /// The log of a run.
    ///
    /// # Errors
    /// `NoSuchRun`, `NotBegun` (in a shared store), or it can't be read.
    fn load(&self, run_id: &str) -> Result<Vec<Arc<Record>>, StoreError>;

    /// Whether it has a run, which has begun.
    ///
    /// # Errors
    /// It can't be read.
    fn exists(&self, run_id: &str) -> Result<bool, StoreError>;

    /// The bytes of a part of this run, by their SHA-256 in hexadecimal digits; `None` if the run has no such part.
    ///
    /// # Errors
    /// They can't be read.
    fn content(&self, run_id: &str, sha256: &str) -> Result<Option<Arc<[u8]>>, StoreError>;

    /// Runs, newest first, those that wait for a worker among them.
    ///
    /// # Errors
    /// They can't be read.
    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError>;

    /// Tickets with their whole results, newest first.
    ///
    /// # Errors
    /// They can't be read.
    fn tickets(&self, filter: &TicketFilter) -> Result<Vec<TicketRow>, StoreError>;

    /// Deletes runs, finished or not, with all runs that were started in them. Says how many there were.
    ///
    /// # Errors
    /// `UnderWay`: one of them is claimed, so all of them stay. Or the store has failed.
    fn delete(&self, run_ids: &[String]) -> Result<usize, StoreError>;

    /// Deletes finished root runs and all runs below them, if they ended before `older_than` (Unix seconds) and are not
    /// among the newest `keep`. `None` sets no condition; with neither, no run is deleted. A tree of runs with a
    /// claimed one in it stays. Says how many runs there were.
    ///
    /// # Errors
    /// The store has failed.
    fn prune(&self, older_than: Option<f64>, keep: Option<usize>) -> Result<usize, StoreError>;

    /// Deletes all runs of an owner, finished or not, and the remains of deleted runs: no byte of them stays in the
    /// store, except dead rows of a database, which its vacuum removes. Returns their ids.
    ///
    /// # Errors
    /// `UnderWay`, `Elsewhere`: one of them is driven, so all of them stay. `Read`: another program reads an older
    /// state of the file; the runs are deleted. Or the store has failed.
    fn erase(&self, owner: &str) -> Result<Vec<String>, StoreError>;

    /// Deletes the remains of deleted runs, if the store doesn't do so together with the runs.
    ///
    /// # Errors
    /// The store has failed.
    fn sweep(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Puts a snapshot in the place of the run's records up to the snapshot's own position.
    ///
    /// # Errors
    /// `NoSuchRun`; `Conflict`: the run has no record at that position. Or the store has failed.
    fn compact(&self, run_id: &str, snapshot: Record) -> Result<(), StoreError>;

    /// Why the store has stopped, if it has.
    fn failed(&self) -> Option<String>;

    /// Makes all records durable, and stops. Later calls have no effect.
    ///
    /// # Errors
    /// The store had failed, or fails now.
    fn close(&self) -> Result<(), StoreError>;
}
