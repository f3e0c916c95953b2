//! The logs of runs in one `SQLite` file.

mod files;
mod lock;
mod open;
mod place;
mod query;
mod read;
mod retention;
mod schema;
mod shared;
mod writer;

pub use place::Marks;
pub use query::{SqlValue, Table};
pub use schema::Object;

use super::claim::{Claim, Claims};
use super::memory::conflict;
use super::row::{RunFilter, RunRow, TicketFilter, TicketRow};
use super::{Position, RunKey, Store, StoreError, Wake, With, fence};
use crate::run::Record;
use crate::ticket::TicketId;
use lock::Lock;
use read::ReadError;
use rusqlite::Connection;
use shared::Shared;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use writer::Work;

/// The events that a durable append survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// It survives a loss of power: each commit is synced.
    #[default]
    Full,
    /// It survives the death of the process; a loss of power may take the last commits, never the file.
    Normal,
    /// Appends don't wait, unless the writer falls far behind: the end of the process may lose unwritten records.
    Memory,
}

impl Durability {
    /// `full`, `normal` or `memory`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
            Self::Memory => "memory",
        }
    }
}

/// How many units of commit the writer may lag behind, with durability `Memory`.
const BEHIND: u64 = 8_192;
/// Runs with a cached next position; more are cached only while they wait for the writer.
const SEEN: usize = 10_000;

/// The logs of runs in one `SQLite` file, which this process owns.
pub struct SqliteStore {
    durability: Durability,
    /// The process that opened it.
    pid: u32,
    claims: Arc<Claims>,
    shared: Arc<Shared>,
    /// The next position of each run. Its lock also orders the queue.
    next: Mutex<Next>,
    reader: Mutex<Option<Connection>>,
    owned: Mutex<Option<Owned>>,
}

/// The parts that end with the store.
struct Owned {
    writer: JoinHandle<Connection>,
    lock: Lock,
}

struct Next {
    seen: HashMap<String, Seen>,
    /// How many entries there may be before entries that are in the file are forgotten.
    most: usize,
    /// Reads positions that are not cached, without waiting for long reads of others.
    connection: Option<Connection>,
}

/// A run's log from its first position to the one before `next`; that is in the queue up to `position`.
#[derive(Clone, Copy)]
struct Seen {
    first: u64,
    next: u64,
    position: u64,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("SqliteStore");
        shown.field("path", &self.shared.path).field("durability", &self.durability).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SqliteStore {
    /// Transactions that were committed since it was opened.
    pub fn commits(&self) -> u64 {
        self.shared.commits()
    }

    /// The durability that it was opened with.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// The path of the file.
    pub fn path(&self) -> &std::path::Path {
        &self.shared.path
    }

    fn behind(&self) -> u64 {
        if self.durability == Durability::Memory { BEHIND } else { 0 }
    }

    /// A child that was forked off has none of the threads and none of the locks.
    fn check_process(&self) -> Result<(), StoreError> {
        if self.pid == std::process::id() {
            return Ok(());
        }
        Err(StoreError::Forked { path: self.shared.path.clone(), owner: self.pid })
    }

    /// Waits until the file has everything that was handed in.
    fn settle(&self) -> Result<(), StoreError> {
        self.check_process()?;
        let queue = &self.shared.queue;
        Ok(queue.wait(queue.pushed())?)
    }

    fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, ReadError>) -> Result<T, StoreError> {
        self.settle()?;
        let reader = lock(&self.reader);
        read(reader.as_ref().ok_or(StoreError::Closed)?).map_err(|error| error.of(&self.shared.path))
    }

    fn next(&self) -> Result<MutexGuard<'_, Next>, StoreError> {
        self.check_process()?;
        let next = lock(&self.next);
        next.connection()?;
        Ok(next)
    }

    /// Removes whole trees of runs, which are claimed, so no driver appends to them meanwhile. The lock on `next` is
    /// held only briefly, because every step of every run needs it.
    fn remove(&self, run_ids: Vec<String>) -> Result<usize, StoreError> {
        let removed = run_ids.len();
        if removed > 0 {
            let mut next = self.next()?;
            for run_id in &run_ids {
                next.seen.remove(run_id);
            }
            let position = self.shared.queue.push(Work::Delete { run_ids }, removed)?;
            drop(next);
            self.shared.queue.wait(position)?;
        }
        Ok(removed)
    }
}

impl SqliteStore {
    /// Removes every byte of deleted runs from the file and its log.
    fn scrub(&self) -> Result<(), StoreError> {
        let failed = Arc::new(Mutex::new(None));
        let position = {
            let _next = self.next()?;
            // An open reader may hold an older state.
            self.shared.queue.push(Work::Scrub { failed: Arc::clone(&failed) }, 1)?
        };
        self.shared.queue.wait(position)?;
        match lock(&failed).take() {
            Some(cause) => Err(StoreError::Unscrubbed { path: self.shared.path.clone(), cause }),
            None => Ok(()),
        }
    }
}

impl Next {
    fn new(connection: Connection) -> Self {
        Self { seen: HashMap::new(), most: SEEN, connection: Some(connection) }
    }

    fn connection(&self) -> Result<&Connection, StoreError> {
        self.connection.as_ref().ok_or(StoreError::Closed)
    }

    fn seen(&mut self, shared: &Shared, run_id: &str) -> Result<Option<Seen>, StoreError> {
        if let Some(seen) = self.seen.get(run_id) {
            return Ok(Some(*seen));
        }
        let bounds =
            read::bounds(self.connection()?, run_id).map_err(|error| ReadError::from(error).of(&shared.path))?;
        Ok(bounds.map(|(first, next)| Seen { first, next, position: 0 }))
    }

    fn see(&mut self, shared: &Shared, run_id: &str, seen: Seen) {
        if let Some(known) = self.seen.get_mut(run_id) {
            *known = seen;
            return;
        }
        if self.seen.len() >= self.most {
            // Positions of written records can be read from the file again.
            let done = shared.queue.acknowledged().unwrap_or_default();
            self.seen.retain(|_, seen| seen.position > done);
            self.most = SEEN.max(self.seen.len() * 2);
        }
        self.seen.insert(run_id.to_owned(), seen);
    }
}

impl Store for SqliteStore {
    fn claim(&self, run_id: &str, _: Option<&str>) -> Result<Claim, StoreError> {
        self.check_process()?;
        self.claims.claim(run_id)
    }

    fn claim_key(&self, run_id: &str, key: &RunKey) -> Result<Claim, StoreError> {
        self.check_process()?;
        let claim = self.claims.claim_key(run_id, key)?;
        match self.read(|connection| Ok(read::run_with(connection, key)?))? {
            Some(run_id) => Err(StoreError::KeyTaken { run_id }),
            None => Ok(claim),
        }
    }

    fn run_with(&self, key: &RunKey) -> Result<Option<String>, StoreError> {
        match self.claims.run_with(key) {
            None => self.read(|connection| Ok(read::run_with(connection, key)?)),
            claimed => Ok(claimed),
        }
    }

    fn ticket_with(&self, key: &RunKey) -> Result<Option<(String, TicketId)>, StoreError> {
        self.read(|connection| Ok(read::ticket_with(connection, key)?))
    }

    fn is_claimed(&self, run_id: &str) -> bool {
        self.claims.has(run_id)
    }

    fn append_with(&self, run_id: &str, records: Vec<Arc<Record>>, with: With) -> Result<Position, StoreError> {
        let mut next = self.next()?;
        if records.is_empty() {
            return Ok(Position(self.shared.queue.pushed()));
        }
        let seen = next.seen(&self.shared, run_id)?;
        let begin = seen.map_or_else(|| fence::begin(&records), |seen| seen.next);
        let end = fence::check(begin, &records).map_err(|error| conflict(run_id, error))?;
        let weight = records.len();
        let work = Work::Append { run_id: run_id.into(), records, contents: with.contents };
        let position = self.shared.queue.push(work, weight)?;
        let first = seen.map_or(begin, |seen| seen.first);
        next.see(&self.shared, run_id, Seen { first, next: end, position });
        Ok(Position(position))
    }

    fn wait(&self, position: Position, timeout: Duration) -> Result<bool, StoreError> {
        self.check_process()?;
        Ok(self.shared.queue.wait_at_most(position.0.saturating_sub(self.behind()), timeout)?)
    }

    fn durable(&self) -> Result<Position, StoreError> {
        self.check_process()?;
        let acknowledged = self.shared.queue.acknowledged();
        let acknowledged = acknowledged.map_err(|reason| StoreError::Failed(reason.to_string()))?;
        Ok(Position(acknowledged + self.behind()))
    }

    fn subscribe(&self, wake: Weak<dyn Wake>) {
        self.shared.subscribe(wake);
    }

    fn load(&self, run_id: &str) -> Result<Vec<Arc<Record>>, StoreError> {
        let records = self.read(|connection| read::load(connection, run_id))?;
        if records.is_empty() { Err(StoreError::NoSuchRun { run_id: run_id.to_owned() }) } else { Ok(records) }
    }

    fn exists(&self, run_id: &str) -> Result<bool, StoreError> {
        self.read(|connection| Ok(read::bounds(connection, run_id)?.is_some()))
    }

    fn content(&self, run_id: &str, sha256: &str) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.read(|connection| Ok(read::content(connection, run_id, sha256)?))
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        self.read(|connection| read::runs(connection, filter))
    }

    fn tickets(&self, filter: &TicketFilter) -> Result<Vec<TicketRow>, StoreError> {
        self.read(|connection| read::tickets(connection, filter))
    }

    fn delete(&self, run_ids: &[String]) -> Result<usize, StoreError> {
        let doomed = self.read(|connection| Ok(retention::trees(connection, run_ids)?))?;
        let _claims = self.claims.claim_all(doomed.iter().map(String::as_str))?;
        self.remove(doomed)
    }

    fn prune(&self, older_than: Option<f64>, keep: Option<usize>) -> Result<usize, StoreError> {
        if older_than.is_none() && keep.is_none() {
            return Ok(0);
        }
        let trees = self.read(|connection| {
            let roots = retention::roots_to_prune(connection, older_than, keep.unwrap_or(0))?;
            roots
                .into_iter()
                .map(|root| Ok(retention::trees(connection, &[root])?))
                .collect::<Result<Vec<_>, ReadError>>()
        })?;
        let (mut doomed, mut claims) = (Vec::new(), Vec::new());
        for tree in trees {
            if let Ok(claimed) = self.claims.claim_all(tree.iter().map(String::as_str)) {
                claims.push(claimed);
                doomed.extend(tree);
            }
        }
        self.remove(doomed)
    }

    fn erase(&self, owner: &str) -> Result<Vec<String>, StoreError> {
        let doomed =
            self.read(|connection| Ok(retention::trees(connection, &retention::runs_of(connection, owner)?)?))?;
        let _claims = self.claims.claim_all(doomed.iter().map(String::as_str))?;
        self.remove(doomed.clone())?;
        self.scrub()?;
        Ok(doomed)
    }

    fn compact(&self, run_id: &str, snapshot: Record) -> Result<(), StoreError> {
        let mut next = self.next()?;
        let seen = next.seen(&self.shared, run_id)?;
        let seen = seen.ok_or_else(|| StoreError::NoSuchRun { run_id: run_id.to_owned() })?;
        fence::check_snapshot(seen.first, seen.next, snapshot.seq).map_err(|error| conflict(run_id, error))?;
        let first = snapshot.seq;
        let work = Work::Compact { run_id: run_id.to_owned(), snapshot: Box::new(snapshot) };
        let position = self.shared.queue.push(work, 1)?;
        next.see(&self.shared, run_id, Seen { first, position, ..seen });
        drop(next);
        Ok(self.shared.queue.wait(position)?)
    }

    fn failed(&self) -> Option<String> {
        // In a forked child the lock of the queue may have been taken by a thread that is not there.
        self.check_process().ok()?;
        self.shared.queue.failure().map(|reason| reason.to_string())
    }

    fn close(&self) -> Result<(), StoreError> {
        self.check_process()?;
        self.shut();
        self.failed().map_or(Ok(()), |reason| Err(StoreError::Failed(reason)))
    }
}
