//! The body of a request by its media type.

use super::RequestError;
use super::file::File;
use super::style::plain;
use super::{form, multipart};
use crate::reply::Value;
use crate::tool::openapi::body::{Body, BodyPosition, is_flagged, is_json};
use crate::tool::openapi::document::Document;
use crate::tool::types::Schema;

/// The `Content-Type` and the bytes.
pub(super) fn encode(document: &Document, body: &Body<'_>, value: &Value) -> Result<(String, Vec<u8>), RequestError> {
    let essence = body.essence();
    let value = match body.schema {
        Some(schema) => writable(document, value, document.schema(schema)),
        None => value.clone(),
    };
    let name = match &body.position {
        BodyPosition::Under(name) => name,
        BodyPosition::Beside(_) => "body",
    };
    let cannot = |cause: String| RequestError::Argument(name.to_owned(), cause);
    match (essence.as_str(), &value) {
        ("application/x-www-form-urlencoded", Value::Object(members)) => {
            Ok((body.media.to_owned(), form::encoded(document, body.object, members)))
        }
        ("multipart/form-data", Value::Object(members)) => {
            multipart::encoded(document, body, members).map_err(|(name, cause)| RequestError::Argument(name, cause))
        }
        ("application/x-www-form-urlencoded" | "multipart/form-data", _) => {
            Err(cannot(format!("a form is made of an object, not of {}", value.type_name())))
        }
        (media, value) if is_json(media) => Ok((body.media.to_owned(), value.to_json().into_bytes())),
        (media, value @ (Value::Object(_) | Value::Array(_))) if media.contains('*') && !is_a_file(value) => {
            Ok(("application/json".to_owned(), value.to_json().into_bytes()))
        }
        (media, Value::Object(_) | Value::Array(_)) if !is_a_file(&value) => {
            Err(cannot(format!("a body of {media} is given as text, not as {}", value.type_name())))
        }
        (media, value) if media.starts_with("text/") && !is_a_file(value) => {
            Ok((body.media.to_owned(), plain(value).unwrap_or_default().into_bytes()))
        }
        (media, value) => {
            let file = File::of(value).map_err(cannot)?;
            let said = if media.contains('*') { "application/octet-stream" } else { body.media };
            Ok((file.content_type.unwrap_or_else(|| said.to_owned()), file.content))
        }
    }
}

fn is_a_file(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.contains_key("base64") || object.contains_key("text"))
}

/// The value without what only the server may say.
fn writable(document: &Document, value: &Value, schema: Schema<'_>) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .iter()
                .filter_map(|(key, value)| match schema.property(key) {
                    Some(property) if is_flagged(document, property.node, "readOnly") => None,
                    Some(property) => Some((key, writable(document, value, property))),
                    None => Some((key, value.clone())),
                })
                .collect(),
        ),
        Value::Array(items) => {
            let item = |(index, item): (usize, &Value)| match schema.item(index) {
                Some(schema) => writable(document, item, schema),
                None => item.clone(),
            };
            Value::Array(items.iter().enumerate().map(item).collect())
        }
        other => other.clone(),
    }
}
