//! What of a document can't be read as it is meant: references that lead nowhere, schemas at fault. They are reported when the
//! document is loaded, and not at the first call.

use super::api::Api;
use super::arguments::is_other_query;
use super::document::{Document, Members};
use super::operation::Operation;
use crate::tool::describe::{named, truncate};
use crate::tool::schema::Checker;
use crate::tool::types::percent_decode;
use indexmap::IndexSet;
use serde_json::{Value as Json, json};
use std::collections::{HashMap, HashSet};

/// Members whose values are data, and no part of what is described.
const DATA: [&str; 5] = ["example", "examples", "default", "enum", "const"];
/// Characters of a faulty value that are shown.
const SHOWN: usize = 40;

impl Api {
    /// The operations whose arguments can't be read whole, each with the first reference in it that leads nowhere.
    pub fn unreadable(&self) -> Vec<(String, String)> {
        let dangling = self.document.dangling();
        if dangling.is_empty() {
            return Vec::new();
        }
        let broken = |operation: &Operation| self.document.broken_at(operation, &dangling);
        let broken = self.operations.values().filter_map(|one| Some((one.name.clone(), broken(one)?)));
        let mut broken: Vec<(String, String)> = broken.collect();
        broken.extend(self.document.lost_paths());
        broken
    }

    /// What a document of 3.2 has that no tool is made of, in words.
    pub(super) fn not_offered(&self) -> Vec<String> {
        let methods = self.document.additional_methods();
        let mut notes = Vec::new();
        if !methods.is_empty() {
            notes.push(format!("methods of 'additionalOperations' are not offered: {}", methods.join(", ")));
        }
        if self.document.texts().any(|text| text.contains("\"querystring\"")) {
            let document = self.document.unread();
            let has = |one: &&Operation| document.parameters(one).into_iter().any(is_other_query);
            let names: Vec<&str> = self.operations.values().filter(has).map(|one| one.name.as_str()).collect();
            if !names.is_empty() {
                let names = names.join("', '");
                notes
                    .push(format!("query strings that are no forms are not offered, and '{names}' are called without"));
            }
        }
        notes
    }

    /// The faults of its schemas, each with its place, in words.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Faults::default();
        self.document.each_part(&mut |kind, name, part| match kind {
            Some("schemas") => faults.schema(name, part),
            Some("examples" | "responses") => {}
            _ => faults.look(name, part),
        });
        faults.found
    }
}

impl Document {
    /// The references that lead nowhere, or out of the document.
    fn dangling(&self) -> IndexSet<String> {
        let mut targets = IndexSet::new();
        for text in self.texts() {
            gather(text, &mut targets);
        }
        let unread = self.unread();
        targets.retain(|target| !unread.leads_somewhere(target));
        targets
    }

    fn leads_somewhere(&self, target: &str) -> bool {
        let component = target.strip_prefix("#/components/").and_then(|rest| rest.split_once('/'));
        if let Some((kind, name)) = component.filter(|(_, name)| !name.contains('/'))
            && self.has_component(kind, &crate::json_pointer::unescape(&percent_decode(name)))
        {
            return true;
        }
        self.reference(&json!({"$ref": target})).is_some()
    }

    /// The first reference in the parameters and the body of an operation that leads nowhere.
    fn broken_at(&self, operation: &Operation, dangling: &IndexSet<String>) -> Option<String> {
        let (item, object) = self.objects(operation)?;
        let mut seen = HashSet::new();
        let parts = [item.get("parameters"), object.get("parameters"), object.get("requestBody")];
        parts.into_iter().flatten().find_map(|part| self.broken_in(part, dangling, &mut seen))
    }

    fn broken_in(&self, node: &Json, dangling: &IndexSet<String>, seen: &mut HashSet<String>) -> Option<String> {
        match node {
            Json::Array(items) => items.iter().find_map(|item| self.broken_in(item, dangling, seen)),
            Json::Object(members) => {
                if let Some(target) = members.get("$ref").and_then(Json::as_str) {
                    if dangling.contains(target) {
                        return Some(target.to_owned());
                    }
                    if seen.insert(target.to_owned())
                        && let Some(found) = self.reference(node)
                        && let Some(broken) = self.broken_in(found, dangling, seen)
                    {
                        return Some(broken);
                    }
                }
                let parts = members.iter().filter(|(key, _)| !DATA.contains(&key.as_str()) && !key.starts_with("x-"));
                parts.into_iter().find_map(|(_, part)| self.broken_in(part, dangling, seen))
            }
            _ => None,
        }
    }
}

/// Adds the targets of the references in compact JSON text.
fn gather(text: &str, targets: &mut IndexSet<String>) {
    for rest in text.split("\"$ref\":").skip(1) {
        let mut read = serde_json::Deserializer::from_str(rest).into_iter::<Json>();
        if let Some(Ok(Json::String(target))) = read.next() {
            targets.insert(target);
        }
    }
}

#[derive(Default)]
struct Faults {
    found: Vec<String>,
    /// Patterns that were tried, and whether they are any.
    patterns: HashMap<String, bool>,
}

impl Faults {
    /// Looks for schemas in a part of a document.
    fn look(&mut self, place: &str, node: &Json) {
        match node {
            Json::Array(items) => items.iter().for_each(|item| self.look(place, item)),
            Json::Object(members) => {
                for (key, part) in members.iter().filter(|(key, _)| !DATA.contains(&key.as_str())) {
                    if key == "schema" { self.schema(place, part) } else { self.look(place, part) }
                }
            }
            _ => {}
        }
    }

    fn schema(&mut self, place: &str, schema: &Json) {
        let Some(members) = schema.as_object() else { return };
        for (key, value) in members {
            if let Some(expected) = self.fault(key, value, members) {
                let value = truncate(&value.to_string(), SHOWN);
                self.found.push(format!("{place}: expected {expected} as {}: got {value}", named(key)));
            }
            match (key.as_str(), value) {
                ("properties" | "patternProperties" | "dependentSchemas" | "$defs", Json::Object(schemas)) => {
                    for (name, schema) in schemas {
                        self.schema(&format!("{place}.{name}"), schema);
                    }
                }
                ("allOf" | "anyOf" | "oneOf" | "prefixItems", Json::Array(schemas)) => {
                    for schema in schemas {
                        self.schema(place, schema);
                    }
                }
                ("items" | "additionalProperties" | "not" | "contains" | "propertyNames", schema) => {
                    self.schema(place, schema);
                }
                _ => {}
            }
        }
    }

    /// What a keyword's value should be, where it is something else.
    fn fault(&mut self, key: &str, value: &Json, members: &Members) -> Option<&'static str> {
        let count =
            || value.as_u64().is_some() || value.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0);
        let types = ["string", "number", "integer", "boolean", "array", "object", "null"];
        let is_type = |value: &Json| value.as_str().is_some_and(|name| types.contains(&name));
        let (fits, expected) = match key {
            "pattern" => (value.as_str().is_some_and(|text| self.is_pattern(text)), "a regular expression"),
            "type" => (
                is_type(value) || value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_type)),
                "a type of JSON",
            ),
            // By a flag is how draft 4 and 3.0 say it.
            "exclusiveMinimum" | "exclusiveMaximum" => (value.is_number() || value.is_boolean(), "a number"),
            "minimum" | "maximum" => (value.is_number(), "a number"),
            "multipleOf" => (value.as_f64().is_some_and(|number| number > 0.0), "a number above 0"),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                (count(), "a whole number from 0")
            }
            "required" => (value.as_array().is_some_and(|names| names.iter().all(Json::is_string)), "a list of names"),
            "enum" => (value.is_array(), "a list of values"),
            "properties" => (value.is_object(), "an object of schemas"),
            "items" | "additionalProperties" | "not" => (value.is_object() || value.is_boolean(), "a schema"),
            "allOf" | "anyOf" | "oneOf" => (value.as_array().is_some_and(|all| !all.is_empty()), "a list of schemas"),
            _ => return None,
        };
        // What is beside a reference counts for nothing in 3.0, and is rarely meant.
        (!fits && !members.contains_key("$ref")).then_some(expected)
    }

    fn is_pattern(&mut self, text: &str) -> bool {
        if let Some(known) = self.patterns.get(text) {
            return *known;
        }
        let is_pattern = Checker::default().compile(&json!({ "pattern": text })).is_ok();
        self.patterns.insert(text.to_owned(), is_pattern);
        is_pattern
    }
}
