//! The arguments of an operation: its parameters by name, the properties of its body beside them, or the body under
//! `body` where a name collides or it is no object.

use super::Operation;
use super::body::{Body, Place, Properties, file_schema, is_file};
use super::convert::{Converter, Way};
use super::document::{Document, placeholders};
use super::route::Matched;
use crate::reply::{Object, Value};
use crate::tool::coerce::join;
use crate::tool::describe::{cut, named};
use crate::tool::json_text;
use crate::tool::problem::{Problem, ProblemCode, found};
use crate::tool::spec::{Effect, ToolKind, ToolSpec};
use crate::tool::types::Types;
use serde_json::{Map, Value as Json, json};

/// Characters of an operation's description.
const DESCRIPTION: usize = 1_000;

/// The tool for an operation.
pub(crate) fn spec(document: &Document, operation: &Operation) -> ToolSpec {
    let Some((_, object)) = document.objects(operation) else {
        return empty_spec(&operation.name);
    };
    let mut builder = Builder { document, schemas: Converter::new(document, Way::Request) };
    let parameters = builder.parameters(operation, object);
    let safe = matches!(operation.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE");
    let own = object.get("x-callslip");
    let flag = |name: &str, default: bool| own.and_then(|own| own.get(name)).and_then(Json::as_bool).unwrap_or(default);
    let effect = match own.and_then(|own| own.get("effect")).and_then(Json::as_str) {
        Some("pure") => Effect::Pure,
        Some("idempotent") => Effect::Idempotent,
        None if safe => Effect::Pure,
        None if matches!(operation.method.as_str(), "PUT" | "DELETE") => Effect::Idempotent,
        _ => Effect::Once,
    };
    ToolSpec {
        name: operation.name.clone(),
        description: description(object),
        parameters,
        effect,
        readonly: flag("readonly", safe),
        kind: ToolKind::Function,
        needs_approval: flag("needs_approval", false),
        reconciles: false,
        repeatable: flag("repeatable", false),
    }
}

/// A tool without arguments, for a name that the document does not have.
pub(crate) fn empty_spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": {}}),
        effect: Effect::Once,
        readonly: false,
        kind: ToolKind::Function,
        needs_approval: false,
        reconciles: false,
        repeatable: false,
    }
}

fn description(object: &Map<String, Json>) -> String {
    let text = |key: &str| object.get(key).and_then(Json::as_str).map(str::trim).filter(|text| !text.is_empty());
    let joined = match (text("summary"), text("description")) {
        (Some(summary), Some(description)) if summary != description => {
            format!("{summary}\n{description}")
        }
        (Some(text), _) | (None, Some(text)) => text.to_owned(),
        (None, None) => String::new(),
    };
    cut(&joined, DESCRIPTION)
}

/// A parameter with the name it has among the arguments: its own, or `in.name` where another place took that.
pub(crate) fn argument_names<'a>(
    document: &'a Document,
    operation: &Operation,
) -> Vec<(String, &'a Map<String, Json>)> {
    let mut named: Vec<(String, &Map<String, Json>)> = Vec::new();
    for parameter in document.parameters(operation) {
        let text = |key: &str| parameter.get(key).and_then(Json::as_str).unwrap_or_default();
        let (name, place) = (text("name"), text("in"));
        // What the specification takes from elsewhere: content negotiation and security.
        let reserved = ["accept", "content-type", "authorization"].contains(&name.to_lowercase().as_str());
        if name.is_empty() || (place == "header" && reserved) {
            continue;
        }
        let taken = named.iter().any(|(other, _)| other == name);
        named.push((if taken { format!("{place}.{name}") } else { name.to_owned() }, parameter));
    }
    named
}

struct Builder<'a> {
    document: &'a Document,
    schemas: Converter<'a>,
}

impl<'a> Builder<'a> {
    fn parameters(&mut self, operation: &Operation, object: &'a Map<String, Json>) -> Json {
        let mut properties = Map::new();
        let mut required: Vec<String> = Vec::new();
        for (name, parameter) in argument_names(self.document, operation) {
            let path = parameter.get("in").is_some_and(|place| place == "path");
            if path || parameter.get("required").is_some_and(|flag| flag == true) {
                required.push(name.clone());
            }
            properties.insert(name, self.parameter(parameter));
        }
        for name in placeholders(&operation.path) {
            if !properties.contains_key(name) {
                properties.insert(name.to_owned(), json!({"type": "string"}));
                required.push(name.to_owned());
            }
        }
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        if let Some(body) = Body::of(self.document, object, &names) {
            self.body(&body, &mut properties, &mut required, &mut schema);
        }
        schema.insert("properties".to_owned(), Json::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        let definitions =
            std::mem::replace(&mut self.schemas, Converter::new(self.document, Way::Request)).definitions();
        if !definitions.is_empty() {
            schema.insert("$defs".to_owned(), Json::Object(definitions));
        }
        Json::Object(schema)
    }

    fn parameter(&mut self, parameter: &'a Map<String, Json>) -> Json {
        let content = || {
            let object = parameter.get("content")?.as_object()?.values().next()?;
            self.document.follow(object)?.get("schema")
        };
        let schema = parameter.get("schema").or_else(content);
        let mut schema = schema.map_or_else(|| json!({}), |schema| self.schemas.convert(schema));
        if let (Some(text), Some(map)) = (parameter.get("description").and_then(Json::as_str), schema.as_object_mut()) {
            map.entry("description").or_insert_with(|| json!(text));
        }
        schema
    }

    fn body(
        &mut self,
        body: &Body<'a>,
        properties: &mut Map<String, Json>,
        required: &mut Vec<String>,
        into: &mut Map<String, Json>,
    ) {
        let multipart = body.essence() == "multipart/form-data";
        match &body.place {
            Place::Beside(beside) => {
                for (name, schema) in &beside.named {
                    let schema = if multipart { self.part(schema) } else { self.schemas.convert(schema) };
                    properties.insert((*name).clone(), schema);
                }
                if let Some(open) = beside.open {
                    let open = self.schemas.convert(open);
                    into.insert("additionalProperties".to_owned(), open);
                }
                if body.required {
                    required.extend(beside.required.iter().cloned());
                } else if !beside.required.is_empty() {
                    into.insert("dependentRequired".to_owned(), not_in_part(beside));
                }
            }
            Place::Under(name) => {
                let schema = match body.schema {
                    Some(schema) if multipart => self.part(schema),
                    Some(schema) if is_file(self.document, schema) => file_schema(schema.get("description")),
                    Some(schema) => self.schemas.convert(schema),
                    None if body.essence() == "application/octet-stream" => file_schema(None),
                    None => json!({}),
                };
                properties.insert((*name).to_owned(), schema);
                if body.required {
                    required.push((*name).to_owned());
                }
            }
        }
    }

    /// The schema of one part of a multipart body, or of several of the same name.
    fn part(&mut self, schema: &'a Json) -> Json {
        if is_file(self.document, schema) {
            return file_schema(schema.get("description"));
        }
        let mut converted = self.schemas.convert(schema);
        let item = self.document.follow(schema).and_then(|schema| schema.get("items"));
        if item.is_some_and(|item| is_file(self.document, item)) {
            converted = json!({"type": "array", "items": file_schema(None)});
        }
        converted
    }
}

/// A body may be left out, but not given in part.
fn not_in_part(beside: &Properties<'_>) -> Json {
    let rest = |name: &String| -> Vec<&String> { beside.required.iter().filter(|other| *other != name).collect() };
    let dependent = beside.named.iter().map(|(name, _)| ((*name).clone(), rest(name)));
    Json::Object(dependent.filter(|(_, names)| !names.is_empty()).map(|(name, names)| (name, json!(names))).collect())
}

/// What a route says of its operation's arguments. The values are strings; a parameter that repeats, or wants an array,
/// becomes one.
pub(crate) fn route_arguments(document: &Document, operation: &Operation, matched: &Matched<'_>) -> Object {
    let mut arguments = Object::new();
    for (name, value) in &matched.path {
        arguments.insert(name.clone(), Value::from(value.as_str()));
    }
    if matched.query.is_empty() {
        return arguments;
    }
    let parameters = argument_names(document, operation);
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in &matched.query {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let values: Vec<&String> =
            matched.query.iter().filter(|(other, _)| other == name).map(|(_, value)| value).collect();
        let known = parameters.iter().find(|(_, parameter)| {
            parameter.get("in").is_some_and(|place| place == "query")
                && parameter.get("name").is_some_and(|other| other == name)
        });
        let argument = known.map_or(name, |(argument, _)| argument);
        let array = known.and_then(|(_, parameter)| parameter.get("schema")).is_some_and(|schema| {
            let types = document.schema(schema).types();
            types.contains(Types::ARRAY) && !types.contains(Types::STRING)
        });
        let joined = known.is_some_and(|(_, parameter)| parameter.get("explode").is_some_and(|flag| flag == false));
        let texts: Vec<&str> = if array && joined {
            values.iter().flat_map(|value| value.split(',')).collect()
        } else {
            values.iter().map(|value| value.as_str()).collect()
        };
        let value = match texts.as_slice() {
            [only] if !array => Value::from(*only),
            several => Value::Array(several.iter().map(|text| Value::from(*text)).collect()),
        };
        arguments.insert(argument.clone(), value);
    }
    arguments
}

/// A payload with what its route says. Where both say the same, that is fine; where they differ, neither is taken.
pub(crate) fn merge(route: &Object, payload: &Value) -> Result<Value, Vec<Problem>> {
    let mut merged = match payload {
        Value::Object(object) => object.clone(),
        Value::Null => Object::new(),
        Value::String(text) if text.trim().is_empty() => Object::new(),
        Value::String(text) => match json_text::parse(text) {
            Some(Value::Object(object)) => object,
            Some(Value::Null) => Object::new(),
            _ => return Ok(payload.clone()),
        },
        _ => return Ok(payload.clone()),
    };
    let mut problems = Vec::new();
    for (name, value) in route.iter() {
        match merged.get(name) {
            None => {
                merged.insert(name, value.clone());
            }
            Some(given) if written(given) == written(value) => {}
            Some(given) => problems.push(Problem {
                code: ProblemCode::InvalidArgument,
                pointer: join("", name),
                message: format!(
                    "{} is {} in the route and {} in the payload",
                    named(name),
                    found(value),
                    found(given)
                ),
                expected: "one value".to_owned(),
                found: found(given),
            }),
        }
    }
    if problems.is_empty() { Ok(Value::Object(merged)) } else { Err(problems) }
}

/// A value as it would stand in a route.
fn written(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_json(), str::to_owned)
}
