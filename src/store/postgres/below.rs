//! Child runs and calls of tools that other workers take than the one that drives the run above them.

use super::PostgresStore;
use super::text::encode;
use crate::run::{Spent, Usage};
use crate::store::StoreError;

/// A child run or a call, for any worker.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub struct Below {
    /// The run above it, which waits for its end, and the ticket there.
    pub above_id: String,
    pub ticket: u32,
    pub id: String,
    /// The agent of a child run; the tool of a call.
    pub agent: String,
    /// By what workers know that they can take it.
    pub known_as: String,
    /// With what it begins, in JSON.
    pub given: String,
    /// Where a child run stands in its tree, in JSON.
    pub above: Option<String>,
    pub task: String,
    /// `None` for that of the run above it.
    pub queue: Option<String>,
    pub is_call: bool,
}

impl PostgresStore {
    /// Gives workers a child run or a call, unless they have it. False: the driver of the run above drives it itself.
    ///
    /// # Errors
    /// `TakenOver`: another worker has the run above; or the database refuses it.
    pub fn submit_below(&self, below: &Below) -> Result<bool, StoreError> {
        let lost = || StoreError::TakenOver { run_id: below.above_id.clone() };
        let top = self.shared.held(&below.above_id).ok_or_else(lost)?.root();
        let epoch = top.epoch().ok_or_else(lost)?;
        let sql = "SELECT callslip.submit_below($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        let (agent, known_as, task) = (encode(&below.agent), encode(&below.known_as), encode(&below.task));
        let ticket = below.ticket.cast_signed();
        let parameters: super::link::Parameters<'_> = &[
            &top.run_id(),
            &epoch,
            &below.above_id,
            &ticket,
            &below.id,
            &agent,
            &known_as,
            &below.given,
            &below.above,
            &task,
            &below.queue,
            &below.is_call,
        ];
        let rows =
            self.keep_trying(Some(&top), || self.read(async |connected| connected.query(sql, parameters).await))?;
        match rows.first().map(|row| row.get::<_, String>(0)).as_deref() {
            Some("sent") => Ok(true),
            Some("inside") => Ok(false),
            _ => Err(lost()),
        }
    }

    /// Whether workers have a child run: there is one of this id, which the driver of the run above does not drive.
    ///
    /// # Errors
    /// It can't be read.
    pub fn is_apart(&self, run_id: &str) -> Result<bool, StoreError> {
        let sql = "SELECT FROM callslip.run WHERE id = $1 AND tells_parent";
        let rows = self.read(async |connected| connected.query(sql, &[&run_id]).await)?;
        Ok(!rows.is_empty())
    }

    /// Ends a call that this worker has made with its outcome, in JSON; `None` for one that was given up. False: the call
    /// is another worker's by now, and nothing comes of this outcome.
    ///
    /// # Errors
    /// The database refuses it.
    pub fn end_call(&self, id: &str, outcome: Option<&str>) -> Result<bool, StoreError> {
        let Some(lease) = self.shared.reserved(id) else { return Ok(false) };
        let (Some(epoch), None) = (lease.epoch(), lease.lost()) else { return Ok(false) };
        let outcome = outcome.map(encode);
        let sql = "SELECT callslip.end_call($1, $2, $3) AS ended, pg_current_xact_id()::text";
        let ended = self.keep_trying(Some(&lease), || self.once(sql, &[&id, &epoch, &outcome]));
        self.let_go(id, epoch);
        let rows = ended?;
        // Nothing is left to give up.
        lease.lose(StoreError::TakenOver { run_id: id.to_owned() });
        Ok(rows.first().is_some_and(|row| row.get("ended")))
    }

    /// What each of these runs has spent with all runs below it, wherever those are driven.
    ///
    /// # Errors
    /// It can't be read.
    pub fn spent(&self, run_ids: &[String]) -> Result<Vec<Spent>, StoreError> {
        let sql = "SELECT spent.* FROM unnest($1::text[]) WITH ORDINALITY AS asked (id, place), \
             LATERAL callslip.spent(asked.id) AS spent ORDER BY place";
        let rows = self.read(async |connected| connected.query(sql, &[&run_ids]).await)?;
        let count = |value: Option<i64>| u64::try_from(value.unwrap_or_default()).unwrap_or_default();
        let few = |value: Option<i64>| u32::try_from(value.unwrap_or_default()).unwrap_or(u32::MAX);
        let spent = |row: &tokio_postgres::Row| Spent {
            usage: Usage {
                input_tokens: count(row.get("input_tokens")),
                output_tokens: count(row.get("output_tokens")),
                cached_tokens: count(row.get("cached_tokens")),
                cost: row.get::<_, Option<f64>>("cost").unwrap_or_default(),
                unpriced: false,
            },
            tickets: few(row.get("tickets")),
            runs: few(row.get("runs")),
        };
        Ok(rows.iter().map(spent).collect())
    }
}
