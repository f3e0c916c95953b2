//! From rows back to records and to what is listed.

use super::link::{ANSWER, Connected, Link};
use super::text::decode;
use super::{PostgresStore, lock};
use crate::run::{Event, Parent, Record, StopReason};
use crate::store::row::{RunFilter, RunRow, RunStatus, TicketFilter, TicketRow};
use crate::store::ticket_texts::TicketTexts;
use crate::store::{StoreError, blob};
use crate::ticket::{Status, TicketId, TicketKind};
use std::sync::Arc;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

impl PostgresStore {
    /// The records of a run from this position on; none where there is no such run.
    ///
    /// # Errors
    /// They can't be read.
    pub fn records_since(&self, run_id: &str, seq: u64) -> Result<Vec<Arc<Record>>, StoreError> {
        let sql = "SELECT seq, at, kind, event.data AS data, blob.data AS part FROM callslip.event \
             LEFT JOIN callslip.blob ON blob.hash = event.blob \
             WHERE run = (SELECT key FROM callslip.run WHERE id = $1) AND seq >= $2 ORDER BY seq";
        let from = seq.cast_signed();
        // What a worker has claimed is to be opened, even if the database is away for a moment.
        let lease = self.shared.reserved(run_id);
        let rows = self.keep_trying(lease.as_deref(), || {
            self.read(async |connected| connected.query(sql, &[&run_id, &from]).await)
        })?;
        rows.iter().map(|row| record(run_id, row).map(Arc::new)).collect()
    }

    /// The tickets of a run with something in its events up to this position, as those say it.
    pub(super) fn tickets_up_to(&self, run_id: &str, seq: u64) -> Result<Vec<TicketRow>, StoreError> {
        let sql = tickets_where("WHERE run.id = $1 AND (ticket.opened_seq <= $2 OR ticket.completed_seq <= $2)");
        let to = seq.cast_signed();
        let rows = self.read(async |connected| connected.client().query(&sql, &[&run_id, &to]).await)?;
        rows.iter()
            .map(|row| {
                let ticket = Ticket::read(row);
                let completed_later = ticket.completed_seq.is_some_and(|completed| completed > to);
                let mut ticket = ticket.finish()?;
                if completed_later {
                    ticket.text = None;
                }
                Ok(ticket)
            })
            .collect()
    }

    /// Names and rows of a query of a user, which can't change anything; each row as JSON text.
    ///
    /// # Errors
    /// `Query`: the database refuses it.
    pub fn query_json(
        &self,
        sql: &str,
        parameters: &[super::query::SqlParameter],
    ) -> Result<super::query::JsonTable, StoreError> {
        self.settle()?;
        let mut querier = lock(&self.querier);
        if self.shared.is_closed() {
            return Err(StoreError::Closed);
        }
        let link = match &mut *querier {
            Some(link) => link,
            none => none.insert(Link::new(self.shared.address.clone())?),
        };
        // A broken connection is found out here: a query of ten minutes is not tried twice.
        self.call(link, |link| link.call(ANSWER, async |connected| connected.client().batch_execute("").await))?;
        super::query::run(link, sql, parameters).map_err(|failure| match failure {
            super::link::Failure::Refused(cause) => StoreError::Query(cause),
            other => other.of(&self.shared.address),
        })
    }
}

fn record(run_id: &str, row: &Row) -> Result<Record, StoreError> {
    let seq = row.get::<_, i64>("seq").cast_unsigned();
    let unreadable = |cause: String| StoreError::Unreadable { run_id: run_id.to_owned(), seq, cause };
    let part = row.get::<_, Option<&[u8]>>("part").map(std::str::from_utf8).transpose();
    let part = part.map_err(|error| unreadable(error.to_string()))?;
    let json = blob::join(row.get("kind"), row.get("data"), part);
    let json = json.ok_or_else(|| unreadable("what was kept apart has no place in it".to_owned()))?;
    let event: Event = serde_json::from_str(&json).map_err(|error| unreadable(error.to_string()))?;
    Ok(Record { seq, at: row.get("at"), event })
}

const RUN: &str = "id, agent, protocol, parent, parent_ticket, stop_reason, error, turns, violations, input_tokens, \
     output_tokens, cached_tokens, cost, started_at, updated_at, finished_at, task, owner, submit_key";

fn run(row: &Row) -> RunRow {
    let parent: Option<String> = row.get("parent");
    let ticket: Option<i32> = row.get("parent_ticket");
    let stop_reason: Option<String> = row.get("stop_reason");
    let count = |column: &str| row.get::<_, i32>(column).cast_unsigned();
    let amount = |column: &str| row.get::<_, i64>(column).cast_unsigned();
    RunRow {
        run_id: row.get("id"),
        agent: decode(row.get("agent")),
        owner: row.get::<_, Option<String>>("owner").map(decode),
        key: row.get::<_, Option<String>>("submit_key").map(decode),
        protocol: row.get("protocol"),
        task: decode(row.get("task")),
        parent: parent.zip(ticket).map(|(run_id, ticket)| Parent { run_id, ticket: TicketId(ticket.cast_unsigned()) }),
        stop_reason: stop_reason.and_then(|name| serde_json::from_value::<StopReason>(name.into()).ok()),
        error: row.get::<_, Option<String>>("error").map(decode),
        turns: count("turns"),
        violations: count("violations"),
        input_tokens: amount("input_tokens"),
        output_tokens: amount("output_tokens"),
        cached_tokens: amount("cached_tokens"),
        cost: row.get("cost"),
        started_at: row.get("started_at"),
        updated_at: row.get("updated_at"),
        finished_at: row.get("finished_at"),
    }
}

/// The row of a run that has begun.
pub(super) async fn run_by_id(connected: &mut Connected, run_id: &str) -> Result<Option<RunRow>, Error> {
    let sql = "SELECT id, agent, protocol, parent, parent_ticket, stop_reason, error, turns, violations, input_tokens, \
         output_tokens, cached_tokens, cost, started_at, updated_at, finished_at, task, owner, submit_key \
         FROM callslip.run WHERE id = $1 AND next > 0";
    Ok(connected.query(sql, &[&run_id]).await?.first().map(run))
}

/// The ticket that others know by a key, with the owner and the agent as they are written in the database.
pub(super) async fn ticket_with(
    connected: &mut Connected,
    owner: Option<&str>,
    agent: &str,
    key: &str,
) -> Result<Option<(String, TicketId)>, Error> {
    let sql = "SELECT run.id AS run_id, ticket.id AS ticket FROM callslip.ticket JOIN callslip.run ON run.key = ticket.run \
         WHERE ticket.answer_key = $3 AND coalesce(run.owner, '') = coalesce($1::text, '') AND run.agent = $2 \
         ORDER BY ticket.opened_at, run.key, ticket.id LIMIT 1";
    let rows = connected.query(sql, &[&owner, &agent, &key]).await?;
    Ok(rows.first().map(|row| (row.get("run_id"), TicketId(row.get::<_, i32>("ticket").cast_unsigned()))))
}

/// The conditions of a filter, with their values.
#[derive(Default)]
struct Where {
    conditions: Vec<String>,
    values: Vec<Box<dyn ToSql + Sync>>,
}

impl Where {
    fn add<T: ToSql + Sync + 'static>(&mut self, condition: &str, value: Option<T>) {
        if let Some(value) = value {
            self.values.push(Box::new(value));
            self.conditions.push(format!("{condition} ${}", self.values.len()));
        }
    }

    fn is(&mut self, condition: &str) {
        self.conditions.push(condition.to_owned());
    }

    fn sql(&self) -> String {
        if self.conditions.is_empty() { String::new() } else { format!("WHERE {}", self.conditions.join(" AND ")) }
    }

    fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value).collect()
    }
}

fn limit(limit: Option<usize>) -> String {
    limit.map_or_else(String::new, |limit| format!("LIMIT {limit}"))
}

/// Runs are listed from their submission on. One that has only its key is none yet: whoever begins it may be gone.
const LISTED: &str = "(next > 0 OR (given IS NOT NULL AND NOT is_call))";

/// Runs, newest first: those that have begun, and those that wait for a worker.
pub(super) async fn runs(connected: &mut Connected, filter: &RunFilter) -> Result<Vec<RunRow>, Error> {
    let mut admitted = Where::default();
    admitted.is(LISTED);
    match filter.status {
        None => {}
        Some(RunStatus::Running) => admitted.is("finished_at IS NULL"),
        Some(RunStatus::Finished) => admitted.is("finished_at IS NOT NULL"),
    }
    admitted.add("agent =", filter.agent.as_deref().map(|agent| super::text::encode(agent).into_owned()));
    admitted.add("owner =", filter.owner.as_deref().map(|owner| super::text::encode(owner).into_owned()));
    admitted.add("parent =", filter.parent.clone());
    admitted.add("started_at >=", filter.since);
    admitted.add("started_at <", filter.until);
    let sql = format!(
        "SELECT {RUN} FROM callslip.run {} ORDER BY started_at DESC, key DESC {}",
        admitted.sql(),
        limit(filter.limit)
    );
    let rows = connected.client().query(&sql, &admitted.parameters()).await?;
    Ok(rows.iter().map(run).collect())
}

fn tickets_where(rest: &str) -> String {
    format!("{TICKET} {rest}")
}

/// What waits for a run counts: a call that somebody has decided on awaits approval no more, nor one of a cancelled run.
macro_rules! undecided {
    ($column:literal) => {
        concat!(
            "(CASE WHEN ",
            $column,
            " THEN NOT EXISTS (SELECT FROM callslip.inbox WHERE inbox.run = run.id AND inbox.ticket = ticket.id) \
             AND NOT EXISTS (SELECT FROM callslip.inbox WHERE inbox.kind = 'cancel' \
                 AND (inbox.run = run.id OR starts_with(run.id, inbox.run || '.'))) \
             ELSE ",
            $column,
            " END)"
        )
    };
}

const PARKED: &str = undecided!("ticket.parked");
const AWAITS_RESULT: &str = undecided!("ticket.awaits_result");

const TICKET: &str = concat!(
    "SELECT run.id AS run_id, ticket.id AS ticket, ticket.kind AS kind, tool, description, turn, call_id, ",
    undecided!("ticket.parked"),
    " AS parked, opened_at, completed_at, outcome, arguments, text, opened.seq AS first_seq, opened.data AS first, \
     completed.seq AS last_seq, completed.data AS last, blob.data AS blob, attempts, approval_reason, ticket.parts AS parts, ",
    undecided!("ticket.awaits_result"),
    " AS awaits_result, external, answer_key, untrusted FROM callslip.ticket JOIN callslip.run ON run.key = ticket.run \
     LEFT JOIN callslip.event AS opened ON opened.run = ticket.run AND opened.seq = ticket.opened_seq \
     LEFT JOIN callslip.event AS completed ON completed.run = ticket.run AND completed.seq = ticket.completed_seq \
     LEFT JOIN callslip.blob ON blob.hash = coalesce(ticket.blob, completed.blob)"
);

/// A ticket with what its events say, before they are read.
pub(super) struct Ticket {
    row: TicketRow,
    completed_seq: Option<i64>,
    texts: Result<TicketTexts, String>,
}

impl Ticket {
    fn read(row: &Row) -> Self {
        let kind: String = row.get("kind");
        let count = |column: &str| row.get::<_, i32>(column).cast_unsigned();
        let text = |column: &str| row.get::<_, Option<String>>(column).map(decode);
        let ticket = TicketRow {
            run_id: row.get("run_id"),
            ticket: TicketId(count("ticket")),
            kind: TicketKind::from_name(&kind).unwrap_or_default(),
            tool: decode(row.get("tool")),
            description: decode(row.get("description")),
            turn: count("turn"),
            call_id: text("call_id"),
            parked: row.get("parked"),
            opened_at: row.get("opened_at"),
            completed_at: row.get("completed_at"),
            outcome: row.get("outcome"),
            arguments: row.get("arguments"),
            text: text("text"),
            attempts: count("attempts"),
            approval_reason: text("approval_reason"),
            awaits_result: row.get("awaits_result"),
            external: row.get("external"),
            answer_key: text("answer_key"),
            untrusted: row.get("untrusted"),
            parts: Vec::new(),
        };
        let event = |seq: Option<i64>, data: Option<String>| seq.map(i64::cast_unsigned).zip(data);
        let completed_seq = row.get("last_seq");
        let blob = row.get::<_, Option<Vec<u8>>>("blob").map(String::from_utf8).transpose();
        let texts = blob.map_err(|error| error.to_string()).map(|blob| TicketTexts {
            opened: event(row.get("first_seq"), row.get("first")),
            completed: event(completed_seq, row.get("last")),
            blob,
            parts: row.get("parts"),
        });
        Self { row: ticket, completed_seq, texts }
    }

    /// The whole ticket.
    pub(super) fn finish(self) -> Result<TicketRow, StoreError> {
        let Self { mut row, texts, .. } = self;
        let filled = texts.map_err(|cause| (0, cause)).and_then(|texts| texts.fill(&mut row));
        match filled {
            Ok(()) => Ok(row),
            Err((seq, cause)) => Err(StoreError::Unreadable { run_id: row.run_id, seq, cause }),
        }
    }
}

/// Tickets, newest first.
pub(super) async fn tickets(connected: &mut Connected, filter: &TicketFilter) -> Result<Vec<Ticket>, Error> {
    let mut admitted = Where::default();
    match filter.status {
        None => {}
        Some(Status::InProgress) => admitted.is("outcome IS NULL"),
        Some(Status::Completed) => admitted.is("outcome IS NOT NULL"),
    }
    admitted.add("run.id =", filter.run.clone());
    admitted.add("ticket.kind =", filter.kind.map(|kind| kind.as_str().to_owned()));
    admitted.add("run.owner =", filter.owner.as_deref().map(|owner| super::text::encode(owner).into_owned()));
    admitted.add("run.parent =", filter.parent.clone());
    admitted.add(&format!("{PARKED} ="), filter.parked);
    admitted.add(&format!("coalesce({AWAITS_RESULT}, false) ="), filter.awaits_result);
    admitted.add("opened_at >=", filter.since);
    admitted.add("opened_at <", filter.until);
    let order = "ORDER BY opened_at DESC, ticket.run DESC, ticket.id DESC";
    let sql = tickets_where(&format!("{} {order} {}", admitted.sql(), limit(filter.limit)));
    let rows = connected.client().query(&sql, &admitted.parameters()).await?;
    Ok(rows.iter().map(Ticket::read).collect())
}
