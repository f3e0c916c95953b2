//! The plain case of a check: a flat schema and arguments that fit it as they are. Most calls are this, and it costs a
//! fraction of the validator. Whatever it can't settle is left to the validator.

use super::types::Types;
use crate::reply::{Object, Value};
use serde_json::{Map, Value as Json};

/// Words of a property's schema that say nothing about its value.
const ANNOTATIONS: [&str; 5] = ["description", "title", "default", "examples", "deprecated"];

/// A schema that names its properties with nothing but a type for each.
#[derive(Debug)]
pub(super) struct FlatSchema {
    properties: Vec<(String, Types)>,
    required: Vec<String>,
}

impl FlatSchema {
    /// The outline of `schema`; `None` where it says more than an outline can hold.
    pub(super) fn of(schema: &Json) -> Option<Self> {
        let schema = schema.as_object()?;
        let known = |key: &String| {
            let key = key.as_str();
            ANNOTATIONS.contains(&key) || ["type", "properties", "required", "additionalProperties"].contains(&key)
        };
        let flat = schema.get("type")? == "object" && schema.keys().all(known);
        if !flat || schema.get("additionalProperties").is_some_and(|more| more != &Json::Bool(false)) {
            return None;
        }
        let properties: Option<Vec<_>> = match schema.get("properties") {
            Some(properties) => properties
                .as_object()?
                .iter()
                .map(|(name, property)| Some((name.clone(), types(property.as_object()?)?)))
                .collect(),
            None => Some(Vec::new()),
        };
        let required: Option<Vec<_>> = match schema.get("required") {
            Some(required) => required.as_array()?.iter().map(|name| Some(name.as_str()?.to_owned())).collect(),
            None => Some(Vec::new()),
        };
        Some(Self { properties: properties?, required: required? })
    }

    /// Whether arguments fit for certain.
    pub(super) fn admits(&self, arguments: &Object) -> bool {
        let fits = |name: &str, value: &Value| {
            let mut properties = self.properties.iter();
            properties.any(|(known, types)| known == name && types.contains(Types::of(value)))
        };
        arguments.iter().all(|(name, value)| fits(name, value))
            && self.required.iter().all(|name| arguments.contains_key(name))
    }
}

fn types(property: &Map<String, Json>) -> Option<Types> {
    let name = property.get("type")?.as_str()?;
    let bare = property.keys().all(|key| key == "type" || ANNOTATIONS.contains(&key.as_str()));
    let types = Types::named(name);
    (bare && !types.contains(Types::ANY)).then_some(types)
}
