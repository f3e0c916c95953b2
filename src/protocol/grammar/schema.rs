//! JSON Schema as rules: a value that the rules admit is one that the schema admits.
//!
//! Objects have the named properties in the order of the schema; what is not required may be left out. `anyOf` and
//! `oneOf` are alternatives (`oneOf` is taken at its word that they exclude each other), `allOf` and `$ref` are merged.
//! Where a schema can be met in ways that a grammar can't say, it says fewer. Not looked at, and so left to the check
//! of the arguments: `not`, `if`, `contains`, `patternProperties`, `dependentSchemas`, `unevaluated…`, a pattern that
//! is not translated, items that are the same in an array that wants two different ones, and a key that the schema does
//! not name and that is written twice.

use super::bounds;
use super::merge::{merge, names};
use super::number::{self, Limits};
use super::pattern;
use super::text::{self, First, Level, spaced};
use super::tree::{Node, Rules};
use jsonschema::{Draft, Validator};
use serde_json::{Map, Value as Json, json};
use std::collections::HashMap;

/// Writes the schema of one tool as rules.
pub(super) struct Converter<'a> {
    pub(super) rules: &'a mut Rules,
    pub(super) level: Level,
    pub(super) first: First,
    /// What references lead into.
    root: &'a Json,
    /// The references that are being followed.
    following: Vec<String>,
    /// What references led to, by the references that were being followed and the arrays around.
    known: HashMap<(Vec<String>, usize), Node>,
    /// Arrays, and objects without named keys, around the present place.
    nesting: usize,
    depth: usize,
    work: usize,
}

impl<'a> Converter<'a> {
    pub(super) fn new(rules: &'a mut Rules, level: Level, first: First, root: &'a Json) -> Self {
        Self { rules, level, first, root, following: Vec::new(), known: HashMap::new(), nesting: 0, depth: 0, work: 0 }
    }

    /// The object that a call of the tool `name` takes; `None` where no call can be right.
    pub(super) fn arguments(mut self, name: &str) -> Option<Node> {
        let mut map = match self.root {
            Json::Object(map) => map.clone(),
            _ => Map::new(),
        };
        // An object it is, whatever the schema leaves open.
        map.entry("type").or_insert_with(|| Json::from("object"));
        let node = self.value(&Json::Object(map), name)?;
        Some(self.rules.rule(&format!("args-{name}"), node))
    }

    /// An object that a call of whatever tool takes.
    pub(super) fn any_arguments(mut self) -> Node {
        let value = self.open(bounds::OPEN_DEPTH);
        let node = self.entries(None, &value, 0, bounds::ARGUMENTS);
        self.rules.rule("args", node)
    }

    /// Whether there is room for what is not required.
    pub(super) fn has_room(&self) -> bool {
        self.work < bounds::WORK
    }

    /// A key of this schema.
    pub(super) fn key(&mut self, schema: &Json) -> Option<Node> {
        self.value(&json!({"allOf": [schema, {"type": "string"}]}), "key")
    }

    /// A value of this schema; `None` where there is none, or none of a bounded depth.
    pub(super) fn value(&mut self, schema: &Json, hint: &str) -> Option<Node> {
        let map = match schema {
            Json::Bool(true) => return Some(self.open(bounds::OPEN_DEPTH)),
            Json::Object(map) => map,
            _ => return None,
        };
        self.work += 1;
        if self.depth >= bounds::DEPTH || self.work > bounds::MOST_WORK {
            return None;
        }
        let key = self.reference(map);
        if let Some(node) = key.as_ref().and_then(|key| self.known.get(key)) {
            return Some(node.clone());
        }
        let followed = self.following.len();
        self.depth += 1;
        let node = self.flat(map).and_then(|flat| self.alternatives(&flat, hint));
        self.depth -= 1;
        self.following.truncate(followed);
        match (key, node) {
            (Some(key), Some(node)) => {
                let node = self.rules.rule(hint, node);
                self.known.insert(key, node.clone());
                Some(node)
            }
            (_, node) => node,
        }
    }

    /// What the rules for a schema that is a mere reference depend on.
    fn reference(&self, map: &Map<String, Json>) -> Option<(Vec<String>, usize)> {
        let target = map.get("$ref")?.as_str()?;
        if map.keys().any(|key| !["$ref", "title", "description", "default"].contains(&key.as_str())) {
            return None;
        }
        let mut key = self.following.clone();
        key.sort_unstable();
        key.push(target.to_owned());
        Some((key, self.nesting))
    }

    /// A value inside an array, or under a key that the schema does not name.
    pub(super) fn nested(&mut self, schema: &Json, hint: &str) -> Option<Node> {
        self.nesting += 1;
        let node = self.value(schema, hint);
        self.nesting -= 1;
        node
    }

    /// How many entries or items there may be here.
    pub(super) fn room(&self, bounds: &[u32]) -> u32 {
        bounds.get(self.nesting).or(bounds.last()).copied().unwrap_or(1)
    }

    /// The schema with its references and `allOf` merged in.
    fn flat(&mut self, map: &Map<String, Json>) -> Option<Map<String, Json>> {
        let mut flat = map.clone();
        let (target, all) = (flat.remove("$ref"), flat.remove("allOf"));
        if let Some(target) = target.as_ref().and_then(Json::as_str) {
            if self.following.iter().filter(|followed| *followed == target).count() >= bounds::RECURSION {
                return None;
            }
            self.following.push(target.to_owned());
            let root = self.root;
            if target == "#" {
                self.add(&mut flat, root)?;
            } else if let Some(schema) = target.strip_prefix('#').and_then(|pointer| root.pointer(&decoded(pointer))) {
                self.add(&mut flat, schema)?;
            }
        }
        for part in all.as_ref().and_then(Json::as_array).into_iter().flatten() {
            self.add(&mut flat, part)?;
        }
        Some(flat)
    }

    fn add(&mut self, flat: &mut Map<String, Json>, part: &Json) -> Option<()> {
        match part {
            Json::Object(part) => {
                self.work += 1;
                self.depth += 1;
                let part = if self.depth < bounds::DEPTH { self.flat(part) } else { None };
                self.depth -= 1;
                merge(flat, &part?);
                Some(())
            }
            Json::Bool(true) => Some(()),
            _ => None,
        }
    }

    fn alternatives(&mut self, flat: &Map<String, Json>, hint: &str) -> Option<Node> {
        for keyword in ["anyOf", "oneOf"] {
            let Some(Json::Array(branches)) = flat.get(keyword) else { continue };
            if branches.is_empty() {
                continue;
            }
            let mut base = flat.clone();
            base.remove(keyword);
            let mut nodes = Vec::new();
            for branch in branches {
                // The branch comes first: what it says of a value is nearer than what stands around it.
                let mut both = Map::new();
                both.insert("allOf".to_owned(), Json::from(vec![branch.clone(), Json::Object(base.clone())]));
                nodes.extend(self.value(&Json::Object(both), hint));
            }
            return Node::choice(nodes);
        }
        let types = flat.get("type").map(names);
        if let Some(values) = flat.get("const").map(std::slice::from_ref) {
            return self.listed(values, flat, types.as_deref());
        }
        if let Some(Json::Array(values)) = flat.get("enum") {
            return self.listed(values, flat, types.as_deref());
        }
        let types = types.or_else(|| supposed(flat));
        let Some(types) = types else { return Some(self.open(bounds::OPEN_DEPTH)) };
        let both = types.iter().any(|name| name == "number");
        let kinds = types.iter().filter(|name| !both || *name != "integer");
        let nodes: Vec<Node> = kinds.filter_map(|kind| self.typed(kind, flat, hint)).collect();
        Node::choice(nodes)
    }

    fn typed(&mut self, kind: &str, flat: &Map<String, Json>, hint: &str) -> Option<Node> {
        Some(match kind {
            "null" => Node::literal("null"),
            "boolean" => Node::Choice(vec![Node::literal("true"), Node::literal("false")]),
            "integer" => {
                let body = number::integer(Limits::of(flat))?;
                self.rules.word("integer", body)
            }
            "number" => {
                let body = number::number(Limits::of(flat))?;
                self.rules.word("number", body)
            }
            "string" => self.string(flat)?,
            "array" => return self.array(flat, hint),
            "object" => return self.object(flat, hint),
            _ => return None,
        })
    }

    /// The values of an `enum` that the rest of the schema admits.
    fn listed(&mut self, values: &[Json], flat: &Map<String, Json>, types: Option<&[String]>) -> Option<Node> {
        let named = |value: &&Json| types.is_none_or(|types| types.iter().any(|name| is_a(value, name)));
        let known = ["type", "enum", "const", "title", "description", "default", "examples", "$defs", "definitions"];
        let more = flat.keys().any(|key| !known.contains(&key.as_str()));
        let rest =
            if more || (flat.contains_key("enum") && flat.contains_key("const")) { self.whole(flat) } else { None };
        let fits = |value: &&Json| rest.as_ref().is_none_or(|rest| rest.is_valid(value));
        let values = values.iter().filter(named).filter(fits);
        Node::choice(values.map(|value| self.level.literal(&spaced(value))))
    }

    /// The check of a merged schema, on its own; `None` where it leads elsewhere.
    fn whole(&self, flat: &Map<String, Json>) -> Option<Validator> {
        let mut schema = flat.clone();
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = self.root.get(key) {
                schema.insert(key.to_owned(), definitions.clone());
            }
        }
        let schema = Json::Object(schema);
        jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(false).build(&schema).ok()
    }

    fn string(&mut self, flat: &Map<String, Json>) -> Option<Node> {
        let limit =
            |key: &str| flat.get(key).and_then(Json::as_u64).map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        let min = limit("minLength").unwrap_or(0);
        let max = limit("maxLength").unwrap_or(u32::MAX);
        if min > max || min > bounds::MOST {
            return None;
        }
        // A string that must be long has room to be.
        let max = max.min(bounds::STRING.max(min));
        let of = |key: &str| flat.get(key).and_then(Json::as_str);
        let matched = of("pattern").and_then(|wanted| pattern::translate(wanted, min, max));
        let format = || of("format").and_then(text::format);
        let content = matched.or_else(|| pattern::translate(&format()?, min, max));
        let hint = if content.is_some() { "pattern" } else { "string" };
        let content = content.unwrap_or_else(|| text::free(self.first, min, max));
        Some(self.rules.word(hint, self.level.quoted(content)))
    }

    /// Any value of at most this depth, or of less where it is deep inside already.
    fn open(&mut self, depth: u32) -> Node {
        let depth = depth.min(bounds::OPEN_DEPTH.saturating_sub(u32::try_from(self.nesting).unwrap_or(u32::MAX)));
        let text = self.level.quoted(text::free(self.first, 0, bounds::LOOSE_STRING));
        let text = self.rules.word("string", text);
        self.open_or(text, depth)
    }

    /// `string` or any other value of at most this depth.
    pub(super) fn open_or(&mut self, string: Node, depth: u32) -> Node {
        let mut kinds = vec![string];
        kinds.extend(number::number(Limits::default()).map(|number| self.rules.word("number", number)));
        kinds.extend(["true", "false", "null"].map(Node::literal));
        if depth > 0 {
            self.nesting += 1;
            let inner = self.open(depth - 1);
            self.nesting -= 1;
            let room = self.room(&bounds::ENTRIES);
            kinds.push(items(vec![], Some(inner.clone()), 0, room));
            kinds.push(self.entries(None, &inner, 0, room));
        }
        let node = Node::choice(kinds).unwrap_or_else(Node::empty);
        self.rules.rule(&format!("any-{depth}"), node)
    }

    fn array(&mut self, flat: &Map<String, Json>, hint: &str) -> Option<Node> {
        let limit =
            |key: &str| flat.get(key).and_then(Json::as_u64).map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        let (mut min, mut max) = (limit("minItems").unwrap_or(0), limit("maxItems").unwrap_or(u32::MAX));
        if flat.get("contains").is_some() {
            min = min.max(1);
        }
        if min > max || min > bounds::MOST {
            return None;
        }
        if flat.get("uniqueItems").is_some_and(|flag| flag == true) {
            max = max.min(min.max(1));
        }
        let hint = format!("{hint}-item");
        // Before draft 2020-12 a list of `items` was what `prefixItems` is.
        let (listed, rest) = match (flat.get("prefixItems"), flat.get("items")) {
            (Some(Json::Array(listed)), rest) => (listed.as_slice(), rest),
            (None, Some(Json::Array(listed))) => (listed.as_slice(), flat.get("additionalItems")),
            (_, rest) => ([].as_slice(), rest),
        };
        let mut first = Vec::new();
        for schema in listed {
            match self.nested(schema, &hint) {
                Some(node) => first.push(node),
                None => break,
            }
        }
        let cut = first.len() < listed.len();
        let rest = match rest {
            _ if cut => None,
            // A list of places stands for the whole, unless more is asked for.
            None if !listed.is_empty() && u64::from(min) <= listed.len() as u64 => None,
            None => self.nested(&Json::Bool(true), &hint),
            Some(schema) if self.has_room() || min > 0 => self.nested(schema, &hint),
            Some(_) => None,
        };
        let given = u32::try_from(first.len()).unwrap_or(u32::MAX);
        let most = if rest.is_some() { max.min(self.room(&bounds::ITEMS).max(min).max(given)) } else { max.min(given) };
        let rest = rest.map(|node| self.rules.rule(&hint, node));
        (min <= most).then(|| items(first, rest, min, most))
    }
}

/// An array of `min` to `max` items: those listed, then `rest`.
fn items(listed: Vec<Node>, rest: Option<Node>, min: u32, max: u32) -> Node {
    let given = u32::try_from(listed.len()).unwrap_or(u32::MAX);
    let mut tail = Node::empty();
    if let Some(item) = rest.filter(|_| max > given) {
        let (min, max) = (min.saturating_sub(given), max - given);
        tail = if given > 0 {
            Node::repeat(Node::sequence([Node::literal(", "), item]), min, max)
        } else {
            let more = Node::sequence([Node::literal(", "), item.clone()]);
            let some = Node::sequence([item, Node::repeat(more, min.saturating_sub(1), max - 1)]);
            if min == 0 { Node::optional(some) } else { some }
        };
    }
    // From the last to the first, so that each may be the last one.
    for (at, item) in listed.into_iter().enumerate().rev() {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        if at >= max {
            continue;
        }
        let comma = Node::literal(if at > 0 { ", " } else { "" });
        let node = Node::sequence([comma, item, tail]);
        tail = if at < min { node } else { Node::optional(node) };
    }
    Node::sequence([Node::literal("["), tail, Node::literal("]")])
}

/// A JSON pointer of a reference, which is written as part of a URI.
fn decoded(pointer: &str) -> String {
    if !pointer.contains('%') {
        return pointer.to_owned();
    }
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digits = [ahead.next(), ahead.next()].map(|digit| digit.and_then(|digit| char::from(digit).to_digit(16)));
        match (byte, digits) {
            (b'%', [Some(high), Some(low)]) => {
                bytes.extend(u8::try_from(high * 16 + low));
                rest = ahead;
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| pointer.to_owned())
}

/// The type that keywords of one type are about, where the schema names none.
fn supposed(flat: &Map<String, Json>) -> Option<Vec<String>> {
    let has = |keys: &[&str]| keys.iter().any(|key| flat.contains_key(*key));
    let kind = if has(&["properties", "required", "additionalProperties", "patternProperties", "propertyNames"]) {
        "object"
    } else if has(&["items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"]) {
        "array"
    } else if has(&["pattern", "minLength", "maxLength", "format"]) {
        "string"
    } else if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
        "number"
    } else {
        return None;
    };
    Some(vec![kind.to_owned()])
}

fn is_a(value: &Json, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}
