//! What makes a move not meant, in the notations of other languages, templates and formats: conditions, turns, second
//! calls, marks of code, and what a stream must wait for.

use super::dice::Dice;
use super::moves::{Meant, Style, TOOLS};
use super::{Case, PROTOCOLS, check};

fn move_of(dice: &mut Dice) -> (Meant, String) {
    let meant = Meant::random(dice.pick(&PROTOCOLS), dice);
    let text = meant.reply(Style::Double);
    (meant, text)
}

#[test]
fn a_condition_beside_a_move_in_any_notation() {
    check(|dice| {
        let (meant, text) = move_of(dice);
        let key = dice.pick(&["dry_run", "if", "unless", "when", "execute", "draft", "depends_on", "condition"]);
        let value = dice.pick(&["true", "false", "approved", "no", "1"]);
        let said = dice.pick(&["cancelled", "draft", "skipped", "rejected"]);
        let word = dice.pick(&["not now", "dry run", "only an example", "if approved", "todo"]);
        // An address and a heading have the marks of comments as well.
        let lead = dice.pick(&["", "See https://example.org ", "https://a.b//c; ", "## Next ", "Done; "]);
        let (label, condition) = match dice.below(12) {
            0 => ("line", format!("{key}: {value}")),
            1 => ("quoted", format!("\"{key}\": \"{value}\"")),
            2 => ("settings", format!("---\n{key}: {value}\n---")),
            3 => ("bare keys", format!("{{{key}: {value}}}")),
            4 => ("in a line", format!("Options: {{\"{key}\": \"{value}\"}}")),
            5 => ("tag", format!("<{key}>{value}</{key}>")),
            6 => ("empty tag", format!("<{key}/>")),
            7 => ("item", format!("- {key} = {value}")),
            8 => ("value", format!("status: {said}")),
            9 => ("comment", format!("{lead}// {word}")),
            10 => ("comment of markup", format!("{lead}<!-- so --> <!-- {word} -->")),
            _ => ("comment in C", format!("{lead}/* so */ /* {word} */")),
        };
        if dice.one_in(2) {
            Case::never(format!("{label} before"), meant.protocol, format!("{condition}\n{text}"))
        } else {
            let case = Case::never(format!("{label} behind"), meant.protocol, format!("{text}\n{condition}"));
            case.early(meant.done())
        }
    });
}

#[test]
fn a_move_in_the_turn_of_somebody_else_in_any_template() {
    check(|dice| {
        let (meant, text) = move_of(dice);
        let role = dice.pick(&["user", "User", "system", "tool", "human"]);
        let opening = match dice.below(10) {
            0 => format!("{role}\n"),
            1 => format!("### {role}\n"),
            2 => format!("[{role}]\n"),
            3 => format!("[|{role}|]\n"),
            4 => format!("]~b]{role}\n"),
            5 => format!("<extra_id_1>{role}\n"),
            6 => format!("<|im_start|>{role}/x\n"),
            7 => format!("<|im_start|>{role}_response\n"),
            8 => "TOOL_EXECUTION_RESULT\nsearch (c1): ".to_owned(),
            _ => "Result of ticket T1:\n".to_owned(),
        };
        Case::never(opening.trim(), meant.protocol, format!("{opening}{text}"))
    });
}

#[test]
fn a_second_call_as_code_before_the_move() {
    check(|dice| {
        let meant = Meant::random(dice.pick(&["react", "chatty"]), dice);
        let text = meant.reply(Style::Double);
        let tool = dice.pick(&TOOLS);
        let call = match dice.below(8) {
            0 => format!("{tool}()"),
            1 => format!("[{tool}()]"),
            2 => format!("r = {tool}(path=\"a\")"),
            3 => format!("print({tool}(\"a\"))"),
            4 => format!("await {tool}(path=\"a\")"),
            5 => format!("{}. {tool}(path=\"a\")", 1 + dice.below(9)),
            6 => format!("[\"{tool}\", {{\"at\": \"a\"}}]"),
            _ => format!("{tool}[a]"),
        };
        Case::never(call.replace(tool, "f"), meant.protocol, format!("{call}\n{text}"))
    });
}

#[test]
fn a_move_behind_a_mark_of_code() {
    check(|dice| {
        let (meant, text) = move_of(dice);
        let (before, after) = dice.pick(&[
            ("// ", ""),
            ("# ", ""),
            ("-- ", ""),
            ("-", ""),
            ("false && ", ""),
            ("- [ ] ", ""),
            ("❌ ", ""),
            ("", ".run()"),
            ("#if 0\n", "\n#endif"),
            ("#|\n", "\n|#"),
            ("if ok; then\n", "\nfi"),
            ("<?php if ($ok): ?>\n", "\n<?php endif; ?>"),
            ("{{#if ok}}\n", "\n{{/if}}"),
            ("\\iffalse\n", "\n\\fi"),
            ("<example>\n", ""),
            ("```example\n", "\n```"),
            ("```diff\n", "\n```"),
            ("<#\n", "\n#>"),
            ("<% if ok %>\n", "\n<% end %>"),
            ("<<<\n", "\n>>>"),
            ("if (ok) ", ""),
            ("else: ", ""),
            ("unless done? ", ""),
            ("$", ""),
            ("Thinking...\n", "\n...done thinking.\nNo."),
        ]);
        let case = Case::never(before.trim(), meant.protocol, format!("{before}{text}{after}"));
        if before.is_empty() && meant.protocol == "ticket" { case.early(meant.done()) } else { case }
    });
}

#[test]
fn words_between_a_tag_and_its_array() {
    check(|dice| {
        let meant = Meant::random("chatty", dice);
        let text = meant.reply(Style::Double);
        let words =
            dice.pick(&["if ok: ", "dry_run: true\n", "status: draft\n", "// only if approved\n", "<!-- not now -->"]);
        let Some(at) = text.find('[') else { return Case::never("none", "chatty", String::new()) };
        let (tag, rest) = text.split_at(at);
        Case::never(words.trim(), "chatty", format!("{tag}{words}{rest}"))
    });
}

#[test]
fn a_stream_waits_for_what_stands_behind_a_comma() {
    check(|dice| {
        let meant = Meant::random("react", dice);
        let text = meant.reply(Style::Double);
        let comma = dice.pick(&[",\n", ",\r\n", ", \n\n", "，\n", " ,\n", "}\n,\n", ", // x\n", " /* x */, "]);
        let member = dice.pick(&["\"dry_run\": true}", "'append': 1}", "\"lines\": [1]}", "{\"thought\": \"t\"}"]);
        Case::never(comma, "react", format!("{text}{comma}{member}"))
    });
}
