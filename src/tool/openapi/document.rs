//! The document as it was written: a JSON tree whose references are followed when they are met.

use super::Operation;
use crate::tool::types::reference;
use serde_json::{Map, Value as Json};

/// The methods an operation can have, as keys of a path item.
pub(crate) const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// References followed from one place; a longer chain is a circle.
const CHAIN: usize = 32;

/// Why a document cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The text is not JSON.
    #[error("the OpenAPI document is not JSON: {0}")]
    NotJson(String),
    /// It is JSON, but no `OpenAPI` document.
    #[error("this is no OpenAPI document: {0}")]
    NotOpenApi(String),
    /// It is of a version that is not read.
    #[error("{0} is not supported: convert the document to OpenAPI 3.0 or 3.1{1}")]
    Version(String, &'static str),
}

/// The members of an object in the document.
pub(crate) type Members = Map<String, Json>;

/// A document of version 3.0 or 3.1.
#[derive(Debug)]
pub(crate) struct Document {
    root: Json,
    /// 3.0 has its own dialect of JSON Schema.
    pub(crate) dialect_30: bool,
}

impl Document {
    pub(crate) fn parse(text: &str) -> Result<Self, DocumentError> {
        let root: Json = serde_json::from_str(text).map_err(|error| DocumentError::NotJson(error.to_string()))?;
        let Some(map) = root.as_object() else {
            return Err(DocumentError::NotOpenApi("it must be a JSON object".to_owned()));
        };
        if let Some(version) = map.get("swagger") {
            let version = version.as_str().map_or_else(|| version.to_string(), str::to_owned);
            let version = crate::tool::describe::cut(&version, 20);
            let with = ", for example with the npm package swagger2openapi";
            return Err(DocumentError::Version(format!("Swagger {version}"), with));
        }
        let Some(version) = map.get("openapi") else {
            return Err(DocumentError::NotOpenApi("it has no field 'openapi' with its version".to_owned()));
        };
        let version = version.as_str().unwrap_or_default();
        if !["3.0", "3.1"].iter().any(|known| version == *known || version.starts_with(&format!("{known}."))) {
            let version = crate::tool::describe::cut(version, 20);
            return Err(DocumentError::Version(format!("OpenAPI version \"{version}\""), ""));
        }
        match map.get("paths") {
            None | Some(Json::Object(_)) => {}
            Some(_) => {
                return Err(DocumentError::NotOpenApi("its 'paths' must be an object".to_owned()));
            }
        }
        Ok(Self::of(root))
    }

    /// Takes a tree that is known to be a document.
    pub(crate) fn of(root: Json) -> Self {
        let dialect_30 = root.get("openapi").and_then(Json::as_str).is_some_and(|version| version.starts_with("3.0"));
        Self { root, dialect_30 }
    }

    pub(crate) fn root(&self) -> &Json {
        &self.root
    }

    /// `node` with its references followed; a reference that leads nowhere, outside or in a circle gives `None`.
    pub(crate) fn follow<'a>(&'a self, node: &'a Json) -> Option<&'a Json> {
        let mut node = node;
        for _ in 0..CHAIN {
            if node.get("$ref").is_none_or(|target| !target.is_string()) {
                return Some(node);
            }
            node = reference(&self.root, node)?;
        }
        None
    }

    /// Every operation, in the order of the document. Their names are `METHOD /path`.
    pub(crate) fn operations(&self) -> Vec<Operation> {
        let mut operations = Vec::new();
        let paths = self.root.get("paths").and_then(Json::as_object);
        for (path, item) in paths.into_iter().flatten().filter(|(path, _)| path.starts_with('/')) {
            let Some(item) = self.path_item(item) else {
                continue;
            };
            for method in METHODS {
                let Some(operation) = item.get(method).filter(|operation| operation.is_object()) else {
                    continue;
                };
                let method = method.to_uppercase();
                operations.push(Operation {
                    name: format!("{method} {path}"),
                    method,
                    path: path.clone(),
                    id: operation.get("operationId").and_then(Json::as_str).map(str::to_owned),
                });
            }
        }
        operations
    }

    fn path_item<'a>(&'a self, item: &'a Json) -> Option<&'a Map<String, Json>> {
        self.follow(item)?.as_object()
    }

    /// The path item and the operation object of an operation.
    pub(crate) fn objects(&self, operation: &Operation) -> Option<(&Members, &Members)> {
        let item = self.path_item(self.root.get("paths")?.get(&operation.path)?)?;
        let object = item.get(&operation.method.to_lowercase())?.as_object()?;
        Some((item, object))
    }

    /// The parameters of an operation, those of its path first, overridden by its own where name and place agree.
    pub(crate) fn parameters(&self, operation: &Operation) -> Vec<&Map<String, Json>> {
        let Some((item, object)) = self.objects(operation) else {
            return Vec::new();
        };
        let mut parameters: Vec<&Map<String, Json>> = Vec::new();
        for list in [item.get("parameters"), object.get("parameters")] {
            for parameter in list.and_then(Json::as_array).into_iter().flatten() {
                let Some(parameter) = self.follow(parameter).and_then(Json::as_object) else {
                    continue;
                };
                let same = |other: &&Map<String, Json>| {
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
                "Swagger 2.0 is not supported: convert the document to OpenAPI 3.0 or 3.1, for example with the npm package swagger2openapi",
            ),
            (
                r#"{"openapi": "4.0.0"}"#,
                "OpenAPI version \"4.0.0\" is not supported: convert the document to OpenAPI 3.0 or 3.1",
            ),
            (r#"{"openapi": 3}"#, "OpenAPI version \"\" is not supported: convert the document to OpenAPI 3.0 or 3.1"),
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
