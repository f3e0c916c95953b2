//! Text around a move that names a part of it: a key of the protocol or a parameter of the tool with a colon or `=` behind
//! it may carry an argument, so the move is refused. Other labels, and the same words in a sentence, carry nothing.

use super::dice::Dice;
use super::moves::{ARGUMENTS, Meant, STYLES, Style};
use super::pieces::prose;
use super::{Case, PROTOCOLS, check};

/// A line that gives a value to this name, in any quoting style.
fn label(name: &str, dice: &mut Dice) -> String {
    let value = dice.pick(&["7", "\"b7\"", "'cellar'", "true", "{\"path\": \"oslo\"}", "attic", "[1, 2]"]);
    match dice.below(9) {
        0 => format!("{name}: {value}"),
        1 => format!("{name} = {value}"),
        2 => format!("{name}={value}"),
        3 => format!("\"{name}\": {value}"),
        4 => format!("'{name}': {value}"),
        5 => format!("“{name}”: {value}"),
        6 => format!("`{name}`: {value}"),
        7 => format!("Please use {name}: {value} for that."),
        _ => format!("- {name}：{value}"),
    }
}

/// Puts a line before or behind the move, on a line of its own.
fn beside(meant: &Meant, line: &str, style: Style, dice: &mut Dice) -> String {
    let reply = meant.reply(style);
    let more = if dice.one_in(3) { format!("\n{}", prose(dice)) } else { String::new() };
    match dice.below(2) {
        0 => format!("{line}\n{reply}{more}"),
        _ => format!("{reply}\n{line}{more}"),
    }
}

#[test]
fn a_key_of_the_protocol_beside_the_move_refuses_it() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let keys: &[&str] = match protocol {
            "react" => &["args", "final_answer"],
            "chatty" => &["arguments", "tool_name"],
            _ => &["payload", "route"],
        };
        let meant = Meant::random(protocol, dice);
        let (key, style) = (dice.pick(keys), dice.pick(&STYLES));
        let line = label(key, dice);
        let text = beside(&meant, &line, style, dice);
        let case = Case::never(key, protocol, text.clone());
        // A stream may be stopped where nothing precedes the move.
        if text.starts_with(&line) { case } else { case.early(meant.done()) }
    });
}

#[test]
fn a_parameter_of_the_tool_beside_the_move_refuses_it() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let meant = Meant::random(protocol, dice);
        let (name, style) = (dice.pick(&ARGUMENTS), dice.pick(&STYLES));
        let line = label(name, dice);
        let text = beside(&meant, &line, style, dice);
        let case = Case::never("parameter", protocol, text.clone());
        if text.starts_with(&line) { case } else { case.early(meant.done()) }
    });
}

#[test]
fn other_labels_and_the_words_of_the_protocol_in_a_sentence_are_prose() {
    const LINES: [&str; 8] = [
        "Note: it is late.",
        "PS: that was quick.",
        "Next step: look at it.",
        "I have two options: this one, or none.",
        "This action needs some arguments and a payload, and the tool takes them.",
        "No further thought is needed for the final answer.",
        "The path matters, and so does the amount.",
        "Time = money, as they say.",
    ];
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let meant = Meant::random(protocol, dice);
        let (line, style) = (dice.pick(&LINES), dice.pick(&STYLES));
        let text = beside(&meant, line, style, dice);
        Case::must(line, text, &meant)
    });
}
