//! Texts that the model is meant to write, and what inside them needs an origin all the same.

use super::address::{Address, mails};
use super::token::Words;

/// Names of arguments that are composed; also as the last part of a name with underscores.
const NAMES: [&str; 45] = [
    "body",
    "message",
    "messages",
    "content",
    "contents",
    "text",
    "summary",
    "description",
    "note",
    "notes",
    "comment",
    "comments",
    "reason",
    "query",
    "question",
    "subject",
    "title",
    "code",
    "script",
    "sql",
    "expression",
    "formula",
    "function",
    "prompt",
    "caption",
    "review",
    "feedback",
    "bio",
    "details",
    "instruction",
    "instructions",
    "tweet",
    "post",
    "equation",
    "msg",
    "answer",
    "command",
    "regex",
    "pattern",
    "essay",
    "story",
    "paragraph",
    "html",
    "markdown",
    "snippet",
];
/// Characters and tokens beyond which a text is composed whatever its name is.
const LONG: usize = 80;
const MANY: usize = 10;
/// Words that a long value has at least if it is a text.
const WORDS: usize = 3;
/// Words of a composed text that are looked at.
const CHUNKS: usize = 20_000;
/// Digits from which a number inside a composed text is traced.
const DIGITS: usize = 6;

/// Whether an argument with this name and value, of so many tokens, is a text that the model is meant to write.
pub(crate) fn is_composed(name: &str, value: &str, tokens: usize) -> bool {
    let value = value.trim();
    let is_long = || value.chars().count() > LONG || value.contains('\n') || tokens > MANY;
    is_named_composed(name, value) || (is_long() && is_text(value))
}

/// Whether the name alone says so.
pub(crate) fn is_named_composed(name: &str, value: &str) -> bool {
    // Of "emailBody2" it is "body".
    let words = Words::of(name);
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let last = (0..words.len()).rev().map(|at| words.word(at)).find(|word| !is_number(word)).unwrap_or_default();
    // A code like "USD" or "NY" is no program.
    let is_short = matches!(last, "code") && value.len() <= 12 && !value.contains(char::is_whitespace);
    NAMES.contains(&last) && !is_short
}

/// Whether a value has words in a row. An address of any length is none.
fn is_text(value: &str) -> bool {
    let has_words = value.split_whitespace().nth(WORDS - 1).is_some();
    // Other scripts write words without blanks between them.
    has_words || value.chars().filter(|c| !c.is_ascii() && c.is_alphabetic()).nth(MANY).is_some()
}

/// Where the addresses inside a text stand that is none itself.
pub(crate) fn addresses(text: &str) -> Vec<(usize, usize)> {
    if !text.contains(['@', '.', ':', '+']) && !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let is_address = |(start, end): &(usize, usize)| text.get(*start..*end).and_then(Address::of).is_some();
    pieces(text).0.into_iter().filter(is_address).collect()
}

/// An id mixes letters and digits.
fn is_id(chunk: &str) -> bool {
    let count = |fits: fn(char) -> bool| chunk.chars().filter(|c| fits(*c)).count();
    let (letters, digits) = (count(char::is_alphabetic), count(|c| c.is_ascii_digit()));
    let plain = chunk.chars().all(|c| c.is_alphanumeric() || "-_.:".contains(c));
    plain && ((letters > 0 && digits > 1 && letters + digits >= 5) || (letters == 0 && digits >= DIGITS))
}

/// The addresses, long numbers and ids inside a text: where they stand, in bytes; and whether these are all.
pub(crate) fn pieces(text: &str) -> (Vec<(usize, usize)>, bool) {
    let mut found = Vec::new();
    let is_cut = |c: char| c.is_whitespace() || "\"'<>()[]{}|,;`“”«»、。，；：（）【】「」".contains(c);
    let mut start = 0;
    for chunk in text.split_inclusive(is_cut).take(CHUNKS) {
        let whole = chunk.trim_end_matches(is_cut).trim_end_matches(['.', '!', '?', ':']);
        if whole.contains(['@', '＠', '﹫']) && Address::of(whole) != Some(Address::Url) {
            // "mail:someone@example.com", or two of them in any marks.
            found.extend(mails(whole).into_iter().map(|(from, to)| (start + from, start + to)));
        } else if whole.contains(|c: char| !c.is_alphabetic()) {
            // "*example.com*", "*//example.com/x"
            let is_mark = |c: char| !c.is_alphanumeric() && c != '+';
            let bare = whole.trim_end_matches(is_mark).trim_start_matches(|c| is_mark(c) && c != '/');
            let of = |fits: fn(&str) -> bool| [whole, bare].into_iter().find(|item| fits(item));
            found.extend(of(|item| Address::of(item).is_some()).or_else(|| of(is_id)).map(|item| {
                let at = start + whole.find(item).unwrap_or(0);
                (at, at + item.len())
            }));
        }
        start += chunk.len();
    }
    found.extend(spaced(text));
    (found, start == text.len())
}

/// Telephone numbers and bank accounts in groups.
fn spaced(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let is_part = |c: char| c.is_ascii_digit() || c.is_ascii_uppercase() || " +-()./".contains(c);
    let mut start = 0;
    for chunk in text.split(|c| !is_part(c)) {
        let item = chunk.trim_matches(|c: char| " -./".contains(c));
        let at = start + chunk.find(item).unwrap_or(0);
        let digits = item.bytes().filter(u8::is_ascii_digit).count();
        if digits >= DIGITS
            && item.contains(' ')
            && matches!(Address::of(item), Some(Address::Account | Address::Telephone))
        {
            found.push((at, at + item.len()));
        }
        start += chunk.len();
        start += text.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_addresses_and_ids() {
        let text = "Dear Ann, pay 1250000 to DE89 3704 0044 0532 0130 00, ask <bob@x.org>, see (https://a.io/b), RB-4471. Bye 42";
        let found: Vec<&str> = pieces(text).0.into_iter().filter_map(|(start, end)| text.get(start..end)).collect();
        let words = "word ".repeat(30_000);
        assert!(pieces(text).1 && !pieces(&words).1);
        assert_eq!(found, ["1250000", "bob@x.org", "https://a.io/b", "RB-4471", "DE89 3704 0044 0532 0130 00"]);
    }

    #[test]
    fn names_and_length_make_a_text_composed() {
        assert!(is_composed("email_body", "Hi", 1) && is_composed("x", "a\nb c", 3));
        assert!(is_composed("x", &"word ".repeat(20), 20) && is_composed("x", "a b c d e f g h i j k", 11));
        assert!(!is_composed("to", "a@b.example\n", 3) && !is_composed("to", &"aB3x".repeat(30), 60));
        assert!(!is_composed("city", "Paris", 1) && !is_composed("currency_code", "EUR", 1));
    }
}
