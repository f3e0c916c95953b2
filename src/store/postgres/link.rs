//! One connection to the server, made again when it breaks. Each call has an end: a server that does not answer in
//! time is unreachable.

use super::address::Address;
use crate::store::StoreError;
use futures_util::future::join;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement, Transaction};

/// How long a call may take that is no query of a user.
pub(super) const ANSWER: Duration = Duration::from_secs(30);
/// Between two tries to reach a server that is away.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// The column of a statement that names its transaction: `pg_current_xact_id()::text`.
const TRANSACTION: &str = "pg_current_xact_id";

/// Why a call failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is no connection, or no answer: what was sent may have been carried out or not.
    Unreachable(String),
    /// The same call may succeed now: it was chosen as the victim of a deadlock, for example.
    Again(String),
    /// The server refuses it.
    Refused(String),
    /// There is no schema, or an older one.
    NoSchema,
}

impl Failure {
    /// The error of a store at this address.
    pub(super) fn of(self, address: &Address) -> StoreError {
        let server = address.shown().to_owned();
        match self {
            Self::Unreachable(cause) => StoreError::Unreachable { server, cause },
            Self::Again(cause) | Self::Refused(cause) => StoreError::Statement { server, cause },
            Self::NoSchema => StoreError::NoSchema { server },
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let Some(cause) = error.as_db_error() else {
            // The cause is behind the words of the client library.
            let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            return if error.is_closed() || error.to_string().contains("communicating") {
                Self::Unreachable(cause)
            } else {
                Self::Refused(format!("{error}: {cause}"))
            };
        };
        let text = cause.message().to_owned();
        let code = cause.code();
        if [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE, SqlState::LOCK_NOT_AVAILABLE]
            .contains(code)
        {
            return Self::Again(text);
        }
        if [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME, SqlState::UNDEFINED_FUNCTION].contains(code) {
            return Self::NoSchema;
        }
        // It waited too long for the end of a transaction, and has ended the connection.
        if *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT {
            return Self::Unreachable(text);
        }
        // Class 57: the server is being stopped or started. 53: it has no connection or no disk left.
        if code.code().starts_with("57") || code.code().starts_with("53") || code.code().starts_with("08") {
            return Self::Unreachable(text);
        }
        Self::Refused(text)
    }
}

/// A connection with what is prepared on it.
pub(super) struct Connected {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

pub(super) type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Connected {
    async fn prepared(&mut self, sql: &'static str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }

    /// The rows of a statement that stays prepared.
    pub(super) async fn query(&mut self, sql: &'static str, parameters: Parameters<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.client.query(&statement, parameters).await
    }

    /// Runs a statement in a transaction of its own. `answered` has its rows before the transaction is committed.
    async fn commit(
        &mut self,
        sql: &'static str,
        parameters: Parameters<'_>,
        answered: &mut Vec<Row>,
    ) -> Result<(), Error> {
        // A process that is frozen before it commits must not keep what it has locked.
        const BEGIN: &str = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '2s'";
        answered.clear();
        let statement = self.prepared(sql).await?;
        // Sent together: one answer is waited for, and not two.
        let (begun, rows) = join(self.client.batch_execute(BEGIN), self.client.query(&statement, parameters)).await;
        begun?;
        match rows {
            Ok(rows) => *answered = rows,
            Err(error) => {
                self.client.batch_execute("ROLLBACK").await?;
                return Err(error);
            }
        }
        self.client.batch_execute("COMMIT").await
    }

    /// The client itself.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// A transaction.
    pub(super) async fn transaction(&mut self) -> Result<Transaction<'_>, Error> {
        self.client.transaction().await
    }
}

/// A connection that is made when it is first needed, and made again after it broke.
pub(super) struct Link {
    address: Address,
    runtime: Runtime,
    connected: Option<Connected>,
}

impl Link {
    /// # Errors
    /// The system gives no means to wait for sockets.
    pub(super) fn new(address: Address) -> Result<Self, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Unreachable {
            server: address.shown().to_owned(),
            cause: error.to_string(),
        })?;
        Ok(Self { address, runtime, connected: None })
    }

    /// Does something on the connection, within this time.
    pub(super) fn call<T>(
        &mut self,
        limit: Duration,
        act: impl AsyncFnOnce(&mut Connected) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let Self { address, runtime, connected } = self;
        let mut present = connected.take().filter(|connected| !connected.client.is_closed());
        let done = runtime.block_on(async {
            let connected = match &mut present {
                Some(connected) => connected,
                none => none.insert(connect(address).await?),
            };
            let done = timeout(limit, act(connected)).await;
            done.map_err(|_| Failure::Unreachable(format!("no answer within {} s", limit.as_secs_f64())))?
                .map_err(Failure::from)
        });
        // After no answer nobody knows what the connection is in the middle of.
        *connected = if matches!(done, Err(Failure::Unreachable(_))) { None } else { present };
        done
    }

    /// The same, again for as long as it is refused for the moment only.
    pub(super) fn call_again<T>(
        &mut self,
        limit: Duration,
        mut act: impl AsyncFnMut(&mut Connected) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        const TIMES: u32 = 20;
        for _ in 1..TIMES {
            match self.call(limit, &mut act) {
                Err(Failure::Again(_)) => {}
                done => return done,
            }
        }
        self.call(limit, act)
    }

    /// Does something once, though the connection may break: whether a commit took place that has no answer, is asked of
    /// the server. The statement has the column `TRANSACTION`; one without rows must have done nothing.
    pub(super) fn once(
        &mut self,
        limit: Duration,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Failure> {
        loop {
            let mut rows = Vec::new();
            let done = self.call_again(limit, async |connected| connected.commit(sql, parameters, &mut rows).await);
            match (done, rows.first()) {
                (Err(Failure::Unreachable(_)), Some(row)) => {
                    if self.has_committed(row.get(TRANSACTION), limit)? {
                        return Ok(rows);
                    }
                }
                (done, _) => return done.map(|()| rows),
            }
        }
    }

    /// Whether a transaction took place whose connection has broken.
    fn has_committed(&mut self, transaction: &str, limit: Duration) -> Result<bool, Failure> {
        let sql = "SELECT pg_xact_status($1::text::xid8)";
        let until = Instant::now() + limit;
        while Instant::now() < until {
            match self.call(limit, async |connected| connected.query(sql, &[&transaction]).await) {
                Ok(rows) => match rows.first().and_then(|row| row.get(0)) {
                    // The server has not yet seen that the connection is gone.
                    Some("in progress") => {}
                    status => return Ok(status == Some("committed")),
                },
                // Another server, which has never had it.
                Err(Failure::Refused(_)) => return Ok(false),
                Err(Failure::Unreachable(_) | Failure::Again(_)) => {}
                Err(failure) => return Err(failure),
            }
            std::thread::sleep(PAUSE);
        }
        Err(Failure::Refused(
            "the connection broke, and whether this took effect is not known: look before you repeat it".into(),
        ))
    }

    /// Ends the connection.
    pub(super) fn close(&mut self) {
        self.connected = None;
        // The goodbye to the server.
        self.runtime.block_on(async { tokio::task::yield_now().await });
    }
}

async fn connect(address: &Address) -> Result<Connected, Failure> {
    let connecting = address.config().connect(address.tls().clone());
    let connected = timeout(CONNECT, connecting).await;
    let (client, connection) = match connected {
        Ok(Ok(connected)) => connected,
        Ok(Err(error)) => {
            // A refusal by the server has a code; everything else is about reaching it.
            let is_refusal = error.as_db_error().is_some();
            return Err(match Failure::from(error) {
                Failure::Refused(cause) if !is_refusal => Failure::Unreachable(address.explained(cause)),
                failure => failure,
            });
        }
        Err(_) => return Err(Failure::Unreachable(format!("no answer within {} s", CONNECT.as_secs()))),
    };
    tokio::spawn(connection);
    Ok(Connected { client, statements: HashMap::new() })
}
