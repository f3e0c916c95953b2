//! The rules in the forms that engines take: GBNF (llama.cpp) and Lark (llguidance).

use super::bounds;
use super::rules::{Node, Rule, RuleId, Rules};
use std::collections::HashSet;
use std::fmt::Write as _;

/// GBNF, with the rule `root`.
pub(in crate::protocol) fn gbnf(rules: &Rules, root: &Node) -> String {
    let mut out = String::new();
    rule(&Gbnf(rules), "root", root, &mut out);
    for (_, Rule { name, body, .. }) in rules.reached(root, true) {
        rule(&Gbnf(rules), name, body, &mut out);
    }
    out
}

/// The rule `root` alone, for a language whose other rules are known.
pub(in crate::protocol) fn gbnf_root(rules: &Rules, root: &Node) -> String {
    let mut out = String::new();
    rule(&Gbnf(rules), "root", root, &mut out);
    out
}

/// Lark as llguidance reads it, with the rule `start`.
///
/// Words become terminals: the engine cuts a reply into words first and takes the longest, so a string's pattern must
/// not be spread over several.
pub(in crate::protocol) fn lark(rules: &Rules, root: &Node) -> String {
    let mut out = String::from("%llguidance {}\n");
    rule(&Lark(rules), "start", root, &mut out);
    let mut texts = HashSet::new();
    for (_, one) in rules.reached(root, false) {
        let (name, body) = (lark_name(one), &one.body);
        if one.word {
            write_texts(rules, body, &mut texts, &mut out);
            out.push_str(&name);
            out.push_str(": ");
            word(rules, body, &mut out);
            out.push('\n');
        } else {
            rule(&Lark(rules), &name, body, &mut out);
        }
    }
    out
}

/// A terminal for each text without certain parts in a word.
fn write_texts(rules: &Rules, node: &Node, written: &mut HashSet<RuleId>, out: &mut String) {
    match node {
        Node::Without(without, id) if written.insert(*id) => {
            out.push_str(&text_name(rules, *id));
            out.push_str(": ");
            without.lark(out);
            out.push('\n');
        }
        Node::Rule(id) => {
            if let Some(rule) = rules.get(*id) {
                write_texts(rules, &rule.body, written, out);
            }
        }
        node => node.parts().iter().for_each(|node| write_texts(rules, node, written, out)),
    }
}

fn text_name(rules: &Rules, id: RuleId) -> String {
    rules.get(id).map_or(String::new(), |rule| rule.name.replace('-', "_").to_uppercase())
}

/// A word: a regular expression, or several with texts without certain parts among them.
fn word(rules: &Rules, node: &Node, out: &mut String) {
    let inside = match node {
        // A word has its rules written out.
        Node::Rule(id) => rules.get(*id).map_or(node, |rule| &rule.body),
        node => node,
    };
    match inside {
        Node::Without(_, id) => out.push_str(&text_name(rules, *id)),
        Node::Repeat { node: one, min, max, .. } if has_without(rules, node) => {
            out.push('(');
            word(rules, one, out);
            out.push(')');
            count(*min, *max, out);
        }
        Node::Sequence(nodes) if has_without(rules, node) => {
            out.push('(');
            for (at, node) in nodes.iter().enumerate() {
                out.push_str(if at > 0 { " " } else { "" });
                word(rules, node, out);
            }
            out.push(')');
        }
        Node::Choice(nodes) if has_without(rules, node) => {
            for (at, node) in nodes.iter().enumerate() {
                out.push_str(if at > 0 { " | " } else { "(" });
                word(rules, node, out);
            }
            out.push(')');
        }
        node => {
            out.push('/');
            regex(rules, node, Precedence::Whole, out);
            out.push('/');
        }
    }
}

fn has_without(rules: &Rules, node: &Node) -> bool {
    match node {
        Node::Without(..) => true,
        Node::Sequence(nodes) | Node::Choice(nodes) => nodes.iter().any(|node| has_without(rules, node)),
        Node::Repeat { node, .. } => has_without(rules, node),
        Node::Rule(id) => rules.get(*id).is_some_and(|rule| has_without(rules, &rule.body)),
        Node::Literal(_) | Node::Class(_) => false,
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

/// A text as the words of JSON. The engine takes the longest word that fits, so `{` must not begin another one, such as
/// `{"name": `, where a key of the model's own may follow.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let length = word_length(rest);
        let (word, more) = rest.split_at_checked(length).unwrap_or((rest, ""));
        words.push(word);
        rest = more;
    }
    words
}

fn word_length(text: &str) -> usize {
    let marks = ["{", "}", "[", "]", ": ", ", "];
    if let Some(mark) = marks.iter().find(|mark| text.starts_with(**mark)) {
        return mark.len();
    }
    // A string, also one inside a string, whose quotes are escaped themselves.
    for quote in ["\\\"", "\""] {
        let Some(inside) = text.strip_prefix(quote) else { continue };
        let mut at = 0;
        while let Some(here) = inside.get(at..).filter(|here| !here.is_empty()) {
            if here.starts_with(quote) {
                return quote.len() + at + quote.len();
            }
            // In a string inside a string, `\\\\` is one backslash, which escapes what follows it.
            let nested = quote.len() == 2 && here.starts_with("\\\\");
            let escaped = match here.get(2..) {
                Some(after) if nested => 2 + if after.starts_with('\\') { 2 } else { 1 },
                _ => 1 + usize::from(here.starts_with('\\')),
            };
            at += here.chars().take(escaped).map(char::len_utf8).sum::<usize>();
        }
        return quote.len();
    }
    let mut ends = text.char_indices().skip(1).map(|(at, _)| at);
    let begins = |at: &usize| {
        text.get(*at..)
            .is_some_and(|rest| rest.starts_with(['"', '\\']) || marks.iter().any(|mark| rest.starts_with(*mark)))
    };
    ends.find(begins).unwrap_or(text.len())
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
        for (at, word) in words(text).into_iter().enumerate() {
            out.push_str(if at > 0 { " " } else { "" });
            for character in serde_json::Value::from(word).to_string().chars() {
                match character {
                    // JSON leaves these controls as they are, and no lexer takes them.
                    '\u{7f}'..='\u{9f}' => {
                        let _ = write!(out, "\\u{:04x}", u32::from(character));
                    }
                    character => out.push(character),
                }
            }
        }
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
    write_node(form, body, Precedence::Whole, out);
    out.push('\n');
}

/// Where a node stands: what must be put in brackets there.
#[derive(Clone, Copy, PartialEq)]
enum Precedence {
    /// Alone.
    Whole,
    /// In a sequence.
    Part,
    /// Before a count.
    Counted,
}

fn write_node(form: &dyn Form, node: &Node, precedence: Precedence, out: &mut String) {
    let bracketed = match node {
        // A text may be several words.
        Node::Literal(_) | Node::Repeat { .. } => precedence == Precedence::Counted,
        Node::Sequence(nodes) => precedence == Precedence::Counted && !nodes.is_empty(),
        Node::Choice(_) => precedence != Precedence::Whole,
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
        Node::Repeat { max: Some(0), .. } => out.push_str("\"\""),
        Node::Sequence(nodes) => {
            for (at, node) in nodes.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                write_node(form, node, Precedence::Part, out);
            }
        }
        Node::Choice(nodes) => {
            for (at, node) in nodes.iter().enumerate() {
                if at > 0 {
                    out.push_str(" | ");
                }
                write_node(form, node, Precedence::Part, out);
            }
        }
        Node::Repeat { node, min, max, .. } => repeat(form, node, *min, *max, out),
        Node::Rule(id) | Node::Without(_, id) => form.reference(*id, out),
    }
    if bracketed {
        out.push(')');
    }
}

/// A repetition. Engines unroll a count: a high one is written as a product of two.
fn repeat(form: &dyn Form, node: &Node, min: u32, max: Option<u32>, out: &mut String) {
    let one = |min: u32, max: Option<u32>, out: &mut String| {
        write_node(form, node, Precedence::Counted, out);
        count(min, max, out);
    };
    if min.max(max.unwrap_or(0)) <= bounds::COUNT {
        return one(min, max, out);
    }
    let mut first = true;
    let mut part = |out: &mut String| {
        out.push_str(if std::mem::take(&mut first) { "" } else { " " });
    };
    let chunk = |side: u32, out: &mut String| {
        out.push('(');
        write_node(form, node, Precedence::Counted, out);
        count(side, Some(side), out);
        out.push(')');
    };
    out.push('(');
    if min > bounds::COUNT {
        let side = min.isqrt();
        part(out);
        chunk(side, out);
        count(min / side, Some(min / side), out);
        if !min.is_multiple_of(side) {
            part(out);
            one(min % side, Some(min % side), out);
        }
    } else if min > 0 {
        part(out);
        one(min, Some(min), out);
    }
    match max.map(|max| max - min) {
        None => {
            part(out);
            one(0, None, out);
        }
        Some(0) => {}
        Some(more) if more <= bounds::COUNT => {
            part(out);
            one(0, Some(more), out);
        }
        Some(more) => {
            // Whole chunks, less than one more, and what is left of the limit.
            let side = more.isqrt();
            let (times, left) = ((more + 1) / side, (more + 1) % side);
            part(out);
            chunk(side, out);
            count(0, Some(times - 1), out);
            for rest in [side - 1, left] {
                if rest > 0 {
                    part(out);
                    one(0, Some(rest), out);
                }
            }
        }
    }
    out.push(')');
}

fn count(min: u32, max: Option<u32>, out: &mut String) {
    let _ = match (min, max) {
        (1, Some(1)) => Ok(()),
        (0, Some(1)) => write!(out, "?"),
        (0, None) => write!(out, "*"),
        (1, None) => write!(out, "+"),
        (min, None) => write!(out, "{{{min},}}"),
        (min, Some(max)) if min == max => write!(out, "{{{min}}}"),
        (min, Some(max)) => write!(out, "{{{min},{max}}}"),
    };
}

fn regex(rules: &Rules, node: &Node, precedence: Precedence, out: &mut String) {
    let bracketed = match node {
        Node::Literal(text) => precedence == Precedence::Counted && text.chars().nth(1).is_some(),
        Node::Sequence(_) | Node::Repeat { .. } => precedence == Precedence::Counted,
        Node::Choice(_) => precedence != Precedence::Whole,
        Node::Class(_) | Node::Rule(_) | Node::Without(..) => false,
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
        Node::Sequence(nodes) => nodes.iter().for_each(|node| regex(rules, node, Precedence::Part, out)),
        Node::Choice(nodes) => {
            for (at, node) in nodes.iter().enumerate() {
                if at > 0 {
                    out.push('|');
                }
                regex(rules, node, Precedence::Part, out);
            }
        }
        Node::Repeat { max: Some(0), .. } => {}
        Node::Repeat { node, min, max, .. } => {
            regex(rules, node, Precedence::Counted, out);
            count(*min, *max, out);
        }
        Node::Rule(id) | Node::Without(_, id) => {
            if let Some(rule) = rules.get(*id) {
                // Its body may be of any kind: it is written as if it stood here itself.
                regex(
                    rules,
                    &rule.body,
                    if precedence == Precedence::Whole { Precedence::Part } else { precedence },
                    out,
                );
            }
        }
    }
    if bracketed {
        out.push(')');
    }
}
