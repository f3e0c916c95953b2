//! The operations of a document, as far as they are known before their parts are read.

use super::document::Members;
use crate::tool::describe::truncate;
use serde::Deserialize;
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;

/// The methods an operation can have, as keys of a path item.
pub(crate) const METHODS: [&str; 9] = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];

/// Characters of the line that says what an operation does.
const LINE: usize = 200;

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
    /// What it does, in a line: the first of its summary, else of its description.
    pub(crate) summary: Option<String>,
    /// The groups that the document puts it in.
    pub(crate) tags: Vec<String>,
    /// Which of a set's documents it is in.
    pub(crate) document: usize,
}

/// What is known of an operation without reading all of it.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "operationId")]
    id: Option<Json>,
    summary: Option<Json>,
    description: Option<Json>,
    tags: Option<Json>,
}

/// The operations of a path item as it is written, in the order of [`METHODS`]; `None` where they stand elsewhere.
pub(crate) fn operations(path: &str, item: &str) -> Option<Vec<Operation>> {
    let item: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(item).ok()?;
    if item.contains_key("$ref") {
        return None;
    }
    let operations = METHODS.into_iter().filter_map(|method| {
        let written = item.get(method)?.get();
        let head = written.starts_with('{').then(|| serde_json::from_str(written).ok())?;
        Some(operation(method, path, head?))
    });
    Some(operations.collect())
}

/// The operations of a path item that was read.
pub(crate) fn of_item(path: &str, item: &Members) -> Vec<Operation> {
    let operations = METHODS.into_iter().filter_map(|method| {
        let written = item.get(method)?.as_object()?;
        let part = |key: &str| written.get(key).cloned();
        let head = Head {
            id: part("operationId"),
            summary: part("summary"),
            description: part("description"),
            tags: part("tags"),
        };
        Some(operation(method, path, head))
    });
    operations.collect()
}

fn operation(method: &str, path: &str, head: Head) -> Operation {
    let text = |value: Option<Json>| match value {
        Some(Json::String(text)) => Some(text),
        _ => None,
    };
    let method = method.to_uppercase();
    let tags = head.tags.as_ref().and_then(Json::as_array).into_iter().flatten();
    Operation {
        name: format!("{method} {path}"),
        method,
        path: path.to_owned(),
        id: text(head.id),
        tags: tags.filter_map(Json::as_str).map(str::to_owned).collect(),
        summary: text(head.summary).and_then(first_line).or_else(|| text(head.description).and_then(first_line)),
        document: 0,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the only owner of the text")]
fn first_line(text: String) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(truncate(line, LINE))
}
