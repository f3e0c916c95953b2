//! Queries of users: read only, in a transaction of their own.

use super::link::{ANSWER, Failure, Link};
use std::time::Duration;

/// How long a query of a user may take.
const LONG: Duration = Duration::from_secs(600);

/// A parameter of a query, as text; `None` is null.
pub type SqlText = Option<String>;

/// The names of the columns, and the rows as the JSON text of a list each.
#[derive(Debug, Default)]
pub struct JsonTable {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// One JSON object a row.
    pub rows: Vec<String>,
}

/// Runs a query. Its parameters are texts, which the database reads as what the query needs.
pub(super) fn run(link: &mut Link, sql: &str, parameters: &[SqlText]) -> Result<JsonTable, Failure> {
    link.call(ANSWER + LONG, async |connected| {
        let transaction = connected.transaction().await?;
        transaction.batch_execute("SET TRANSACTION READ ONLY").await?;
        let statement = transaction.prepare(sql).await?;
        let columns: Vec<String> = statement.columns().iter().map(|column| column.name().to_owned()).collect();
        let wrapped = format!("SELECT row_to_json(one)::text FROM ({}) AS one", sql.trim().trim_end_matches(';'));
        let types = vec![tokio_postgres::types::Type::TEXT; parameters.len()];
        let texts: Vec<(&(dyn tokio_postgres::types::ToSql + Sync), _)> =
            parameters.iter().zip(types).map(|(text, kind)| (text as _, kind)).collect();
        let rows = transaction.query_typed(&wrapped, &texts).await?;
        let rows = rows.iter().map(|row| row.get(0)).collect();
        transaction.rollback().await?;
        Ok(JsonTable { columns, rows })
    })
}
