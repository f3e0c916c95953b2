//! Whether a move is a part of a program, a comment, or is taken back, by what stands next to it.

use super::enclosure::{around, strip_marks};
use super::is_quote;
use super::neighbours::leads_elsewhere;
use crate::protocol::retraction::NARRATION;
use crate::reply::Span;
use crate::reply::doubt;

/// Marks of comments, of differences and of denial that a line may begin with.
const LINE_MARKS: [&str; 13] = ["//", "#", "--", "%", ";", "!", "~", "&&", "||", "?", "¿", "¬", "≠"];
/// Signs that say no, and boxes that nobody has ticked.
pub(super) const DENIALS: [&str; 19] =
    ["[ ]", "☐", "☒", "❌", "✗", "✘", "✖", "⨯", "❎", "👎", "🛑", "🚫", "⛔", "⏸", "⏭", "🚧", "🙅", "🗑", "❓"];

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
    let operator = said == "$" || said.ends_with("==") && said.contains(char::is_alphanumeric) || said.ends_with("=>");
    let last = said.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or("").to_lowercase();
    let conjunction = matches!(last.as_str(), "and" | "if" | "never" | "not" | "or" | "unless" | "when");
    difference
        || said == "[]"
        || placeholder
        || operator
        || conjunction
        || is_value(said)
        || leads_elsewhere(said)
        || LINE_MARKS.iter().any(|mark| marked(mark))
        || DENIALS.iter().any(|sign| said.ends_with(sign))
}

/// What stands behind a move on its line, or alone on the next one, and takes it back: `if ok`, `&& false`, `❌`.
fn is_taken_back(after: &str) -> bool {
    let line = after.lines().next().unwrap_or("");
    let word = line.trim_start().split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    let apart = line.starts_with([' ', '\t']);
    let sign = after.trim_start();
    apart && (doubt::is_branch(word) || ["&&", "||"].iter().any(|sign| line.trim_start().starts_with(sign)))
        || DENIALS.iter().any(|denial| sign.starts_with(denial))
}

/// Whether a line behind a move goes on with it: `if ok`, `, if ok`, `&& false`, `| jq .`, `.then()`, `?`.
pub(super) fn goes_on(line: &str) -> bool {
    let said = line.trim_start_matches([',', ';', '—', '–', ' ', '\t']);
    let word = said.split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    let short = said.split_whitespace().count() <= HEAD && !said.ends_with(['.', '!']);
    let piped = line
        .strip_prefix('|')
        .is_some_and(|rest| !rest.contains('|') && rest.trim_start().starts_with(|c: char| c.is_alphabetic()));
    let method = line.strip_prefix('.').is_some_and(|rest| {
        let after = rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        after.len() < rest.len() && after.starts_with('(')
    });
    doubt::is_branch(word) && word != "once" && short
        || ["&&", "||"].iter().any(|sign| line.starts_with(sign))
        || piped
        || method
        || line.trim_start_matches(['(', '.', '…', ' ']).starts_with(['?', '？'])
        || ["=", "->", "=>", ": "].iter().any(|sign| line.trim_start().starts_with(sign)) && !line.starts_with("==")
}

/// Whether the move is what a line of a program gives or keeps, or the value of a member: `x =`, `return`, `"draft":`.
pub(super) fn is_value(said: &str) -> bool {
    let word = said.rsplit(char::is_whitespace).next().unwrap_or("");
    let member = said.strip_suffix(':').is_some_and(|key| key.ends_with(is_quote));
    member || matches!(word, "return" | "yield" | "lambda:") || said.ends_with('=') && !said.ends_with("==")
}

/// Words of the head of a branch, at most: a longer line is a sentence if it speaks of the model.
const HEAD: usize = 5;
/// The same of any other line.
const LONGEST_HEAD: usize = 12;
/// Bytes of it.
const LONGEST_LINE: usize = 300;
/// Words that begin a head that isn't a condition.
const HEADS: [&str; 7] = ["after", "catch", "def", "except", "finally", "for", "try"];

/// Whether a line is the head of a branch: `if (ok)`, `elif ok:`, `else`, `**If approved:**`, `try:`, `for x in y:`.
pub(super) fn is_branch(line: &str) -> bool {
    if line.len() > LONGEST_LINE {
        return false;
    }
    let mark = |c: char| c.is_whitespace() || matches!(c, '*' | '_' | '#' | '>' | '-' | '+' | '}' | '`');
    let line = line.trim_start_matches(mark);
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let line =
        number.strip_prefix(['.', ')']).filter(|_| number.len() < line.len()).unwrap_or(line).trim_start_matches(mark);
    let line = line.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`'));
    let word = line.split(|c: char| !c.is_alphabetic()).next().unwrap_or("").to_lowercase();
    let word = word.as_str();
    if !doubt::is_branch(word) && !HEADS.contains(&word) {
        return false;
    }
    let small = line.to_lowercase();
    let count = line.split_whitespace().count();
    let head = line.ends_with([')', ':', '：', '?', '{']) || small.ends_with(" then");
    let code = match word {
        "try" | "finally" => matches!(line.get(word.len()..).unwrap_or("").trim(), ":" | "{"),
        "except" | "catch" => head && count <= HEAD,
        "for" => small.contains(" in ") && line.ends_with(':') && count <= HEAD || line.ends_with('{'),
        "def" => line.ends_with(':') && line.contains('('),
        "after" => line.ends_with([':', '：']) && count <= 2,
        _ => false,
    };
    let again = small.starts_with("once more") || small.starts_with("once again");
    if code || again || HEADS.contains(&word) {
        return code;
    }
    let bare = line.ends_with(char::is_alphanumeric);
    let tells = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| NARRATION.contains(&word));
    // "While we wait, I look:" is a sentence however short it is.
    let goes_on = small.split_once(',').is_some_and(|(_, rest)| tells(rest));
    count <= HEAD && (head || bare) && !goes_on || count <= LONGEST_HEAD && head && !tells(&small)
}
