//! Parameters by style and location: the tables of the `OpenAPI` specification ("Style Values" and "Style Examples" of
//! 3.0.4 and 3.1.1), which follow RFC 6570.
//!
//! Where the tables say "n/a", what is nearest is sent: a delimited style that explodes is sent as `form`, a deep object
//! that does not say that it explodes explodes, a single value is sent as `form`.

use super::url::{RESERVED, UNRESERVED, encode};
use crate::reply::Value;
use crate::tool::openapi::body::{essence, is_json};
use crate::tool::openapi::document::Members;
use percent_encoding::AsciiSet;
use serde_json::Value as Json;

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Location {
    Path,
    Query,
    Header,
    Cookie,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Matrix,
    Label,
    Simple,
    Form,
    Space,
    Pipe,
    Deep,
}

impl Style {
    fn read(style: Option<&Json>) -> Option<Self> {
        Some(match style?.as_str()? {
            "matrix" => Self::Matrix,
            "label" => Self::Label,
            "simple" => Self::Simple,
            "form" => Self::Form,
            "spaceDelimited" => Self::Space,
            "pipeDelimited" => Self::Pipe,
            "deepObject" => Self::Deep,
            _ => return None,
        })
    }

    fn is_for(self, location: Location) -> bool {
        match location {
            Location::Path => matches!(self, Self::Matrix | Self::Label | Self::Simple),
            Location::Query => matches!(self, Self::Form | Self::Space | Self::Pipe | Self::Deep),
            Location::Header => self == Self::Simple,
            Location::Cookie => self == Self::Form,
        }
    }
}

/// How the values of one name are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) style: Style,
    pub(super) explode: bool,
}

impl Written {
    /// As a parameter or an encoding says, where the style has a place there.
    pub(super) fn read(members: &Members, location: Location) -> Self {
        let default = if matches!(location, Location::Path | Location::Header) { Style::Simple } else { Style::Form };
        let style = Style::read(members.get("style")).filter(|style| style.is_for(location)).unwrap_or(default);
        let explode = members.get("explode").and_then(Json::as_bool).unwrap_or(style == Style::Form);
        Self { style, explode: explode || style == Style::Deep }
    }

    /// The pairs of name and value, `text` applied to each piece of them.
    pub(super) fn pairs(self, name: &str, value: &Value, text: &dyn Fn(&str) -> String) -> Vec<(String, String)> {
        if self.style == Style::Deep {
            let mut pairs = Vec::new();
            deep(name.to_owned(), value, &mut pairs);
            return pairs.into_iter().map(|(name, value)| (text(&name), text(&value))).collect();
        }
        let delimiter = match self.style {
            Style::Space => text(" "),
            Style::Pipe => text("|"),
            _ => ",".to_owned(),
        };
        let one = |value: String| vec![(text(name), value)];
        match Pieces::of(value) {
            Pieces::None => Vec::new(),
            Pieces::One(value) => one(text(&value)),
            Pieces::Items(items) if self.explode => items.iter().map(|item| (text(name), text(item))).collect(),
            Pieces::Members(members) if self.explode => {
                members.iter().map(|(key, value)| (text(key), text(value))).collect()
            }
            Pieces::Items(items) => one(joined(items.iter().map(|item| text(item)), &delimiter)),
            Pieces::Members(members) => {
                one(joined(members.iter().flat_map(|(key, value)| [text(key), text(value)]), &delimiter))
            }
        }
    }

    /// The value as it stands in a path or a header.
    fn line(self, name: &str, value: &Value, text: &dyn Fn(&str) -> String) -> String {
        let name = text(name);
        let pieces = Pieces::of(value);
        let assigned = |key: &str, value: &str| match (self.style, value) {
            (Style::Matrix, "") => key.to_owned(),
            _ => format!("{key}={value}"),
        };
        let items: Vec<String> = match (&pieces, self.explode) {
            (Pieces::None, _) => return String::new(),
            (Pieces::One(value), _) => vec![text(value)],
            (Pieces::Items(items), _) => items.iter().map(|item| text(item)).collect(),
            (Pieces::Members(members), true) => {
                members.iter().map(|(key, value)| assigned(&text(key), &text(value))).collect()
            }
            (Pieces::Members(members), false) => {
                members.iter().flat_map(|(key, value)| [text(key), text(value)]).collect()
            }
        };
        let several = self.explode && !matches!(pieces, Pieces::One(_));
        match self.style {
            Style::Label => format!(".{}", items.join(if several { "." } else { "," })),
            Style::Matrix if several && matches!(pieces, Pieces::Items(_)) => {
                items.iter().flat_map(|item| [";".to_owned(), assigned(&name, item)]).collect()
            }
            Style::Matrix if several => items.iter().flat_map(|item| [";", item.as_str()]).collect(),
            Style::Matrix => format!(";{}", assigned(&name, &items.join(","))),
            _ => items.join(","),
        }
    }
}

fn joined(items: impl Iterator<Item = String>, delimiter: &str) -> String {
    items.collect::<Vec<_>>().join(delimiter)
}

/// A value as the styles know it. What is `null` is not there (RFC 6570 calls it undefined).
enum Pieces {
    None,
    One(String),
    Items(Vec<String>),
    Members(Vec<(String, String)>),
}

impl Pieces {
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::None,
            Value::Array(items) => {
                let items: Vec<String> = items.iter().filter_map(plain).collect();
                if items.is_empty() { Self::None } else { Self::Items(items) }
            }
            Value::Object(members) => {
                let members: Vec<(String, String)> =
                    members.iter().filter_map(|(key, value)| Some((key.to_owned(), plain(value)?))).collect();
                if members.is_empty() { Self::None } else { Self::Members(members) }
            }
            other => Self::One(plain(other).unwrap_or_default()),
        }
    }
}

/// A value in one piece: text as it is, else its JSON. The styles have no form for what is nested.
pub(super) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.to_string()),
        other => Some(other.to_json()),
    }
}

/// `name[key][0]=value`, however deep.
fn deep(name: String, value: &Value, pairs: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members.iter() {
                deep(format!("{name}[{key}]"), value, pairs);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                deep(format!("{name}[{index}]"), item, pairs);
            }
        }
        other => pairs.extend(plain(other).map(|text| (name, text))),
    }
}

/// One parameter of the document.
#[derive(Debug)]
pub(super) struct Parameter<'a> {
    pub(super) name: &'a str,
    pub(super) location: Location,
    written: Written,
    /// Characters that are percent-encoded; none in a header.
    encoded: Option<&'static AsciiSet>,
    /// Whether its value is sent as JSON.
    json: bool,
}

impl<'a> Parameter<'a> {
    pub(super) fn of(members: &'a Members) -> Self {
        let text = |key: &str| members.get(key).and_then(Json::as_str).unwrap_or_default();
        let location = match text("in") {
            "path" => Location::Path,
            "header" => Location::Header,
            "cookie" => Location::Cookie,
            _ => Location::Query,
        };
        let reserved = members.get("allowReserved").is_some_and(|flag| flag == true);
        let encoded = match location {
            Location::Header => None,
            Location::Query if reserved => Some(RESERVED),
            _ => Some(UNRESERVED),
        };
        let content = members.get("content").and_then(Json::as_object).and_then(|content| content.keys().next());
        let json = content.is_some_and(|media| is_json(&essence(media)));
        Self { name: text("name"), location, written: Written::read(members, location), encoded, json }
    }

    /// A placeholder of a path that no parameter declares.
    pub(super) fn undeclared(name: &'a str) -> Self {
        let written = Written { style: Style::Simple, explode: false };
        Self { name, location: Location::Path, written, encoded: Some(UNRESERVED), json: false }
    }

    /// What stands in the path for it.
    pub(super) fn path(&self, value: &Value) -> String {
        self.written.line(self.name, &self.value(value), &|text| self.text(text))
    }

    /// The pairs of a query or of cookies.
    pub(super) fn pairs(&self, value: &Value) -> Vec<(String, String)> {
        self.written.pairs(self.name, &self.value(value), &|text| self.text(text))
    }

    /// The value of a header; `None` where there is nothing to say.
    pub(super) fn header(&self, value: &Value) -> Result<Option<String>, String> {
        if matches!(value, Value::Null) {
            return Ok(None);
        }
        let line = self.written.line(self.name, &self.value(value), &|text| self.text(text));
        if line.chars().any(|character| character.is_control() && character != '\t') {
            return Err("a header holds no line breaks or other control characters".to_owned());
        }
        Ok(Some(line))
    }

    fn value(&self, value: &Value) -> Value {
        if self.json && !matches!(value, Value::Null) { Value::from(value.to_json()) } else { value.clone() }
    }

    fn text(&self, text: &str) -> String {
        self.encoded.map_or_else(|| text.to_owned(), |set| encode(text, set))
    }
}
