//! Text around a move: prose, which carries nothing of a call.

use super::dice::Dice;

const SENTENCES: [&str; 12] = [
    "I look at it first.",
    "Let's see what's there.",
    "The user wouldn't mind.",
    "That's the smallest step, and it's enough.",
    "One step at a time!",
    "She said \"yes\" to that.",
    "It is late (about nine).",
    "Is it there?",
    "The list [all of it] is short.",
    "Then I'll report back; the rest can wait.",
    "**Next step**",
    "Je regarde d'abord, s'il te plaît.",
];
const WORDS: [&str; 8] =
    ["Next", "Well then", "So, to begin with", "I think", "Now let's go", "Surely", "Done", "Here it is:"];

/// One or two sentences, each on a line of its own or on one.
pub(super) fn prose(dice: &mut Dice) -> String {
    let first = dice.pick(&SENTENCES);
    match dice.below(3) {
        0 => first.to_owned(),
        1 => format!("{first} {}", dice.pick(&SENTENCES)),
        _ => format!("{first}\n\n{}", dice.pick(&SENTENCES)),
    }
}

/// A few words without an end.
pub(super) fn words(dice: &mut Dice) -> &'static str {
    dice.pick(&WORDS)
}

/// Blank text between a move and a line of prose.
pub(super) fn gap(dice: &mut Dice) -> &'static str {
    dice.pick(&["\n", "\n\n", " \n"])
}
