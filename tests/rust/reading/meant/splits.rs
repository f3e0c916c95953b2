//! One move in several objects, fences or labels (A2): never a call with its defaults.

use super::dice::Dice;
use super::moves::{Meant, STYLES, Style, bare_tags, payload, tags};
use super::pieces::prose;
use super::{Case, PROTOCOLS, check};
use serde_json::Value as Json;

/// The arguments as something of their own.
fn arguments(meant: &Meant, style: Style, dice: &mut Dice) -> (&'static str, String) {
    let args = style.value(&Json::Object(meant.args.clone()));
    let (_, key) = meant.parts();
    let other = dice.pick(&["args", "arguments", "payload", "Args", "Arguments", "parameters", "Action Input"]);
    match dice.below(7) {
        0 => ("object", args),
        1 => ("object with the key", format!("{{{}{}{args}}}", style.key(key), style.colon())),
        2 => ("label", format!("{other}: {args}")),
        3 => ("tag", format!("<{other}>{args}</{other}>")),
        4 => ("fence", format!("```json\n{args}\n```")),
        5 => ("member", format!("{}{}{args}", style.key(key), style.colon())),
        _ => ("member behind a comma", format!(", {}{}{args}}}", style.key(key), style.colon())),
    }
}

#[test]
fn a_call_whose_arguments_stand_apart_is_not_made() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let style = if dice.one_in(2) { Style::Double } else { dice.pick(&STYLES) };
        let meant = Meant::random(protocol, dice);
        let (before, _) = meant.parts();
        let head = payload(protocol, &style.value(&Json::Object(before)));
        let (label, args) = arguments(&meant, style, dice);
        let between = dice.pick(&["\n", " ", "", "\n\n", ",\n"]);
        let [open, close] = if dice.one_in(2) { tags(protocol) } else { bare_tags(protocol) };
        let text = match dice.below(4) {
            0 => format!("{open}{head}{between}{args}{close}"),
            1 => format!("{open}{head}{close}{between}{args}"),
            2 => format!("{args}{between}{open}{head}{close}"),
            _ if protocol == "react" => format!("```json\n{head}\n```{between}{args}"),
            _ => format!("{open}{head}{close}\n{}\n{args}", prose(dice)),
        };
        // The two halves may be read as one, but nothing else may be done.
        Case::at_most(label, text, &meant)
    });
}

#[test]
fn a_call_without_arguments_is_made_where_nothing_else_is_in_the_reply() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let mut meant = Meant::random(protocol, dice);
        meant.args.clear();
        let style = dice.pick(&STYLES);
        let (before, _) = meant.parts();
        let [open, close] = tags(protocol);
        let text = format!("{open}{}{close}", payload(protocol, &style.value(&Json::Object(before))));
        let text = if dice.one_in(3) { format!("<think>\nIt takes none.\n</think>\n{text}\n") } else { text };
        Case::must("alone", text, &meant)
    });
}
