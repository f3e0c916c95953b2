//! Whether a move is a part of a program, a comment, or is taken back, by what stands next to it.

use super::enclosure::{around, strip_marks};
use super::is_quote;
use crate::reply::Span;

/// Marks of comments, of differences and of denial that a line may begin with.
const LINE_MARKS: [&str; 9] = ["//", "#", "--", "%", ";", "!", "~", "&&", "||"];
/// Signs that say no, and boxes that nobody has ticked.
const DENIALS: [&str; 6] = ["[ ]", "☐", "❌", "✗", "🚫", "⛔"];

/// The move is a comment, a line of a difference or a part of a program by what stands next to it on its line.
pub(super) fn in_code(raw: &str, place: Span) -> bool {
    let after = raw.get(place.end..).unwrap_or("");
    let rest = after.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    if rest || after.starts_with('(') || is_taken_back(after) {
        return true;
    }
    let written = around(raw, place).of(raw);
    if written.trim().is_empty() {
        return false;
    }
    let left = strip_marks(written);
    let said = left.trim();
    // With a blank behind it, it begins an item of a list.
    let difference = matches!(said, "-" | "+") && !left.ends_with(char::is_whitespace);
    let marked = |mark: &str| {
        let only = said.trim_end_matches(mark).is_empty() && !said.is_empty();
        only || mark.len() == 2 && mark != "--" && said.ends_with(mark)
    };
    let placeholder = left.ends_with('$') || left.trim_end().ends_with(" ?");
    difference
        || said == "[]"
        || placeholder
        || is_value(said)
        || is_branch(said)
        || LINE_MARKS.iter().any(|mark| marked(mark))
        || DENIALS.iter().any(|sign| said.ends_with(sign))
}

/// What stands behind a move on its line, or alone on the next one, and takes it back: `if ok`, `&& false`, `❌`.
fn is_taken_back(after: &str) -> bool {
    let line = after.lines().next().unwrap_or("");
    let word = line.trim_start().split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    let apart = line.starts_with([' ', '\t']);
    let sign = after.trim_start();
    apart && (BRANCHES.contains(&word) || ["&&", "||"].iter().any(|sign| line.trim_start().starts_with(sign)))
        || DENIALS.iter().any(|denial| sign.starts_with(denial))
}

/// Whether the move is what a line of a program gives or keeps, or the value of a member: `x =`, `return`, `"draft":`.
fn is_value(said: &str) -> bool {
    let word = said.rsplit(char::is_whitespace).next().unwrap_or("");
    let member = said.strip_suffix(':').is_some_and(|key| key.ends_with(is_quote));
    member || matches!(word, "return" | "yield" | "lambda:") || said.ends_with('=') && !said.ends_with("==")
}

/// Words that begin a branch of a program.
const BRANCHES: [&str; 7] = ["if", "elif", "else", "unless", "while", "when", "until"];
/// Words of the head of a branch, at most: a longer line is a sentence.
const HEAD: usize = 5;

/// Whether a line is the head of a branch: `if (ok)`, `elif ok:`, `else`.
pub(super) fn is_branch(line: &str) -> bool {
    if !line.ends_with([')', ':', '?', 'n', 'N', 'e', 'E']) {
        return false;
    }
    let small = line.to_lowercase();
    let word = small.split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    BRANCHES.contains(&word)
        && line.split_whitespace().count() <= HEAD
        && (line.ends_with([')', ':', '?']) || small.ends_with(" then") || small == "else")
}
