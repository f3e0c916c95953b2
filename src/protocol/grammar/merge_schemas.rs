//! Schemas that hold together (`$ref` and what stands beside it, `allOf`) as one.

use serde_json::{Map, Value as Json, json};

/// Adds what `other` asks for. Where two demands have no simple common form (two patterns, two lists of alternatives),
/// the first stands: the check of the arguments knows both.
pub(in crate::protocol) fn merge(into: &mut Map<String, Json>, other: &Map<String, Json>) {
    for (key, value) in other {
        let merged = match (key.as_str(), into.get(key)) {
            ("$ref" | "allOf" | "$defs" | "definitions", _) => continue,
            (_, None) => value.clone(),
            ("properties", Some(Json::Object(own))) => Json::Object(properties(own, value)),
            ("required", Some(Json::Array(own))) => {
                let more = value.as_array().into_iter().flatten().filter(|name| !own.contains(name));
                Json::Array(own.iter().chain(more).cloned().collect())
            }
            ("dependentRequired", Some(Json::Object(own))) => {
                let mut all = own.clone();
                for (name, names) in value.as_object().into_iter().flatten() {
                    let both = [all.get(name), Some(names)].into_iter().flatten().filter_map(Json::as_array).flatten();
                    let both = Json::Array(both.cloned().collect());
                    all.insert(name.clone(), both);
                }
                Json::Object(all)
            }
            ("enum", Some(Json::Array(own))) => {
                let other = value.as_array();
                Json::Array(own.iter().filter(|one| other.is_none_or(|other| other.contains(one))).cloned().collect())
            }
            ("type", Some(own)) => common_types(own, value),
            ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties", Some(own)) => {
                if own.as_f64() < value.as_f64() { value.clone() } else { continue }
            }
            ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties", Some(own)) => {
                if own.as_f64() > value.as_f64() { value.clone() } else { continue }
            }
            ("items", Some(own)) => json!({"allOf": [own, value]}),
            ("additionalProperties", Some(_)) if *value == false => value.clone(),
            ("uniqueItems", Some(_)) if *value == true => value.clone(),
            _ => continue,
        };
        into.insert(key.clone(), merged);
    }
}

fn properties(own: &Map<String, Json>, other: &Json) -> Map<String, Json> {
    let mut all = own.clone();
    for (name, schema) in other.as_object().into_iter().flatten() {
        let merged = match own.get(name) {
            Some(first) if first != schema => json!({"allOf": [first, schema]}),
            _ => schema.clone(),
        };
        all.insert(name.clone(), merged);
    }
    all
}

fn common_types(own: &Json, other: &Json) -> Json {
    let (own, other) = (names(own), names(other));
    let has = |types: &[String], name: &str| types.iter().any(|other| other == name);
    let kept = own.iter().filter_map(|name| match name.as_str() {
        name if has(&other, name) => Some(name),
        "integer" if has(&other, "number") => Some("integer"),
        "number" if has(&other, "integer") => Some("integer"),
        _ => None,
    });
    Json::from(kept.collect::<Vec<&str>>())
}

/// The types that a `type` names.
pub(in crate::protocol) fn names(value: &Json) -> Vec<String> {
    match value {
        Json::String(name) => vec![name.clone()],
        Json::Array(names) => names.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}
