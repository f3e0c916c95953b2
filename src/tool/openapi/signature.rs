//! What a prompt shows of an operation, from the document's own schemas: nothing is converted for a line.

use super::Operation;
use super::document::Document;
use super::request;
use crate::tool::describe::{listed_fields, short_type};
use crate::tool::types::Schema;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use std::io;

/// `id: int, fields?: [str]`, with objects opened `depth` levels deep.
pub(crate) fn arguments(document: &Document, operation: &Operation, depth: usize) -> String {
    let arguments = request::arguments(document, operation);
    let schema = |node| Schema { root: document.root(), node };
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
    let schema = Schema { root: document.root(), node: schema };
    Some(short_type(schema, 0))
}

/// The document without what a caller does not need, where that has at most `most` characters.
pub(crate) fn whole(document: &Document, most: usize) -> Option<String> {
    let mut text = Bounded { bytes: Vec::new(), most: most.saturating_mul(4) };
    serde_json::to_writer(&mut text, &Shown { node: document.root(), top: true }).ok()?;
    String::from_utf8(text.bytes).ok().filter(|text| text.chars().nth(most).is_none())
}

/// A text that is given up once it is too long: the rest of a large document is not written.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A node of the document as it is shown.
struct Shown<'a> {
    node: &'a Json,
    top: bool,
}

impl Shown<'_> {
    fn keeps(&self, key: &str) -> bool {
        if self.top {
            return ["openapi", "paths", "components"].contains(&key);
        }
        key != "x-callslip" && key != "securitySchemes"
    }
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.node {
            Json::Object(members) => {
                let mut map = serializer.serialize_map(None)?;
                for (key, node) in members.iter().filter(|(key, _)| self.keeps(key)) {
                    map.serialize_entry(key, &Shown { node, top: false })?;
                }
                map.end()
            }
            Json::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for node in items {
                    list.serialize_element(&Shown { node, top: false })?;
                }
                list.end()
            }
            other => other.serialize(serializer),
        }
    }
}
