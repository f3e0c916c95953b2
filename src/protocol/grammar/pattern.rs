//! Regular expressions of a schema as nodes of the grammar.
//!
//! Taken over are characters, classes, `\d \w \s .`, groups, alternation, counts, and anchors at both ends; where an end
//! is not anchored, any text may stand there. Anything else (looking around, back references, word borders, flags, set
//! operations) is not translated.

use super::bounds;
use super::chars::CharSet;
use super::rules::Node;
use regex_syntax::ast::{
    AssertionKind, Ast, ClassBracketed, ClassPerl, ClassPerlKind, ClassSet, ClassSetItem, ClassUnicode,
    ClassUnicodeKind, GroupKind, RepetitionKind, RepetitionRange, parse::Parser,
};
use regex_syntax::hir::{Class as HirClass, HirKind};

/// The texts that `pattern` matches; `None` where it is not translated. With a bound, nothing repeats without an end.
///
/// Of the lengths of the schema, those of a text that is one kind of character are kept; others are left to the check.
pub(in crate::protocol) fn translate(pattern: &str, min: u32, max: Option<u32>, bound: Option<u32>) -> Option<Node> {
    let ast = Parser::new().parse(pattern).ok()?;
    let node = whole(&ast)?;
    let fitted = match node {
        Node::Repeat { node, min: least, max: most, may_end_early } if matches!(*node, Node::Class(_)) => {
            let most = [most, max].into_iter().flatten().min();
            let least = least.max(min);
            if most.is_some_and(|most| most < least) {
                return None;
            }
            Node::Repeat { node, min: least, max: most, may_end_early }
        }
        node => node,
    };
    Some(match bound {
        Some(bound) => ended(fitted, bound),
        None => fitted,
    })
}

/// The same, with an end to what has none.
fn ended(node: Node, bound: u32) -> Node {
    let all = |nodes: Vec<Node>| nodes.into_iter().map(|node| ended(node, bound)).collect();
    match node {
        Node::Sequence(nodes) => Node::Sequence(all(nodes)),
        Node::Choice(nodes) => Node::Choice(all(nodes)),
        Node::Repeat { node, min, max, .. } => {
            let node = ended(*node, bound);
            match max.filter(|max| *max < bound.saturating_add(min)) {
                Some(max) => Node::repeat(node, min, Some(max)),
                None => Node::bounded(node, min, bound.saturating_add(min)),
            }
        }
        node => node,
    }
}

/// A pattern, or a branch of one, that is searched for anywhere in the text.
fn whole(ast: &Ast) -> Option<Node> {
    match ast {
        Ast::Alternation(alternation) => {
            let branches: Option<Vec<Node>> = alternation.asts.iter().map(whole).collect();
            Node::choice(branches?)
        }
        Ast::Group(group) if plain_group(&group.kind) => whole(&group.ast),
        Ast::Concat(concat) => anchored(&concat.asts),
        one => anchored(std::slice::from_ref(one)),
    }
}

fn anchored(parts: &[Ast]) -> Option<Node> {
    let (start, parts) = match parts {
        [first, rest @ ..] if assertion(first, &[AssertionKind::StartLine, AssertionKind::StartText]) => (true, rest),
        parts => (false, parts),
    };
    let (end, parts) = match parts {
        [rest @ .., last] if assertion(last, &[AssertionKind::EndLine, AssertionKind::EndText]) => (true, rest),
        parts => (false, parts),
    };
    let affix = |anchor: bool| (!anchor).then(|| Node::any_number(Node::Class(CharSet::all())));
    let middle: Option<Vec<Node>> = parts.iter().map(node).collect();
    Some(Node::sequence(affix(start).into_iter().chain(middle?).chain(affix(end))))
}

fn assertion(ast: &Ast, kinds: &[AssertionKind]) -> bool {
    matches!(ast, Ast::Assertion(assertion) if kinds.contains(&assertion.kind))
}

fn plain_group(kind: &GroupKind) -> bool {
    match kind {
        GroupKind::NonCapturing(flags) => flags.items.is_empty(),
        _ => true,
    }
}

fn node(ast: &Ast) -> Option<Node> {
    Some(match ast {
        Ast::Empty(_) => Node::empty(),
        Ast::Literal(literal) => Node::literal(literal.c),
        Ast::Dot(_) => Node::Class(CharSet::of("\n\r\u{2028}\u{2029}").complement()),
        Ast::ClassPerl(class) => Node::Class(perl(class).surely),
        Ast::ClassUnicode(class) => Node::Class(unicode(class)?),
        Ast::ClassBracketed(class) => Node::Class(bracketed(class).filter(|set| !set.is_empty())?),
        Ast::Group(group) if plain_group(&group.kind) => node(&group.ast)?,
        Ast::Alternation(alternation) => {
            let branches: Option<Vec<Node>> = alternation.asts.iter().map(node).collect();
            Node::choice(branches?)?
        }
        Ast::Concat(concat) => {
            let parts: Option<Vec<Node>> = concat.asts.iter().map(node).collect();
            Node::sequence(parts?)
        }
        Ast::Repetition(repetition) => {
            let (min, max) = match &repetition.op.kind {
                RepetitionKind::ZeroOrOne => (0, Some(1)),
                RepetitionKind::ZeroOrMore => (0, None),
                RepetitionKind::OneOrMore => (1, None),
                RepetitionKind::Range(RepetitionRange::Exactly(count)) => (*count, Some(*count)),
                RepetitionKind::Range(RepetitionRange::AtLeast(count)) => (*count, None),
                RepetitionKind::Range(RepetitionRange::Bounded(min, max)) => (*min, Some(*max)),
            };
            if min > bounds::MOST {
                return None;
            }
            Node::repeat(node(&repetition.ast)?, min, max.filter(|max| *max <= bounds::MOST))
        }
        _ => return None,
    })
}

/// A class whose extent differs between regular expression dialects.
struct Class {
    /// In every dialect.
    surely: CharSet,
    /// In any dialect.
    perhaps: CharSet,
}

fn perl(class: &ClassPerl) -> Class {
    let ascii = CharSet::ranges([('\0', '\u{7f}')]);
    let word = CharSet::ranges([('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]);
    let (surely, perhaps) = match class.kind {
        ClassPerlKind::Digit => (CharSet::digits(), CharSet::digits()),
        ClassPerlKind::Space => (CharSet::of(" \t\n\r\u{b}\u{c}"), CharSet::blanks()),
        ClassPerlKind::Word => (word.clone(), word.union(&ascii.complement())),
    };
    if class.negated {
        Class { surely: perhaps.complement(), perhaps: surely.complement() }
    } else {
        Class { surely, perhaps }
    }
}

/// A property of characters.
fn unicode(class: &ClassUnicode) -> Option<CharSet> {
    let name = match &class.kind {
        ClassUnicodeKind::OneLetter(letter) => letter.to_string(),
        ClassUnicodeKind::Named(name) => name.clone(),
        ClassUnicodeKind::NamedValue { .. } => return None,
    };
    let hir = regex_syntax::Parser::new().parse(&format!("\\p{{{name}}}")).ok()?;
    let HirKind::Class(HirClass::Unicode(ranges)) = hir.kind() else { return None };
    let set = CharSet::ranges(ranges.iter().map(|range| (range.start(), range.end())));
    Some(if class.is_negated() { set.complement() } else { set })
}

fn bracketed(class: &ClassBracketed) -> Option<CharSet> {
    let ClassSet::Item(item) = &class.kind else { return None };
    let mut sets = Class { surely: CharSet::default(), perhaps: CharSet::default() };
    collect(item, &mut sets)?;
    Some(if class.negated { sets.perhaps.complement() } else { sets.surely })
}

fn collect(item: &ClassSetItem, into: &mut Class) -> Option<()> {
    let (surely, perhaps) = match item {
        ClassSetItem::Empty(_) => return Some(()),
        ClassSetItem::Literal(literal) => {
            let set = CharSet::ranges([(literal.c, literal.c)]);
            (set.clone(), set)
        }
        ClassSetItem::Range(range) => {
            let set = CharSet::ranges([(range.start.c, range.end.c)]);
            (set.clone(), set)
        }
        ClassSetItem::Perl(class) => {
            let class = perl(class);
            (class.surely, class.perhaps)
        }
        ClassSetItem::Unicode(class) => {
            let set = unicode(class)?;
            (set.clone(), set)
        }
        ClassSetItem::Union(union) => return union.items.iter().try_for_each(|item| collect(item, into)),
        // Brackets in brackets are plain characters in the dialect of JSON Schema, and names of sets in others.
        ClassSetItem::Ascii(_) | ClassSetItem::Bracketed(_) => return None,
    };
    into.surely = into.surely.union(&surely);
    into.perhaps = into.perhaps.union(&perhaps);
    Some(())
}
