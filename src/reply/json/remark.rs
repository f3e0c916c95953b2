//! Which comments inside a move are plain remarks: words about a value that can't be another value, a part of the move or
//! a doubt about it.

use crate::reply::doubt::{is_deciding, words_of};

/// Words before a colon that begin a remark.
const LABELS: [&str; 10] = ["comment", "default", "format", "nb", "note", "remark", "see", "source", "type", "unit"];
/// Words that are a value if they stand alone.
const LITERALS: [&str; 9] = ["false", "nan", "nil", "no", "none", "null", "off", "true", "undefined"];
/// Signs that a remark may have in addition to letters and digits.
const SIGNS: &str = ".,;!-–—()_%°€$£'’/:，。、；！（）";

/// Whether a comment, without its marks, is a plain remark.
pub(super) fn is_plain(comment: &str) -> bool {
    let (label, text) = match comment.split_once([':', '：']) {
        Some((label, rest)) if LABELS.contains(&label.trim().to_lowercase().as_str()) => (true, rest.trim()),
        _ => (false, comment),
    };
    let text = text.trim();
    if text.is_empty() {
        return true;
    }
    let said = text.split_whitespace().filter(|part| !is_link(part)).collect::<Vec<_>>().join(" ");
    let small = said.to_lowercase();
    let words: Vec<&str> = words_of(&small).collect();
    let negated = ["n't", "n’t"].iter().any(|end| small.contains(end));
    if negated || words.iter().any(|word| is_deciding(word)) {
        return false;
    }
    let number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    let value = match words.as_slice() {
        [] => true,
        [only] if LITERALS.contains(only) => true,
        [first, ..] => number(first),
    };
    // A comma at an end, or a sign at the beginning, shows a value that is commented out, or a calculation.
    let begins = text.starts_with(|c: char| c.is_alphanumeric() || c == '(');
    (label || !value && begins) && !text.ends_with(',') && text.split_whitespace().all(is_plain_part)
}

fn is_link(part: &str) -> bool {
    part.starts_with("https://") || part.starts_with("http://")
}

/// Whether a part without blanks holds only words and their punctuation.
fn is_plain_part(part: &str) -> bool {
    // An empty list is named, and is no value of its own.
    if is_link(part) || part.trim_end_matches(['.', ',']) == "[]" {
        return true;
    }
    let mut before = None;
    let mut characters = part.chars().peekable();
    while let Some(c) = characters.next() {
        let after = characters.peek().copied();
        let inside = before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric);
        let plain = match c {
            '\'' | '’' => before.is_some_and(char::is_alphanumeric),
            '/' => inside,
            // A time of day, and no key.
            ':' => inside && before.is_some_and(|c| c.is_ascii_digit()),
            _ => c.is_alphanumeric() || SIGNS.contains(c),
        };
        if !plain {
            return false;
        }
        before = Some(c);
    }
    true
}

/// Whether a comment closes a bracket that it didn't open: it may have swallowed the rest of its line.
pub(super) fn closes_brackets(comment: &str) -> bool {
    let mut depth = 0_usize;
    comment.chars().any(|c| match c {
        '[' | '{' => {
            depth += 1;
            false
        }
        ']' | '}' if depth == 0 => true,
        ']' | '}' => {
            depth -= 1;
            false
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn remarks() {
        for text in [
            "",
            "the path",
            "in the attic",
            "note: in the attic",
            "default: 5",
            "in 2024",
            "3rd floor",
            "changed a.b from [] to 3",
            "counted from the door",
            "the user's flat",
            "km/h",
            "at 12:30",
            "(metric)",
            "see https://example.org/a?b=1",
            "yes",
            "Calculate the area of a circle.",
            "门口",
        ] {
            assert!(is_plain(text), "{text}");
        }
        for text in [
            "only if asked",
            "amount: 500",
            "amount = 500",
            "“amount”: 500",
            "200",
            "200 instead",
            "5, 6",
            "2,",
            "b,",
            "true",
            "None",
            "-1",
            "* 1.2",
            "n + 1",
            "a > b",
            "{x}",
            "[1]",
            "'x'",
            "\"x\"",
            "`x`",
            "right?",
            "we don't know",
            "was x => y",
            "no",
            "cannot say",
            "amount:500",
            "force|skip",
        ] {
            assert!(!is_plain(text), "{text}");
        }
    }
}
