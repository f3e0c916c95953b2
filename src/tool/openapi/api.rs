//! One document with the operations of it that are offered.

use super::arguments;
use super::check_response::Responses;
use super::document::{Document, DocumentError};
use super::operation::Operation;
use super::path_collisions::{self, MARKS};
use super::selection::{Selection, Traits};
use crate::tool::describe::truncate;
use crate::tool::nearest_names::nearest;
use crate::tool::spec::ToolSpec;
use indexmap::IndexMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_saphyr::options::DuplicateKeyPolicy;
use std::collections::HashSet;
use std::sync::Arc;

/// A document of version 3.0, 3.1 or 3.2 as tools, one an operation.
#[derive(Debug)]
pub struct Api {
    pub(crate) document: Document,
    /// By `METHOD /path`.
    pub(crate) operations: Arc<IndexMap<String, Operation>>,
    pub(super) responses: Responses,
    /// What is odd about it, in words.
    pub notes: Vec<String>,
}

impl Api {
    /// Reads a document that is written in JSON.
    ///
    /// # Errors
    /// Where the text is no such document.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let mut api = Document::parse(text).map(Self::of)?;
        api.notes = api.not_offered();
        Ok(api)
    }

    /// Reads a document that is written in JSON or YAML, in UTF-8.
    ///
    /// # Errors
    /// Where the bytes are no such document.
    pub fn read(bytes: &[u8]) -> Result<Self, DocumentError> {
        let text = std::str::from_utf8(bytes).map_err(|error| DocumentError::NotText(error.to_string()))?;
        let text = text.trim_start_matches('\u{feff}').trim_start();
        if text.is_empty() || text.starts_with(['{', '[']) {
            return Self::parse(text);
        }
        let (document, note) = read_yaml(text)?;
        let mut api = Self::parse(&document.to_string())?;
        api.notes.extend(note);
        Ok(api)
    }

    /// JSON or YAML, in UTF-8, as JSON.
    ///
    /// # Errors
    /// It is neither.
    pub fn to_json(bytes: &[u8]) -> Result<String, DocumentError> {
        let text = std::str::from_utf8(bytes).map_err(|error| DocumentError::NotText(error.to_string()))?;
        let text = text.trim_start_matches('\u{feff}').trim_start();
        if text.starts_with(['{', '[']) && serde_json::from_str::<&RawValue>(text).is_ok() {
            return Ok(text.to_owned());
        }
        read_yaml(text).map(|(document, _)| document.to_string())
    }

    pub(crate) fn of(document: Document) -> Self {
        let operations = document.operations().into_iter().map(|operation| (operation.name.clone(), operation));
        let operations = Arc::new(operations.collect());
        Self { document, operations, responses: Responses::default(), notes: Vec::new() }
    }

    /// The same operations of a document that is read anew.
    pub(crate) fn unread(&self) -> Self {
        Self {
            document: self.document.unread(),
            operations: Arc::clone(&self.operations),
            responses: Responses::default(),
            notes: Vec::new(),
        }
    }

    /// The names of the operations, in the order of the document.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.operations.keys().map(String::as_str)
    }

    /// The names of the operations that `key` means: `METHOD /path`, or an `operationId`.
    pub fn named(&self, key: &str) -> Vec<&str> {
        let key = key.trim();
        let exact = match key.split_once(char::is_whitespace) {
            Some((method, path)) => format!("{} {}", method.to_uppercase(), path.trim_start()),
            None => String::new(),
        };
        let fits = |operation: &&Operation| operation.name == exact || operation.id.as_deref() == Some(key);
        self.operations.values().filter(fits).map(|operation| operation.name.as_str()).collect()
    }

    /// The title of the document; empty where it has none.
    pub fn title(&self) -> &str {
        let title = self.document.member("info").and_then(|info| info.get("title"));
        title.and_then(serde_json::Value::as_str).unwrap_or_default()
    }

    /// The operations whose path has placeholders that no parameter declares, with these.
    pub fn undeclared(&self) -> Vec<(&str, Vec<&str>)> {
        // All operations are looked at. What is read for that is not kept, nor is all of it there at once.
        let operations: Vec<&Operation> = self.operations.values().collect();
        let mut undeclared = Vec::new();
        for some in operations.chunks(operations.len().div_ceil(10).max(1)) {
            let document = self.document.unread();
            let named = some.iter().map(|operation| (operation.name.as_str(), document.undeclared(operation)));
            undeclared.extend(named.filter(|(_, names)| !names.is_empty()));
        }
        undeclared
    }

    /// Up to three names that are close to `key`, or ids where it is written as one.
    pub fn nearest(&self, key: &str) -> Vec<&str> {
        let is_id = !key.contains(char::is_whitespace) && !key.starts_with('/');
        let ids: Vec<&str> = self.operations.values().filter_map(|operation| operation.id.as_deref()).collect();
        if is_id && !ids.is_empty() { nearest(key, ids, 3) } else { nearest(key, self.names(), 3) }
    }

    /// The names of the operations that are asked for, in the order of the document.
    ///
    /// # Errors
    /// Where a pattern or tag fits nothing, or nothing is left.
    pub fn select(&self, selection: &Selection) -> Result<Vec<&str>, DocumentError> {
        let chosen = selection.of(&self.operations)?;
        Ok(chosen.into_iter().map(|operation| operation.name.as_str()).collect())
    }

    /// The same document with these operations only. `traits` says by name what the program says of some: the members
    /// `effect`, `readonly`, `repeatable`, `untrusted`, `needs_approval` and `checks_approval`.
    #[must_use]
    pub fn only(self: &Arc<Self>, names: &[String], traits: &Traits) -> Arc<Self> {
        if traits.is_empty() && names.len() == self.operations.len() {
            return Arc::clone(self);
        }
        let names: HashSet<&String> = names.iter().collect();
        let chosen: Vec<&Operation> = self.operations.values().filter(|one| names.contains(&one.name)).collect();
        Arc::new(Self::of(self.document.only(&chosen, traits)))
    }

    /// The same with what `whole` has beside it, and the address that its server has in place of the document's: a path may
    /// be taken for one of an operation that is not offered.
    #[must_use]
    pub fn marked(&self, whole: &Self, address: Option<&str>) -> Arc<Self> {
        let document = self.document.with_member(MARKS, path_collisions::marks(self, whole, address));
        Arc::new(Self {
            document,
            operations: Arc::clone(&self.operations),
            responses: Responses::default(),
            notes: Vec::new(),
        })
    }

    /// Whether it says what was left out of it.
    pub(super) fn is_marked(&self) -> bool {
        self.document.member(MARKS).is_some()
    }

    /// Whether the whole document says of anything how it is secured.
    pub(super) fn is_secured(&self) -> bool {
        let said = self.document.member(MARKS).and_then(|marks| marks.get("secured")?.as_bool());
        said.unwrap_or_else(|| self.document.says_security())
    }

    /// The tool for an operation.
    pub(crate) fn spec(&self, name: &str) -> ToolSpec {
        match self.operations.get(name) {
            Some(operation) => arguments::spec(&self.document, operation),
            None => arguments::empty_spec(name),
        }
    }

    pub(crate) fn from_raw(raw: &RawValue) -> Result<Arc<Self>, DocumentError> {
        Self::parse(raw.get()).map(Arc::new)
    }
}

/// A YAML document as JSON, and a note where a key stands twice, of which the last counts.
fn read_yaml(text: &str) -> Result<(serde_json::Value, Option<String>), DocumentError> {
    let line = |error: &serde_saphyr::Error| {
        // What follows the first line is the place, drawn.
        let error = error.to_string();
        let first = error.lines().next().unwrap_or_default();
        truncate(first.strip_prefix("error: ").unwrap_or(first), 300)
    };
    let twice = match serde_saphyr::from_str_with_options(text, yaml(text.len(), DuplicateKeyPolicy::Error)) {
        Ok(document) => return Ok((document, None)),
        Err(error) => line(&error),
    };
    match serde_saphyr::from_str_with_options(text, yaml(text.len(), DuplicateKeyPolicy::LastWins)) {
        Ok(document) => Ok((document, Some(format!("a key stands twice, and the last counts: {twice}")))),
        Err(error) => {
            let cause = line(&error);
            let bound = ["budget", "replay", "expansion"].iter().any(|word| cause.to_lowercase().contains(word));
            let named = format!(
                "its anchors expand to more than {EXPANDED} values, or it is nested deeper than {DEPTH} levels ({cause})"
            );
            Err(DocumentError::NotYaml(if bound { named } else { cause }))
        }
    }
}

/// Values that a YAML document may expand to, beside what its own length allows.
const EXPANDED: usize = 2_000_000;
/// Levels of a YAML document.
const DEPTH: usize = 128;

/// YAML as `OpenAPI` asks for it: 1.2, in which `y`, `no` and `on` are text. A document may be as long as it is, and use
/// its anchors as often as it likes; what they expand to is bounded.
fn yaml(bytes: usize, duplicate_keys: DuplicateKeyPolicy) -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: true,
        duplicate_keys: duplicate_keys,
        with_snippet: false,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: EXPANDED,
        },
        budget: serde_saphyr::budget! {
            max_events: bytes.saturating_mul(4).saturating_add(EXPANDED),
            max_nodes: bytes.saturating_mul(2).saturating_add(EXPANDED),
            max_total_scalar_bytes: bytes.saturating_mul(2).saturating_add(64 << 20),
            max_aliases: bytes,
            max_anchors: bytes,
            max_merge_keys: bytes,
            max_depth: DEPTH,
            enforce_alias_anchor_ratio: false,
        },
    }
}

impl Serialize for Api {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document.serialize(serializer)
    }
}
