//! What a decoder says of a reply that is still arriving is final: doomed is refused in the end, whatever the text (A9b).

use super::dice::Dice;
use super::moves::{Meant, STYLES};
use super::outcome::{reply, stays_doomed};
use super::pieces::{prose, words};
use super::{PROTOCOLS, Wrong, cases, first_seed};

/// What a model writes by mistake before it goes on.
const SLIPS: [&str; 9] = ["\n", "``}", "}", "]", "\n```\n", "\n``}\n", "```", "\n```\n```json\n", " "];
/// How it goes on.
const MEMBERS: [&str; 6] = ["", ", ", "\"b\": 1", ", \"b\": 1", "b: 1", ", 'b': 1"];

/// A reply with something put into it, perhaps in a fence.
fn interrupted(protocol: &'static str, dice: &mut Dice) -> String {
    let reply = Meant::random(protocol, dice).reply(dice.pick(&STYLES));
    let marks: Vec<usize> =
        reply.char_indices().filter(|(_, c)| "{}[],:\"'\n".contains(*c)).map(|(at, _)| at).collect();
    let closers =
        reply.trim_end_matches("\n</tool>").trim_end_matches("\n</output>").trim_end_matches([']', '}']).len();
    let at = if dice.one_in(2) { closers + dice.below(2) } else { dice.pick(&marks) };
    let (mut head, tail) = (reply[..at].to_owned(), &reply[at..]);
    if dice.one_in(2) {
        head.insert_str(0, "```json\n");
    }
    for _ in 0..=dice.below(3) {
        head.push_str(dice.pick(&SLIPS));
    }
    head + dice.pick(&MEMBERS) + tail
}

/// Fragments of replies, in any order.
fn text(protocol: &'static str, dictionary: &[String], dice: &mut Dice) -> String {
    if dice.one_in(2) {
        return interrupted(protocol, dice);
    }
    let mut text = String::new();
    for _ in 0..=dice.below(12) {
        match dice.below(8) {
            0 => text.push_str(&prose(dice)),
            1 => text.push_str(words(dice)),
            2 | 3 => text.push_str(&dictionary[dice.below(dictionary.len())]),
            4 => text.push_str(
                dice.pick(&["\n", " ", "```\n", "``}\n", ", ", "}", "]", "\"b\": 1", "'b': 1}}", "</think>"]),
            ),
            _ => {
                // A part of a move, from one character to another.
                let reply = Meant::random(protocol, dice).reply(dice.pick(&STYLES));
                let places: Vec<usize> = reply.char_indices().map(|(at, _)| at).chain([reply.len()]).collect();
                let (one, other) = (dice.pick(&places), dice.pick(&places));
                let from = if dice.one_in(2) { 0 } else { one.min(other) };
                text.push_str(&reply[from..one.max(other)]);
            }
        }
    }
    text
}

#[test]
fn doomed_is_final() {
    let mut wrong = Wrong::default();
    let dictionary = crate::words::dictionary();
    let (mut read, cases) = (0, cases());
    for seed in (0..cases as u64).map(|number| first_seed().wrapping_add(number)) {
        let mut dice = Dice::new(seed);
        let protocol = dice.pick(&PROTOCOLS);
        let text = text(protocol, &dictionary, &mut dice);
        read += usize::from(reply(protocol, &text).outcome.is_ok());
        if let Some(what) = stays_doomed(protocol, &text) {
            wrong.add(protocol.to_owned(), seed, &text, what);
        }
    }
    assert!(read * 100 > cases, "expected some texts to be read: got {read} of {cases}");
    wrong.none(cases);
}
