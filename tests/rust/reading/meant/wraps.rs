//! A move with something around it. A quote or bracket that opens before it and closes behind it, and words on both sides
//! of it on its line, make it a text about a move (A4, A9); lines of prose, fences and reasoning do not.

use super::dice::Dice;
use super::moves::{Meant, STYLES, Style, bare_tags, literal, tags};
use super::pieces::{gap, prose, words};
use super::{Case, PROTOCOLS, check};

/// The reply on one line or several, with or without sections of its own.
fn written(meant: &Meant, style: Style, dice: &mut Dice) -> String {
    let payload = meant.payload(style);
    let [before, after] = if dice.one_in(2) { tags(meant.protocol) } else { bare_tags(meant.protocol) };
    // The end tag may be missing, as a stop sequence leaves it.
    let after = if dice.one_in(6) { "" } else { after };
    format!("{before}{payload}{after}")
}

fn quoted(text: &str, dice: &mut Dice) -> (&'static str, String) {
    let quote = dice.pick(&['\'', '"']);
    let inner = match dice.below(3) {
        0 => text.to_owned(),
        1 => format!("{} {text}", words(dice)),
        _ => format!("{}\n{text}\n{}", prose(dice), prose(dice)),
    };
    let [open, close] =
        dice.pick(&[["„", "“"], ["«", "»"], ["「", "」"], ["‘", "’"], ["＂", "＂"], ["“", "”"], ["‹", "›"]]);
    match dice.below(13) {
        0 => ("repr", literal(&inner, quote)),
        1 => ("json text", serde_json::to_string(&inner).unwrap()),
        2 => ("print", format!("print({})", literal(&inner, quote))),
        3 => ("raw print", format!("print('{text}')")),
        4 => ("triple quotes", format!("'''{inner}'''")),
        5 => ("triple quotes", format!("\"\"\"\n{inner}\n\"\"\"")),
        6 => ("list of a repr", format!("[{}, {}]", literal(&inner, quote), literal("next", quote))),
        7 => ("assignment", format!("reply = {}", literal(&inner, quote))),
        8 => ("f-string", format!("print(f\"\"\"{text}\"\"\")")),
        9 => ("quote over lines", format!("She wrote \"Please send\n{text}\nat once\" and left.")),
        10 => ("other quotes", format!("{open}{text}{close}")),
        11 => ("other quotes with words", format!("She wrote {open}{} {text}{close}", words(dice))),
        _ => ("curly quotes over lines", format!("She wrote “{}\n{text}\nThanks”.", words(dice))),
    }
}

fn bracketed(protocol: &str, text: &str, dice: &mut Dice) -> (&'static str, String) {
    let name = dice.pick(&["details", "example", "pre", "quote", "draft", "aside"]);
    match dice.below(if protocol == "react" { 9 } else { 10 }) {
        0 if dice.one_in(2) => ("parentheses over lines", format!("I noted this (see\n{text}\nbelow) for later.")),
        0 => ("parentheses", format!("({text})")),
        1 => ("parentheses with words", format!("({} {text})", words(dice))),
        2 => ("function call", format!("send({text})")),
        3 => ("braces", format!("{{{} {text}}}", words(dice))),
        4 => ("tags", format!("<{name}>{text}</{name}>")),
        5 => ("tags on lines", format!("<{name}>\n{}\n{text}\n</{name}>", prose(dice))),
        6 => ("comment", format!("<!-- {text} -->")),
        7 => ("wide parentheses", format!("（{} {text}）", words(dice))),
        8 => ("object around it", format!("{{\"{name}\": {text}}}")),
        _ => ("square brackets", format!("[{text}]")),
    }
}

fn in_a_sentence(text: &str, dice: &mut Dice) -> (&'static str, String) {
    match dice.below(7) {
        5 => ("sentence in Chinese", format!("请不要运行 {text} 谢谢")),
        6 => ("list item", format!("1. Never send {text} to anybody.\n2. Ask first.")),
        0 => ("sentence", format!("{} {text} before noon.", words(dice))),
        1 => ("sentence", format!("The user pasted: {text}. I ask first.")),
        2 => ("sentence", format!("Do NOT run this: {text} until I say so.")),
        3 => ("table", format!("| step | move | state |\n|---|---|---|\n| one | {} | open |", text.replace('\n', " "))),
        _ => {
            let lines: Vec<String> = text.lines().map(|line| format!("> {line}")).collect();
            ("quotation", format!("The page says this.\n\n{}\n\nI leave that alone.", lines.join("\n")))
        }
    }
}

#[test]
fn a_move_inside_quotes_brackets_or_a_sentence_is_not_made() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let meant = Meant::any(protocol, dice);
        let style = if dice.one_in(2) { Style::Double } else { dice.pick(&STYLES) };
        let (label, mut text) = match dice.below(3) {
            0 => quoted(&written(&meant, style, dice), dice),
            1 => bracketed(protocol, &written(&meant, style, dice), dice),
            _ => {
                let [before, after] = bare_tags(protocol);
                let payload = meant.payload(style);
                let line = if protocol != "react" && dice.one_in(3) { "\n" } else { "" };
                in_a_sentence(&format!("{before}{line}{payload}{line}{after}"), dice)
            }
        };
        if dice.one_in(3) {
            text = format!("{}{}{text}", prose(dice), gap(dice));
        }
        if dice.one_in(3) {
            text = format!("{text}{}{}", gap(dice), prose(dice));
        }
        Case::never(label, protocol, text)
    });
}

#[test]
fn a_payload_in_quotes_or_a_sentence_between_its_tags_is_not_made() {
    check(|dice| {
        let protocol = dice.pick(&["chatty", "ticket"]);
        let meant = Meant::any(protocol, dice);
        let payload = meant.payload(if dice.one_in(2) { Style::Double } else { dice.pick(&STYLES) });
        let (label, payload) = match dice.below(5) {
            0 => ("quotes", format!("'{payload}'")),
            1 => ("repr", literal(&payload, dice.pick(&['\'', '"']))),
            2 => ("triple quotes", format!("\"\"\"{payload}\"\"\"")),
            3 => ("sentence", format!("{} {payload} and not before.", words(dice))),
            _ => ("print", format!("print('{payload}')")),
        };
        let [before, after] = tags(protocol);
        Case::never(label, protocol, format!("{before}{payload}{after}"))
    });
}

#[test]
fn a_move_with_plain_text_or_a_fence_around_it_is_made() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let meant = Meant::any(protocol, dice);
        let text = meant.reply(if dice.one_in(2) { Style::Double } else { dice.pick(&STYLES) });
        let fence = dice.pick(&["```json", "```", "~~~"]);
        let end = &fence[..3];
        let (label, text) = match dice.below(10) {
            0 => ("lines before", format!("{}{}{text}", prose(dice), gap(dice))),
            1 => ("lines behind", format!("{text}{}{}", gap(dice), prose(dice))),
            2 => ("lines on both sides", format!("{}{}{text}{}{}", prose(dice), gap(dice), gap(dice), prose(dice))),
            3 => ("words before on its line", format!("{} {text}", words(dice))),
            4 => ("words behind on its line", format!("{text} {}", words(dice))),
            5 => ("words before, lines behind", format!("{} {text}\n{}", words(dice), prose(dice))),
            6 => ("fence", format!("{fence}\n{text}\n{end}")),
            7 => ("reasoning", format!("<think>\n{} '{{\"a\n</think>\n{text}", prose(dice))),
            8 if protocol == "ticket" => {
                let text = text.replace("<output>\n", &format!("<output>\n{}\n", prose(dice)));
                ("lines in the output", text)
            }
            9 if protocol != "chatty" => {
                let (before, after) = (prose(dice), prose(dice));
                ("fence and lines", format!("{before}\n{fence}\n{text}\n{end}\n{after}"))
            }
            _ => ("nothing", text),
        };
        Case::must(label, text, &meant)
    });
}
