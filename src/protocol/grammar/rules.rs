//! The grammar as rules, before it is written in some engine's form.

use super::chars::CharSet;
use super::excluded_text::Without;
use std::collections::{HashMap, HashSet};

/// What may stand at one place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::protocol) enum Node {
    Literal(String),
    /// One character of a set.
    Class(CharSet),
    /// One after the other.
    Sequence(Vec<Node>),
    /// One of these; of none, nothing can stand there.
    Choice(Vec<Node>),
    /// The same, from `min` times to `max` times, or without an end.
    Repeat {
        node: Box<Node>,
        min: u32,
        max: Option<u32>,
        /// Whether the reply may break off after one time more than `max`.
        may_end_early: bool,
    },
    /// What a rule of the grammar says.
    Rule(RuleId),
    /// Any text without certain parts, and the same as a rule.
    Without(Box<Without>, RuleId),
}

/// A rule, by its place among the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::protocol) struct RuleId(usize);

impl Node {
    pub(in crate::protocol) fn literal(text: impl Into<String>) -> Self {
        Self::Literal(text.into())
    }

    pub(in crate::protocol) fn empty() -> Self {
        Self::Sequence(Vec::new())
    }

    /// One after the other; texts that touch are joined, so that engines which cut a reply into words see few of them.
    pub(in crate::protocol) fn sequence(nodes: impl IntoIterator<Item = Node>) -> Self {
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
    pub(in crate::protocol) fn choice(nodes: impl IntoIterator<Item = Node>) -> Option<Self> {
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

    /// From `min` times to `max` times, or without an end.
    pub(in crate::protocol) fn repeat(node: Self, min: u32, max: Option<u32>) -> Self {
        match (min, max) {
            (1, Some(1)) => node,
            (_, Some(0)) => Self::empty(),
            _ => Self::Repeat { node: Box::new(node), min, max, may_end_early: false },
        }
    }

    /// Exactly so many times.
    pub(in crate::protocol) fn times(node: Self, count: u32) -> Self {
        Self::repeat(node, count, Some(count))
    }

    /// Any number of times.
    pub(in crate::protocol) fn any_number(node: Self) -> Self {
        Self::repeat(node, 0, None)
    }

    /// From `min` times to less than `bound`; at `bound` the reply breaks off.
    pub(in crate::protocol) fn bounded(node: Self, min: u32, bound: u32) -> Self {
        let max = Some(bound.saturating_sub(1).max(min));
        Self::Repeat { node: Box::new(node), min, max, may_end_early: true }
    }

    /// This or nothing.
    pub(in crate::protocol) fn optional(node: Self) -> Self {
        Self::repeat(node, 0, Some(1))
    }

    /// The nodes that it is made of.
    pub(in crate::protocol) fn parts(&self) -> &[Node] {
        match self {
            Self::Sequence(nodes) | Self::Choice(nodes) => nodes,
            Self::Repeat { node, .. } => std::slice::from_ref(node),
            _ => &[],
        }
    }
}

#[derive(Debug)]
pub(in crate::protocol) struct Rule {
    /// Small letters, digits and hyphens, beginning with a letter: a name in every form.
    pub(in crate::protocol) name: String,
    pub(in crate::protocol) body: Node,
    /// Whether it is one word: a string or a number, that no engine may cut in another way.
    pub(in crate::protocol) word: bool,
}

/// The rules of a grammar. Equal bodies share one rule.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Rules {
    list: Vec<Rule>,
    known: HashMap<(Node, bool), RuleId>,
    names: HashMap<String, usize>,
    /// Rules that all tools share, by what they are for.
    pub(in crate::protocol) shared: HashMap<&'static str, Node>,
    /// What a rule may be broken off after; `None` for nothing.
    truncations: HashMap<RuleId, Option<RuleId>>,
}

impl Rules {
    /// A rule for `body`, with a name made from `hint`.
    pub(in crate::protocol) fn rule(&mut self, hint: &str, body: Node) -> Node {
        match body {
            Node::Rule(_) => body,
            body => self.add(hint, body, false),
        }
    }

    /// A rule for a string or number.
    pub(in crate::protocol) fn word(&mut self, hint: &str, body: Node) -> Node {
        self.add(hint, body, true)
    }

    fn add(&mut self, hint: &str, body: Node, word: bool) -> Node {
        let key = (body, word);
        if let Some(id) = self.known.get(&key) {
            return Node::Rule(*id);
        }
        let id = self.reserve();
        self.define(id, hint, key.0.clone(), word);
        self.known.insert(key, id);
        Node::Rule(id)
    }

    /// A rule that is defined later: it may refer to itself.
    pub(in crate::protocol) fn reserve(&mut self) -> RuleId {
        self.list.push(Rule { name: String::new(), body: Node::Choice(Vec::new()), word: false });
        RuleId(self.list.len() - 1)
    }

    /// Says what a reserved rule is.
    pub(in crate::protocol) fn define(&mut self, id: RuleId, hint: &str, body: Node, word: bool) {
        let name = self.name(hint);
        if let Some(rule) = self.list.get_mut(id.0) {
            *rule = Rule { name, body, word };
        }
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

    pub(in crate::protocol) fn get(&self, id: RuleId) -> Option<&Rule> {
        self.list.get(id.0)
    }

    /// The rules that `root` reaches, in the order of their making; those of texts without certain parts too, if asked.
    pub(in crate::protocol) fn reached(&self, root: &Node, texts: bool) -> Vec<(RuleId, &Rule)> {
        let mut reached = HashSet::new();
        let mut pending = vec![root];
        while let Some(node) = pending.pop() {
            pending.extend(node.parts());
            let id = match node {
                Node::Rule(id) => *id,
                Node::Without(_, id) if texts => *id,
                _ => continue,
            };
            if reached.insert(id.0)
                && let Some(rule) = self.get(id)
            {
                pending.push(&rule.body);
            }
        }
        let mut reached: Vec<usize> = reached.into_iter().collect();
        reached.sort_unstable();
        reached.into_iter().filter_map(|at| Some((RuleId(at), self.list.get(at)?))).collect()
    }

    /// Takes out what no text can be made of, such as an object that must hold one of its own kind; whether anything
    /// is left.
    pub(in crate::protocol) fn prune(&mut self, root: &mut Node) -> bool {
        let mut made: HashSet<RuleId> = HashSet::new();
        loop {
            let before = made.len();
            for (at, rule) in self.list.iter().enumerate() {
                if !made.contains(&RuleId(at)) && can_be_made(&rule.body, &made) {
                    made.insert(RuleId(at));
                }
            }
            if made.len() == before {
                break;
            }
        }
        for rule in &mut self.list {
            keep_made(&mut rule.body, &made);
        }
        keep_made(root, &made)
    }

    /// Whether any text can be made of `node`.
    pub(in crate::protocol) fn can_be_made(&self, node: &Node) -> bool {
        let reached: Vec<(RuleId, &Rule)> = self.reached(node, false);
        let mut made: HashSet<RuleId> = HashSet::new();
        loop {
            let before = made.len();
            made.extend(
                reached
                    .iter()
                    .filter(|(_, rule)| can_be_made(&rule.body, &made))
                    .map(|(id, _)| *id)
                    .collect::<Vec<_>>(),
            );
            if made.len() == before {
                return can_be_made(node, &made);
            }
        }
    }

    /// What `node` may be broken off after: all its texts up to something that has reached its bound.
    pub(in crate::protocol) fn truncated(&mut self, node: &Node) -> Option<Node> {
        match node {
            Node::Literal(_) | Node::Class(_) | Node::Without(..) => None,
            Node::Choice(nodes) => {
                let truncated: Vec<Node> = nodes.iter().filter_map(|node| self.truncated(node)).collect();
                Node::choice(truncated)
            }
            Node::Sequence(nodes) => {
                // From the last to the first: broken off in this one, or after it.
                let mut later: Option<Node> = None;
                for node in nodes.iter().rev() {
                    let here = self.truncated(node);
                    let after = later.map(|later| Node::sequence([node.clone(), later]));
                    later = Node::choice(here.into_iter().chain(after));
                }
                later
            }
            Node::Repeat { node, max, may_end_early, .. } => {
                let end = may_end_early.then(|| Node::times((**node).clone(), max.unwrap_or(0).saturating_add(1)));
                let inside = self.truncated(node).map(|inside| {
                    let before = Node::repeat((**node).clone(), 0, max.map(|max| max.saturating_sub(1)));
                    Node::sequence([before, inside])
                });
                Node::choice(end.into_iter().chain(inside))
            }
            Node::Rule(id) => {
                if let Some(known) = self.truncations.get(id) {
                    return known.map(Node::Rule);
                }
                let (name, body, word) = self.get(*id).map(|rule| (rule.name.clone(), rule.body.clone(), rule.word))?;
                let truncated = self.reserve();
                // A rule that meets itself continues there. Rules that can't be broken off are removed at the end.
                self.truncations.insert(*id, Some(truncated));
                let Some(body) = self.truncated(&body) else {
                    self.truncations.insert(*id, None);
                    return None;
                };
                self.define(truncated, &format!("{name}-cut"), body, word);
                Some(Node::Rule(truncated))
            }
        }
    }
}

fn can_be_made(node: &Node, made: &HashSet<RuleId>) -> bool {
    match node {
        Node::Literal(_) | Node::Class(_) | Node::Without(..) => true,
        Node::Sequence(nodes) => nodes.iter().all(|node| can_be_made(node, made)),
        Node::Choice(nodes) => nodes.iter().any(|node| can_be_made(node, made)),
        Node::Repeat { node, min, .. } => *min == 0 || can_be_made(node, made),
        Node::Rule(id) => made.contains(id),
    }
}

fn keep_made(node: &mut Node, made: &HashSet<RuleId>) -> bool {
    match node {
        Node::Choice(nodes) => {
            nodes.retain_mut(|node| keep_made(node, made));
            if let [only] = nodes.as_mut_slice() {
                *node = std::mem::replace(only, Node::Choice(Vec::new()));
                return true;
            }
            !nodes.is_empty()
        }
        Node::Sequence(nodes) => {
            // All of them, also behind one that can't be made.
            nodes.iter_mut().map(|node| keep_made(node, made)).filter(|kept| !kept).count() == 0
        }
        Node::Repeat { node: inner, min, .. } => {
            if keep_made(inner, made) {
                return true;
            }
            let optional = *min == 0;
            if optional {
                *node = Node::empty();
            }
            optional
        }
        one => can_be_made(one, made),
    }
}
