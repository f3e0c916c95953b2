//! Conditions beside a move, in any notation: a line of settings, an object without quotes, a tag, a comment, an option
//! of a command.

use super::keys::{is_name, is_quote};
use crate::protocol::unknown_keys::{is_condition_of_text, is_remark};
use crate::reply::Span;
use crate::reply::doubt::{is_deciding, is_mark, is_not_meant};
use crate::reply::tag::special_token;

/// Words of a value that a setting may have: a longer one is a sentence behind a label.
const WORDS: usize = 3;
/// What begins a comment, and what ends it before the end of its line.
const COMMENTS: [(&str, &str); 11] = [
    ("<!--", "-->"),
    ("/*", "*/"),
    ("(*", "*)"),
    ("{#", "#}"),
    ("{-", "-}"),
    ("<%--", "--%>"),
    ("<#", "#>"),
    ("--[[", "]]"),
    ("{{!", "}}"),
    ("//", "\n"),
    ("#", "\n"),
];
/// What begins a comment where it begins a line, and is punctuation elsewhere.
const LINE_COMMENTS: [&str; 3] = ["--", ";", "%"];
/// Signs around a setting: those of lists, objects and comments.
const MARKS: &str = "-*{}[],#/<>!;%()";
/// What every condition holds, and every object beside a move.
pub(super) const CONDITION: &str = ":={<-/#(;%";
/// Bytes of a tag that are looked at.
const LONGEST_TAG: usize = 120;

/// The first word in a piece of text that says when, how or whether the move is meant.
pub(super) fn find(raw: &str, piece: Span) -> Option<(Span, &str)> {
    let mut at = piece.start;
    for line in piece.of(raw).split_inclusive('\n') {
        let start = at;
        at += line.len();
        if let Some(word) = setting(line).or_else(|| marked(line)).or_else(|| comment(line)) {
            let from = start + line.find(word).unwrap_or(0);
            return Some((Span::new(from, from + word.len()), word));
        }
    }
    long_comment(raw, piece)
}

/// The first such word in a comment over several lines.
fn long_comment(raw: &str, piece: Span) -> Option<(Span, &str)> {
    let text = piece.of(raw);
    let blocks = COMMENTS.iter().filter(|(_, closing)| *closing != "\n");
    let mut long = blocks.flat_map(|mark| comments(text, mark, true)).filter(|inside| inside.contains('\n'));
    let word = long.find_map(|inside| inside.lines().find_map(|line| setting(line).or_else(|| doubt(line))))?;
    let from = piece.start + text.find(word)?;
    Some((Span::new(from, from + word.len()), word))
}

/// Words of keys that say what becomes of the move.
const STATES: [&str; 10] =
    ["action", "approval", "approved", "call", "execute", "execution", "mode", "run", "state", "status"];

/// The name of a setting that is all of its line: `dry_run: true`, `"if" = approved`, `Status: pending`.
fn setting(line: &str) -> Option<&str> {
    let (key, value) = line.split_once([':', '=', '：'])?;
    let word = key.trim_matches(|c: char| c.is_whitespace() || is_quote(c) || MARKS.contains(c));
    let value = value.trim_matches(|c: char| c.is_whitespace() || MARKS.contains(c));
    let named = !word.is_empty() && word.chars().all(|c| is_name(c) || matches!(c, '-' | ' '));
    let short = !value.is_empty() && value.split_whitespace().count() <= WORDS;
    if !named || !short {
        return None;
    }
    let value = value.trim_matches(|c: char| is_quote(c) || c == '.');
    let small = value.to_lowercase();
    let said: Vec<&str> = words(&small).filter(|word| !word.is_empty()).collect();
    let not_meant = is_not_meant(&small) || said.len() > 1 && is_mark(&said.join(" "));
    let switch = matches!(small.as_str(), "true" | "false" | "yes" | "no" | "on" | "off" | "1" | "0");
    if !word.contains(|c: char| c.is_uppercase() || c == ' ') {
        let switch = switch && value.len() > 1 && !is_remark(word);
        return (switch || is_condition_of_text(word)).then_some(word).or(not_meant.then_some(value));
    }
    if key.trim_start().starts_with('<') {
        return None;
    }
    // The label of a sentence says it in fewer ways.
    let key = word.to_lowercase();
    let key: Vec<&str> = words(&key).collect();
    let of_move = key.len() <= WORDS && key.iter().any(|word| STATES.contains(word));
    let approval = key.iter().any(|word| word.starts_with("approv"));
    let needed = approval && key.iter().any(|word| matches!(*word, "needs" | "required" | "requires"));
    let off = matches!(small.as_str(), "false" | "no" | "off" | "0");
    let decides = switch && is_condition_of_text(word) || approval && switch && off != needed || is_requirement(&key);
    decides.then_some(word).or((of_move && (not_meant || is_mark(&small))).then_some(value))
}

/// Whether the words of a key are those of what has to be first.
fn is_requirement(key: &[&str]) -> bool {
    let required = |word: &&str| matches!(*word, "condition" | "precondition" | "prerequisite");
    key.len() <= 2 && key.iter().any(required) || matches!(key, ["trigger" | "when"])
}

/// A word of a comment that says when, how or whether the move is meant.
fn comment(line: &str) -> Option<&str> {
    let begun = LINE_COMMENTS.iter().find_map(|mark| line.trim_start().strip_prefix(mark));
    begun.and_then(doubt).or_else(|| COMMENTS.iter().find_map(|mark| comments(line, mark, false).find_map(doubt)))
}

/// The first deciding word of a text.
fn doubt(text: &str) -> Option<&str> {
    words(text).find(|word| is_deciding(&word.to_lowercase()))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
}

/// What stands in the comments of a text, one behind the other: of a line, whose end may end them, or of a `whole` one.
fn comments<'t>(
    line: &'t str,
    (opening, closing): &(&'static str, &'static str),
    whole: bool,
) -> impl Iterator<Item = &'t str> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + line.get(at..)?.find(opening)?;
            at = start + opening.len();
            let (before, inside) = (line.get(..start)?, line.get(at..)?);
            // At the beginning of its line it is a heading, and before digits it is a number.
            let heading = *opening == "#"
                && (before.is_empty() || inside.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '#'));
            if heading || !may_end(before) {
                continue;
            }
            // Where one never ends, no other one does.
            let length = inside.find(closing).or((!whole).then_some(inside.len()))?;
            at += length;
            return inside.get(..length);
        }
    })
}

/// Whether a comment may begin behind a text: not inside of a word, an address or a path.
fn may_end(before: &str) -> bool {
    before.chars().next_back().is_none_or(|c| c.is_whitespace() || matches!(c, ';' | ',' | ')' | ']' | '}' | '>'))
}

/// A key of an object anywhere in the line, the name or attribute of a tag, an option of a command.
fn marked(line: &str) -> Option<&str> {
    line.match_indices(['{', '<', '-']).find_map(|(at, mark)| {
        let rest = line.get(at + 1..)?;
        match mark {
            "{" => {
                let rest = rest.trim_start().trim_start_matches(is_quote);
                let word = name(rest)?;
                let after = rest.get(word.len()..)?.trim_start_matches(is_quote).trim_start();
                (after.starts_with([':', '=', '：']) && is_condition_of_text(word)).then_some(word)
            }
            "<" if special_token(line.get(at..)?).is_none() => {
                let rest = rest.get(..LONGEST_TAG).unwrap_or(rest);
                let inside = rest.get(..rest.find('>')?)?;
                let mut parts = inside.trim_start_matches('/').split_whitespace();
                let first = parts.next().map(|word| word.trim_end_matches('/')).filter(|word| !word.contains("://"));
                let attributes = parts.filter_map(|part| part.split_once('=')).map(|(word, _)| word);
                first.into_iter().chain(attributes).find(|word| is_condition_of_text(word))
            }
            "-" if line.get(..at)?.ends_with('-') => {
                let option = !line.get(..at - 1)?.ends_with(|c: char| !c.is_whitespace());
                option.then(|| name(rest)).flatten().filter(|word| is_condition_of_text(word))
            }
            _ => None,
        }
    })
}

/// The name that a text begins with.
fn name(text: &str) -> Option<&str> {
    let length = text.find(|c: char| !is_name(c) && c != '-').unwrap_or(text.len());
    text.get(..length).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::reply::Span;

    fn word(text: &str) -> Option<(&str, &str)> {
        find(text, Span::new(0, text.len())).map(|(place, word)| (place.of(text), word))
    }

    #[test]
    fn conditions_in_any_notation() {
        for (text, wanted) in [
            ("if: approved\n", "if"),
            ("\"if\": \"approved\"\n", "if"),
            ("dry_run: true", "dry_run"),
            ("---\ndraft: true\n---\n", "draft"),
            ("- execute = false", "execute"),
            ("{draft: true}", "draft"),
            ("[{draft: true}]", "draft"),
            ("Options: {\"draft\": true}", "draft"),
            ("<dry_run>true</dry_run>", "dry_run"),
            ("<dry_run/>", "dry_run"),
            ("<output draft=\"true\">", "draft"),
            (" --dry-run", "dry-run"),
            ("status: cancelled", "cancelled"),
            (" // dry run", "dry"),
            ("See https://example.org // dry run", "dry"),
            ("# Call # only an example", "only"),
            ("/* so */ then; /* not now */", "not"),
            ("done;// never", "never"),
            (" -- not yet", "not"),
            (" #not yet", "not"),
            (" (* not yet *)", "not"),
            ("<%-- not yet --%>", "not"),
            (" // cancelled", "cancelled"),
            ("approved: false", "approved"),
            ("mode: simulation", "simulation"),
            ("mode=dry-run", "dry-run"),
            ("Mode: dry run", "dry run"),
            ("Dry run: true", "Dry run"),
            ("DRY_RUN=1", "DRY_RUN"),
            ("Status: pending", "pending"),
            ("Status: **not approved**", "not approved"),
            ("Approved: no", "Approved"),
            ("Requires approval: yes", "Requires approval"),
            ("Condition: user agrees", "Condition"),
            ("Run: never", "never"),
            ("When: tomorrow", "When"),
            ("<!-- do not run -->", "not"),
            (" # only an example", "only"),
            ("/*\nThis is\nnot yet\n*/", "not"),
            ("<!--\n * approved: false\n-->", "approved"),
            ("/* approved: false */", "approved"),
            ("# approved: false", "approved"),
            ("; not yet", "not"),
        ] {
            assert_eq!(word(text), Some((wanted, wanted)), "{text}");
        }
    }

    #[test]
    fn texts_without_a_condition() {
        for text in [
            "If: so",
            "Draft: the report that you asked for",
            "I wait until it is done: then I go on",
            "error: not found",
            "<b>if</b>",
            "a --- if",
            "the draft",
            "{x: 1}",
            "dry_run",
            "<|draft|>",
            "status: done",
            "# If so",
            "https://example.org/if",
            "<!-- the first call -->",
            "I look at ticket # 12 if it is open.",
            "See <https://example.org/dry-run>.",
            "It is there -- not here",
            "note: yes",
            "Found: yes",
            "Paid: no",
            "Approved: yes",
            "Test: failed",
            "Step 1: a test",
            "Status: done",
            "amount: 1",
            "I list src/*.py now.\nIt is not much.",
            "/* the first\n of two */",
        ] {
            assert_eq!(word(text), None, "{text}");
        }
    }
}
