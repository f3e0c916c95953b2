//! Notes on arguments for prompts: limits, patterns, formats, and descriptions with a new word. Nested fields have paths:
//! `stops[].nights`, `prices.*`.

use super::argument_limits::limits;
use super::describe::{in_line, short_type, type_words};
use super::nearest_names::{stem, words};
use super::spec::ToolSpec;
use super::types::{Schema, Types, list, reference};
use indexmap::IndexMap;
use serde_json::{Map, Value as Json};
use std::collections::HashSet;

/// Levels of objects below an argument, as many as a signature opens.
const LEVELS: usize = 3;

/// Schemas to visit for one tool.
const WORK: usize = 2_000;

/// References and `allOf`s followed on one way down.
const DEPTH: usize = 32;

/// Words without information about a value.
const EMPTY: &str = "a an and are as at be by for from given in is it its of on or optional required s that the their this to used value parameter argument field which will with";

/// A note on one argument or nested field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    /// The name of the argument, then the steps to the field.
    pub(crate) path: String,
    /// `1 to 9`, `pattern ^[A-Z]{3}$`; empty without a limit.
    pub(crate) limits: String,
    /// Empty without a new word.
    pub(crate) description: String,
}

/// The notes on the arguments of a tool, in the order of the schema.
pub(crate) fn notes(tool: &ToolSpec) -> Vec<Note> {
    let known = [tool.name.as_str(), tool.description.as_str()].into_iter().flat_map(stems).collect();
    let mut walk = Walk { known, alternatives: IndexMap::new(), within: Vec::new(), work: WORK };
    walk.visit(&Place { path: String::new(), levels: LEVELS + 1 }, &[Schema::root(&tool.parameters)]);
    // The tool describes the arguments as a whole.
    walk.alternatives.shift_remove("");
    walk.alternatives.into_iter().filter_map(|(path, all)| note(path, &all)).collect()
}

/// Whether a description has a word that isn't in `known`, or a sign such as `%`.
fn adds_a_word(description: &str, known: &HashSet<String>) -> bool {
    let sign = |one: char| !one.is_alphanumeric() && !one.is_whitespace() && !".,;:!?'\"()-_`".contains(one);
    description.chars().any(sign)
        || stems(description).iter().any(|word| !known.contains(word) && !EMPTY.split(' ').any(|empty| empty == word))
}

fn stems(text: &str) -> Vec<String> {
    words(text.chars()).into_iter().map(stem).collect()
}

/// A form of a value: one branch of a union, or the whole schema.
struct Alternative {
    types: Types,
    limits: String,
    description: String,
}

/// The note on a value with these forms. An unlimited form matters only beside a limited form of the same type.
fn note(path: String, all: &[Alternative]) -> Option<Note> {
    let mut limits: Vec<&str> = Vec::new();
    let mut descriptions: Vec<&str> = Vec::new();
    for one in all {
        if !one.limits.is_empty() && !limits.contains(&one.limits.as_str()) {
            limits.push(&one.limits);
        }
        if !one.description.is_empty() && !descriptions.contains(&one.description.as_str()) {
            descriptions.push(&one.description);
        }
    }
    let limited = |types: Types| all.iter().any(|one| !one.limits.is_empty() && one.types.overlaps(types));
    if all.iter().any(|one| one.limits.is_empty() && limited(one.types)) {
        limits.push("any");
    }
    let (limits, description) = (limits.join("; or "), descriptions.join("; or "));
    (!limits.is_empty() || !description.is_empty()).then_some(Note { path, limits, description })
}

/// The position of a value.
struct Place {
    path: String,
    levels: usize,
}

impl Place {
    fn field(&self, name: &str) -> Option<Self> {
        let dot = if self.path.is_empty() { "" } else { "." };
        Some(Self { path: format!("{}{dot}{}", self.path, in_line(name)), levels: self.levels.checked_sub(1)? })
    }

    fn item(&self, index: &str) -> Self {
        Self { path: format!("{}[{index}]", self.path), levels: self.levels }
    }
}

struct Walk {
    /// Words of the tool's name and description.
    known: HashSet<String>,
    alternatives: IndexMap<String, Vec<Alternative>>,
    /// The schemas on the way here, to stop at recursion.
    within: Vec<*const Map<String, Json>>,
    work: usize,
}

impl Walk {
    /// Visits a value that must satisfy all of these schemas.
    fn visit(&mut self, place: &Place, schemas: &[Schema<'_>]) {
        let parts: Vec<Schema<'_>> = schemas.iter().flat_map(|schema| parts_of(*schema)).collect();
        self.each_form(place, &parts, 0);
    }

    /// Visits each form: a form for each branch in the parts from `first` on.
    fn each_form(&mut self, place: &Place, parts: &[Schema<'_>], first: usize) {
        let Some(work) = self.work.checked_sub(1) else { return };
        self.work = work;
        let added = parts.get(first..).unwrap_or_default();
        let maps = added.iter().filter_map(|part| part.node.as_object()).map(std::ptr::from_ref);
        let maps: Vec<_> = maps.collect();
        if maps.iter().any(|map| self.within.contains(map)) {
            return;
        }
        let before = self.within.len();
        self.within.extend(maps);
        let branches: Vec<Schema<'_>> = added.iter().flat_map(|part| branches(*part)).collect();
        if branches.is_empty() {
            self.form(place, parts);
        }
        for branch in branches {
            let is_new = |part: &Schema<'_>| !parts.iter().any(|known| std::ptr::eq(known.node, part.node));
            let more: Vec<Schema<'_>> = parts_of(branch).into_iter().filter(is_new).collect();
            // A recursive branch adds no form.
            if more.is_empty() && branch.node.is_object() {
                continue;
            }
            let both = [parts, &more].concat();
            if types(&both) != Types::NULL {
                self.each_form(place, &both, parts.len());
            }
        }
        self.within.truncate(before);
    }

    fn form(&mut self, place: &Place, parts: &[Schema<'_>]) {
        let types = types(parts);
        let described: Vec<&str> =
            parts.iter().filter_map(|part| part.node.get("description")?.as_str()).map(str::trim).collect();
        let known = if described.is_empty() { HashSet::new() } else { self.words_at(place, parts, types) };
        let description = described.into_iter().find(|text| adds_a_word(text, &known));
        let alternative = Alternative {
            types,
            limits: limits(parts, types),
            description: description.unwrap_or_default().to_owned(),
        };
        self.alternatives.entry(place.path.clone()).or_default().push(alternative);
        if types.overlaps(Types::OBJECT) {
            for name in property_names(parts) {
                if let Some(field) = place.field(name) {
                    self.visit(&field, &properties(parts, name));
                }
            }
            let values = each(parts, "additionalProperties");
            if let Some(field) = place.field("*").filter(|_| !values.is_empty()) {
                self.visit(&field, &values);
            }
        }
        if types.overlaps(Types::ARRAY) {
            let items = each(parts, "items");
            if !items.is_empty() {
                self.visit(&place.item(""), &items);
            }
            let tuples = parts.iter().find_map(|part| Some(part.places()?.0));
            for (index, item) in tuples.unwrap_or_default().into_iter().enumerate() {
                self.visit(&place.item(&index.to_string()), &[item]);
            }
        }
    }

    /// The words that the prompt already shows for a value: tool, path and type.
    fn words_at(&self, place: &Place, parts: &[Schema<'_>], types: Types) -> HashSet<String> {
        let mut known = self.known.clone();
        let shown = parts.iter().flat_map(|part| stems(&short_type(*part, 1)));
        known.extend(stems(&place.path).into_iter().chain(stems(&type_words(types))).chain(shown));
        let said = [
            (Types::STRING, "str string text"),
            (Types::INTEGER, "int integer number"),
            (Types::BOOLEAN, "bool boolean true false whether flag if"),
            (Types::ARRAY, "array list item"),
            (Types::OBJECT, "object"),
        ];
        for (_, text) in said.iter().filter(|(one, _)| types != Types::ANY && types.overlaps(*one)) {
            known.extend(stems(text));
        }
        known
    }
}

/// The schema with the targets of `$ref` and `allOf`: a value must satisfy all of them.
fn parts_of(schema: Schema<'_>) -> Vec<Schema<'_>> {
    let mut parts: Vec<Schema<'_>> = Vec::new();
    let mut open = vec![schema];
    while let Some(part) = open.pop() {
        let Some(map) = part.node.as_object() else { continue };
        if parts.len() >= DEPTH || parts.iter().any(|other| std::ptr::eq(other.node, part.node)) {
            continue;
        }
        open.extend(list(map, "allOf").iter().rev().map(|one| part.at(one)));
        open.extend(reference(part.root, part.node).map(|target| part.at(target)));
        parts.push(part);
    }
    parts
}

fn branches(part: Schema<'_>) -> Vec<Schema<'_>> {
    let map = part.node.as_object();
    let all = map.into_iter().flat_map(|map| list(map, "anyOf").iter().chain(list(map, "oneOf")));
    all.map(|branch| part.at(branch)).collect()
}

fn types(parts: &[Schema<'_>]) -> Types {
    parts.iter().map(|part| part.types()).fold(Types::ANY, Types::and)
}

fn property_names<'a>(parts: &[Schema<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for part in parts {
        let properties = part.node.get("properties").and_then(Json::as_object);
        for name in properties.into_iter().flat_map(Map::keys) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    names
}

fn properties<'a>(parts: &[Schema<'a>], name: &str) -> Vec<Schema<'a>> {
    parts.iter().filter_map(|part| Some(part.at(part.node.get("properties")?.get(name)?))).collect()
}

fn each<'a>(parts: &[Schema<'a>], key: &str) -> Vec<Schema<'a>> {
    parts.iter().filter_map(|part| Some(part.at(part.node.get(key).filter(|one| one.is_object())?))).collect()
}

#[cfg(test)]
mod tests;
