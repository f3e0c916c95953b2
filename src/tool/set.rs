//! The tools of an agent: looked up by name or route, checked before a call, rendered for a prompt.

mod check;
mod stored;
mod whole_body;

use super::describe::{any_of, named, truncate};
use super::interface::Rendered;
use super::nearest_names::{meant, nearest};
use super::openapi::{Api, Catalogue, DocumentError, Operation, empty_spec};
use super::schema::Checker;
use super::spec::{ToolKind, ToolSpec};
use super::tool_view::ToolView;
use crate::reply::{Code, Object, Violation};
use indexmap::IndexMap;
use std::sync::{Arc, OnceLock};

/// Characters up to which a signature is written down again.
const LONG_SIGNATURE: usize = 240;

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
    entries: IndexMap<String, Arc<Entry>>,
    /// The operations of its documents.
    documents: Option<Arc<Catalogue>>,
    /// The tools beside those of the documents.
    beside: Vec<String>,
    /// The tools that are not operations of a document, as operations.
    plain: OnceLock<Catalogue>,
    pub(super) rendered: OnceLock<Rendered>,
}

#[derive(Debug)]
struct Entry {
    /// Built from the document on first use; there from the start for plain tools.
    spec: OnceLock<ToolSpec>,
    checker: Checker,
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
        Self::of(IndexMap::with_capacity(tools.len()), None).with(tools)
    }

    /// No tools.
    pub fn empty() -> Self {
        Self::of(IndexMap::new(), None)
    }

    /// One tool for each operation of an `OpenAPI` 3.0, 3.1 or 3.2 document, named `METHOD /path`.
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
        if documents.is_empty() {
            return Self::new(tools);
        }
        let catalogue = Catalogue::of(documents).map_err(ToolSetError::SameOperation)?;
        let entry = || Arc::new(Entry { spec: OnceLock::new(), checker: Checker::default() });
        let entries = catalogue.names().map(|name| (name.to_owned(), entry())).collect();
        Self::of(entries, Some(Arc::new(catalogue))).with(tools)
    }

    fn of(entries: IndexMap<String, Arc<Entry>>, documents: Option<Arc<Catalogue>>) -> Self {
        Self { entries, documents, beside: Vec::new(), plain: OnceLock::new(), rendered: OnceLock::new() }
    }

    /// These tools and those.
    ///
    /// # Errors
    /// As [`ToolSet::new`].
    pub fn with(mut self, tools: Vec<ToolSpec>) -> Result<Self, ToolSetError> {
        for tool in tools {
            check_spec(&tool)?;
            let name = tool.name.clone();
            let entry = Arc::new(Entry { spec: OnceLock::from(tool), checker: Checker::default() });
            let route = format!("POST /{name}");
            if self.operation(&route).is_some() {
                return Err(ToolSetError::Duplicate(route));
            }
            if self.entries.insert(name.clone(), entry).is_some() {
                return Err(ToolSetError::Duplicate(name));
            }
            if self.documents.is_some() {
                self.beside.push(name);
            }
        }
        (self.plain, self.rendered) = (OnceLock::new(), OnceLock::new());
        Ok(self)
    }

    /// These tools without those of `names`. What was worked out for the others is shared.
    #[must_use]
    pub fn without(&self, names: &[String]) -> Self {
        let kept = |name: &String| !names.contains(name);
        let entries = self.entries.iter().filter(|(name, _)| kept(name));
        let mut set =
            Self::of(entries.map(|(name, entry)| (name.clone(), Arc::clone(entry))).collect(), self.documents.clone());
        set.beside = self.beside.iter().filter(|name| kept(name)).cloned().collect();
        set
    }

    /// The same tools, for a look at all of them: what is read of documents for it is not kept. `None` where there are
    /// no documents.
    pub(super) fn unread(&self) -> Option<Self> {
        let catalogue = self.documents.as_ref()?.unread();
        let entries = self.entries.iter().map(|(name, entry)| {
            let entry = match catalogue.operation(name) {
                Some(_) => Arc::new(Entry { spec: OnceLock::new(), checker: Checker::default() }),
                None => Arc::clone(entry),
            };
            (name.clone(), entry)
        });
        let mut set = Self::of(entries.collect(), None);
        set.documents = Some(Arc::new(catalogue));
        set.beside.clone_from(&self.beside);
        Some(set)
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

    /// The tool of exactly this name, or the operation of a document that it names.
    pub(crate) fn called(&self, name: &str) -> Option<&ToolSpec> {
        self.get(name).or_else(|| Some(self.routed(self.documents.as_deref()?, name).ok()?.tool))
    }

    /// The tools in their order.
    pub fn iter(&self) -> impl Iterator<Item = &ToolSpec> {
        self.entries.iter().map(|(name, entry)| self.spec(name, entry))
    }

    /// The tools in their order, as they are shown.
    pub(crate) fn shown(&self) -> impl Iterator<Item = ToolView<'_>> {
        self.entries.iter().map(|(name, entry)| match self.operation(name) {
            Some((catalogue, operation)) => ToolView::Operation(catalogue, operation),
            None => ToolView::Tool(self.spec(name, entry)),
        })
    }

    /// One of the tools, as it is shown.
    pub(crate) fn shown_as(&self, tool: &ToolSpec) -> Option<ToolView<'_>> {
        let (name, entry) = self.entries.get_key_value(&tool.name)?;
        Some(match self.operation(name) {
            Some((catalogue, operation)) => ToolView::Operation(catalogue, operation),
            None => ToolView::Tool(self.spec(name, entry)),
        })
    }

    /// The tools that are no operations of a document.
    pub fn plain(&self) -> impl Iterator<Item = &ToolSpec> {
        // Those of a document come first.
        let operations = if self.documents.is_some() { self.len() - self.beside.len() } else { 0 };
        self.entries.iter().skip(operations).map(|(name, entry)| self.spec(name, entry))
    }

    /// Whether the tools are too many for the prompt, so that others are there to look them up.
    pub fn is_crowded(&self) -> bool {
        self.plain().any(|tool| tool.kind == ToolKind::LookUp)
    }

    /// Whether there are operations of documents.
    pub fn has_documents(&self) -> bool {
        self.documents.is_some()
    }

    /// Whether the operations are those of the same documents.
    pub fn same_operations(&self, other: &Self) -> bool {
        match (&self.documents, &other.documents) {
            (Some(own), Some(others)) => Arc::ptr_eq(own, others) || own.is_same(others),
            _ => false,
        }
    }

    /// The one document, or the one made of plain tools, where that has at most `most` characters.
    pub(crate) fn whole_document(&self, most: usize) -> Option<String> {
        match &self.documents {
            None => self.plain_catalogue().whole(most),
            Some(catalogue) if self.beside.is_empty() => catalogue.whole(most),
            Some(_) => None,
        }
    }

    /// What is written to call a tool: its name, or where `routes` are written the route that the prompt shows.
    pub fn label(&self, tool: &ToolSpec, routes: bool) -> String {
        self.shown_as(tool).map_or_else(|| tool.name.clone(), |shown| shown.label(routes).into_owned())
    }

    /// The tool as signature lines show it, without its description; its label alone where that is long.
    pub fn signature(&self, tool: &ToolSpec) -> String {
        let shown = self.shown_as(tool).unwrap_or(ToolView::Tool(tool));
        let signature = shown.signature(false, 1);
        if signature.chars().count() > LONG_SIGNATURE { shown.label(false).into_owned() } else { signature }
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
        self.get(name).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> Violation {
        let violation = Violation::new(Code::UnknownTool, format!("unknown tool {}", named(name)));
        violation.expected(self.listed(self.names())).found(named(name)).hint(self.advice(name))
    }

    /// The tool that is called by `name`: where `routes` are written as [`ToolSet::resolve_route`] says, else by exactly
    /// this name or, of a document, by whatever names one operation.
    ///
    /// # Errors
    /// `unknown_tool`, with the nearest names.
    pub fn find(&self, name: &str, routes: bool) -> Result<Resolved<'_>, Violation> {
        if routes {
            return self.resolve_route(name);
        }
        if let Some(tool) = self.get(name) {
            return Ok(Resolved { tool, path_arguments: Object::new() });
        }
        let Some(catalogue) = &self.documents else {
            return Err(self.unknown(name));
        };
        let beside = || nearest(name, self.beside.iter().map(String::as_str), 1);
        match self.routed(catalogue, name) {
            Err(_) if !name.contains('/') && !beside().is_empty() => Err(self.unknown(name)),
            found => found,
        }
    }

    /// The operation that a route names (ticket): `METHOD /path/{template}`, an `operationId`, `/path` alone where only
    /// one method is there, or a concrete path. Plain tools are operations `POST /name` with their name as id.
    ///
    /// # Errors
    /// `unknown_tool` where nothing or more than one thing fits, with the nearest routes.
    pub fn resolve_route(&self, route: &str) -> Result<Resolved<'_>, Violation> {
        let Some(catalogue) = &self.documents else {
            return self.routed(self.plain_catalogue(), route);
        };
        // Templates of a document may fit anything; a tool beside it has the one route.
        let beside = (!self.beside.is_empty()).then(|| self.routed(self.plain_catalogue(), route));
        match beside {
            Some(Ok(found)) => Ok(found),
            _ => self.routed(catalogue, route),
        }
    }

    fn routed<'a>(&'a self, catalogue: &'a Catalogue, route: &str) -> Result<Resolved<'a>, Violation> {
        let found = catalogue.resolve(route)?;
        match self.get(found.name) {
            Some(tool) => Ok(Resolved { tool, path_arguments: found.arguments }),
            None => Err(Violation::new(Code::UnknownTool, format!("unknown route {}", named(route)))),
        }
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

    fn spec<'a>(&'a self, name: &str, entry: &'a Entry) -> &'a ToolSpec {
        entry.spec.get_or_init(|| match &self.documents {
            Some(catalogue) => catalogue.spec(name),
            None => empty_spec(name),
        })
    }

    fn operation(&self, name: &str) -> Option<(&Catalogue, &Operation)> {
        let catalogue = self.documents.as_deref()?;
        Some((catalogue, catalogue.operation(name)?))
    }

    fn plain_catalogue(&self) -> &Catalogue {
        self.plain.get_or_init(|| Catalogue::from_tools(self.plain()))
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
        let meant: Vec<String> = meant(name, self.names(), 3).into_iter().map(named).collect();
        if !meant.is_empty() {
            return format!("did you mean {}?", any_of(&meant));
        }
        if self.is_crowded() {
            return "look for it with search_tools".to_owned();
        }
        if self.is_empty() { "there are no tools".to_owned() } else { NO_SUCH_TOOL.to_owned() }
    }
}

/// Who names a tool that is not there may have seen that none fits. A small model takes the next best one if it is told
/// their names, and copies the sentence.
pub(crate) const NO_SUCH_TOOL: &str = "nothing was done. Use another tool only if it does what is asked; if none does, \
                                       answer: I did nothing, because no tool does this";

fn check_spec(tool: &ToolSpec) -> Result<(), ToolSetError> {
    let blank = |character: char| character.is_whitespace() || character.is_control();
    if tool.name.is_empty() || tool.name.chars().count() > 128 || tool.name.chars().any(blank) {
        return Err(ToolSetError::Name(truncate(&tool.name, 128)));
    }
    let cause = match &tool.parameters {
        serde_json::Value::Object(map) => match map.get("type") {
            None => return Ok(()),
            Some(kind) if kind == "object" => return Ok(()),
            Some(kind) => format!("its type is {kind}"),
        },
        other => format!("got {}", truncate(&other.to_string(), 60)),
    };
    Err(ToolSetError::Parameters { name: tool.name.clone(), cause })
}

#[cfg(test)]
pub(crate) mod tests;
