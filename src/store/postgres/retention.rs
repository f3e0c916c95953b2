//! What goes: whole trees of runs, and the events that a snapshot takes the place of.

use super::batch::kept_texts;
use super::link::Connected;
use super::text::encode;
use super::{PostgresStore, lock};
use crate::run::{Event, Record};
use crate::store::blob::{Apart, split};
use crate::store::row::TicketRow;
use crate::store::{Claim, StoreError};
use sha2::{Digest, Sha256};
use tokio_postgres::{Error, Transaction};

/// Runs that are removed in one transaction.
const AT_ONCE: usize = 1_000;

/// Nothing refers to a blob.
macro_rules! unreferenced {
    () => {
        "NOT EXISTS (SELECT FROM callslip.event WHERE event.blob = blob.hash) \
         AND NOT EXISTS (SELECT FROM callslip.ticket WHERE ticket.blob = blob.hash) \
         AND NOT EXISTS (SELECT FROM callslip.run_content WHERE run_content.hash = blob.hash)"
    };
}

/// What makes a blob nobody's: nothing refers to it, and nothing has used it for a day. A statement that is under way
/// refers to one that is younger.
macro_rules! unused {
    () => {
        concat!("used_at < clock_timestamp() - interval '1 day' AND ", unreferenced!())
    };
}

/// These runs that there are, with all runs that were started in them.
pub(super) async fn trees(connected: &mut Connected, roots: &[String]) -> Result<Vec<String>, Error> {
    let sql = "WITH RECURSIVE tree (id) AS ( \
             SELECT unnest($1::text[]) COLLATE \"C\" \
             UNION SELECT run.id FROM callslip.run JOIN tree ON run.parent = tree.id) \
         SELECT run.id FROM callslip.run JOIN tree USING (id)";
    let rows = connected.query(sql, &[&roots]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// The runs of an owner, those that have not begun among them.
pub(super) async fn runs_of(connected: &mut Connected, owner: &str) -> Result<Vec<String>, Error> {
    let owner = encode(owner);
    let rows = connected.query("SELECT id FROM callslip.run WHERE owner = $1 AND NOT is_call", &[&owner]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Deletes all blobs that nothing refers to, however young, and the names of tenants without runs. Writers wait meanwhile:
/// one that is under way may refer to a blob that is there.
pub(super) async fn scrub(connected: &mut Connected) -> Result<(), Error> {
    let transaction = connected.transaction().await?;
    transaction.batch_execute("LOCK TABLE callslip.blob IN SHARE ROW EXCLUSIVE MODE").await?;
    transaction.batch_execute(concat!("DELETE FROM callslip.blob WHERE ", unreferenced!())).await?;
    transaction.batch_execute("SELECT callslip.forget_tenants()").await?;
    transaction.commit().await
}

/// The runs that no run of this store started, that ended before this time and are not among the newest.
pub(super) async fn roots_to_prune(
    connected: &mut Connected,
    older_than: Option<f64>,
    keep: usize,
) -> Result<Vec<String>, Error> {
    let sql = "SELECT id FROM (SELECT id, finished_at FROM callslip.run WHERE next > 0 AND (parent IS NULL \
             OR NOT EXISTS (SELECT FROM callslip.run AS starter WHERE starter.id = run.parent)) \
         ORDER BY started_at DESC, key DESC OFFSET $1::bigint) AS root \
         WHERE finished_at IS NOT NULL AND ($2::double precision IS NULL OR finished_at < $2) \
             AND NOT EXISTS (SELECT FROM callslip.inbox WHERE holder = root.id)";
    let keep = i64::try_from(keep).unwrap_or(i64::MAX);
    let rows = connected.query(sql, &[&keep, &older_than]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

impl PostgresStore {
    /// Removes whole trees of runs, which this process has claimed, unless another one drives one of them.
    pub(super) fn remove(&self, run_ids: &[String], _claims: &[Claim]) -> Result<usize, StoreError> {
        if let Some(run_id) = run_ids.iter().find(|run_id| lock(&self.shared.reserved).contains_key(run_id.as_str())) {
            return Err(StoreError::UnderWay { run_id: run_id.clone() });
        }
        let mut removed = 0;
        for part in run_ids.chunks(AT_ONCE) {
            if let Some(run_id) = self.read(async |connected| remove(connected, part).await)? {
                return Err(StoreError::Elsewhere { run_id });
            }
            removed += part.len();
        }
        Ok(removed)
    }
}

/// Removes runs, all or none. Says which of them is driven elsewhere, where one is.
async fn remove(connected: &mut Connected, run_ids: &[String]) -> Result<Option<String>, Error> {
    let transaction = connected.transaction().await?;
    let sql = "SELECT id, queue, is_later, msg FROM callslip.run WHERE id = ANY ($1) ORDER BY key FOR UPDATE";
    for row in transaction.query(sql, &[&run_ids]).await? {
        let (id, queue, later): (String, String, bool) = (row.get("id"), row.get("queue"), row.get("is_later"));
        let Some(msg) = row.get::<_, Option<i64>>("msg") else { continue };
        if !later && is_leased(&transaction, &queue, msg).await? {
            transaction.rollback().await?;
            return Ok(Some(id));
        }
        transaction.execute("SELECT callslip.unsend($1, $2, $3)", &[&queue, &later, &msg]).await?;
    }
    // Runs above that wait for their ends delegate anew, where they are not driven just now.
    let above = "SELECT parent FROM callslip.run WHERE id = ANY ($1) AND finished_at IS NULL AND parent <> ALL ($1) \
         GROUP BY parent ORDER BY parent";
    let above: Vec<String> = transaction.query(above, &[&run_ids]).await?.iter().map(|row| row.get(0)).collect();
    let blobs = blobs_of(&transaction, run_ids).await?;
    let keys = "run IN (SELECT key FROM callslip.run WHERE id = ANY ($1))";
    for table in ["event", "ticket", "run_content"] {
        transaction.execute(&format!("DELETE FROM callslip.{table} WHERE {keys}"), &[&run_ids]).await?;
    }
    transaction.execute("DELETE FROM callslip.inbox WHERE run = ANY ($1)", &[&run_ids]).await?;
    transaction.execute("DELETE FROM callslip.run WHERE id = ANY ($1)", &[&run_ids]).await?;
    for waiting in above {
        transaction.execute("SELECT callslip.wake($1)", &[&waiting]).await?;
    }
    transaction.commit().await?;
    sweep_blobs(connected, &blobs).await?;
    Ok(None)
}

async fn is_leased(transaction: &Transaction<'_>, queue: &str, msg: i64) -> Result<bool, Error> {
    let sql = "SELECT callslip.is_leased($1, $2)";
    Ok(transaction.query_one(sql, &[&queue, &msg]).await?.get(0))
}

/// The blobs that these runs refer to.
async fn blobs_of(transaction: &Transaction<'_>, run_ids: &[String]) -> Result<Vec<Vec<u8>>, Error> {
    let sql = "WITH doomed AS (SELECT key FROM callslip.run WHERE id = ANY ($1)) \
         SELECT blob FROM callslip.event JOIN doomed ON event.run = doomed.key WHERE blob IS NOT NULL \
         UNION SELECT blob FROM callslip.ticket JOIN doomed ON ticket.run = doomed.key WHERE blob IS NOT NULL \
         UNION SELECT hash FROM callslip.run_content JOIN doomed ON run_content.run = doomed.key";
    Ok(transaction.query(sql, &[&run_ids]).await?.iter().map(|row| row.get(0)).collect())
}

/// Deletes those of these blobs that are unused. It takes no longer where there are many others.
async fn sweep_blobs(connected: &mut Connected, blobs: &[Vec<u8>]) -> Result<(), Error> {
    if blobs.is_empty() {
        return Ok(());
    }
    let sql = concat!("DELETE FROM callslip.blob WHERE hash = ANY ($1) AND ", unused!());
    connected.query(sql, &[&blobs]).await.map(drop)
}

/// Deletes all blobs that are unused, also those that were too young when their runs were deleted.
pub(super) async fn sweep(connected: &mut Connected) -> Result<(), Error> {
    connected.query(concat!("DELETE FROM callslip.blob WHERE ", unused!()), &[]).await.map(drop)
}

/// A snapshot in the place of events, ready to be written.
pub(super) struct Compacting {
    seq: i64,
    at: f64,
    kind: String,
    data: String,
    setup: String,
    tickets: Vec<Kept>,
}

/// What of a ticket stands in the ticket itself from now on.
struct Kept {
    id: i32,
    arguments: Option<String>,
    text: Option<String>,
    blob: Option<String>,
    parts: Option<String>,
    has_text: bool,
}

impl Compacting {
    pub(super) fn new(snapshot: &Record, tickets: &[TicketRow]) -> Result<Self, StoreError> {
        let unwritable = |cause: serde_json::Error| StoreError::Failed(format!("a record has no JSON form: {cause}"));
        let stored = split(&snapshot.event).map_err(unwritable)?;
        let setup = match (&stored.part, &snapshot.event) {
            (Some(Apart::Setup(setup)), Event::Compacted { .. }) => serde_json::to_string(setup).map_err(unwritable)?,
            _ => String::new(),
        };
        let (kind, data) = stored.parts().unwrap_or_default();
        let mut kept = Vec::with_capacity(tickets.len());
        for row in tickets {
            let (text, blob, parts) = kept_texts(row).map_err(unwritable)?;
            kept.push(Kept {
                id: row.ticket.0.cast_signed(),
                arguments: row.arguments.clone(),
                text,
                blob: blob.map(str::to_owned),
                parts,
                has_text: row.text.is_some(),
            });
        }
        let (kind, data) = (kind.to_owned(), data.to_owned());
        Ok(Self { seq: snapshot.seq.cast_signed(), at: snapshot.at, kind, data, setup, tickets: kept })
    }

    /// Writes it, unless the run is held by another epoch. Says whether it is written.
    pub(super) async fn write(&self, connected: &mut Connected, run_id: &str, epoch: i64) -> Result<bool, Error> {
        let transaction = connected.transaction().await?;
        let sql = "UPDATE callslip.run SET first = $3 WHERE id = $1 AND epoch = $2 RETURNING key";
        let Some(run) = transaction.query_opt(sql, &[&run_id, &epoch, &self.seq]).await? else { return Ok(false) };
        let run: i64 = run.get(0);
        for kept in &self.tickets {
            let blob = match &kept.blob {
                Some(data) => Some(put_blob(&transaction, data).await?),
                None => None,
            };
            let sql = "UPDATE callslip.ticket SET arguments = $3, text = $4, blob = $5, parts = $7, opened_seq = NULL, \
                 completed_seq = CASE WHEN $6 THEN NULL ELSE completed_seq END WHERE run = $1 AND id = $2";
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
                [&run, &kept.id, &kept.arguments, &kept.text, &blob, &kept.has_text, &kept.parts];
            transaction.execute(sql, &parameters).await?;
        }
        transaction.execute("DELETE FROM callslip.event WHERE run = $1 AND seq <= $2", &[&run, &self.seq]).await?;
        let setup = put_blob(&transaction, &self.setup).await?;
        let sql = "INSERT INTO callslip.event (run, seq, at, kind, data, blob) VALUES ($1, $2, $3, $4, $5, $6)";
        transaction.execute(sql, &[&run, &self.seq, &self.at, &self.kind, &self.data, &setup]).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

async fn put_blob(transaction: &Transaction<'_>, data: &str) -> Result<Vec<u8>, Error> {
    let hash = Sha256::digest(data).to_vec();
    let sql = "INSERT INTO callslip.blob (hash, data) VALUES ($1, $2) \
         ON CONFLICT (hash) DO UPDATE SET used_at = clock_timestamp()";
    transaction.execute(sql, &[&hash, &data.as_bytes()]).await?;
    Ok(hash)
}
