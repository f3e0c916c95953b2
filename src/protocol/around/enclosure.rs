//! Whether something opens before a move and closes behind it: quotes, brackets, marks of markup, a sentence.

use super::code::in_code;
use super::quotes::in_quotes;
use super::{neighbours, openings, pairs, turns};
use crate::reply::Span;
use crate::reply::doubt::is_shown;
use crate::reply::envelope::{has_name_of_reasoning, word_ends};
use crate::reply::tag::special_token;
use std::collections::{HashMap, HashSet};

/// Brackets of prose and of programs.
const BRACKETS: [(char, char); 5] = [('(', ')'), ('[', ']'), ('{', '}'), ('（', '）'), ('【', '】')];
/// Names of tags that models put around a whole reply.
const WRAPPERS: [&str; 14] = [
    "response",
    "reply",
    "json",
    "output",
    "answer",
    "result",
    "assistant",
    "final",
    "message",
    "action",
    "tool_call",
    "tool",
    "function_call",
    "call",
];
/// Names of HTML elements whose text is struck out, quoted, or kept as it is.
const SHOWING: [&str; 7] = ["blockquote", "del", "noscript", "pre", "samp", "strike", "template"];
/// The longest name of a mark.
const LONGEST_MARK: usize = 60;

/// What stands around the move and makes it a text that shows one. The places are the move's own: with the tags of the
/// protocol, and without.
pub(crate) fn find(raw: &str, places: &[Span], before: &[Span], after: &[Span]) -> Option<Span> {
    let (left, right) = (joined(raw, before), joined(raw, after));
    // Most replies end with their move, or with the end of its fence, and so nothing can close behind it.
    let closes = !is_end_of_fence(&right);
    let encloses = |place: Span| {
        let line = (line_before(raw, place, before), line_after(raw, place, after));
        in_sentence(&line, &left, &right) || in_quotes(&line, &left, &right)
    };
    for place in places {
        let is_quoted = closes && encloses(*place)
            || in_quotation(raw, *place)
            || in_code(raw, *place)
            || pairs::in_shown_fence(raw.get(..place.start).unwrap_or(""));
        if is_quoted {
            return Some(around(raw, *place));
        }
    }
    let is_enclosed = if closes {
        in_brackets(&left, &right)
            || in_marks(&left, &right)
            || pairs::enclose(&left, &right)
            || pairs::answers(&right)
            || turns::ends_text_of_others(&right)
    } else {
        shows(&marks(&left)) || openings::is_open(&left)
    };
    let is_shown = is_enclosed || turns::is_of_another(&left) || neighbours::take_back(&left, &right);
    is_shown.then(|| before.last().copied().unwrap_or(Span::at(0)))
}

/// Whether a text is blank but for the marks of a fence on one line.
fn is_end_of_fence(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text.len() > 2 && text.bytes().all(|byte| byte == b'`')
}

/// The pieces, without characters that nobody sees.
fn joined(raw: &str, pieces: &[Span]) -> String {
    let text = pieces.iter().map(|piece| piece.of(raw)).collect::<Vec<_>>().join(" ");
    if text.is_ascii() {
        return text;
    }
    text.chars().filter(|c| !matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{ad}')).collect()
}

/// The part of the move's line before or after it, without what is no text.
fn line_before(raw: &str, place: Span, before: &[Span]) -> String {
    let line = raw.get(..place.start).and_then(|text| text.rfind('\n')).map_or(0, |end| end + 1);
    let pieces = before.iter().map(|piece| Span::new(piece.start.max(line), piece.end));
    joined(raw, &pieces.filter(|piece| piece.start < piece.end).collect::<Vec<_>>())
}

fn line_after(raw: &str, place: Span, after: &[Span]) -> String {
    let line = raw.get(place.end..).and_then(|text| text.find('\n')).map_or(raw.len(), |end| place.end + end);
    let pieces = after.iter().map(|piece| Span::new(piece.start, piece.end.min(line)));
    joined(raw, &pieces.filter(|piece| piece.start < piece.end).collect::<Vec<_>>())
}

/// Text without control tokens.
fn without_any_tokens(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let token = special_token(rest);
        if token.is_none() {
            kept.push(c);
        }
        rest = rest.get(token.unwrap_or(c.len_utf8())..).unwrap_or("");
    }
    kept
}

/// Words, or the bars of a table, on both sides of the move on its line.
fn in_sentence(line: &(String, String), before: &str, after: &str) -> bool {
    let left = strip_marks(&without_any_tokens(&line.0));
    let right = strip_marks(&without_any_tokens(&line.1));
    let says = |text: &str| text.contains(|c: char| c.is_alphanumeric() || c == '|');
    // The word of a fence, the number of a list and the role of a chat template say nothing.
    let left = super::keys::without_fence_start(left.trim());
    let number = left.trim_start_matches(|c: char| c.is_ascii_digit());
    let left = if number.len() < left.len() { number.strip_prefix(['.', ')']).unwrap_or(left) } else { left };
    let left = if left.eq_ignore_ascii_case("assistant") { "" } else { left };
    if says(left) && says(&right) {
        return true;
    }
    // The sentence before the move goes on behind it, wherever its lines break.
    let rest = after.trim_start().split('\n').next().unwrap_or("");
    let goes_on =
        rest.strip_prefix(['.', ',', ';', '!', '?', ')']).is_some_and(|rest| rest.starts_with(' ') && says(rest));
    let last = before.trim_end().chars().next_back();
    goes_on && last.is_some_and(|c| c.is_alphanumeric() || matches!(c, ':' | ',' | '-'))
}

/// The line of the move.
pub(super) fn around(raw: &str, place: Span) -> Span {
    let start = raw.get(..place.start).and_then(|text| text.rfind('\n')).map_or(0, |end| end + 1);
    Span::new(start, place.start)
}

/// A line of a quotation of Markdown.
fn in_quotation(raw: &str, place: Span) -> bool {
    around(raw, place).of(raw).trim_start().starts_with(['>', '＞'])
}

/// A bracket that opens before the move and closes behind it.
fn in_brackets(left: &str, right: &str) -> bool {
    let both = |(open, close): &(char, char)| {
        let left = left.chars().fold(0_usize, |depth, c| match c {
            _ if c == *open => depth + 1,
            _ if c == *close => depth.saturating_sub(1),
            _ => depth,
        });
        let mut depth = 0_usize;
        let closes = right.chars().any(|c| {
            if c == *open {
                depth += 1;
            } else if c == *close {
                if depth == 0 {
                    return true;
                }
                depth -= 1;
            }
            false
        });
        left > 0 && closes
    };
    BRACKETS.iter().any(both)
}

/// A mark of markup in a text, such as `<name …>`, `[NAME]`, `</name>`.
struct Mark<'a> {
    name: &'a str,
    closes: bool,
    /// It holds nothing but its name.
    bare: bool,
}

impl Mark<'_> {
    /// Whether the text behind it is only shown.
    fn shows(&self) -> bool {
        let element = || SHOWING.iter().any(|name| self.name.eq_ignore_ascii_case(name));
        self.name.split(|c: char| !c.is_alphanumeric()).any(is_shown) || element()
    }
}

/// The marks of a text that are no control tokens.
fn marks(text: &str) -> Vec<Mark<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find(['<', '[', '◁'])) {
        at += offset;
        let rest = text.get(at..).unwrap_or("");
        if let Some(length) = special_token(rest) {
            at += length;
            continue;
        }
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let inside = rest.get(first..).unwrap_or("");
        let bounded = inside.char_indices().take(LONGEST_MARK).find(|(_, c)| matches!(c, '>' | ']' | '▷' | '<' | '\n'));
        let Some((end, '>' | ']' | '▷')) = bounded else {
            at += first;
            continue;
        };
        let name = inside.get(..end).unwrap_or("");
        let closes = name.trim_start_matches('|').starts_with('/');
        let name = name.trim_matches(|c: char| matches!(c, '|' | '/' | ' '));
        let word = name.split([' ', '\n', '=']).next().unwrap_or("");
        let is_word = word.starts_with(|c: char| c.is_alphabetic() || c == '!')
            && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '.' | '!' | '|'));
        // In square brackets a lower-case word is a link or a reference.
        if is_word && (!rest.starts_with('[') || closes || !word.contains(char::is_lowercase) && word.len() > 2) {
            found.push(Mark { name: word, closes, bare: word.len() == name.len() });
        }
        at += first;
    }
    found
}

/// A mark that opens before the move, and one behind it that may close it.
fn in_marks(left: &str, right: &str) -> bool {
    let before = marks(left);
    if ends_reasoning(right) || in_tokens(left, right) || in_signs(left, right) || shows(&before) {
        return true;
    }
    let behind = marks(right);
    if behind.is_empty() {
        return false;
    }
    if ends_unopened_reasoning(&before, &behind) || shown_until(&behind) {
        return true;
    }
    // In square brackets, a lower-case word is a mark where it is closed.
    let small = left.to_ascii_lowercase();
    let words: HashSet<&str> =
        small.split('[').skip(1).filter_map(|text| text.split([']', ' ', '=', '\n']).next()).collect();
    if behind.iter().any(|mark| mark.closes && words.contains(mark.name.to_ascii_lowercase().as_str())) {
        return true;
    }
    let mut open: HashMap<String, usize> = HashMap::new();
    let attributes = before.iter().any(|mark| !mark.bare);
    for mark in before {
        let count = open.entry(mark.name.to_ascii_lowercase()).or_default();
        *count = if mark.closes { count.saturating_sub(1) } else { *count + 1 };
    }
    open.retain(|_, count| *count > 0);
    if open.is_empty() {
        return false;
    }
    // A tag around the whole reply is a wrapper, and says nothing.
    let wrapper = |name: &String| WRAPPERS.contains(&name.as_str());
    let bare = |text: &str| !strip_marks(text).contains(|c: char| c.is_alphanumeric() || c == '>');
    !(open.keys().all(wrapper) && !attributes && bare(left) && bare(right))
}

/// Whether a section that a model thinks in ends behind the move, and begins nowhere: the chat template has opened it.
fn ends_unopened_reasoning(before: &[Mark<'_>], behind: &[Mark<'_>]) -> bool {
    let mut begun: HashSet<String> = before.iter().map(|mark| mark.name.to_ascii_lowercase()).collect();
    behind.iter().any(|mark| {
        let orphan =
            mark.closes && !begun.contains(&mark.name.to_ascii_lowercase()) && has_name_of_reasoning(mark.name);
        begun.insert(mark.name.to_ascii_lowercase());
        orphan
    })
}

/// Whether a tag is open that shows something.
fn shows(marks: &[Mark<'_>]) -> bool {
    marks.iter().rfind(|mark| mark.shows()).is_some_and(|mark| !mark.closes)
}

/// Whether a tag is closed behind the move that shows something, and that opens nowhere behind it.
fn shown_until(behind: &[Mark<'_>]) -> bool {
    behind.iter().find(|mark| mark.shows()).is_some_and(|mark| mark.closes)
}

/// Names of control tokens that chat templates put around every reply.
const TURNS: [&str; 10] =
    ["im", "turn", "header", "headerid", "text", "message", "sentence", "response", "solution", "assistant"];

/// Whether a text holds a control token that no chat template puts around a reply: it may begin reasoning.
pub(crate) fn has_other_tokens(text: &str) -> bool {
    !token_names(text).is_empty()
}

/// The names of the control tokens of a text, without what says that they begin or end something.
fn token_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find('<')) {
        at += offset;
        let rest = text.get(at..).unwrap_or("");
        let length = special_token(rest).unwrap_or(1);
        let name = rest.get(1..length).unwrap_or("").to_ascii_lowercase();
        let words = name.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| !matches!(*word, "" | "begin" | "end" | "start" | "of" | "stop" | "eo" | "bo"));
        let name: String = words.collect();
        if !name.is_empty() && !TURNS.contains(&name.as_str()) {
            names.push(name);
        }
        at += length;
    }
    names
}

/// Control tokens of one name on both sides, or a mark before the move that a control token closes: `<s class="x">`.
fn in_tokens(left: &str, right: &str) -> bool {
    let closing: HashSet<String> = token_names(right).into_iter().collect();
    let marked = || marks(left).iter().any(|mark| !mark.closes && closing.contains(&mark.name.to_ascii_lowercase()));
    !closing.is_empty() && (token_names(left).iter().any(|name| closing.contains(name)) || marked())
}

/// A name behind a sign before the move, and the same with a slash between them behind it: `◇musing▷` and `◇/musing▷`.
fn in_signs(left: &str, right: &str) -> bool {
    let closing: HashSet<(char, &str)> = signed(right, true).collect();
    !closing.is_empty() && signed(left, false).any(|mark| closing.contains(&mark))
}

/// The names behind signs, or behind a sign and a slash.
fn signed(text: &str, slash: bool) -> impl Iterator<Item = (char, &str)> {
    text.char_indices().filter_map(move |(at, sign)| {
        if sign.is_alphanumeric() || sign.is_whitespace() || PATH_SIGNS.contains(&sign) {
            return None;
        }
        let rest = text.get(at + sign.len_utf8()..)?;
        let rest = if slash { rest.strip_prefix('/')? } else { rest };
        let length = rest.char_indices().take(LONGEST_MARK).find(|(_, c)| !c.is_alphanumeric() && *c != '_');
        let name = rest.get(..length.map_or(rest.len().min(LONGEST_MARK), |(end, _)| end))?;
        (name.len() >= 2).then_some((sign, name))
    })
}

/// Signs before a slash that belong to a path, an address or a tag.
const PATH_SIGNS: [char; 12] = ['<', '[', '/', ':', '.', '~', '"', '\'', '(', ')', '-', '_'];

/// The words with which a model ends its reasoning.
fn ends_reasoning(right: &str) -> bool {
    let small = right.to_ascii_lowercase();
    word_ends().any(|end| small.contains(&end.to_ascii_lowercase()))
}

/// Text without what stands in angle brackets.
pub(crate) fn strip_marks(text: &str) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for c in text.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => inside = false,
            _ if !inside => kept.push(c),
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::reply::Span;

    /// Whether something stands around `M`.
    fn shown(text: &str) -> bool {
        let at = text.find("<M>").unwrap();
        let place = Span::new(at, at + 3);
        find(text, &[place], &[Span::new(0, at)], &[Span::new(at + 3, text.len())]).is_some()
    }

    #[test]
    fn what_opens_before_and_closes_behind() {
        for text in [
            "'<M>'",
            "print('<M>')",
            "'''\n<M>\n'''",
            "x = f\"see: <M>\"",
            "['a', '<M>']",
            "“<M>”",
            "\"\"\"a\n<M>\"\"\"",
            "Do not: <M>, it is wrong",
            "| a | <M> | b |",
            "(so <M>)",
            "> <M>",
            "<mull>so <M></mull>",
            "<!-- <M> -->",
            "Say `<M>` now",
            "[THOUGHTS] <M> [/THOUGHTS]\nHi",
            "<a1>\n<M>\n<a2>\nno",
            "repr(\n  '<M>\n')",
            "[thinking]\n<M>\n[/thinking]\nHi",
            "<thi\u{200b}nk>\n<M>\n</thi\u{200b}nk>\nHi",
            "```example\n<M>\n```",
            "<example>\n<M>",
            "> <tool_call>\n<M>\n</tool_call>",
            "<tool_call status=\"cancelled\"><M></tool_call>",
            "<s class=\"x\"><M></s>",
            "<not_run>\n<M>",
            "Do not run this:\n<M>",
            "Thought: If approved: <M>",
            "<M>\n<thoughts>do not run</thoughts>",
            "<M>\n<answer>No</answer>",
        ] {
            assert!(shown(text), "{text}");
        }
        for text in [
            "<M>",
            "I'm sure.\n<M>\nIt's done.",
            "He said \"done.\"\n<M>\n\"next\"",
            "Now: <M>",
            "<M> there",
            "`<M>`",
            "(so)\n<M>\n(there)",
            "1. <M> x",
            "<response><M></response>",
            "```json\n<M>\n```",
            "a) so\n<M>\nb) there",
            "The users' data\n<M>\nthe dogs'",
            "<b>so</b>\n<M>\n<i>x</i>",
            "a 5\" disk\n<M>\na 3\" disk",
            "<|x|>assistant<M><|y|> a",
            "## Call\n<M>",
            "<example>a</example>\n<M>",
            "<M>\n<example>a</example>",
            "<M>\n--- email ---\nhi\n--- end of email ---",
            "```json copy=false\n<M>\n```",
        ] {
            assert!(!shown(text), "{text}");
        }
    }

    #[test]
    fn a_text_that_only_ends_or_is_switched_off() {
        for text in [
            "<del>\n<M>",
            "<M>\n</example>",
            "<M>\n--- END EMAIL ---",
            "```json exec=false\n<M>\n```",
            "```{r eval=FALSE}\n<M>\n```",
        ] {
            assert!(shown(text), "{text}");
        }
    }

    #[test]
    fn parts_of_a_program() {
        for text in [
            "// <M>",
            "# <M>",
            "-<M>",
            "- [ ] <M>",
            "false && <M>",
            "if (ok) <M>",
            "else: <M>",
            "$<M>",
            "<M>.run()",
            "if approved:\n    <M>",
            "<M> if ok",
            "<M> && false",
            "ok ? <M>",
            "<M>\n❌",
            "x = <M>",
            "return <M>",
            "\"draft\": <M>",
            "::: example\n<M>",
        ] {
            assert!(shown(text), "{text}");
        }
        for text in ["- <M>", "<M>.", "If it is all as you say I do it now:\n<M>", "<M>\nIf you like, I do more."] {
            assert!(!shown(text), "{text}");
        }
    }
}
