//! JSON strings: what stands between the quotes, written for its place.

use super::bounds;
use super::chars::CharSet;
use super::tree::{Node, Rules};
use serde_json::Value as Json;

/// Where JSON is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// In the reply itself.
    Plain,
    /// In a string of the reply's JSON (react's `args`): every quote and backslash is escaped once more.
    Nested,
}

/// What a string must not begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Any,
    /// No dollar sign: `$call_1` would stand for another call's result (chatty).
    NoReference,
}

/// The text of a JSON string without its quotes.
pub(super) fn escape(text: &str) -> String {
    let quoted = Json::from(text).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(&quoted).to_owned()
}

/// JSON as the prompts write it: a blank after each colon and comma, no other.
pub(super) fn spaced(value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(spaced).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(map) => {
            let members = map.iter().map(|(key, value)| format!("{}: {}", Json::from(key.as_str()), spaced(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    }
}

impl Level {
    /// JSON text at this place.
    pub(super) fn literal(self, json: &str) -> Node {
        match self {
            Self::Plain => Node::literal(json),
            Self::Nested => Node::literal(escape(json)),
        }
    }

    /// A string with this content, whose node speaks of the characters that are meant.
    pub(super) fn quoted(self, content: Node) -> Node {
        Node::sequence([self.literal("\""), self.encode(content), self.literal("\"")])
    }

    /// Meant characters as they are written inside a string.
    fn encode(self, node: Node) -> Node {
        let all = |nodes: Vec<Node>| nodes.into_iter().map(|node| self.encode(node)).collect::<Vec<_>>();
        match node {
            Node::Literal(text) => self.literal(&escape(&text)),
            Node::Class(set) => self.class(&set),
            Node::Sequence(nodes) => Node::sequence(all(nodes)),
            Node::Choice(nodes) => Node::choice(all(nodes)).unwrap_or_else(Node::empty),
            Node::Repeat { node, min, max } => Node::repeat(self.encode(*node), min, max),
            rule @ Node::Rule(_) => rule,
        }
    }

    /// One character of a set. What needs an escape is left out of a react reply, where it would need two, unless
    /// nothing else is in the set.
    fn class(self, set: &CharSet) -> Node {
        let plain = set.minus(&CharSet::controls()).minus(&CharSet::of("\"\\"));
        let special: String = "\"\\\n".chars().filter(|&character| set.contains(character)).collect();
        let escapes = match self {
            Self::Nested => special.chars().map(|one| self.literal(&escape(&one.to_string()))).collect(),
            Self::Plain if special.is_empty() => Vec::new(),
            Self::Plain => {
                let letters = CharSet::of(&special.replace('\n', "n"));
                vec![Node::sequence([Node::literal("\\"), Node::Class(letters)])]
            }
        };
        let node = if plain.is_empty() {
            Node::choice(escapes)
        } else if self == Self::Nested {
            Some(Node::Class(plain))
        } else {
            Node::choice([Node::Class(plain)].into_iter().chain(escapes))
        };
        // Only other controls are left: none of them is worth a rule, and the set is never empty otherwise.
        node.unwrap_or_else(|| {
            let first = set.pairs().next().map_or('\0', |(low, _)| low);
            self.literal(&escape(&first.to_string()))
        })
    }
}

/// Any text of `min` to `max` characters.
pub(super) fn free(first: First, min: u32, max: u32) -> Node {
    let any = || Node::Class(CharSet::all());
    if first == First::Any || max == 0 {
        return Node::repeat(any(), min, max);
    }
    let text = Node::sequence([
        Node::Class(CharSet::of("$").complement()),
        Node::repeat(any(), min.saturating_sub(1), max.saturating_sub(1)),
    ]);
    if min == 0 { Node::optional(text) } else { text }
}

/// The rule of a string at the reply's own level, of `min` to `max` characters.
pub(super) fn string(rules: &mut Rules, min: u32, max: u32) -> Node {
    let body = Level::Plain.quoted(free(First::Any, min, max));
    rules.word(&format!("text-{min}-{max}"), body)
}

/// Raw text on one line, of at most `max` characters, without `without`.
pub(super) fn line(rules: &mut Rules, hint: &str, without: &CharSet, max: u32) -> Node {
    let set = CharSet::controls().union(without).complement();
    rules.word(hint, Node::repeat(Node::Class(set), 0, max))
}

/// A pattern for a `format`; `None` where it is not known.
pub(super) fn format(name: &str) -> Option<String> {
    const DATE: &str =
        r"[12]\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))";
    const TIME: &str = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d";
    const ZONE: &str = r"(Z|[+-]([01]\d|2[0-3]):[0-5]\d)";
    const HOST: &str = r"[a-z0-9]{1,20}(\.[a-z0-9]{1,20}){1,3}";
    let pattern = match name {
        "date" => DATE.to_owned(),
        // Most programs take a time without a zone; the standard wants one.
        "time" => format!("{TIME}{ZONE}?"),
        "date-time" => format!("{DATE}T{TIME}{ZONE}"),
        "uuid" => r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}".to_owned(),
        "email" => format!("[a-zA-Z0-9]{{1,20}}([._+-][a-zA-Z0-9]{{1,20}}){{0,2}}@{HOST}"),
        "hostname" => HOST.to_owned(),
        "uri" | "url" => format!(r"https?://{HOST}(/[-a-zA-Z0-9._~/?&=%#+:]{{0,{}}})?", bounds::STRING),
        "ipv4" => r"((\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])\.){3}(\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])".to_owned(),
        _ => return None,
    };
    Some(format!("^(?:{pattern})$"))
}
