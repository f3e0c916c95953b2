//! What workers and those who give them work do with the queue.

use super::lease::Leased;
use super::shared::lock;
use super::text::{decode, encode};
use super::{PostgresStore, listen};
use crate::store::StoreError;
use std::collections::HashMap;
use std::sync::Arc;
use tokio_postgres::Row;

/// A run to be worked on.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub struct Submit {
    pub run_id: String,
    pub agent: String,
    /// With what it begins, in JSON.
    pub given: String,
    pub task: String,
    pub queue: String,
    pub tenant: Option<String>,
    pub owner: Option<String>,
    /// The same key gives the same run, of this owner and agent.
    pub key: Option<String>,
    /// How many runs of the tenant are driven at once.
    pub limit: Option<i32>,
    /// Seconds until it begins.
    pub delay: f64,
    /// How many runs the queue may have before none is taken any more.
    pub backlog: Option<i64>,
}

/// A run that a worker has claimed. Its lease is kept until `let_go`, and by the run once it is opened.
#[derive(Debug)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub struct Claimed {
    pub run_id: String,
    /// Of this claim: a later one of the same run has another.
    pub epoch: i64,
    pub agent: String,
    /// With what it begins; `None` for a run that has begun.
    pub given: Option<String>,
    /// Claims in a row that led to nothing, with this one.
    pub claims: u32,
    pub is_over: bool,
    /// Of its protocol and tools; `None` for a run that has not begun.
    pub shape: Option<String>,
    /// Where a child run stands in its tree, in JSON, if another worker drives the run above it.
    pub above: Option<String>,
}

/// A message or a decision that waits for a run.
#[derive(Debug)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub struct Message {
    pub id: i64,
    pub run_id: String,
    /// `say`, `approve`, `deny`, `answer`, `cancel` or `resume`; `ended` of a child run, `outcome` of a call.
    pub kind: String,
    pub ticket: Option<u32>,
    pub body: Option<String>,
    /// Who has decided.
    pub by: Option<String>,
}

/// What became of a run that was to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rested {
    /// It rests.
    Rests,
    /// It was told something meanwhile.
    Told,
    /// Another worker has it.
    Lost,
}

/// What became of something that a run was to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It will stand in the log.
    Told,
    /// There is no such run.
    NoRun,
    /// The ticket does not await approval, or a result.
    NotParked,
    /// Somebody has decided already.
    Decided,
    /// The run was cancelled.
    Cancelled,
    /// The run is over, or it was told to go on already.
    Over,
}

/// A worker, for people who look.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub struct Worker {
    pub id: String,
    pub version: String,
    pub agents: Vec<String>,
    pub queues: Vec<String>,
    pub slots: i32,
    pub busy: i32,
    /// Runs that were taken over from others, and from this one.
    pub taken_over: i64,
    pub refused: i64,
    /// The agents and shapes of begun runs, with a space between, that it can't drive.
    pub refuses: Vec<String>,
    /// Why it has given runs back that it is offered again, by their ids, as JSON.
    pub misfits: String,
}

impl PostgresStore {
    /// Gives workers a run. Returns its id, or that of the run with the same key; `None` where the queue is too long.
    ///
    /// # Errors
    /// The database refuses it.
    pub fn submit(&self, submit: &Submit) -> Result<Option<String>, StoreError> {
        let sql = "SELECT run_id, pg_current_xact_id()::text \
             FROM callslip.submit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        let (agent, task) = (encode(&submit.agent), encode(&submit.task));
        let (owner, key) = (submit.owner.as_deref().map(encode), submit.key.as_deref().map(encode));
        let parameters: super::link::Parameters<'_> = &[
            &submit.run_id,
            &agent,
            &submit.given,
            &task,
            &submit.queue,
            &submit.tenant,
            &owner,
            &key,
            &submit.limit,
            &submit.delay,
            &submit.backlog,
        ];
        let rows = self.once(sql, parameters)?;
        Ok(rows.first().and_then(|row| row.get("run_id")))
    }

    /// Makes sure that there is a queue.
    ///
    /// # Errors
    /// The database refuses it.
    pub fn make_queue(&self, queue: &str) -> Result<(), StoreError> {
        self.ask(async |connected| connected.query("SELECT callslip.make_queue($1)", &[&queue]).await).map(drop)
    }

    /// Leases runs of these agents, at most so many; with `begun_only` no new ones. `refused` has the agents and shapes of
    /// begun runs, with a space between, that this worker can't drive.
    ///
    /// # Errors
    /// The database refuses it.
    pub fn claim_runs(
        &self,
        queue: &str,
        slots: i32,
        agents: &[String],
        refused: &[String],
        begun_only: bool,
    ) -> Result<(Vec<Claimed>, usize), StoreError> {
        let lease = self.shared.lease().as_secs_f64();
        self.ask(async |connected| connected.query("SELECT callslip.fall_due()", &[]).await)?;
        let sql = "SELECT run_id, run_epoch, run_first, run_next, run_agent, run_given, run_claims, run_over, run_shape, \
             run_above, given_back, pg_current_xact_id()::text \
             FROM callslip.claim($1, $2, $3, $4, $5, $6)";
        let parameters: super::link::Parameters<'_> = &[&queue, &lease, &slots, &agents, &refused, &begun_only];
        let rows = self.once(sql, parameters)?;
        let (mut claimed, mut given_back) = (Vec::new(), 0);
        for row in &rows {
            if row.get("given_back") {
                given_back += 1;
                continue;
            }
            let run_id: String = row.get("run_id");
            let lease = Leased::held(
                &self.shared,
                &run_id,
                row.get("run_epoch"),
                row.get("run_first"),
                row.get("run_next"),
                None,
            )
            .of_worker();
            lock(&self.shared.reserved).insert(lease.run_id_shared(), lease);
            let has_begun = row.get::<_, i64>("run_next") > 0;
            claimed.push(Claimed {
                run_id,
                epoch: row.get("run_epoch"),
                agent: decode(row.get("run_agent")),
                given: if has_begun { None } else { row.get("run_given") },
                claims: row.get::<_, i32>("run_claims").cast_unsigned(),
                is_over: row.get("run_over"),
                shape: row.get("run_shape"),
                above: row.get("run_above"),
            });
        }
        if !claimed.is_empty() {
            self.start_beating()?;
        }
        Ok((claimed, given_back))
    }

    /// Leases one run that nobody drives, for an engine that was told to drive it; `None` if there is none of this id.
    ///
    /// # Errors
    /// `Elsewhere`, `Below`, or the database refuses it.
    pub fn take_run(&self, run_id: &str) -> Result<Option<Claimed>, StoreError> {
        let sql = "SELECT claims, claimed_next FROM callslip.run WHERE id = $1";
        let before = self.ask(async |connected| connected.query(sql, &[&run_id]).await)?;
        let Some((lease, row)) = self.take(run_id)? else { return Ok(None) };
        let epoch: i64 = row.get("run_epoch");
        let claims = self.count_claim(run_id, epoch, before.first())?;
        lock(&self.shared.reserved).insert(lease.run_id_shared(), lease.of_worker());
        self.start_beating()?;
        let has_begun = row.get::<_, i64>("run_next") > 0;
        Ok(Some(Claimed {
            run_id: run_id.to_owned(),
            epoch,
            agent: decode(row.get("run_agent")),
            given: if has_begun { None } else { row.get("run_given") },
            claims,
            is_over: row.get("run_over"),
            shape: row.get("run_shape"),
            above: row.get("run_above"),
        }))
    }

    /// Counts the claim of an engine as one of a worker: `callslip.take`, which a person's `resume` calls too, begins
    /// anew. Returns the claims in a row that led to nothing, with this one.
    fn count_claim(&self, run_id: &str, epoch: i64, before: Option<&Row>) -> Result<u32, StoreError> {
        let (claims, claimed_next): (i32, i64) =
            before.map_or((0, 0), |row| (row.get("claims"), row.get("claimed_next")));
        let sql = "UPDATE callslip.run SET claimed_next = next, \
                 claims = CASE WHEN next > $4::bigint + 1 THEN 1 ELSE $3::integer + 1 END \
             WHERE id = $1 AND epoch = $2 RETURNING claims";
        let parameters: super::link::Parameters<'_> = &[&run_id, &epoch, &claims, &claimed_next];
        let rows = self.ask(async |connected| connected.query(sql, parameters).await)?;
        // No row: the run is lost already, which its lease tells.
        Ok(rows.first().map_or(1, |row| row.get::<_, i32>(0).cast_unsigned()))
    }

    /// Lets go of a claim. Its run is left, unless it was opened: then it has the lease to its end.
    pub fn let_go(&self, run_id: &str, epoch: i64) {
        let reserved = self.take_reserved(run_id, epoch);
        drop(reserved);
    }

    fn take_reserved(&self, run_id: &str, epoch: i64) -> Option<Arc<Leased>> {
        let mut reserved = lock(&self.shared.reserved);
        reserved.get(run_id).filter(|lease| lease.epoch() == Some(epoch))?;
        reserved.remove(run_id)
    }

    /// Why a run that is driven here is lost to it; none while it is not.
    pub fn why_lost(&self, run_id: &str) -> Option<StoreError> {
        self.shared.held(run_id)?.lost()
    }

    /// Gives a claimed run back, which this worker can't drive: another one may, after so many seconds. With none it may
    /// at once, and this worker must not claim the run any more.
    ///
    /// # Errors
    /// The database refuses it.
    pub fn refuse(&self, run_id: &str, epoch: i64, delay: f64) -> Result<(), StoreError> {
        let Some(lease) = self.take_reserved(run_id, epoch) else { return Ok(()) };
        // Before it is: a beat that finds it given back has nothing to tell.
        lease.lose(StoreError::TakenOver { run_id: run_id.to_owned() });
        if delay > 0.0 {
            let sql = "SELECT callslip.refuse($1, $2, $3)";
            return self.ask(async |connected| connected.query(sql, &[&run_id, &epoch, &delay]).await).map(drop);
        }
        let sql = "SELECT callslip.leave($1, $2)";
        self.ask(async |connected| connected.query(sql, &[&run_id, &epoch]).await).map(drop)
    }

    /// Ends the work on runs that are driven here, each until it is told something or its delay is over.
    ///
    /// # Errors
    /// The database refuses it.
    pub fn rest(&self, runs: &[(String, Option<f64>)]) -> Result<Vec<Rested>, StoreError> {
        let leases: Vec<_> = runs.iter().map(|(run_id, _)| self.shared.held(run_id)).collect();
        let (mut ids, mut epochs, mut delays) = (Vec::new(), Vec::new(), Vec::new());
        for (lease, (run_id, delay)) in leases.iter().zip(runs) {
            let epoch = lease.as_ref().filter(|lease| lease.lost().is_none()).and_then(|lease| lease.epoch());
            if let Some(epoch) = epoch {
                ids.push(run_id.as_str());
                epochs.push(epoch);
                delays.push(*delay);
            }
        }
        let sql = "SELECT id, callslip.rest(id, epoch, delay) AS said, pg_current_xact_id()::text \
             FROM unnest($1::text[], $2::bigint[], $3::double precision[]) AS mine (id, epoch, delay)";
        self.settle()?;
        let rows = self.once(sql, &[&ids, &epochs, &delays])?;
        let said: HashMap<String, String> = rows.iter().map(|row| (row.get("id"), row.get("said"))).collect();
        let rested = |(lease, (run_id, _)): (&Option<Arc<Leased>>, &(String, Option<f64>))| {
            let rested = match said.get(run_id).map(String::as_str) {
                Some("rests") => Rested::Rests,
                Some("inbox") => return Rested::Told,
                _ => Rested::Lost,
            };
            if let Some(lease) = lease {
                lease.lose(StoreError::TakenOver { run_id: run_id.clone() });
            }
            rested
        };
        Ok(leases.iter().zip(runs).map(rested).collect())
    }

    /// What waits for a run and for those whose claim it covers, oldest first.
    ///
    /// # Errors
    /// It can't be read.
    pub fn inbox(&self, run_id: &str) -> Result<Vec<Message>, StoreError> {
        let sql = "SELECT id, run, kind, ticket, body, decided_by FROM callslip.inbox WHERE holder = $1 ORDER BY id";
        // What a worker has claimed is to be opened, even if the database is away for a moment.
        let lease = self.shared.reserved(run_id);
        let rows =
            self.keep_trying(lease.as_deref(), || self.read(async |connected| connected.query(sql, &[&run_id]).await))?;
        let message = |row: &tokio_postgres::Row| Message {
            id: row.get("id"),
            run_id: row.get("run"),
            kind: row.get("kind"),
            ticket: row.get::<_, Option<i32>>("ticket").map(i32::cast_unsigned),
            body: row.get::<_, Option<String>>("body").map(decode),
            by: row.get::<_, Option<String>>("decided_by").map(decode),
        };
        Ok(rows.iter().map(message).collect())
    }

    /// Drops messages that lead to nothing. What a user said to a child run that is over waits for whoever resumes that
    /// run: it was acknowledged.
    ///
    /// # Errors
    /// The database refuses it.
    pub fn drop_messages(&self, ids: &[i64]) -> Result<(), StoreError> {
        let sql = "WITH dropped AS (
                DELETE FROM callslip.inbox WHERE id = ANY ($1) AND (kind <> 'say' OR run = holder)
            ), kept AS (
                UPDATE callslip.inbox SET holder = run WHERE id = ANY ($1) AND kind = 'say' AND run <> holder
                RETURNING run)
            UPDATE callslip.run SET holder = NULL WHERE id IN (SELECT run FROM kept) AND finished_at IS NOT NULL";
        self.ask(async |connected| connected.query(sql, &[&ids]).await).map(drop)
    }

    /// Tells a run something, wherever it is driven.
    ///
    /// # Errors
    /// The database refuses it.
    pub fn tell(
        &self,
        run_id: &str,
        kind: &str,
        ticket: Option<u32>,
        body: Option<&str>,
        by: Option<&str>,
    ) -> Result<Told, StoreError> {
        let ticket = ticket.map(u32::cast_signed);
        let (body, by) = (body.map(encode), by.map(encode));
        let sql = "SELECT callslip.tell($1, $2, $3, $4, $5) AS told, pg_current_xact_id()::text";
        self.settle()?;
        let rows = self.once(sql, &[&run_id, &kind, &ticket, &body, &by])?;
        Ok(match rows.first().map(|row| row.get::<_, String>("told")).as_deref() {
            Some("told") => Told::Told,
            Some("not parked") => Told::NotParked,
            Some("decided") => Told::Decided,
            Some("cancelled") => Told::Cancelled,
            Some("over") => Told::Over,
            _ => Told::NoRun,
        })
    }

    /// Of a run and of those around it, the ones that have something to do and are driven by nobody.
    ///
    /// # Errors
    /// It can't be read.
    pub fn due_near(&self, run_id: &str) -> Result<Vec<String>, StoreError> {
        // A driver of this process that has just left the run has said so then.
        let rows = self.read(async |connected| connected.query("SELECT callslip.due_near($1)", &[&run_id]).await)?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// The runs that have had something to do for so many seconds and are driven by nobody, at most so many of each
    /// queue, and those whose time has come now. Each is named again after as many seconds.
    ///
    /// # Errors
    /// The database refuses it.
    pub fn due(&self, seconds: f64, at_most: i32) -> Result<Vec<String>, StoreError> {
        let parameters: super::link::Parameters<'_> = &[&seconds, &at_most];
        let rows = self.ask(async |connected| connected.query("SELECT callslip.due($1, $2)", parameters).await)?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// For a while, whoever writes to this run tells it on the channel of this process.
    ///
    /// # Errors
    /// The database refuses it.
    pub fn follow(&self, run_ids: &[String], seconds: f64) -> Result<(), StoreError> {
        let sql = "INSERT INTO callslip.watch (run, channel, until) \
             SELECT id, $2, clock_timestamp() + make_interval(secs => $3) FROM unnest($1::text[]) AS id ORDER BY id \
             ON CONFLICT (run, channel) DO UPDATE SET until = greatest(watch.until, excluded.until)";
        let channel = listen::channel();
        self.ask(async |connected| connected.query(sql, &[&run_ids, &channel, &seconds]).await)?;
        let old = "DELETE FROM callslip.watch WHERE until < clock_timestamp() - interval '1 hour'";
        self.ask(async |connected| connected.query(old, &[]).await).map(drop)
    }

    /// How far these runs are, and the runs that are driven with them: each with the position of its next event, the
    /// oldest first.
    ///
    /// # Errors
    /// It can't be read.
    pub fn positions(&self, run_ids: &[String]) -> Result<Vec<(String, Option<String>, u64)>, StoreError> {
        let sql = "SELECT id, holder, next FROM (SELECT id, holder, next, key FROM callslip.run WHERE id = ANY ($1) \
             UNION SELECT id, holder, next, key FROM callslip.run WHERE holder = ANY ($1) \
             UNION SELECT id, holder, next, key FROM callslip.run WHERE parent = ANY ($1) AND NOT is_call) \
             AS followed ORDER BY key";
        let rows = self.read(async |connected| connected.query(sql, &[&run_ids]).await)?;
        Ok(rows
            .iter()
            .map(|row| (row.get("id"), row.get("holder"), row.get::<_, i64>("next").cast_unsigned()))
            .collect())
    }

    /// Whether a run has more events than up to this position, or will have, because it was told something.
    ///
    /// # Errors
    /// It can't be read.
    pub fn has_more(&self, run_id: &str, next: u64) -> Result<bool, StoreError> {
        let sql = "SELECT next > $2 OR EXISTS (SELECT FROM callslip.inbox WHERE run = $1 AND kind IN ('say', 'resume')) \
             FROM callslip.run WHERE id = $1";
        let next = next.cast_signed();
        let rows = self.read(async |connected| connected.query(sql, &[&run_id, &next]).await)?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// The agent and the task of a run that waits for a worker and has not begun; `None` for any other.
    ///
    /// # Errors
    /// It can't be read.
    pub(super) fn queued(&self, run_id: &str) -> Result<Option<(String, String)>, StoreError> {
        let sql = "SELECT agent, task FROM callslip.run WHERE id = $1 AND next = 0 AND NOT is_call";
        let rows = self.read(async |connected| connected.query(sql, &[&run_id]).await)?;
        Ok(rows.first().map(|row| (decode(row.get("agent")), decode(row.get("task")))))
    }

    /// Says that a worker is there.
    ///
    /// # Errors
    /// The database refuses it.
    pub fn announce(&self, worker: &Worker) -> Result<(), StoreError> {
        let sql = "INSERT INTO callslip.worker (id, version, agents, queues, slots, busy, taken_over, refused, refuses, \
             misfits, seen) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::jsonb, clock_timestamp()) \
             ON CONFLICT (id) DO UPDATE SET version = excluded.version, agents = excluded.agents, \
             queues = excluded.queues, slots = excluded.slots, busy = excluded.busy, taken_over = excluded.taken_over, \
             refused = excluded.refused, refuses = excluded.refuses, misfits = excluded.misfits, \
             seen = excluded.seen";
        let parameters: super::link::Parameters<'_> = &[
            &worker.id,
            &worker.version,
            &worker.agents,
            &worker.queues,
            &worker.slots,
            &worker.busy,
            &worker.taken_over,
            &worker.refused,
            &worker.refuses,
            &worker.misfits,
        ];
        self.ask(async |connected| connected.query(sql, parameters).await).map(drop)
    }

    /// Takes back what `announce` said.
    ///
    /// # Errors
    /// The database refuses it.
    pub fn withdraw(&self, worker_id: &str) -> Result<(), StoreError> {
        let old = "DELETE FROM callslip.worker WHERE id = $1 OR seen < clock_timestamp() - interval '1 day'";
        self.ask(async |connected| connected.query(old, &[&worker_id]).await).map(drop)
    }
}
