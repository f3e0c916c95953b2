//! Sentences beside a move that say that it is not made, not yet, or only if somebody agrees.

mod leading;

use crate::reply::doubt::{ByLetter, PHRASES, is_deciding, is_mark, marks, words_of};
use leading::{HANDLING, LATER, SAID, TEXTS, WAITING, leads_elsewhere};
use std::sync::LazyLock;

/// Where a sentence stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    /// It leads to the move.
    Before,
    /// It is what the model says next.
    Behind,
    /// It is a remark in the move, or in an object next to it.
    Remark,
    /// It is what the move itself says of why it is made: a thought, a description.
    Inside,
}

/// Characters of a text that are judged.
const LONGEST: usize = 400;
/// Words of a label before a sentence: `Thought: …`.
const LABEL: usize = 2;
/// Words of a sentence that says no more than that something needs a consent, at most.
const SHORT: usize = 10;
/// Words of a condition that is a sentence of its own, at most.
const SHORTEST: usize = 3;
/// Words between one that needs something and what it needs.
const NEAR: usize = 4;

/// Words for making a move.
const DOING: [&str; 17] = [
    "apply", "call", "do", "emit", "execute", "invoke", "issue", "make", "output", "perform", "reply", "run", "send",
    "submit", "trigger", "use", "write",
];
/// The same of one that was made.
const DONE: [&str; 13] = [
    "applied",
    "called",
    "done",
    "executed",
    "intended",
    "invoked",
    "made",
    "meant",
    "performed",
    "run",
    "sent",
    "submitted",
    "used",
];
/// Words that point to the move.
const IT: [&str; 19] = [
    "above",
    "action",
    "below",
    "call",
    "command",
    "following",
    "here",
    "it",
    "move",
    "now",
    "request",
    "that",
    "the",
    "them",
    "these",
    "this",
    "those",
    "tool",
    "yet",
];
/// What `the` may stand before there.
const THE_MOVE: [&str; 10] =
    ["above", "action", "below", "call", "command", "following", "move", "next", "request", "tool"];
/// Words before a negation of what is not to be done.
const MODALS: [&str; 11] = ["do", "does", "i", "must", "please", "shall", "should", "we", "will", "wo", "would"];
/// The same of what was not done: said behind a move, or in it.
const PAST: [&str; 13] = ["am", "are", "be", "been", "being", "did", "had", "has", "have", "is", "s", "was", "were"];
/// Words that a negation, or a form of "to be", may have behind it.
const FILLERS: [&str; 22] = [
    "a",
    "able",
    "actually",
    "allowed",
    "an",
    "as",
    "be",
    "been",
    "being",
    "ever",
    "for",
    "going",
    "intended",
    "is",
    "meant",
    "now",
    "of",
    "permitted",
    "really",
    "supposed",
    "to",
    "yet",
];
/// Words that say that something is no more than an example.
const MERELY: [&str; 5] = ["just", "merely", "only", "purely", "simply"];
/// What it is then.
const EXAMPLES: [&str; 13] = [
    "demo",
    "demonstration",
    "draft",
    "dry",
    "example",
    "examples",
    "hypothetical",
    "illustration",
    "mock",
    "placeholder",
    "rehearsal",
    "sample",
    "simulation",
];
/// Words that may stand behind it; others name what is meant to be one.
const AFTER_EXAMPLE: [&str; 24] = [
    "action", "and", "as", "because", "but", "call", "calls", "command", "for", "here", "move", "not", "now", "of",
    "only", "or", "purpose", "purposes", "request", "run", "so", "to", "which", "yet",
];
/// Words that begin a condition.
const CONDITIONS: [&str; 12] = [
    "after", "assuming", "awaiting", "if", "once", "only", "pending", "provided", "unless", "until", "when", "whenever",
];
/// What words of consent and refusal begin with.
const CONSENT: [&str; 9] = ["agree", "allow", "approv", "authori", "confirm", "consent", "denie", "deny", "permi"];
/// The same, as whole words.
const OK: [&str; 4] = ["ahead", "ok", "okay", "yes"];
/// Words that need a consent that isn't there, and what they need.
const NEEDING: [&str; 9] = ["await", "awaiting", "need", "needs", "pending", "require", "requires", "wait", "waiting"];
const NEEDED: [&str; 8] =
    ["approval", "authorisation", "authorization", "confirmation", "consent", "permission", "review", "signoff"];
/// Words of what is wrong.
const WRONG: [&str; 5] = ["incorrect", "invalid", "mistake", "mistaken", "wrong"];
/// Words of a model that tells what it does.
pub(super) const NARRATION: [&str; 8] = ["i", "let", "lets", "me", "my", "us", "we", "our"];
/// What takes back a move that was just written.
const CANCELLED: [&str; 13] = [
    "actually do not",
    "actually no",
    "actually wait",
    "ask first",
    "just kidding",
    "never mind",
    "nevermind",
    "no wait",
    "not so fast",
    "on second thought",
    "oops",
    "wait do not",
    "wait no",
];
/// The same in one word, behind a move.
const ENDS: [&str; 8] = ["abort", "cancel", "halt", "no", "skip", "stop", "undo", "wait"];
/// What somebody has done with a move that doesn't count any more, if it was `by` them.
const REFUSED: [&str; 9] =
    ["blocked", "cancelled", "canceled", "declined", "denied", "refused", "rejected", "vetoed", "withdrawn"];
/// The same, before a word for the move.
const CANCELS: [&str; 10] =
    ["abort", "cancel", "discard", "disregard", "drop", "forget", "ignore", "scratch", "skip", "undo"];

/// Whether a text beside a move takes it back.
pub(crate) fn retracts(text: &str, beside: Beside) -> bool {
    let text = text.trim();
    let long = text.len() > LONGEST;
    let text = if long && beside == Beside::Inside {
        let start = text.char_indices().nth_back(LONGEST).map_or(0, |(start, _)| start);
        text.get(start..).unwrap_or(text)
    } else {
        let end = long.then(|| text.char_indices().nth(LONGEST)).flatten().map_or(text.len(), |(end, _)| end);
        text.get(..end).unwrap_or(text)
    };
    if beside == Beside::Behind && asks(text) {
        return true;
    }
    if !may_take_back(text) {
        return false;
    }
    match beside {
        Beside::Before => sentences(text).next_back().is_some_and(|sentence| takes_back(sentence, beside)),
        Beside::Behind => sentences(text).next().is_some_and(|sentence| takes_back(sentence, beside)),
        Beside::Remark => sentences(text).any(|sentence| takes_back(sentence, beside)),
        Beside::Inside => sentences(text).next_back().is_some_and(disowns),
    }
}

/// Whether what a move says of itself takes it back. A thought may be about other moves, or about later ones: only an order
/// not to make this one, and a name that says that it is none, are clear.
fn disowns(sentence: &str) -> bool {
    let small = small(without_label(sentence));
    let clauses: Vec<Vec<&str>> = clauses(&small).collect();
    let order = |clause: &Vec<&str>| {
        let told = clause.strip_prefix(&["please"]).unwrap_or(clause);
        let ordered = matches!(told, ["do", "not", ..] | ["never" | "not", ..]);
        // "I will not send it" may be about another move, "this call" is about this one.
        let resolved = matches!(told, ["i" | "we", "will" | "shall" | "can", "not", _, "this" | "the", ..]);
        (ordered || resolved) && denies_doing(told, Beside::Remark)
    };
    let waits = |clause: &Vec<&str>| {
        clause.first().is_some_and(|word| NEEDING.contains(word) || is_pronoun(word)) && needs_consent(clause)
            || clause.len() <= NEAR && asks_for_consent(clause)
    };
    let named = |clause: &Vec<&str>| is_mark(&clause.join(" ")) || is_only_shown(clause);
    // "After this I ask the user for confirmation" is a plan.
    let tells = |clause: &Vec<&str>| clause.iter().any(|word| NARRATION.contains(word));
    let (Some(first), Some(last)) = (clauses.first(), clauses.last()) else { return false };
    let narrates = clauses.len() > 1 && tells(last);
    let alone = || clauses.len() == 1 && !tells(first) && (is_conditional(first) || waits(first));
    !narrates && (order(last) || named(first) || alone())
}

/// Words without one of which no sentence takes a move back; `t` is what is left of "don't".
static SIGNALS: LazyLock<ByLetter<()>> = LazyLock::new(|| {
    let first = CANCELLED.iter().filter_map(|phrase| phrase.split(' ').next());
    let lists = EXAMPLES.iter().chain(&CONDITIONS).chain(&NEEDING).chain(&CANCELS).chain(&ENDS).chain(&WRONG);
    let said = SAID.iter().chain(&TEXTS).chain(&HANDLING).chain(&LATER).chain(&WAITING);
    let lists = lists.chain(said).copied();
    let marks = marks().chain(["anti", "approval", "confirmation", "g", "hold", "instance"]).chain(REFUSED);
    let others = ["as", "ask", "could", "dont", "instead", "like", "might", "never", "not", "please", "t", "would"];
    ByLetter::new(lists.chain(first).chain(marks).chain(others).map(|word| (word, ())))
});
/// Bytes of the longest signal.
const SIGNAL: usize = 16;

/// Whether a text may take a move back: most texts have no word that could, and are not looked at any further.
fn may_take_back(text: &str) -> bool {
    for word in words_of(text) {
        let mut small = [0; SIGNAL];
        let Some(small) = small.get_mut(..word.len()) else { continue };
        small.copy_from_slice(word.as_bytes());
        small.make_ascii_lowercase();
        if std::str::from_utf8(small).is_ok_and(|word| SIGNALS.get(word).is_some()) {
            return true;
        }
    }
    false
}

/// The words of the parts of a sentence, of which there is one at least.
fn clauses(small: &str) -> impl Iterator<Item = Vec<&str>> {
    small
        .split([',', ';', '—', '–', ':', '，', '：', '、'])
        .flat_map(|clause| clause.split(" - "))
        .map(|clause| words_of(clause).collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
}

/// A sentence in small letters, with its negations written out.
fn small(sentence: &str) -> String {
    let small = sentence.to_lowercase();
    if !small.contains("n't") && !small.contains("n’t") && !small.contains("dont ") {
        return small;
    }
    small.replace("n't", " not").replace("n’t", " not").replace("dont ", "do not ")
}

/// The sentences of a text, each with the sign that ends it.
fn sentences(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let mut ends: Vec<usize> = Vec::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let last = characters.peek().is_none_or(|(_, next)| next.is_whitespace());
        if matches!(c, '.' | '!' | '?' | '…' | '\n') && last || matches!(c, '。' | '！' | '？') {
            ends.push(at + c.len_utf8());
        }
    }
    ends.push(text.len());
    let starts: Vec<usize> = std::iter::once(0).chain(ends.iter().copied()).collect();
    let parts = starts.into_iter().zip(ends).filter_map(|(start, end)| text.get(start..end));
    parts.map(str::trim).filter(|part| part.contains(char::is_alphabetic)).collect::<Vec<_>>().into_iter()
}

/// A sentence without the label before it: `Thought: …`, `**Note:** …`.
pub(crate) fn without_label(sentence: &str) -> &str {
    let Some((label, rest)) = sentence.split_once([':', '：']) else { return sentence };
    let marks =
        |c: char| c.is_whitespace() || matches!(c, '*' | '_' | '#' | '-' | '>' | '`' | '(' | '[' | '{' | '"' | '\'');
    let label = label.trim_matches(marks);
    let rest = rest.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`'));
    let words = label.chars().all(|c| c.is_alphabetic() || c == ' ') && label.split_whitespace().count() <= LABEL;
    if words && rest.contains(char::is_alphanumeric) { rest } else { sentence }
}

/// `Should I proceed?`, `Is that right?`: whoever has to answer has not done so.
fn asks(text: &str) -> bool {
    text.contains(['?', '？']) && sentences(text).any(asks_whether)
}

/// Whether a sentence asks whether the move is right.
fn asks_whether(sentence: &str) -> bool {
    let marks = |c: char| c.is_whitespace() || matches!(c, '*' | '_' | '"' | ')' | '`');
    if !sentence.trim_end_matches(marks).ends_with(['?', '？']) {
        return false;
    }
    let small = sentence.to_lowercase();
    let words: Vec<&str> = words_of(&small).collect();
    let pairs = || words.windows(2).filter_map(|pair| <[&str; 2]>::try_from(pair).ok());
    let allowed = pairs().any(|pair| matches!(pair, ["should" | "shall" | "may" | "can" | "could", "i" | "we"]));
    let agreed =
        pairs().any(|[you, does]| you == "you" && (matches!(does, "want" | "sure" | "mind") || is_consent(does)));
    let right = words.iter().take(SHORT).any(is_pronoun)
        && words.iter().any(|word| matches!(*word, "ok" | "okay" | "right" | "correct" | "fine" | "alright"));
    let short = words.len() <= 2
        && words
            .iter()
            .any(|word| matches!(*word, "proceed" | "continue" | "ok" | "okay" | "right") || is_consent(word));
    allowed || agreed || right || short
}

fn is_consent(word: &str) -> bool {
    CONSENT.iter().any(|stem| word.starts_with(stem))
}

fn takes_back(sentence: &str, beside: Beside) -> bool {
    let sentence = without_label(sentence);
    let small = small(sentence);
    let clauses: Vec<Vec<&str>> = clauses(&small).collect();
    let words: Vec<&str> = clauses.iter().flatten().copied().collect();
    let (Some(first), Some(last)) = (clauses.first(), clauses.last()) else { return false };
    let denied = |words: &Vec<&str>| denies_doing(words, beside) || is_only_shown(words);
    // A model that tells what it does instead has said why.
    let narrates = clauses.len() > 1 && last.iter().any(|word| NARRATION.contains(word)) && !denied(last);
    if is_conditional(first) {
        let leads = !sentence.ends_with(['.', '!', '?', '…', '。']);
        // "Pending approval." leads to nothing, but for what stands below it.
        let short = clauses.len() == 1 && words.len() <= SHORTEST;
        return if beside == Beside::Before { leads || short } else { !narrates };
    }
    let said = words.join(" ");
    // A remark may be the title of anything.
    let decides = || PHRASES.contains(&said.as_str()) || words.iter().any(|word| is_deciding(word));
    if is_mark(&said) && (beside != Beside::Remark || decides()) {
        return true;
    }
    let leads = beside == Beside::Before && sentence.ends_with([':', '：', ')']);
    let ends = || matches!(first.as_slice(), [word] if ENDS.contains(word));
    let refused = || words.windows(2).any(|pair| matches!(pair, [word, "by"] if REFUSED.contains(word)));
    let so = || {
        clauses.iter().any(|clause| matches!(clause.as_slice(), ["so" | "therefore", rest @ ..] if cancels(rest, rest)))
    };
    beside != Beside::Before && (cancels(first, &words) || asks_first(first))
        || beside == Beside::Remark && (refused() || so())
        || beside == Beside::Behind && (ends() || is_wrong(&words) || only_if(&words))
        || !narrates && (clauses.iter().any(denied) || needs_consent(&words) || asks_for_consent(&words))
        || leads && !narrates && leads_elsewhere(&words)
}

/// `that amount is wrong`, `this is not right`.
fn is_wrong(words: &[&str]) -> bool {
    let about = words.iter().take(NEAR).any(is_pronoun);
    let negated = |at: usize| at > 0 && words.get(at - 1).is_some_and(|word| matches!(*word, "no" | "not" | "nothing"));
    let is_nothing = words.first() == Some(&"nothing");
    let wrong = words.iter().position(|word| WRONG.contains(word)).is_some_and(|at| !negated(at) && !is_nothing);
    about && (wrong || words.windows(2).any(|pair| matches!(pair, ["not", "right" | "correct"])))
}

/// `this will only be executed if Bob accepts`.
fn only_if(words: &[&str]) -> bool {
    let at = |wanted: &[&str]| words.iter().position(|word| wanted.contains(word));
    let (Some(only), Some(condition)) = (at(&["only"]), at(&["after", "if", "once", "when"])) else { return false };
    only < condition
        && words.iter().any(is_pronoun)
        && words.iter().any(|word| DONE.contains(word) || *word == "executed")
}

/// `ask the user first`, `ask before you pay`.
fn asks_first(first: &[&str]) -> bool {
    matches!(first, ["ask", .., "first"]) || matches!(first, ["ask", rest @ ..] if rest.contains(&"before"))
}

/// `please confirm`, `please review the draft`.
fn asks_for_consent(words: &[&str]) -> bool {
    words.windows(2).any(|pair| {
        let [please, word] = pair else { return false };
        *please == "please" && (*word == "review" || is_consent(word))
    })
}

/// `do not run this`, `I will not call it`, `not executed`, `must not be made`.
fn denies_doing(words: &[&str], beside: Beside) -> bool {
    if let ["avoid", object @ ..] | ["instead", "of", object @ ..] = words {
        return points_to_it(object);
    }
    words.iter().enumerate().any(|(at, word)| {
        if !matches!(*word, "not" | "never") {
            return false;
        }
        let told = words.get(..at).unwrap_or_default();
        let rest = words.get(at + 1..).unwrap_or_default();
        let passed = rest.iter().take_while(|word| FILLERS.contains(word)).count();
        let (passed, rest) = rest.split_at(passed);
        let Some((doing, object)) = rest.split_first() else { return false };
        // Made once, then: "do not run it twice".
        if matches!(object, [.., "again" | "more" | "often" | "repeatedly" | "twice"]) {
            return false;
        }
        // "The user did not authorise this."
        if beside != Beside::Before && is_consent(doing) && points_to_it(object) && !object.is_empty() {
            return true;
        }
        // What was not done before may be what is done now.
        let past = |word: &&str| PAST.contains(word) && (beside != Beside::Before || passed.contains(&"to"));
        let spoken = told.last().is_none_or(|word| MODALS.contains(word) || past(word));
        let of_it = match told {
            ["the", word, ..] | [word, _, ..] => is_pronoun(word),
            _ => true,
        };
        let passive = DONE.contains(doing) && of_it;
        spoken && (DOING.contains(doing) && points_to_it(object) || passive)
    })
}

/// Whether a word stands for the move.
fn is_pronoun(word: &&str) -> bool {
    *word != "the" && IT.contains(word)
}

/// Whether the words behind a verb are about the move, or there are none.
fn points_to_it(object: &[&str]) -> bool {
    match object {
        [] => true,
        ["the", rest @ ..] => rest.first().is_some_and(|word| THE_MOVE.contains(word)),
        [word, ..] => IT.contains(word),
    }
}

/// `this is an example`, `only a draft`.
fn is_only_shown(words: &[&str]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        if !EXAMPLES.contains(word) || *word == "dry" && words.get(at + 1) != Some(&"run") {
            return false;
        }
        // "Only a demo account is used" is about the account.
        if words.get(at + 1).is_some_and(|next| !AFTER_EXAMPLE.contains(next)) {
            return false;
        }
        let told = words.get(..at).unwrap_or_default();
        let passed = told.iter().rev().take_while(|word| FILLERS.contains(word) || MERELY.contains(word)).count();
        let (rest, passed) = told.split_at(told.len() - passed);
        let merely = passed.iter().any(|word| MERELY.contains(word));
        let be = rest.last().into_iter().chain(passed).any(|word| PAST.contains(word));
        let it = rest.iter().any(is_pronoun);
        merely || be && it
    })
}

/// `if the user agrees`, `once approved`, `only with your permission`.
fn is_conditional(words: &[&str]) -> bool {
    let begins = words.iter().find(|word| !matches!(**word, "but" | "and" | "then" | "except"));
    let soon = matches!(words, ["as", "soon" | "long", "as", ..]);
    let consents = |word: &&str| OK.contains(word) || is_consent(word) && !word.ends_with("ing");
    let objects =
        |pair: &[&str]| matches!(pair, ["you" | "they" | "user" | "anybody" | "nobody", "object" | "objects"]);
    let conditional = soon || begins.is_some_and(|word| CONDITIONS.contains(word));
    conditional && (words.iter().any(consents) || words.windows(2).any(objects))
}

/// `this needs your approval`, `waiting for confirmation`.
fn needs_consent(words: &[&str]) -> bool {
    let needs = |(at, word): (usize, &&str)| {
        let near = words.get(at + 1..).unwrap_or_default().iter().take(NEAR);
        NEEDING.contains(word) && near.into_iter().any(|word| NEEDED.contains(word))
    };
    words.len() <= SHORT && words.iter().enumerate().any(needs)
}

/// `never mind`, `cancel that`.
fn cancels(first: &[&str], words: &[&str]) -> bool {
    let begins = |phrase: &&str| {
        let count = phrase.split(' ').count();
        // What goes on in the same clause says something else: "never mind the format".
        first.len() <= count && words.iter().take(count).copied().eq(phrase.split(' '))
    };
    let first = first.strip_prefix(&["please"]).unwrap_or(first);
    let verb = first.split_first().is_some_and(|(verb, object)| {
        CANCELS.contains(verb) && !object.is_empty() && object.len() < NEAR && points_to_it(object)
    });
    verb || CANCELLED.iter().any(begins)
}

#[cfg(test)]
mod tests;
