//! Deletes whole trees of runs, and events that a snapshot replaces.

use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashSet;

/// Blobs and contents that may have lost their last reference.
const SUSPECTS: &str = "CREATE TABLE IF NOT EXISTS temp.suspect (blob INTEGER PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS temp.suspect_content (content INTEGER PRIMARY KEY);";

/// These runs that there are, with all runs that were started in them.
pub(super) fn trees(connection: &Connection, roots: &[String]) -> rusqlite::Result<Vec<String>> {
    let mut exists = connection.prepare_cached("SELECT 1 FROM run WHERE id = ?1")?;
    let mut children = connection.prepare_cached("SELECT id FROM run WHERE parent = ?1")?;
    let mut seen: HashSet<String> = HashSet::new();
    let mut found = Vec::new();
    let mut left = roots.to_vec();
    while let Some(id) = left.pop() {
        if seen.insert(id.clone()) {
            for child in children.query_map([&id], |row| row.get(0))? {
                left.push(child?);
            }
            if exists.exists([&id])? {
                found.push(id);
            }
        }
    }
    Ok(found)
}

/// The runs of an owner.
pub(super) fn runs_of(connection: &Connection, owner: &str) -> rusqlite::Result<Vec<String>> {
    connection.prepare_cached("SELECT id FROM run WHERE owner = ?1")?.query_map([owner], |row| row.get(0))?.collect()
}

/// Rewrites the file without deleted data, and empties its log. Says whether it could: not while another program
/// reads an older state.
pub(super) fn scrub(connection: &Connection) -> rusqlite::Result<bool> {
    connection.execute_batch("VACUUM")?;
    let busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(!busy)
}

/// The runs that no run of this store started, that ended before this time and are not among the newest.
pub(super) fn roots_to_prune(
    connection: &Connection,
    older_than: Option<f64>,
    keep: usize,
) -> rusqlite::Result<Vec<String>> {
    let select = "SELECT id FROM (SELECT id, finished_at FROM run WHERE parent IS NULL \
         OR NOT EXISTS (SELECT 1 FROM run AS starter WHERE starter.id = run.parent) \
         ORDER BY started_at DESC, key DESC LIMIT -1 OFFSET ?1) \
         WHERE finished_at IS NOT NULL AND (?2 IS NULL OR finished_at < ?2)";
    let keep = i64::try_from(keep).unwrap_or(i64::MAX);
    connection.prepare_cached(select)?.query_map(params![keep, older_than], |row| row.get(0))?.collect()
}

/// Deletes these runs, and the blobs and the bytes of parts that only they referred to.
pub(super) fn delete(connection: &Connection, run_ids: &[String]) -> rusqlite::Result<()> {
    let mut find = connection.prepare_cached("SELECT key FROM run WHERE id = ?1")?;
    for run_id in run_ids {
        let Some(run) = find.query_row([run_id], |row| row.get::<_, i64>(0)).optional()? else { continue };
        suspect(connection, run, i64::MAX)?;
        for table in ["event WHERE run", "ticket WHERE run", "run_content WHERE run", "run WHERE key"] {
            connection.prepare_cached(&format!("DELETE FROM {table} = ?1"))?.execute([run])?;
        }
    }
    sweep(connection)
}

/// Deletes a run's events up to this position. `sweep` is to follow.
pub(super) fn forget_events(connection: &Connection, run: i64, seq: u64) -> rusqlite::Result<()> {
    suspect(connection, run, seq.cast_signed())?;
    let delete = "DELETE FROM event WHERE run = ?1 AND seq <= ?2";
    connection.prepare_cached(delete)?.execute(params![run, seq.cast_signed()])?;
    Ok(())
}

/// Notes the blobs and the bytes of parts that may lose a reference.
fn suspect(connection: &Connection, run: i64, seq: i64) -> rusqlite::Result<()> {
    connection.execute_batch(SUSPECTS)?;
    let insert = "INSERT OR IGNORE INTO temp.suspect \
         SELECT blob FROM event WHERE run = ?1 AND seq <= ?2 AND blob IS NOT NULL \
         UNION SELECT blob FROM ticket WHERE run = ?1 AND blob IS NOT NULL";
    connection.prepare_cached(insert)?.execute(params![run, seq])?;
    let insert = "INSERT OR IGNORE INTO temp.suspect_content SELECT content FROM run_content WHERE run = ?1";
    connection.prepare_cached(insert)?.execute([run])?;
    Ok(())
}

/// Deletes noted entries without a reference.
pub(super) fn sweep(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(SUSPECTS)?;
    connection.execute_batch(
        "DELETE FROM main.blob WHERE key IN (SELECT blob FROM temp.suspect)
            AND NOT EXISTS (SELECT 1 FROM main.event WHERE event.blob = main.blob.key)
            AND NOT EXISTS (SELECT 1 FROM main.ticket WHERE ticket.blob = main.blob.key);
         DELETE FROM temp.suspect;
         DELETE FROM main.content WHERE key IN (SELECT content FROM temp.suspect_content)
            AND NOT EXISTS (SELECT 1 FROM main.run_content WHERE run_content.content = main.content.key);
         DELETE FROM temp.suspect_content;",
    )
}
