//! The only thread that writes: takes all waiting work, commits it in one transaction, and acknowledges it.

use super::files::{Files, Lost};
use super::read::{self, ReadError};
use super::retention;
use super::shared::Shared;
use crate::part::Content;
use crate::run::{Record, Setup, StopReason};
use crate::store::blob::{Apart, INLINE, split};
use crate::store::projection::{self, TicketChange};
use crate::store::row::{RunRow, TicketRow};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use thiserror::Error;

/// Records in one transaction.
const BATCH: usize = 256;
/// Runs with cached rows.
const LIVE: usize = 10_000;
/// Setups with known blobs.
const SETUPS: usize = 16;

/// One item of work for the writer.
#[derive(Debug)]
pub(super) enum Work {
    Append {
        run_id: Arc<str>,
        records: Vec<Arc<Record>>,
        contents: Vec<Content>,
    },
    Delete {
        run_ids: Vec<String>,
    },
    Compact {
        run_id: String,
        snapshot: Box<Record>,
    },
    /// Rewrite the file without deleted data. The reason of a failure is stored in `failed`.
    Scrub {
        failed: Arc<Mutex<Option<String>>>,
    },
}

/// Why a batch was not committed.
#[derive(Debug, Error)]
pub(super) enum WriteError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("a record has no JSON form: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("an event's JSON has no kind")]
    NoKind,
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl WriteError {
    /// The fault, the file, and the advice.
    fn describe(&self, path: &Path) -> String {
        let code = match self {
            Self::Sqlite(error) | Self::Read(ReadError::Sqlite(error)) => error.sqlite_error_code(),
            _ => None,
        };
        let lost = if let Self::Lost(lost) = self { Some(lost.advice()) } else { None };
        let advice = lost.unwrap_or(match code {
            Some(ErrorCode::DiskFull) => "the disk is full: free space",
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "another program keeps it locked: end that program's transaction"
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => "it has become read-only: make it writable",
            Some(ErrorCode::SystemIoFailure) => "the disk may be full or failing: free space or check it",
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "it is damaged: restore a backup",
            _ => "see to the cause",
        });
        let path = path.display();
        format!(
            "writing to {path} failed ({self}), and nothing more is written: {advice}, then open the store again and \
             resume its runs. What was durable before is there"
        )
    }
}

/// A run as the writer knows it.
struct Live {
    key: i64,
    row: RunRow,
    changed: bool,
}

/// The writer's own state.
pub(super) struct Writer {
    files: Files,
    connection: Connection,
    live: HashMap<Arc<str>, Live>,
    /// Runs with rows that have to be written.
    changed: Vec<Arc<str>>,
    /// The blobs of the setups last seen. A setup that is held, if only weakly, keeps its address.
    setups: Vec<(Weak<Setup>, i64)>,
}

/// Fails the store if the thread panics, so that no thread waits for it.
struct Watch<'a>(&'a Shared);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("the store's writer ended unexpectedly: this is a bug in callslip, please report it");
        }
    }
}

impl Writer {
    pub(super) fn new(connection: Connection, path: &Path) -> Self {
        Self { files: Files::new(path), connection, live: HashMap::new(), changed: Vec::new(), setups: Vec::new() }
    }

    /// Writes until the queue ends, and gives the connection back.
    pub(super) fn run(mut self, shared: &Shared) -> Connection {
        let watch = Watch(shared);
        while let Some((batch, position)) = shared.queue.take_batch(BATCH) {
            match self.write(batch) {
                Ok(()) => shared.committed(position),
                // After a failed write or sync, only the log on the disk has the true state: the file has to be
                // reopened, and unacknowledged records may be in it or not.
                Err(error) => {
                    let _ = self.connection.execute_batch("ROLLBACK");
                    self.fail(&error, shared);
                }
            }
        }
        // Closing writes the log into the file, which must not happen if one of them is damaged.
        if let Err(lost) = self.files.check(&self.connection)
            && lost.is_damage()
        {
            self.fail(&lost.into(), shared);
        }
        drop(watch);
        self.connection
    }

    fn fail(&self, error: &WriteError, shared: &Shared) {
        if matches!(error, WriteError::Lost(lost) if lost.is_damage()) {
            let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
        shared.fail(&error.describe(&shared.path));
    }

    fn write(&mut self, batch: Vec<Work>) -> Result<(), WriteError> {
        self.files.check(&self.connection)?;
        let mut scrubs = Vec::new();
        self.commit(batch, &mut scrubs)?;
        self.files.note()?;
        if !scrubs.is_empty() {
            let cause = match retention::scrub(&self.connection) {
                Ok(true) => None,
                Ok(false) => Some("another program reads an older state of it".to_owned()),
                Err(error) => Some(error.to_string()),
            };
            for failed in scrubs {
                failed.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&cause);
            }
            self.files.note()?;
        }
        Ok(())
    }

    fn commit(&mut self, batch: Vec<Work>, scrubs: &mut Vec<Arc<Mutex<Option<String>>>>) -> Result<(), WriteError> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        for work in batch {
            match work {
                Work::Append { run_id, records, contents } => {
                    self.append(&run_id, &records)?;
                    self.put_contents(&run_id, &contents)?;
                }
                Work::Delete { run_ids } => {
                    for run_id in &run_ids {
                        self.live.remove(&**run_id);
                    }
                    self.setups.clear();
                    retention::delete(&self.connection, &run_ids)?;
                }
                Work::Compact { run_id, snapshot } => self.compact(&run_id, &snapshot)?,
                Work::Scrub { failed } => scrubs.push(failed),
            }
        }
        for run_id in std::mem::take(&mut self.changed) {
            let Some(live) = self.live.get_mut(&run_id) else { continue };
            live.changed = false;
            update_run(&self.connection, live)?;
            if live.row.finished_at.is_some() {
                self.live.remove(&run_id);
            }
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        if self.live.len() > LIVE {
            self.live.clear();
        }
        Ok(())
    }

    fn append(&mut self, run_id: &Arc<str>, records: &[Arc<Record>]) -> Result<(), WriteError> {
        let Some(first) = records.first() else { return Ok(()) };
        let mut begins = false;
        if !self.live.contains_key(run_id) {
            let live = if let Some((key, row)) = read::run_by_id(&self.connection, run_id)? {
                Live { key, row, changed: false }
            } else {
                begins = true;
                let mut row = RunRow::new(run_id, first.at);
                row.add(first, true);
                // It stands in the first event.
                row.task = String::new();
                Live { key: insert_run(&self.connection, &row)?, row, changed: false }
            };
            self.live.insert(Arc::clone(run_id), live);
        }
        let Some(live) = self.live.get_mut(run_id) else { return Ok(()) };
        let key = live.key;
        for record in records.iter().skip(usize::from(begins)) {
            live.row.add(record, false);
        }
        if !live.changed {
            live.changed = true;
            self.changed.push(Arc::clone(run_id));
        }
        for record in records {
            self.insert_event(key, record)?;
            self.change_tickets(key, run_id, record, begins)?;
            begins = false;
        }
        Ok(())
    }

    fn insert_event(&mut self, run: i64, record: &Record) -> Result<(), WriteError> {
        let stored = split(&record.event)?;
        let blob = match stored.part {
            None => None,
            Some(Apart::Setup(setup)) => Some(self.setup_blob(setup)?),
            Some(Apart::Result(json)) => Some(put_blob(&self.connection, json)?),
        };
        let (kind, data) = stored.parts().ok_or(WriteError::NoKind)?;
        self.connection
            .prepare_cached("INSERT INTO event (run, seq, at, kind, data, blob) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute(params![run, record.seq.cast_signed(), record.at, kind, data, blob])?;
        Ok(())
    }

    /// Keeps the bytes of parts, each once, and that this run refers to them.
    fn put_contents(&self, run_id: &Arc<str>, contents: &[Content]) -> Result<(), WriteError> {
        let Some(live) = self.live.get(run_id).filter(|_| !contents.is_empty()) else { return Ok(()) };
        let put = "INSERT OR IGNORE INTO content (hash, data) VALUES (?1, ?2)";
        let refer = "INSERT OR IGNORE INTO run_content (run, content) SELECT ?1, key FROM content WHERE hash = ?2";
        for Content { sha256, data } in contents {
            self.connection.prepare_cached(put)?.execute(params![&**sha256, &**data])?;
            self.connection.prepare_cached(refer)?.execute(params![live.key, &**sha256])?;
        }
        Ok(())
    }

    fn setup_blob(&mut self, setup: &Arc<Setup>) -> Result<i64, WriteError> {
        let known = self.setups.iter().find(|(known, _)| std::ptr::eq(known.as_ptr(), Arc::as_ptr(setup)));
        if let Some((_, key)) = known {
            return Ok(*key);
        }
        let key = put_blob(&self.connection, &serde_json::to_string(setup)?)?;
        if self.setups.len() >= SETUPS {
            self.setups.remove(0);
        }
        self.setups.push((Arc::downgrade(setup), key));
        Ok(key)
    }

    fn change_tickets(&self, run: i64, run_id: &str, record: &Record, begins: bool) -> Result<(), WriteError> {
        match projection::tickets(run_id, record, begins) {
            TicketChange::None => Ok(()),
            TicketChange::Opened(row) => insert_ticket(&self.connection, run, &row, Some(record.seq)),
            TicketChange::Completed { ticket, outcome, untrusted, .. } => {
                let update = "UPDATE ticket SET completed_at = ?3, completed_seq = ?4, outcome = ?5, parked = 0, \
                     awaits_result = iif(awaits_result IS NULL, NULL, 0), untrusted = untrusted OR ?6 \
                     WHERE run = ?1 AND id = ?2 AND outcome IS NULL";
                self.connection.prepare_cached(update)?.execute(params![
                    run,
                    ticket.0,
                    record.at,
                    record.seq.cast_signed(),
                    outcome.word(),
                    untrusted,
                ])?;
                Ok(())
            }
            TicketChange::Filled { ticket, arguments, parked, is_free, untrusted } => {
                let update = "UPDATE ticket SET arguments = ?3, parked = ?4, awaits_result = iif(awaits_result IS NULL, NULL, ?5), \
                     untrusted = untrusted OR (?6 AND outcome IS NULL) WHERE run = ?1 AND id = ?2";
                let filled = params![run, ticket.0, arguments, parked, is_free, untrusted];
                self.connection.prepare_cached(update)?.execute(filled)?;
                Ok(())
            }
            TicketChange::Attempted { ticket, attempts } => {
                let update = "UPDATE ticket SET attempts = ?3 WHERE run = ?1 AND id = ?2";
                self.connection.prepare_cached(update)?.execute(params![run, ticket.0, attempts])?;
                Ok(())
            }
            TicketChange::ApprovalChecked { ticket, parked, reason } => {
                let update = "UPDATE ticket SET parked = ?3, approval_reason = ?4, \
                     awaits_result = iif(awaits_result IS NULL, NULL, NOT ?3) WHERE run = ?1 AND id = ?2";
                self.connection.prepare_cached(update)?.execute(params![run, ticket.0, parked, reason])?;
                Ok(())
            }
            TicketChange::Approved { ticket, arguments } => {
                let update = "UPDATE ticket SET parked = 0, arguments = coalesce(?3, arguments), \
                     awaits_result = iif(awaits_result IS NULL, NULL, 1) \
                     WHERE run = ?1 AND id = ?2";
                self.connection.prepare_cached(update)?.execute(params![run, ticket.0, arguments])?;
                Ok(())
            }
            TicketChange::Pending { ticket, key, external } => {
                let update = "UPDATE ticket SET awaits_result = 1, answer_key = ?3, external = ?4 \
                     WHERE run = ?1 AND id = ?2";
                self.connection.prepare_cached(update)?.execute(params![run, ticket.0, key, external])?;
                Ok(())
            }
            TicketChange::All(rows) => {
                for row in rows {
                    insert_ticket(&self.connection, run, &row, None)?;
                    keep_texts(&self.connection, run, &row)?;
                }
                Ok(())
            }
        }
    }

    /// Moves ticket texts from the snapshot's events into the tickets' rows, then deletes the events.
    fn compact(&mut self, run_id: &str, snapshot: &Record) -> Result<(), WriteError> {
        let Some((run, _)) = read::run_by_id(&self.connection, run_id)? else { return Ok(()) };
        for row in read::tickets_up_to(&self.connection, run, snapshot.seq)? {
            keep_texts(&self.connection, run, &row)?;
        }
        self.setups.clear();
        retention::forget_events(&self.connection, run, snapshot.seq)?;
        self.insert_event(run, snapshot)?;
        retention::sweep(&self.connection)?;
        Ok(())
    }
}

fn insert_run(connection: &Connection, row: &RunRow) -> Result<i64, WriteError> {
    // One that was imported may have the key of another.
    let insert = "INSERT INTO run (id, agent, protocol, parent, parent_ticket, stop_reason, error, turns, violations, \
         input_tokens, output_tokens, cached_tokens, cost, started_at, updated_at, finished_at, owner, caller_key) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
         CASE WHEN NOT EXISTS (SELECT 1 FROM run AS other WHERE coalesce(other.owner, '') = coalesce(?17, '') \
         AND other.agent = ?2 AND other.caller_key = ?18) THEN ?18 END)";
    connection.prepare_cached(insert)?.execute(params![
        row.run_id,
        row.agent,
        row.protocol,
        row.parent.as_ref().map(|parent| &parent.run_id),
        row.parent.as_ref().map(|parent| parent.ticket.0),
        row.stop_reason.map(StopReason::name),
        row.error,
        row.turns,
        row.violations,
        row.input_tokens.cast_signed(),
        row.output_tokens.cast_signed(),
        row.cached_tokens.cast_signed(),
        row.cost,
        row.started_at,
        row.updated_at,
        row.finished_at,
        row.owner,
        row.key,
    ])?;
    Ok(connection.last_insert_rowid())
}

fn update_run(connection: &Connection, live: &Live) -> Result<(), WriteError> {
    let row = &live.row;
    let update = "UPDATE run SET stop_reason = ?2, error = ?3, turns = ?4, violations = ?5, input_tokens = ?6, \
         output_tokens = ?7, cached_tokens = ?8, cost = ?9, updated_at = ?10, finished_at = ?11 WHERE key = ?1";
    connection.prepare_cached(update)?.execute(params![
        live.key,
        row.stop_reason.map(StopReason::name),
        row.error,
        row.turns,
        row.violations,
        row.input_tokens.cast_signed(),
        row.output_tokens.cast_signed(),
        row.cached_tokens.cast_signed(),
        row.cost,
        row.updated_at,
        row.finished_at,
    ])?;
    Ok(())
}

fn insert_ticket(connection: &Connection, run: i64, row: &TicketRow, seq: Option<u64>) -> Result<(), WriteError> {
    let insert = "INSERT INTO ticket (run, id, kind, tool, description, turn, call_id, opened_at, opened_seq, \
         completed_at, outcome, parked, attempts, approval_reason, awaits_result, external, answer_key, untrusted) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18) \
         ON CONFLICT DO NOTHING";
    connection.prepare_cached(insert)?.execute(params![
        run,
        row.ticket.0,
        row.kind.as_str(),
        row.tool,
        row.description,
        row.turn,
        row.call_id,
        row.opened_at,
        seq.map(u64::cast_signed),
        row.completed_at,
        row.outcome,
        row.parked,
        row.attempts,
        row.approval_reason,
        row.awaits_result,
        row.external,
        row.answer_key,
        row.untrusted,
    ])?;
    Ok(())
}

/// Puts arguments and result, which stood in events, into the ticket itself.
fn keep_texts(connection: &Connection, run: i64, row: &TicketRow) -> Result<(), WriteError> {
    let large = row.text.as_deref().filter(|text| text.len() > INLINE && row.outcome.as_deref() == Some("ok"));
    let blob = large.map(|text| put_blob(connection, text)).transpose()?;
    let text = row.text.as_ref().filter(|_| blob.is_none());
    let parts = (!row.parts.is_empty()).then(|| serde_json::to_string(&row.parts)).transpose()?;
    let update = "UPDATE ticket SET arguments = ?3, text = ?4, blob = ?5, parts = ?7, opened_seq = NULL, \
         completed_seq = CASE WHEN ?6 THEN NULL ELSE completed_seq END WHERE run = ?1 AND id = ?2";
    connection.prepare_cached(update)?.execute(params![
        run,
        row.ticket.0,
        row.arguments,
        text,
        blob,
        row.text.is_some(),
        parts
    ])?;
    Ok(())
}

fn put_blob(connection: &Connection, data: &str) -> Result<i64, WriteError> {
    let hash = Sha256::digest(data);
    let find = "SELECT key FROM blob WHERE hash = ?1";
    let known = connection.prepare_cached(find)?.query_row([hash.as_slice()], |row| row.get(0)).optional()?;
    if let Some(key) = known {
        return Ok(key);
    }
    connection
        .prepare_cached("INSERT INTO blob (hash, data) VALUES (?1, ?2)")?
        .execute(params![hash.as_slice(), data])?;
    Ok(connection.last_insert_rowid())
}
