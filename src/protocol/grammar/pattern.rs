//! Regular expressions of a schema as nodes of the grammar.
//!
//! Taken over are characters, classes, `\d \w \s .`, groups, alternation, counts, and anchors at both ends. `*` and `+`
//! end after [`bounds::STAR`] times; where an end is not anchored, up to [`bounds::AFFIX`] characters may stand there.
//! Anything else (looking around, back references, word borders, flags, set operations) is not translated.

use super::bounds;
use super::chars::CharSet;
use super::tree::{Node, Rules};
use regex_syntax::ast::{
    AssertionKind, Ast, ClassBracketed, ClassPerl, ClassPerlKind, ClassSet, ClassSetItem, ClassUnicode,
    ClassUnicodeKind, GroupKind, RepetitionKind, RepetitionRange, parse::Parser,
};

/// The texts of `min` to `max` characters that `pattern` matches, or fewer; `None` where it is not translated.
pub(super) fn translate(pattern: &str, min: u32, max: u32) -> Option<Node> {
    let ast = Parser::new().parse(pattern).ok()?;
    let node = whole(&ast)?;
    // Where no text is both matched and long enough, the pattern says more about what is wanted.
    Some(narrow(node.clone(), u64::from(min), u64::from(max)).unwrap_or(node))
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
    let affix = |anchor: bool| {
        let any = CharSet::of("\n\r").complement();
        (!anchor).then(|| Node::repeat(Node::Class(any), 0, bounds::AFFIX))
    };
    let middle: Option<Vec<Node>> = parts.iter().map(|part| node(part, 0)).collect();
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

/// `inside` counts the repetitions around.
fn node(ast: &Ast, inside: usize) -> Option<Node> {
    Some(match ast {
        Ast::Empty(_) => Node::empty(),
        Ast::Literal(literal) => Node::literal(literal.c),
        Ast::Dot(_) => Node::Class(CharSet::of("\n\r\u{2028}\u{2029}").complement()),
        Ast::ClassPerl(class) => Node::Class(perl(class).surely),
        Ast::ClassUnicode(class) => Node::Class(unicode(class)?),
        Ast::ClassBracketed(class) => Node::Class(bracketed(class).filter(|set| !set.is_empty())?),
        Ast::Group(group) if plain_group(&group.kind) => node(&group.ast, inside)?,
        Ast::Alternation(alternation) => {
            let branches: Option<Vec<Node>> = alternation.asts.iter().map(|ast| node(ast, inside)).collect();
            Node::choice(branches?)?
        }
        Ast::Concat(concat) => {
            let parts: Option<Vec<Node>> = concat.asts.iter().map(|ast| node(ast, inside)).collect();
            Node::sequence(parts?)
        }
        Ast::Repetition(repetition) => {
            let star = bounds::STAR.get(inside).copied().unwrap_or(1);
            let (min, max) = match &repetition.op.kind {
                RepetitionKind::ZeroOrOne => (0, 1),
                RepetitionKind::ZeroOrMore => (0, star),
                RepetitionKind::OneOrMore => (1, star),
                RepetitionKind::Range(RepetitionRange::Exactly(count)) => (*count, *count),
                RepetitionKind::Range(RepetitionRange::AtLeast(count)) => (*count, count.saturating_add(star)),
                RepetitionKind::Range(RepetitionRange::Bounded(min, max)) => {
                    // A wide count is bounded like a star, unless it starts beyond that.
                    (*min, (*max).min(min.saturating_add(bounds::STRING)))
                }
            };
            if max > bounds::MOST {
                return None;
            }
            Node::repeat(node(&repetition.ast, inside + usize::from(max > 1))?, min, max)
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
        ClassPerlKind::Space => (CharSet::of(" "), CharSet::blanks()),
        ClassPerlKind::Word => (word.clone(), word.union(&ascii.complement())),
    };
    if class.negated {
        Class { surely: perhaps.complement(), perhaps: surely.complement() }
    } else {
        Class { surely, perhaps }
    }
}

/// The ASCII part of the few properties that patterns ask for.
fn unicode(class: &ClassUnicode) -> Option<CharSet> {
    let name = match &class.kind {
        ClassUnicodeKind::OneLetter(letter) => letter.to_string(),
        ClassUnicodeKind::Named(name) => name.clone(),
        ClassUnicodeKind::NamedValue { .. } => return None,
    };
    if class.is_negated() {
        return None;
    }
    Some(match name.as_str() {
        "L" | "Letter" | "Alphabetic" => CharSet::ranges([('A', 'Z'), ('a', 'z')]),
        "Lu" => CharSet::ranges([('A', 'Z')]),
        "Ll" => CharSet::ranges([('a', 'z')]),
        "N" | "Nd" => CharSet::digits(),
        _ => return None,
    })
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
        // What it leaves out beyond ASCII must not come back by a negation.
        ClassSetItem::Unicode(class) => {
            let set = unicode(class)?;
            let beyond = CharSet::ranges([('\u{80}', char::MAX)]);
            (set.clone(), set.union(&beyond))
        }
        ClassSetItem::Union(union) => return union.items.iter().try_for_each(|item| collect(item, into)),
        // Brackets in brackets are plain characters in the dialect of JSON Schema, and names of sets in others.
        ClassSetItem::Ascii(_) | ClassSetItem::Bracketed(_) => return None,
    };
    into.surely = into.surely.union(&surely);
    into.perhaps = into.perhaps.union(&perhaps);
    Some(())
}

/// The part of `node` whose texts have `min` to `max` characters, by fewer choices of how often something is repeated.
fn narrow(node: Node, min: u64, max: u64) -> Option<Node> {
    let length = |node: &Node| Rules::default().length(node);
    let (fewest, most) = length(&node);
    if fewest >= min && most <= max {
        return Some(node);
    }
    match node {
        Node::Choice(nodes) => Node::choice(nodes.into_iter().filter_map(|node| narrow(node, min, max))),
        Node::Sequence(mut nodes) => {
            for _ in 0..2 {
                for at in 0..nodes.len() {
                    let (fewest, most) = sum(nodes.iter().map(length));
                    let Some(part) = nodes.get_mut(at) else { continue };
                    let (least, greatest) = length(part);
                    // What this part must have so that the whole fits, as far as it can.
                    let missing = min.saturating_sub(fewest).min(greatest - least);
                    let surplus = most.saturating_sub(max).min((greatest - least) - missing);
                    let fitted = narrow(part.clone(), least + missing, greatest - surplus);
                    if let Some(fitted) = fitted {
                        *part = fitted;
                    }
                }
            }
            let (fewest, most) = sum(nodes.iter().map(length));
            (fewest >= min && most <= max).then(|| Node::sequence(nodes))
        }
        Node::Repeat { node, min: low, max: high } => {
            let (least, greatest) = length(&node);
            if greatest == 0 {
                return None;
            }
            let times = |count: u64| u32::try_from(count).ok();
            let low = low.max(times(min.div_ceil(least.max(1)))?);
            let high = high.min(times(max / greatest).unwrap_or(u32::MAX));
            let enough = u64::from(low).saturating_mul(least) >= min;
            (low <= high && enough).then(|| Node::repeat(*node, low, high))
        }
        _ => None,
    }
}

fn sum(lengths: impl Iterator<Item = (u64, u64)>) -> (u64, u64) {
    lengths.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}
