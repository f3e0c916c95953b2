//! What a prompt shows of an operation, from the document's own schemas: nothing is converted for a line.

use super::arguments;
use super::document::Document;
use super::operation::Operation;
use crate::tool::describe::{listed_fields, short_type};
use serde_json::Value as Json;

/// How many times as long a document may be as what is shown of it.
const MARKUP: usize = 4;

/// `id: int, fields?: [str]`, with objects opened `depth` levels deep.
pub(crate) fn arguments(document: &Document, operation: &Operation, depth: usize) -> String {
    let arguments = arguments::arguments(document, operation);
    let schema = |node| document.schema(node);
    let listed: Vec<_> = arguments.properties.iter().map(|one| (one.name.as_str(), one.schema.map(schema))).collect();
    let required: Vec<&str> = arguments.required.iter().map(String::as_str).collect();
    listed_fields(&listed, &required, arguments.open.is_some(), depth)
}

/// The type of the first successful response that has one.
pub(crate) fn result(document: &Document, operation: &Operation) -> Option<String> {
    let (_, object) = document.objects(operation)?;
    let responses = object.get("responses")?.as_object()?;
    let (_, response) = responses
        .iter()
        .filter(|(status, _)| status.starts_with('2'))
        .min_by(|left, right| left.0.cmp(right.0))
        .or_else(|| responses.get_key_value("default"))?;
    let content = document.follow(response)?.get("content")?.as_object()?;
    let schema = content.get("application/json").or_else(|| content.values().next())?.get("schema")?;
    if let Some(name) = name(schema) {
        return Some(name.to_owned());
    }
    match schema.get("items").and_then(name) {
        Some(item) => Some(format!("[{item}]")),
        None => Some(short_type(document.schema(schema), 0)),
    }
}

/// The name of what a schema refers to. What is behind it is not read: responses are most of many documents.
fn name(schema: &Json) -> Option<&str> {
    schema.get("$ref")?.as_str()?.rsplit('/').next()
}

/// The document without what a caller does not need, where that has at most `most` characters.
pub(crate) fn whole(document: &Document, most: usize) -> Option<String> {
    let text = compact(&document.whole_within(most.saturating_mul(MARKUP))?).to_string();
    text.chars().nth(most).is_none().then_some(text)
}

fn compact(root: &Json) -> Json {
    let Some(map) = root.as_object() else {
        return root.clone();
    };
    let kept = ["openapi", "paths", "components"];
    let kept = map.iter().filter(|(key, _)| kept.contains(&key.as_str()));
    Json::Object(kept.map(|(key, value)| (key.clone(), without_extensions(value))).collect())
}

fn without_extensions(node: &Json) -> Json {
    match node {
        Json::Object(map) => Json::Object(
            map.iter()
                .filter(|(key, _)| *key != "x-callslip" && *key != "securitySchemes")
                .map(|(key, value)| (key.clone(), without_extensions(value)))
                .collect(),
        ),
        Json::Array(items) => Json::Array(items.iter().map(without_extensions).collect()),
        other => other.clone(),
    }
}
