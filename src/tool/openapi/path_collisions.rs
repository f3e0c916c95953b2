//! Which operation a request belongs to. A value in a path may spell the path of another operation, and a parameter the
//! method of one.

use super::api::Api;
use super::operation::Operation;
use super::path_readings::{decoded, interpretations, is_parent, read};
use super::route::{Piece, pieces};
use crate::hex::hex;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::sync::Arc;

/// All operations of all documents by their paths.
#[derive(Debug)]
pub(crate) struct PathCollisions {
    places: Vec<OperationPath>,
}

/// An operation of a document, offered or not.
#[derive(Debug)]
struct OperationPath {
    name: String,
    method: String,
    offered: bool,
    /// Host and port; `None` where that is not known.
    host: Option<String>,
    /// Of the server's path.
    base: Vec<String>,
    segments: Vec<Vec<Piece>>,
}

/// Another operation that a concrete path may reach.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reached<'a> {
    /// `METHOD /path`.
    pub(crate) name: &'a str,
    /// Whether a run may call it.
    pub(crate) offered: bool,
}

impl PathCollisions {
    pub(crate) fn of(apis: &[Arc<Api>]) -> Self {
        let mut places = Vec::new();
        for api in apis {
            let marks = api.document.member(MARKS);
            let said = marks.and_then(|marks| marks.get("server"));
            let hidden = marks.and_then(|marks| marks.get("others")).and_then(Json::as_array);
            for operation in api.operations.values() {
                let (host, base) = server(said, || api.server(&operation.name).ok().flatten());
                places.push(OperationPath::new(&operation.method, &operation.path, true, host, base));
            }
            for (method, path) in hidden.into_iter().flatten().filter_map(|name| name.as_str()?.split_once(' ')) {
                let (host, base) = server(said, || api.default_server());
                places.push(OperationPath::new(method, path, false, host, base));
            }
        }
        Self { places }
    }

    /// The other operations that a request to `path` of the operation `name` may be taken for, under any interpretation
    /// of the path, and with each of these methods in place of its own.
    pub(crate) fn reached(&self, name: &str, path: &str, methods: &[String]) -> Vec<Reached<'_>> {
        let Some(own) = self.places.iter().find(|place| place.offered && place.name == name) else {
            return Vec::new();
        };
        let readings = interpretations(path).into_iter();
        let readings: Vec<(Vec<String>, Option<Vec<usize>>)> = readings
            .map(|read| own.base.iter().cloned().chain(read).collect::<Vec<_>>())
            .map(|written| (own.fit(&written), written))
            .map(|(fits, written)| (written, fits))
            .collect();
        let others = self.places.iter().filter(|place| place.name != name && place.is_at(own, methods));
        let reached = others.filter(|place| {
            readings.iter().any(|(written, fits)| {
                let Some(exact) = place.fit(written) else { return false };
                let more = fits.as_ref().is_none_or(|own| own.iter().zip(&exact).any(|(own, other)| other > own));
                // What may be asked with GET only after approval is not to be asked with HEAD.
                let as_get = place.offered && own.method == "HEAD" && place.method == "GET";
                more || (as_get && fits.as_ref() == Some(&exact)) || methods.contains(&place.method)
            })
        });
        reached.map(|place| Reached { name: &place.name, offered: place.offered }).collect()
    }
}

/// The member of a document that says what was left out of it and where its server is.
pub(crate) const MARKS: &str = "x-callslip";

/// What a document is marked with: the operations that are not offered and may be taken for one that is, and the server
/// where it is another than the document names. Its parts are hashed, since an address may hold a secret.
pub(crate) fn marks(offered: &Api, whole: &Api, address: Option<&str>) -> Json {
    let starts: Vec<String> = offered.operations.values().filter(|one| one.path.contains('{')).map(start).collect();
    let hidden = whole.operations.values().filter(|one| !offered.operations.contains_key(&one.name));
    // Only a path that begins as one with a placeholder does can be spelled by it. On one path, another method can be said.
    let paths: HashSet<&str> = offered.operations.values().map(|one| one.path.as_str()).collect();
    let near = |one: &&Operation| {
        let own = start(one);
        paths.contains(one.path.as_str())
            || starts.iter().any(|other| own.starts_with(other.as_str()) || other.starts_with(&own))
    };
    let others: Vec<&str> = hidden.filter(near).map(|one| one.name.as_str()).collect();
    let mut marks = serde_json::json!({ "others": others, "secured": whole.document.says_security() });
    if let (Some((host, base)), Some(members)) = (address.map(address_of), marks.as_object_mut()) {
        let base: Vec<String> = base.iter().map(|segment| hashed(segment)).collect();
        members.insert("server".to_owned(), serde_json::json!({"host": host.map(|host| hashed(&host)), "base": base}));
    }
    marks
}

/// The path up to its first placeholder.
fn start(operation: &Operation) -> String {
    let path = operation.path.split(['{', '?', '#']).next().unwrap_or_default();
    format!("/{}", read(path).join("/")).trim_end_matches('/').to_owned()
}

fn server(said: Option<&Json>, document: impl FnOnce() -> Option<String>) -> (Option<String>, Vec<String>) {
    let Some(said) = said else {
        let (host, base) = document().map(|url| address_of(&url)).unwrap_or_default();
        return (host.map(|host| hashed(&host)), base);
    };
    let base = said.get("base").and_then(Json::as_array).into_iter().flatten();
    let host = said.get("host").and_then(Json::as_str).map(str::to_owned);
    (host, base.filter_map(Json::as_str).map(str::to_owned).collect())
}

/// The host of a URL, where it names one, and the segments of its path.
fn address_of(url: &str) -> (Option<String>, Vec<String>) {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("//") {
        Some((_, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit('@').next().unwrap_or_default().to_lowercase();
            let plain = host.trim_end_matches(":443").trim_end_matches(":80").to_owned();
            ((!plain.is_empty()).then_some(plain), read(path))
        }
        None => (None, read(url)),
    }
}

fn hashed(text: &str) -> String {
    // No segment holds this mark, which ends a path.
    format!("#{}", hex(&Sha256::digest(text)).get(..16).unwrap_or_default())
}

impl OperationPath {
    fn new(method: &str, path: &str, offered: bool, host: Option<String>, base: Vec<String>) -> Self {
        let plain = path.split(['?', '#']).next().unwrap_or_default();
        let segments = plain.split('/').filter(|segment| !segment.is_empty()).map(|segment| {
            let loosely = |piece| match piece {
                Piece::Text(text) => Piece::Text(decoded(&text).to_lowercase()),
                name @ Piece::Name(_) => name,
            };
            pieces(segment).into_iter().map(loosely).collect()
        });
        let segments = segments.collect();
        Self { name: format!("{method} {path}"), method: method.to_owned(), offered, host, base, segments }
    }

    /// Whether a request that is meant for `other` could come here: the same method, one that servers take for it or one of
    /// `methods`, and the same host as far as that is known.
    fn is_at(&self, other: &Self, methods: &[String]) -> bool {
        let reads = |place: &Self| matches!(place.method.as_str(), "GET" | "HEAD");
        let alike = self.method == other.method || (reads(self) && reads(other)) || methods.contains(&self.method);
        alike && !matches!((&self.host, &other.host), (Some(own), Some(host)) if own != host)
    }

    /// How exactly each segment of a path is said here; `None` where it is another path.
    fn fit(&self, written: &[String]) -> Option<Vec<usize>> {
        if written.len() != self.base.len() + self.segments.len() {
            return None;
        }
        let (base, path) = written.split_at_checked(self.base.len())?;
        if !base.iter().zip(&self.base).all(|(written, own)| same(written, own)) {
            return None;
        }
        let mut exact = vec![usize::MAX; base.len()];
        for (pieces, text) in self.segments.iter().zip(path) {
            exact.push(exactness(pieces, text)?);
        }
        Some(exact)
    }
}

fn same(left: &str, right: &str) -> bool {
    left == right || hashed(left) == right || left == hashed(right)
}

/// How many characters of the text are said by the pieces; all of them where there is no placeholder.
fn exactness(pieces: &[Piece], text: &str) -> Option<usize> {
    if let [Piece::Text(own)] = pieces {
        return same(own, text).then_some(usize::MAX);
    }
    let said = pieces.iter().map(|piece| if let Piece::Text(text) = piece { text.len() } else { 0 }).sum();
    fits(pieces, text).then_some(said)
}

fn fits(pieces: &[Piece], text: &str) -> bool {
    match pieces {
        [] => text.is_empty(),
        [Piece::Text(own), rest @ ..] => text.strip_prefix(own.as_str()).is_some_and(|after| fits(rest, after)),
        [Piece::Name(_)] => !text.is_empty(),
        [Piece::Name(_), rest @ ..] => {
            let mut ends = text.char_indices().skip(1).map(|(at, _)| at);
            ends.any(|at| text.get(at..).is_some_and(|after| fits(rest, after)))
        }
    }
}

/// Whether a value in a path would lead out of its segment once it is decoded.
pub(super) fn climbs(text: &str) -> bool {
    decoded(text).split(['/', '\\']).any(is_parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::openapi::Traits;

    fn reached(name: &str, path: &str) -> Vec<String> {
        let whole = Arc::new(
            Api::parse(
                r#"{"openapi": "3.1.0", "servers": [{"url": "https://a.example/v1"}], "paths": {
                    "/users/{name}": {"delete": {}, "head": {}},
                    "/users/all": {"delete": {}, "get": {}},
                    "/users/{name}/keys": {"delete": {}},
                    "/{any}/x": {"delete": {}}
                }}"#,
            )
            .unwrap(),
        );
        let names = ["DELETE /users/{name}".to_owned(), "HEAD /users/{name}".to_owned()];
        let offered = whole.only(&names, &Traits::new());
        let offered = offered.marked(&whole, None);
        let neighbours = PathCollisions::of(&[offered]);
        neighbours.reached(name, path, &[]).iter().map(|one| one.name.to_owned()).collect()
    }

    #[test]
    fn a_value_may_spell_another_path() {
        for path in [
            "/users/all",
            "/users/ALL",
            "/users/%61ll",
            "/users/%2561ll",
            "/users/all%2F",
            "/users/all%20",
            "/users/.%2Fall",
            "/users/x%2F..%2Fall",
            "/users/all%3Bv=1",
            "/users/%5Call",
        ] {
            assert_eq!(reached("DELETE /users/{name}", path), ["DELETE /users/all"], "{path}");
        }
        assert_eq!(reached("DELETE /users/{name}", "/users/ann%2Fkeys"), ["DELETE /users/{name}/keys"]);
        assert_eq!(reached("HEAD /users/{name}", "/users/all"), ["GET /users/all"]);
        for path in ["/users/ann", "/users/allan", "/users/ann%3Ball"] {
            assert!(reached("DELETE /users/{name}", path).is_empty(), "{path}");
        }
    }

    #[test]
    fn an_operation_is_reached_in_another_document_of_the_server() {
        let api = |server: &str, path: &str| {
            let text = format!(
                r#"{{"openapi": "3.1.0", "servers": [{{"url": "{server}"}}], "paths": {{"{path}": {{"delete": {{}}}}}}}}"#
            );
            Arc::new(Api::parse(&text).unwrap())
        };
        let one = api("https://a.example/v1", "/users/{name}");
        let reached = |other: Arc<Api>| {
            let all = PathCollisions::of(&[Arc::clone(&one), other]);
            all.reached("DELETE /users/{name}", "/users/all", &[]).len()
        };
        assert_eq!(reached(api("https://a.example:443", "/v1/users/all")), 1);
        assert_eq!(reached(api("https://b.example", "/v1/users/all")), 0);
        assert_eq!(reached(api("https://a.example/v2", "/users/all")), 0);
        let plain = api("https://c.example", "/users/all");
        assert_eq!(reached(plain.marked(&plain, Some("https://a.example/v1"))), 1);
        let text = serde_json::to_string(&*plain.marked(&plain, Some("https://a.example/s3cr3t-path"))).unwrap();
        assert!(!text.contains("s3cr3t"));
    }
}
