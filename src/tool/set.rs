//! The tools of an agent: looked up by name or route, checked before a call, rendered for a prompt.

use super::describe::{any_of, cut, named};
use super::nearest::nearest;
use super::openapi::{Api, Catalogue, DocumentError};
use super::problem::Problem;
use super::render;
use super::schema::{Checked, Checker};
use super::spec::ToolSpec;
use crate::reply::{Code, Object, Value, Violation};
use indexmap::IndexMap;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::sync::{Arc, OnceLock};

/// Problems of one call that its violation spells out.
const TOLD: usize = 6;

/// Why tools cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolSetError {
    /// Two tools share a name.
    #[error("two tools are named '{0}': give one of them another name")]
    Duplicate(String),
    /// Two documents have the same operation.
    #[error("two documents have the operation '{0}': leave it out of one of them, with include=[…]")]
    SameOperation(String),
    /// The name cannot be written in a reply.
    #[error("{0:?} cannot be a tool's name: it must have 1 to 128 characters, none of them blank")]
    Name(String),
    /// The schema is not an object schema.
    #[error("the parameters of tool '{name}' must be a JSON Schema of an object: {cause}")]
    Parameters {
        /// The tool.
        name: String,
        /// What they are instead.
        cause: String,
    },
    /// The document cannot be read.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// The tools of an agent, in their order. Immutable; what is expensive is worked out on first use and kept.
#[derive(Debug)]
pub struct ToolSet {
    entries: IndexMap<String, Entry>,
    catalogue: OnceLock<Catalogue>,
    /// The documents that tools come from.
    documents: Vec<Arc<Api>>,
}

#[derive(Debug)]
struct Entry {
    /// Built from the document on first use; there from the start for plain tools.
    spec: OnceLock<ToolSpec>,
    checker: Checker,
    /// The position of its document; `None` for a plain tool.
    document: Option<usize>,
}

/// A route that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved<'a> {
    /// The operation, or the tool that was offered as one.
    pub tool: &'a ToolSpec,
    /// What the route itself says: values of path parameters and of a query string, as they were written.
    pub path_arguments: Object,
}

impl ToolSet {
    /// The tools in this order.
    ///
    /// # Errors
    /// Where two share a name, a name cannot be written, or a schema is not one of an object.
    pub fn new(tools: Vec<ToolSpec>) -> Result<Self, ToolSetError> {
        Self::with_documents(Vec::new(), tools)
    }

    /// One tool for each operation of an `OpenAPI` 3.0 or 3.1 document, named `METHOD /path`.
    ///
    /// # Errors
    /// Where the text is no such document.
    pub fn from_openapi(document_json: &str) -> Result<Self, ToolSetError> {
        Self::with_documents(vec![Arc::new(Api::parse(document_json)?)], Vec::new())
    }

    /// The operations of documents, named `METHOD /path`, then these tools in their order.
    ///
    /// # Errors
    /// As [`ToolSet::new`]; and where two documents have the same operation.
    pub fn with_documents(documents: Vec<Arc<Api>>, tools: Vec<ToolSpec>) -> Result<Self, ToolSetError> {
        let mut entries = IndexMap::with_capacity(tools.len());
        for (at, api) in documents.iter().enumerate() {
            for name in api.names() {
                let entry = Entry { spec: OnceLock::new(), checker: Checker::default(), document: Some(at) };
                if entries.insert(name.to_owned(), entry).is_some() {
                    return Err(ToolSetError::SameOperation(name.to_owned()));
                }
            }
        }
        for tool in tools {
            check_spec(&tool)?;
            let name = tool.name.clone();
            let entry = Entry { spec: OnceLock::from(tool), checker: Checker::default(), document: None };
            if entries.insert(name.clone(), entry).is_some() {
                return Err(ToolSetError::Duplicate(name));
            }
        }
        Ok(Self { entries, catalogue: OnceLock::new(), documents })
    }

    /// The number of tools.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The tool of exactly this name.
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.entries.get_full(name).map(|(_, name, entry)| self.spec(name, entry))
    }

    /// The tools in their order.
    pub fn iter(&self) -> impl Iterator<Item = &ToolSpec> {
        self.entries.iter().map(|(name, entry)| self.spec(name, entry))
    }

    /// The names in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Up to three names that are close to `name`, the closest first.
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        nearest(name, self.names(), 3)
    }

    /// The tool of exactly this name (chatty, react).
    ///
    /// # Errors
    /// `unknown_tool`, with the nearest names.
    pub fn resolve(&self, name: &str) -> Result<&ToolSpec, Violation> {
        self.get(name).ok_or_else(|| {
            let violation = Violation::new(Code::UnknownTool, format!("unknown tool {}", named(name)));
            violation.expected(self.listed(self.names())).found(named(name)).hint(self.advice(name))
        })
    }

    /// The operation that a route names (ticket): `METHOD /path/{template}`, an `operationId`, `/path` alone where only
    /// one method is there, or a concrete path. Plain tools are operations `POST /name` with their name as id.
    ///
    /// # Errors
    /// `unknown_tool` where nothing or more than one thing fits, with the nearest routes.
    pub fn resolve_route(&self, route: &str) -> Result<Resolved<'_>, Violation> {
        let found = self.catalogue().resolve(route)?;
        match self.get(found.name) {
            Some(tool) => Ok(Resolved { tool, path_arguments: found.arguments }),
            None => Err(Violation::new(Code::UnknownTool, format!("unknown route {}", named(route)))),
        }
    }

    /// Checks arguments against their tool's schema: an object, a string that holds one, or null for none.
    ///
    /// # Errors
    /// One violation that names every problem; `expected` is the schema of this tool alone.
    pub fn check(&self, tool: &ToolSpec, arguments: &Value) -> Result<Checked, Violation> {
        self.check_except(tool, arguments, &[])
    }

    /// Whether arguments are right as they are, as far as that can be told at a glance.
    pub fn admits(&self, tool: &ToolSpec, arguments: &Value) -> bool {
        self.entries.get(&tool.name).is_some_and(|entry| entry.checker.admits(&tool.parameters, arguments))
    }

    /// The same, but values at the JSON pointers `except` are let through whatever they are: references to the results
    /// of other calls, which are not there yet.
    ///
    /// # Errors
    /// As [`ToolSet::check`].
    pub fn check_except(&self, tool: &ToolSpec, arguments: &Value, except: &[String]) -> Result<Checked, Violation> {
        match self.entries.get(&tool.name) {
            Some(entry) => entry.checker.check_except(&tool.parameters, arguments, except),
            None => Checker::default().check_except(&tool.parameters, arguments, except),
        }
        .map_err(|problems| violation(tool, &problems))
    }

    /// Checks a payload together with what the route says.
    ///
    /// # Errors
    /// As [`ToolSet::check`]; and where route and payload contradict each other.
    pub fn check_call(&self, resolved: &Resolved<'_>, payload: &Value) -> Result<Checked, Violation> {
        if resolved.path_arguments.is_empty() {
            return self.check(resolved.tool, payload);
        }
        let merged = super::openapi::merge(&resolved.path_arguments, payload)
            .map_err(|problems| violation(resolved.tool, &problems))?;
        let mut checked = self.check(resolved.tool, &merged)?;
        // A value in a route has no type of its own: reading it as its parameter's is no repair.
        let places: Vec<String> = resolved.path_arguments.keys().map(|name| super::coerce::join("", name)).collect();
        checked.coerced.retain(|pointer| !places.iter().any(|place| super::coerce::within(place, pointer)));
        Ok(checked)
    }

    /// Compiles every schema now, so that one that cannot be used is found before a run.
    ///
    /// # Errors
    /// Names the first tool whose schema cannot be used, and why.
    pub fn compile(&self) -> Result<(), ToolSetError> {
        for (name, entry) in &self.entries {
            let spec = self.spec(name, entry);
            entry
                .checker
                .compile(&spec.parameters)
                .map_err(|cause| ToolSetError::Parameters { name: name.clone(), cause: cause.to_owned() })?;
        }
        Ok(())
    }

    /// The tools for a chatty prompt: a JSON array of `{name, description, parameters}`, one tool a line.
    pub fn interface_json(&self) -> String {
        render::interface_json(self.iter())
    }

    /// The tools for a react prompt: name, description and arguments as a list.
    pub fn interface_text(&self) -> String {
        render::interface_text(self.iter())
    }

    /// The operations for a ticket prompt: the document where it is short, else one line an operation, in at most about
    /// 8,000 tokens.
    pub fn openapi_spec(&self) -> String {
        self.openapi_spec_within(super::openapi::TOKENS)
    }

    /// The same within about `tokens` tokens of four characters.
    pub fn openapi_spec_within(&self, tokens: usize) -> String {
        self.catalogue().render(tokens)
    }

    fn spec<'a>(&'a self, name: &str, entry: &'a Entry) -> &'a ToolSpec {
        entry.spec.get_or_init(|| match entry.document.and_then(|at| self.documents.get(at)) {
            Some(api) => api.spec(name),
            None => super::openapi::empty_spec(name),
        })
    }

    /// The tools that come from no document.
    fn plain(&self) -> impl Iterator<Item = &ToolSpec> {
        self.entries.values().filter(|entry| entry.document.is_none()).filter_map(|entry| entry.spec.get())
    }

    fn catalogue(&self) -> &Catalogue {
        self.catalogue.get_or_init(|| Catalogue::new(&self.documents, self.plain()))
    }

    fn listed<'a>(&self, names: impl Iterator<Item = &'a str>) -> String {
        let listed: Vec<String> = names.take(12).map(named).collect();
        match self.len() {
            0 => "no tool: there are none".to_owned(),
            1..=12 => any_of(&listed),
            _ => format!("{}, …", listed.join(", ")),
        }
    }

    fn advice(&self, name: &str) -> String {
        let near: Vec<String> = self.nearest(name).into_iter().map(named).collect();
        if !near.is_empty() {
            return format!("did you mean {}?", any_of(&near));
        }
        if self.is_empty() { "there are no tools".to_owned() } else { format!("use {}", self.listed(self.names())) }
    }
}

/// Tools as they stand in a log.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Stored<'a> {
    Tools(Vec<&'a ToolSpec>),
    Openapi(&'a Api),
    OpenapiBeside { document: &'a Api, tools: Vec<&'a ToolSpec> },
    Documents { documents: &'a [Arc<Api>], tools: Vec<&'a ToolSpec> },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Loaded {
    Tools(Vec<ToolSpec>),
    Openapi(Box<RawValue>),
    OpenapiBeside { document: Box<RawValue>, tools: Vec<ToolSpec> },
    Documents { documents: Vec<Box<RawValue>>, tools: Vec<ToolSpec> },
}

impl Serialize for ToolSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tools: Vec<&ToolSpec> = self.plain().collect();
        let stored = match self.documents.as_slice() {
            [] => Stored::Tools(tools),
            [document] if tools.is_empty() => Stored::Openapi(document),
            [document] => Stored::OpenapiBeside { document, tools },
            documents => Stored::Documents { documents, tools },
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (documents, tools) = match Loaded::deserialize(deserializer)? {
            Loaded::Tools(tools) => (Vec::new(), tools),
            Loaded::Openapi(document) => (vec![document], Vec::new()),
            Loaded::OpenapiBeside { document, tools } => (vec![document], tools),
            Loaded::Documents { documents, tools } => (documents, tools),
        };
        let documents = documents.iter().map(|raw| Api::from_raw(raw)).collect::<Result<_, _>>();
        let set = documents.map_err(ToolSetError::from).and_then(|documents| Self::with_documents(documents, tools));
        set.map_err(D::Error::custom)
    }
}

fn check_spec(tool: &ToolSpec) -> Result<(), ToolSetError> {
    let blank = |character: char| character.is_whitespace() || character.is_control();
    if tool.name.is_empty() || tool.name.chars().count() > 128 || tool.name.chars().any(blank) {
        return Err(ToolSetError::Name(cut(&tool.name, 128)));
    }
    let cause = match &tool.parameters {
        serde_json::Value::Object(map) => match map.get("type") {
            None => return Ok(()),
            Some(kind) if kind == "object" => return Ok(()),
            Some(kind) => format!("its type is {kind}"),
        },
        other => format!("got {}", cut(&other.to_string(), 60)),
    };
    Err(ToolSetError::Parameters { name: tool.name.clone(), cause })
}

/// One violation for all problems of a call; there is at least one.
fn violation(tool: &ToolSpec, problems: &[Problem]) -> Violation {
    let expected = render::expected(tool);
    let Some(first) = problems.first() else {
        return Violation::new(Code::InvalidArgument, "the arguments are wrong").expected(expected);
    };
    let mut messages: Vec<&str> = problems.iter().take(TOLD).map(|problem| problem.message.as_str()).collect();
    let more = format!("{} more problems", problems.len().saturating_sub(TOLD));
    if problems.len() > TOLD {
        messages.push(&more);
    }
    Violation::new(first.code.into(), messages.join("; "))
        .pointer(first.pointer.clone())
        .expected(expected)
        .found(first.found.clone())
}

#[cfg(test)]
pub(crate) mod tests;
