//! Where the body of a request stands among an operation's arguments: its properties beside the parameters, or all of
//! it under one name.

use super::document::{Document, Members};
use crate::tool::types::{Types, list};
use serde_json::{Value as Json, json};
use std::sync::LazyLock;

/// The body of an operation.
#[derive(Debug)]
pub(crate) struct Body<'a> {
    /// The media type it is sent as, as the document writes it.
    pub(crate) media: &'a str,
    /// What the document says of that media type.
    pub(crate) object: Option<&'a Json>,
    pub(crate) schema: Option<&'a Json>,
    pub(crate) required: bool,
    pub(crate) position: BodyPosition<'a>,
}

/// Where a body stands among the arguments.
#[derive(Debug)]
pub(crate) enum BodyPosition<'a> {
    /// Its properties are arguments.
    Beside(Properties<'a>),
    /// It is one argument.
    Under(&'static str),
}

/// The properties of a schema that is nothing but properties.
#[derive(Debug, Default)]
pub(crate) struct Properties<'a> {
    pub(crate) named: Vec<(&'a str, &'a Json)>,
    pub(crate) required: Vec<&'a str>,
    /// The schema of further ones.
    pub(crate) open: Option<&'a Json>,
    read_only: Vec<&'a str>,
    /// Whether it lets no further ones in.
    closed: bool,
}

impl<'a> Body<'a> {
    /// The body of an operation whose parameters are arguments of these names.
    pub(crate) fn of(document: &'a Document, operation: &'a Members, parameters: &[&str]) -> Option<Self> {
        let body = document.follow(operation.get("requestBody")?)?.as_object()?;
        let (media, object) = media_type(document, body).unzip();
        let schema = object.flatten().and_then(|object| object.get("schema"));
        let structured = media.is_none_or(|media| is_structured(&essence(media)));
        let beside = schema.filter(|_| structured).and_then(|schema| Properties::of(document, schema));
        let position = match beside {
            Some(beside) if !beside.named.iter().any(|(name, _)| parameters.contains(name)) => {
                BodyPosition::Beside(beside)
            }
            _ if parameters.contains(&"body") => BodyPosition::Under("request_body"),
            _ => BodyPosition::Under("body"),
        };
        let required = body.get("required").is_some_and(|flag| flag == true);
        Some(Self { media: media.unwrap_or("*/*"), object: object.flatten(), schema, required, position })
    }

    /// Its media type without parameters, in lower case.
    pub(crate) fn essence(&self) -> String {
        essence(self.media)
    }
}

/// A media type without its parameters, in lower case.
pub(crate) fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_lowercase()
}

/// Whether a media type is JSON.
pub(crate) fn is_json(essence: &str) -> bool {
    essence == "application/json" || essence.ends_with("+json")
}

/// Whether a body of this type is made of an object or array; of any other it is text or the content of a file.
pub(crate) fn is_structured(essence: &str) -> bool {
    is_json(essence)
        || essence.contains('*')
        || ["application/x-www-form-urlencoded", "multipart/form-data"].contains(&essence)
}

/// The media type that is sent, JSON before forms before anything else.
fn media_type<'a>(document: &'a Document, body: &'a Members) -> Option<(&'a str, Option<&'a Json>)> {
    let content = body.get("content")?.as_object()?;
    let rank = |media: &str| match essence(media).as_str() {
        "application/json" => 0,
        media if is_json(media) => 1,
        "application/x-www-form-urlencoded" => 2,
        "multipart/form-data" => 3,
        "*/*" => 4,
        _ => 5,
    };
    let (media, object) = content.iter().min_by_key(|(media, _)| rank(media))?;
    Some((media, document.follow(object)))
}

/// Whether a value of this schema is the content of a file, and not text.
pub(crate) fn is_file(document: &Document, schema: &Json) -> bool {
    let Some(map) = document.follow(schema).and_then(Json::as_object) else {
        return false;
    };
    let is = |key: &str| map.get(key).and_then(Json::as_str);
    let string = document.schema(schema).types().contains(Types::STRING);
    let media = is("contentMediaType").is_some_and(|media| !media.starts_with("text/") && !is_json(&essence(media)));
    string
        && ((is("format") == Some("binary") && map.contains_key("type"))
            || (media && !map.contains_key("contentEncoding")))
}

/// What a model gives for a file: its text, or more about it.
pub(crate) fn file_schema(description: Option<&Json>) -> Json {
    let mut schema = json!({
        "anyOf": [
            {"type": "string", "description": "the content as text"},
            {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "base64": {"type": "string"},
                    "filename": {"type": "string"},
                    "content_type": {"type": "string"},
                },
                "oneOf": [{"required": ["text"]}, {"required": ["base64"]}],
                "additionalProperties": false,
            },
        ],
    });
    if let (Some(text), Some(map)) = (description, schema.as_object_mut()) {
        map.insert("description".to_owned(), text.clone());
    }
    schema
}

/// Keywords by which a schema says more than its properties can.
const COMBINED: [&str; 13] = [
    "anyOf",
    "oneOf",
    "not",
    "if",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "enum",
    "const",
    "minProperties",
    "maxProperties",
];

/// The schema that admits anything.
fn anything() -> &'static Json {
    static ANYTHING: LazyLock<Json> = LazyLock::new(|| json!({}));
    &ANYTHING
}

impl<'a> Properties<'a> {
    /// Those of an object schema that is nothing but properties, through references and `allOf`.
    fn of(document: &'a Document, schema: &'a Json) -> Option<Self> {
        let mut properties = Self::default();
        properties.gather(document, schema, 16)?;
        properties.declare();
        if properties.is_free() {
            return None;
        }
        let types = document.schema(schema).types();
        let object = types == Types::OBJECT || (types == Types::ANY && !properties.named.is_empty());
        object.then_some(properties)
    }

    fn gather(&mut self, document: &'a Document, schema: &'a Json, fuel: usize) -> Option<()> {
        let fuel = fuel.checked_sub(1)?;
        let map = document.follow(schema)?.as_object()?;
        let nullable = map.get("nullable").is_some_and(|flag| flag == true);
        if nullable || COMBINED.iter().any(|key| map.contains_key(*key)) {
            return None;
        }
        for part in list(map, "allOf") {
            self.gather(document, part, fuel)?;
        }
        for (name, property) in map.get("properties").and_then(Json::as_object).into_iter().flatten() {
            if is_flagged(document, property, "readOnly") {
                self.read_only.push(name);
                continue;
            }
            match self.named.iter().find(|(other, _)| other == name) {
                Some((_, earlier)) if *earlier != property => return None,
                Some(_) => {}
                None => self.named.push((name, property)),
            }
        }
        for name in list(map, "required").iter().filter_map(Json::as_str) {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
        match map.get("additionalProperties") {
            Some(open @ (Json::Bool(true) | Json::Object(_))) => self.open = Some(open),
            Some(Json::Bool(false)) => self.closed = true,
            _ => {}
        }
        Some(())
    }

    /// Adds what is required and not declared; what only the server may say is not required.
    fn declare(&mut self) {
        self.required.retain(|name| !self.read_only.contains(name));
        for name in &self.required {
            if !self.named.iter().any(|(known, _)| known == name) {
                self.named.push((name, anything()));
            }
        }
    }

    /// Whether nothing at all is said of the properties.
    fn is_free(&self) -> bool {
        self.named.is_empty() && self.read_only.is_empty() && self.open.is_none() && !self.closed
    }
}

/// Whether a schema, or what it refers to, is marked `readOnly` or `writeOnly`.
pub(crate) fn is_flagged(document: &Document, schema: &Json, flag: &str) -> bool {
    let set = |schema: &Json| schema.get(flag).is_some_and(|value| value == true);
    set(schema) || document.follow(schema).is_some_and(set)
}
