//! Keys beside a call: refused, because they may say not to, or not yet (A7), but for the list of remarks.

use super::dice::Dice;
use super::moves::{Meant, STYLES, Style, payload, reply};
use super::{Case, PROTOCOLS, check};
use serde_json::{Map, Value as Json, json};

const REMARKS: [&str; 13] = [
    "reason",
    "reasoning",
    "rationale",
    "explanation",
    "note",
    "notes",
    "comment",
    "comments",
    "confidence",
    "step",
    "title",
    "summary",
    "explanation",
];
const CONDITIONS: [&str; 40] = [
    "dry_run",
    "dryRun",
    "execute",
    "if",
    "unless",
    "when",
    "only_if",
    "condition",
    "requires_approval",
    "needs_confirmation",
    "confirm",
    "confirmed",
    "approved",
    "status",
    "state",
    "enabled",
    "disabled",
    "active",
    "skip",
    "run",
    "simulate",
    "preview",
    "draft",
    "test",
    "pending",
    "wait",
    "delay",
    "schedule",
    "at",
    "until",
    "after",
    "before",
    "depends_on",
    "timeout",
    "retries",
    "priority",
    "background",
    "user",
    "sandbox",
    "undo",
];

/// A key that no protocol has and that is no remark, nor made of one.
fn random_key(dice: &mut Dice) -> String {
    let letters = b"abdfghjklmpqtuvwxyz";
    (0..4 + dice.below(6)).map(|_| char::from(dice.pick(letters))).collect()
}

fn scalar(dice: &mut Dice) -> Json {
    match dice.below(5) {
        0 => json!(true),
        1 => json!(false),
        2 => json!(1 + dice.below(9)),
        3 => json!(dice.pick(&["no", "pending", "tomorrow", "the user agrees", "c0", "x"])),
        _ => json!(0.5),
    }
}

/// The reply with one more member, at any place among the others.
fn with(meant: &Meant, key: &str, value: Json, style: Style, dice: &mut Dice) -> String {
    let Json::Object(object) = meant.object() else { unreachable!() };
    let mut entries: Vec<(String, Json)> = object.into_iter().collect();
    entries.insert(dice.below(entries.len() + 1), (key.to_owned(), value));
    let object: Map<String, Json> = entries.into_iter().collect();
    reply(meant.protocol, &payload(meant.protocol, &style.value(&Json::Object(object))))
}

#[test]
fn a_key_beside_a_call_refuses_it() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let meant = Meant::random(protocol, dice);
        let style = if dice.one_in(2) { Style::Double } else { dice.pick(&STYLES) };
        let (label, key) = if dice.one_in(4) {
            ("random key".to_owned(), random_key(dice))
        } else {
            let key = dice.pick(&CONDITIONS);
            (key.to_owned(), key.to_owned())
        };
        let value = match dice.below(6) {
            0 => json!({"by": scalar(dice)}),
            1 => json!([scalar(dice)]),
            _ => scalar(dice),
        };
        let text = with(&meant, &key, value, style, dice);
        Case::never(label, protocol, text)
    });
}

#[test]
fn a_key_of_the_protocol_with_punctuation_is_another_key() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let meant = Meant::random(protocol, dice);
        let style = dice.pick(&[Style::Double, Style::Single, Style::Curly]);
        let (before, key) = meant.parts();
        let keys: Vec<&str> = before.keys().map(String::as_str).chain([key]).collect();
        let key = dice.pick(&keys);
        let other = match dice.below(5) {
            0 => format!("!{key}"),
            1 => format!("~{key}"),
            2 => format!("{key}?"),
            3 => format!("not {key}"),
            _ => format!("#{key}"),
        };
        let text = meant.reply(style).replacen(&style.key(key), &style.key(&other), 1);
        Case::never(key, protocol, text)
    });
}

#[test]
fn a_key_that_stands_twice_with_two_values_refuses_the_call() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let meant = Meant::random(protocol, dice);
        let other = meant.other(dice);
        let style = dice.pick(&STYLES);
        let (before, key) = meant.parts();
        let (tool_key, _) = before.iter().find(|(_, value)| **value == json!(meant.tool)).unwrap();
        let (key, value) = if meant.tool != other.tool && dice.one_in(2) {
            (tool_key.as_str(), json!(other.tool))
        } else {
            (key, Json::Object(other.args.clone()))
        };
        if other.args == meant.args && value.is_object() {
            return Case::must("the same", meant.reply(style), &meant);
        }
        let again = match dice.below(4) {
            0 => key.to_owned(),
            1 => key.to_uppercase(),
            2 => format!("{}{}", key[..1].to_uppercase(), &key[1..]),
            _ => format!("\\u{:04x}{}", key.as_bytes()[0], &key[1..]),
        };
        let style = if again.starts_with('\\') { Style::Double } else { style };
        let text = with(&meant, "\u{1}", value, style, dice).replace('\u{1}', &again);
        Case::never(key, protocol, text)
    });
}

#[test]
fn a_remark_beside_a_call_is_dropped() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let meant = Meant::random(protocol, dice);
        let style = if dice.one_in(2) { Style::Double } else { dice.pick(&STYLES) };
        let key = dice.pick(&REMARKS);
        let value = if dice.one_in(2) { json!(dice.pick(&["it is cheap", "as asked"])) } else { json!(2) };
        let text = with(&meant, key, value, style, dice);
        Case::must(key, text, &meant)
    });
}

/// A thought stands in an object of its own before the move that has none: any more in it may be a condition.
#[test]
fn a_thought_of_its_own_before_the_move() {
    check(|dice| {
        let meant = Meant::random("react", dice);
        let style = dice.pick(&[Style::Double, Style::Single, Style::Bare, Style::Curly, Style::Wide]);
        let mut apart = Map::from_iter([("thought".to_owned(), json!(meant.thought))]);
        let Json::Object(mut object) = meant.object() else { unreachable!() };
        let kind = dice.below(4);
        if kind == 1 {
            apart.insert(dice.pick(&CONDITIONS).to_owned(), scalar(dice));
        }
        if kind != 2 {
            object.remove("thought");
        }
        let mut parts = [style.value(&Json::Object(apart)), style.value(&Json::Object(object))];
        if kind == 3 {
            parts.reverse();
        }
        let text = parts.join(dice.pick(&["\n", "\n\n", " ", "\n\nThen:\n"]));
        match kind {
            0 => Case::must("before", text, &meant),
            1 => Case::never("with more", "react", text),
            2 => Case::at_most("a second one", text, &meant),
            _ => Case::at_most("behind", text, &meant),
        }
    });
}
