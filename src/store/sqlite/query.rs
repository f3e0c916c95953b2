//! Queries of the user's own, on a connection that can only read.

use super::{SqliteStore, open};
use crate::store::StoreError;
use rusqlite::params_from_iter;

pub use rusqlite::types::Value as SqlValue;

/// The result of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows, each with a value a column.
    pub rows: Vec<Vec<SqlValue>>,
}

impl SqliteStore {
    /// Runs one read-only query, which sees everything appended so far. Use the views `runs`, `tickets`
    /// and `events`.
    ///
    /// # Errors
    /// It is wrong, or it would write. Or the store has failed.
    pub fn query(&self, sql: &str, params: &[SqlValue]) -> Result<Table, StoreError> {
        self.settle()?;
        if self.is_shut() {
            return Err(StoreError::Closed);
        }
        let failed = |error: rusqlite::Error| StoreError::Query(error.to_string());
        // A separate connection, so that a long query doesn't block others and its temporary tables vanish.
        if sql.trim().is_empty() {
            return Err(StoreError::Query("it is empty".to_owned()));
        }
        let connection = open::reader(&self.shared.path).map_err(failed)?;
        let mut statement = connection.prepare(sql).map_err(failed)?;
        if !statement.readonly() {
            return Err(StoreError::Query("it would write, and a store is written to by its runs only".to_owned()));
        }
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let width = columns.len();
        let mut found = statement.query(params_from_iter(params)).map_err(failed)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(failed)? {
            rows.push((0..width).map(|column| row.get(column)).collect::<Result<_, _>>().map_err(failed)?);
        }
        Ok(Table { columns, rows })
    }
}
