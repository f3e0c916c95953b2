//! The tables, and the steps that lead to them from every earlier version.

use rusqlite::{Connection, TransactionBehavior};
use std::collections::BTreeMap;

/// The application id in the header of our files: `cslp`.
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

/// A table, view or trigger of a file: its name, and the statement that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// `table`, `view` or `trigger`.
    pub kind: String,
    /// Its name in the file.
    pub name: String,
    /// The statement; tables of `SQLite` itself have none.
    pub sql: Option<String>,
}

/// All objects of a file. Its definitions are not evaluated.
pub(super) fn objects(connection: &Connection) -> rusqlite::Result<Vec<Object>> {
    let select = "SELECT type, name, sql FROM sqlite_master WHERE type <> 'index'";
    let mut select = connection.prepare(select)?;
    let rows = select.query_map([], |row| Ok(Object { kind: row.get(0)?, name: row.get(1)?, sql: row.get(2)? }))?;
    rows.collect()
}

/// The first difference between the objects of a file and the objects of a store: a file can carry our application id
/// and define endless views, or triggers. Tables, views and indexes that users have added are left alone.
pub(super) fn foreign(version: i32, found: &[Object]) -> rusqlite::Result<Option<String>> {
    let steps = usize::try_from(version).ok().and_then(|version| STEPS.get(..version));
    let Some(steps) = steps.filter(|steps| !steps.is_empty()) else {
        return Ok(Some(format!("its tables have version {version}")));
    };
    let mut made = Connection::open_in_memory()?;
    run(&mut made, steps)?;
    // SQLite's names are the same in upper and lower case.
    let mut by_name: BTreeMap<String, Vec<&Object>> = BTreeMap::new();
    for object in found {
        if object.kind == "trigger" {
            return Ok(Some(format!("it has the trigger {}", object.name)));
        }
        by_name.entry(object.name.to_ascii_lowercase()).or_default().push(object);
    }
    for own in objects(&made)? {
        let Object { kind, name, .. } = &own;
        match by_name.get(name.as_str()).map(Vec::as_slice) {
            None => return Ok(Some(format!("it has no {kind} {name}"))),
            Some([present]) if **present == own => {}
            Some(_) => return Ok(Some(format!("its {name} is not the {kind} of a store"))),
        }
    }
    Ok(None)
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
    fn each_version_knows_its_own_files_and_no_others() {
        for version in 1..=version() {
            let mut connection = Connection::open_in_memory().unwrap();
            run(&mut connection, &STEPS[..usize::try_from(version).unwrap()]).unwrap();
            connection
                .execute_batch("CREATE VIEW mine AS SELECT 1; CREATE INDEX more ON run (agent); ANALYZE")
                .unwrap();
            assert_eq!(foreign(version, &objects(&connection).unwrap()).unwrap(), None);
            for (other, told) in [
                ("CREATE TRIGGER t AFTER INSERT ON run BEGIN SELECT 1; END", "it has the trigger t"),
                ("DROP VIEW runs", "it has no view runs"),
                ("DROP VIEW runs; CREATE VIEW Runs AS SELECT 1 AS run_id", "its runs is not the view of a store"),
                ("DROP TABLE blob; CREATE TABLE blob (key, hash, data)", "its blob is not the table of a store"),
                ("ALTER TABLE run ADD COLUMN label TEXT", "its run is not the table of a store"),
            ] {
                connection.execute_batch(&format!("SAVEPOINT before; {other}")).unwrap();
                assert_eq!(foreign(version, &objects(&connection).unwrap()).unwrap().as_deref(), Some(told));
                connection.execute_batch("ROLLBACK TO before; RELEASE before").unwrap();
            }
        }
        assert!(foreign(0, &[]).unwrap().is_some());
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
