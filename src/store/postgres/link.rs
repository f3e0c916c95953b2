//! One connection to the server, made again when it breaks. Each call has an end: a server that does not answer in
//! time is unreachable.

use super::address::Address;
use crate::store::StoreError;
use std::collections::HashMap;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement, Transaction};

/// How long a call may take that is no query of a user.
pub(super) const ANSWER: Duration = Duration::from_secs(30);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

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
                Failure::Refused(cause) if !is_refusal => Failure::Unreachable(cause),
                failure => failure,
            });
        }
        Err(_) => return Err(Failure::Unreachable(format!("no answer within {} s", CONNECT.as_secs()))),
    };
    tokio::spawn(connection);
    Ok(Connected { client, statements: HashMap::new() })
}
