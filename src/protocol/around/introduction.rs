//! Words between the tags of a protocol and its move, and on the line of a bracket around it.

use super::enclosure::strip_marks;
use super::keys::without_fence_start;
use super::neighbours::leads_elsewhere;
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::surrounding_text::{fence_before, without_tokens};
use crate::reply::doubt::{is_deciding, words_of};
use crate::reply::{RepairCode, Span};

/// Brackets around a move that are taken for its own: between one of them and words in front of it, nobody can tell.
const BRACKETS: [RepairCode; 2] = [RepairCode::DoubledBraces, RepairCode::SingleElementArray];
/// What begins a comment; its words are judged elsewhere.
const COMMENTS: [&str; 5] = ["//", "#", "/*", "<!--", "--"];

/// Words of a remark behind a move, at most.
const REMARK: usize = 4;

/// Whether words inside the tags of a protocol may be a part of the move: before it, all that does not end like a
/// sentence or an announcement; behind it, a few with one that decides. Brackets in them are judged elsewhere.
pub(crate) fn has_words(before: &str, behind: &str) -> bool {
    let said = said(before);
    let said = said.get(..fence_before(said).unwrap_or(said.len())).unwrap_or(said).trim_end();
    let line = last_line(said).trim_start();
    let introduces = said.ends_with([':', '：', '.', '!', '?', '…', '。', '*']) && !leads_elsewhere(line)
        || COMMENTS.iter().any(|mark| line.starts_with(mark));
    if said.contains(char::is_alphanumeric) && !said.contains(['{', '[']) && !introduces {
        return true;
    }
    let small = self::said(behind).to_lowercase();
    let words = || words_of(&small);
    words().nth(REMARK).is_none() && words().any(|word| is_deciding(word) || matches!(word, "never" | "no" | "stop"))
}

/// A bracket around the move that was read as its own, and that words stand in front of: `never [{…}]`, `later() { {…} }`.
pub(crate) fn bracket_of_words(raw: &str, notes: &RepairNotes) -> Option<Span> {
    let place = BRACKETS.into_iter().find_map(|code| notes.first(code))?;
    let line = last_line(raw.get(..place.start)?);
    let said = strip_marks(without_fence_start(line.trim()));
    let number =
        said.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '*' | '.' | ')' | ' ' | '[' | '{'));
    let said = number.trim();
    // A brace on the next line is no doubled one.
    let apart = place.of(raw).starts_with("{\n") || place.of(raw).starts_with("{ ");
    (!said.is_empty() && (apart || !said.ends_with([':', '：']))).then_some(place)
}

fn said(text: &str) -> &str {
    without_tokens(text).0.map_or("", |kept| kept.of(text))
}

fn last_line(text: &str) -> &str {
    text.rsplit('\n').next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::has_words;

    #[test]
    fn words_that_may_be_a_part_of_the_move() {
        for (before, behind) in [
            ("skip ", ""),
            ("on friday ", ""),
            ("maybe\n", ""),
            ("later(", ""),
            ("if approved:\n", ""),
            ("", "\nnever\n"),
            ("", " when approved"),
            ("not ", ""),
        ] {
            assert!(has_words(before, behind), "{before}…{behind}");
        }
    }

    #[test]
    fn words_that_introduce_it() {
        for (before, behind) in [
            ("", ""),
            ("\n", "\n"),
            ("```json\n", "\n```\n"),
            ("I look it up.\n", ""),
            ("The calls:\n", ""),
            ("**Calls:**\n", ""),
            ("The calls:\n```json\n", "\n```\n"),
            ("// the first\n", ""),
            ("", " // the first"),
            ("", "\n]\n"),
            ("<|x|>", "<|y|>"),
        ] {
            assert!(!has_words(before, behind), "{before}…{behind}");
        }
    }
}
