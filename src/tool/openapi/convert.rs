//! Schemas of a document as JSON Schema 2020-12 that stands alone.

use super::body::is_flagged;
use super::document::Document;
use serde_json::{Map, Value as Json, json};

/// Keywords of a schema that say nothing about its values, or only to other programs.
const DROPPED: [&str; 14] = [
    "example",
    "examples",
    "xml",
    "discriminator",
    "externalDocs",
    "title",
    "$comment",
    // Other ways to name and find schemas: a copy stands elsewhere, and only `$ref` is followed.
    "$id",
    "$schema",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
];

/// Which way a value goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// To the server: `readOnly` properties are left out.
    Request,
    /// From the server: `writeOnly` properties are not required.
    Response,
}

/// Copies schemas and gathers what they refer to.
pub(crate) struct Converter<'a> {
    document: &'a Document,
    way: Way,
    defs: Map<String, Json>,
    /// References met, with the name each has among the definitions.
    names: Vec<(String, String)>,
    pending: Vec<usize>,
}

impl<'a> Converter<'a> {
    pub(crate) fn new(document: &'a Document, way: Way) -> Self {
        Self { document, way, defs: Map::new(), names: Vec::new(), pending: Vec::new() }
    }

    /// A copy of a schema as JSON Schema 2020-12, its references led to `$defs`.
    pub(crate) fn convert(&mut self, schema: &Json) -> Json {
        let Some(map) = schema.as_object() else {
            return schema.clone();
        };
        let mut converted = Map::new();
        if let Some(target) = map.get("$ref").and_then(Json::as_str) {
            let Some(name) = self.definition(target) else {
                return json!({});
            };
            converted.insert("$ref".to_owned(), json!(format!("#/$defs/{}", crate::json_pointer::escape(&name))));
            if self.document.dialect_30 {
                // Whatever else stands beside a reference is ignored there.
                if let Some(nullable) = map.get("nullable") {
                    converted.insert("nullable".to_owned(), nullable.clone());
                }
                return modernised(converted);
            }
        }
        for (key, value) in map {
            if key == "$ref" || DROPPED.contains(&key.as_str()) || key.starts_with("x-") {
                continue;
            }
            let value = match (key.as_str(), value) {
                ("properties" | "patternProperties" | "dependentSchemas", Json::Object(schemas)) => {
                    Json::Object(schemas.iter().map(|(name, schema)| (name.clone(), self.convert(schema))).collect())
                }
                ("allOf" | "anyOf" | "oneOf" | "prefixItems", Json::Array(schemas)) => {
                    Json::Array(schemas.iter().map(|schema| self.convert(schema)).collect())
                }
                (
                    "items"
                    | "additionalProperties"
                    | "not"
                    | "if"
                    | "then"
                    | "else"
                    | "contains"
                    | "propertyNames"
                    | "unevaluatedProperties"
                    | "unevaluatedItems",
                    schema,
                ) => self.convert(schema),
                (_, value) => value.clone(),
            };
            // A server takes what fits several, and says so less exactly than it does.
            let looser = key == "oneOf" && self.way == Way::Request && !map.contains_key("anyOf");
            converted.insert(if looser { "anyOf" } else { key }.to_owned(), value);
        }
        self.leave_out(map, &mut converted);
        read_flags(&mut converted);
        if self.document.dialect_30 { modernised(converted) } else { Json::Object(converted) }
    }

    /// Drops what does not go this way.
    fn leave_out(&self, map: &Map<String, Json>, converted: &mut Map<String, Json>) {
        let flag = if self.way == Way::Request { "readOnly" } else { "writeOnly" };
        let Some(properties) = map.get("properties").and_then(Json::as_object) else {
            return;
        };
        let flagged = properties.iter().filter(|(_, schema)| is_flagged(self.document, schema, flag));
        for (name, _) in flagged {
            if let Some(Json::Array(required)) = converted.get_mut("required") {
                required.retain(|other| other != name);
            }
            if let (Way::Request, Some(Json::Object(properties))) = (self.way, converted.get_mut("properties")) {
                properties.shift_remove(name);
            }
        }
    }

    /// The name that a reference's target has among the definitions; the target is copied later.
    fn definition(&mut self, target: &str) -> Option<String> {
        if let Some((_, name)) = self.names.iter().find(|(known, _)| known == target) {
            return Some(name.clone());
        }
        self.document.reference(&json!({"$ref": target}))?;
        let last = crate::json_pointer::unescape(target.rsplit('/').next().unwrap_or("schema"));
        let mut name = if last.is_empty() { "schema".to_owned() } else { last };
        while self.names.iter().any(|(_, taken)| *taken == name) {
            name.push('_');
        }
        self.pending.push(self.names.len());
        self.names.push((target.to_owned(), name.clone()));
        Some(name)
    }

    /// The definitions that the converted schemas refer to, by name.
    pub(crate) fn definitions(mut self) -> Map<String, Json> {
        while let Some((target, name)) = self.pending.pop().and_then(|at| self.names.get(at).cloned()) {
            let node = json!({"$ref": target});
            if let Some(schema) = self.document.reference(&node) {
                let schema = self.convert(schema);
                self.defs.insert(name, schema);
            }
        }
        self.defs.sort_keys();
        self.defs
    }
}

/// Keywords beside `nullable` that refuse null by themselves.
const REFUSING: [&str; 5] = ["$ref", "allOf", "anyOf", "oneOf", "not"];

/// Keywords that say something of the value whichever branch it fits.
const ABOUT: [&str; 5] = ["description", "default", "deprecated", "readOnly", "writeOnly"];

/// The dialect of 3.0 in the words of 2020-12: `nullable`.
fn modernised(mut map: Map<String, Json>) -> Json {
    if map.shift_remove("nullable").is_none_or(|flag| flag != true) {
        return Json::Object(map);
    }
    if REFUSING.iter().any(|key| map.contains_key(*key)) {
        let mut outer = Map::new();
        for key in ABOUT {
            if let Some(value) = map.shift_remove(key) {
                outer.insert(key.to_owned(), value);
            }
        }
        outer.insert("anyOf".to_owned(), json!([map, {"type": "null"}]));
        return Json::Object(outer);
    }
    if let Some(Json::String(name)) = map.get("type").cloned() {
        map.insert("type".to_owned(), json!([name, "null"]));
    }
    if let Some(Json::Array(options)) = map.get_mut("enum")
        && !options.contains(&Json::Null)
    {
        options.push(Json::Null);
    }
    Json::Object(map)
}

/// Limits that are exclusive by a flag, as in 3.0 and draft 4: documents of 3.1 have them too, and they mean one thing.
fn read_flags(map: &mut Map<String, Json>) {
    for (limit, flag) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        match map.get(flag) {
            Some(Json::Bool(true)) => match map.remove(limit) {
                Some(value) => {
                    map.insert(flag.to_owned(), value);
                }
                None => {
                    map.remove(flag);
                }
            },
            Some(Json::Bool(false)) => {
                map.remove(flag);
            }
            _ => {}
        }
    }
}
