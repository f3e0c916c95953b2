//! The grammar as a tree, before it is written in some engine's form. Languages are finite: nothing refers to itself.

use super::chars::CharSet;
use std::collections::{HashMap, HashSet};

/// What may stand at one place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// This text.
    Literal(String),
    /// One character of a set.
    Class(CharSet),
    /// One after the other.
    Sequence(Vec<Node>),
    /// One of these.
    Choice(Vec<Node>),
    /// The same, from `min` to `max` times.
    Repeat { node: Box<Node>, min: u32, max: u32 },
    /// What a rule of the grammar says.
    Rule(RuleId),
}

/// A rule, by its place among the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RuleId(usize);

impl Node {
    pub(super) fn literal(text: impl Into<String>) -> Self {
        Self::Literal(text.into())
    }

    pub(super) fn empty() -> Self {
        Self::Sequence(Vec::new())
    }

    /// One after the other; texts that touch are joined, so that engines which cut a reply into words see few of them.
    pub(super) fn sequence(nodes: impl IntoIterator<Item = Node>) -> Self {
        let mut joined: Vec<Self> = Vec::new();
        for node in nodes {
            let parts = match node {
                Self::Sequence(parts) => parts,
                node => vec![node],
            };
            for part in parts {
                match (joined.last_mut(), part) {
                    (_, Self::Literal(text)) if text.is_empty() => {}
                    (Some(Self::Literal(before)), Self::Literal(text)) => before.push_str(&text),
                    (_, part) => joined.push(part),
                }
            }
        }
        match joined.pop() {
            Some(only) if joined.is_empty() => only,
            Some(last) => {
                joined.push(last);
                Self::Sequence(joined)
            }
            None => Self::empty(),
        }
    }

    /// One of these, each once; there must be at least one.
    pub(super) fn choice(nodes: impl IntoIterator<Item = Node>) -> Option<Self> {
        let mut seen = HashSet::new();
        let mut kept: Vec<Self> = Vec::new();
        for node in nodes {
            let parts = match node {
                Self::Choice(parts) => parts,
                node => vec![node],
            };
            kept.extend(parts.into_iter().filter(|part| seen.insert(part.clone())));
        }
        match kept.pop() {
            Some(only) if kept.is_empty() => Some(only),
            Some(last) => {
                kept.push(last);
                Some(Self::Choice(kept))
            }
            None => None,
        }
    }

    /// From `min` to `max` times.
    pub(super) fn repeat(node: Self, min: u32, max: u32) -> Self {
        match (min, max) {
            (1, 1) => node,
            (_, 0) => Self::empty(),
            _ => Self::Repeat { node: Box::new(node), min, max },
        }
    }

    /// This or nothing.
    pub(super) fn optional(node: Self) -> Self {
        Self::repeat(node, 0, 1)
    }
}

/// One rule.
#[derive(Debug)]
pub(super) struct Rule {
    /// Small letters, digits and hyphens, beginning with a letter: a name in every form.
    pub(super) name: String,
    pub(super) body: Node,
    /// Whether it is one word: a string or a number, that no engine may cut in another way.
    pub(super) word: bool,
}

/// The rules of a grammar. Equal bodies share one rule.
#[derive(Debug, Default)]
pub(super) struct Rules {
    list: Vec<Rule>,
    known: HashMap<(Node, bool), RuleId>,
    names: HashMap<String, usize>,
}

impl Rules {
    /// A rule for `body`, with a name made from `hint`.
    pub(super) fn rule(&mut self, hint: &str, body: Node) -> Node {
        match body {
            Node::Rule(_) => body,
            body => self.add(hint, body, false),
        }
    }

    /// A rule for a string or number.
    pub(super) fn word(&mut self, hint: &str, body: Node) -> Node {
        self.add(hint, body, true)
    }

    fn add(&mut self, hint: &str, body: Node, word: bool) -> Node {
        let key = (body, word);
        if let Some(id) = self.known.get(&key) {
            return Node::Rule(*id);
        }
        let id = RuleId(self.list.len());
        let name = self.name(hint);
        self.list.push(Rule { name, body: key.0.clone(), word });
        self.known.insert(key, id);
        Node::Rule(id)
    }

    fn name(&mut self, hint: &str) -> String {
        let mut name = String::new();
        for character in hint.chars().take(40) {
            match character {
                'a'..='z' | '0'..='9' => name.push(character),
                'A'..='Z' => name.push(character.to_ascii_lowercase()),
                _ if name.is_empty() || name.ends_with('-') => {}
                _ => name.push('-'),
            }
        }
        let name = name.trim_end_matches('-');
        let name = if name.starts_with(|first: char| first.is_ascii_lowercase()) {
            name.to_owned()
        } else {
            format!("x{name}")
        };
        // The forms have a name for the first rule.
        let taken = usize::from(matches!(name.as_str(), "root" | "start"));
        let count = self.names.entry(name.clone()).or_insert(taken);
        *count += 1;
        // The first of a name bears it alone; a number parts the rest. A second hyphen keeps `a-2` itself apart.
        if *count == 1 { name } else { format!("{name}--{count}") }
    }

    pub(super) fn get(&self, id: RuleId) -> Option<&Rule> {
        self.list.get(id.0)
    }

    /// The rules that `root` reaches, in the order of their making.
    pub(super) fn reached(&self, root: &Node) -> Vec<(RuleId, &Rule)> {
        let mut reached = HashSet::new();
        let mut pending = vec![root];
        while let Some(node) = pending.pop() {
            match node {
                Node::Literal(_) | Node::Class(_) => {}
                Node::Sequence(nodes) | Node::Choice(nodes) => pending.extend(nodes),
                Node::Repeat { node, .. } => pending.push(node),
                Node::Rule(id) => {
                    if reached.insert(id.0)
                        && let Some(rule) = self.get(*id)
                    {
                        pending.push(&rule.body);
                    }
                }
            }
        }
        let rules = self.list.iter().enumerate();
        rules.filter(|(at, _)| reached.contains(at)).map(|(at, rule)| (RuleId(at), rule)).collect()
    }

    /// The fewest and the most characters of a text that `node` admits.
    pub(super) fn length(&self, node: &Node) -> (u64, u64) {
        self.measure(node, &|text| text.chars().count() as u64, &mut HashMap::new())
    }

    /// Tokens of the longest text, counted with care: digits are mostly tokens of their own, and so are the characters
    /// of most scripts; what the grammar spells out is mostly words and marks of several characters.
    pub(super) fn tokens(&self, node: &Node) -> u64 {
        self.measure(node, &|text| (text.chars().count() as u64).div_ceil(2), &mut HashMap::new()).1
    }

    fn measure(
        &self,
        node: &Node,
        literal: &dyn Fn(&str) -> u64,
        known: &mut HashMap<RuleId, (u64, u64)>,
    ) -> (u64, u64) {
        match node {
            Node::Literal(text) => (literal(text), literal(text)),
            Node::Class(_) => (1, 1),
            Node::Sequence(nodes) => nodes.iter().fold((0, 0), |sum: (u64, u64), node| {
                let one = self.measure(node, literal, known);
                (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1))
            }),
            Node::Choice(nodes) => {
                let each: Vec<_> = nodes.iter().map(|node| self.measure(node, literal, known)).collect();
                let fewest = each.iter().map(|one| one.0).min();
                (fewest.unwrap_or(0), each.iter().map(|one| one.1).max().unwrap_or(0))
            }
            Node::Repeat { node, min, max } => {
                let one = self.measure(node, literal, known);
                (one.0.saturating_mul(u64::from(*min)), one.1.saturating_mul(u64::from(*max)))
            }
            Node::Rule(id) => {
                if let Some(known) = known.get(id) {
                    return *known;
                }
                let length = self.get(*id).map_or((0, 0), |rule| self.measure(&rule.body, literal, known));
                known.insert(*id, length);
                length
            }
        }
    }
}
