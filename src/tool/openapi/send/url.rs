//! URLs put together: server, path and query.

use crate::tool::openapi::document::placeholders;
use crate::tool::openapi::path_collisions::climbs;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value as Json;

/// All but the unreserved characters of RFC 3986.
pub(super) const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What `allowReserved` lets pass in a query is not among these. What would end the value, or mean a space, is.
pub(super) const RESERVED: &AsciiSet = &UNRESERVED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'[')
    .remove(b']')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// What may not stand in a URL as it is; escapes may.
const LITERAL: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');

pub(super) fn encode(text: &str, set: &'static AsciiSet) -> String {
    if std::ptr::eq(set, RESERVED) {
        return encode_but_triples(text);
    }
    utf8_percent_encode(text, set).to_string()
}

/// Percent-encoded triples pass as they are, as in the reserved expansion of RFC 6570.
fn encode_but_triples(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        encoded.extend(utf8_percent_encode(before, RESERVED));
        let is_triple = after.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
        encoded.push_str(if is_triple { "%" } else { "%25" });
        rest = after;
    }
    encoded.extend(utf8_percent_encode(rest, RESERVED));
    encoded
}

/// A URL on its way.
#[derive(Debug)]
pub(super) struct Parts {
    server: String,
    /// The segments of the template with the placeholders that were filled.
    segments: Vec<Segment>,
    /// Pairs that are encoded already.
    pub(super) query: Vec<(String, String)>,
    /// A query that is part of the path in the document.
    fixed: Segment,
}

#[derive(Debug)]
struct Segment {
    text: String,
    /// The names of the placeholders that are in it.
    names: Vec<String>,
}

impl Parts {
    pub(super) fn new(server: &str, template: &str) -> Self {
        // Some documents tell operations on one path apart by a query or a fragment.
        let template = template.split_once('#').map_or(template, |(before, _)| before);
        let (path, fixed) = template.split_once('?').unwrap_or((template, ""));
        let segment = |text: &str| Segment {
            text: literal(text),
            names: placeholders(text).into_iter().map(str::to_owned).collect(),
        };
        let segments = path.trim_start_matches('/').split('/').map(segment).collect();
        let server = server.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/').to_owned();
        Self { server, segments, query: Vec::new(), fixed: segment(fixed) }
    }

    /// Puts a value in the place of a placeholder.
    pub(super) fn fill(&mut self, name: &str, value: &str) {
        let placeholder = format!("{{{name}}}");
        for segment in self.segments.iter_mut().chain([&mut self.fixed]) {
            segment.text = segment.text.replace(&placeholder, value);
        }
    }

    /// The names of the placeholders of the path that no value stands for yet.
    pub(super) fn unfilled(&self) -> Vec<String> {
        self.segments.iter().flat_map(Segment::unfilled).collect()
    }

    /// The same of a query that is part of the path; where they stay so, they are left out.
    pub(super) fn unfilled_in_query(&self) -> Vec<String> {
        self.fixed.unfilled()
    }

    /// Refuses values that would make another path of it.
    pub(super) fn check(&self) -> Result<(), (String, String)> {
        for segment in &self.segments {
            let Some(name) = segment.names.first() else {
                continue;
            };
            let cause = match segment.text.as_str() {
                "" => "it is a part of the path, and empty it would name another one".to_owned(),
                text if climbs(text) => "it is a part of the path, and '..' in it would lead out of it".to_owned(),
                text @ "." => format!("it is a part of the path, and '{text}' would lead out of it"),
                _ => continue,
            };
            return Err((name.clone(), cause));
        }
        Ok(())
    }

    pub(super) fn url(&self) -> String {
        let path: Vec<&str> = self.segments.iter().map(|segment| segment.text.as_str()).collect();
        let mut url = format!("{}/{}", self.server, path.join("/"));
        let fixed = self.fixed.text.split('&').filter(|pair| !pair.is_empty() && !pair.contains('{'));
        let pairs = self.query.iter().map(|(name, value)| format!("{name}={value}"));
        let query: Vec<String> = fixed.map(str::to_owned).chain(pairs).collect();
        if !query.is_empty() {
            url.push('?');
            url.push_str(&query.join("&"));
        }
        url
    }
}

impl Segment {
    fn unfilled(&self) -> Vec<String> {
        let names = self.names.iter().filter(|name| self.text.contains(&format!("{{{name}}}")));
        names.cloned().collect()
    }
}

/// Text of a path in the document, outside of its placeholders, as it may stand in a URL.
fn literal(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, following)) = after.split_once('}') else {
            break;
        };
        written.extend(utf8_percent_encode(before, LITERAL));
        written.push('{');
        written.push_str(name);
        written.push('}');
        rest = following;
    }
    written.extend(utf8_percent_encode(rest, LITERAL));
    written
}

/// The URL of a server object, its variables at their defaults.
pub(super) fn server(server: &Json) -> Result<String, String> {
    let mut url = server.get("url").and_then(Json::as_str).unwrap_or("/").to_owned();
    let names: Vec<String> = placeholders(&url).into_iter().map(str::to_owned).collect();
    for name in names {
        let variable = server.get("variables").and_then(|variables| variables.get(&name));
        let default = match variable.and_then(|variable| variable.get("default")) {
            Some(Json::String(text)) => text.clone(),
            // YAML makes a number of a port or a version without quotes.
            Some(Json::Number(number)) => number.to_string(),
            _ => return Err(format!("its variable '{name}' has no default: pass server='https://…'")),
        };
        url = url.replace(&format!("{{{name}}}"), &default);
    }
    Ok(url)
}
