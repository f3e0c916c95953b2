//! What a prompt shows of a document: all of it where it is short, else one line an operation.

use super::Catalogue;
use super::document::Document;
use super::operation::Operation;
use super::request;
use crate::tool::describe::{cut, fields, short_type};
use crate::tool::types::Schema;
use indexmap::IndexMap;
use serde_json::Value as Json;
use std::fmt::Write as _;

/// Tokens that a document may take in a prompt, at four characters a token.
pub(crate) const TOKENS: usize = 8_000;

/// Tokens up to which a document is shown as it is.
const WHOLE: usize = 500;

const CHARACTERS: usize = 4;

/// Characters of a summary.
const SUMMARY: usize = 100;

/// The operations in at most about `tokens` tokens.
pub(crate) fn render(catalogue: &Catalogue, tokens: usize) -> String {
    if let Some(whole) = whole(catalogue, tokens.min(WHOLE)) {
        return whole;
    }
    let operations = &catalogue.operations;
    for detail in [Detail::All, Detail::Arguments, Detail::Names] {
        let lines =
            operations.values().filter_map(|operation| Some(line(catalogue.document(operation)?, operation, detail)));
        if let Some(text) = joined(lines, tokens) {
            return text;
        }
    }
    cut_list(operations, tokens)
}

/// The one document that there is, where it is short.
fn whole(catalogue: &Catalogue, tokens: usize) -> Option<String> {
    let mut used = catalogue.apis.iter().filter(|api| !api.operations.is_empty());
    let api = used.next().or_else(|| catalogue.apis.last())?;
    if used.next().is_some() {
        return None;
    }
    let text = compact(&api.document.whole_within(tokens * CHARACTERS * 8)?).to_string();
    fits(&text, tokens).then_some(text)
}

fn fits(text: &str, tokens: usize) -> bool {
    text.chars().nth(tokens.saturating_mul(CHARACTERS)).is_none()
}

/// How much a line says.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    All,
    Arguments,
    Names,
}

/// The lines, or `None` as soon as they are too long.
fn joined(lines: impl Iterator<Item = String>, tokens: usize) -> Option<String> {
    let mut text = String::new();
    for line in lines {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line);
        if text.len() > tokens.saturating_mul(CHARACTERS) && !fits(&text, tokens) {
            return None;
        }
    }
    Some(text)
}

/// As many names as fit, and how many are left.
fn cut_list(operations: &IndexMap<String, Operation>, tokens: usize) -> String {
    let mut text = String::new();
    for (shown, operation) in operations.values().enumerate() {
        let left = operations.len() - shown;
        if text.len() + operation.path.len() + 40 > tokens.saturating_mul(CHARACTERS) {
            let _ = write!(text, "… and {left} more operations");
            break;
        }
        let _ = writeln!(text, "{} {}", operation.method, operation.path);
    }
    text
}

fn line(document: &Document, operation: &Operation, detail: Detail) -> String {
    let mut line = format!("{} {}", operation.method, operation.path);
    if detail == Detail::Names {
        return line;
    }
    let spec = request::spec(document, operation);
    let _ = write!(line, "({})", fields(Schema::root(&spec.parameters), usize::from(detail == Detail::All)));
    if detail == Detail::Arguments {
        return line;
    }
    if let Some(result) = result(document, operation) {
        let _ = write!(line, " -> {result}");
    }
    let summary = spec.description.lines().next().unwrap_or_default();
    if !summary.is_empty() {
        let _ = write!(line, "  # {}", cut(summary, SUMMARY));
    }
    line
}

/// The type of the first successful response that has one.
fn result(document: &Document, operation: &Operation) -> Option<String> {
    let (_, object) = document.objects(operation)?;
    let responses = object.get("responses")?.as_object()?;
    let (_, response) = responses
        .iter()
        .filter(|(status, _)| status.starts_with('2'))
        .min_by(|left, right| left.0.cmp(right.0))
        .or_else(|| responses.get_key_value("default"))?;
    let content = document.follow(response)?.get("content")?.as_object()?;
    let schema = content.get("application/json").or_else(|| content.values().next())?.get("schema")?;
    Some(short_type(document.schema(schema), 0))
}

/// The document without what a caller does not need.
fn compact(root: &Json) -> Json {
    let Some(map) = root.as_object() else {
        return root.clone();
    };
    let kept = ["openapi", "paths", "components"];
    Json::Object(
        map.iter()
            .filter(|(key, _)| kept.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), without_extensions(value)))
            .collect(),
    )
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
