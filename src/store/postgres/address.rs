//! The address of a database: a URL as libpq takes it.

use super::tls;
use crate::store::StoreError;
use std::net::IpAddr;
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
    /// Nobody has said whether connections are encrypted, and the server is on another machine.
    requires_tls_unasked: bool,
    /// Without the password.
    shown: String,
}

impl Address {
    /// Reads `postgresql://user:password@host:port/database?sslmode=…`. Without a password, `PGPASSWORD` is used;
    /// without `sslmode`, `PGSSLMODE`. Without either, a server on another machine has to encrypt: libpq's default of
    /// `prefer` would send everything in clear text to a server without TLS, and nobody would notice.
    ///
    /// # Errors
    /// `Address`: it is no such URL, or its certificates can't be read.
    pub(super) fn read(url: &str) -> Result<Self, StoreError> {
        let mode = std::env::var("PGSSLMODE").ok().filter(|mode| !mode.is_empty());
        Self::read_with(url, mode.as_deref())
    }

    /// The same, with the mode of a URL that names none.
    fn read_with(url: &str, mode: Option<&str>) -> Result<Self, StoreError> {
        let mut url = url.to_owned();
        let mut says_mode = query(&url).any(|option| option.starts_with("sslmode="));
        if let Some(mode) = mode
            && !says_mode
        {
            let separator = if url.contains('?') { '&' } else { '?' };
            url = format!("{url}{separator}sslmode={mode}");
            says_mode = true;
        }
        let (url, verify, roots) = take_verification(&url)?;
        let wrong = |cause: String| StoreError::Address { cause };
        let mut config = Config::from_str(&url).map_err(|error| {
            let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            wrong(cause)
        })?;
        if config.get_hosts().is_empty() {
            return Err(wrong("it names no host".to_owned()));
        }
        let requires_tls_unasked = !says_mode && !is_here(&config);
        if verify || requires_tls_unasked {
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
        Ok(Self(Arc::new(Parts { config, tls, requires_tls_unasked, shown })))
    }

    pub(super) fn config(&self) -> &Config {
        &self.0.config
    }

    pub(super) fn tls(&self) -> &MakeRustlsConnect {
        &self.0.tls
    }

    /// Why it can't be reached, for people.
    pub(super) fn explained(&self, cause: String) -> String {
        if self.0.requires_tls_unasked && cause.contains("does not support TLS") {
            return "it offers no TLS, and it is on another machine: turn ssl on in the server, or pass \
                    ?sslmode=disable in the URL if you trust the network between"
                .to_owned();
        }
        cause
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

/// Whether nothing leaves this machine: each host is a socket of its file system, or a loopback address.
fn is_here(config: &Config) -> bool {
    let is_loopback = |address: &str| match address.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => address.eq_ignore_ascii_case("localhost"),
    };
    let addresses = config.get_hostaddrs();
    if !addresses.is_empty() {
        return addresses.iter().all(IpAddr::is_loopback);
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(host) => is_loopback(host),
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

/// The options at the end of a URL.
fn query(url: &str) -> impl Iterator<Item = &str> {
    url.split_once('?').map_or("", |(_, query)| query).split('&').filter(|option| !option.is_empty())
}

/// Takes what the client library does not know out of a URL: whether the server is verified, and by which roots.
fn take_verification(url: &str) -> Result<(String, bool, Option<PathBuf>), StoreError> {
    let before = url.split_once('?').map_or(url, |(before, _)| before);
    let (mut verify, mut roots, mut kept) = (false, None, Vec::new());
    for option in query(url) {
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
    fn only_a_server_on_another_machine_has_to_encrypt_unasked() {
        let mode = |url: &str, asked| Address::read_with(url, asked).unwrap().config().get_ssl_mode();
        for url in ["db", "db.example:5433", "10.0.0.7", "localhost,db", "[2001:db8::1]", "u:p@db"] {
            let url = format!("postgresql://{url}/agents");
            assert_eq!(mode(&url, None), SslMode::Require, "{url}");
            assert_eq!(mode(&format!("{url}?sslmode=disable"), None), SslMode::Disable, "{url}");
            assert_eq!(mode(&format!("{url}?connect_timeout=3&sslmode=allow"), None), SslMode::Prefer, "{url}");
            assert_eq!(mode(&url, Some("disable")), SslMode::Disable, "{url}");
            assert_eq!(mode(&format!("{url}?sslmode=prefer"), Some("verify-full")), SslMode::Prefer, "{url}");
            assert_eq!(mode(&url, Some("verify-full")), SslMode::Require, "{url}");
        }
        for url in ["localhost", "127.0.0.1:5433", "[::1]", "%2Frun%2Fpostgresql", "127.0.0.1,localhost"] {
            let url = format!("postgresql://me@{url}/agents");
            assert_eq!(mode(&url, None), SslMode::Prefer, "{url}");
            assert_eq!(mode(&url, Some("require")), SslMode::Require, "{url}");
        }
        assert_eq!(mode("postgresql://me@db/agents?hostaddr=127.0.0.1", None), SslMode::Prefer);
        assert_eq!(mode("postgresql://me@localhost/agents?hostaddr=10.0.0.7", None), SslMode::Require);
    }

    #[test]
    fn what_is_wrong_with_one_is_said() {
        for url in ["postgresql://", "postgresql://h/db?sslmode=often", "postgresql://h:port/db", "mysql://h/db"] {
            assert!(matches!(Address::read(url), Err(StoreError::Address { .. })), "{url}");
        }
    }
}
