//! Bodies of `application/x-www-form-urlencoded`.

use super::style::{Location, Written, plain};
use super::url::{RESERVED, encode};
use crate::reply::Object;
use crate::tool::openapi::body::{essence, is_json};
use crate::tool::openapi::document::{Document, Members};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value as Json;

/// As browsers encode forms, but for the space, which they write as `+`.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_').remove(b' ');

/// What the encoding object of a property says; empty where there is none.
pub(super) fn encoding<'a>(document: &'a Document, media: Option<&'a Json>, property: &str) -> Option<&'a Members> {
    document.follow(media?.get("encoding")?.get(property)?)?.as_object()
}

/// How the property is written by style, where its encoding says so.
pub(super) fn styled(encoding: Option<&Members>) -> Option<Written> {
    let encoding = encoding?;
    let said = ["style", "explode", "allowReserved"].iter().any(|key| encoding.contains_key(*key));
    said.then(|| Written::read(encoding, Location::Query))
}

pub(super) fn encoded(document: &Document, media: Option<&Json>, members: &Object) -> Vec<u8> {
    let mut pairs: Vec<String> = Vec::new();
    for (name, value) in members.iter() {
        let encoding = encoding(document, media, name);
        let reserved = encoding.and_then(|encoding| encoding.get("allowReserved")).is_some_and(|flag| flag == true);
        let text = |text: &str| if reserved { encode(text, RESERVED) } else { form(text) };
        if let Some(written) = styled(encoding) {
            pairs.extend(written.pairs(name, value, &text).into_iter().map(|(name, value)| format!("{name}={value}")));
            continue;
        }
        let json = encoding.and_then(|encoding| encoding.get("contentType")).and_then(Json::as_str);
        let json = json.is_some_and(|media| is_json(&essence(media)));
        let items = match value {
            crate::reply::Value::Array(items) if !json => items.as_slice(),
            other => std::slice::from_ref(other),
        };
        for item in items {
            let item = if json { Some(item.to_json()) } else { plain(item) };
            pairs.extend(item.map(|item| format!("{}={}", text(name), text(&item))));
        }
    }
    pairs.join("&").into_bytes()
}

fn form(text: &str) -> String {
    utf8_percent_encode(text, FORM).to_string().replace(' ', "+")
}
