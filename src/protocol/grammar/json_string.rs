//! JSON strings: what stands between the quotes, written for its place.

use super::bounds::Bounds;
use super::chars::CharSet;
use super::rules::{Node, Rules};
use super::sentence::SentenceEnd;
use serde_json::Value as Json;

/// Where JSON is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::protocol) enum Level {
    /// In the reply itself.
    Plain,
    /// In a string of the reply's JSON (the `args` of strict react): every quote and backslash is escaped once more.
    Nested,
}

/// The text of a JSON string without its quotes.
pub(in crate::protocol) fn escape(text: &str) -> String {
    let quoted = Json::from(text).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(&quoted).to_owned()
}

/// JSON as the prompts write it: a blank after each colon and comma, no other.
pub(in crate::protocol) fn spaced(value: &Json) -> String {
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
    pub(in crate::protocol) fn literal(self, json: &str) -> Node {
        match self {
            Self::Plain => Node::literal(json),
            Self::Nested => Node::literal(escape(json)),
        }
    }

    /// A string with this content, whose node speaks of the characters that are meant.
    pub(in crate::protocol) fn quoted(self, content: Node) -> Node {
        Node::sequence([self.literal("\""), self.encode(content), self.literal("\"")])
    }

    /// Meant characters as they are written inside a string.
    fn encode(self, node: Node) -> Node {
        let all = |nodes: Vec<Node>| nodes.into_iter().map(|node| self.encode(node)).collect::<Vec<_>>();
        match node {
            Node::Literal(text) => self.literal(&escape(&text)),
            Node::Class(set) if set == CharSet::all() => self.any_character(),
            Node::Class(set) => self.class(&set),
            Node::Sequence(nodes) => Node::sequence(all(nodes)),
            Node::Choice(nodes) => Node::Choice(all(nodes)),
            Node::Repeat { node, min, max, may_end_early } => {
                Node::Repeat { node: Box::new(self.encode(*node)), min, max, may_end_early }
            }
            rule => rule,
        }
    }

    /// Of a set, what stands in a string as it is.
    pub(in crate::protocol) fn plain(set: &CharSet) -> CharSet {
        set.minus(&CharSet::controls()).minus(&CharSet::of("\"\\"))
    }

    /// Any character, in every way that JSON has for it.
    fn any_character(self) -> Node {
        Node::Choice(vec![Node::Class(Self::plain(&CharSet::all())), self.escape()])
    }

    /// An escape, with what it escapes; half a surrogate pair is none.
    pub(in crate::protocol) fn escape(self) -> Node {
        let hex = |count| Node::times(Node::Class(CharSet::ranges([('0', '9'), ('A', 'F'), ('a', 'f')])), count);
        let surrogate = CharSet::of("dD");
        let first = CharSet::ranges([('0', '9'), ('A', 'F'), ('a', 'f')]).minus(&surrogate);
        let codes = [
            Node::sequence([Node::Class(first), hex(3)]),
            Node::sequence([Node::Class(surrogate.clone()), Node::Class(CharSet::ranges([('0', '7')])), hex(2)]),
            Node::sequence([
                Node::Class(surrogate.clone()),
                Node::Class(CharSet::of("89abAB")),
                hex(2),
                self.literal("\\u"),
                Node::Class(surrogate),
                Node::Class(CharSet::ranges([('C', 'F'), ('c', 'f')])),
                hex(2),
            ]),
        ];
        let letters = Node::Class(CharSet::of("/bfnrt"));
        let marks = ["\"", "\\"].map(|mark| self.literal(mark));
        let code = Node::sequence([Node::literal("u"), Node::Choice(codes.to_vec())]);
        let escapes = match self {
            Self::Plain => vec![Node::Class(CharSet::of("\"\\/bfnrt")), code],
            Self::Nested => marks.into_iter().chain([letters, code]).collect(),
        };
        Node::sequence([self.literal("\\"), Node::Choice(escapes)])
    }

    /// One character of a set, each in one way.
    fn class(self, set: &CharSet) -> Node {
        let plain = Self::plain(set);
        let mut ways: Vec<Node> = (!plain.is_empty()).then_some(Node::Class(plain)).into_iter().collect();
        let escaped = set.intersect(&CharSet::controls().union(&CharSet::of("\"\\")));
        let each = escaped.pairs().flat_map(|(low, high)| low..=high);
        ways.extend(each.map(|character| self.literal(&escape(&character.to_string()))));
        Node::choice(ways).unwrap_or(Node::Choice(Vec::new()))
    }
}

/// Any text of `min` to `max` characters.
pub(in crate::protocol) fn free(min: u32, max: Option<u32>) -> Node {
    Node::repeat(Node::Class(CharSet::all()), min, max)
}

/// The rule of a string at the reply's own level that is carried out: of `min` characters or more.
pub(in crate::protocol) fn string(rules: &mut Rules, min: u32, bounds: Option<Bounds>) -> Node {
    let content = match bounds {
        Some(bounds) => Node::bounded(Node::Class(CharSet::all()), min, bounds.answer),
        None => free(min, None),
    };
    rules.word("text", Level::Plain.quoted(content))
}

/// The same for an answer: at its bound, it goes on to the end of its sentence.
pub(in crate::protocol) fn answer_text(rules: &mut Rules, min: u32, bounds: Option<Bounds>) -> Node {
    let Some(Bounds { answer, .. }) = bounds else { return string(rules, min, None) };
    let any = || Node::Class(CharSet::all());
    let rest = SentenceEnd::new(&CharSet::all(), None);
    let long = [Node::times(any(), answer), Node::bounded(rest.piece, 0, answer), rest.end];
    let content = Node::choice([Node::repeat(any(), min, Some(answer)), Node::sequence(long)]);
    rules.word("text", Level::Plain.quoted(content.unwrap_or_else(Node::empty)))
}

/// The rule of a string at the reply's own level that is only read: of `min` to `max` characters.
pub(in crate::protocol) fn words(rules: &mut Rules, hint: &str, min: u32, max: Option<u32>) -> Node {
    rules.word(hint, Level::Plain.quoted(free(min, max)))
}
