//! Reasoning in marks that nobody knows, or that the chat template opened (A5, A6): a call that is rehearsed in it is never
//! made, whole or streamed.

use super::dice::Dice;
use super::moves::{Meant, STYLES, Style};
use super::outcome::starts_early;
use super::pieces::{prose, words};
use super::{Case, PROTOCOLS, Wrong, cases, check, first_seed};

/// Marks of some model, or of none.
fn marks(dice: &mut Dice) -> (&'static str, String, String) {
    let name =
        dice.pick(&["musing", "inner", "antThinking", "details", "scratch", "longcat_think", "deliberate", "Plan"]);
    match dice.below(11) {
        0 | 1 => ("tag", format!("<{name}>"), format!("</{name}>")),
        2 => ("tag with attributes", format!("<{name} effort=\"low\">"), format!("</{name}>")),
        3 => ("brackets", format!("[{}]", name.to_uppercase()), format!("[/{}]", name.to_uppercase())),
        4 => ("tokens", format!("<|begin_of_{name}|>"), format!("<|end_of_{name}|>")),
        5 => ("channel", "<|channel>thought\n".to_owned(), "<channel|>".to_owned()),
        6 => ("unused", "<unused94>thought\n".to_owned(), "<unused95>".to_owned()),
        7 => ("stripped channel", "analysis".to_owned(), "assistantfinal".to_owned()),
        8 => ("signs", format!("◇{name}▷"), format!("◇/{name}▷")),
        9 => ("words", "Here is my thought process:\n".to_owned(), "\nHere is my response:\n".to_owned()),
        _ => ("double braces", format!("{{{{{name}}}}}"), format!("{{{{/{name}}}}}")),
    }
}

/// A call that is thought of and dropped.
fn rehearsal(meant: &Meant, style: Style, dice: &mut Dice) -> String {
    let call = match dice.below(3) {
        0 => meant.payload(style),
        _ => meant.reply(style),
    };
    match dice.below(4) {
        0 => format!("Maybe {call} but no."),
        1 => format!("\n{}\n{call}\nNo, that is too early.\n", prose(dice)),
        2 => format!("{call}\n"),
        _ => format!("{} {call}", words(dice)),
    }
}

#[test]
fn a_call_rehearsed_in_unknown_marks_is_not_made() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let meant = Meant::any(protocol, dice);
        let (label, open, close) = marks(dice);
        let style = if dice.one_in(2) { Style::Double } else { dice.pick(&STYLES) };
        let inside = format!("{open}{}{close}", rehearsal(&meant, style, dice));
        // Marks that are words are known where a reply begins with them; elsewhere they are a sentence.
        let first = label == "words" || dice.one_in(2);
        let before = if first { String::new() } else { format!("{}\n", prose(dice)) };
        if dice.one_in(3) {
            let after = if dice.one_in(2) { format!("\n{}", prose(dice)) } else { String::new() };
            return Case::never(format!("{label} alone"), protocol, format!("{before}{inside}{after}"));
        }
        let real = meant.other(dice);
        let text = format!("{before}{inside}\n{}", real.reply(style));
        Case::at_most(label, text, &real)
    });
}

#[test]
fn a_move_rehearsed_in_the_thoughts_is_not_made() {
    check(|dice| {
        let meant = Meant::any("ticket", dice);
        let real = meant.other(dice);
        let style = if dice.one_in(2) { Style::Double } else { dice.pick(&STYLES) };
        let rehearsed =
            [meant.payload(style), format!("<output>{}</output>", meant.payload(style))][dice.below(2)].clone();
        let inside = match dice.below(3) {
            0 => format!("Maybe {rehearsed} but no."),
            1 => format!("{}\n{rehearsed}\nNo, that is too early.", prose(dice)),
            _ => format!("I'd write {rehearsed}"),
        };
        let output = format!("<output>\n{}\n</output>", real.payload(style));
        let text = format!("<thoughts>\n{inside}\n</thoughts>\n{output}");
        if dice.one_in(4) {
            return Case::never("alone", "ticket", format!("<thoughts>\n{inside}\n</thoughts>\n"));
        }
        Case::at_most("thoughts", text, &real)
    });
}

#[test]
fn a_call_rehearsed_where_the_template_opened_the_reasoning_is_not_made() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let meant = Meant::any(protocol, dice);
        let style = if dice.one_in(2) { Style::Double } else { dice.pick(&STYLES) };
        // What precedes the call is text that nothing explains: a stream is not stopped behind it.
        let inside = format!("Maybe {} but no.", [meant.payload(style), meant.reply(style)][dice.below(2)]);
        let before = if dice.one_in(2) { format!("{}\n", prose(dice)) } else { String::new() };
        if dice.one_in(3) {
            let after = if dice.one_in(2) { format!("\n\n{}", prose(dice)) } else { String::new() };
            return Case::never("alone", protocol, format!("{before}{inside}\n</think>{after}"));
        }
        let real = meant.other(dice);
        let text = format!("{before}{inside}\n</think>\n\n{}", real.reply(style));
        Case::at_most("before a call", text, &real)
    });
}

#[test]
fn the_call_behind_reasoning_is_made() {
    const KNOWN: [[&str; 2]; 6] = [
        ["<think>\n", "\n</think>"],
        ["<thinking>", "</thinking>"],
        ["[THINK]", "[/THINK]"],
        ["◁think▷", "◁/think▷"],
        ["<seed:think>", "</seed:think>"],
        ["", "\n</think>"],
    ];
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let meant = Meant::any(protocol, dice);
        let [open, close] = dice.pick(&KNOWN);
        let style = if dice.one_in(2) { Style::Double } else { dice.pick(&STYLES) };
        let real = meant.other(dice);
        let inside = format!("Maybe {} but no.", meant.reply(style));
        // Without a mark before it a rehearsed call may be refused as a second one.
        let inside = if open.is_empty() || dice.one_in(2) { prose(dice) } else { inside };
        let text = format!("{open}{inside}{close}\n\n{}", real.reply(style));
        Case::must(format!("{open:?}"), text, &real)
    });
}

#[test]
fn a_call_starts_early_only_where_nothing_precedes_its_block() {
    let mut wrong = Wrong::default();
    let cases = cases();
    for seed in (0..cases as u64).map(|number| first_seed().wrapping_add(number)) {
        let mut dice = Dice::new(seed);
        let meant = Meant::random("chatty", &mut dice);
        let (label, open, _) = marks(&mut dice);
        let (label, before, explained) = match dice.below(5) {
            0 => ("nothing", String::new(), true),
            1 => ("reasoning", format!("<think>\n{}\n</think>\n", prose(&mut dice)), true),
            2 => ("prose", format!("{}\n", prose(&mut dice)), false),
            3 => ("words", format!("{} ", words(&mut dice)), false),
            _ => (label, format!("{open}{} ", words(&mut dice)), false),
        };
        let text = format!("{before}{}", meant.reply(Style::Double));
        let early = starts_early(&text, &mut dice);
        // Known reasoning may count as nothing or as something.
        if early && !explained || !early && label == "nothing" {
            wrong.add(label.to_owned(), seed, &text, format!("started early: {early}"));
        }
    }
    wrong.none(cases);
}
