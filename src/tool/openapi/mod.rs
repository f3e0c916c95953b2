//! `OpenAPI` documents as base tools: reading, routes, arguments, requests and what the model is shown.

mod api;
mod body;
mod convert;
mod document;
mod operation;
mod part;
mod receive;
mod request;
mod route;
mod select;
mod send;
mod signature;

pub use api::Api;
pub use document::DocumentError;
pub(crate) use request::{empty_spec, merge};
pub use select::{Selection, Traits};
pub use send::{Credential, Request, RequestError};
pub(crate) use signature::TOKENS;

use super::spec::ToolSpec;
use crate::reply::{Object, Violation};
use document::Document;
use indexmap::IndexMap;
use operation::Operation;
use route::Routes;
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;

/// A route that was found: the tool's name and what the route says of its arguments.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: Object,
}

/// The operations of all documents of a set, and its plain tools offered as operations.
#[derive(Debug)]
pub(crate) struct Catalogue {
    apis: Vec<Arc<Api>>,
    /// By the name of the tool.
    operations: IndexMap<String, Operation>,
    routes: Routes,
}

impl Catalogue {
    /// Those of the documents, then plain tools as `POST /name` with their name as `operationId`.
    pub(crate) fn new<'a>(apis: &[Arc<Api>], tools: impl Iterator<Item = &'a ToolSpec>) -> Self {
        let mut operations = IndexMap::new();
        let mut apis = apis.to_vec();
        let plain = Api::of(Document::of_paths(tools.map(|tool| (format!("/{}", tool.name), path_item(tool)))));
        for (document, api) in apis.iter().enumerate() {
            let own = api.operations.values().map(|operation| Operation { document, ..operation.clone() });
            operations.extend(own.map(|operation| (operation.name.clone(), operation)));
        }
        for operation in plain.operations.values() {
            let name = operation.id.as_ref().unwrap_or(&operation.name).clone();
            operations.insert(name.clone(), Operation { name, document: apis.len(), ..operation.clone() });
        }
        apis.push(Arc::new(plain));
        let routes = Routes::new(operations.values());
        Self { apis, operations, routes }
    }

    /// Looks a route up.
    pub(crate) fn resolve(&self, route: &str) -> Result<Found<'_>, Violation> {
        let matched = self.routes.resolve(route, &self.operations)?;
        let arguments = match self.document(matched.operation) {
            Some(document) => request::route_arguments(document, matched.operation, &matched),
            None => Object::new(),
        };
        Ok(Found { name: &matched.operation.name, arguments })
    }

    /// The document that an operation is in.
    pub(crate) fn document(&self, operation: &Operation) -> Option<&Document> {
        self.apis.get(operation.document).map(|api| &api.document)
    }

    /// What the prompt shows, in at most about `tokens` tokens.
    pub(crate) fn render(&self, tokens: usize) -> String {
        signature::render(self, tokens)
    }
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
