//! The logs of runs in a `PostgreSQL` database, which many processes share.
//!
//! One process drives a run at a time: it holds the run's lease, and each of its writes carries the epoch of its claim,
//! which the database compares. So a process that lost a run, and does not know it yet, writes nothing more of it.

mod address;
mod batch;
mod beat;
mod below;
mod fleet;
mod lease;
mod link;
mod listen;
mod open;
mod query;
mod read;
mod retention;
mod schema;
mod shared;
mod text;
mod tls;
mod writer;

pub use below::Below;
pub use fleet::{Claimed, Message, Rested, Submit, Told, Worker};
pub use listen::{Listen, Notice};
pub use query::{JsonTable, SqlParameter};
pub use schema::Migration;

use super::claim::{Claim, Claims};
use super::memory::conflict;
use super::row::{RunFilter, RunRow, TicketFilter, TicketRow};
use super::{Position, RunKey, Store, StoreError, Wake, With, fence};
use crate::run::Record;
use crate::ticket::TicketId;
use lease::Leased;
use link::{Connected, Failure, Link, Parameters};
use shared::{Shared, lock};
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use text::encode;
use tokio_postgres::{Error, Row};
use writer::Work;

/// The logs of runs in a database that many processes share.
pub struct PostgresStore {
    /// The process that opened it.
    pid: u32,
    claims: Arc<Claims>,
    shared: Arc<Shared>,
    reader: Mutex<Option<Link>>,
    /// For queries of users, opened with the first one: they may take long, and runs go on meanwhile.
    querier: Mutex<Option<Link>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    started: open::Started,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("PostgresStore");
        shown.field("address", &self.shared.address.shown()).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// The address of the database, without the password.
    pub fn address(&self) -> &str {
        self.shared.address.shown()
    }

    /// Transactions with records that were committed since it was opened.
    pub fn commits(&self) -> u64 {
        self.shared.commits()
    }

    /// How long a run stays with a driver that says nothing.
    pub fn lease(&self) -> Duration {
        self.shared.lease()
    }

    /// Sets that, for the leases from now on.
    pub fn set_lease(&self, lease: Duration) {
        self.shared.set_lease(lease);
    }

    /// Sets how long a worker keeps a run that makes no progress; `None` for ever.
    pub fn set_stuck(&self, stuck: Option<Duration>) {
        self.shared.set_stuck(stuck);
    }

    /// A tool of a run reports that it makes progress.
    pub fn report(&self, run_id: &str) {
        if let Some(lease) = self.shared.held_or_reserved(run_id) {
            lease.progress();
        }
    }

    /// Seconds by which the database's clock is ahead of this machine's.
    pub fn clock_offset(&self) -> f64 {
        self.shared.clock_offset()
    }

    /// From now on, tells what happens in other processes, for as long as someone else holds the listener.
    ///
    /// # Errors
    /// The store is closed, or no thread can be started.
    pub fn listen(&self, listener: Weak<dyn Listen>) -> Result<(), StoreError> {
        self.check_process()?;
        self.shared.notices.subscribe(listener);
        self.start_listening()
    }

    fn check_process(&self) -> Result<(), StoreError> {
        if self.pid == std::process::id() {
            return Ok(());
        }
        Err(StoreError::ForkedShared { server: self.shared.address.shown().to_owned(), owner: self.pid })
    }

    /// Waits until the database has everything that was handed in.
    fn settle(&self) -> Result<(), StoreError> {
        self.check_process()?;
        let queue = &self.shared.queue;
        Ok(queue.wait(queue.pushed())?)
    }

    /// Asks the database something, after all that was handed in.
    fn read<T>(&self, read: impl AsyncFnMut(&mut Connected) -> Result<T, Error>) -> Result<T, StoreError> {
        self.settle()?;
        self.ask(read)
    }

    /// Asks the database something.
    fn ask<T>(&self, mut ask: impl AsyncFnMut(&mut Connected) -> Result<T, Error>) -> Result<T, StoreError> {
        self.reach(|link| link.call_again(link::ANSWER, &mut ask))
    }

    /// Has the database do something that must not be done twice; see `Link::once`.
    fn once(&self, sql: &'static str, parameters: Parameters<'_>) -> Result<Vec<Row>, StoreError> {
        self.reach(|link| link.once(link::ANSWER, sql, parameters))
    }

    fn reach<T>(&self, mut call: impl FnMut(&mut Link) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.check_process()?;
        let mut reader = lock(&self.reader);
        let link = reader.as_mut().ok_or(StoreError::Closed)?;
        self.call(link, &mut call)
    }

    fn call<T>(&self, link: &mut Link, mut call: impl FnMut(&mut Link) -> Result<T, Failure>) -> Result<T, StoreError> {
        let done = match call(link) {
            // The connection had broken while nobody used it.
            Err(Failure::Unreachable(_)) => call(link),
            done => done,
        };
        done.map_err(|failure| failure.of(&self.shared.address))
    }

    /// Tries something for a run that is held here, while the database is away: for as long as the run is held.
    fn keep_trying<T>(
        &self,
        lease: Option<&Leased>,
        mut once: impl FnMut() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        loop {
            match (once(), lease) {
                (Err(StoreError::Unreachable { .. }), Some(lease)) if lease.lost().is_none() => {
                    self.shared.pause(link::PAUSE);
                    if self.shared.is_closed() {
                        return Err(StoreError::Closed);
                    }
                }
                (done, _) => return done,
            }
        }
    }

    /// The lease of a run that nobody drives: that of a worker's claim, or one that is taken now.
    fn lease_of(&self, run_id: &str) -> Result<Arc<Leased>, StoreError> {
        if let Some(reserved) = self.shared.reserved(run_id) {
            return Ok(reserved);
        }
        let taken = self.take(run_id)?;
        Ok(taken.map_or_else(|| Leased::new(&self.shared, run_id, None), |(lease, _)| lease))
    }

    /// Leases one run that nobody drives; `None` if there is none of this id.
    fn take(&self, run_id: &str) -> Result<Option<(Arc<Leased>, Row)>, StoreError> {
        let lease = self.shared.lease().as_secs_f64();
        let sql = "SELECT taken, run_holder, run_epoch, run_first, run_next, run_agent, run_given, run_over, run_shape, \
             run_above, pg_current_xact_id()::text \
             FROM callslip.take($1, $2)";
        // A driver of this process that has just left the run may not have said so yet.
        for last in [false, true] {
            self.settle()?;
            let Some(row) = self.once(sql, &[&run_id, &lease])?.into_iter().next() else { return Ok(None) };
            let is_taken: Option<bool> = row.get("taken");
            let is_taken = is_taken.ok_or_else(|| StoreError::NotYet { run_id: run_id.to_owned() })?;
            if is_taken {
                let lease = Leased::held(
                    &self.shared,
                    run_id,
                    row.get("run_epoch"),
                    row.get("run_first"),
                    row.get("run_next"),
                    None,
                );
                return Ok(Some((lease, row)));
            }
            if let Some(holder) = row.get("run_holder") {
                return Err(StoreError::Below { run_id: run_id.to_owned(), holder });
            }
            if last {
                break;
            }
        }
        Err(StoreError::Elsewhere { run_id: run_id.to_owned() })
    }

    /// The lease of a run whose driver drives the one above too.
    fn lease_below(&self, run_id: &str, above: &Arc<Leased>) -> Result<Arc<Leased>, StoreError> {
        let root = above.root();
        let Some(epoch) = root.epoch() else { return Ok(Leased::new(&self.shared, run_id, Some(root))) };
        let sql = "SELECT covered, run_first, run_next FROM callslip.cover($1, $2, $3)";
        let rows = self.keep_trying(Some(&root), || {
            self.read(async |connected| connected.query(sql, &[&run_id, &root.run_id(), &epoch]).await)
        })?;
        match rows.first() {
            None => Ok(Leased::new(&self.shared, run_id, Some(root))),
            Some(row) if row.get("covered") => {
                Ok(Leased::held(&self.shared, run_id, epoch, row.get("run_first"), row.get("run_next"), Some(root)))
            }
            Some(_) => Err(StoreError::Elsewhere { run_id: run_id.to_owned() }),
        }
    }

    /// The lease of a new run that has a key now.
    fn begin_with(&self, run_id: &str, key: &RunKey) -> Result<Arc<Leased>, StoreError> {
        let (agent, owner, key) = keyed(key);
        let lease = self.shared.lease().as_secs_f64();
        let sql = "SELECT run_id, run_epoch, pg_current_xact_id()::text FROM callslip.begin_with($1, $2, $3, $4, $5)";
        let rows = self.once(sql, &[&run_id, &agent, &owner, &key, &lease])?;
        let (other, epoch): (String, Option<i64>) =
            rows.first().map(|row| (row.get("run_id"), row.get("run_epoch"))).unwrap_or_default();
        match epoch {
            Some(epoch) => Ok(Leased::held(&self.shared, run_id, epoch, 0, 0, None)),
            None => Err(StoreError::KeyTaken { run_id: other }),
        }
    }

    fn leased(&self, claim: Claim, lease: Arc<Leased>) -> Result<Claim, StoreError> {
        self.shared.hold(&lease);
        self.start_beating()?;
        Ok(claim.leased(lease))
    }
}

/// The agent, the owner and the key, as they are written in the database.
fn keyed(key: &RunKey) -> (Cow<'_, str>, Option<Cow<'_, str>>, Cow<'_, str>) {
    (encode(&key.agent), key.owner.as_deref().map(encode), encode(&key.key))
}

impl Store for PostgresStore {
    fn claim(&self, run_id: &str, above: Option<&str>) -> Result<Claim, StoreError> {
        self.check_process()?;
        let claim = self.claims.claim(run_id)?;
        let above = above.and_then(|above| self.shared.held_or_reserved(above));
        let lease = above.map_or_else(|| self.lease_of(run_id), |above| self.lease_below(run_id, &above))?;
        self.leased(claim, lease)
    }

    fn claim_new(&self, run_id: &str, above: Option<&str>) -> Result<Claim, StoreError> {
        self.check_process()?;
        let claim = self.claims.claim(run_id)?;
        let reserved = self.shared.reserved(run_id);
        let above = above.and_then(|above| self.shared.held(above)).map(|above| above.root());
        let lease = reserved.unwrap_or_else(|| Leased::new(&self.shared, run_id, above));
        self.leased(claim, lease)
    }

    fn claim_key(&self, run_id: &str, key: &RunKey) -> Result<Claim, StoreError> {
        if self.shared.reserved(run_id).is_some() {
            // It was submitted with its key.
            return self.claim_new(run_id, None);
        }
        // It may be in the database, if this process has just let go of it.
        self.settle()?;
        let claim = self.claims.claim_key(run_id, key)?;
        let lease = self.begin_with(run_id, key)?;
        self.leased(claim, lease)
    }

    fn run_with(&self, key: &RunKey) -> Result<Option<String>, StoreError> {
        if let Some(run_id) = self.claims.run_with(key) {
            return Ok(Some(run_id));
        }
        let (agent, owner, key) = keyed(key);
        let sql = "SELECT callslip.run_with($1, $2, $3)";
        let rows = self.read(async |connected| connected.query(sql, &[&agent, &owner, &key]).await)?;
        Ok(rows.first().and_then(|row| row.get(0)))
    }

    fn ticket_with(&self, key: &RunKey) -> Result<Option<(String, TicketId)>, StoreError> {
        let (agent, owner, key) = keyed(key);
        self.read(async |connected| read::ticket_with(connected, owner.as_deref(), &agent, &key).await)
    }

    fn is_claimed(&self, run_id: &str) -> bool {
        self.claims.has(run_id)
    }

    fn append_with(&self, run_id: &str, records: Vec<Arc<Record>>, with: With) -> Result<Position, StoreError> {
        self.check_process()?;
        let queue = &self.shared.queue;
        if records.is_empty() && with.taken.is_empty() {
            return Ok(Position(queue.pushed()));
        }
        let lease = self.shared.held(run_id).ok_or_else(|| StoreError::TakenOver { run_id: run_id.to_owned() })?;
        if let Some(lost) = lease.lost() {
            return Err(lost);
        }
        // The order of a run's records in the queue is that in which they were checked.
        let mut place = lease.place();
        if records.is_empty() && place.next == 0 {
            return Ok(Position(queue.pushed()));
        }
        let begin = if place.is_new { fence::begin(&records) } else { place.next };
        let end = fence::check(begin, &records).map_err(|error| conflict(run_id, error))?;
        let weight = records.len().max(1);
        let work = Work::Append { lease: Arc::clone(&lease), records, with };
        let position = queue.push(work, weight)?;
        lease.progress();
        if place.is_new {
            place.first = begin;
            place.is_new = false;
        }
        place.next = end;
        Ok(Position(position))
    }

    fn wait(&self, position: Position, timeout: Duration) -> Result<bool, StoreError> {
        self.check_process()?;
        Ok(self.shared.queue.wait_at_most(position.0, timeout)?)
    }

    fn durable(&self) -> Result<Position, StoreError> {
        self.check_process()?;
        let acknowledged = self.shared.queue.acknowledged();
        Ok(Position(acknowledged.map_err(|reason| StoreError::Failed(reason.to_string()))?))
    }

    fn subscribe(&self, wake: Weak<dyn Wake>) {
        self.shared.subscribe(wake);
    }

    fn load(&self, run_id: &str) -> Result<Vec<Arc<Record>>, StoreError> {
        let mut records = self.records_since(run_id, 0)?;
        if records.is_empty() {
            if let Some((agent, task)) = self.queued(run_id)? {
                return Err(StoreError::NotBegun { run_id: run_id.to_owned(), agent, task });
            }
            // It may have begun just now.
            records = self.records_since(run_id, 0)?;
        }
        if records.is_empty() { Err(StoreError::NoSuchRun { run_id: run_id.to_owned() }) } else { Ok(records) }
    }

    fn exists(&self, run_id: &str) -> Result<bool, StoreError> {
        let sql = "SELECT FROM callslip.run WHERE id = $1 AND next > 0";
        Ok(!self.read(async |connected| connected.query(sql, &[&run_id]).await)?.is_empty())
    }

    fn content(&self, run_id: &str, sha256: &str) -> Result<Option<Arc<[u8]>>, StoreError> {
        let sql = "SELECT data FROM callslip.blob JOIN callslip.run_content USING (hash) \
             WHERE run = (SELECT key FROM callslip.run WHERE id = $1) AND hash = decode($2, 'hex')";
        let rows = self.read(async |connected| connected.query(sql, &[&run_id, &sha256]).await)?;
        Ok(rows.first().map(|row| row.get::<_, &[u8]>(0).into()))
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        self.read(async |connected| read::runs(connected, filter).await)
    }

    fn tickets(&self, filter: &TicketFilter) -> Result<Vec<TicketRow>, StoreError> {
        let rows = self.read(async |connected| read::tickets(connected, filter).await)?;
        rows.into_iter().map(read::Ticket::finish).collect()
    }

    fn delete(&self, run_ids: &[String]) -> Result<usize, StoreError> {
        let doomed = self.read(async |connected| retention::trees(connected, run_ids).await)?;
        let claims = self.claims.claim_all(doomed.iter().map(String::as_str))?;
        self.remove(&doomed, &claims)
    }

    fn prune(&self, older_than: Option<f64>, keep: Option<usize>) -> Result<usize, StoreError> {
        if older_than.is_none() && keep.is_none() {
            return Ok(0);
        }
        let keep = keep.unwrap_or(0);
        let roots = self.read(async |connected| retention::roots_to_prune(connected, older_than, keep).await)?;
        let mut removed = 0;
        for root in roots {
            let tree = self.read(async |connected| retention::trees(connected, std::slice::from_ref(&root)).await)?;
            if let Ok(claims) = self.claims.claim_all(tree.iter().map(String::as_str)) {
                match self.remove(&tree, &claims) {
                    Ok(runs) => removed += runs,
                    Err(StoreError::Elsewhere { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        self.sweep()?;
        Ok(removed)
    }

    fn erase(&self, owner: &str) -> Result<Vec<String>, StoreError> {
        let roots = self.read(async |connected| retention::runs_of(connected, owner).await)?;
        let doomed = self.read(async |connected| retention::trees(connected, &roots).await)?;
        let claims = self.claims.claim_all(doomed.iter().map(String::as_str))?;
        self.remove(&doomed, &claims)?;
        self.read(async |connected| retention::scrub(connected).await)?;
        Ok(doomed)
    }

    fn sweep(&self) -> Result<(), StoreError> {
        self.read(async |connected| retention::sweep(connected).await)
    }

    fn compact(&self, run_id: &str, snapshot: Record) -> Result<(), StoreError> {
        self.settle()?;
        let lease = self.shared.held(run_id);
        let lease = lease.filter(|lease| !lease.place().is_new);
        let lease = lease.ok_or_else(|| StoreError::NoSuchRun { run_id: run_id.to_owned() })?;
        let mut place = lease.place();
        fence::check_snapshot(place.first, place.next, snapshot.seq).map_err(|error| conflict(run_id, error))?;
        let epoch = lease.epoch().unwrap_or_default();
        let tickets = self.tickets_up_to(run_id, snapshot.seq)?;
        let compacting = retention::Compacting::new(&snapshot, &tickets)?;
        let done = self.ask(async |connected| compacting.write(connected, run_id, epoch).await)?;
        if !done {
            return Err(StoreError::TakenOver { run_id: run_id.to_owned() });
        }
        place.first = snapshot.seq;
        Ok(())
    }

    fn failed(&self) -> Option<String> {
        self.check_process().ok()?;
        self.shared.queue.failure().map(|reason| reason.to_string())
    }

    fn close(&self) -> Result<(), StoreError> {
        self.check_process()?;
        self.shut();
        self.failed().map_or(Ok(()), |reason| Err(StoreError::Failed(reason)))
    }
}
