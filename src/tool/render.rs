//! Tools as a prompt or a violation shows them. The text depends on the tools alone: a prompt prefix stays cached.

use super::argument_notes::{Note, notes};
use super::describe::{escaped, fields, in_line, moves_text, truncate};
use super::problem::wanted;
use super::spec::ToolSpec;
use super::types::Schema;
use serde_json::{Map, Value as Json, json};
use std::fmt::Write as _;

/// Characters of a schema that a violation shows whole; a larger one is shown as a signature.
const SCHEMA: usize = 1_200;

/// Levels of objects that a line opens.
pub(super) const DEPTH: usize = 3;

/// Characters of a signature.
const SIGNATURE: usize = 2_000;

/// Which notes an entry has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notes {
    /// Limits and descriptions of arguments and fields.
    All,
    /// Descriptions of arguments alone, for prompts with little room.
    Descriptions,
}

impl Notes {
    fn of(self, tool: &ToolSpec) -> Vec<Note> {
        let all = notes(tool);
        if self == Self::All {
            return all;
        }
        let schema = Schema::root(&tool.parameters);
        let names: Vec<_> = schema.property_names().into_iter().map(in_line).collect();
        let own =
            all.into_iter().filter(|note| !note.description.is_empty() && names.contains(&note.path.as_str().into()));
        own.map(|note| Note { limits: String::new(), ..note }).collect()
    }
}

/// `{name, description, parameters}`.
pub(crate) fn json_entry(tool: &ToolSpec) -> String {
    let parameters = tidy(&tool.parameters);
    escaped(&json!({"name": tool.name, "description": tool.description, "parameters": parameters}).to_string())
}

/// Name and description, a line for each argument, and a line for each note on a field.
pub(crate) fn list_entry(tool: &ToolSpec, notes: Notes) -> String {
    let mut text = format!("- {}", tool.name);
    if !tool.description.is_empty() {
        text.push_str(": ");
        text.push_str(&indented(&tool.description, "  "));
    }
    let schema = Schema::root(&tool.parameters);
    let required = schema.required_names();
    let names = schema.property_names();
    if names.is_empty() && !schema.is_open() {
        text.push_str("\n  args: none");
        return text;
    }
    text.push_str("\n  args:");
    let mut notes = notes.of(tool);
    for name in names {
        let note = notes.iter().position(|note| note.path == in_line(name)).map(|at| notes.remove(at));
        let limits = note.as_ref().map_or("", |note| &note.limits);
        let _ = write!(text, "\n    {} ({})", in_line(name), argument(schema, name, &required, limits));
        if let Some(note) = note.filter(|note| !note.description.is_empty()) {
            let _ = write!(text, ": {}", indented(&note.description, "      "));
        }
        while let Some(at) = notes.iter().position(|note| is_within(&note.path, &in_line(name))) {
            let _ = write!(text, "\n    {}", noted(&notes.remove(at), "      "));
        }
    }
    if schema.is_open() {
        text.push_str("\n    and any further name");
    }
    text
}

/// `name(city: str, days?: int = 3)  # Description`, then a line for each note.
pub(crate) fn line_entry(tool: &ToolSpec, notes: Notes) -> String {
    let schema = Schema::root(&tool.parameters);
    let mut text = format!("{}({})", tool.name, fields(schema, DEPTH));
    if !tool.description.is_empty() {
        text.push_str("  # ");
        text.push_str(&indented(&tool.description, "  # "));
    }
    text.push_str(&note_lines(tool, notes));
    text
}

/// A line for each note of a tool.
pub(crate) fn note_lines(tool: &ToolSpec, notes: Notes) -> String {
    let mut lines = String::new();
    for note in shared(notes.of(tool)) {
        let _ = write!(lines, "\n  {}", noted(&note, "    "));
    }
    lines
}

/// The notes of a tool in one line.
pub(crate) fn notes_in_line(tool: &ToolSpec) -> String {
    let notes: Vec<String> = shared(notes(tool)).iter().map(|note| noted(note, "")).collect();
    notes.join("; ").replace('\n', " ")
}

/// Joins the paths of equal notes.
fn shared(notes: Vec<Note>) -> Vec<Note> {
    let mut shared: Vec<Note> = Vec::new();
    for note in notes {
        let same = |one: &&mut Note| one.limits == note.limits && one.description == note.description;
        match shared.iter_mut().find(same) {
            Some(first) => first.path = format!("{}, {}", first.path, note.path),
            None => shared.push(note),
        }
    }
    shared
}

/// `seats: 1 to 9`, `day: When.`, `seats (1 to 9): How many.`
fn noted(note: &Note, indent: &str) -> String {
    let description = indented(&note.description, indent);
    match (note.limits.as_str(), description.as_str()) {
        (limits, "") => format!("{}: {limits}", note.path),
        ("", description) => format!("{}: {description}", note.path),
        (limits, description) => format!("{} ({limits}): {description}", note.path),
    }
}

/// Whether a path leads to a field of the argument.
fn is_within(path: &str, argument: &str) -> bool {
    path.strip_prefix(argument).is_some_and(|rest| rest.starts_with(['.', '[']))
}

fn argument(schema: Schema<'_>, name: &str, required: &[&str], limits: &str) -> String {
    let property = schema.property(name);
    let mut text = property.map_or_else(|| "any value".to_owned(), wanted);
    if !limits.is_empty() {
        let _ = write!(text, ", {limits}");
    }
    if required.contains(&name) {
        text.push_str(", required");
    } else if let Some(default) =
        property.and_then(|property| property.node.get("default")).filter(|default| !default.is_null())
    {
        let _ = write!(text, ", default {}", truncate(&default.to_string(), 60));
    } else {
        text.push_str(", optional");
    }
    text
}

fn indented(text: &str, indent: &str) -> String {
    let lines = text.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']);
    let plain = lines.map(|line| line.trim().replace(|one| one != '\t' && moves_text(one), ""));
    plain.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(&format!("\n{indent}"))
}

/// What a tool wants, for a violation: its schema where that is short, else its signature.
pub(crate) fn expected(tool: &ToolSpec) -> String {
    let schema = escaped(&tidy(&tool.parameters).to_string());
    if schema.chars().nth(SCHEMA).is_none() {
        return schema;
    }
    truncate(&signature(tool), SIGNATURE)
}

/// `name(query: str, max_results?: int = 5)`.
pub(crate) fn signature(tool: &ToolSpec) -> String {
    format!("{}({})", tool.name, fields(Schema::root(&tool.parameters), 1))
}

/// The schema without what says nothing to a model: the titles that generators write, and comments.
pub(crate) fn tidy(schema: &Json) -> Json {
    match schema {
        Json::Object(map) => Json::Object(map.iter().filter_map(|(key, value)| tidy_entry(key, value)).collect()),
        other => other.clone(),
    }
}

fn tidy_entry(key: &str, value: &Json) -> Option<(String, Json)> {
    let tidied = match (key, value) {
        ("title" | "$comment" | "$schema", _) => return None,
        ("properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas", Json::Object(map)) => {
            let entries: Map<String, Json> = map.iter().map(|(name, schema)| (name.clone(), tidy(schema))).collect();
            Json::Object(entries)
        }
        ("allOf" | "anyOf" | "oneOf" | "prefixItems", Json::Array(schemas)) => {
            Json::Array(schemas.iter().map(tidy).collect())
        }
        ("items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames", schema) => {
            tidy(schema)
        }
        (_, value) => value.clone(),
    };
    Some((key.to_owned(), tidied))
}

#[cfg(test)]
mod tests {
    use crate::tool::set::tests::set;
    use crate::tool::{Budget, Layout};

    #[test]
    fn chatty_gets_one_tool_a_line() {
        insta::assert_snapshot!(set().interface(Layout::Json, Budget::default()));
    }

    #[test]
    fn react_gets_a_list() {
        insta::assert_snapshot!(set().interface(Layout::List, Budget::default()));
    }

    #[test]
    fn a_line_says_all_of_a_tool() {
        let mut tool = set().get("search").unwrap().clone();
        tool.description = "Search.\n\nSlow.".to_owned();
        tool.parameters["properties"]["query"]["description"] = "what to look for,\nin words".into();
        let line = super::line_entry(&tool, super::Notes::All);
        assert!(line.starts_with("search(query: str, max_results?: int = 5, order?: "), "{line}");
        assert!(line.contains(")  # Search.\n  # Slow.\n"), "{line}");
        assert!(line.contains("\n  query: what to look for,\n    in words"), "{line}");
    }

    #[test]
    fn a_large_schema_is_shown_as_a_signature() {
        let mut tool = set().get("search").unwrap().clone();
        let properties = tool.parameters["properties"].as_object_mut().unwrap();
        for number in 0..40 {
            let description = "x".repeat(100);
            properties.insert(format!("p{number}"), serde_json::json!({"type": "string", "description": description}));
        }
        let shown = super::expected(&tool);
        assert!(shown.starts_with("search(query: str, max_results?: int = 5, order?: \"asc\"|\"desc\", "), "{shown}");
        assert!(shown.chars().count() <= 2_000);
    }
}
