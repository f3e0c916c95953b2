//! Objects: named properties in the order of the schema, then keys that it does not name.

use super::bounds;
use super::schema::Converter;
use super::text::{First, free};
use super::tree::Node;
use serde_json::{Map, Value as Json};

/// A property of an object, as it is written, with its key.
struct Member {
    name: String,
    key: String,
    value: Node,
    required: bool,
}

impl Converter<'_> {
    pub(super) fn object(&mut self, flat: &Map<String, Json>, hint: &str) -> Option<Node> {
        let limit = |key: &str| flat.get(key).and_then(Json::as_u64);
        let none = Map::new();
        let properties = flat.get("properties").and_then(Json::as_object).unwrap_or(&none);
        let strings = |list: &Json| -> Vec<String> {
            list.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
        };
        let required = flat.get("required").map(strings).unwrap_or_default();
        let additional = flat.get("additionalProperties");
        let beyond = required.iter().filter(|name| !properties.contains_key(*name)).map(|name| (name, additional));
        let all = properties.iter().map(|(name, schema)| (name, Some(schema))).chain(beyond);
        let mut members: Vec<Member> = Vec::new();
        for (name, schema) in all {
            let needed = required.contains(name);
            if members.iter().any(|member| member.name == *name) || (!needed && !self.has_room()) {
                continue;
            }
            let value = self.value(schema.unwrap_or(&Json::Bool(true)), &format!("{hint}-{name}"));
            let Some(value) = value else {
                if needed {
                    return None;
                }
                continue;
            };
            let key = Json::from(name.as_str()).to_string();
            members.push(Member { name: name.clone(), key, value, required: needed });
        }
        if members.is_empty() {
            let (min, max) = (limit("minProperties").unwrap_or(0), limit("maxProperties").unwrap_or(u64::MAX));
            return self.map(flat, min, max, hint);
        }
        bound(&mut members, limit("minProperties"), limit("maxProperties"))?;
        let together = flat.get("dependentRequired").and_then(Json::as_object);
        match together.filter(|together| !together.is_empty()) {
            None => Some(self.members(&members, hint)),
            Some(together) => {
                let mut names: Vec<String> = together.keys().cloned().collect();
                names.extend(together.values().flat_map(strings));
                // Either nothing that something else hangs on, or everything together.
                let hung = |member: &&Member| together.contains_key(&member.name);
                let (on, off): (Vec<&Member>, Vec<&Member>) = members.iter().partition(hung);
                let off = on.iter().all(|member| !member.required).then(|| self.chain(&off, hint, &[]));
                let all: Vec<&Member> = members.iter().collect();
                let inside = names.iter().all(|name| all.iter().any(|member| member.name == *name));
                let all = inside.then(|| self.chain(&all, hint, &names));
                Node::choice(off.into_iter().chain(all))
            }
        }
    }

    fn members(&mut self, members: &[Member], hint: &str) -> Node {
        let members: Vec<&Member> = members.iter().collect();
        self.chain(&members, hint, &[])
    }

    /// The members in their order; a comma stands before each but the first that is there.
    fn chain(&mut self, members: &[&Member], hint: &str, forced: &[String]) -> Node {
        let pair = |member: &Member, comma: &str| {
            let key = self.level.literal(&format!("{comma}{}: ", member.key));
            Node::sequence([key, member.value.clone()])
        };
        let must = |member: &Member| member.required || forced.contains(&member.name);
        let mut heads = Vec::new();
        let mut tail = Node::empty();
        // From the last to the first: `tail` is what may follow this member, `heads` are the ways to begin.
        let pairs: Vec<(Node, Node, bool)> =
            members.iter().map(|member| (pair(member, ""), pair(member, ", "), must(member))).collect();
        for (first, later, needed) in pairs.into_iter().rev() {
            if needed {
                heads.clear();
            }
            heads.push(Node::sequence([first, tail.clone()]));
            let later = if needed { later } else { Node::optional(later) };
            tail = Node::sequence([later, tail]);
            if members.len() > 2 && !tail_is_small(&tail) {
                tail = self.rules.rule(&format!("{hint}-rest"), tail);
            }
        }
        let any = members.iter().any(|member| must(member));
        heads.reverse();
        let body = Node::choice(heads).unwrap_or_else(Node::empty);
        let body = if any { body } else { Node::optional(body) };
        Node::sequence([self.level.literal("{"), body, self.level.literal("}")])
    }

    /// An object whose keys the schema does not name.
    fn map(&mut self, flat: &Map<String, Json>, min: u64, max: u64, hint: &str) -> Option<Node> {
        let closed = Json::Bool(false);
        let named = flat.contains_key("properties") || flat.contains_key("patternProperties");
        // Without a word about other keys an object with named ones has no others.
        let schema = match flat.get("additionalProperties") {
            None if named => &closed,
            None => &Json::Bool(true),
            Some(schema) => schema,
        };
        let (min, max) = (u32::try_from(min).ok()?, u32::try_from(max).unwrap_or(u32::MAX));
        let value = if *schema == false || max == 0 { None } else { self.nested(schema, &format!("{hint}-value")) };
        let Some(value) = value else {
            return (min == 0).then(|| self.level.literal("{}"));
        };
        let key = flat.get("propertyNames").and_then(|schema| self.key(schema));
        let max = max.min(self.room(&bounds::ENTRIES).max(min));
        (min <= max).then(|| self.entries(key, &value, min, max))
    }

    /// `min` to `max` entries, each with a key of its own choice.
    pub(super) fn entries(&mut self, key: Option<Node>, value: &Node, min: u32, max: u32) -> Node {
        let key = key.unwrap_or_else(|| {
            let key = self.level.quoted(free(First::Any, 1, bounds::KEY));
            self.rules.word("key", key)
        });
        let entry = Node::sequence([key, Node::literal(": "), value.clone()]);
        let entry = self.rules.rule("entry", entry);
        let more = Node::repeat(Node::sequence([Node::literal(", "), entry.clone()]), min.saturating_sub(1), max - 1);
        let some = Node::sequence([entry, more]);
        let some = if min == 0 { Node::optional(some) } else { some };
        Node::sequence([self.level.literal("{"), some, self.level.literal("}")])
    }
}

/// Whether writing a tail out is no longer than a rule's name.
fn tail_is_small(tail: &Node) -> bool {
    matches!(tail, Node::Rule(_) | Node::Literal(_))
}

/// Makes the first members required, or drops the last, until their number fits; `None` where it can't.
fn bound(members: &mut Vec<Member>, min: Option<u64>, max: Option<u64>) -> Option<()> {
    let count = |members: &[Member]| members.iter().filter(|member| member.required).count() as u64;
    let (min, max) = (min.unwrap_or(0), max.unwrap_or(u64::MAX));
    while count(members) < min {
        members.iter_mut().find(|member| !member.required)?.required = true;
    }
    while members.len() as u64 > max {
        let last = members.iter().rposition(|member| !member.required)?;
        members.remove(last);
    }
    Some(())
}
