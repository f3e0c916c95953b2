//! Reads rows as records, and as the rows of listings.

use crate::run::{Event, Parent, Record, StopReason};
use crate::store::blob;
use crate::store::row::{RunFilter, RunRow, RunStatus, TicketFilter, TicketRow};
use crate::store::ticket_texts::TicketTexts;
use crate::store::{RunKey, StoreError};
use crate::ticket::{Status, TicketId, TicketKind};
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params, params_from_iter};
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// Why something was not read.
#[derive(Debug, Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("event {seq} of run {run_id} can't be read: {cause}")]
    Record { run_id: String, seq: u64, cause: String },
}

impl ReadError {
    pub(super) fn of(self, path: &Path) -> StoreError {
        match self {
            Self::Sqlite(error) => {
                let (path, cause) = (path.to_owned(), error.to_string());
                match error.sqlite_error_code() {
                    Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged { path, cause },
                    _ => StoreError::Read { path, cause },
                }
            }
            Self::Record { run_id, seq, cause } => StoreError::Unreadable { run_id, seq, cause },
        }
    }
}

/// The positions of a run's first record and of its next one.
pub(super) fn bounds(connection: &Connection, run_id: &str) -> rusqlite::Result<Option<(u64, u64)>> {
    let select = "SELECT min(seq), max(seq) FROM event WHERE run = (SELECT key FROM run WHERE id = ?1)";
    let bounds: (Option<i64>, Option<i64>) =
        connection.prepare_cached(select)?.query_row([run_id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(bounds.0.zip(bounds.1).map(|(first, last)| (first.cast_unsigned(), last.cast_unsigned() + 1)))
}

/// The log of a run; empty if there is none.
pub(super) fn load(connection: &Connection, run_id: &str) -> Result<Vec<Arc<Record>>, ReadError> {
    let select = "SELECT seq, at, kind, event.data, blob.data FROM event \
         LEFT JOIN blob ON blob.key = event.blob WHERE run = (SELECT key FROM run WHERE id = ?1) ORDER BY seq";
    let mut select = connection.prepare_cached(select)?;
    let mut rows = select.query([run_id])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let seq = row.get::<_, i64>(0)?.cast_unsigned();
        let unreadable = |cause: String| ReadError::Record { run_id: run_id.to_owned(), seq, cause };
        let part = row.get_ref(4)?.as_str_or_null().map_err(rusqlite::Error::from)?;
        let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        let json = blob::join(text(2)?, text(3)?, part);
        let json = json.ok_or_else(|| unreadable("what was kept apart has no place in it".to_owned()))?;
        let event: Event = serde_json::from_str(&json).map_err(|error| unreadable(error.to_string()))?;
        records.push(Arc::new(Record { seq, at: row.get(1)?, event }));
    }
    Ok(records)
}

/// The bytes of a part of a run.
pub(super) fn content(connection: &Connection, run_id: &str, sha256: &str) -> rusqlite::Result<Option<Arc<[u8]>>> {
    let select = "SELECT data FROM content JOIN run_content ON content = content.key \
         WHERE run = (SELECT key FROM run WHERE id = ?1) AND hash = ?2";
    let mut select = connection.prepare_cached(select)?;
    select.query_row([run_id, sha256], |row| Ok(row.get_ref(0)?.as_blob()?.into())).optional()
}

const RUN: &str = "id, agent, protocol, parent, parent_ticket, stop_reason, error, turns, violations, input_tokens, \
     output_tokens, cached_tokens, cost, started_at, updated_at, finished_at, owner, caller_key";

/// A run without its task.
fn run(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let parent: Option<String> = row.get("parent")?;
    let ticket: Option<u32> = row.get("parent_ticket")?;
    let stop_reason: Option<String> = row.get("stop_reason")?;
    let stop_reason = stop_reason.and_then(|name| serde_json::from_value::<StopReason>(name.into()).ok());
    Ok(RunRow {
        run_id: row.get("id")?,
        agent: row.get("agent")?,
        owner: row.get("owner")?,
        key: row.get("caller_key")?,
        protocol: row.get("protocol")?,
        task: String::new(),
        parent: parent.zip(ticket).map(|(run_id, ticket)| Parent { run_id, ticket: TicketId(ticket) }),
        stop_reason,
        error: row.get("error")?,
        turns: row.get("turns")?,
        violations: row.get("violations")?,
        input_tokens: row.get::<_, i64>("input_tokens")?.cast_unsigned(),
        output_tokens: row.get::<_, i64>("output_tokens")?.cast_unsigned(),
        cached_tokens: row.get::<_, i64>("cached_tokens")?.cast_unsigned(),
        cost: row.get("cost")?,
        started_at: row.get("started_at")?,
        updated_at: row.get("updated_at")?,
        finished_at: row.get("finished_at")?,
    })
}

/// A run's key and row, without its task.
pub(super) fn run_by_id(connection: &Connection, run_id: &str) -> rusqlite::Result<Option<(i64, RunRow)>> {
    let select = format!("SELECT key, {RUN} FROM run WHERE id = ?1");
    connection.prepare_cached(&select)?.query_row([run_id], |row| Ok((row.get("key")?, run(row)?))).optional()
}

/// The run that has a key.
pub(super) fn run_with(connection: &Connection, key: &RunKey) -> rusqlite::Result<Option<String>> {
    let select = "SELECT id FROM run WHERE coalesce(owner, '') = coalesce(?1, '') AND agent = ?2 AND caller_key = ?3";
    let mut select = connection.prepare_cached(select)?;
    select.query_row(params![key.owner, key.agent, key.key], |row| row.get(0)).optional()
}

/// The ticket that others know by a key.
pub(super) fn ticket_with(connection: &Connection, key: &RunKey) -> rusqlite::Result<Option<(String, TicketId)>> {
    let select = "SELECT run.id, ticket.id FROM ticket JOIN run ON run.key = ticket.run WHERE ticket.answer_key = ?3 \
         AND coalesce(run.owner, '') = coalesce(?1, '') AND run.agent = ?2 ORDER BY ticket.opened_at, run.key, ticket.id LIMIT 1";
    let mut select = connection.prepare_cached(select)?;
    select.query_row(params![key.owner, key.agent, key.key], |row| Ok((row.get(0)?, TicketId(row.get(1)?)))).optional()
}

/// The conditions of a filter, with their values.
#[derive(Default)]
struct Where {
    conditions: Vec<String>,
    values: Vec<Value>,
}

impl Where {
    fn add(&mut self, condition: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.conditions.push(condition.to_owned());
            self.values.push(value.into());
        }
    }

    fn is(&mut self, condition: &str) {
        self.conditions.push(condition.to_owned());
    }

    fn sql(&self) -> String {
        if self.conditions.is_empty() { String::new() } else { format!("WHERE {}", self.conditions.join(" AND ")) }
    }
}

fn limit(limit: Option<usize>) -> i64 {
    limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX))
}

/// The runs that match a filter, newest first.
pub(super) fn runs(connection: &Connection, filter: &RunFilter) -> Result<Vec<RunRow>, ReadError> {
    let mut admitted = Where::default();
    match filter.status {
        None => {}
        Some(RunStatus::Running) => admitted.is("finished_at IS NULL"),
        Some(RunStatus::Finished) => admitted.is("finished_at IS NOT NULL"),
    }
    admitted.add("agent = ?", filter.agent.clone());
    admitted.add("owner = ?", filter.owner.clone());
    admitted.add("parent = ?", filter.parent.clone());
    admitted.add("started_at >= ?", filter.since);
    admitted.add("started_at < ?", filter.until);
    let select = format!(
        "SELECT {RUN}, (SELECT coalesce(event.data ->> '$.task', event.data ->> '$.start.task') FROM event \
         WHERE event.run = run.key ORDER BY event.seq LIMIT 1) AS task \
         FROM run {} ORDER BY started_at DESC, key DESC LIMIT {}",
        admitted.sql(),
        limit(filter.limit)
    );
    let mut select = connection.prepare(&select)?;
    let rows = select.query_map(params_from_iter(&admitted.values), |row| {
        let task: Option<String> = row.get("task")?;
        Ok(RunRow { task: task.unwrap_or_default(), ..run(row)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const TICKET: &str = "SELECT run.id AS run_id, ticket.id, ticket.kind, tool, description, turn, call_id, parked, opened_at, \
     completed_at, outcome, arguments, text, opened.seq AS opened_seq, opened.data AS opened_data, \
     completed.seq AS completed_seq, completed.data AS completed_data, blob.data AS blob_data, attempts, \
     approval_reason, ticket.parts, awaits_result, external, answer_key, untrusted FROM ticket JOIN run ON run.key = ticket.run \
     LEFT JOIN event AS opened ON opened.run = ticket.run AND opened.seq = ticket.opened_seq \
     LEFT JOIN event AS completed ON completed.run = ticket.run AND completed.seq = ticket.completed_seq \
     LEFT JOIN blob ON blob.key = coalesce(ticket.blob, completed.blob)";

/// A ticket with the texts of its events, and the position of its completion.
// Columns by their positions in `TICKET`: names would be looked up for each row.
fn ticket(row: &Row<'_>) -> Result<(TicketRow, Option<u64>), ReadError> {
    let kind: String = row.get(2)?;
    let mut ticket = TicketRow {
        run_id: row.get(0)?,
        ticket: TicketId(row.get(1)?),
        kind: TicketKind::from_name(&kind).unwrap_or_default(),
        tool: row.get(3)?,
        description: row.get(4)?,
        arguments: row.get(11)?,
        turn: row.get(5)?,
        call_id: row.get(6)?,
        parked: row.get(7)?,
        attempts: row.get(18)?,
        approval_reason: row.get(19)?,
        awaits_result: row.get(21)?,
        answer_key: row.get(23)?,
        external: row.get(22)?,
        untrusted: row.get(24)?,
        opened_at: row.get(8)?,
        completed_at: row.get(9)?,
        outcome: row.get(10)?,
        text: row.get(12)?,
        parts: Vec::new(),
    };
    let event = |seq: Option<i64>, data: Option<String>| seq.map(i64::cast_unsigned).zip(data);
    let completed_seq: Option<i64> = row.get(15)?;
    let texts = TicketTexts {
        opened: event(row.get(13)?, row.get(14)?),
        completed: event(completed_seq, row.get(16)?),
        blob: row.get(17)?,
        parts: row.get(20)?,
    };
    texts.fill(&mut ticket).map_err(|(seq, cause)| ReadError::Record { run_id: ticket.run_id.clone(), seq, cause })?;
    Ok((ticket, completed_seq.map(i64::cast_unsigned)))
}

/// The tickets that match a filter, newest first.
pub(super) fn tickets(connection: &Connection, filter: &TicketFilter) -> Result<Vec<TicketRow>, ReadError> {
    let mut admitted = Where::default();
    match filter.status {
        None => {}
        Some(Status::InProgress) => admitted.is("outcome IS NULL"),
        Some(Status::Completed) => admitted.is("outcome IS NOT NULL"),
    }
    admitted.add("run.id = ?", filter.run.clone());
    admitted.add("ticket.kind = ?", filter.kind.map(|kind| kind.as_str().to_owned()));
    admitted.add("run.owner = ?", filter.owner.clone());
    admitted.add("run.parent = ?", filter.parent.clone());
    admitted.add("ticket.parked = ?", filter.parked);
    match filter.awaits_result {
        None => {}
        Some(true) => admitted.is("ticket.awaits_result"),
        Some(false) => admitted.is("ticket.awaits_result IS NOT TRUE"),
    }
    admitted.add("opened_at >= ?", filter.since);
    admitted.add("opened_at < ?", filter.until);
    let order = "ORDER BY opened_at DESC, ticket.run DESC, ticket.id DESC LIMIT";
    let select = format!("{TICKET} {} {order} {}", admitted.sql(), limit(filter.limit));
    let mut select = connection.prepare(&select)?;
    let mut rows = select.query(params_from_iter(&admitted.values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(ticket(row)?.0);
    }
    Ok(found)
}

/// The tickets of a run with something in its events up to this position, as those say it.
pub(super) fn tickets_up_to(connection: &Connection, run: i64, seq: u64) -> Result<Vec<TicketRow>, ReadError> {
    let select = format!("{TICKET} WHERE ticket.run = ?1 AND (ticket.opened_seq <= ?2 OR ticket.completed_seq <= ?2)");
    let mut select = connection.prepare_cached(&select)?;
    let mut rows = select.query(params![run, seq.cast_signed()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (mut ticket, completed_seq) = ticket(row)?;
        if completed_seq.is_some_and(|completed| completed > seq) {
            ticket.text = None;
        }
        found.push(ticket);
    }
    Ok(found)
}
