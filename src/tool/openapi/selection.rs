//! Which operations of a document are offered: by pattern, tag and method.

use super::document::{Document, DocumentError, Members};
use super::operation::{METHODS, Operation};
use crate::tool::describe::{any_of, named};
use crate::tool::nearest_names::closest;
use indexmap::IndexMap;
use serde_json::Value as Json;

/// What is asked for; an operation must meet all that is said.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Patterns of which it must fit one: `GET /repos/**`, `/pets/*` or an `operationId`. `*` stands for anything
    /// within a segment, `**` for any segments. None admits all.
    pub include: Vec<String>,
    /// Tags of which it must have one. None admits all.
    pub tags: Vec<String>,
    /// Whether it must change nothing: `GET`, `HEAD`, `OPTIONS`, `TRACE` and `QUERY`.
    pub read_only: bool,
}

/// Methods that change nothing.
pub(crate) fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "QUERY")
}

impl Selection {
    /// The operations that are asked for, in their order.
    pub(crate) fn of<'a>(
        &self,
        operations: &'a IndexMap<String, Operation>,
    ) -> Result<Vec<&'a Operation>, DocumentError> {
        let patterns: Vec<Pattern<'_>> = self.include.iter().map(|text| Pattern::read(text)).collect();
        for (pattern, text) in patterns.iter().zip(&self.include) {
            if !operations.values().any(|operation| pattern.fits(operation)) {
                let keys = operations.values().flat_map(|operation| [Some(&operation.name), operation.id.as_ref()]);
                return Err(unknown("operation that fits", text, keys.flatten()));
            }
        }
        for tag in &self.tags {
            if !operations.values().any(|operation| operation.tags.contains(tag)) {
                let mut tags: Vec<&String> = operations.values().flat_map(|operation| &operation.tags).collect();
                tags.sort();
                tags.dedup();
                return Err(unknown("operation with the tag", tag, tags.into_iter()));
            }
        }
        let chosen = operations.values().filter(|operation| {
            (patterns.is_empty() || patterns.iter().any(|pattern| pattern.fits(operation)))
                && (self.tags.is_empty() || operation.tags.iter().any(|tag| self.tags.contains(tag)))
                && (!self.read_only || is_safe(&operation.method))
        });
        let chosen: Vec<&Operation> = chosen.collect();
        if chosen.is_empty() && !operations.is_empty() {
            let message = "no operation is left: none fits include, tags and read_only at once";
            return Err(DocumentError::Choice(message.to_owned()));
        }
        Ok(chosen)
    }
}

fn unknown<'a>(what: &str, text: &str, names: impl Iterator<Item = &'a String>) -> DocumentError {
    let near: Vec<String> = closest(text, names.map(String::as_str), 3).into_iter().map(named).collect();
    let advice = if near.is_empty() { String::new() } else { format!(": the nearest are {}", any_of(&near)) };
    DocumentError::Choice(format!("the document has no {what} {}{advice}", named(text)))
}

/// A pattern taken apart.
struct Pattern<'a> {
    method: Option<String>,
    /// Segments of a path, or the one of an id.
    segments: Vec<&'a str>,
    is_path: bool,
}

impl<'a> Pattern<'a> {
    fn read(text: &'a str) -> Self {
        let text = text.trim();
        let (method, target) = match text.split_once(char::is_whitespace) {
            Some(("*", rest)) => (None, rest.trim_start()),
            Some((word, rest)) if METHODS.contains(&word.to_lowercase().as_str()) => {
                (Some(word.to_uppercase()), rest.trim_start())
            }
            _ => (None, text),
        };
        let is_path = target.starts_with('/') || target.starts_with("**") || target == "*";
        let target = if target == "*" { "**" } else { target };
        let segments = if is_path { target.trim_start_matches('/').split('/').collect() } else { vec![target] };
        Self { method, segments, is_path }
    }

    fn fits(&self, operation: &Operation) -> bool {
        if self.method.as_ref().is_some_and(|method| *method != operation.method) {
            return false;
        }
        if self.is_path {
            let path: Vec<&str> = operation.path.trim_start_matches('/').split('/').collect();
            return fits_all(&self.segments, &path);
        }
        operation.id.as_ref().is_some_and(|id| self.segments.iter().all(|pattern| fits_text(pattern, id)))
    }
}

fn fits_all(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (["**", rest @ ..], _) => {
            (0..=path.len()).any(|skipped| path.get(skipped..).is_some_and(|path| fits_all(rest, path)))
        }
        ([first, rest @ ..], [segment, path @ ..]) => fits_text(first, segment) && fits_all(rest, path),
        _ => false,
    }
}

/// Whether `text` is `pattern`, in which each `*` stands for anything.
fn fits_text(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(rest) = text.strip_prefix(before) else {
        return false;
    };
    let mut starts = rest.char_indices().map(|(at, _)| at).chain(std::iter::once(rest.len()));
    starts.any(|at| rest.get(at..).is_some_and(|rest| fits_text(after, rest)))
}

/// What the program says of an operation: members of its `x-callslip`.
pub type Traits = IndexMap<String, Members>;

impl Document {
    /// The document with these operations only, what they refer to, and what `traits` says of them.
    pub(crate) fn only(&self, operations: &[&Operation], traits: &Traits) -> Self {
        let mut paths: IndexMap<&str, Vec<&Operation>> = IndexMap::new();
        for operation in operations {
            paths.entry(&operation.path).or_default().push(operation);
        }
        let kept = paths.into_iter().filter_map(|(path, operations)| {
            let item = self.item(path)?;
            let methods = METHODS.into_iter();
            let mut kept: Members =
                item.iter().filter(|(key, _)| !METHODS.contains(&key.as_str())).map(owned).collect();
            for method in methods {
                let chosen = operations.iter().find(|operation| operation.method.eq_ignore_ascii_case(method));
                let (Some(operation), Some(object)) = (chosen, item.get(method)) else {
                    continue;
                };
                let mut object = object.clone();
                if let (Some(said), Some(members)) = (traits.get(&operation.name), object.as_object_mut()) {
                    // What the document says beside it stays.
                    let written = members.get("x-callslip").and_then(Json::as_object).cloned().unwrap_or_default();
                    let both = written.into_iter().chain(said.clone()).collect();
                    members.insert("x-callslip".to_owned(), Json::Object(both));
                }
                kept.insert(method.to_owned(), object);
            }
            Some((path.to_owned(), Json::Object(kept)))
        });
        self.with_paths(kept)
    }
}

fn owned((key, value): (&String, &Json)) -> (String, Json) {
    (key.clone(), value.clone())
}

#[cfg(test)]
mod tests {
    use super::{Selection, fits_text};
    use crate::tool::openapi::Api;

    fn chosen(include: &[&str], tags: &[&str], read_only: bool) -> Result<String, String> {
        let api = Api::parse(
            r#"{"openapi": "3.1.0", "paths": {
                "/pets": {"get": {"operationId": "pets/list", "tags": ["pets"]}, "post": {"tags": ["pets"]}},
                "/pets/{id}": {"get": {"operationId": "pets/get"}, "delete": {}},
                "/repos/{owner}/{repo}/issues": {"get": {"tags": ["issues", "repos"]}}
            }}"#,
        )
        .unwrap();
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let selection = Selection { include: owned(include), tags: owned(tags), read_only };
        selection
            .of(&api.operations)
            .map_err(|error| error.to_string())
            .map(|operations| operations.iter().map(|operation| operation.name.as_str()).collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn patterns_tags_and_methods_choose() {
        assert_eq!(chosen(&["GET /pets/**"], &[], false).unwrap(), "GET /pets, GET /pets/{id}");
        assert_eq!(chosen(&["/pets/*"], &[], false).unwrap(), "GET /pets/{id}, DELETE /pets/{id}");
        assert_eq!(chosen(&["pets/*"], &[], false).unwrap(), "GET /pets, GET /pets/{id}");
        assert_eq!(
            chosen(&["* /pets", "/repos/**/issues"], &[], true).unwrap(),
            "GET /pets, GET /repos/{owner}/{repo}/issues"
        );
        assert_eq!(chosen(&[], &["repos", "pets"], true).unwrap(), "GET /pets, GET /repos/{owner}/{repo}/issues");
        assert_eq!(chosen(&["/**"], &[], true).unwrap().matches("GET").count(), 3);
    }

    #[test]
    fn what_chooses_nothing_is_an_error() {
        assert_eq!(
            chosen(&["GET /pet"], &[], false).unwrap_err(),
            "the document has no operation that fits 'GET /pet': the nearest are 'GET /pets', 'GET /pets/{id}' or 'pets/get'"
        );
        assert_eq!(
            chosen(&[], &["pet"], false).unwrap_err(),
            "the document has no operation with the tag 'pet': the nearest are 'pets', 'repos' or 'issues'"
        );
        assert_eq!(
            chosen(&["POST /pets"], &[], true).unwrap_err(),
            "no operation is left: none fits include, tags and read_only at once"
        );
    }

    #[test]
    fn stars_stand_for_anything() {
        assert!(fits_text("a*c*", "abcd"));
        assert!(fits_text("*", ""));
        assert!(!fits_text("a*c", "abcd"));
    }
}
