//! Schemas in a few words: for signatures (`id: int, tags?: [str]`), for messages (`an integer or null`) and as the
//! bounded schema that a violation shows.

use super::types::{Schema, Types, list};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Options of an `enum` that are listed before the list is cut.
const OPTIONS: usize = 8;

/// Characters of one quoted value.
const QUOTED: usize = 40;

/// A compact type: `int`, `[str]`, `"a"|"b"`, `{name: str, tag?: str}`, `Pet`. Objects are opened `depth` levels deep.
pub(crate) fn short_type(schema: Schema<'_>, depth: usize) -> String {
    let Some(map) = schema.node.as_object() else {
        return "any".to_owned();
    };
    let mut text = short(schema, map, depth);
    // As `OpenAPI` 3.0 writes it, where it means something beside these alone; no other dialect has the word.
    let nullable = map.get("nullable").is_some_and(|flag| flag == true) && !map.contains_key("$ref");
    if nullable && (map.contains_key("type") || map.contains_key("enum")) && !text.split('|').any(|part| part == "null")
    {
        text.push_str("|null");
    }
    text
}

fn short(schema: Schema<'_>, map: &Map<String, Json>, depth: usize) -> String {
    if let Some(name) = map.get("$ref").and_then(Json::as_str) {
        let resolved = schema.resolved();
        let types = resolved.types();
        // A name stands for what is not opened; an object is opened at the price of a level below, all else here.
        let plain = !types.contains(Types::OBJECT) && !types.contains(Types::ARRAY);
        let object = types == Types::OBJECT && list_is_empty(resolved, &["anyOf", "oneOf", "allOf"]);
        return match depth.checked_sub(1) {
            _ if plain || (object && depth > 0) => short_type(resolved, depth),
            Some(depth) => short_type(resolved, depth),
            None => name.rsplit('/').next().unwrap_or("any").to_owned(),
        };
    }
    if let Some(options) = options(map) {
        return options;
    }
    for keyword in ["anyOf", "oneOf"] {
        let branches = list(map, keyword);
        if !branches.is_empty() {
            let mut texts: Vec<String> = Vec::new();
            for branch in branches {
                let text = short_type(schema.at(branch), depth);
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
            if texts.len() > OPTIONS {
                texts.truncate(OPTIONS);
                texts.push("…".to_owned());
            }
            return texts.join("|");
        }
    }
    if let [only] = list(map, "allOf") {
        return short_type(schema.at(only), depth);
    }
    let types = schema.types();
    if types == Types::ANY {
        // A branch may say of an object only which properties it has.
        let named = depth > 0 && !schema.property_names().is_empty();
        return if named { format!("{{{}}}", fields(schema, depth - 1)) } else { "any".to_owned() };
    }
    let texts: Vec<String> = types.names().into_iter().map(|name| short_name(name, schema, map, depth)).collect();
    if texts.is_empty() { "never".to_owned() } else { texts.join("|") }
}

fn list_is_empty(schema: Schema<'_>, keywords: &[&str]) -> bool {
    keywords.iter().all(|keyword| schema.node.get(*keyword).is_none())
}

fn short_name(name: &'static str, schema: Schema<'_>, map: &Map<String, Json>, depth: usize) -> String {
    match name {
        "integer" => "int".to_owned(),
        "boolean" => "bool".to_owned(),
        "string" => match map.get("format").and_then(Json::as_str) {
            Some(format @ ("date" | "date-time" | "time" | "uuid" | "uri" | "email" | "binary")) => format.to_owned(),
            _ => "str".to_owned(),
        },
        "array" => match (tuple(schema, depth), schema.item(0)) {
            (Some(items), _) => format!("[{items}]"),
            (None, Some(item)) => format!("[{}]", short_type(item, depth)),
            (None, None) => "array".to_owned(),
        },
        "object" if depth > 0 && !schema.property_names().is_empty() => {
            format!("{{{}}}", fields(schema, depth - 1))
        }
        "object" if schema.property_names().is_empty() && schema.required_names().is_empty() => {
            match schema.any_property() {
                Some(value) => format!("{{str: {}}}", short_type(value, depth.saturating_sub(1))),
                None => "object".to_owned(),
            }
        }
        other => other.to_owned(),
    }
}

/// `int, str`: the items of an array whose places have schemas of their own.
fn tuple(schema: Schema<'_>, depth: usize) -> Option<String> {
    let (items, open) = schema.places()?;
    let mut texts: Vec<String> = items.iter().take(OPTIONS).map(|item| short_type(*item, depth)).collect();
    if open || items.len() > OPTIONS {
        texts.push("…".to_owned());
    }
    Some(texts.join(", "))
}

/// `name: str, tag?: str = "x"`: the properties of an object schema, the required ones first.
pub(crate) fn fields(schema: Schema<'_>, depth: usize) -> String {
    let required = schema.required_names();
    let mut names = schema.property_names();
    for name in &required {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let listed: Vec<_> = names.into_iter().map(|name| (name, schema.property(name))).collect();
    listed_fields(&listed, &required, schema.is_open(), depth)
}

/// The same of properties that are at hand one by one.
pub(crate) fn listed_fields(
    properties: &[(&str, Option<Schema<'_>>)],
    required: &[&str],
    open: bool,
    depth: usize,
) -> String {
    let (needed, optional): (Vec<_>, Vec<_>) =
        properties.iter().copied().partition(|(name, _)| required.contains(name));
    let mut text = String::new();
    for ((name, property), mark) in
        needed.into_iter().map(|one| (one, "")).chain(optional.into_iter().map(|one| (one, "?")))
    {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&in_line(name));
        text.push_str(mark);
        text.push_str(": ");
        let Some(property) = property else {
            text.push_str("any");
            continue;
        };
        text.push_str(&short_type(property, depth));
        if let Some(default) = property.node.get("default").filter(|default| !default.is_null()) {
            let _ = write!(text, " = {}", shortened(&default.to_string()));
        }
    }
    if open {
        text.push_str(if text.is_empty() { "…" } else { ", …" });
    }
    text
}

fn options(map: &Map<String, Json>) -> Option<String> {
    if let Some(value) = map.get("const") {
        return Some(shortened(&value.to_string()));
    }
    let options = map.get("enum")?.as_array()?;
    let mut texts: Vec<String> = options.iter().take(OPTIONS).map(|option| shortened(&option.to_string())).collect();
    if options.len() > OPTIONS {
        texts.push("…".to_owned());
    }
    Some(texts.join("|"))
}

/// The types in the words of a message: `string`, `integer or null`; `any value` where nothing is said.
pub(crate) fn type_words(types: Types) -> String {
    if types == Types::ANY { "any value".to_owned() } else { any_of(&types.names()) }
}

/// The same with articles: `an integer or null`.
pub(crate) fn type_words_with_article(types: Types) -> String {
    if types == Types::ANY {
        return "any value".to_owned();
    }
    let names: Vec<String> = types.names().into_iter().map(|name| with_article(name).to_owned()).collect();
    any_of(&names)
}

/// `an integer`, `a string`, `null`.
pub(crate) fn with_article(name: &str) -> &str {
    match name {
        "string" => "a string",
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "an array",
        "object" => "an object",
        other => other,
    }
}

/// `a`, `a or b`, `a, b or c`.
pub(crate) fn any_of<T: AsRef<str>>(texts: &[T]) -> String {
    match texts {
        [] => "nothing".to_owned(),
        [only] => only.as_ref().to_owned(),
        [rest @ .., last] => {
            let rest: Vec<&str> = rest.iter().map(AsRef::as_ref).collect();
            format!("{} or {}", rest.join(", "), last.as_ref())
        }
    }
}

/// At most 40 characters of JSON, truncated with a mark.
pub(crate) fn shortened(json: &str) -> String {
    truncate(&escaped(json), QUOTED)
}

/// `name` as it stands in a line: as JSON where characters of it would end or turn the line.
pub(crate) fn in_line(name: &str) -> Cow<'_, str> {
    if name.chars().any(moves_text) {
        Cow::Owned(escaped(&Json::String(name.to_owned()).to_string()))
    } else {
        Cow::Borrowed(name)
    }
}

/// JSON with escapes for the characters that end or turn a line, and that JSON lets stand.
pub(crate) fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if moves_text(character) {
            let _ = write!(text, "\\u{:04x}", u32::from(character));
        } else {
            text.push(character);
        }
    }
    text
}

/// Whether a character ends a line, changes its direction, or is not seen in it.
pub(crate) fn moves_text(character: char) -> bool {
    let hidden = matches!(
        character,
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    );
    character.is_control() || hidden
}

/// At most `limit` characters of `text`, truncated with a mark.
pub(crate) fn truncate(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some(_) => text.chars().take(limit.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// `text` in double quotes, escaped and cut.
pub(crate) fn quoted(text: &str) -> String {
    let head: String = text.chars().take(QUOTED).collect();
    let mut quoted = Json::String(head).to_string();
    if text.chars().nth(QUOTED).is_some() {
        quoted.pop();
        quoted.push_str("…\"");
    }
    quoted
}

/// `name` in single quotes, cut, control characters escaped: names come from models, too.
pub(crate) fn named(name: &str) -> String {
    let plain: String = name
        .chars()
        .take(64)
        .flat_map(|character| {
            let escape = if character.is_control() { Some(character.escape_default()) } else { None };
            let plain = escape.is_none().then_some(character);
            escape.into_iter().flatten().chain(plain)
        })
        .collect();
    let mark = if name.chars().nth(64).is_some() { "…" } else { "" };
    format!("'{plain}{mark}'")
}

#[cfg(test)]
mod tests {
    use super::{any_of, named, quoted, short_type, truncate};
    use crate::tool::types::Schema;
    use serde_json::json;

    #[test]
    fn types_are_short() {
        let root = json!({"$defs": {
            "Pet": {"type": "object", "properties": {"name": {"type": "string"}, "owner": {"$ref": "#/$defs/Pet"}}, "required": ["name"]},
            "Id": {"type": "integer"},
        }});
        let schema = Schema::root(&root);
        for (node, expected) in [
            (json!({"type": "integer"}), "int"),
            (json!({"type": ["string", "null"]}), "str|null"),
            (json!({"type": "string", "format": "date"}), "date"),
            (json!({"type": "array", "items": {"type": "string"}}), "[str]"),
            (json!({"enum": ["a", 1, null]}), "\"a\"|1|null"),
            (json!({"anyOf": [{"type": "integer"}, {"type": "array"}]}), "int|array"),
            (json!({"$ref": "#/$defs/Pet"}), "{name: str, owner?: Pet}"),
            (json!({"$ref": "#/$defs/Id"}), "int"),
            (json!({"type": "array", "items": {"$ref": "#/$defs/Id"}}), "[int]"),
            (json!({"type": "object"}), "object"),
            (
                json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2}),
                "[int, str]",
            ),
            (json!({"prefixItems": [{"type": "integer"}], "type": "array"}), "[int, …]"),
            (json!({"prefixItems": [{"type": "integer"}], "items": {"type": "string"}, "type": "array"}), "[int, …]"),
            (json!({"prefixItems": [{"$ref": "#/$defs/Id"}, {}], "items": false, "type": "array"}), "[int, any]"),
            (
                json!({"items": [{"type": "integer"}, {"type": "string"}], "additionalItems": false, "type": "array"}),
                "[int, str]",
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "number"}}}),
                "{str: [number]}",
            ),
            (
                json!({"anyOf": [{"type": "object", "additionalProperties": {"type": "integer"}}, {"type": "null"}]}),
                "{str: int}|null",
            ),
            (json!({"type": "object", "additionalProperties": {"$ref": "#/$defs/Pet"}}), "{str: Pet}"),
            (json!({"type": "object", "additionalProperties": true}), "object"),
            (
                json!({"type": "object", "additionalProperties": {"type": "integer"}, "properties": {"a": {"type": "string"}}}),
                "{a?: str, …}",
            ),
            (json!({}), "any"),
            (json!(true), "any"),
        ] {
            assert_eq!(short_type(schema.at(&node), 1), expected, "{node}");
        }
        assert_eq!(short_type(schema.at(&json!({"$ref": "#/$defs/Pet"})), 0), "Pet");
        let dict = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        assert_eq!(short_type(schema.at(&dict), 0), "{str: int}");
    }

    #[test]
    fn what_came_is_cut_and_escaped() {
        assert_eq!(quoted("a\"b\n"), r#""a\"b\n""#);
        assert_eq!(quoted(&"é".repeat(100)), format!("\"{}…\"", "é".repeat(40)));
        assert_eq!(named("a\nb"), r"'a\nb'");
        assert_eq!(named(&"x".repeat(1000)), format!("'{}…'", "x".repeat(64)));
        assert_eq!(truncate("abc", 3), "abc");
        assert_eq!(truncate("abcd", 3), "ab…");
        assert_eq!(any_of(&["a", "b", "c"]), "a, b or c");
    }
}
