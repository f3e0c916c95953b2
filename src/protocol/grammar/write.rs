//! The tree in the forms that engines take: GBNF (llama.cpp), Lark (llguidance) and, for one word, a regular expression.

use super::tree::{Node, Rule, RuleId, Rules};
use std::fmt::Write as _;

/// GBNF, with the rule `root`.
pub(super) fn gbnf(rules: &Rules, root: &Node) -> String {
    let mut out = String::new();
    rule(&Gbnf(rules), "root", root, &mut out);
    for (_, Rule { name, body, .. }) in rules.reached(root) {
        rule(&Gbnf(rules), name, body, &mut out);
    }
    out
}

/// Lark as llguidance reads it, with the rule `start`.
///
/// Words become terminals: the engine cuts a reply into words first and takes the longest, so a string's pattern must
/// not be spread over several.
pub(super) fn lark(rules: &Rules, root: &Node) -> String {
    let mut out = String::from("%llguidance {}\n");
    rule(&Lark(rules), "start", root, &mut out);
    for (_, one) in rules.reached(root) {
        let (name, body) = (lark_name(one), &one.body);
        if one.word {
            out.push_str(&name);
            out.push_str(": /");
            regex(rules, body, Place::Whole, &mut out);
            out.push_str("/\n");
        } else {
            rule(&Lark(rules), &name, body, &mut out);
        }
    }
    out
}

/// A regular expression for `node`, without anchors; `None` where it takes more than `longest` bytes.
pub(super) fn pattern(rules: &Rules, node: &Node, longest: usize) -> Option<String> {
    // Rules are written out wherever they are used: without this bound that could take exponential space.
    let mut budget = longest;
    size(rules, node, &mut budget)?;
    let mut out = String::new();
    regex(rules, node, Place::Whole, &mut out);
    (out.len() <= longest).then_some(out)
}

/// Takes at most as much from `budget` as the expression has bytes.
fn size(rules: &Rules, node: &Node, budget: &mut usize) -> Option<()> {
    *budget = budget.checked_sub(match node {
        Node::Literal(text) => text.len(),
        _ => 1,
    })?;
    match node {
        Node::Literal(_) | Node::Class(_) => Some(()),
        Node::Sequence(nodes) | Node::Choice(nodes) => nodes.iter().try_for_each(|node| size(rules, node, budget)),
        Node::Repeat { node, .. } => size(rules, node, budget),
        Node::Rule(id) => rules.get(*id).map_or(Some(()), |rule| size(rules, &rule.body, budget)),
    }
}

/// What differs between the two forms that have rules.
trait Form {
    fn defines(&self) -> &'static str;
    fn reference(&self, id: RuleId, out: &mut String);
    fn literal(&self, text: &str, out: &mut String);
    fn class(&self, text: &str, out: &mut String);
}

struct Gbnf<'a>(&'a Rules);

impl Form for Gbnf<'_> {
    fn defines(&self) -> &'static str {
        " ::= "
    }

    fn reference(&self, id: RuleId, out: &mut String) {
        out.push_str(self.0.get(id).map_or("", |rule| &rule.name));
    }

    fn literal(&self, text: &str, out: &mut String) {
        out.push('"');
        for character in text.chars() {
            match character {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                character if character.is_control() => {
                    // Writing into a string has no failing case, here and below. All controls are below U+0100.
                    let _ = write!(out, "\\x{:02x}", u32::from(character));
                }
                character => out.push(character),
            }
        }
        out.push('"');
    }

    fn class(&self, text: &str, out: &mut String) {
        out.push_str(text);
    }
}

struct Lark<'a>(&'a Rules);

/// The name of a rule: capitals mark a word.
fn lark_name(Rule { name, word, .. }: &Rule) -> String {
    let name = name.replace('-', "_");
    if *word { name.to_uppercase() } else { name }
}

impl Form for Lark<'_> {
    fn defines(&self) -> &'static str {
        ": "
    }

    fn reference(&self, id: RuleId, out: &mut String) {
        out.push_str(&self.0.get(id).map_or(String::new(), lark_name));
    }

    fn literal(&self, text: &str, out: &mut String) {
        out.push_str(&serde_json::Value::from(text).to_string());
    }

    fn class(&self, text: &str, out: &mut String) {
        out.push('/');
        out.push_str(text);
        out.push('/');
    }
}

fn rule(form: &dyn Form, name: &str, body: &Node, out: &mut String) {
    out.push_str(name);
    out.push_str(form.defines());
    write_node(form, body, Place::Whole, out);
    out.push('\n');
}

/// Where a node stands: what must be put in brackets there.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Alone.
    Whole,
    /// In a sequence.
    Part,
    /// Before a count.
    Counted,
}

fn write_node(form: &dyn Form, node: &Node, place: Place, out: &mut String) {
    let bracketed = match node {
        Node::Sequence(nodes) => place == Place::Counted && !nodes.is_empty(),
        Node::Choice(_) => place != Place::Whole,
        Node::Repeat { .. } => place == Place::Counted,
        _ => false,
    };
    if bracketed {
        out.push('(');
    }
    match node {
        Node::Literal(text) => form.literal(text, out),
        Node::Class(set) => {
            let mut text = String::new();
            set.write(&mut text);
            form.class(&text, out);
        }
        Node::Sequence(nodes) if nodes.is_empty() => out.push_str("\"\""),
        Node::Sequence(nodes) => {
            for (at, node) in nodes.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                write_node(form, node, Place::Part, out);
            }
        }
        Node::Choice(nodes) => {
            for (at, node) in nodes.iter().enumerate() {
                if at > 0 {
                    out.push_str(" | ");
                }
                write_node(form, node, Place::Part, out);
            }
        }
        Node::Repeat { node, min, max } => {
            write_node(form, node, Place::Counted, out);
            count(*min, *max, out);
        }
        Node::Rule(id) => form.reference(*id, out),
    }
    if bracketed {
        out.push(')');
    }
}

fn count(min: u32, max: u32, out: &mut String) {
    let _ = match (min, max) {
        (0, 1) => write!(out, "?"),
        (min, max) if min == max => write!(out, "{{{min}}}"),
        (min, max) => write!(out, "{{{min},{max}}}"),
    };
}

fn regex(rules: &Rules, node: &Node, place: Place, out: &mut String) {
    let bracketed = match node {
        Node::Literal(text) => place == Place::Counted && text.chars().nth(1).is_some(),
        Node::Sequence(_) | Node::Repeat { .. } => place == Place::Counted,
        Node::Choice(_) => place != Place::Whole,
        Node::Class(_) | Node::Rule(_) => false,
    };
    if bracketed {
        out.push_str("(?:");
    }
    match node {
        Node::Literal(text) => {
            for character in text.chars() {
                match character {
                    character if character.is_ascii_alphanumeric() || !character.is_ascii() => out.push(character),
                    ' ' | '"' | ':' | ',' | '_' => out.push(character),
                    character => {
                        let _ = write!(out, "\\x{:02x}", u32::from(character));
                    }
                }
            }
        }
        Node::Class(set) => set.write(out),
        Node::Sequence(nodes) => nodes.iter().for_each(|node| regex(rules, node, Place::Part, out)),
        Node::Choice(nodes) => {
            for (at, node) in nodes.iter().enumerate() {
                if at > 0 {
                    out.push('|');
                }
                regex(rules, node, Place::Part, out);
            }
        }
        Node::Repeat { node, min, max } => {
            regex(rules, node, Place::Counted, out);
            count(*min, *max, out);
        }
        Node::Rule(id) => {
            if let Some(rule) = rules.get(*id) {
                // Its body may be of any kind: it is written as if it stood here itself.
                regex(rules, &rule.body, if place == Place::Whole { Place::Part } else { place }, out);
            }
        }
    }
    if bracketed {
        out.push(')');
    }
}
