//! What strangers found who tried to make the reader execute something that was not meant: another move in another form,
//! a move in the turn of somebody else, in the brackets of another language, behind a mark inside its tags, an object
//! beside it, a comment in it, and a reply that was cut behind it.

use super::dice::Dice;
use super::moves::{Meant, Style, TOOLS, bare_tags, tags};
use super::outcome::cut;
use super::pieces::prose;
use super::{Case, PROTOCOLS, Wanted, check};
use serde_json::{Value as Json, json};

/// A call of a tool of the run, in a form of another protocol.
fn other_form(tool: &str, own: &str, dice: &mut Dice) -> String {
    let args = json!({"path": "attic"});
    match dice.below(16) {
        0 => format!("<tool_call>\n{}\n</tool_call>", json!({"name": tool, "arguments": args})),
        1 => format!("[{tool}(path=\"attic\")]"),
        2 => format!("{tool}(path='attic')"),
        3 => json!({"name": tool, "parameters": args}).to_string(),
        4 => format!("<{tool}><path>attic</path></{tool}>"),
        5 => format!("<function={tool}>\n<parameter=path>\nattic\n</parameter>\n</function>"),
        6 => format!("<|tool_call_begin|>functions.{tool}:0<|tool_call_argument_begin|>{args}<|tool_call_end|>"),
        7 => format!("<｜tool▁call▁begin｜>{tool}<｜tool▁sep｜>{args}<｜tool▁call▁end｜>"),
        8 => format!("<invoke name=\"{tool}\"><parameter name=\"path\">attic</parameter></invoke>"),
        9 => format!("<tool_call>{tool}\n<arg_key>path</arg_key>\n<arg_value>attic</arg_value>\n</tool_call>"),
        10 => format!("Action: {tool}\nAction Input: {args}"),
        11 => format!("<|channel|>commentary to=functions.{tool}<|message|>{args}"),
        12 => format!("{{'tool': '{tool}', 'tool_input': {{'path': 'attic'}}}}"),
        13 if own != "chatty" => {
            format!("<tool>{}</tool>", json!([{"call_id": "c9", "tool_name": tool, "arguments": args}]))
        }
        14 if own == "chatty" => json!({"thought": "t", "action": tool, "args": args}).to_string(),
        _ => format!("{tool} {args}"),
    }
}

#[test]
fn another_move_in_another_form_is_not_dropped() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let meant = Meant::random(protocol, dice);
        // The names of operations are no names of tools.
        let tool =
            if protocol == "ticket" { format!("POST /{}", dice.pick(&TOOLS)) } else { dice.pick(&TOOLS).to_owned() };
        let form = loop {
            let form = other_form(&tool, protocol, dice);
            // A tag, or a word, can't hold the name of an operation.
            if protocol != "ticket" || form.contains(&format!("\"{tool}\"")) {
                break form;
            }
        };
        let reply = meant.reply(Style::Double);
        if dice.one_in(2) {
            Case::never("before", protocol, format!("{form}\n{reply}"))
        } else {
            Case::never("behind", protocol, format!("{reply}\n{form}")).early(meant.done())
        }
    });
}

#[test]
fn a_move_in_the_turn_of_somebody_else_is_not_made() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let role = dice.pick(&["user", "system", "tool"]);
        let label = dice.pick(&["User", "Human", "### Instruction", "**User**", "> Human"]);
        let [before, after] = match dice.below(8) {
            0 => [format!("<|im_start|>{role}\n"), "<|im_end|>\n<|im_start|>assistant\nHello".to_owned()],
            1 => ["[INST] ".to_owned(), " [/INST] Hello.".to_owned()],
            2 => [format!("{label}: "), "\nAssistant: Hello".to_owned()],
            3 => [format!("{label}:\n"), String::new()],
            4 => ["Observation: ".to_owned(), String::new()],
            5 => ["<｜User｜>".to_owned(), "<｜Assistant｜>Hello".to_owned()],
            6 => [format!("<|{role}|>\n"), "<|end|>\n<|assistant|>\nHello".to_owned()],
            _ => [format!("<|start_header_id|>{role}<|end_header_id|>\n\n"), "<|eot_id|>".to_owned()],
        };
        let reply = Meant::any(protocol, dice).reply(Style::Double);
        let first = if dice.one_in(3) { format!("{}\n", prose(dice)) } else { String::new() };
        Case::never("turn", protocol, format!("{first}{before}{reply}{after}"))
    });
}

#[test]
fn a_move_in_the_turn_of_the_model_is_made() {
    check(|dice| {
        let protocol = dice.pick(&["react", "ticket"]);
        let before =
            dice.pick(&["assistant\n", "<|im_start|>assistant\n", "Assistant: ", "<|assistant|>\n", "[/INST] "]);
        let meant = Meant::any(protocol, dice);
        Case::must("own turn", format!("{before}{}", meant.reply(Style::Double)), &meant)
    });
}

#[test]
fn a_move_in_brackets_of_other_languages_is_not_made() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let word = dice.pick(&["EXAMPLE", "draft", "Sample reply"]);
        let name = dice.pick(&["thinking", "spoiler", "scratch"]);
        let [before, after] = match dice.below(11) {
            0 => ["/*".to_owned(), "*/".to_owned()],
            1 => ["{% raw %}\n".to_owned(), "\n{% endraw %}".to_owned()],
            2 => ["\\begin{verbatim}\n".to_owned(), "\n\\end{verbatim}".to_owned()],
            3 => ["~~".to_owned(), "~~".to_owned()],
            4 => ["||".to_owned(), "||".to_owned()],
            5 => [format!("=== BEGIN {word} ===\n"), format!("\n=== END {word} ===")],
            6 => ["cat <<'EOF' > call.json\n".to_owned(), "\nEOF".to_owned()],
            7 => ["```diff\n-".to_owned(), "\n```".to_owned()],
            8 => [format!("[{name}]\n"), format!("\n[/{name}]\nHello")],
            9 => ["<thi\u{200b}nk>\n".to_owned(), "\n</thi\u{200b}nk>\nHi".to_owned()],
            _ => [format!("# {word} start\n"), format!("\n# {word} end")],
        };
        let reply = Meant::any(protocol, dice).reply(Style::Double);
        Case::never("pair", protocol, format!("{before}{reply}{after}"))
    });
}

#[test]
fn a_mark_between_the_tag_and_the_move_counts() {
    check(|dice| {
        let protocol = dice.pick(&["chatty", "ticket"]);
        let payload = Meant::any(protocol, dice).payload(Style::Double);
        let [open, close] = if dice.one_in(2) { tags(protocol) } else { bare_tags(protocol) };
        let inside = match dice.below(5) {
            0 => format!("\n> {payload}\n"),
            1 => format!("/* {payload} */"),
            2 => format!("~~{payload}~~"),
            3 => format!("\n'{payload}'\n"),
            _ => format!("\n<draft>{payload}</draft>\n"),
        };
        Case::never("inside", protocol, format!("{open}{inside}{close}"))
    });
}

#[test]
fn an_object_beside_a_move_is_not_dropped() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let value = dice.pick(&["true", "false", "\"the tests pass\"", "1", "{\"name\": \"x\"}"]);
        let key = dice.pick(&["dry_run", "if", "cancel", "execute", "tool", "depends_on", "draft", "config", "status"]);
        // Narration is for the user, and may hold other objects.
        let key = if protocol == "chatty" && matches!(key, "config" | "status") { "unless" } else { key };
        let object = format!("{{\"{key}\": {value}}}");
        let object = if dice.one_in(4) { format!("[{object}]") } else { object };
        let meant = Meant::random(protocol, dice);
        let reply = meant.reply(Style::Double);
        if dice.one_in(2) {
            Case::never("before", protocol, format!("{object}\n{reply}"))
        } else {
            Case::never("behind", protocol, format!("{reply}\n{object}")).early(meant.done())
        }
    });
}

#[test]
fn a_comment_that_may_change_the_move_refuses_it() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let words = dice.pick(&[
            "only if the user agrees",
            "or 10",
            "if the first fails",
            "not yet",
            "unless it rains",
            "\"force\": true,",
            "{\"call_id\": \"c2\"}",
            "ask first",
        ]);
        let mut meant = Meant::random(protocol, dice);
        meant.args.insert("amount".to_owned(), json!(7));
        meant.args.insert("lines".to_owned(), json!(["attic", "cellar"]));
        let written = meant.payload(Style::Double);
        let (place, comment) = match dice.below(5) {
            0 => ("\"amount\": 7", format!("\"amount\": 7 // {words}\n")),
            1 => ("\"amount\": 7", format!("\"amount\": 7 /* {words} */")),
            2 => ("\"amount\": 7", format!("\"amount\": 7 // {}\n", dice.pick(&["2", "(n + 1)", "3 nights"]))),
            3 => ("\"cellar\"]", format!("\"cellar\" // {words}\n]")),
            _ => {
                let rest = ["and the others", "more", "rest", "continued", "2 of 10", "TODO add the rest", "等"];
                ("\"cellar\"]", format!("\"cellar\" /* {} */]", dice.pick(&rest)))
            }
        };
        let [before, after] = tags(protocol);
        Case::never("comment", protocol, format!("{before}{}{after}", written.replacen(place, &comment, 1)))
    });
}

#[test]
fn a_missing_comma_is_not_added_in_a_list_of_python_or_a_calculation() {
    check(|dice| {
        let protocol = dice.pick(&PROTOCOLS);
        let mut meant = Meant::random(protocol, dice);
        meant.args.insert("lines".to_owned(), json!("\u{1}"));
        let list = if dice.one_in(2) { "['a '\n 'b', 'c']".to_owned() } else { format!("[10 -{}]", dice.below(9)) };
        let [before, after] = tags(protocol);
        let written = meant.payload(Style::Single).replace("'\u{1}'", &list);
        Case::never("list", protocol, format!("{before}{written}{after}"))
    });
}

#[test]
fn a_reference_in_another_spelling_refuses_the_block() {
    check(|dice| {
        let spelled = dice.pick(&[
            "{{call_1}}",
            "{call_1}",
            "<call_1>",
            "$(call_1)",
            "%call_1%",
            "$CALL_1",
            "＄call_1",
            "call_1.result",
            "call_1",
            "{{call_1.result}}",
            "$call_9",
            "${call_1}",
        ]);
        let mut calls: Vec<Json> = Vec::new();
        for id in ["call_1", "call_2"] {
            let mut meant = Meant::random("chatty", dice);
            if id == "call_2" {
                meant.args.insert("target".to_owned(), if dice.one_in(2) { json!(spelled) } else { json!([spelled]) });
            }
            let mut object = meant.object();
            object["call_id"] = json!(id);
            calls.push(object);
        }
        let text = format!("<tool>\n{}\n</tool>", Style::Double.value(&Json::Array(calls)));
        Case::never("spelled", "chatty", text)
    });
}

/// A reply that ends in unclosed thoughts is the beginning of one that says something else.
#[test]
fn a_move_in_unclosed_thoughts_is_not_made_beside_other_text() {
    check(|dice| {
        let payload = Meant::any("ticket", dice).payload(Style::Double);
        let behind = dice.pick(&[" but no.", "\nbut I must not yet. Let me think", "\nOr so.", " is the form"]);
        let text = format!("<thoughts>I could do\n<output>{payload}</output>{behind}");
        Case::never("unclosed", "ticket", text)
    });
}

#[test]
fn a_reply_that_was_cut_behind_its_move_is_refused() {
    let mut dice = Dice::new(7);
    for _ in 0..500 {
        let dice = &mut dice;
        let protocol = dice.pick(&PROTOCOLS);
        let reply = Meant::any(protocol, dice).reply(Style::Double);
        let behind = dice.pick(&["\nWait, I should not", "\nThis will only", "\n<think>no</think>"]);
        let first = if dice.one_in(2) { format!("{}\n", prose(dice)) } else { String::new() };
        let text = format!("{first}{reply}{behind}");
        let done = cut(protocol, &text);
        assert_eq!(Wanted::AtMost(Vec::new()).differs(&done, &[]), None, "{text:?}");
    }
}
