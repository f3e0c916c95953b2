//! A tool as lines of a prompt and of a look-up show it. An operation is shown from its document, unconverted.

use super::describe::{fields, truncate};
use super::openapi::{Catalogue, Operation};
use super::render::DEPTH as OPENED;
use super::spec::{ToolKind, ToolSpec};
use super::types::Schema;
use indexmap::IndexMap;
use serde_json::{Map, Value as Json};
use std::borrow::Cow;

/// Characters of a summary.
const SUMMARY: usize = 100;

/// Tools that are one group however much they have in common.
const SMALL: usize = 12;

/// Segments of a path, or words of a name, that a group can have.
const DEPTH: usize = 4;

/// A tool of the program, or an operation of its document.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ToolView<'a> {
    /// A tool with its schema.
    Tool(&'a ToolSpec),
    Operation(&'a Catalogue, &'a Operation),
}

/// How much a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Arguments with their objects opened as deep as in a full entry, result and summary.
    Opened,
    /// The same with objects opened one level deep.
    All,
    /// Arguments without result and summary.
    Arguments,
}

impl<'a> ToolView<'a> {
    /// What is written to call it: its name, or where `routes` are written the route of a plain tool.
    pub(crate) fn label(self, routes: bool) -> Cow<'a, str> {
        match self {
            Self::Tool(tool) if routes => format!("POST /{}", tool.name).into(),
            Self::Tool(tool) => tool.name.as_str().into(),
            Self::Operation(_, operation) => operation.name.as_str().into(),
        }
    }

    pub(crate) fn name(self) -> &'a str {
        match self {
            Self::Tool(tool) => &tool.name,
            Self::Operation(_, operation) => &operation.name,
        }
    }

    pub(crate) fn kind(self) -> ToolKind {
        match self {
            Self::Tool(tool) => tool.kind,
            Self::Operation(..) => ToolKind::Function,
        }
    }

    /// `name(id: int, fields?: [str])`.
    pub(crate) fn signature(self, routes: bool, depth: usize) -> String {
        let arguments = match self {
            Self::Tool(tool) => fields(Schema::root(&tool.parameters), depth),
            Self::Operation(catalogue, operation) => catalogue.arguments(operation, depth),
        };
        format!("{}({arguments})", self.label(routes))
    }

    /// `name(id: int, fields?: [str]) -> Pet  # One pet`.
    pub(crate) fn line(self, routes: bool, detail: Detail) -> String {
        let depth = match detail {
            Detail::Opened => OPENED,
            Detail::All => 1,
            Detail::Arguments => 0,
        };
        let mut line = self.signature(routes, depth);
        if detail == Detail::Arguments {
            return line;
        }
        if let Some(result) = self.result() {
            line.push_str(" -> ");
            line.push_str(&result);
        }
        let summary = self.summary();
        if !summary.is_empty() {
            line.push_str("  # ");
            line.push_str(&truncate(summary, SUMMARY));
        }
        line
    }

    fn result(self) -> Option<String> {
        match self {
            Self::Tool(_) => None,
            Self::Operation(catalogue, operation) => catalogue.result(operation),
        }
    }

    /// The first line of the description or summary.
    pub(crate) fn summary(self) -> &'a str {
        let text = match self {
            Self::Tool(tool) => tool.description.as_str(),
            Self::Operation(_, operation) => operation.summary.as_deref().unwrap_or_default(),
        };
        text.trim().lines().next().unwrap_or_default().trim_end()
    }

    /// The whole description.
    pub(crate) fn description(self) -> &'a str {
        match self {
            Self::Tool(tool) => &tool.description,
            Self::Operation(..) => self.document_text("description").unwrap_or_default(),
        }
    }

    /// The document's own name for it.
    pub(crate) fn id(self) -> Option<&'a str> {
        match self {
            Self::Tool(_) => None,
            Self::Operation(_, operation) => operation.id.as_deref(),
        }
    }

    pub(crate) fn tags(self) -> impl Iterator<Item = &'a str> {
        let tags: &[String] = match self {
            Self::Tool(_) => &[],
            Self::Operation(_, operation) => &operation.tags,
        };
        tags.iter().map(String::as_str).filter(|tag| !tag.trim().is_empty())
    }

    /// What it belongs to: its first tag, else the first `depth` segments of its path that are no placeholders, else the
    /// first words of its name.
    fn group(self, depth: usize) -> Cow<'a, str> {
        if let Some(tag) = self.tags().next() {
            return tag.into();
        }
        match self {
            Self::Operation(_, operation) => {
                let segments = operation.path.split('/').filter(|segment| !segment.is_empty());
                let fixed: Vec<&str> = segments.filter(|segment| !segment.starts_with('{')).take(depth).collect();
                if fixed.is_empty() { "/".into() } else { fixed.join("/").into() }
            }
            Self::Tool(tool) => {
                let name = tool.name.as_str();
                let marks = name.match_indices(|mark: char| !mark.is_alphanumeric()).map(|(at, _)| at);
                let end = marks.filter(|at| *at > 0).nth(depth - 1);
                end.and_then(|end| name.get(..end)).unwrap_or(name).into()
            }
        }
    }

    fn document_text(self, key: &str) -> Option<&'a str> {
        self.object()?.get(key)?.as_str().filter(|text| !text.trim().is_empty())
    }

    fn object(self) -> Option<&'a Map<String, Json>> {
        match self {
            Self::Tool(_) => None,
            Self::Operation(catalogue, operation) => catalogue.object(operation),
        }
    }
}

/// Tools by group, in their order. A group without a tag that holds more than a third of all is parted by
/// the next segment or word, where that gives groups at all.
pub(crate) fn grouped<'a>(tools: impl Iterator<Item = ToolView<'a>>) -> Vec<(Cow<'a, str>, Vec<ToolView<'a>>)> {
    let tools: Vec<ToolView<'a>> = tools.collect();
    let large = (tools.len() / 3).max(SMALL);
    parted(tools, 1, large)
}

fn parted(tools: Vec<ToolView<'_>>, depth: usize, large: usize) -> Vec<(Cow<'_, str>, Vec<ToolView<'_>>)> {
    let mut groups: IndexMap<Cow<'_, str>, Vec<ToolView<'_>>> = IndexMap::new();
    for tool in tools {
        groups.entry(tool.group(depth)).or_default().push(tool);
    }
    let mut all = Vec::new();
    for (group, tools) in groups {
        let tagged = tools.first().is_some_and(|tool| tool.tags().next().is_some());
        if depth < DEPTH && tools.len() > large && !tagged {
            let parts = parted(tools.clone(), depth + 1, large);
            if parts.len() <= tools.len() / 2 {
                all.extend(parts);
                continue;
            }
        }
        all.push((group, tools));
    }
    all
}
