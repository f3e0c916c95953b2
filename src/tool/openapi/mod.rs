//! `OpenAPI` documents as base tools (ticket protocol): reading, routes, arguments and what the model is shown.

mod convert;
mod document;
mod request;
mod route;
mod signature;

pub use document::DocumentError;
pub(crate) use request::{empty_spec, merge};

use super::spec::ToolSpec;
use crate::reply::{Object, Violation};
use document::Document;
use indexmap::IndexMap;
use route::Routes;
use serde_json::{Map, Value as Json, json};

/// One operation of the document.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    /// The tool's name: `METHOD /path`, or a plain tool's own.
    pub(crate) name: String,
    /// In capitals.
    pub(crate) method: String,
    /// With its placeholders.
    pub(crate) path: String,
    /// The document's own name for it.
    pub(crate) id: Option<String>,
}

/// A route that was found: the tool's name and what the route says of its arguments.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: Object,
}

/// The operations of a document, or plain tools offered as operations.
#[derive(Debug)]
pub(crate) struct Catalogue {
    document: Document,
    operations: IndexMap<String, Operation>,
    routes: Routes,
}

impl Catalogue {
    /// Reads a document.
    pub(crate) fn from_json(text: &str) -> Result<Self, DocumentError> {
        Ok(Self::of(Document::parse(text)?, |operation| operation.name.clone()))
    }

    /// Offers plain tools as `POST /name` with their name as `operationId`.
    pub(crate) fn from_tools<'a>(tools: impl Iterator<Item = &'a ToolSpec>) -> Self {
        let paths: Map<String, Json> = tools.map(|tool| (format!("/{}", tool.name), path_item(tool))).collect();
        let document = json!({"openapi": "3.1.0", "info": {"title": "tools", "version": "1"}, "paths": paths});
        Self::of(Document::of(document), |operation| operation.id.clone().unwrap_or_else(|| operation.name.clone()))
    }

    fn of(document: Document, name: impl Fn(&Operation) -> String) -> Self {
        let mut operations = IndexMap::new();
        for mut operation in document.operations() {
            operation.name = name(&operation);
            operations.insert(operation.name.clone(), operation);
        }
        let routes = Routes::new(operations.values());
        Self { document, operations, routes }
    }

    /// The names of the operations, in the order of the document.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.operations.keys().map(String::as_str)
    }

    /// The tool for an operation.
    pub(crate) fn spec(&self, name: &str) -> ToolSpec {
        match self.operations.get(name) {
            Some(operation) => request::spec(&self.document, operation),
            None => request::empty_spec(name),
        }
    }

    /// Looks a route up.
    pub(crate) fn resolve(&self, route: &str) -> Result<Found<'_>, Violation> {
        let matched = self.routes.resolve(route, &self.operations)?;
        let arguments = request::route_arguments(&self.document, matched.operation, &matched);
        Ok(Found { name: &matched.operation.name, arguments })
    }

    /// The operation of exactly this name.
    pub(crate) fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.get(name)
    }

    /// An operation as the document writes it.
    pub(crate) fn object(&self, operation: &Operation) -> Option<&Map<String, Json>> {
        self.document.objects(operation).map(|(_, object)| object)
    }

    /// What an operation takes, in a few words: `id: int, fields?: [str]`.
    pub(crate) fn arguments(&self, operation: &Operation, depth: usize) -> String {
        signature::arguments(&self.document, operation, depth)
    }

    /// What an operation gives, in a few words.
    pub(crate) fn result(&self, operation: &Operation) -> Option<String> {
        signature::result(&self.document, operation)
    }

    /// The whole document for a prompt, where that has at most `most` characters.
    pub(crate) fn whole(&self, most: usize) -> Option<String> {
        signature::whole(&self.document, most)
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
