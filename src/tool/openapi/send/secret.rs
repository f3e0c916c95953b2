//! Security schemes: which of them an operation is called with, and where a secret goes.

use super::url::{UNRESERVED, encode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

/// What proves who calls.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A key or token.
    Token(String),
    /// For `http` `basic`.
    Basic {
        /// Without a colon.
        user: String,
        /// Any text.
        password: String,
    },
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Credential(…)")
    }
}

/// Where the secret of a scheme goes.
#[derive(Debug)]
pub(super) enum Scheme<'a> {
    Header(&'a str),
    Query(&'a str),
    Cookie(&'a str),
    /// Of `Authorization`, with the name that goes before.
    Http(&'a str),
}

impl<'a> Scheme<'a> {
    pub(super) fn read(scheme: &'a Json) -> Option<Self> {
        let text = |key: &str| scheme.get(key).and_then(Json::as_str);
        Some(match text("type")? {
            "apiKey" => {
                let name = text("name")?;
                match text("in")? {
                    "query" => Self::Query(name),
                    "cookie" => Self::Cookie(name),
                    _ => Self::Header(name),
                }
            }
            "http" => Self::Http(text("scheme")?),
            "oauth2" | "openIdConnect" => Self::Http("Bearer"),
            _ => return None,
        })
    }

    /// Where it goes: two secrets can't go to one place.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Header(name) => format!("header {}", name.to_lowercase()),
            Self::Query(name) => format!("query {name}"),
            Self::Cookie(name) => format!("cookie {name}"),
            Self::Http(_) => "header authorization".to_owned(),
        }
    }

    pub(super) fn apply(
        &self,
        credential: &Credential,
        query: &mut Vec<(String, String)>,
        headers: &mut Vec<(String, String)>,
        cookies: &mut Vec<(String, String)>,
    ) -> Result<(), String> {
        let basic = matches!(self, Self::Http(scheme) if scheme.eq_ignore_ascii_case("basic"));
        if matches!(credential, Credential::Basic { .. }) && !basic {
            // As text it would put the password where no server looks for one.
            return Err("its security scheme takes a key or token, not user and password".to_owned());
        }
        match self {
            Self::Header(name) => headers.push(((*name).to_owned(), credential.text())),
            Self::Query(name) => query.push((encode(name, UNRESERVED), encode(&credential.text(), UNRESERVED))),
            Self::Cookie(name) => cookies.push(((*name).to_owned(), credential.text())),
            Self::Http(scheme) => headers.push(("Authorization".to_owned(), credential.authorization(scheme))),
        }
        Ok(())
    }
}

impl Credential {
    fn text(&self) -> String {
        match self {
            Self::Token(token) => token.clone(),
            Self::Basic { user, password } => format!("{user}:{password}"),
        }
    }

    fn authorization(&self, scheme: &str) -> String {
        let lower = scheme.to_lowercase();
        let text = self.text();
        // Who gives the whole header means the same.
        if text.split_once(' ').is_some_and(|(first, _)| first.eq_ignore_ascii_case(scheme)) {
            return text;
        }
        match lower.as_str() {
            "basic" if text.contains(':') => format!("Basic {}", STANDARD.encode(text)),
            "basic" => format!("Basic {text}"),
            "bearer" => format!("Bearer {text}"),
            _ => format!("{scheme} {text}"),
        }
    }
}

/// The schemes of the first requirement that the available credentials meet. Where a call may also be made without,
/// one that can prove who it is does.
/// If none is met, the available part of the one that lacks least: the client may add the rest itself.
pub(super) fn choose(security: &Json, available: &[String]) -> Vec<String> {
    let requirements = || security.as_array().into_iter().flatten().filter_map(Json::as_object);
    let met = requirements().filter(|requirement| requirement.keys().all(|name| available.contains(name)));
    let mut met: Vec<Vec<String>> = met.map(|requirement| requirement.keys().cloned().collect()).collect();
    met.sort_by_key(Vec::is_empty);
    if let Some(first) = met.into_iter().next() {
        return first;
    }
    let given = requirements().map(|requirement| {
        let given: Vec<String> = requirement.keys().filter(|name| available.contains(name)).cloned().collect();
        (requirement.len() - given.len(), given)
    });
    let given = given.filter(|(_, given)| !given.is_empty()).min_by_key(|(lacking, _)| *lacking);
    given.map(|(_, given)| given).unwrap_or_default()
}
