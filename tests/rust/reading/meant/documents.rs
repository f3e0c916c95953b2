//! What stands above, around and behind a move as programs and documents write it, and where the strings and comments
//! inside it need a guess.

use super::dice::Dice;
use super::moves::{Meant, Style};
use super::{Case, PROTOCOLS, check};
use serde_json::json;

fn move_of(dice: &mut Dice) -> (Meant, String) {
    let meant = Meant::random(dice.pick(&PROTOCOLS), dice);
    let text = meant.reply(Style::Double);
    (meant, text)
}

#[test]
fn a_line_above_a_move_that_makes_it_a_part_of_something() {
    check(|dice| {
        let (meant, text) = move_of(dice);
        let above = dice.pick(&[
            "if approved:\n    ",
            "If approved:\n",
            "else:\n  ",
            "elif ok:\n",
            "unless denied:\n",
            "while False:\n",
            "when approved:\n",
            "if approved then\n",
            "::: example\n",
            "> [!EXAMPLE]\n",
            ".. code-block:: json\n\n   ",
            "example: |\n  ",
            "<|channel|>analysis\n",
            "<|channel|>analysis ",
            "<|channel|>thoughts<|message|>",
            "analysis\n",
        ]);
        Case::never(above.trim(), meant.protocol, format!("{above}{text}"))
    });
}

#[test]
fn what_opens_above_a_move_and_never_closes() {
    check(|dice| {
        let (meant, text) = move_of(dice);
        let opening = dice.pick(&[
            "<!--\n",
            "/*\n",
            "{# ",
            "<#\n",
            "#|\n",
            "{% comment %}\n",
            "\\begin{verbatim}\n",
            "\\begin{comment}\n",
            "\"\"\"\n",
            "'''\n",
        ]);
        let behind = dice.pick(&["", "\n", "\nThat is all."]);
        let case = Case::never(opening.trim(), meant.protocol, format!("{opening}{text}{behind}"));
        if meant.protocol == "ticket" { case.early(meant.done()) } else { case }
    });
}

#[test]
fn a_move_that_is_a_value_or_is_taken_back() {
    check(|dice| {
        let (meant, text) = move_of(dice);
        let (before, after) = dice.pick(&[
            ("x = ", ""),
            ("const x = ", ";"),
            ("return ", ""),
            ("f = lambda: ", ""),
            ("ok ? ", ""),
            ("[] ", ""),
            ("\"draft\": ", ""),
            ("'previous': ", ""),
            ("", " if ok"),
            ("", " unless denied"),
            ("", " && false"),
            ("", " ❌"),
            ("", "\n❌"),
            ("", " ☐"),
            ("## Reasoning\n", "\n## Answer\nI ask first."),
        ]);
        let case = Case::never(format!("{before}…{after}"), meant.protocol, format!("{before}{text}{after}"));
        if before.is_empty() { case.early(meant.done()) } else { case }
    });
}

#[test]
fn reasoning_that_ends_behind_a_move() {
    check(|dice| {
        let (meant, text) = move_of(dice);
        let end = dice.pick(&[
            "<|END_THINKING|>",
            "<|end_of_thought|>",
            "<|inner_suffix|>",
            "</reasoning>",
            "</thought>",
            "</analysis>",
            "</scratchpad>",
            "</reflection>",
            "<|end|><|start|>assistant<|channel|>final<|message|>",
        ]);
        let said = dice.pick(&["\n", " ", "\nbut no.\n"]);
        Case::never(end, meant.protocol, format!("maybe {text}{said}{end}\nNo, I ask first."))
    });
}

#[test]
fn a_comment_in_any_notation_that_takes_a_move_back() {
    check(|dice| {
        let (meant, text) = move_of(dice);
        let word = dice.pick(&["cancelled", "skipped", "disabled", "not yet", "planned", "superseded", "denied"]);
        let comment = match dice.below(10) {
            0 => format!("// {word}"),
            1 => format!("/* {word} */"),
            2 => format!("<!-- {word} -->"),
            3 => format!("-- {word}"),
            4 => format!(";; {word}"),
            5 => format!("% {word}"),
            6 => format!("(* {word} *)"),
            7 => format!("{{# {word} #}}"),
            8 => format!("<%-- {word} --%>"),
            _ => format!("--[[ {word} ]]"),
        };
        if dice.one_in(2) {
            Case::never("before", meant.protocol, format!("{comment}\n{text}"))
        } else {
            Case::never("behind", meant.protocol, format!("{text} {comment}")).early(meant.done())
        }
    });
}

#[test]
fn a_switch_beside_a_move() {
    check(|dice| {
        let (meant, text) = move_of(dice);
        let key = dice.pick(&["approved", "enabled", "skip", "simulate", "send", "live"]);
        let value = dice.pick(&["true", "false", "no", "off"]);
        let line = if dice.one_in(3) { "mode: simulation".to_owned() } else { format!("{key}: {value}") };
        Case::never("switch", meant.protocol, format!("{line}\n{text}"))
    });
}

/// An object with these arguments, as it is written.
fn with_arguments(protocol: &str, arguments: &str) -> String {
    match protocol {
        "react" => format!(r#"{{"thought": "t", "action": "write", "args": {arguments}}}"#),
        "chatty" => {
            format!(r#"<tool>[{{"call_id": "a", "tool_name": "write", "arguments": {arguments}}}]</tool>"#)
        }
        _ => format!(
            r#"<thoughts>t</thoughts><output>{{"type": "CALL", "route": "POST /write", "description": "d", "payload": {arguments}}}</output>"#
        ),
    }
}

#[test]
fn comments_inside_a_move_that_may_change_it() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let arguments = dice.pick(&[
            "{path: \"x\", // amount: 500\n}",
            "{“path”: “x”, // “amount”: 500\n}",
            "{\"path\": \"x\", /* amount: 500 */ \"disk\": 1}",
            "{\"lines\": [1, // 2,\n 3]}",
            "{\"lines\": [1, /* 2, */ 3]}",
            "{\"lines\": [1, # 2,\n 3]}",
            "{\"lines\": [\"a\", /* `b`, */ \"c\"]}",
            "{\"amount\": 100 # 200\n}",
            "{\"amount\": 100 /* 200 */}",
            "{\"force\": true // false\n}",
            "{\"amount\": 100 // * 1.2\n}",
            "{\"amount\": 100 // + 20\n}",
            "{\"amount\": 100 // n\n}",
            "{\"amount\": 100 // probably 200\n}",
            "{\"path\": \"x\" // cancelled\n}",
            "{\"amount\": 1 // 2 instead of it\n}",
            "{\"path\": \"x\" // was: y\n}",
            "{\"path\": \"x\" // y,\n}",
            "{\"path\": \"x\" // 'y'\n}",
            "{\"path\": \"x\" // a > b\n}",
            "{\"path\": \"x\" // is it right?\n}",
            "{\"path\": \"x\" // we don't know\n}",
            "{\"path\": \"x\" // y | z\n}",
            "{\"path\": \"x\" // [y]\n}",
            "{\"force\": true // no\n}",
            "{\"lines\": [\"a\" // \"b\"]\n]}",
            "{\"lines\": [\"a\" // the first]\n]}",
            "{\"disk\": {\"path\": \"x\" # so}\n}}",
        ]);
        let long = format!("// the path {}that may be wrong\n}}", "and so ".repeat(80));
        let arguments = arguments.replace("// is it right?\n}", &long);
        let arguments = arguments.as_str();
        Case::never(arguments, protocol, with_arguments(protocol, arguments))
    });
}

#[test]
fn strings_that_may_be_escaped_once_more() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let (label, text) = match dice.below(4) {
            0 => ("a slash in single quotes", with_arguments(protocol, r"{'path': 'a\/b'}")),
            1 => ("written breaks", with_arguments(protocol, r#"{\n"path": "a\\nb"}"#)),
            2 => ("written breaks behind", with_arguments(protocol, r#"{"path": "a\tb",\n "disk": 1}"#)),
            _ => {
                let doubled = with_arguments("react", r#"{{"path": "{{x}}"}}"#);
                ("doubled braces", format!("{{{doubled}}}"))
            }
        };
        Case::never(label, if label == "doubled braces" { "react" } else { protocol }, text)
    });
}

#[test]
fn comments_that_describe_a_value_are_passed_over() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let comment = dice.pick(&[
            "// the path",
            "# where it goes",
            "/* in the attic */",
            "// note: in the attic",
            "// in 2024",
            "// 3rd floor",
            "// the user's own, as in the list",
            "// from [] to this",
            "// (metric) km/h at 12:30",
            "# default: 5",
            "// see https://example.org/a?b=1",
        ]);
        let text = with_arguments(protocol, &format!("{{\"path\": \"x\" {comment}\n}}"));
        let arguments = json!({"path": "x"}).as_object().cloned().unwrap_or_default();
        Case::must(comment, text, &Meant::new(protocol, "write", arguments))
    });
}
