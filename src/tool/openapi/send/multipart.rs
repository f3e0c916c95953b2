//! Bodies of `multipart/form-data` (RFC 7578).

use super::file::File;
use super::form::{encoding, styled};
use crate::hex::hex;
use crate::reply::{Object, Value};
use crate::tool::openapi::body::{Body, BodyPosition, essence, is_file, is_json};
use crate::tool::openapi::document::{Document, Members};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

struct Part<'a> {
    name: String,
    filename: Option<String>,
    content_type: Option<String>,
    headers: Vec<(&'a String, String)>,
    content: Vec<u8>,
}

/// The body with its media type, which names its boundary.
pub(super) fn encoded(
    document: &Document,
    body: &Body<'_>,
    members: &Object,
) -> Result<(String, Vec<u8>), (String, String)> {
    let mut parts = Vec::new();
    for (name, value) in members.iter() {
        let encoding = encoding(document, body.object, name);
        let schema = property(document, body, name);
        gather(document, name, value, schema, encoding, &mut parts).map_err(|cause| (name.to_owned(), cause))?;
    }
    let boundary = boundary(&parts);
    let mut bytes = Vec::new();
    for part in &parts {
        part.write(&boundary, &mut bytes);
    }
    bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok((format!("multipart/form-data; boundary={boundary}"), bytes))
}

fn property<'a>(document: &'a Document, body: &Body<'a>, name: &str) -> Option<&'a Json> {
    if let BodyPosition::Beside(beside) = &body.position {
        return beside.named.iter().find(|(known, _)| *known == name).map(|(_, schema)| *schema);
    }
    document.schema(body.schema?).property(name).map(|schema| schema.node)
}

fn gather<'a>(
    document: &Document,
    name: &str,
    value: &Value,
    schema: Option<&Json>,
    encoding: Option<&'a Members>,
    parts: &mut Vec<Part<'a>>,
) -> Result<(), String> {
    if let Some(written) = styled(encoding) {
        let pairs = written.pairs(name, value, &str::to_owned);
        parts.extend(pairs.into_iter().map(|(name, text)| Part {
            name,
            filename: None,
            content_type: None,
            headers: Vec::new(),
            content: text.into_bytes(),
        }));
        return Ok(());
    }
    let said = encoding.and_then(|encoding| encoding.get("contentType")).and_then(Json::as_str);
    // Of a list the first that is no range: what is sent must be one of them.
    let one = said.and_then(|said| said.split(',').map(str::trim).find(|media| !media.contains('*')));
    let json = one.is_some_and(|media| is_json(&essence(media)));
    if let (Value::Array(items), false) = (value, json) {
        let schema = schema.and_then(|schema| document.follow(schema)?.get("items"));
        for item in items {
            one_part(document, name, item, schema, one, encoding, parts)?;
        }
        return Ok(());
    }
    one_part(document, name, value, schema, one, encoding, parts)
}

fn one_part<'a>(
    document: &Document,
    name: &str,
    value: &Value,
    schema: Option<&Json>,
    said: Option<&str>,
    encoding: Option<&'a Members>,
    parts: &mut Vec<Part<'a>>,
) -> Result<(), String> {
    let headers = encoding.map(fixed_headers).unwrap_or_default();
    let is_file = schema.is_some_and(|schema| is_file(document, schema));
    let part = match value {
        Value::Null => return Ok(()),
        value if is_file => {
            let file = File::of(value)?;
            let content_type = file.content_type.or_else(|| said.map(str::to_owned));
            Part {
                name: name.to_owned(),
                filename: Some(file.filename.unwrap_or_else(|| name.to_owned())),
                content_type: Some(content_type.unwrap_or_else(|| "application/octet-stream".to_owned())),
                headers,
                content: file.content,
            }
        }
        Value::Object(_) | Value::Array(_) => Part {
            name: name.to_owned(),
            filename: None,
            content_type: Some(said.unwrap_or("application/json").to_owned()),
            headers,
            content: value.to_json().into_bytes(),
        },
        value => {
            let json = said.is_some_and(|media| is_json(&essence(media)));
            let text = if json { Some(value.to_json()) } else { super::style::plain(value) };
            let content = text.unwrap_or_default().into_bytes();
            Part { name: name.to_owned(), filename: None, content_type: said.map(str::to_owned), headers, content }
        }
    };
    parts.push(part);
    Ok(())
}

/// The headers of a part that can have one value only.
fn fixed_headers(encoding: &Members) -> Vec<(&String, String)> {
    let headers = encoding.get("headers").and_then(Json::as_object).into_iter().flatten();
    headers
        .filter(|(name, _)| !name.eq_ignore_ascii_case("content-type"))
        .filter_map(|(name, header)| {
            let schema = header.get("schema")?;
            let only = schema.get("enum").and_then(Json::as_array).filter(|options| options.len() == 1);
            let value = schema.get("const").or_else(|| only?.first())?;
            Some((name, value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        })
        .collect()
}

/// A line that stands in none of the parts, and is the same for the same parts.
fn boundary(parts: &[Part<'_>]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.name.as_bytes());
        digest.update(&part.content);
    }
    let digits = hex(&digest.finalize());
    format!("callslip-{}", digits.get(..32).unwrap_or(&digits))
}

impl Part<'_> {
    fn write(&self, boundary: &str, bytes: &mut Vec<u8>) {
        let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quoted(&self.name));
        if let Some(filename) = &self.filename {
            let _ = write!(head, "; filename=\"{}\"", quoted(filename));
        }
        head.push_str("\r\n");
        if let Some(content_type) = &self.content_type {
            let _ = write!(head, "Content-Type: {}\r\n", on_one_line(content_type));
        }
        for (name, value) in &self.headers {
            let _ = write!(head, "{}: {}\r\n", on_one_line(name), on_one_line(value));
        }
        head.push_str("\r\n");
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(&self.content);
        bytes.extend_from_slice(b"\r\n");
    }
}

/// As browsers write names and file names.
fn quoted(text: &str) -> String {
    text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

fn on_one_line(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).collect()
}
