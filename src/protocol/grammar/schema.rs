//! JSON Schema as rules: what the schema admits can be written, with a blank after each colon and comma and no other.
//!
//! Objects have the named properties in the order of the schema, then those that it does not name; what is not required
//! may be left out. `anyOf` and `oneOf` are alternatives, `allOf` and `$ref` are merged. What a grammar can't say is left
//! to the check of the arguments: `not`, `if`, `contains`, `uniqueItems`, `multipleOf`, `dependentSchemas`,
//! `unevaluated…`, `oneOf` that excludes, a pattern that is not translated, lengths beside a pattern of more than one
//! kind of character, a key that is written twice.

use super::bounds::{self, Bounds};
use super::chars::CharSet;
use super::json_string::{Level, free, spaced};
use super::merge_schemas::{merge, names};
use super::number::{self, Limits};
use super::pattern;
use super::rules::{Node, Rules};
use jsonschema::{Draft, Validator};
use serde_json::{Map, Value as Json, json};
use std::collections::HashMap;

/// Keywords that say nothing of the value.
const ANNOTATIONS: [&str; 11] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
];

/// Marks the object of a call: it has no other names than those that are known, unless the schema says so.
pub(in crate::protocol) const ARGUMENTS: &str = "callslip-arguments";

/// Writes the schema of one tool as rules.
pub(in crate::protocol) struct Converter<'a> {
    pub(in crate::protocol) rules: &'a mut Rules,
    pub(in crate::protocol) level: Level,
    pub(in crate::protocol) bounds: Option<Bounds>,
    /// What may stand in place of any value.
    reference: Option<Node>,
    /// What references lead into.
    root: &'a Json,
    /// What schemas have become, by their text; of one that is being converted, the rule that it will be.
    known: HashMap<String, Known>,
    /// Whether a schema was met inside itself.
    recursive: bool,
    depth: usize,
    work: usize,
}

enum Known {
    Open { rule: super::rules::RuleId, used: bool },
    Done(Option<Node>),
}

impl<'a> Converter<'a> {
    pub(in crate::protocol) fn new(rules: &'a mut Rules, level: Level, bounds: Option<Bounds>, root: &'a Json) -> Self {
        Self { rules, level, bounds, reference: None, root, known: HashMap::new(), recursive: false, depth: 0, work: 0 }
    }

    /// With something that may stand in place of any value inside the arguments.
    pub(in crate::protocol) fn with_reference(mut self, reference: Option<Node>) -> Self {
        self.reference = reference;
        self
    }

    /// The object that a call of the tool `name` takes; `None` where the schema admits none.
    pub(in crate::protocol) fn arguments(mut self, name: &str) -> Option<Node> {
        let mut map = match self.root {
            Json::Object(map) => map.clone(),
            _ => Map::new(),
        };
        // An object it is, whatever the schema leaves open, and of the names that it knows.
        map.entry("type").or_insert_with(|| Json::from("object"));
        map.insert(ARGUMENTS.to_owned(), Json::Bool(true));
        let node = self.plain(&map, name)?;
        // Only what holds itself may never come to an end.
        let made = !self.recursive || self.rules.can_be_made(&node);
        made.then(|| self.rules.rule(&format!("args-{name}"), node))
    }

    /// A value of this schema, if it can come to an end.
    pub(in crate::protocol) fn finite(mut self, schema: &Json, hint: &str) -> Option<Node> {
        let node = self.value(schema, hint)?;
        let made = !self.recursive || self.rules.can_be_made(&node);
        made.then_some(node)
    }

    /// An object that a call of whatever tool takes.
    pub(in crate::protocol) fn any_arguments(mut self) -> Node {
        let value = self.any();
        let node = self.entries(None, &value, 0, None);
        self.rules.rule("args", node)
    }

    /// A key of this schema.
    pub(in crate::protocol) fn key(&mut self, schema: &Json) -> Option<Node> {
        self.plain(json!({"allOf": [schema, {"type": "string"}]}).as_object()?, "key")
    }

    /// A value of this schema; `None` if the schema has none.
    pub(in crate::protocol) fn value(&mut self, schema: &Json, hint: &str) -> Option<Node> {
        let map = match schema {
            Json::Bool(true) => return Some(self.any()),
            Json::Object(map) if map.keys().all(|key| ANNOTATIONS.contains(&key.as_str())) => return Some(self.any()),
            Json::Object(map) => map,
            _ => return None,
        };
        let key = schema.to_string();
        match self.known.get_mut(&key) {
            Some(Known::Done(node)) => return node.clone(),
            Some(Known::Open { rule, used }) => {
                *used = true;
                self.recursive = true;
                return Some(Node::Rule(*rule));
            }
            None => {}
        }
        self.work += 1;
        if self.depth >= bounds::DEPTH || self.work > bounds::WORK {
            return Some(self.any());
        }
        let rule = self.rules.reserve();
        self.known.insert(key.clone(), Known::Open { rule, used: false });
        self.depth += 1;
        let node = self.plain(map, hint);
        self.depth -= 1;
        let node = match (node, self.reference.clone()) {
            (Some(node), Some(reference)) => Node::choice([node, reference]),
            (node, _) => node,
        };
        let node = match (self.known.get(&key), node) {
            (Some(Known::Open { used: true, .. }), node) => {
                self.rules.define(rule, hint, node.unwrap_or(Node::Choice(Vec::new())), false);
                Some(Node::Rule(rule))
            }
            (_, Some(node @ (Node::Sequence(_) | Node::Choice(_)))) if map.contains_key("$ref") => {
                Some(self.rules.rule(hint, node))
            }
            (_, node) => node,
        };
        self.known.insert(key, Known::Done(node.clone()));
        node
    }

    fn plain(&mut self, map: &Map<String, Json>, hint: &str) -> Option<Node> {
        let flat = self.flat(map, &mut Vec::new())?;
        self.alternatives(&flat, hint)
    }

    /// The schema with its references and `allOf` merged in. `following` are the references that led here.
    fn flat(&mut self, map: &Map<String, Json>, following: &mut Vec<String>) -> Option<Map<String, Json>> {
        let mut flat = map.clone();
        let (target, all) = (flat.remove("$ref"), flat.remove("allOf"));
        if let Some(target) = target.as_ref().and_then(Json::as_str) {
            // A schema that is nothing but itself says nothing.
            if !following.iter().any(|followed| followed == target) && following.len() < bounds::DEPTH {
                following.push(target.to_owned());
                let root = self.root;
                if target == "#" {
                    self.add(&mut flat, root, following)?;
                } else if let Some(schema) =
                    target.strip_prefix('#').and_then(|pointer| root.pointer(&decoded(pointer)))
                {
                    self.add(&mut flat, schema, following)?;
                }
                following.pop();
            }
        }
        for part in all.as_ref().and_then(Json::as_array).into_iter().flatten() {
            self.add(&mut flat, part, following)?;
        }
        Some(flat)
    }

    fn add(&mut self, flat: &mut Map<String, Json>, part: &Json, following: &mut Vec<String>) -> Option<()> {
        match part {
            Json::Object(part) => {
                self.work += 1;
                if self.depth < bounds::DEPTH && self.work <= bounds::WORK {
                    self.depth += 1;
                    let part = self.flat(part, following);
                    self.depth -= 1;
                    merge(flat, &part?);
                }
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
            base.retain(|key, _| !ANNOTATIONS.contains(&key.as_str()) && key != "discriminator");
            let mut nodes = Vec::new();
            for branch in branches {
                // The branch comes first: what it says of a value is nearer than what stands around it.
                let both = json!({"allOf": [branch, &base]});
                nodes.extend(self.value(if base.is_empty() { branch } else { &both }, hint));
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
        let Some(types) = types else { return Some(self.any()) };
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
                let body = number::integer(Limits::of(flat), self.bounds.is_some())?;
                self.rules.word("integer", body)
            }
            "number" => {
                let body = number::number(Limits::of(flat), self.bounds.is_some())?;
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
        let said =
            |key: &String| ANNOTATIONS.contains(&key.as_str()) || ["type", "enum", "const"].contains(&key.as_str());
        let more = flat.keys().any(|key| !said(key));
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
        let (min, max) = (limit(flat, "minLength").unwrap_or(0), limit(flat, "maxLength"));
        if max.is_some_and(|max| min > max) {
            return None;
        }
        let (min, max) = (min.min(bounds::MOST), max.filter(|max| *max <= bounds::MOST));
        let bound = self.bounds.map(|bounds| bounds.string);
        let wanted = flat.get("pattern").and_then(Json::as_str);
        let matched = wanted.and_then(|wanted| pattern::translate(wanted, min, max, bound));
        let hint = if matched.is_some() { "pattern" } else { "string" };
        // A string that must be long has room to be.
        let content = matched.unwrap_or_else(|| match bound.map(|bound| bound.max(min)) {
            Some(bound) if max.is_none_or(|max| max >= bound) => Node::bounded(Node::Class(CharSet::all()), min, bound),
            _ => free(min, max),
        });
        Some(self.rules.word(hint, self.level.quoted(content)))
    }

    /// `string`, or any value of another type.
    pub(in crate::protocol) fn any_or(&mut self, string: Node) -> Node {
        let any = self.any();
        let others = match &any {
            Node::Rule(id) => self.rules.get(*id).map(|rule| rule.body.clone()),
            _ => None,
        };
        let own = self.string(&Map::new());
        match others {
            Some(Node::Choice(kinds)) => {
                let kinds = kinds.into_iter().filter(|kind| Some(kind) != own.as_ref());
                Node::choice([string].into_iter().chain(kinds)).unwrap_or(any)
            }
            _ => any,
        }
    }

    pub(in crate::protocol) fn any(&mut self) -> Node {
        if let Some(known) = self.rules.shared.get("any") {
            return known.clone();
        }
        let rule = self.rules.reserve();
        let any = Node::Rule(rule);
        self.rules.shared.insert("any", any.clone());
        let string = self.string(&Map::new());
        let number = number::number(Limits::default(), self.bounds.is_some());
        let number = number.map(|number| self.rules.word("number", number));
        let plain = ["true", "false", "null"].map(Node::literal);
        let kinds = string.into_iter().chain(number).chain(plain);
        let many = [self.items(vec![], Some(any.clone()), 0, None), self.entries(None, &any, 0, None)];
        let body = Node::choice(kinds.chain(many)).unwrap_or_else(Node::empty);
        self.rules.define(rule, "any", body, false);
        any
    }

    fn array(&mut self, flat: &Map<String, Json>, hint: &str) -> Option<Node> {
        let (mut min, max) = (limit(flat, "minItems").unwrap_or(0), limit(flat, "maxItems"));
        if flat.get("contains").is_some() && limit(flat, "minContains") != Some(0) {
            min = min.max(1);
        }
        if max.is_some_and(|max| min > max) {
            return None;
        }
        let (min, max) = (min.min(bounds::MOST), max.filter(|max| *max <= bounds::MOST));
        let hint = format!("{hint}-item");
        // Before draft 2020-12 a list of `items` was what `prefixItems` is.
        let (listed, rest) = match (flat.get("prefixItems"), flat.get("items")) {
            (Some(Json::Array(listed)), rest) => (listed.as_slice(), rest),
            (None, Some(Json::Array(listed))) => (listed.as_slice(), flat.get("additionalItems")),
            (_, rest) => ([].as_slice(), rest),
        };
        let mut first = Vec::new();
        for schema in listed {
            match self.value(schema, &hint) {
                Some(node) => first.push(node),
                None => break,
            }
        }
        let is_partial = first.len() < listed.len();
        let rest = match rest {
            _ if is_partial => None,
            None => Some(self.any()),
            Some(schema) => self.value(schema, &hint),
        };
        let given = u32::try_from(first.len()).unwrap_or(u32::MAX);
        let most = if rest.is_some() { max } else { Some(max.map_or(given, |max| max.min(given))) };
        let rest = rest.map(|node| self.rules.rule(&hint, node));
        most.is_none_or(|most| min <= most).then(|| self.items(first, rest, min, most))
    }

    /// `node` from `min` to `max` times, one less than there are items: the first stands before them.
    pub(in crate::protocol) fn many(&self, node: Node, min: u32, max: Option<u32>, ahead: u32) -> Node {
        let bound = self.bounds.map(|bounds| bounds.items.max(min.saturating_add(ahead)).saturating_sub(ahead).max(1));
        match bound {
            Some(bound) if max.is_none_or(|max| max > bound) => Node::bounded(node, min, bound),
            _ => Node::repeat(node, min, max),
        }
    }

    /// An array of `min` to `max` items: those listed, then `rest`.
    fn items(&self, listed: Vec<Node>, rest: Option<Node>, min: u32, max: Option<u32>) -> Node {
        let given = u32::try_from(listed.len()).unwrap_or(u32::MAX);
        let mut tail = Node::empty();
        if let Some(item) = rest.filter(|_| max.is_none_or(|max| max > given)) {
            let (min, max) = (min.saturating_sub(given), max.map(|max| max - given));
            let more = Node::sequence([Node::literal(", "), item.clone()]);
            tail = if given > 0 {
                self.many(more, min, max, given)
            } else {
                let more = self.many(more, min.saturating_sub(1), max.map(|max| max - 1), 1);
                let some = Node::sequence([item, more]);
                if min == 0 { Node::optional(some) } else { some }
            };
        }
        // From the last to the first, so that each may be the last one.
        for (at, item) in listed.into_iter().enumerate().rev() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            if max.is_some_and(|max| at >= max) {
                continue;
            }
            let comma = Node::literal(if at > 0 { ", " } else { "" });
            let node = Node::sequence([comma, item, tail]);
            tail = if at < min { node } else { Node::optional(node) };
        }
        Node::sequence([Node::literal("["), tail, Node::literal("]")])
    }
}

fn limit(flat: &Map<String, Json>, key: &str) -> Option<u32> {
    let value = flat.get(key).and_then(Json::as_f64).filter(|value| *value >= 0.0)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, and so it should")]
    Some(value as u32)
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
    } else if has(&["pattern", "minLength", "maxLength"]) {
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
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|value| value.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}
