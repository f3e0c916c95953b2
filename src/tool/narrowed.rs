//! What a newer schema of arguments takes less than an older one: each value that the older one admits must be valid
//! and mean the same with the newer one. Keywords that are not known here must be equal.

mod bounds;

use super::describe::truncate;
use super::spec::READS;
use serde_json::{Map, Value as Json};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Keywords that change nothing about a value.
const WORDS: [&str; 6] = ["title", "description", "$comment", "examples", "example", "deprecated"];

/// Keywords that stand for others, and are looked at where they are used.
const ELSEWHERE: [&str; 3] = ["default", "$defs", "definitions"];

/// Keywords whose meaning depends on more than the schema that they stand in.
const FAR: [&str; 9] = [
    "$ref",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
    "unevaluatedProperties",
    "unevaluatedItems",
];

/// Keywords that are compared by functions of their own.
const COMPARED: [&str; 7] = ["type", "enum", "const", "items", "properties", "required", "additionalProperties"];

/// Other keywords that only refuse values, whatever stands beside them: a schema without one takes more.
const REMOVABLE: [&str; 4] = ["pattern", "multipleOf", "anyOf", "oneOf"];

/// Pairs of schemas that are compared before it is given up.
const MOST: usize = 10_000;

/// Characters of a value in a message.
const SHORT: usize = 60;

type Object = Map<String, Json>;

/// The reasons, in words with a way out, why a value of `kept` may be wrong for `offered` or mean something else there.
pub fn narrowed(kept: &Json, offered: &Json) -> Vec<String> {
    if kept == offered {
        return Vec::new();
    }
    Comparison { kept, offered, under_way: Vec::new(), level: 0, left: MOST }.compare(kept, offered, "")
}

/// Two schemas that are being compared, and how deep the value stands that they describe.
struct Pair<'a> {
    kept: &'a Json,
    offered: &'a Json,
    level: usize,
}

struct Comparison<'a> {
    kept: &'a Json,
    offered: &'a Json,
    under_way: Vec<Pair<'a>>,
    level: usize,
    left: usize,
}

impl<'a> Comparison<'a> {
    fn compare(&mut self, kept: &'a Json, offered: &'a Json, path: &str) -> Vec<String> {
        if same(kept, offered) || *kept == Json::Bool(false) {
            return Vec::new();
        }
        let Some(left) = self.left.checked_sub(1) else {
            return vec![format!("{} is too large to compare: keep it as it was", place(path))];
        };
        self.left = left;
        let (Some(kept), Some(offered)) = (resolved(self.kept, kept), resolved(self.offered, offered)) else {
            return vec![format!("{} refers to a schema that can't be followed: keep it as it was", place(path))];
        };
        if takes_anything(offered) {
            return Vec::new();
        }
        let known = |pair: &&Pair<'_>| std::ptr::eq(pair.kept, kept) && std::ptr::eq(pair.offered, offered);
        match self.under_way.iter().find(known).map(|pair| pair.level) {
            // A value has an end: what stands deeper in it is compared by the time that this matters.
            Some(level) if level < self.level => return Vec::new(),
            Some(_) => return vec![format!("{} refers to nothing but itself: keep it as it was", place(path))],
            None => {}
        }
        self.under_way.push(Pair { kept, offered, level: self.level });
        let found = self.compare_resolved(kept, offered, path);
        self.under_way.pop();
        found
    }

    /// Compares what describes a part of the value.
    fn descend(&mut self, kept: &'a Json, offered: &'a Json, path: &str) -> Vec<String> {
        self.level += 1;
        let found = self.compare(kept, offered, path);
        self.level -= 1;
        found
    }

    fn compare_resolved(&mut self, kept: &'a Json, offered: &'a Json, path: &str) -> Vec<String> {
        if let Some(alternatives) = union(kept, &["anyOf", "oneOf"]) {
            return alternatives.iter().flat_map(|one| self.compare(one, offered, path)).collect();
        }
        if let Some(alternatives) = union(offered, &["anyOf"]) {
            return self.compare_any(kept, alternatives, path);
        }
        let (Json::Object(kept), Json::Object(offered)) = (kept, offered) else {
            return vec![format!("{} takes less than anything now: take what it took", place(path))];
        };
        let mut found = bounds::narrowed(kept, offered, &place(path));
        found.extend(narrowed_types(kept, offered, path));
        found.extend(narrowed_values(kept, offered, path));
        found.extend(self.narrowed_items(kept, offered, path));
        found.extend(self.narrowed_properties(kept, offered, path));
        found.extend(self.narrowed_others(kept, offered, path));
        found
    }

    /// Compares with alternatives, of which one must take everything. Returns the reasons of the closest.
    fn compare_any(&mut self, kept: &'a Json, alternatives: &'a [Json], path: &str) -> Vec<String> {
        let mut closest: Option<(usize, bool, Vec<String>)> = None;
        for one in alternatives {
            let found = self.compare(kept, one, path);
            if found.is_empty() {
                return found;
            }
            let rank = (found.len(), !shares_type(kept, one));
            closest = closest.filter(|closest| (closest.0, closest.1) <= rank).or(Some((rank.0, rank.1, found)));
        }
        closest
            .map_or_else(|| vec![format!("{} takes nothing now: take what it took", place(path))], |closest| closest.2)
    }

    fn narrowed_items(&mut self, kept: &'a Object, offered: &'a Object, path: &str) -> Vec<String> {
        match (kept.get("items"), offered.get("items")) {
            (_, None) => Vec::new(),
            (Some(kept), Some(offered)) if !kept.is_array() && !offered.is_array() => {
                self.descend(kept, offered, &format!("{path}/items"))
            }
            (Some(kept), Some(offered)) if same(kept, offered) => Vec::new(),
            (None, Some(offered)) if takes_anything(offered) => Vec::new(),
            _ => vec![format!("{} takes other items now: take those of the run", place(path))],
        }
    }

    fn narrowed_properties(&mut self, kept: &'a Object, offered: &'a Object, path: &str) -> Vec<String> {
        let (before, now) = (kept.get("properties"), offered.get("properties"));
        let properties = |of: Option<&'a Json>| of.and_then(Json::as_object);
        if before.is_some_and(|of| !of.is_object()) || now.is_some_and(|of| !of.is_object()) {
            return vec![other(path, "properties", before, now)];
        }
        let (before, now) = (properties(before), properties(now));
        let required = |of: &'a Object| -> BTreeSet<&'a str> {
            of.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect()
        };
        let (required_before, required_now) = (required(kept), required(offered));
        let mut found = Vec::new();
        for (name, schema) in before.into_iter().flatten() {
            let path = format!("{path}/{name}");
            let Some(here) = now.and_then(|now| now.get(name)) else {
                found.push(format!("{path} is gone: take it, even if it is ignored"));
                continue;
            };
            found.extend(self.descend(schema, here, &path));
            let defaults = (schema.get("default"), here.get("default"));
            if !equal(defaults.0, defaults.1) && !required_before.contains(&**name) {
                let (run, here) = (shown(defaults.0), shown(defaults.1));
                found.push(format!("{path} is {here} where a call leaves it out, and {run} in the run: keep that"));
            }
        }
        let is_open =
            kept.get("additionalProperties") != Some(&Json::Bool(false)) || kept.contains_key("patternProperties");
        let more =
            now.into_iter().flat_map(Object::keys).filter(|name| !before.is_some_and(|of| of.contains_key(*name)));
        for name in more.filter(|_| is_open) {
            found.push(format!(
                "{path}/{name} is new, and calls of the run may give anything under that name: use another tool for it"
            ));
        }
        for name in required_now.difference(&required_before) {
            found.push(format!("{path}/{name} is required now: make it optional"));
        }
        found.extend(self.narrowed_rest(kept, offered, path));
        found
    }

    /// Compares what objects take under names that they don't describe.
    fn narrowed_rest(&mut self, kept: &'a Object, offered: &'a Object, path: &str) -> Vec<String> {
        match (kept.get("additionalProperties"), offered.get("additionalProperties")) {
            (_, None) | (Some(Json::Bool(false)), _) => Vec::new(),
            (_, Some(now)) if takes_anything(now) => Vec::new(),
            (Some(before), Some(now)) if !takes_anything(before) => self.descend(before, now, &format!("{path}/*")),
            _ => vec![format!("{} takes no other names any more: leave it open", place(path))],
        }
    }

    fn narrowed_others(&mut self, kept: &'a Object, offered: &'a Object, path: &str) -> Vec<String> {
        let mut found = Vec::new();
        let more = offered.keys().filter(|key| !kept.contains_key(*key));
        for key in kept.keys().chain(more).map(String::as_str) {
            if COMPARED.contains(&key) || bounds::KEYS.contains(&key) || is_aside(key) {
                continue;
            }
            let (before, now) = (kept.get(key), offered.get(key));
            let is_same = match (before, now) {
                _ if FAR.contains(&key) => false,
                (Some(before), Some(now)) if same(before, now) => true,
                (Some(Json::Array(before)), Some(Json::Array(now))) if key == "anyOf" => {
                    before.iter().all(|one| self.compare_any(one, now, path).is_empty())
                }
                (Some(_), None) => REMOVABLE.contains(&key),
                _ => false,
            };
            if !is_same {
                found.push(other(path, key, before, now));
            }
        }
        found
    }
}

fn is_aside(key: &str) -> bool {
    WORDS.contains(&key) || ELSEWHERE.contains(&key)
}

/// Whether two values are the same: 3 and 3.0 are.
fn equal(one: Option<&Json>, other: Option<&Json>) -> bool {
    match (one, other) {
        (Some(Json::Number(one)), Some(Json::Number(other))) => bounds::order(one, other) == Some(Ordering::Equal),
        _ => one == other,
    }
}

/// Whether two schemas, or parts of them, are the same wherever they stand.
fn same(one: &Json, other: &Json) -> bool {
    one == other && !refers(one)
}

fn refers(schema: &Json) -> bool {
    match schema {
        Json::Object(map) => {
            map.iter().any(|(key, value)| key.ends_with("ef") && key.starts_with('$') || refers(value))
        }
        Json::Array(list) => list.iter().any(refers),
        _ => false,
    }
}

/// The schema that this one refers to, or the schema itself; `None` if the reference leads elsewhere, or more stands
/// beside it.
fn resolved<'a>(root: &'a Json, schema: &'a Json) -> Option<&'a Json> {
    let mut schema = schema;
    for _ in 0..16 {
        let Some(reference) = schema.get("$ref") else { return Some(schema) };
        if !schema.as_object()?.keys().all(|key| key == "$ref" || is_aside(key)) {
            return None;
        }
        schema = root.pointer(reference.as_str()?.strip_prefix('#')?)?;
    }
    None
}

fn takes_anything(schema: &Json) -> bool {
    match schema {
        Json::Object(map) => map.keys().all(|key| is_aside(key)),
        other => *other == Json::Bool(true),
    }
}

/// The alternatives of a schema that has nothing else.
fn union<'a>(schema: &'a Json, keys: &[&str]) -> Option<&'a [Json]> {
    let mut keywords = schema.as_object()?.iter().filter(|(key, _)| !is_aside(key));
    match (keywords.next(), keywords.next()) {
        (Some((key, Json::Array(alternatives))), None) if keys.contains(&&**key) => Some(alternatives),
        _ => None,
    }
}

/// Whether two schemas name a type that both take.
fn shares_type(kept: &Json, offered: &Json) -> bool {
    let types = |schema: &Json| schema.get("type").map(|types| names(types).into_iter().map(str::to_owned).collect());
    let (kept, offered): (Option<BTreeSet<String>>, Option<BTreeSet<String>>) = (types(kept), types(offered));
    kept.zip(offered).is_some_and(|(kept, offered)| !kept.is_disjoint(&offered))
}

fn narrowed_types(kept: &Object, offered: &Object, path: &str) -> Vec<String> {
    let Some(now) = offered.get("type") else { return Vec::new() };
    let now = names(now);
    let Some(before) = types(kept) else {
        return vec![format!("{} takes only {} now: take any type", place(path), listed(&now))];
    };
    let is_taken = |name: &&str| now.contains(name) || (*name == "integer" && now.contains("number"));
    let missing: BTreeSet<&str> = before.into_iter().filter(|name| !is_taken(name)).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    vec![format!("{} takes no {} any more: take that too", place(path), listed(&missing))]
}

/// The types that a schema admits; `None` for any.
fn types(schema: &Object) -> Option<BTreeSet<&str>> {
    let of_value = |value: &Json| match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.is_f64() => "number",
        Json::Number(_) => "integer",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    match schema.get("type") {
        Some(declared) => Some(names(declared)),
        None => values(schema).map(|values| values.iter().map(of_value).collect()),
    }
}

fn names(types: &Json) -> BTreeSet<&str> {
    match types {
        Json::Array(types) => types.iter().filter_map(Json::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    }
}

fn listed(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(" or ")
}

/// The only values that a schema admits; `None` if it doesn't list them.
fn values(schema: &Object) -> Option<&[Json]> {
    match (schema.get("enum"), schema.get("const")) {
        (Some(Json::Array(values)), _) => Some(values),
        (_, Some(value)) => Some(std::slice::from_ref(value)),
        _ => None,
    }
}

fn narrowed_values(kept: &Object, offered: &Object, path: &str) -> Vec<String> {
    if offered.contains_key("enum") && offered.contains_key("const") {
        let is_same = kept.get("enum") == offered.get("enum") && kept.get("const") == offered.get("const");
        return if is_same { Vec::new() } else { vec![other(path, "enum", kept.get("enum"), offered.get("enum"))] };
    }
    let (before, now) = (values(kept), values(offered));
    match (before, now) {
        (_, None) => Vec::new(),
        (None, Some(_)) => vec![format!("{} takes only certain values now: take all of them", place(path))],
        (Some(before), Some(now)) => {
            let missing: Vec<String> = before
                .iter()
                .filter(|one| !now.iter().any(|now| equal(Some(one), Some(now))))
                .map(|one| shown(Some(one)))
                .collect();
            if missing.is_empty() {
                return Vec::new();
            }
            vec![format!("{} takes no {} any more: take that too", place(path), missing.join(" or "))]
        }
    }
}

/// A keyword that differs, and isn't known to take more now.
fn other(path: &str, key: &str, kept: Option<&Json>, offered: Option<&Json>) -> String {
    if key == READS {
        let words = |words: Option<&Json>| words.and_then(Json::as_str).unwrap_or("it is written").to_owned();
        let (kept, offered) = (words(kept), words(offered));
        return format!("{} is read as {offered} now, and as {kept} in the run: keep that", place(path));
    }
    let (kept, offered) = (shown(kept), shown(offered));
    format!("{} has another '{key}', {offered} and {kept} in the run: keep that", place(path))
}

fn shown(value: Option<&Json>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| truncate(&value.to_string(), SHORT))
}

fn place(path: &str) -> String {
    if path.is_empty() { "the whole of its arguments".to_owned() } else { path.to_owned() }
}
