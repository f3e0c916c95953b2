//! `OpenAPI` documents as base tools: reading, routes, arguments, requests and what the model is shown.

mod api;
mod arguments;
mod body;
mod check_response;
mod convert;
mod document;
mod document_problems;
mod lazy_json;
mod operation;
mod path_collisions;
mod path_readings;
mod route;
mod selection;
mod send;
mod signature;

pub use api::Api;
pub(crate) use arguments::{empty_spec, merge};
pub use document::DocumentError;
pub use selection::{Selection, Traits};
pub use send::{Credential, Request, RequestError};

use super::spec::ToolSpec;
use crate::reply::{Object, Violation};
use document::Document;
use indexmap::IndexMap;
pub(crate) use operation::Operation;
use path_collisions::PathCollisions;
pub(crate) use path_collisions::Reached;
use route::Routes;
use serde_json::{Map, Value as Json, json};
use std::sync::{Arc, OnceLock};

/// A route that was found: the tool's name and what the route says of its arguments.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: Object,
}

/// The operations of documents, or plain tools offered as operations.
#[derive(Debug)]
pub(crate) struct Catalogue {
    apis: Vec<Arc<Api>>,
    /// By the name of the tool.
    operations: Arc<IndexMap<String, Operation>>,
    routes: Arc<Routes>,
    neighbours: OnceLock<PathCollisions>,
}

impl Catalogue {
    /// Those of documents.
    ///
    /// # Errors
    /// The name of an operation that two of them have.
    pub(crate) fn of(apis: Vec<Arc<Api>>) -> Result<Self, String> {
        let mut operations = IndexMap::new();
        for (document, api) in apis.iter().enumerate() {
            for operation in api.operations.values() {
                let operation = Operation { document, ..operation.clone() };
                if let Some(twice) = operations.insert(operation.name.clone(), operation) {
                    return Err(twice.name);
                }
            }
        }
        let routes = Arc::new(Routes::new(operations.values()));
        Ok(Self { apis, operations: Arc::new(operations), routes, neighbours: OnceLock::new() })
    }

    /// Plain tools as `POST /name` with their name as `operationId`.
    pub(crate) fn from_tools<'a>(tools: impl Iterator<Item = &'a ToolSpec>) -> Self {
        let api = Api::of(Document::of_paths(tools.map(|tool| (format!("/{}", tool.name), path_item(tool)))));
        let operations = api.operations.values().map(|operation| {
            let name = operation.id.as_ref().unwrap_or(&operation.name).clone();
            (name.clone(), Operation { name, ..operation.clone() })
        });
        let operations: IndexMap<String, Operation> = operations.collect();
        let routes = Arc::new(Routes::new(operations.values()));
        Self { apis: vec![Arc::new(api)], operations: Arc::new(operations), routes, neighbours: OnceLock::new() }
    }

    /// The same, of documents that are read anew.
    pub(crate) fn unread(&self) -> Self {
        let unread = |api: &Arc<Api>| Arc::new(api.unread());
        Self {
            apis: self.apis.iter().map(unread).collect(),
            operations: Arc::clone(&self.operations),
            routes: Arc::clone(&self.routes),
            neighbours: OnceLock::new(),
        }
    }

    pub(crate) fn apis(&self) -> &[Arc<Api>] {
        &self.apis
    }

    /// The names of the operations, in the order of the documents.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.operations.keys().map(String::as_str)
    }

    /// The tool for an operation of a document.
    pub(crate) fn spec(&self, name: &str) -> ToolSpec {
        let api = self.operations.get(name).and_then(|operation| self.apis.get(operation.document));
        api.map_or_else(|| empty_spec(name), |api| api.spec(name))
    }

    /// The other operations that a call with these arguments may be taken for by its server.
    pub(crate) fn reached(&self, name: &str, arguments: &Object) -> Vec<Reached<'_>> {
        let api = self.operations.get(name).and_then(|operation| self.apis.get(operation.document));
        let methods = path_readings::methods(arguments);
        let own = self.operations.get(name);
        if !own.is_some_and(|own| own.path.contains('{') || own.method == "HEAD" || !methods.is_empty()) {
            return Vec::new();
        }
        // Documents that an earlier version has set up are not marked, and are checked as they were then.
        let path = api.filter(|api| api.is_marked()).and_then(|api| api.path(name, arguments));
        let all = || self.neighbours.get_or_init(|| PathCollisions::of(&self.apis));
        path.map(|path| all().reached(name, &path, &methods)).unwrap_or_default()
    }

    /// Looks a route up.
    pub(crate) fn resolve(&self, route: &str) -> Result<Found<'_>, Violation> {
        let matched = self.routes.resolve(route, &self.operations)?;
        let arguments = match self.document(matched.operation) {
            Some(document) => arguments::route_arguments(document, matched.operation, &matched),
            None => Object::new(),
        };
        Ok(Found { name: &matched.operation.name, arguments })
    }

    /// The operation of exactly this name.
    pub(crate) fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.get(name)
    }

    /// An operation as its document writes it.
    pub(crate) fn object(&self, operation: &Operation) -> Option<&Map<String, Json>> {
        self.document(operation)?.objects(operation).map(|(_, object)| object)
    }

    /// What an operation takes, in a few words: `id: int, fields?: [str]`.
    pub(crate) fn arguments(&self, operation: &Operation, depth: usize) -> String {
        let document = self.document(operation);
        document.map(|document| signature::arguments(document, operation, depth)).unwrap_or_default()
    }

    /// What an operation gives, in a few words.
    pub(crate) fn result(&self, operation: &Operation) -> Option<String> {
        signature::result(self.document(operation)?, operation)
    }

    /// The one document for a prompt, where there is one and it has at most `most` characters.
    pub(crate) fn whole(&self, most: usize) -> Option<String> {
        match self.apis.as_slice() {
            [api] => signature::whole(&api.document, most),
            _ => None,
        }
    }

    /// Whether the documents say the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.apis.len() == other.apis.len()
            && self.apis.iter().zip(&other.apis).all(|(own, others)| own.document.is_same(&others.document))
    }

    fn document(&self, operation: &Operation) -> Option<&Document> {
        self.apis.get(operation.document).map(|api| &api.document)
    }
}

/// The name under which the body of an operation stands among its arguments, where it is the only one.
pub(crate) fn whole_body(catalogue: &Catalogue, operation: &Operation) -> Option<&'static str> {
    let document = catalogue.document(operation)?;
    arguments::whole_body(document, operation)
}

fn path_item(tool: &ToolSpec) -> Json {
    let mut operation = Map::new();
    operation.insert("operationId".to_owned(), json!(tool.name));
    if !tool.description.is_empty() {
        operation.insert("summary".to_owned(), json!(tool.description));
    }
    let schema = super::render::tidy(&tool.parameters);
    if super::types::Schema::root(&schema).property_names().is_empty() && !super::types::Schema::root(&schema).is_open()
    {
        return json!({"post": operation});
    }
    let body = json!({"required": true, "content": {"application/json": {"schema": schema}}});
    operation.insert("requestBody".to_owned(), body);
    json!({"post": operation})
}

#[cfg(test)]
mod tests;
