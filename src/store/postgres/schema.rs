//! The tables, and the steps that lead to them from every earlier version.

use super::link::{ANSWER, Connected, Failure, Link};
use crate::store::StoreError;
use tokio_postgres::Error;

/// Each step leads from the version of its index to the next. A step that was released is never changed.
const STEPS: &[&str] = &[
    include_str!("version_1.sql"),
    include_str!("version_2.sql"),
    include_str!("version_3.sql"),
    include_str!("version_4.sql"),
];
/// The functions are those of this version, whatever was there before.
const FUNCTIONS: &[&str] = &[include_str!("queue.sql"), include_str!("below.sql"), include_str!("drain.sql")];
/// Who may do what.
const RIGHTS: &str = include_str!("rights.sql");
/// The roles that a user without the right to make roles leaves out.
const MISSING_ROLES: &str = "SELECT name FROM unnest(ARRAY['callslip_worker', 'callslip_client']) AS name \
     WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)";
/// One migration at a time: `cslp`.
const LOCK: i64 = 0x6373_6c70;

/// The version that this build reads and writes.
pub(super) fn version() -> i32 {
    i32::try_from(STEPS.len()).unwrap_or(i32::MAX)
}

/// What making a database ready has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// The version of the tables before; 0 for none.
    pub before: i32,
    /// The version after.
    pub after: i32,
    /// The roles that the database needs, and this user may not make.
    pub missing_roles: Vec<String>,
}

/// Whether the database has the tables of this version.
pub(super) fn check(link: &mut Link, server: &str) -> Result<Result<(), StoreError>, Failure> {
    let sql = "SELECT version FROM callslip.meta";
    let rows = link.call(ANSWER, async |connected| connected.query(sql, &[]).await)?;
    let found: i32 = rows.first().map_or(0, |row| row.get(0));
    Ok(match found.cmp(&version()) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less if found == 0 => Err(StoreError::NoSchema { server: server.to_owned() }),
        std::cmp::Ordering::Less => {
            Err(StoreError::OlderSchema { server: server.to_owned(), found, needed: version() })
        }
        std::cmp::Ordering::Greater => {
            Err(StoreError::NewerSchema { server: server.to_owned(), found, known: version() })
        }
    })
}

/// Brings a database to the present version. `pgmq` is the SQL of that library, for a database without it; `None` if
/// there is no pgmq.
pub(super) fn migrate(link: &mut Link, pgmq: Option<&str>) -> Result<Option<Migration>, Failure> {
    link.call(ANSWER * 20, async |connected| step(connected, pgmq).await)
}

async fn step(connected: &mut Connected, pgmq: Option<&str>) -> Result<Option<Migration>, Error> {
    let transaction = connected.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let has_pgmq = "SELECT to_regclass('pgmq.meta') IS NOT NULL";
    if !transaction.query_one(has_pgmq, &[]).await?.get::<_, bool>(0) {
        let available = "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pgmq')";
        if transaction.query_one(available, &[]).await?.get::<_, bool>(0) {
            transaction.batch_execute("CREATE EXTENSION pgmq").await?;
        } else if let Some(sql) = pgmq {
            transaction.batch_execute(sql).await?;
        } else {
            return Ok(None);
        }
    }
    transaction
        .batch_execute(
            "CREATE SCHEMA IF NOT EXISTS callslip;
             CREATE TABLE IF NOT EXISTS callslip.meta (
                 one boolean PRIMARY KEY DEFAULT true CHECK (one), version integer NOT NULL);
             INSERT INTO callslip.meta (version) VALUES (0) ON CONFLICT DO NOTHING;",
        )
        .await?;
    let before: i32 = transaction.query_one("SELECT version FROM callslip.meta", &[]).await?.get(0);
    if before <= version() {
        for step in STEPS.iter().skip(usize::try_from(before).unwrap_or_default()) {
            transaction.batch_execute(step).await?;
        }
        for functions in FUNCTIONS {
            transaction.batch_execute(functions).await?;
        }
        transaction.batch_execute("SELECT callslip.make_queue('default'), callslip.make_queue('later')").await?;
        transaction.batch_execute(RIGHTS).await?;
        transaction.execute("UPDATE callslip.meta SET version = $1", &[&version()]).await?;
    }
    let missing = transaction.query(MISSING_ROLES, &[]).await?;
    transaction.commit().await?;
    let missing_roles = missing.iter().map(|row| row.get(0)).collect();
    Ok(Some(Migration { before, after: before.max(version()), missing_roles }))
}
