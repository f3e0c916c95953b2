//! Words that say that what they stand beside is not meant, not yet, or only in some case: one table for comments,
//! settings, keys, headings, tags and fences.

use std::collections::HashMap;
use std::sync::LazyLock;

/// In a comment it is more than a plain remark.
const COMMENT: u8 = 1;
/// It is the value of a setting that says so.
const VALUE: u8 = 1 << 1;
/// It begins a heading or a mark that says so.
const HEADING: u8 = 1 << 2;
/// It names a tag, a fence or a section whose text is only shown, or that of somebody else.
const SHOWN: u8 = 1 << 3;
/// It is a word of a key that says when, how or whether a move is meant.
const KEY: u8 = 1 << 4;
/// The same, and it may also say how something went.
const REPORT: u8 = 1 << 5;
/// It begins a branch of a program, or a condition.
const BRANCH: u8 = 1 << 6;
/// It is a mark where it stands alone on its line.
const ALONE: u8 = 1 << 7;

/// The table: where words count, and the words.
const TABLE: &[(u8, &[&str])] = &[
    (COMMENT | KEY | BRANCH, &["if", "unless", "until", "when"]),
    (COMMENT | BRANCH, &["else", "otherwise"]),
    (BRANCH, &["elif", "while", "once", "provided"]),
    (COMMENT | KEY | VALUE | HEADING | SHOWN | ALONE, &["draft"]),
    (COMMENT | KEY | VALUE | HEADING | ALONE, &["canceled", "cancelled"]),
    (COMMENT | KEY | VALUE, &["pending"]),
    (COMMENT | KEY | HEADING, &["dry"]),
    (COMMENT | KEY, &["cancel", "conditional", "confirm", "confirmation"]),
    (COMMENT | KEY, &["depends"]),
    (KEY, &["condition", "execute", "precondition", "prerequisite"]),
    (COMMENT | REPORT, &["wait"]),
    (COMMENT | VALUE | REPORT, &["failed"]),
    (REPORT, &["error", "errors", "failure", "status", "success", "successful"]),
    (COMMENT | VALUE | HEADING | SHOWN | ALONE, &["disabled", "rejected", "skipped", "superseded"]),
    (COMMENT | VALUE | HEADING | ALONE, &["denied", "simulated", "simulation"]),
    (COMMENT | VALUE | HEADING, &["never"]),
    (COMMENT | VALUE, &["aborted", "invalid", "planned", "test"]),
    (COMMENT | HEADING | SHOWN | ALONE, &["deprecated", "example", "hypothetical", "not"]),
    (COMMENT | HEADING | SHOWN, &["todo"]),
    (COMMENT | HEADING | ALONE, &["wip"]),
    (COMMENT | HEADING, &["don"]),
    (COMMENT | SHOWN | ALONE, &["incorrect", "obsolete", "sample", "wrong"]),
    (COMMENT | SHOWN, &["ignore", "ignored", "mock", "skip"]),
    (COMMENT | ALONE, &["hypothetically", "later"]),
    (ALONE, &["avoid", "bad", "counterexample", "dryrun", "format", "pseudocode", "syntax", "template"]),
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
            "rehearsal",
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
            "awaiting",
            "before",
            "cannot",
            "changeme",
            "conditionally",
            "correction",
            "could",
            "deleted",
            "demo",
            "disable",
            "dont",
            "dozen",
            "dummy",
            "either",
            "etc",
            "except",
            "fake",
            "fixme",
            "guess",
            "guessed",
            "halt",
            "hold",
            "hundred",
            "illustration",
            "illustrative",
            "instead",
            "invented",
            "maybe",
            "might",
            "million",
            "millions",
            "mistake",
            "nope",
            "only",
            "optional",
            "or",
            "outdated",
            "perhaps",
            "placeholder",
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
            "stub",
            "tba",
            "tbc",
            "tbd",
            "tentative",
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
            "withdrawn",
            "blocked",
            "customize",
            "decide",
            "decides",
            "demonstration",
            "fictional",
            "fictitious",
            "made",
            "nothing",
            "refused",
            "varies",
            "vetoed",
            "your",
        ],
    ),
];
/// What words of comments begin with that leave the decision to somebody.
const STEMS: [&str; 8] = ["approv", "authoriz", "declin", "forbid", "prohibit", "provision", "unapprov", "unconfirm"];

/// Marks of several words.
pub(crate) const PHRASES: [&str; 20] = [
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
    "on hold",
    "sample call",
];

static WORDS: LazyLock<HashMap<&str, u8>> =
    LazyLock::new(|| TABLE.iter().flat_map(|(uses, words)| words.iter().map(|word| (*word, *uses))).collect());

fn is(word: &str, wanted: u8) -> bool {
    WORDS.get(word).is_some_and(|uses| uses & wanted != 0)
}

/// Whether a word in small letters makes what it stands beside depend on something, or says that it isn't meant.
pub(crate) fn is_deciding(word: &str) -> bool {
    is(word, COMMENT) || STEMS.iter().any(|stem| word.starts_with(stem))
}

/// Whether a word in small letters, as the value of a setting, says that something is not meant.
pub(crate) fn is_not_meant(word: &str) -> bool {
    is(word, VALUE)
}

/// Whether a word in small letters, at the beginning of a heading, says that what follows is not meant.
pub(crate) fn is_heading(word: &str) -> bool {
    is(word, HEADING)
}

/// Whether a word names something whose text is only shown.
pub(crate) fn is_shown(word: &str) -> bool {
    is(&word.to_lowercase(), SHOWN)
}

/// Whether a word in small letters, in a key, says when, how or whether a move is meant, or how something went.
pub(crate) fn is_condition(word: &str) -> bool {
    is(word, KEY | REPORT)
}

/// Whether it says when, how or whether a move is meant, and nothing else.
pub(crate) fn is_only_condition(word: &str) -> bool {
    is(word, KEY)
}

/// Whether a word in small letters begins a branch of a program, or a condition.
pub(crate) fn is_branch(word: &str) -> bool {
    is(word, BRANCH)
}

/// The words that are a mark where they stand alone.
pub(crate) fn marks() -> impl Iterator<Item = &'static str> {
    WORDS.iter().filter(|(_, uses)| **uses & ALONE != 0).map(|(word, _)| *word)
}

/// Whether words in small letters, with one blank between them, are a mark.
pub(crate) fn is_mark(said: &str) -> bool {
    PHRASES.contains(&said) || is(said, ALONE)
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
