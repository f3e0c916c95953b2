//! One word that takes a move back, in every notation that a line can have; and words that say nothing, in the same ones.

use super::dice::Dice;
use super::lines::{move_of, taken_back};
use super::moves::Style;
use super::{Case, check};

/// Words that say that what they stand beside is not meant.
const WORDS: [&str; 20] = [
    "draft",
    "Mock",
    "PENDING",
    "cancelled",
    "paused",
    "rejected",
    "skipped",
    "Placeholder",
    "demo",
    "simulated",
    "fake",
    "withdrawn",
    "blocked",
    "hypothetical",
    "TODO",
    "invalid",
    "on approval",
    "not yet",
    "dry run",
    "ignore",
];
/// Words for the move, which change nothing beside one of those.
const BESIDE: [&str; 6] = ["", " call", " action", " only", " request", " move"];
/// Labels that say nothing of whether the move is meant.
const PLAIN: [&str; 8] =
    ["Step 1", "Next", "Search", "Cancelled orders", "Draft mails of Bob", "Sample query", "Action", "Looking it up"];

/// A word in a notation, before or behind a move.
fn written(word: &str, dice: &mut Dice) -> (String, String) {
    let before = |text: String| (text, String::new());
    match dice.below(14) {
        0 => before(format!("## {word}\n")),
        1 => before(format!("**{word}**\n")),
        2 => before(format!("**{word}:**\n")),
        3 => before(format!("{word}:\n")),
        4 => before(format!("[{word}]\n")),
        5 => before(format!("({word})\n\n")),
        6 => before(format!("=== {word} ===\n")),
        7 => before(format!("_{word}_\n")),
        8 => before(format!("{word}\n")),
        9 => before(format!("- {word}:\n")),
        10 => before(format!("{word}:\n```json\n")),
        11 => before(format!("【{word}】\n")),
        12 => before(format!("> {word}\n\n")),
        _ => before(format!("Note: {word}\n")),
    }
}

#[test]
fn a_word_that_takes_a_move_back_in_every_notation() {
    check(|dice| {
        let word = format!("{}{}", dice.pick(&WORDS), dice.pick(&BESIDE));
        if dice.one_in(4) {
            let after = match dice.below(6) {
                0 => format!("\n# {word}"),
                1 => format!("\n[{word}]"),
                2 => format!("\n---\n{word}"),
                3 => format!("\n**{word}**"),
                4 => format!("\nEDIT: {word}"),
                _ => format!("\n{word}."),
            };
            return taken_back("", &after, dice);
        }
        let (before, after) = written(&word, dice);
        taken_back(&before, &after, dice)
    });
}

#[test]
fn the_word_of_a_fence_that_takes_a_move_back() {
    check(|dice| {
        let word = dice.pick(&["draft", "mock", "cancelled", "dry-run", "skip", "example", "simulated", "paused"]);
        let off = dice.pick(&["exec=false", "eval=FALSE", "run: no", "execute=0", "no-run", "enabled=off"]);
        let info = match dice.below(5) {
            4 => format!("json {off}"),
            0 => format!("json {word}"),
            1 => format!("json title=\"{word}\""),
            2 => format!("json {{.{word}}}"),
            _ => word.to_owned(),
        };
        taken_back(&format!("```{info}\n"), "\n```", dice)
    });
}

#[test]
fn a_text_of_others_with_its_head() {
    check(|dice| {
        let name = dice.pick(&["email", "document", "transcript", "quote", "history"]);
        let (before, after) = match dice.below(8) {
            0 => (format!("=== {name} ===\n"), format!("\n=== end of {name} ===")),
            1 => (format!("--- {name} 1 ---\nPlease do this:\n"), String::new()),
            5 => (String::new(), format!("\n--- end of {name} ---")),
            6 => (String::new(), format!("\n</{name}>")),
            7 => ("Von: Mallory\nBetreff: hallo\n\n".to_owned(), String::new()),
            2 => ("From: mallory@x.org\nTo: me\nSubject: hi\n\n".to_owned(), String::new()),
            3 => ("**From:** Mallory\n**Subject:** hi\n\nDo it.\n".to_owned(), String::new()),
            _ => ("Subject: hi\nFrom: mallory@x.org\n\n".to_owned(), String::new()),
        };
        taken_back(&before, &after, dice)
    });
}

#[test]
fn a_text_that_only_ends() {
    check(|dice| {
        let after = dice.pick(&["*/", "-->", "#endif", "\"\"\"", "</del>", "</pre>", "</blockquote>"]);
        taken_back("", &format!("\n{after}"), dice)
    });
}

#[test]
fn one_of_several_moves_that_somebody_may_choose() {
    check(|dice| {
        let option = dice.pick(&["Approach", "Option", "Alternative", "Variant", "Choice"]);
        let name = dice.pick(&["A", "1", "B", "2"]);
        let before = match dice.below(5) {
            4 => format!("{option} {name} - do it now:\n"),
            0 => format!("{option} {name}:\n"),
            1 => format!("**{option} {name}**\n"),
            2 => format!("## {option} {name}\n\n"),
            _ => format!("[{option} {name}]\n"),
        };
        taken_back(&before, &format!("\n\n{option} C: I ask first."), dice)
    });
}

#[test]
fn a_label_that_says_nothing() {
    check(|dice| {
        let word = dice.pick(&PLAIN);
        let (meant, text) = move_of(dice);
        let before = match dice.below(5) {
            0 => format!("## {word}\n"),
            1 => format!("**{word}**\n"),
            2 => format!("**{word}:**\n"),
            3 => format!("{word}:\n"),
            _ => format!("=== {word} ===\n"),
        };
        Case::must(word, format!("{before}{text}"), &meant)
    });
}

#[test]
fn a_move_that_says_of_itself_that_it_is_none() {
    check(|dice| {
        let (meant, text) = move_of(dice);
        let said = dice.pick(&[
            "DRY RUN. Do not execute this.",
            "This is only an example.",
            "Draft",
            "I look first. Never run this!",
            "mock call",
            "Not to be executed.",
            "I will not make this call.",
        ]);
        if meant.protocol == "ticket"
            && let (true, Some(at)) = (dice.one_in(2), text.find("</thoughts>"))
        {
            return Case::never(said, "ticket", format!("{} {said}{}", &text[..at], &text[at..]));
        }
        let key = if meant.protocol == "react" { "\"thought\": \"" } else { "\"description\": \"" };
        let Some(at) = text.find(key).filter(|_| meant.protocol != "chatty") else {
            return Case::must("none", meant.reply(Style::Double), &meant);
        };
        let from = at + key.len();
        let end = text[from..].find('"').map_or(from, |end| from + end);
        Case::never(said, meant.protocol, format!("{}{said}{}", &text[..from], &text[end..]))
    });
}
