//! Brackets, an end tag or arguments that are missing are added only if everything outside the move is blank.

use super::dice::Dice;
use super::moves::{Meant, STYLES, Style, payload, tags};
use super::pieces::{gap, prose};
use super::{Case, check};
use serde_json::Value as Json;

const TAGGED: [&str; 2] = ["chatty", "ticket"];

/// A line before or behind. What precedes a block in chatty is narration, a section of the protocol: none there.
fn around(protocol: &str, text: &str, dice: &mut Dice) -> String {
    if protocol != "chatty" && dice.one_in(2) {
        format!("{}{}{text}", prose(dice), gap(dice))
    } else {
        format!("{text}{}{}", gap(dice), prose(dice))
    }
}

#[test]
fn brackets_are_not_added_beside_other_text() {
    check(|dice| {
        let protocol = dice.pick(&TAGGED);
        let meant = Meant::random(protocol, dice);
        let payload = meant.payload(dice.pick(&STYLES));
        let kept = payload.trim_end_matches([']', '}']);
        let closers = &payload[kept.len()..];
        let [before, after] = tags(protocol);
        let text = format!("{before}{kept}{}{after}", &closers[..dice.below(closers.len())]);
        Case::never("closers", protocol, around(protocol, &text, dice))
    });
}

#[test]
fn an_end_tag_is_not_added_beside_other_text() {
    check(|dice| {
        let protocol = dice.pick(&TAGGED);
        let meant = Meant::any(protocol, dice);
        let [before, _] = tags(protocol);
        let text = format!("{before}{}", meant.payload(dice.pick(&STYLES)));
        Case::never("end tag", protocol, around(protocol, &text, dice))
    });
}

#[test]
fn arguments_are_not_added_beside_other_text() {
    check(|dice| {
        let protocol = dice.pick(&super::PROTOCOLS);
        let meant = Meant::random(protocol, dice);
        let (fields, _) = meant.parts();
        let [before, after] = tags(protocol);
        let object = dice.pick(&STYLES).value(&Json::Object(fields));
        let text = format!("{before}{}{after}", payload(protocol, &object));
        Case::never("arguments", protocol, around(protocol, &text, dice))
    });
}

#[test]
fn what_is_missing_is_added_beside_blanks_and_reasoning() {
    check(|dice| {
        let protocol = dice.pick(&TAGGED);
        let meant = Meant::random(protocol, dice);
        let [before, _] = tags(protocol);
        let text = format!("{before}{}", meant.payload(Style::Double));
        let text = match dice.below(3) {
            0 => format!("<think>\n{}\n</think>\n{text}", prose(dice)),
            1 => format!("\n\n{text}\n \n"),
            _ => text,
        };
        Case::must("end tag", text, &meant)
    });
}
