//! An unescaped quote directly before an end tag or a fence line inside a value: never a value that is shorter than what
//! was meant (A1), in any quoting style, whole or streamed.

use super::dice::Dice;
use super::moves::{Meant, STYLES, Style, bare_tags, payload, tags};
use super::{Case, PROTOCOLS, check};
use serde_json::json;

const HEADS: [&str; 6] = ["print(", "/srv/", "say ", "the tag is ", "a = ", ""];
const TAILS: [&str; 7] = [")", " cache", ") # end", "\\nprint(1)", " and then more", ", x", ""];

#[test]
fn a_quote_before_an_end_tag_never_cuts_a_value() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let style = dice.pick(&STYLES);
        let [open, close] = style.quotes();
        let tag = if protocol == "react" { "\n```" } else { bare_tags(protocol)[1] };
        let other = dice.pick(&["<|im_end|>", "</s>", "\n```", "\n~~~", "\n</think>", "\n\n"]);
        let tag = if dice.one_in(3) { other } else { tag };
        let mut tail = dice.pick(&TAILS).to_owned();
        if dice.one_in(2) {
            // A second quote of the value, which opens again.
            tail = format!("{}{tail}", if style == Style::Curly { "“" } else { open });
        }
        let (head, mark) = (dice.pick(&HEADS), "\u{1}");
        let mut meant = Meant::random(protocol, dice);
        meant.args.insert("text".to_owned(), json!(mark));
        if dice.one_in(2) {
            let last = meant.args.len() - 1;
            meant.args.swap_indices_of_text(last, dice);
        }
        let object = style.value(&meant.object());
        let cut = format!("{head}{close}{tag}{}{tail}", if protocol == "react" { "\n" } else { "" });
        let inside = payload(protocol, &object.replace(mark, &cut));
        let [before, after] = match protocol {
            "react" => ["```json\n", "\n```"],
            _ => tags(protocol),
        };
        let after = if dice.one_in(5) { "" } else { after };
        let text = format!("{before}{inside}{after}");
        Case::never(format!("{style:?}"), protocol, text)
    });
}

const LINES: [&str; 6] = ["Observation:", "Note: ", "x: 1, y: ", "a: true,\nb: ", "$k: [1, 2], z: ", "_id:\n"];

#[test]
fn a_line_of_a_text_never_becomes_a_member() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let style = dice.pick(&STYLES);
        let [open, close] = style.quotes();
        let mark = "\u{1}";
        let mut meant = Meant::random(protocol, dice);
        meant.args.insert("text".to_owned(), json!(mark));
        let last = meant.args.len() - 1;
        meant.args.swap_indices_of_text(last, dice);
        let blanks = dice.pick(&["\n", "\n  ", "\r\n", " \n\n"]);
        let cut = format!("{}{close}{blanks}{}{open}{}", dice.pick(&HEADS), dice.pick(&LINES), dice.pick(&TAILS));
        let inside = payload(protocol, &style.value(&meant.object()).replace(mark, &cut));
        let [before, after] = match protocol {
            "react" => ["", ""],
            _ => tags(protocol),
        };
        Case::never(format!("{style:?}"), protocol, format!("{before}{inside}{after}"))
    });
}

/// Moves the text among the other arguments.
trait Shuffle {
    fn swap_indices_of_text(&mut self, last: usize, dice: &mut Dice);
}

impl Shuffle for serde_json::Map<String, serde_json::Value> {
    fn swap_indices_of_text(&mut self, last: usize, dice: &mut Dice) {
        let at = dice.below(last + 1);
        let mut entries: Vec<_> = std::mem::take(self).into_iter().collect();
        entries.swap(at, last);
        self.extend(entries);
    }
}

#[test]
fn an_escaped_quote_before_an_end_tag_is_a_part_of_the_value() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let tag = dice.pick(&["</output>", "</tool>", "\\n```\\n", "</think>"]);
        let (head, tail) = (dice.pick(&HEADS), dice.pick(&[")", " cache", ") # end", ""]));
        let mut meant = Meant::random(protocol, dice);
        meant.args.insert("text".to_owned(), json!("\u{1}"));
        let payload = meant.payload(Style::Double).replace('\u{1}', &format!("{head}\\\"{tag}{tail}"));
        meant.args.insert("text".to_owned(), json!(format!("{head}\"{}{tail}", tag.replace("\\n", "\n"))));
        let [before, after] = tags(protocol);
        let text = format!("{before}{payload}{after}");
        Case::must("escaped", text, &meant)
    });
}

#[test]
fn brackets_missing_before_the_last_end_tag_are_added() {
    check(|dice| {
        let protocol = dice.pick(&["chatty", "ticket"]);
        let meant = Meant::random(protocol, dice);
        let whole = meant.payload(Style::Double);
        let kept = whole.trim_end_matches([']', '}']);
        let closers = &whole[kept.len()..];
        let [before, after] = tags(protocol);
        if kept.ends_with(['[', '{']) {
            return Case::must("nothing", meant.reply(Style::Double), &meant);
        }
        let some = dice.below(closers.len());
        Case::must("closers", format!("{before}{kept}{}{after}", &closers[..some]), &meant)
    });
}
