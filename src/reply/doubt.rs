//! Words that mark nearby text as not meant, not yet meant, or meant only in some case: one table for comments,
//! settings, keys, headings, tags and fences.

use std::sync::LazyLock;

/// In a comment it is more than a plain remark.
const COMMENT: u8 = 1;
/// It is the value of a setting that marks text as not meant.
const VALUE: u8 = 1 << 1;
/// It names a tag, a fence or a section with text that is only shown, or that someone else wrote.
const SHOWN: u8 = 1 << 2;
/// It is a word of a key that says when, how or whether a move is meant.
const KEY: u8 = 1 << 3;
/// The same, and it may also say how something went.
const REPORT: u8 = 1 << 4;
/// It begins a branch of a program, or a condition.
const BRANCH: u8 = 1 << 5;
/// It is a mark if it stands alone, or only among words for the move: on its line, in a heading, in brackets, after the
/// marks of a fence.
const ALONE: u8 = 1 << 6;

/// The table: for each row, the uses in which its words count, and the words.
const TABLE: &[(u8, &[&str])] = &[
    (COMMENT | KEY | BRANCH, &["if", "unless", "until", "when"]),
    (COMMENT | BRANCH, &["else", "otherwise"]),
    (BRANCH, &["elif", "while", "once", "provided"]),
    (COMMENT | KEY | VALUE | SHOWN | ALONE, &["draft"]),
    (COMMENT | KEY | VALUE | ALONE, &["canceled", "cancelled"]),
    (COMMENT | KEY | VALUE | ALONE, &["pending"]),
    (COMMENT | KEY | ALONE, &["dry"]),
    (COMMENT | KEY, &["cancel", "confirm", "confirmation"]),
    (COMMENT | KEY | ALONE, &["conditional"]),
    (COMMENT | KEY, &["depends"]),
    (KEY, &["condition", "execute", "precondition", "prerequisite"]),
    (COMMENT | REPORT, &["wait"]),
    (COMMENT | VALUE | REPORT, &["failed"]),
    (REPORT, &["error", "errors", "failure", "status", "success", "successful"]),
    (COMMENT | VALUE | SHOWN | ALONE, &["disabled", "rejected", "skipped", "superseded"]),
    (COMMENT | VALUE | ALONE, &["denied", "simulated", "simulation"]),
    (COMMENT | VALUE | ALONE, &["never", "paused"]),
    (COMMENT | VALUE | ALONE, &["aborted", "invalid"]),
    (COMMENT | VALUE, &["planned", "test"]),
    (COMMENT | SHOWN | ALONE, &["deprecated", "example", "hypothetical", "not"]),
    (COMMENT | SHOWN | ALONE, &["todo"]),
    (COMMENT | ALONE, &["wip"]),
    (COMMENT, &["don"]),
    (SHOWN | ALONE, &["rehearsal"]),
    (COMMENT | SHOWN | ALONE, &["incorrect", "obsolete", "sample", "wrong"]),
    (COMMENT | SHOWN | ALONE, &["ignore", "ignored", "mock", "skip"]),
    (COMMENT | ALONE, &["hypothetically", "later"]),
    (
        COMMENT | ALONE,
        &[
            "awaiting",
            "blocked",
            "demo",
            "demonstration",
            "dummy",
            "fake",
            "fictional",
            "fictitious",
            "guess",
            "illustration",
            "illustrative",
            "optional",
            "outdated",
            "placeholder",
            "refused",
            "stub",
            "tba",
            "tbd",
            "tentative",
            "vetoed",
            "withdrawn",
        ],
    ),
    (
        ALONE,
        &["avoid", "bad", "counterexample", "dryrun", "format", "noexec", "norun", "pseudocode", "syntax", "template"],
    ),
    (
        SHOWN,
        &[
            "diff",
            "document",
            "email",
            "examples",
            "history",
            "noop",
            "old",
            "patch",
            "quotation",
            "quote",
            "transcript",
            "untrusted",
            "xfail",
        ],
    ),
    (
        COMMENT,
        &[
            "abort",
            "actually",
            "after",
            "alternatively",
            "arbitrary",
            "ask",
            "assume",
            "assumed",
            "assuming",
            "before",
            "cannot",
            "changeme",
            "conditionally",
            "correction",
            "could",
            "deleted",
            "disable",
            "dont",
            "dozen",
            "either",
            "etc",
            "except",
            "fixme",
            "guessed",
            "halt",
            "hold",
            "hundred",
            "instead",
            "invented",
            "maybe",
            "might",
            "million",
            "millions",
            "mistake",
            "nope",
            "only",
            "or",
            "perhaps",
            "possibly",
            "presumably",
            "probably",
            "random",
            "rather",
            "removed",
            "replace",
            "replaced",
            "revert",
            "should",
            "sorry",
            "tbc",
            "tentatively",
            "then",
            "thousand",
            "thousands",
            "times",
            "too",
            "typo",
            "uncertain",
            "undo",
            "unknown",
            "unsure",
            "unverified",
            "whenever",
            "customize",
            "decide",
            "decides",
            "made",
            "nothing",
            "varies",
            "your",
        ],
    ),
];
/// Beginnings of words in comments that leave the decision to someone.
const STEMS: [&str; 8] = ["approv", "authoriz", "declin", "forbid", "prohibit", "provision", "unapprov", "unconfirm"];

/// Words for the move, and words without weight, that may accompany a mark.
const BESIDE: [&str; 24] = [
    "a", "above", "action", "an", "below", "block", "call", "calls", "code", "command", "for", "is", "json", "move",
    "now", "only", "output", "purposes", "request", "response", "the", "this", "version", "was",
];
/// Marks of several words.
pub(crate) const PHRASES: [&str; 26] = [
    "after approval",
    "after confirmation",
    "an example",
    "anti pattern",
    "as an example",
    "avoid this",
    "do not execute",
    "do not run",
    "dry run",
    "e g",
    "example call",
    "example only",
    "for example",
    "for illustration",
    "for instance",
    "not approved",
    "not confirmed",
    "not executed",
    "not now",
    "not yet",
    "on approval",
    "on confirmation",
    "on hold",
    "sample call",
    "upon approval",
    "upon confirmation",
];

static WORDS: LazyLock<ByLetter<u8>> =
    LazyLock::new(|| ByLetter::new(TABLE.iter().flat_map(|(uses, words)| words.iter().map(|word| (*word, *uses)))));

fn is(word: &str, wanted: u8) -> bool {
    WORDS.get(word).is_some_and(|uses| uses & wanted != 0)
}

/// A few hundred words in small letters, found by their first letter: every word of a text around a move is looked up, and
/// most have none that begins and is as long like it.
#[derive(Debug)]
pub(crate) struct ByLetter<T>([Vec<(&'static str, T)>; 26]);

impl<T> ByLetter<T> {
    pub(crate) fn new(words: impl Iterator<Item = (&'static str, T)>) -> Self {
        let mut letters = std::array::from_fn(|_| Vec::new());
        for (word, what) in words {
            if let Some(list) = letter(word).and_then(|at| letters.get_mut(at)) {
                list.push((word, what));
            }
        }
        Self(letters)
    }

    /// The entry of a word in small letters.
    pub(crate) fn get(&self, word: &str) -> Option<&T> {
        let list = self.0.get(letter(word)?)?;
        list.iter().find(|(known, _)| *known == word).map(|(_, what)| what)
    }

    fn iter(&self) -> impl Iterator<Item = &(&'static str, T)> {
        self.0.iter().flatten()
    }
}

fn letter(word: &str) -> Option<usize> {
    word.bytes().next()?.checked_sub(b'a').map(usize::from)
}

/// The words of a text.
pub(crate) fn words_of(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Whether a word in small letters makes nearby text conditional, or marks it as not meant.
pub(crate) fn is_deciding(word: &str) -> bool {
    is(word, COMMENT) || STEMS.iter().any(|stem| word.starts_with(stem))
}

/// Whether a word in small letters, as the value of a setting, says that something is not meant.
pub(crate) fn is_not_meant(word: &str) -> bool {
    is(word, VALUE)
}

/// Whether a word names an element with text that is only shown.
pub(crate) fn is_shown(word: &str) -> bool {
    is(&word.to_lowercase(), SHOWN)
}

/// Whether a word is a name for texts of others.
pub(crate) fn is_text_of_others(word: &str) -> bool {
    WORDS.get(&word.to_lowercase()) == Some(&SHOWN)
}

/// Whether a word after the marks of a fence, or the name of a decorator, marks the following text as only shown, or
/// not meant.
pub(crate) fn is_shown_or_not_meant(word: &str) -> bool {
    is(&word.to_lowercase(), SHOWN | ALONE)
}

/// Whether a word in small letters, in a key, says when, how or whether a move is meant, or how something went.
pub(crate) fn is_condition(word: &str) -> bool {
    is(word, KEY | REPORT)
}

/// Whether it only says when, how or whether a move is meant.
pub(crate) fn is_only_condition(word: &str) -> bool {
    is(word, KEY)
}

/// Whether a word in small letters begins a branch of a program, or a condition.
pub(crate) fn is_branch(word: &str) -> bool {
    is(word, BRANCH)
}

/// The words that are a mark if they stand alone.
pub(crate) fn marks() -> impl Iterator<Item = &'static str> {
    WORDS.iter().filter(|(_, uses)| *uses & ALONE != 0).map(|(word, _)| *word)
}

/// Whether words in small letters, with one blank between them, are a mark.
pub(crate) fn is_mark(said: &str) -> bool {
    let beside = |rest: &str| rest.is_empty() || rest.starts_with(' ') && rest.split_whitespace().all(is_beside);
    is_marked(said.split(' ')) || PHRASES.iter().any(|phrase| said.strip_prefix(phrase).is_some_and(beside))
}

/// Whether a word next to a mark has no effect on it: a word for the move, or a number.
fn is_beside(word: &str) -> bool {
    BESIDE.contains(&word) || word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether words in small letters are a mark that stands alone, or among words for the move.
fn is_marked<'w>(words: impl Iterator<Item = &'w str>) -> bool {
    let mut marked = false;
    for word in words {
        let mark = is(word, ALONE);
        if !mark && !is_beside(word) {
            return false;
        }
        marked |= mark;
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::{PHRASES, TABLE};
    use std::collections::HashSet;

    #[test]
    fn each_word_is_in_the_table_once() {
        let mut words = HashSet::new();
        for word in TABLE.iter().flat_map(|(_, words)| *words) {
            assert!(words.insert(word), "{word}");
        }
        assert!(PHRASES.is_sorted());
    }
}
