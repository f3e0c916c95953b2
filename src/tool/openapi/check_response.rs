//! Responses held against what the document says of them.

use super::api::Api;
use super::body::{essence, is_json};
use super::convert::{Converter, Way};
use super::document::Document;
use crate::tool::describe::truncate;
use crate::tool::schema::Checker;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most problems of one response that are reported.
const TOLD: usize = 6;

/// Characters of one problem.
const LONGEST: usize = 300;

/// The schemas of responses that were needed so far, by operation, status and media type.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    compiled: Mutex<HashMap<(String, u16, String), Arc<Expected>>>,
}

/// What a response is checked with; nothing where the document says nothing of it.
#[derive(Debug, Default)]
struct Expected {
    schema: Option<Json>,
    checker: Checker,
}

impl Api {
    /// What of a JSON response is not as the document says for its status, or else for `default`; empty where all is,
    /// and where the document says nothing.
    pub fn check_response(&self, name: &str, status: u16, media: &str, body: &str) -> Vec<String> {
        let key = (name.to_owned(), status, essence(media));
        let mut compiled = self.responses.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let expected = compiled.entry(key).or_insert_with(|| Arc::new(self.expected(name, status, media)));
        let expected = Arc::clone(expected);
        drop(compiled);
        let Some(schema) = &expected.schema else {
            return Vec::new();
        };
        let value: Json = match serde_json::from_str(body) {
            Ok(value) => value,
            Err(error) => return vec![format!("the body is not JSON: {error}")],
        };
        match expected.checker.compile_loosely(schema) {
            Err(cause) => vec![format!("the schema of the response can't be used: {cause}")],
            Ok(validator) => {
                let problem = |error: jsonschema::ValidationError<'_>| {
                    let place = error.instance_path().to_string();
                    let place = if place.is_empty() { "the body".to_owned() } else { place };
                    truncate(&format!("{place}: {error}"), LONGEST)
                };
                validator.iter_errors(&value).take(TOLD).map(problem).collect()
            }
        }
    }

    fn expected(&self, name: &str, status: u16, media: &str) -> Expected {
        let schema = self.response_schema(name, status, media).map(|schema| stand_alone(&self.document, schema));
        Expected { schema, checker: Checker::default() }
    }

    fn response_schema(&self, name: &str, status: u16, media: &str) -> Option<&Json> {
        let (_, object) = self.document.objects(self.operations.get(name)?)?;
        let responses = object.get("responses")?.as_object()?;
        let exact = status.to_string();
        let range = format!("{}XX", status / 100);
        let response = responses
            .get(&exact)
            .or_else(|| {
                responses.iter().find(|(key, _)| key.eq_ignore_ascii_case(&range)).map(|(_, response)| response)
            })
            .or_else(|| responses.get("default"))?;
        let content = self.document.follow(response)?.get("content")?.as_object()?;
        let media = essence(media);
        let kind = media.split('/').next().unwrap_or_default();
        let fits = |pattern: &str| {
            let pattern = essence(pattern);
            pattern == media || pattern == "*/*" || pattern.strip_suffix("/*") == Some(kind)
        };
        if !is_json(&media) {
            return None;
        }
        let (_, object) = content.iter().find(|(pattern, _)| fits(pattern))?;
        self.document.follow(object)?.get("schema")
    }
}

/// A schema of a response with all that it refers to.
fn stand_alone(document: &Document, schema: &Json) -> Json {
    let mut schemas = Converter::new(document, Way::Response);
    let mut whole = schemas.convert(schema);
    let definitions = schemas.definitions();
    if let (Some(map), false) = (whole.as_object_mut(), definitions.is_empty()) {
        map.insert("$defs".to_owned(), Json::Object(definitions));
    }
    whole
}
