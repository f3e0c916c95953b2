//! The tools by which a model finds others that its prompt has no room for: `search_tools` and `describe_tool`.

use super::describe::{fields, short_type, truncate, type_words};
use super::nearest_names::{nearest, stem, words};
use super::render::{notes_in_line, tidy};
use super::set::ToolSet;
use super::spec::{Effect, ToolKind, ToolSpec};
use super::tool_view::{Detail, ToolView, grouped};
use super::types::{Schema, Types};
use crate::reply::Violation;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use std::collections::{HashMap, HashSet};

pub(crate) const SEARCH: &str = "search_tools";
pub(crate) const DESCRIBE: &str = "describe_tool";

/// Tools that one search gives.
const SHOWN: usize = 20;

/// Characters of one of its lines.
const LINE: usize = 400;

/// Groups that a search names which finds nothing.
const GROUPS: usize = 40;

/// Words of a query that count.
const QUERY: usize = 16;

/// Characters of a description that are searched, and that are shown.
const DESCRIPTION: usize = 2_000;

/// What a word of a name or summary counts; one of a description counts 1.
const TITLE: f64 = 3.0;

/// The rarity from which on a word shows what a tool is about: more than every other tool has "a" and "of".
const TELLING: f64 = 0.7;

/// Of the best score: what a tool must reach to be shown beside it.
const RELEVANT: f64 = 0.45;

/// Characters of a schema that is shown whole.
const SCHEMA: usize = 8_000;

/// Levels of a longer schema that are shown, as many as fit.
const LEVELS: [usize; 4] = [4, 3, 2, 1];

/// Schemas of a longer schema that are shown.
const WORK: usize = 400;

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LookedUp {
    /// A line each, the best first.
    pub tools: Vec<String>,
    /// How many more there are.
    pub more: usize,
    /// What else to try, where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What is said of one tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Description {
    /// How it is called.
    pub signature: String,
    /// Its description.
    pub description: String,
    /// JSON Schema of the arguments. Of a large one the upper levels.
    pub parameters: Json,
}

pub(crate) fn specs() -> Vec<ToolSpec> {
    let one = |name: &str, argument: &str, about: &str, description: &str| {
        let mut properties = Map::new();
        properties.insert(argument.to_owned(), json!({"type": "string", "minLength": 1, "description": about}));
        ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: json!({
                "type": "object",
                "properties": properties,
                "required": [argument],
                "additionalProperties": false,
            }),
            kind: ToolKind::LookUp,
            effect: Effect::Pure,
            readonly: true,
            reconciles: false,
            needs_approval: false,
            checks_approval: false,
            repeatable: false,
            untrusted: false,
            queue: None,
            reads: std::collections::BTreeMap::new(),
            external: None,
            values: std::collections::BTreeMap::new(),
            asks_untrusted: false,
        }
    };
    vec![
        one(
            SEARCH,
            "query",
            "A few words of what it is to do.",
            "Find tools by words of their names and descriptions.",
        ),
        one(DESCRIBE, "name", "Its exact name.", "Show the arguments of one tool."),
    ]
}

impl ToolSet {
    /// The tools that a query means, each as it is called: by its name, or where `routes` are written by its route.
    pub fn search(&self, query: &str, routes: bool) -> LookedUp {
        let unread = self.unread();
        let mut found = ranked(unread.as_ref().unwrap_or(self), query);
        if let Some(exact) = self.find(query.trim(), routes).ok().and_then(|found| self.shown_as(found.tool)) {
            found.retain(|tool| tool.name() != exact.name());
            found.insert(0, exact);
        }
        let tools: Vec<String> = found.iter().take(SHOWN).map(|tool| line(self, *tool, routes)).collect();
        let more = found.len() - tools.len();
        let hint = tools.is_empty().then(|| format!("use other words; there are tools of {}", groups(self)));
        LookedUp { tools, more, hint }
    }

    /// What is said of the tool of this name or route.
    ///
    /// # Errors
    /// `unknown_tool`, with the nearest names.
    pub fn describe(&self, name: &str, routes: bool) -> Result<Description, Violation> {
        let tool = self.find(name.trim(), routes)?.tool;
        let signature = self.shown_as(tool).map_or_else(|| tool.name.clone(), |shown| line_of(shown, routes));
        let parameters = bounded(&tool.parameters);
        Ok(Description { signature, description: truncate(&tool.description, DESCRIPTION), parameters })
    }
}

/// A line of a search: objects are opened, and arguments described, where that does not make it too long.
fn line(tools: &ToolSet, tool: ToolView<'_>, routes: bool) -> String {
    let line = tool.line(routes, Detail::All);
    let notes = tools.get(tool.name()).map(notes_in_line).unwrap_or_default();
    if !notes.is_empty() {
        let described = format!("{line}  # {notes}");
        if described.chars().nth(LINE).is_none() {
            return described;
        }
    }
    if line.chars().nth(LINE).is_none() {
        return line;
    }
    let head = truncate(&tool.signature(routes, 0), LINE - 100);
    match tool.summary() {
        "" => head,
        summary => format!("{head}  # {}", truncate(summary, 90)),
    }
}

/// The same without the summary, which the description holds.
fn line_of(tool: ToolView<'_>, routes: bool) -> String {
    let signature = tool.signature(routes, 1);
    if signature.chars().nth(LINE).is_none() { signature } else { truncate(&tool.signature(routes, 0), LINE) }
}

fn groups(tools: &ToolSet) -> String {
    let groups = grouped(tools.shown().filter(|tool| !tool.kind().always_in_prompt()));
    let listed: Vec<&str> = groups.iter().take(GROUPS).map(|(group, _)| &**group).collect();
    let listed = listed.join(", ");
    if groups.len() <= GROUPS { listed } else { format!("{listed} and others") }
}

/// A tool by its words, each with what it counts.
struct Indexed<'a> {
    tool: ToolView<'a>,
    words: HashMap<String, f64>,
    /// Words of its name and summary: the fewer there are, the more each says.
    title: usize,
}

impl<'a> Indexed<'a> {
    fn of(tool: ToolView<'a>) -> Self {
        let mut indexed = Self { tool, words: HashMap::new(), title: 0 };
        indexed.add(tool.name(), TITLE);
        indexed.add(tool.summary(), TITLE);
        indexed.title = indexed.words.len();
        // Ids name the group as often as the operation.
        indexed.add(tool.id().unwrap_or_default(), 2.0);
        for tag in tool.tags() {
            indexed.add(tag, 2.0);
        }
        indexed.add(tool.description(), 1.0);
        indexed
    }

    fn add(&mut self, text: &str, weight: f64) {
        for word in words(text.chars().take(DESCRIPTION)) {
            let counts = self.words.entry(stem(word)).or_insert(weight);
            *counts = counts.max(weight);
        }
    }
}

/// The tools that share words with the query, the best first; rare words count most.
fn ranked<'a>(tools: &'a ToolSet, query: &str) -> Vec<ToolView<'a>> {
    let offered = tools.shown().filter(|tool| !tool.kind().is_built_in());
    let indexed: Vec<Indexed<'a>> = offered.map(Indexed::of).collect();
    let mut wanted: Vec<String> = Vec::new();
    for word in words(query.chars().take(500)).into_iter().map(stem) {
        if wanted.len() < QUERY && !wanted.contains(&word) {
            wanted.push(word);
        }
    }
    let mut scores = vec![0.0; indexed.len()];
    let mut matched = vec![0_u32; indexed.len()];
    for word in wanted {
        let mut counts = matches(&indexed, &word);
        if counts.iter().all(|count| *count == 0.0) {
            // Nobody has the word: it may be misspelt.
            let known: HashSet<&str> = indexed.iter().flat_map(|one| one.words.keys()).map(String::as_str).collect();
            let mut known: Vec<&str> = known.into_iter().collect();
            known.sort_unstable();
            for near in nearest(&word, known, 2) {
                for (count, more) in counts.iter_mut().zip(matches(&indexed, near)) {
                    *count = count.max(more / 2.0);
                }
            }
        }
        let having = counts.iter().filter(|count| **count > 0.0).count();
        // A word that nearly all have says nothing, but it says that more than none.
        let rarity = (as_f64(indexed.len()) / as_f64(having.max(1))).ln() + 0.01;
        for ((score, matched), count) in scores.iter_mut().zip(&mut matched).zip(counts) {
            *score += rarity * count;
            *matched += u32::from(count >= TITLE && rarity > TELLING);
        }
    }
    for ((score, matched), one) in scores.iter_mut().zip(matched).zip(&indexed) {
        // Of two with the same words, the one that is about little else.
        *score *= 1.0 + f64::from(matched) / (4.0 + as_f64(one.title));
    }
    let best = scores.iter().copied().fold(0.0, f64::max);
    let mut found: Vec<(f64, ToolView<'a>)> = scores
        .into_iter()
        .zip(&indexed)
        .filter(|(score, _)| *score > 0.0 && *score >= RELEVANT * best)
        .map(|(score, one)| (score, one.tool))
        .collect();
    found.sort_by(|left, right| right.0.total_cmp(&left.0));
    found.into_iter().map(|(_, tool)| tool).collect()
}

/// What a word counts in each tool: a word that begins with it counts less.
fn matches(indexed: &[Indexed<'_>], word: &str) -> Vec<f64> {
    let begins = word.chars().nth(2).is_some();
    let count = |one: &Indexed<'_>| {
        one.words.get(word).copied().unwrap_or_else(|| {
            let longer = one.words.iter().filter(|(own, _)| begins && own.starts_with(word));
            longer.map(|(_, weight)| weight / 2.0).fold(0.0, f64::max)
        })
    };
    indexed.iter().map(count).collect()
}

fn as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

/// The schema where it is short, else as many of its upper levels as are.
fn bounded(parameters: &Json) -> Json {
    let whole = tidy(parameters);
    if fits(&whole) {
        return whole;
    }
    let root = Schema::root(parameters);
    for levels in LEVELS {
        let mut work = WORK;
        if let Some(upper) = upper(root, levels, &mut work).filter(fits) {
            return upper;
        }
    }
    json!({"type": "object", "description": truncate(&fields(root, 0), SCHEMA / 2)})
}

fn fits(schema: &Json) -> bool {
    schema.to_string().chars().nth(SCHEMA).is_none()
}

/// The upper levels of a schema, its references followed; what is below is described in a few words. `None` where that
/// is too much.
fn upper(schema: Schema<'_>, levels: usize, work: &mut usize) -> Option<Json> {
    *work = work.checked_sub(1)?;
    let resolved = schema.resolved();
    let Some(map) = resolved.node.as_object() else {
        return Some(resolved.node.clone());
    };
    let mut shown = Map::new();
    let types = resolved.types();
    let nested = ["properties", "items", "anyOf", "oneOf", "allOf", "prefixItems", "additionalProperties"];
    let flat = !nested.iter().any(|key| map.contains_key(*key));
    let Some(below) = levels.checked_sub(1).or(flat.then_some(0)) else {
        if types != Types::ANY {
            let names = types.names();
            let one = names.first().filter(|_| names.len() == 1).map(|name| json!(name));
            shown.insert("type".to_owned(), one.unwrap_or_else(|| json!(names)));
        }
        let words = short_type(schema, 1);
        let words = if words == "any" { type_words(types) } else { words };
        shown.insert("description".to_owned(), json!(truncate(&words, 200)));
        return Some(Json::Object(shown));
    };
    for (key, value) in map {
        let value = match (key.as_str(), value) {
            ("title" | "$comment" | "$schema" | "$defs" | "definitions" | "$ref", _) => continue,
            ("description", Json::String(text)) => json!(truncate(text, 300)),
            ("properties" | "patternProperties", Json::Object(properties)) => {
                let each =
                    properties.iter().map(|(name, node)| Some((name.clone(), upper(schema.at(node), below, work)?)));
                Json::Object(each.collect::<Option<_>>()?)
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Json::Array(nodes)) => {
                let each = nodes.iter().map(|node| upper(schema.at(node), below, work));
                Json::Array(each.collect::<Option<_>>()?)
            }
            ("items" | "additionalProperties", node @ Json::Object(_)) => upper(schema.at(node), below, work)?,
            (_, value) => value.clone(),
        };
        shown.insert(key.clone(), value);
    }
    Some(Json::Object(shown))
}

#[cfg(test)]
mod tests;
