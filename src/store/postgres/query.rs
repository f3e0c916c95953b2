//! Queries of users: read only, in a transaction of their own.

use super::link::{ANSWER, Connected, Failure, Link};
use super::text::{decode_json, encode};
use bytes::BytesMut;
use std::error::Error as StdError;
use std::time::Duration;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};

/// How long a query of a user may take.
const LONG: Duration = Duration::from_secs(600);

/// A parameter of a query.
#[derive(Debug)]
pub enum SqlParameter {
    /// Null, of whatever type the query needs.
    Null,
    /// A text, which the database reads as what the query needs.
    Text(String),
    /// A whole number of any size, in decimal.
    Integer(String),
    /// A number, in decimal.
    Real(String),
    /// Whether something holds.
    Boolean(bool),
    /// Bytes, in hexadecimal.
    Bytes(String),
}

impl SqlParameter {
    fn kind(&self) -> Type {
        match self {
            Self::Null | Self::Text(_) => Type::UNKNOWN,
            Self::Integer(number) if number.parse::<i32>().is_ok() => Type::INT4,
            Self::Integer(number) if number.parse::<i64>().is_ok() => Type::INT8,
            Self::Integer(_) => Type::NUMERIC,
            Self::Real(_) => Type::FLOAT8,
            Self::Boolean(_) => Type::BOOL,
            Self::Bytes(_) => Type::BYTEA,
        }
    }
}

impl ToSql for SqlParameter {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Self::Null => return Ok(IsNull::Yes),
            Self::Text(text) => out.extend_from_slice(encode(text).as_bytes()),
            Self::Integer(number) | Self::Real(number) => out.extend_from_slice(number.as_bytes()),
            Self::Boolean(holds) => out.extend_from_slice(if *holds { b"true" } else { b"false" }),
            Self::Bytes(digits) => {
                out.extend_from_slice(b"\\x");
                out.extend_from_slice(digits.as_bytes());
            }
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// The names of the columns, and the rows as the JSON text of an object each.
#[derive(Debug, Default)]
pub struct JsonTable {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// One JSON object a row.
    pub rows: Vec<String>,
}

/// Runs a query.
pub(super) fn run(link: &mut Link, sql: &str, parameters: &[SqlParameter]) -> Result<JsonTable, Failure> {
    let statement = without_end(sql);
    if statement.trim().is_empty() {
        return Err(Failure::Refused("it is empty".to_owned()));
    }
    link.call(ANSWER + LONG, async |connected| match read(connected, sql, statement, parameters).await {
        // It is the query that names what is not there: the tables of the store were there when it was opened.
        Err(error) if is_about_names(&error) => Ok(Err(Failure::Refused(error_text(&error)))),
        Err(error) => Err(error),
        Ok(table) => Ok(table.ok_or_else(|| {
            Failure::Refused("expected one SELECT, which reads: got another kind of statement".to_owned())
        })),
    })?
}

/// The table; none for a statement that has no rows to read.
async fn read(
    connected: &mut Connected,
    sql: &str,
    statement: &str,
    parameters: &[SqlParameter],
) -> Result<Option<JsonTable>, Error> {
    let kinds: Vec<Type> = parameters.iter().map(SqlParameter::kind).collect();
    let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|one| one as _).collect();
    let transaction = connected.transaction().await?;
    transaction.batch_execute("SET TRANSACTION READ ONLY").await?;
    // As it was written, so that errors are about it and nothing in it can end the parentheses below.
    let prepared = transaction.prepare_typed(sql, &kinds).await?;
    let columns: Vec<String> = prepared.columns().iter().map(|column| column.name().to_owned()).collect();
    // On a line of its own: the statement may end in a comment. `.*`, since it may have a column of that name.
    let wrapped = format!("SELECT row_to_json(one.*)::text FROM (\n{statement}\n) AS one");
    let wrapped = match transaction.prepare_typed(&wrapped, &kinds).await {
        Err(error) if error.code() == Some(&SqlState::SYNTAX_ERROR) => return Ok(None),
        prepared => prepared?,
    };
    let rows = transaction.query(&wrapped, &parameters).await?;
    let rows = rows.iter().map(|row| decode_json(row.get(0))).collect();
    transaction.rollback().await?;
    Ok(Some(JsonTable { columns, rows }))
}

fn is_about_names(error: &Error) -> bool {
    let names = [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME, SqlState::UNDEFINED_FUNCTION];
    error.code().is_some_and(|code| names.contains(code))
}

fn error_text(error: &Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |cause| cause.message().to_owned())
}

/// The statement up to the semicolon that ends it. Those in texts, names and comments are parts of it.
fn without_end(sql: &str) -> &str {
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        if first == ';' {
            return sql.get(..sql.len() - rest.len()).unwrap_or(sql);
        }
        rest = after_token(rest, first);
    }
    sql
}

/// What follows the first text, name, comment or character.
fn after_token(sql: &str, first: char) -> &str {
    let one = sql.get(first.len_utf8()..).unwrap_or_default();
    match first {
        '\'' | '"' => after(one, if first == '"' { "\"" } else { "'" }),
        'e' | 'E' if one.starts_with('\'') => after_escaped(one.get(1..).unwrap_or_default()),
        // The whole word, so that the last letter of another one is not taken for the beginning of a text.
        _ if first.is_alphanumeric() || first == '_' => {
            one.trim_start_matches(|next: char| next.is_alphanumeric() || next == '_' || next == '$')
        }
        '-' if one.starts_with('-') => after(one, "\n"),
        '/' if one.starts_with('*') => after_comment(one.get(1..).unwrap_or_default()),
        '$' => after_dollars(sql, one),
        _ => one,
    }
}

fn after<'a>(sql: &'a str, end: &str) -> &'a str {
    sql.split_once(end).map_or("", |(_, rest)| rest)
}

/// The rest of a text that has escapes: `E'it\'s'`.
fn after_escaped(sql: &str) -> &str {
    let mut characters = sql.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '\'' => break,
            _ => {}
        }
    }
    characters.as_str()
}

/// Comments contain comments.
fn after_comment(sql: &str) -> &str {
    let (mut rest, mut depth) = (sql, 1);
    while depth > 0 {
        let Some(at) = rest.find(['/', '*']) else { return "" };
        let here = rest.get(at..).unwrap_or_default();
        let step = match here.get(..2) {
            Some("/*") => 1,
            Some("*/") => -1,
            _ => 0,
        };
        depth += step;
        rest = here.get(if step == 0 { 1 } else { 2 }..).unwrap_or_default();
    }
    rest
}

/// `$tag$ … $tag$`; or a parameter, `$1`.
fn after_dollars<'a>(sql: &'a str, one: &'a str) -> &'a str {
    let Some((tag, body)) = one.split_once('$') else { return one };
    let is_tag = !tag.starts_with(|first: char| first.is_ascii_digit())
        && tag.chars().all(|character| character.is_alphanumeric() || character == '_');
    let quote = sql.get(..tag.len() + 2).unwrap_or_default();
    if is_tag { after(body, quote) } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_ends_at_its_semicolon() {
        for (sql, statement) in [
            ("SELECT 1", "SELECT 1"),
            ("SELECT 1; -- done;", "SELECT 1"),
            ("SELECT 1 -- a; b\n; /* c */", "SELECT 1 -- a; b\n"),
            ("SELECT 1 /* a /* b; */ ; */ + 1;", "SELECT 1 /* a /* b; */ ; */ + 1"),
            ("SELECT 'a;''b;' || \"c;\";", "SELECT 'a;''b;' || \"c;\""),
            ("SELECT E'a\\';' ;", "SELECT E'a\\';' "),
            ("SELECT some'a\\' ; 'b'", "SELECT some'a\\' "),
            ("SELECT $$ ; $a$ ; $$;", "SELECT $$ ; $a$ ; $$"),
            ("SELECT $a$ ; $$ ; $a$;", "SELECT $a$ ; $$ ; $a$"),
            ("SELECT $1, $2;", "SELECT $1, $2"),
            ("SELECT a$b$; $b$", "SELECT a$b$"),
            (";", ""),
            ("SELECT '", "SELECT '"),
            ("/* ", "/* "),
        ] {
            assert_eq!(without_end(sql), statement);
        }
    }
}
