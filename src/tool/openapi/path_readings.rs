//! How servers, and what stands before them, read a path: escapes decoded never, once or more often, before or after it is
//! split, dots and parameters removed or not, case ignored. And which method they take a request to have.

use super::operation::METHODS;
use crate::reply::{Object, Value};
use crate::tool::types::percent_decode;

/// How often a path may be decoded.
const DECODED: usize = 3;

/// Parameters and fields that replace the method of a request, in lower case.
const OVERRIDES: [&str; 8] = [
    "_method",
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-method",
    "x-original-method",
    "_http_method",
    "methodoverride",
];

/// How deep in a body such a field is looked for.
const DEEPEST: usize = 3;

/// The segments of a path under every interpretation, each once. The loosest comes first.
pub(super) fn interpretations(path: &str) -> Vec<Vec<String>> {
    let mut found = vec![read(path)];
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'~');
    if path.bytes().all(plain) {
        return found;
    }
    let mut texts: Vec<(usize, String)> = Vec::new();
    for times in 0..=DECODED {
        let text = decoded_times(path, times);
        // A decoded question mark begins a query to whoever decodes first.
        let end = text.find(['?', '#']).unwrap_or(text.len());
        let cut = text.get(..end).unwrap_or_default().to_owned();
        texts.extend([(times, text), (times, cut)]);
    }
    for (times, text) in &texts {
        for slashes in [&['/'][..], &['/', '\\']] {
            for more in 0..=DECODED.saturating_sub(*times) {
                let segments: Vec<String> = text.split(slashes).map(|segment| decoded_times(segment, more)).collect();
                for reading in readings(&segments) {
                    if !found.contains(&reading) {
                        found.push(reading);
                    }
                }
            }
        }
    }
    found
}

/// The readings of segments: with and without their parameters, their dots and the suffix of the last.
fn readings(segments: &[String]) -> impl Iterator<Item = Vec<String>> {
    (0..8_u8).map(move |choice| {
        let (cut, dots, suffix) = (choice & 1 > 0, choice & 2 > 0, choice & 4 > 0);
        let mut read = settled(segments.iter().map(|one| if cut { without_parameters(one) } else { one }), dots);
        if suffix && let Some(last) = read.last_mut() {
            let end = last.rfind('.').filter(|at| *at > 0).unwrap_or(last.len());
            last.truncate(end);
        }
        read
    })
}

/// The segments without empty ones, and without dots if they are followed.
fn settled<'a>(segments: impl Iterator<Item = &'a str>, dots: bool) -> Vec<String> {
    let mut read: Vec<String> = Vec::new();
    for segment in segments {
        match trimmed(segment) {
            "" => {}
            "." if dots => {}
            ".." if dots => drop(read.pop()),
            plain => read.push(plain.to_lowercase()),
        }
    }
    read
}

/// What follows a semicolon is a parameter to some, and a zero ends a text to others.
fn without_parameters(segment: &str) -> &str {
    segment.split([';', '\0']).next().unwrap_or_default()
}

fn trimmed(segment: &str) -> &str {
    segment.trim_matches(|character: char| character.is_whitespace() || character.is_control())
}

/// The segments of a path, as loosely as any server may read them.
pub(super) fn read(path: &str) -> Vec<String> {
    settled(decoded(path).split(['/', '\\']).map(without_parameters), true)
}

/// Whether a segment leads one up.
pub(super) fn is_parent(segment: &str) -> bool {
    trimmed(without_parameters(segment)) == ".."
}

pub(super) fn decoded(text: &str) -> String {
    decoded_times(text, DECODED)
}

fn decoded_times(text: &str, times: usize) -> String {
    let mut text = text.to_owned();
    for _ in 0..times {
        let next = percent_decode(&text);
        if next == text {
            break;
        }
        text = next;
    }
    text
}

/// The methods that arguments ask a server to take a request for, in capitals.
pub(super) fn methods(arguments: &Object) -> Vec<String> {
    let mut found = Vec::new();
    fields(arguments, 0, &mut found);
    found
}

fn fields(object: &Object, depth: usize, found: &mut Vec<String>) {
    for (name, value) in object.iter() {
        match value {
            // A name that two places have is written with its place: `header.X-HTTP-Method`.
            Value::String(text) if is_override(name.rsplit('.').next().unwrap_or(name)) => add(text, found),
            // A whole body or a query string as text.
            Value::String(text) if text.contains('=') => {
                for (name, value) in text.split(['&', '?', '\n', ';']).filter_map(|pair| pair.split_once('=')) {
                    if is_override(&decoded(name)) {
                        add(&decoded(value), found);
                    }
                }
            }
            Value::Object(inner) if depth < DEEPEST => fields(inner, depth + 1, found),
            _ => {}
        }
    }
}

fn is_override(name: &str) -> bool {
    OVERRIDES.contains(&trimmed(name).to_lowercase().as_str())
}

fn add(text: &str, found: &mut Vec<String>) {
    let method = trimmed(text);
    if METHODS.iter().any(|known| known.eq_ignore_ascii_case(method)) {
        found.push(method.to_ascii_uppercase());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_in_every_way() {
        let reads = |path: &str, expected: &[&str]| {
            let expected: Vec<String> = expected.iter().map(|one| (*one).to_owned()).collect();
            assert!(interpretations(path).contains(&expected), "{path} {expected:?}");
        };
        reads("/branches/feature%2Fx/rules/a", &["branches", "feature/x", "rules", "a"]);
        reads("/branches/feature%2Fx/rules/a", &["branches", "feature", "x", "rules", "a"]);
        reads("/branches/feature%252Fx/rules/a", &["branches", "feature/x", "rules", "a"]);
        reads("/users/All.json", &["users", "all"]);
        reads("/users/all%3Bv=1%2Fx", &["users", "all"]);
        reads("/users/all%3Bv=1/keys", &["users", "all", "keys"]);
        reads("/users/.%2Fall", &["users", ".", "all"]);
        reads("/users/.%2Fall", &["users", "all"]);
        reads("/users/all%3Fx", &["users", "all"]);
        reads("/users/all%00x", &["users", "all"]);
        reads("/users/a%5Cb", &["users", "a", "b"]);
        reads("/users/a%5Cb", &["users", "a\\b"]);
        assert_eq!(interpretations("/users/all").len(), 1);
    }

    #[test]
    fn a_method_may_be_said_in_an_argument() {
        let said = |text: &str| methods(serde_json::from_str::<Value>(text).unwrap().as_object().unwrap());
        assert_eq!(said(r#"{"X-HTTP-Method-Override": "delete"}"#), ["DELETE"]);
        assert_eq!(said(r#"{"query._method": " DELETE "}"#), ["DELETE"]);
        assert_eq!(said(r#"{"body": {"_method": "put"}}"#), ["PUT"]);
        assert_eq!(said(r#"{"body": "a=1&_method=PATCH"}"#), ["PATCH"]);
        assert!(said(r#"{"method": "post", "_method": "fast", "text": "x=delete"}"#).is_empty());
    }
}
