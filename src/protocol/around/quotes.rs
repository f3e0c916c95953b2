//! Quotes of any language and markup that open before a move and close behind it.

use crate::protocol::following_text::{closes_quote, opens_quote};

/// Quotes that are one family: any of them closes what another one opened.
const QUOTES: [&[char]; 11] = [
    &['"', '＂'],
    &['\'', '＇'],
    &['“', '”', '„', '‟'],
    &['‘', '’', '‚', '‛'],
    &['«', '»', '‹', '›', '「', '」'],
    &['『', '』'],
    &['《', '》', '〈', '〉'],
    &['❝', '❞'],
    &['〝', '〞', '〟'],
    &['⟨', '⟩', '⟪', '⟫'],
    &['″'],
];
/// Quotes of several characters: what opens, and what closes.
const WRITTEN_QUOTES: [(&str, &str); 5] =
    [("``", "''"), ("&quot;", "&quot;"), ("&#34;", "&#34;"), ("&ldquo;", "&rdquo;"), ("&laquo;", "&raquo;")];

/// A quote that opens before the move and closes behind it.
pub(super) fn in_quotes(line: &(String, String), left: &str, right: &str) -> bool {
    if right.is_ascii() && !right.contains(['"', '\'', '`', '&']) {
        return false;
    }
    if opens_quote(left, left.len()) && closes_quote(right) == Some(true) {
        return true;
    }
    // Backticks around a move alone are a fence, in a sentence they are a quote.
    let inline = left.trim_end();
    let run = inline.len() - inline.trim_end_matches('`').len();
    let words = |text: &str| text.contains(char::is_alphanumeric);
    if (1..3).contains(&run) && right.trim_start().starts_with('`') && (words(&line.0) || words(&line.1)) {
        return true;
    }
    let written = |(opening, closing): &(&str, &str)| {
        let closed = opening == closing && left.matches(opening).count() % 2 == 0;
        let fence = left.trim_end().ends_with("```");
        let opened = left.rfind(opening).and_then(|at| left.get(at + opening.len()..));
        !closed && !fence && right.contains(closing) && opened.is_some_and(|rest| !rest.contains(closing))
    };
    QUOTES.iter().any(|family| is_open(left, family) && has_close(right, family)) || WRITTEN_QUOTES.iter().any(written)
}

/// Whether a quote at this place is an apostrophe inside a word.
fn in_word(text: &str, at: usize, c: char) -> bool {
    let before = text.get(..at).and_then(|text| text.chars().next_back());
    let after = text.get(at + c.len_utf8()..).and_then(|text| text.chars().next());
    before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric)
}

/// Whether a quote of the family is open at the end of the text.
fn is_open(text: &str, family: &[char]) -> bool {
    let apostrophe = family.contains(&'\'') || family.contains(&'’');
    let mut open = false;
    for (at, c) in text.char_indices().filter(|(_, c)| family.contains(c)) {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        if open && before == Some('\\') {
            continue;
        }
        if apostrophe && in_word(text, at, c) && !is_prefixed(text, at) {
            continue;
        }
        // After a word or a number, where nothing is open: a plural, or inches.
        let ends_word = before.is_some_and(char::is_alphanumeric) && !is_prefixed(text, at);
        if !open && ends_word && (apostrophe || before.is_some_and(|c| c.is_ascii_digit())) {
            continue;
        }
        open = !open;
    }
    open
}

/// Whether the letters before a quote are those of a literal in a program: `f'`, `rb"`.
fn is_prefixed(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or("");
    let word = before.trim_end_matches(|c: char| matches!(c.to_ascii_lowercase(), 'b' | 'f' | 'r' | 'u'));
    let length = before.len() - word.len();
    (1..=2).contains(&length) && !word.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Whether a quote of the family may close something in the text.
fn has_close(text: &str, family: &[char]) -> bool {
    let apostrophe = family.contains(&'\'') || family.contains(&'’');
    text.char_indices().any(|(at, c)| family.contains(&c) && !(apostrophe && in_word(text, at, c)))
}
