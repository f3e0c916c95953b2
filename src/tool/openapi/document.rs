//! The document as it was written. Its parts are read, and its references followed, when they are met.

use super::lazy_json::LazyJson;
use super::operation::{self, Operation};
use super::path_collisions::MARKS;
use crate::tool::describe::truncate;
use crate::tool::types::{Schema, Whole, percent_decode, reference};
use indexmap::{IndexMap, IndexSet};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json};

/// References followed from one place; a longer chain is a circle.
const CHAIN: usize = 32;

/// Why a document cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The text is not JSON.
    #[error("the OpenAPI document is not JSON: {0}")]
    NotJson(String),
    /// The bytes are not text.
    #[error("the OpenAPI document is not UTF-8: {0}")]
    NotText(String),
    /// The text is not YAML.
    #[error("the OpenAPI document is neither JSON nor YAML: {0}")]
    NotYaml(String),
    /// It is JSON, but no `OpenAPI` document.
    #[error("this is no OpenAPI document: {0}")]
    NotOpenApi(String),
    /// It is of a version that is not read.
    #[error("{0} is not supported: convert the document to OpenAPI 3.0, 3.1 or 3.2{1}")]
    Version(String, &'static str),
    /// What was to be chosen of it is not there.
    #[error("{0}")]
    Choice(String),
}

/// The members of an object in the document.
pub(crate) type Members = Map<String, Json>;

/// The members of an object that are read one by one.
type Parts = IndexMap<String, LazyJson>;

/// A document of version 3.0, 3.1 or 3.2.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its members in their order, without the members of those that have a field of their own here.
    head: Members,
    paths: Parts,
    components: IndexMap<String, Parts>,
    /// 3.0 has its own dialect of JSON Schema.
    pub(crate) dialect_30: bool,
}

impl Document {
    pub(crate) fn parse(text: &str) -> Result<Self, DocumentError> {
        let not_json = |error: serde_json::Error| DocumentError::NotJson(error.to_string());
        if !text.trim_start().starts_with('{') {
            serde_json::from_str::<Json>(text).map_err(not_json)?;
            return Err(DocumentError::NotOpenApi("it must be a JSON object".to_owned()));
        }
        let members: IndexMap<String, &RawValue> = serde_json::from_str(text).map_err(not_json)?;
        let mut document =
            Self { head: Members::new(), paths: Parts::new(), components: IndexMap::new(), dialect_30: false };
        for (key, raw) in members {
            let value = match key.as_str() {
                "paths" => match parts(raw) {
                    Some(paths) => {
                        document.paths = paths;
                        Json::Null
                    }
                    None => return Err(DocumentError::NotOpenApi("its 'paths' must be an object".to_owned())),
                },
                "components" => {
                    let kinds: IndexMap<String, &RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
                    let kinds = kinds.into_iter().filter_map(|(kind, raw)| Some((kind, parts(raw)?)));
                    document.components = kinds.collect();
                    Json::Null
                }
                _ => serde_json::from_str(raw.get()).map_err(not_json)?,
            };
            document.head.insert(key, value);
        }
        document.check_version()?;
        Ok(document)
    }

    fn check_version(&mut self) -> Result<(), DocumentError> {
        if let Some(version) = self.head.get("swagger") {
            let version = version.as_str().map_or_else(|| version.to_string(), str::to_owned);
            let with = ", for example with the npm package swagger2openapi";
            return Err(DocumentError::Version(format!("Swagger {}", truncate(&version, 20)), with));
        }
        let Some(version) = self.head.get("openapi") else {
            return Err(DocumentError::NotOpenApi("it has no field 'openapi' with its version".to_owned()));
        };
        // In YAML a version without quotes is a number.
        let version = version.as_str().map_or_else(|| version.to_string(), str::to_owned);
        let version = version.as_str();
        let is = |known: &str| version.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if !is("3.0") && !is("3.1") && !is("3.2") {
            let version = truncate(version, 20);
            return Err(DocumentError::Version(format!("OpenAPI version \"{version}\""), ""));
        }
        self.dialect_30 = is("3.0");
        Ok(())
    }

    /// The same document with other paths, and the components that these need.
    pub(crate) fn with_paths(&self, paths: impl Iterator<Item = (String, Json)>) -> Self {
        let paths: Parts = paths.map(|(path, item)| (path, LazyJson::from(item))).collect();
        let mut kept: IndexSet<(String, String)> = IndexSet::new();
        for item in paths.values() {
            gather(&item.read(), &mut kept);
        }
        let mut next = 0;
        while let Some((kind, name)) = kept.get_index(next).cloned() {
            if let Some(part) = self.components.get(&kind).and_then(|parts| parts.get(&name)) {
                gather(&part.read(), &mut kept);
            }
            next += 1;
        }
        let components = self.components.iter().map(|(kind, parts)| {
            // Schemes are named, not referred to.
            let named = |name: &String| kind == "securitySchemes" || kept.contains(&(kind.clone(), name.clone()));
            (
                kind.clone(),
                parts.iter().filter(|(name, _)| named(name)).map(|(name, part)| (name.clone(), part.clone())).collect(),
            )
        });
        let components = components.filter(|(_, parts): &(_, Parts)| !parts.is_empty()).collect();
        Self { head: self.head.clone(), paths, components, dialect_30: self.dialect_30 }
    }

    /// The path item of a path, its reference followed.
    pub(crate) fn item(&self, path: &str) -> Option<&Members> {
        self.follow(self.paths.get(path)?.value())?.as_object()
    }

    /// A document of 3.1 of which only the paths matter.
    pub(crate) fn of_paths(paths: impl Iterator<Item = (String, Json)>) -> Self {
        let mut head = Members::new();
        head.insert("openapi".to_owned(), "3.1.0".into());
        head.insert("paths".to_owned(), Json::Null);
        let paths = paths.map(|(path, item)| (path, LazyJson::from(item))).collect();
        Self { head, paths, components: IndexMap::new(), dialect_30: false }
    }

    /// The member `key` of the document, but for its paths and components.
    pub(crate) fn member(&self, key: &str) -> Option<&Json> {
        self.head.get(key)
    }

    /// A component, its references followed.
    pub(crate) fn component(&self, kind: &str, name: &str) -> Option<&Json> {
        self.follow(self.components.get(kind)?.get(name)?.value())
    }

    /// The names of the components of a kind.
    pub(crate) fn component_names(&self, kind: &str) -> Vec<&str> {
        self.components.get(kind).into_iter().flat_map(IndexMap::keys).map(String::as_str).collect()
    }

    /// The placeholders of an operation's path that no parameter declares.
    pub(crate) fn undeclared<'a>(&self, operation: &'a Operation) -> Vec<&'a str> {
        let names = placeholders(&operation.path);
        if names.is_empty() {
            return names;
        }
        let declared = self.parameters(operation);
        // Some documents have the query in the path, and declare what stands in it as what it is.
        let is = |parameter: &Members, name: &str| {
            parameter.get("in").is_some_and(|place| place == "path" || place == "query")
                && parameter.get("name").is_some_and(|own| own == name)
        };
        names.into_iter().filter(|name| !declared.iter().any(|parameter| is(parameter, name))).collect()
    }

    /// The security requirements of an operation: its own, or those of the whole document.
    pub(crate) fn security(&self, operation: &Operation) -> Option<&Json> {
        let own = self.objects(operation).and_then(|(_, object)| object.get("security"));
        own.or_else(|| self.member("security"))
    }

    /// Where the keys go that an operation may be called with.
    pub(crate) fn keys(&self, operation: &Operation) -> Vec<Key<'_>> {
        let requirements = self.security(operation).and_then(Json::as_array).into_iter().flatten();
        let schemes = requirements.filter_map(Json::as_object).flat_map(Map::keys);
        schemes.filter_map(|name| Key::of(self.component("securitySchemes", name)?)).collect()
    }

    /// A schema of the document.
    pub(crate) fn schema<'a>(&'a self, node: &'a Json) -> Schema<'a> {
        Schema { root: self, node }
    }

    /// What the reference in `node` leads to.
    pub(crate) fn reference(&self, node: &Json) -> Option<&Json> {
        reference(self, node)
    }

    /// `node` with its references followed; a reference that leads nowhere, outside or in a circle gives `None`.
    pub(crate) fn follow<'a>(&'a self, node: &'a Json) -> Option<&'a Json> {
        let mut node = node;
        for _ in 0..CHAIN {
            if node.get("$ref").is_none_or(|target| !target.is_string()) {
                return Some(node);
            }
            node = self.reference(node)?;
        }
        None
    }

    /// Every operation, in the order of the document. Their names are `METHOD /path`.
    pub(crate) fn operations(&self) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (path, item) in self.paths.iter().filter(|(path, _)| path.starts_with('/')) {
            let written = operation::operations(path, item.text());
            operations.extend(
                written
                    .unwrap_or_else(|| self.item(path).map(|item| operation::of_item(path, item)).unwrap_or_default()),
            );
        }
        operations
    }

    /// The path item and the operation object of an operation.
    pub(crate) fn objects(&self, operation: &Operation) -> Option<(&Members, &Members)> {
        let item = self.item(&operation.path)?;
        let object = item.get(&operation.method.to_lowercase())?.as_object()?;
        Some((item, object))
    }

    /// The parameters of an operation, those of its path first, overridden by its own where name and place agree.
    pub(crate) fn parameters(&self, operation: &Operation) -> Vec<&Members> {
        let Some((item, object)) = self.objects(operation) else {
            return Vec::new();
        };
        let mut parameters: Vec<&Members> = Vec::new();
        for list in [item.get("parameters"), object.get("parameters")] {
            for parameter in list.and_then(Json::as_array).into_iter().flatten() {
                let Some(parameter) = self.follow(parameter).and_then(Json::as_object) else {
                    continue;
                };
                let same = |other: &&Members| {
                    other.get("name") == parameter.get("name") && other.get("in") == parameter.get("in")
                };
                match parameters.iter_mut().find(|other| same(other)) {
                    Some(earlier) => *earlier = parameter,
                    None => parameters.push(parameter),
                }
            }
        }
        parameters
    }

    /// The same document, none of whose parts is read yet.
    pub(crate) fn unread(&self) -> Self {
        let unread = |parts: &Parts| parts.iter().map(|(name, part)| (name.clone(), part.unread())).collect();
        Self {
            head: self.head.clone(),
            paths: unread(&self.paths),
            components: self.components.iter().map(|(kind, parts)| (kind.clone(), unread(parts))).collect(),
            dialect_30: self.dialect_30,
        }
    }

    /// Whether it says of anything how it is secured.
    pub(super) fn says_security(&self) -> bool {
        self.head.contains_key("security") || self.paths.values().any(|part| part.text().contains("\"security\":["))
    }

    /// The texts of its parts.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.paths.values().chain(self.components.values().flat_map(IndexMap::values)).map(LazyJson::text)
    }

    /// Whether it has a component of this kind and name.
    pub(super) fn has_component(&self, kind: &str, name: &str) -> bool {
        self.components.get(kind).is_some_and(|parts| parts.contains_key(name))
    }

    /// Looks at each of its parts, which are read for that and not kept: the kind of a component, its name or the path.
    pub(super) fn each_part(&self, look: &mut dyn FnMut(Option<&str>, &str, &Json)) {
        for (path, part) in &self.paths {
            look(None, path, &part.read());
        }
        for (kind, parts) in &self.components {
            parts.iter().for_each(|(name, part)| look(Some(kind), name, &part.read()));
        }
    }

    /// The paths that stand elsewhere and are not there, with the reference to each.
    pub(super) fn lost_paths(&self) -> Vec<(String, String)> {
        let lost = self.paths.iter().filter_map(|(path, part)| {
            let target =
                part.text().contains("$ref").then(|| part.read().get("$ref")?.as_str().map(str::to_owned))??;
            self.item(path).is_none().then(|| (path.clone(), target))
        });
        lost.collect()
    }

    /// The operations of its paths whose methods no version before 3.2 could name: `METHOD /path`.
    pub(super) fn additional_methods(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (path, part) in self.paths.iter().filter(|(_, part)| part.text().contains("\"additionalOperations\"")) {
            let item = part.read();
            let methods =
                item.get("additionalOperations").and_then(Json::as_object).into_iter().flat_map(Members::keys);
            found.extend(methods.map(|method| format!("{} {path}", truncate(method, 40))));
        }
        found
    }

    /// The same document with one more member.
    pub(crate) fn with_member(&self, key: &str, value: Json) -> Self {
        let mut document = self.unread();
        document.head.insert(key.to_owned(), value);
        document
    }

    /// Whether it says the same as another. What was left out of either is not asked.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let said = |document: &Self| -> Members {
            let members = document.head.iter().filter(|(key, _)| *key != MARKS);
            members.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        said(self) == said(other) && self.paths == other.paths && self.components == other.components
    }

    /// The whole document; `None` where its paths and components have more than about `bytes` bytes.
    pub(crate) fn whole_within(&self, bytes: usize) -> Option<Json> {
        let parts = || self.paths.values().chain(self.components.values().flat_map(IndexMap::values));
        let size: usize = parts().map(|part| part.text().len()).sum();
        if size > bytes { None } else { serde_json::to_value(self).ok() }
    }
}

/// The place of an `apiKey`.
pub(crate) struct Key<'a> {
    place: &'a str,
    name: &'a str,
}

impl<'a> Key<'a> {
    fn of(scheme: &'a Json) -> Option<Self> {
        let text = |key: &str| scheme.get(key).and_then(Json::as_str);
        (text("type")? == "apiKey").then_some(Self { place: text("in")?, name: text("name")? })
    }

    /// Whether a parameter is the same.
    pub(crate) fn is(&self, place: &str, name: &str) -> bool {
        let same = if place == "header" { self.name.eq_ignore_ascii_case(name) } else { self.name == name };
        self.place == place && same
    }
}

impl Whole for Document {
    fn at(&self, pointer: &str) -> Option<&Json> {
        let (first, rest) = step(pointer)?;
        match first.as_str() {
            "paths" => {
                let (path, rest) = step(rest)?;
                self.paths.get(&path)?.value().pointer(rest)
            }
            "components" => {
                let (kind, rest) = step(rest)?;
                let (name, rest) = step(rest)?;
                self.components.get(&kind)?.get(&name)?.value().pointer(rest)
            }
            other => self.head.get(other)?.pointer(rest),
        }
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(self.head.len()))?;
        for (key, value) in &self.head {
            match key.as_str() {
                "paths" => members.serialize_entry(key, &self.paths)?,
                "components" => members.serialize_entry(key, &self.components)?,
                _ => members.serialize_entry(key, value)?,
            }
        }
        members.end()
    }
}

/// Adds the components that a value refers to, by kind and name.
fn gather(value: &Json, into: &mut IndexSet<(String, String)>) {
    match value {
        // Also outside of `$ref`: a discriminator's mapping refers too.
        Json::String(text) => {
            let pointer = text.strip_prefix("#/components").and_then(|pointer| {
                let (kind, rest) = step(pointer)?;
                Some((kind, percent_decode(&step(rest)?.0)))
            });
            into.extend(pointer);
        }
        Json::Array(items) => items.iter().for_each(|item| gather(item, into)),
        Json::Object(members) => members.values().for_each(|member| gather(member, into)),
        _ => {}
    }
}

fn parts(raw: &RawValue) -> Option<Parts> {
    let members: IndexMap<String, &RawValue> = serde_json::from_str(raw.get()).ok()?;
    Some(members.into_iter().map(|(name, raw)| (name, LazyJson::new(raw))).collect())
}

/// The first step of a JSON pointer, and what is left of it.
fn step(pointer: &str) -> Option<(String, &str)> {
    let after = pointer.strip_prefix('/')?;
    let (first, _) = after.split_once('/').unwrap_or((after, ""));
    Some((crate::json_pointer::unescape(first), after.get(first.len()..)?))
}

/// The names in the braces of a path, in order.
pub(crate) fn placeholders(path: &str) -> Vec<&str> {
    path.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::{Document, placeholders};

    #[test]
    fn other_documents_are_refused_clearly() {
        for (text, expected) in [
            ("", "the OpenAPI document is not JSON: EOF while parsing a value at line 1 column 0"),
            ("[]", "this is no OpenAPI document: it must be a JSON object"),
            ("{}", "this is no OpenAPI document: it has no field 'openapi' with its version"),
            (
                r#"{"swagger": "2.0"}"#,
                "Swagger 2.0 is not supported: convert the document to OpenAPI 3.0, 3.1 or 3.2, for example with the npm package swagger2openapi",
            ),
            (
                r#"{"openapi": "4.0.0"}"#,
                "OpenAPI version \"4.0.0\" is not supported: convert the document to OpenAPI 3.0, 3.1 or 3.2",
            ),
            (
                r#"{"openapi": 3}"#,
                "OpenAPI version \"3\" is not supported: convert the document to OpenAPI 3.0, 3.1 or 3.2",
            ),
            (r#"{"openapi": "3.1.0", "paths": []}"#, "this is no OpenAPI document: its 'paths' must be an object"),
        ] {
            assert_eq!(Document::parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn references_are_followed_and_circles_left() {
        let document = Document::parse(
            r##"{"openapi": "3.0.3", "paths": {
                "/a": {"$ref": "#/components/pathItems/a"},
                "/b": {"$ref": "#/paths/~1b"},
                "/c": {"$ref": "other.json#/c"},
                "x-note": {"get": {}}
            }, "components": {"pathItems": {"a": {"get": {"operationId": "a"}, "post": {}, "summary": "s"}}}}"##,
        )
        .unwrap();
        let names: Vec<String> = document.operations().into_iter().map(|operation| operation.name).collect();
        assert_eq!(names, ["GET /a", "POST /a"]);
    }

    #[test]
    fn an_operation_overrides_its_path() {
        let document = Document::parse(
            r##"{"openapi": "3.1.0", "paths": {"/a/{id}": {
                "parameters": [{"name": "id", "in": "path", "description": "old"}, {"$ref": "#/components/parameters/q"}],
                "get": {"parameters": [{"name": "id", "in": "path", "description": "new"}, {"name": "q", "in": "header"}]}
            }}, "components": {"parameters": {"q": {"name": "q", "in": "query"}}}}"##,
        )
        .unwrap();
        let operation = document.operations().remove(0);
        let parameters = document.parameters(&operation);
        let found: Vec<String> =
            parameters.iter().map(|parameter| format!("{}:{}", parameter["in"], parameter["name"])).collect();
        assert_eq!(found, [r#""path":"id""#, r#""query":"q""#, r#""header":"q""#]);
        assert_eq!(parameters[0]["description"], "new");
    }

    #[test]
    fn placeholders_are_read_from_the_path() {
        assert_eq!(placeholders("/a/{b}/{c}.json/x{d}..{e}"), ["b", "c", "d", "e"]);
        assert!(placeholders("/a/{b").is_empty());
    }
}
