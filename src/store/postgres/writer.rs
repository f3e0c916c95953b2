//! The one thread that writes: takes all that waits, writes it with one statement, and says so. A run that another
//! worker holds is lost, the others of the batch are written. While the server is away, it waits.

use super::batch::{Batch, Part, WRITE};
use super::lease::Leased;
use super::link::{ANSWER, Connected, Failure, Link, PAUSE};
use super::read;
use super::shared::{Shared, lock};
use crate::run::Record;
use crate::store::row::RunRow;
use crate::store::{StoreError, With};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Records in one statement.
const BATCH: usize = 256;
/// How long a closed store goes on trying to write while the server is away.
const CLOSING: Duration = Duration::from_secs(5);
/// Epochs that are drawn at once, for new runs.
const EPOCHS: i64 = 64;

/// What is handed to the writer.
#[derive(Debug)]
pub(super) enum Work {
    Append {
        lease: Arc<Leased>,
        records: Vec<Arc<Record>>,
        with: With,
    },
    /// The driver of a run has left it.
    Leave {
        run_id: Arc<str>,
        epoch: i64,
    },
}

pub(super) struct Writer {
    link: Link,
    epochs: Vec<i64>,
    /// When the store that is closed gives up, once the server was away after that.
    gives_up: Option<Instant>,
    /// Since when the server has been away.
    away_since: Option<Instant>,
}

impl Writer {
    pub(super) fn new(link: Link) -> Self {
        Self { link, epochs: Vec::new(), gives_up: None, away_since: None }
    }

    /// Writes until the queue ends.
    pub(super) fn run(mut self, shared: &Shared) {
        let watch = Watch(shared);
        while let Some((batch, position)) = shared.queue.take_batch(BATCH) {
            for (run_id, epoch) in self.write_all(batch, shared) {
                // Once: a lease that is not given up ends by itself.
                let is_left = self.gives_up.is_none() && leave(&mut self.link, &run_id, epoch).is_ok();
                if !is_left && shared.is_closed() {
                    self.gives_up.get_or_insert_with(Instant::now);
                }
            }
            shared.done(position);
        }
        drop(watch);
        self.link.close();
    }

    /// Returns what is to be left afterwards.
    fn write_all(&mut self, batch: Vec<Work>, shared: &Shared) -> Vec<(Arc<str>, i64)> {
        let mut leaves = Vec::new();
        let mut positions: HashMap<Arc<str>, usize> = HashMap::new();
        let mut given: Vec<Given> = Vec::new();
        for work in batch {
            match work {
                Work::Leave { run_id, epoch } => leaves.push((run_id, epoch)),
                Work::Append { lease, records, with } => {
                    let position = *positions.entry(lease.run_id_shared()).or_insert(given.len());
                    if position == given.len() {
                        given.push(Given { lease: Arc::clone(&lease), records: Vec::new(), with: With::default() });
                    }
                    let Some(present) = given.get_mut(position) else { continue };
                    if Arc::ptr_eq(&present.lease, &lease) {
                        present.add(records, with);
                    } else {
                        // Claimed anew within one batch: what was before is written first.
                        let before = std::mem::replace(present, Given { lease, records, with });
                        self.write(vec![before], shared);
                    }
                }
            }
        }
        self.write(given, shared);
        leaves
    }

    fn write(&mut self, given: Vec<Given>, shared: &Shared) {
        let mut left: Vec<Given> = given.into_iter().filter(|given| given.lease.lost().is_none()).collect();
        while !left.is_empty() {
            match self.write_once(&left, shared) {
                Ok(()) => {
                    self.away_since = None;
                    return;
                }
                Err(Failure::Again(_)) => {}
                Err(Failure::Unreachable(cause)) => self.wait(&left, shared, cause),
                Err(failure) if left.len() == 1 => {
                    let error = shared.error(failure);
                    for given in &left {
                        given.lease.lose(error.clone());
                    }
                }
                // One of them can't be written; which one, each by itself will show.
                Err(_) => {
                    for given in left {
                        self.write(vec![given], shared);
                    }
                    return;
                }
            }
            left.retain(|given| given.lease.lost().is_none());
        }
    }

    /// Waits for a server that is away. A run of which nothing is in the database ends after as long as a lease, which
    /// other runs lose by then; all end when the store was closed.
    fn wait(&mut self, given: &[Given], shared: &Shared, cause: String) {
        let away_since = *self.away_since.get_or_insert_with(Instant::now);
        if away_since.elapsed() >= shared.lease() {
            let error = shared.error(Failure::Unreachable(cause.clone()));
            for given in given.iter().filter(|given| !given.lease.root().is_in_database()) {
                given.lease.lose(error.clone());
            }
            shared.wake();
        }
        if shared.is_closed() {
            let gives_up = *self.gives_up.get_or_insert_with(|| Instant::now() + CLOSING);
            if Instant::now() >= gives_up {
                let error = shared.error(Failure::Unreachable(cause));
                shared.fail(&format!("the last events of {} runs are not in the database: {error}", given.len()));
                for given in given {
                    given.lease.lose(error.clone());
                }
                return;
            }
        }
        std::thread::sleep(PAUSE);
    }

    fn write_once(&mut self, given: &[Given], shared: &Shared) -> Result<(), Failure> {
        let mut parts = Vec::with_capacity(given.len());
        for given in given {
            parts.push(self.part(given)?);
        }
        let batch =
            Batch::new(&parts).map_err(|error| Failure::Refused(format!("a record has no JSON form: {error}")))?;
        let lease = shared.lease().as_secs_f64();
        let written = self.link.call(ANSWER, async |connected| send(connected, &batch, lease).await)?;
        shared.count_commit();
        for part in parts {
            if written.iter().any(|id| id == part.lease.run_id()) {
                part.lease.written(part.records.last().map_or(part.expected, |last| last.seq + 1));
                *lock(&part.lease.row) = Some(part.row);
            } else {
                part.lease.lose(StoreError::TakenOver { run_id: part.lease.run_id().to_owned() });
            }
        }
        Ok(())
    }

    fn part(&mut self, given: &Given) -> Result<Part, Failure> {
        let lease = Arc::clone(&given.lease);
        let epoch = lease.epoch_or(|| self.draw_epoch())?;
        let expected = lease.written_next();
        let (is_new, expected) = if lease.is_in_database() { (false, expected) } else { (true, 0) };
        let known = lock(&lease.row).clone();
        let known = match known {
            Some(row) => Some(row),
            None if is_new => None,
            None => self.link.call(ANSWER, async |connected| read::run_by_id(connected, lease.run_id()).await)?,
        };
        let first_at = given.records.first().map_or(0.0, |first| first.at);
        let mut begins = known.is_none();
        let mut row = known.unwrap_or_else(|| RunRow::new(lease.run_id(), first_at));
        for record in &given.records {
            row.add(record, begins);
            begins = false;
        }
        let (contents, taken) = (given.with.contents.clone(), given.with.taken.clone());
        Ok(Part { lease, epoch, is_new, expected, records: given.records.clone(), contents, taken, row })
    }

    fn draw_epoch(&mut self) -> Result<i64, Failure> {
        if let Some(epoch) = self.epochs.pop() {
            return Ok(epoch);
        }
        let sql = "SELECT nextval('callslip.epoch') FROM generate_series(1, $1::bigint)";
        let rows = self.link.call(ANSWER, async |connected| connected.query(sql, &[&EPOCHS]).await)?;
        self.epochs = rows.iter().map(|row| row.get(0)).collect();
        self.epochs.pop().ok_or_else(|| Failure::Refused("the sequence of epochs is empty".to_owned()))
    }
}

/// Gives up the lease of a run.
pub(super) fn leave(link: &mut Link, run_id: &str, epoch: i64) -> Result<(), Failure> {
    let sql = "SELECT callslip.leave($1, $2)";
    link.call_again(PAUSE * 20, async |connected| connected.query(sql, &[&run_id, &epoch]).await).map(drop)
}

/// Appends of one run.
struct Given {
    lease: Arc<Leased>,
    records: Vec<Arc<Record>>,
    with: With,
}

impl Given {
    fn add(&mut self, records: Vec<Arc<Record>>, with: With) {
        self.records.extend(records);
        self.with.contents.extend(with.contents);
        self.with.taken.extend(with.taken);
    }
}

async fn send(connected: &mut Connected, batch: &Batch, lease: f64) -> Result<Vec<String>, tokio_postgres::Error> {
    let event_runs: Vec<&str> = batch.event_runs.iter().map(|id| &**id).collect();
    let content_runs: Vec<&str> = batch.content_runs.iter().map(|id| &**id).collect();
    let rows = connected
        .query(
            WRITE,
            &[
                &batch.runs,
                &lease,
                &event_runs,
                &batch.seqs,
                &batch.ats,
                &batch.kinds,
                &batch.datas,
                &batch.event_blobs,
                &batch.blob_hashes,
                &batch.blobs,
                &content_runs,
                &batch.content_hashes,
                &batch.new_tickets,
                &batch.patches,
                &batch.taken,
            ],
        )
        .await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Says that the writer has panicked, which no code here does: nobody waits for a thread that is gone.
struct Watch<'a>(&'a Shared);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("the store's writer ended unexpectedly: this is a bug in callslip, please report it");
        }
    }
}
