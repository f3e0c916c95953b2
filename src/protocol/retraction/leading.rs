//! Sentences with a colon that lead to a text of others, to a move that is only imagined, or to one that waits.

use super::{DOING, NARRATION, NEEDED};

/// Words before what a move waits for.
pub(super) const WAITING: [&str; 4] = ["after", "pending", "until", "upon"];
/// Words that say that others have said what follows.
pub(super) const SAID: [&str; 16] = [
    "asked",
    "asks",
    "contained",
    "contains",
    "included",
    "read",
    "reads",
    "replied",
    "said",
    "say",
    "says",
    "sent",
    "stated",
    "states",
    "writes",
    "wrote",
];
/// What texts of others are called.
pub(super) const TEXTS: [&str; 15] = [
    "attachment",
    "comment",
    "conversation",
    "document",
    "email",
    "example",
    "file",
    "log",
    "mail",
    "message",
    "page",
    "reply",
    "response",
    "text",
    "website",
];
/// What is done to a text that is no more than a text.
pub(super) const HANDLING: [&str; 9] =
    ["describe", "explain", "paraphrase", "quote", "repeat", "rephrase", "summarise", "summarize", "translate"];
/// Times at which nothing is done now.
pub(super) const LATER: [&str; 4] = ["eventually", "later", "someday", "tomorrow"];

/// Whether the words of a sentence that leads to a move lead elsewhere.
pub(super) fn leads_elsewhere(words: &[&str]) -> bool {
    is_of_others(words) || is_imagined(words) || waits(words)
}

/// `the email says:`, `found in the file:`, `translate the following:`; but for what the model says itself.
fn is_of_others(words: &[&str]) -> bool {
    let Some((last, rest)) = words.split_last() else { return false };
    if words.first().is_some_and(|word| HANDLING.contains(word)) {
        return true;
    }
    if words.iter().any(|word| NARRATION.contains(word)) {
        return false;
    }
    let was = matches!(*last, "was" | "is") && rest.iter().any(|word| TEXTS.contains(word));
    let inside = TEXTS.contains(last) && rest.iter().rev().take(2).any(|word| matches!(*word, "from" | "in"));
    words.len() > 1 && (SAID.contains(last) || was || inside)
}

/// `the call I would make:`, `a payment looks like this:`, `tomorrow I will run:`.
fn is_imagined(words: &[&str]) -> bool {
    let would = words.windows(3).any(|three| {
        matches!(three, ["i" | "we", "could" | "might" | "would", doing] if DOING.contains(doing) && *doing != "use")
    });
    let alike = matches!(words, [.., "look" | "looks", "like", "this" | "that" | "these"]);
    would || alike || words.first().is_some_and(|word| LATER.contains(word))
}

/// `the call after your approval:`, `pending review:`.
fn waits(words: &[&str]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let mut near = words.get(at + 1..).unwrap_or_default().iter().take(2);
        WAITING.contains(word) && near.any(|word| NEEDED.contains(word))
    })
}
