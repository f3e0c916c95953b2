//! The arguments of an operation: its parameters by name, the properties of its body beside them, or the body under
//! `body` where a name collides or it is no object.

use super::body::{Body, BodyPosition, essence, file_schema, is_file, is_structured};
use super::convert::{Converter, Way};
use super::document::{Document, placeholders};
use super::operation::Operation;
use super::path_collisions::MARKS;
use super::route::Matched;
use super::selection::is_safe;
use crate::reply::json_text;
use crate::reply::{Object, Value};
use crate::tool::coerce::join;
use crate::tool::describe::{named, truncate};
use crate::tool::problem::{Problem, ProblemCode, found};
use crate::tool::spec::{Effect, ToolKind, ToolSpec};
use crate::tool::types::Types;
use serde_json::{Map, Value as Json, json};
use std::sync::LazyLock;

/// Headers that the specification takes from elsewhere (content negotiation and security), and those of the connection.
const RESERVED: [&str; 7] =
    ["accept", "content-type", "authorization", "host", "content-length", "transfer-encoding", "connection"];

/// Characters of an operation's description.
const DESCRIPTION: usize = 1_000;

/// The tool for an operation.
pub(crate) fn spec(document: &Document, operation: &Operation) -> ToolSpec {
    let Some((_, object)) = document.objects(operation) else {
        return empty_spec(&operation.name);
    };
    let parameters = converted(document, arguments(document, operation));
    let safe = is_safe(&operation.method);
    let own = object.get("x-callslip");
    let flag = |name: &str, default: bool| own.and_then(|own| own.get(name)).and_then(Json::as_bool).unwrap_or(default);
    let effect = match own.and_then(|own| own.get("effect")).and_then(Json::as_str) {
        Some("pure") => Effect::Pure,
        Some("idempotent") => Effect::Idempotent,
        None if safe => Effect::Pure,
        None if flag("repeatable", false) || matches!(operation.method.as_str(), "PUT" | "DELETE") => {
            Effect::Idempotent
        }
        _ => Effect::Once,
    };
    let mut tool = ToolSpec {
        name: operation.name.clone(),
        description: description(object),
        parameters,
        effect,
        readonly: flag("readonly", safe),
        kind: ToolKind::Function,
        needs_approval: flag("needs_approval", false),
        checks_approval: flag("checks_approval", false),
        reconciles: false,
        repeatable: flag("repeatable", false),
        untrusted: flag("untrusted", false),
        queue: None,
        reads: std::collections::BTreeMap::new(),
        external: None,
        values: std::collections::BTreeMap::new(),
        asks_untrusted: false,
    };
    // A word that is no level asks for nothing.
    let _ = tool.take_levels();
    tool
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
        checks_approval: false,
        reconciles: false,
        repeatable: false,
        untrusted: false,
        queue: None,
        reads: std::collections::BTreeMap::new(),
        external: None,
        values: std::collections::BTreeMap::new(),
        asks_untrusted: false,
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
    truncate(&joined, DESCRIPTION)
}

/// A parameter with the name it has among the arguments: its own, or `in.name` where another place took that.
pub(crate) fn argument_names<'a>(
    document: &'a Document,
    operation: &Operation,
) -> Vec<(String, &'a Map<String, Json>)> {
    let mut named: Vec<(String, &Map<String, Json>)> = Vec::new();
    // A model is not to make up what a security scheme says.
    let keys = document.keys(operation);
    for parameter in document.parameters(operation) {
        let text = |key: &str| parameter.get(key).and_then(Json::as_str).unwrap_or_default();
        let (name, place) = (text("name"), text("in"));
        let reserved = place == "header" && RESERVED.contains(&name.to_lowercase().as_str());
        if name.is_empty() || reserved || is_other_query(parameter) || keys.iter().any(|key| key.is(place, name)) {
            continue;
        }
        let taken = named.iter().any(|(other, _)| other == name);
        named.push((if taken { format!("{place}.{name}") } else { name.to_owned() }, parameter));
    }
    named
}

/// Whether a parameter is a whole query string (3.2) that is not written as a form is.
pub(super) fn is_other_query(parameter: &Map<String, Json>) -> bool {
    let media = || parameter.get("content")?.as_object()?.keys().next();
    parameter.get("in").is_some_and(|place| place == "querystring")
        && media().is_none_or(|media| essence(media) != "application/x-www-form-urlencoded")
}

/// The arguments of an operation as the document has them: nothing of their schemas is copied yet.
#[derive(Default)]
pub(crate) struct Arguments<'a> {
    pub(crate) properties: Vec<Argument<'a>>,
    pub(crate) required: Vec<String>,
    /// The schema of further ones, where the body lets them in.
    pub(crate) open: Option<&'a Json>,
    /// Those of a body that may be left out, but not given in part: its own required ones.
    together: Option<(Vec<String>, Vec<String>)>,
}

/// One argument: its name, its schema, and what its parameter says of it beside the schema.
pub(crate) struct Argument<'a> {
    pub(crate) name: String,
    pub(crate) schema: Option<&'a Json>,
    description: Option<&'a str>,
    content: Content,
    /// Whether it is a part of the path, which must not be empty.
    in_path: bool,
}

/// What the value of an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// JSON.
    Value,
    /// The content of a file.
    File,
    /// The contents of several.
    Files,
    /// Text of a media type that only the model can write, such as XML.
    Text,
}

impl Content {
    /// What a body in one piece is.
    fn of_body(document: &Document, body: &Body<'_>) -> Self {
        let media = body.essence();
        let is_text = media.starts_with("text/") || media.ends_with("+xml") || media == "application/xml";
        match body.schema {
            Some(schema) if is_file(document, schema) => Self::File,
            _ if is_structured(&media) => Self::Value,
            Some(schema) if document.schema(schema).types() == Types::ANY && !is_text => Self::File,
            Some(schema) if document.schema(schema).types().contains(Types::STRING) => Self::Value,
            None if !is_text => Self::File,
            _ => Self::Text,
        }
    }

    /// What a part of a multipart body is.
    fn of(document: &Document, schema: &Json) -> Self {
        let item = || document.follow(schema)?.get("items");
        match is_file(document, schema) {
            true => Self::File,
            false if item().is_some_and(|item| is_file(document, item)) => Self::Files,
            false => Self::Value,
        }
    }
}

impl Arguments<'_> {
    fn has(&self, name: &str) -> bool {
        self.properties.iter().any(|argument| argument.name == name)
    }
}

/// Whether a parameter is a whole segment of a path, so that an empty value would name another one.
fn is_segment(path: &str, name: Option<&str>) -> bool {
    name.is_some_and(|name| path.split('/').any(|segment| segment.strip_prefix('{') == Some(&format!("{name}}}"))))
}

/// What an operation takes.
pub(crate) fn arguments<'a>(document: &'a Document, operation: &Operation) -> Arguments<'a> {
    let mut arguments = Arguments::default();
    let Some((_, object)) = document.objects(operation) else {
        return arguments;
    };
    for (name, parameter) in argument_names(document, operation) {
        let path = parameter.get("in").is_some_and(|place| place == "path");
        if path || parameter.get("required").is_some_and(|flag| flag == true) {
            arguments.required.push(name.clone());
        }
        let content = || {
            let object = parameter.get("content")?.as_object()?.values().next()?;
            document.follow(object)?.get("schema")
        };
        let schema = parameter.get("schema").or_else(content);
        let description = parameter.get("description").and_then(Json::as_str);
        let plain = parameter.get("style").is_none_or(|style| style == "simple");
        let in_path = path && plain && is_segment(&operation.path, parameter.get("name").and_then(Json::as_str));
        arguments.properties.push(Argument { name, schema, description, content: Content::Value, in_path });
    }
    let text = string();
    for name in placeholders(&operation.path) {
        if !arguments.has(name) {
            arguments.required.push(name.to_owned());
            arguments.properties.push(Argument {
                name: name.to_owned(),
                schema: Some(text),
                description: None,
                content: Content::Value,
                in_path: is_segment(&operation.path, Some(name)),
            });
        }
    }
    let names: Vec<&str> = arguments.properties.iter().map(|argument| argument.name.as_str()).collect();
    if let Some(body) = Body::of(document, object, &names) {
        body_arguments(document, body, &mut arguments);
    }
    arguments
}

/// The name of the body, where it is the only argument.
pub(crate) fn whole_body(document: &Document, operation: &Operation) -> Option<&'static str> {
    let (_, object) = document.objects(operation)?;
    if !argument_names(document, operation).is_empty() || !placeholders(&operation.path).is_empty() {
        return None;
    }
    match Body::of(document, object, &[])?.position {
        BodyPosition::Under(name) => Some(name),
        BodyPosition::Beside(_) => None,
    }
}

/// What an undeclared path parameter is taken for.
fn string() -> &'static Json {
    static STRING: LazyLock<Json> = LazyLock::new(|| json!({"type": "string"}));
    &STRING
}

fn body_arguments<'a>(document: &'a Document, body: Body<'a>, into: &mut Arguments<'a>) {
    let media = body.essence();
    let multipart = media == "multipart/form-data";
    match body.position {
        BodyPosition::Beside(beside) => {
            let names: Vec<String> = beside.named.iter().map(|(name, _)| (*name).to_owned()).collect();
            let own = |(name, schema): (&str, &'a Json)| {
                let content = if multipart { Content::of(document, schema) } else { Content::Value };
                Argument { name: name.to_owned(), schema: Some(schema), description: None, content, in_path: false }
            };
            into.properties.extend(beside.named.into_iter().map(own));
            into.open = beside.open;
            let required = beside.required.into_iter().map(str::to_owned);
            if body.required {
                into.required.extend(required);
            } else if required.len() > 0 {
                into.together = Some((names, required.collect()));
            }
        }
        BodyPosition::Under(name) => {
            let content = Content::of_body(document, &body);
            into.properties.push(Argument {
                name: name.to_owned(),
                schema: body.schema,
                description: None,
                content,
                in_path: false,
            });
            if body.required {
                into.required.push(name.to_owned());
            }
        }
    }
}

/// The JSON Schema of arguments.
fn converted(document: &Document, arguments: Arguments<'_>) -> Json {
    let mut schemas = Converter::new(document, Way::Request);
    let mut properties = Map::new();
    for argument in arguments.properties {
        let mut schema = match (argument.content, argument.schema) {
            (Content::File, schema) => file_schema(schema.and_then(|schema| schema.get("description"))),
            (Content::Files, _) => json!({"type": "array", "items": file_schema(None)}),
            (Content::Text, _) => json!({"type": "string", "description": "the whole body, as it is sent"}),
            (Content::Value, Some(schema)) => schemas.convert(schema),
            (Content::Value, None) => json!({}),
        };
        if let (Some(text), Some(map)) = (argument.description, schema.as_object_mut()) {
            map.entry("description").or_insert_with(|| json!(text));
        }
        // An empty one would name another path. Runs that an earlier version has set up continue as they began.
        if argument.in_path
            && document.member(MARKS).is_some()
            && let Some(map) = schema.as_object_mut().filter(|map| map.get("type").is_some_and(|kind| kind == "string"))
        {
            map.entry("minLength").or_insert_with(|| json!(1));
        }
        properties.insert(argument.name, schema);
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    if let Some(open) = arguments.open {
        schema.insert("additionalProperties".to_owned(), schemas.convert(open));
    }
    if let Some((names, together)) = arguments.together {
        let rest = |name: &String| -> Vec<&String> { together.iter().filter(|other| *other != name).collect() };
        let dependent: Map<String, Json> = names
            .iter()
            .map(|name| (name.clone(), json!(rest(name))))
            .filter(|(_, names)| names.as_array().is_some_and(|names| !names.is_empty()))
            .collect();
        schema.insert("dependentRequired".to_owned(), Json::Object(dependent));
    }
    schema.insert("properties".to_owned(), Json::Object(properties));
    if !arguments.required.is_empty() {
        schema.insert("required".to_owned(), json!(arguments.required));
    }
    let definitions = schemas.definitions();
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), Json::Object(definitions));
    }
    Json::Object(schema)
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
