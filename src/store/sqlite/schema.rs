//! The tables, and the steps that lead to them from every earlier version.

use rusqlite::{Connection, TransactionBehavior};

/// What the header of our files says they are: `cslp`.
pub(super) const APPLICATION_ID: i32 = 0x6373_6c70;

/// Each step leads from the version of its index to the next. A step that was released is never changed.
const STEPS: &[&str] = &[
    include_str!("version_1.sql"),
    include_str!("version_2.sql"),
    include_str!("version_3.sql"),
    include_str!("version_4.sql"),
    include_str!("version_5.sql"),
];

/// Brings a file to the present version, one transaction a step. A new file begins at 0.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    run(connection, STEPS)
}

/// The version that this build writes.
pub(super) fn version() -> i32 {
    i32::try_from(STEPS.len()).unwrap_or(i32::MAX)
}

fn run(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    for (step, version) in steps.iter().zip(1_i32..) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let present: i32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if present < version {
            transaction.execute_batch(step)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", version)?;
        }
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_of(connection: &Connection) -> i32 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_file_of_version_1_is_brought_forward_with_what_it_holds() {
        let mut connection = Connection::open_in_memory().unwrap();
        run(&mut connection, &STEPS[..1]).unwrap();
        let insert = "INSERT INTO run (id, agent, protocol, started_at, updated_at) VALUES ('r', 'a', 'react', 1, 1)";
        connection.execute(insert, []).unwrap();
        let steps = [STEPS[0], "ALTER TABLE run ADD COLUMN label TEXT; UPDATE run SET label = id;"];
        for _ in 0..2 {
            run(&mut connection, &steps).unwrap();
            assert_eq!(version_of(&connection), 2);
            let label: String = connection.query_row("SELECT label FROM run", [], |row| row.get(0)).unwrap();
            assert_eq!(label, "r");
        }
    }

    #[test]
    fn a_step_that_fails_leaves_the_version_before_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        let steps = [STEPS[0], "CREATE TABLE half (x); CREATE TABLE run (x);"];
        run(&mut connection, &steps).unwrap_err();
        assert_eq!(version_of(&connection), 1);
        let halves: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_master WHERE name = 'half'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(halves, 0);
    }
}
