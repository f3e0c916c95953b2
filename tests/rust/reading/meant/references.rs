//! References between calls of a block (A15): `$call_1` is one where it is the whole value. Inside a text it is refused,
//! because the text would be sent before the call has run; an id of digits alone is none.

use super::dice::Dice;
use super::moves::{Meant, Style};
use super::outcome::Done;
use super::{Case, Wanted, check};
use serde_json::{Value as Json, json};

/// A block of two calls; the second has this text among its arguments.
fn block(id: &str, text: &str, dice: &mut Dice) -> (String, Done) {
    let mut calls = [Meant::random("chatty", dice), Meant::random("chatty", dice)];
    let value = match dice.below(3) {
        0 => json!([text, 1]),
        1 => json!({"note": text}),
        _ => json!(text),
    };
    calls[1].args.insert("target".to_owned(), value);
    let rows: Vec<Json> = calls
        .iter()
        .zip([id, "last"])
        .map(|(call, id)| {
            let mut object = call.object();
            object["call_id"] = json!(id);
            object
        })
        .collect();
    let done = calls.iter().map(|call| (call.tool.clone(), Json::Object(call.args.clone()))).collect();
    (format!("<tool>\n{}\n</tool>", Style::Double.value(&Json::Array(rows))), Done::Calls(done))
}

#[test]
fn a_reference_inside_a_text_refuses_the_block() {
    check(|dice| {
        let id = dice.pick(&["call_1", "c7", "weather", "step-1"]);
        let text = match dice.below(6) {
            0 => format!("The weather: ${id}"),
            1 => format!("${id}.temperature"),
            2 => format!("${id} "),
            3 => format!(" ${id}"),
            4 => format!("${id}[0]"),
            _ => format!("see ${id}, then go"),
        };
        Case::never("inside", "chatty", block(id, &text, dice).0)
    });
}

#[test]
fn other_dollars_are_text_and_a_whole_reference_is_one() {
    check(|dice| {
        let id = dice.pick(&["1", "42", "c7", "call_1"]);
        let text = match dice.below(6) {
            0 => "$5".to_owned(),
            1 => "see $HOME and $PATH".to_owned(),
            2 => "costs 7$".to_owned(),
            3 if id.parse::<u32>().is_ok() => format!("${id}"),
            4 if id.parse::<u32>().is_ok() => format!("(${id})"),
            _ => format!("${id}"),
        };
        let (text, done) = block(id, &text, dice);
        let wanted = Wanted::This(done);
        Case { label: "dollar".to_owned(), protocol: "chatty", text, wanted, early: Vec::new() }
    });
}
