//! Objects: named properties in the order of the schema, then keys that it does not name.

use super::bounds;
use super::chars::CharSet;
use super::excluded_text::{Part, Without};
use super::json_string::{Level, escape};
use super::rules::Node;
use super::schema::{ARGUMENTS, Converter};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// A property of an object, with its key as it is written.
#[derive(Clone)]
struct Member {
    name: String,
    key: String,
    value: Node,
    required: bool,
}

/// How many properties an object has.
#[derive(Clone, Copy)]
struct Count {
    min: usize,
    max: Option<usize>,
}

/// The properties that ask for others once they are there (`dependentRequired`).
struct Dependents<'a> {
    triggers: Vec<&'a str>,
    together: Option<&'a Map<String, Json>>,
}

fn strings_of(list: &Json) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
}

impl Converter<'_> {
    pub(in crate::protocol) fn object(&mut self, flat: &Map<String, Json>, hint: &str) -> Option<Node> {
        let limit = |key: &str| flat.get(key).and_then(Json::as_u64).and_then(|limit| usize::try_from(limit).ok());
        let count = Count { min: limit("minProperties").unwrap_or(0), max: limit("maxProperties") };
        let none = Map::new();
        let properties = flat.get("properties").and_then(Json::as_object).unwrap_or(&none);
        let required = flat.get("required").map(strings_of).unwrap_or_default();
        let beyond = required.iter().filter(|name| !properties.contains_key(*name)).map(|name| (name, None));
        let all = properties.iter().map(|(name, schema)| (name, Some(schema))).chain(beyond);
        let mut members: Vec<Member> = Vec::new();
        for (name, schema) in all {
            let needed = required.contains(name);
            let schema = schema.or_else(|| beyond_properties(flat)).unwrap_or(&Json::Bool(true));
            let Some(value) = self.value(schema, &format!("{hint}-{name}")) else {
                if needed {
                    return None;
                }
                continue;
            };
            let key = Json::from(name.as_str()).to_string();
            members.push(Member { name: name.clone(), key, value, required: needed });
        }
        let entry = self.entry(flat, properties, &members, hint);
        if members.is_empty() {
            let (min, max) =
                (u32::try_from(count.min).ok()?, count.max.map(|max| u32::try_from(max).unwrap_or(u32::MAX)));
            let (min, max) = (min.min(bounds::MOST), max.filter(|max| *max <= bounds::MOST));
            let Some(entry) = entry.filter(|_| max != Some(0)) else {
                return (min == 0).then(|| self.level.literal("{}"));
            };
            return max.is_none_or(|max| min <= max).then(|| self.of_entries(entry, min, max));
        }
        let together = flat.get("dependentRequired").and_then(Json::as_object);
        let triggers: Vec<&str> = together.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let triggers: Vec<&str> =
            triggers.into_iter().filter(|name| members.iter().any(|member| member.name == *name)).collect();
        if triggers.is_empty() || triggers.len() > bounds::TRIGGERS {
            return self.members(&members, entry.as_ref(), count, hint);
        }
        self.forms(&members, entry.as_ref(), count, &Dependents { triggers, together }, hint)
    }

    /// One form for each choice of the properties on which others depend.
    fn forms(
        &mut self,
        members: &[Member],
        entry: Option<&Node>,
        count: Count,
        Dependents { triggers, together }: &Dependents<'_>,
        hint: &str,
    ) -> Option<Node> {
        let mut forms = Vec::new();
        for chosen in 0..1_u32 << triggers.len() {
            let is_chosen = |name: &str| triggers.iter().position(|one| *one == name).map(|at| chosen >> at & 1 == 1);
            if members.iter().any(|member| member.required && is_chosen(&member.name) == Some(false)) {
                continue;
            }
            let depending = triggers.iter().filter(|name| is_chosen(name) == Some(true));
            let needed: Vec<String> = depending
                .flat_map(|name| together.and_then(|together| together.get(*name)).map(strings_of).unwrap_or_default())
                .collect();
            let mut form = members.to_vec();
            form.retain(|member| is_chosen(&member.name) != Some(false));
            for member in &mut form {
                member.required |= is_chosen(&member.name) == Some(true) || needed.contains(&member.name);
            }
            let whole = needed.iter().all(|name| form.iter().any(|member| member.name == *name) || entry.is_some());
            if whole {
                forms.extend(self.members(&form, entry, count, hint));
            }
        }
        Node::choice(forms)
    }

    /// An entry whose key the schema does not name; `None` where there can be none.
    fn entry(
        &mut self,
        flat: &Map<String, Json>,
        properties: &Map<String, Json>,
        members: &[Member],
        hint: &str,
    ) -> Option<Node> {
        let patterns: Vec<(&String, &Json)> =
            flat.get("patternProperties").and_then(Json::as_object).into_iter().flatten().collect();
        // A call has the arguments that are named, and no others without a word about them.
        let requires = flat.get("required").and_then(Json::as_array).is_some_and(|names| !names.is_empty());
        let named = flat.contains_key("properties") || requires || !patterns.is_empty();
        let closed = flat.contains_key(ARGUMENTS) && named;
        let others = match flat.get("additionalProperties") {
            Some(schema) => Some(schema),
            None if closed || flat.get("unevaluatedProperties").is_some_and(|other| other == false) => None,
            None => Some(&Json::Bool(true)),
        };
        let taken: Vec<&str> =
            properties.keys().map(String::as_str).chain(members.iter().map(|member| member.name.as_str())).collect();
        let mut entries = Vec::new();
        for (pattern, schema) in patterns {
            let key = Json::from_iter([("pattern".to_owned(), Json::from(pattern.as_str()))]);
            let (key, value) = (self.key(&key)?, self.value(schema, &format!("{hint}-value"))?);
            entries.push(self.pair(key, &value));
        }
        if let Some(schema) = others
            && let Some(value) = self.value(schema, &format!("{hint}-value"))
        {
            let key = flat.get("propertyNames").and_then(|schema| self.key(schema));
            let key = key.unwrap_or_else(|| self.any_key(&taken));
            entries.push(self.pair(key, &value));
        }
        let entry = Node::choice(entries)?;
        Some(self.rules.rule("entry", entry))
    }

    fn pair(&mut self, key: Node, value: &Node) -> Node {
        let entry = Node::sequence([key, Node::literal(": "), value.clone()]);
        self.rules.rule("entry", entry)
    }

    /// A key that is not in `taken`.
    fn any_key(&mut self, taken: &[&str]) -> Node {
        let content = Node::Class(CharSet::all());
        let content = match self.bounds {
            Some(bounds) => Node::bounded(content, 0, bounds.string),
            None => Node::any_number(content),
        };
        if taken.is_empty() || self.bounds.is_some() {
            let key = self.level.quoted(content);
            return self.rules.word("key", key);
        }
        // A name that needs escapes may be written twice after all, and is then refused.
        let quote = self.level.literal("\"");
        let plain = Level::plain(&CharSet::all());
        let last = taken.iter().map(|name| Part::at_start().exactly(&self.level_text(&escape(name)))).collect();
        let text = Without { of: plain.clone(), never: Vec::new(), last }.node(self.rules, "other-key");
        let any = Node::Choice(vec![Node::Class(plain.clone()), self.level.escape()]);
        let escaped = [Node::any_number(Node::Class(plain)), self.level.escape(), Node::any_number(any)];
        let text = Node::Choice(vec![text, Node::sequence(escaped)]);
        let key = Node::sequence([quote.clone(), text, quote]);
        self.rules.word("other-key", key)
    }

    fn level_text(&self, text: &str) -> String {
        match self.level.literal(text) {
            Node::Literal(text) => text,
            _ => text.to_owned(),
        }
    }

    /// The members in their order and then entries; a comma stands before each but the first that is there.
    fn members(&mut self, members: &[Member], entry: Option<&Node>, count: Count, hint: &str) -> Option<Node> {
        let needed = members.iter().filter(|member| member.required).count();
        let counted = members.len().saturating_mul(count.min.max(count.max.unwrap_or(0))) <= bounds::COUNTED;
        let min = if counted && count.min > needed { count.min } else { 0 };
        let max = count.max.filter(|max| counted && (entry.is_some() || *max < members.len()));
        let most = min.max(max.unwrap_or(0)).max(1);
        // What may follow, by how many members are there already, from the last member to the first.
        let mut tails: BTreeMap<usize, Node> = BTreeMap::new();
        for there in 0..=most {
            let missing = min.saturating_sub(there);
            if missing == 0 || entry.is_some() {
                let more = max.map(|max| max.saturating_sub(there));
                tails.insert(there, self.end(entry, there == 0, missing, more)?);
            }
        }
        for member in members.iter().rev() {
            let mut earlier: BTreeMap<usize, Node> = BTreeMap::new();
            for there in 0..=most {
                let with = if max == Some(there) { None } else { tails.get(&(there + 1).min(most)) };
                let comma = if there > 0 { ", " } else { "" };
                let key = self.level.literal(&format!("{comma}{}: ", member.key));
                let with = with.map(|tail| Node::sequence([key, member.value.clone(), tail.clone()]));
                let without = tails.get(&there).filter(|_| !member.required).cloned();
                let node = match (with, without) {
                    (Some(with), Some(without)) if without == Node::empty() => Some(Node::optional(with)),
                    (with, without) => Node::choice(with.into_iter().chain(without)),
                };
                earlier.extend(node.map(|node| (there, node)));
            }
            tails = earlier;
            if !member.required {
                // It is used twice: with the next member and without it.
                for node in tails.values_mut() {
                    if !matches!(node, Node::Rule(_) | Node::Literal(_)) && *node != Node::empty() {
                        *node = self.rules.rule(&format!("{hint}-rest"), node.clone());
                    }
                }
            }
        }
        let body = tails.remove(&0)?;
        Some(Node::sequence([self.level.literal("{"), body, self.level.literal("}")]))
    }

    /// What stands after the last named member.
    fn end(&mut self, entry: Option<&Node>, first: bool, min: usize, max: Option<usize>) -> Option<Node> {
        let Some(entry) = entry.cloned() else { return Some(Node::empty()) };
        let (min, max) = (u32::try_from(min).ok()?, max.map(|max| u32::try_from(max).unwrap_or(u32::MAX)));
        Some(if first { self.some_entries(entry, min, max) } else { self.many(after_comma(entry), min, max, 0) })
    }

    /// `min` to `max` entries, each with a key of its own choice.
    pub(in crate::protocol) fn entries(&mut self, key: Option<Node>, value: &Node, min: u32, max: Option<u32>) -> Node {
        let key = key.unwrap_or_else(|| self.any_key(&[]));
        let entry = self.pair(key, value);
        self.of_entries(entry, min, max)
    }

    fn of_entries(&mut self, entry: Node, min: u32, max: Option<u32>) -> Node {
        let some = self.some_entries(entry, min, max);
        Node::sequence([self.level.literal("{"), some, self.level.literal("}")])
    }

    fn some_entries(&mut self, entry: Node, min: u32, max: Option<u32>) -> Node {
        if max == Some(0) {
            return Node::empty();
        }
        let more = self.many(after_comma(entry.clone()), min.saturating_sub(1), max.map(|max| max - 1), 1);
        let some = Node::sequence([entry, more]);
        if min == 0 { Node::optional(some) } else { some }
    }
}

fn after_comma(entry: Node) -> Node {
    Node::sequence([Node::literal(", "), entry])
}

/// What a property is that only `additionalProperties` speaks of.
fn beyond_properties(flat: &Map<String, Json>) -> Option<&Json> {
    flat.get("additionalProperties").filter(|_| !flat.contains_key("patternProperties"))
}
