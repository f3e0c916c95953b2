//! The address of a database: a URL as libpq takes it.

use super::tls;
use crate::store::StoreError;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The variable with the name of the user of this machine.
const USER: &str = if cfg!(windows) { "USERNAME" } else { "USER" };

/// Where a database is, and how it is reached.
#[derive(Clone)]
pub(super) struct Address(Arc<Parts>);

struct Parts {
    config: Config,
    tls: MakeRustlsConnect,
    /// Without the password.
    shown: String,
}

impl Address {
    /// Reads `postgresql://user:password@host:port/database?sslmode=…`. Without a password, `PGPASSWORD` is used.
    ///
    /// # Errors
    /// `Address`: it is no such URL, or its certificates can't be read.
    pub(super) fn read(url: &str) -> Result<Self, StoreError> {
        let (url, verify, roots) = take_verification(url)?;
        let wrong = |cause: String| StoreError::Address { cause };
        let mut config = Config::from_str(&url).map_err(|error| {
            let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            wrong(cause)
        })?;
        if config.get_hosts().is_empty() {
            return Err(wrong("it names no host".to_owned()));
        }
        if verify {
            config.ssl_mode(SslMode::Require);
        }
        if config.get_password().is_none()
            && let Ok(password) = std::env::var("PGPASSWORD")
        {
            config.password(password);
        }
        if config.get_user().is_none()
            && let Ok(user) = std::env::var("PGUSER").or_else(|_| std::env::var(USER))
        {
            config.user(user);
        }
        if config.get_application_name().is_none() {
            config.application_name("callslip");
        }
        let tls = tls::connector(verify, roots.as_deref()).map_err(wrong)?;
        let shown = shown(&config);
        Ok(Self(Arc::new(Parts { config, tls, shown })))
    }

    pub(super) fn config(&self) -> &Config {
        &self.0.config
    }

    pub(super) fn tls(&self) -> &MakeRustlsConnect {
        &self.0.tls
    }

    /// It without its password.
    pub(super) fn shown(&self) -> &str {
        &self.0.shown
    }
}

fn shown(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    let port = config.get_ports().first().map_or_else(String::new, |port| format!(":{port}"));
    let user = config.get_user().map_or_else(String::new, |user| format!("{user}@"));
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgresql://{user}{host}{port}/{database}")
}

/// Takes what the client library does not know out of a URL: whether the server is verified, and by which roots.
fn take_verification(url: &str) -> Result<(String, bool, Option<PathBuf>), StoreError> {
    let Some((before, query)) = url.split_once('?') else { return Ok((url.to_owned(), false, None)) };
    let (mut verify, mut roots, mut kept) = (false, None, Vec::new());
    for option in query.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("sslmode", "verify-ca" | "verify-full")) => verify = true,
            Some(("sslmode", "allow")) => kept.push("sslmode=prefer"),
            Some(("sslrootcert", path)) => {
                let path = percent_encoding::percent_decode_str(path).decode_utf8();
                let path = path.map_err(|error| StoreError::Address { cause: error.to_string() })?;
                roots = (path != "system").then(|| PathBuf::from(&*path));
            }
            _ => kept.push(option),
        }
    }
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    Ok((format!("{before}{query}"), verify, roots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let address = Address::read("postgresql://me:secret@db.example:5433/agents?sslmode=verify-full").unwrap();
        assert_eq!(address.shown(), "postgresql://me@db.example:5433/agents");
        assert_eq!(address.config().get_ssl_mode(), SslMode::Require);
    }

    #[test]
    fn what_is_wrong_with_one_is_said() {
        for url in ["postgresql://", "postgresql://h/db?sslmode=often", "postgresql://h:port/db", "mysql://h/db"] {
            assert!(matches!(Address::read(url), Err(StoreError::Address { .. })), "{url}");
        }
    }
}
