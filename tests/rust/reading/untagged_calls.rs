//! Answers in plain text that end with a call of a tool of the run, in whatever form, and answers that only speak of one.

use crate::invariants::Way;
use callslip::protocol::{Move, Reply, untagged_call};
use callslip::tool::{ToolSet, ToolSpec};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn tools() -> ToolSet {
    let tool = |name: &str, parameters: Json| -> ToolSpec {
        let parameters = json!({"type": "object", "properties": parameters});
        serde_json::from_value(json!({"name": name, "description": "", "parameters": parameters})).unwrap()
    };
    ToolSet::new(vec![
        tool("get_weather", json!({"city": {"type": "string"}, "days": {"type": "integer"}})),
        tool("ping", json!({})),
        tool("search", json!({"query": {"type": "string"}})),
        tool("write_file", json!({"path": {"type": "string"}, "content": {"type": "string"}})),
        tool("lamp", json!({"on": {"type": "boolean"}})),
    ])
    .unwrap()
}

/// The reply, whole and byte by byte, as a run with these tools reads it.
fn read(text: &str, tools: &ToolSet) -> Reply {
    let way = Way::plain("chatty");
    let chunks: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
    let read = |chunks: &[&[u8]]| untagged_call::checked(&*way.protocol, tools, way.read(chunks).reply);
    let whole = read(&[text.as_bytes()]);
    assert_eq!(read(&chunks), whole, "in chunks, and whole: {text}");
    whole
}

fn outcome(reply: &Reply) -> &'static str {
    match &reply.outcome {
        Ok(Move::Finish { .. }) => "answer",
        Ok(_) => "call",
        Err(violation) => violation.code.name(),
    }
}

/// Codes of a call that is no answer: a form of the table has one of its own.
const CALLS: [&str; 3] = ["untagged_tool_call", "wrong_tag", "fenced_tool_call"];

#[test]
fn each_reply_has_its_outcome() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/plain_text_replies.jsonl");
    let tools = tools();
    let mut wrong = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let row: Json = serde_json::from_str(line).unwrap();
        let text = row["text"].as_str().unwrap();
        let found = outcome(&read(text, &tools));
        let right = if row["outcome"] == "answer" { found == "answer" } else { CALLS.contains(&found) };
        if !right {
            wrong.push(format!("{}: {found} in {text:?}", row["id"]));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn only_tools_of_the_run_are_meant() {
    let none = ToolSet::new(Vec::new()).unwrap();
    for text in ["launch(rocket=\"A\")", "<launch><rocket>A</rocket></launch>", "launch {\"rocket\": \"A\"}"] {
        assert_eq!(outcome(&read(text, &tools())), "answer", "{text}");
    }
    for text in ["ping()", "get_weather {\"city\": \"Oslo\"}"] {
        assert_eq!(outcome(&read(text, &none)), "answer", "{text}");
        assert_eq!(outcome(&read(text, &tools())), "untagged_tool_call", "{text}");
    }
}

#[test]
fn the_place_of_the_call_is_named() {
    let text = "I look.\n\nget_weather(city=\"Oslo\")\n";
    let reply = read(text, &tools());
    let violation = reply.outcome.unwrap_err();
    assert_eq!(violation.span.unwrap().of(text), "get_weather(city=\"Oslo\")");
    assert_eq!(
        violation.message,
        "expected an answer or a call in the form of this conversation: got a call in another form"
    );
}

fn word() -> impl Strategy<Value = String> {
    "[A-Za-z][a-z]{1,8}"
}

/// Prose without line breaks that ends a sentence.
fn sentence() -> impl Strategy<Value = String> {
    prop::collection::vec(word(), 2..9).prop_map(|words| format!("{}.", words.join(" ")))
}

fn value() -> impl Strategy<Value = Json> {
    prop_oneof![
        "[ -~]{0,12}".prop_map(Json::from),
        any::<i32>().prop_map(Json::from),
        any::<bool>().prop_map(Json::from),
        prop::collection::vec("[a-z \n\"']{0,6}".prop_map(Json::from), 0..3).prop_map(Json::from),
    ]
}

/// A call of `get_weather` in one of many forms, with keys and tags that nobody publishes among them.
fn form() -> impl Strategy<Value = String> {
    let argument = (value(), value(), word(), word(), any::<bool>(), 0..18_u8);
    argument.prop_map(|(city, days, first, second, pretty, kind)| {
        let given = json!({"city": city, "days": days});
        let (first, second) = (format!("x{}", first.to_lowercase()), format!("y{}", second.to_lowercase()));
        let json = |value: &Json| {
            if pretty { serde_json::to_string_pretty(value).unwrap() } else { value.to_string() }
        };
        let name = "get_weather";
        let quoted = json!(city).to_string();
        match kind {
            0 => json(&json!({"name": name, "arguments": given})),
            1 => json(&json!({first: name, second: given})),
            2 => json(&json!({first: {"tool": name, "input": given}})),
            3 => json(&json!([{"function": {"name": name, "arguments": given.to_string()}}])),
            4 => json(&json!({name: given})),
            5 => json(&json!({"tool": name, "city": city})),
            6 => format!("{name}(city={quoted}, days=1)"),
            7 => format!("[{name}(city={quoted})]"),
            8 => format!("{name}({given})"),
            9 => format!("{name} {given}"),
            10 => format!("Action: {name}\nAction Input: {given}"),
            11 => format!("<{name}>\n<city>Oslo</city>\n<days>{days}</days>\n</{name}>"),
            12 => format!("<{first} {second}=\"{name}\">{given}</{first}>"),
            13 => format!("<|{first}|>{}<|{second}|>", json!({"name": name, "parameters": given})),
            14 => format!("<{first}>{name}<{second}>{given}</{second}></{first}>"),
            15 => format!("call:{name}{given}"),
            16 => format!("{first}[{}]", json!({"name": name, "arguments": given})),
            _ => format!("<{first}={name}><{second}=city>Oslo</{second}></{first}>"),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A form of a call that stands alone at the end is never an answer, and with text behind it is one.
    #[test]
    fn a_form_at_the_end_is_a_call(form in form(), before in sentence(), after in sentence(), ticks in any::<bool>()) {
        let tools = tools();
        // A word of nobody's before a bracket is no call: only `functools` is published.
        prop_assume!(!form.starts_with('x'));
        for text in [form.clone(), format!("{before}\n{form}"), format!("{before}\n\n{form}\n")] {
            let found = outcome(&read(&text, &tools));
            prop_assert!(CALLS.contains(&found), "{found}: {text:?}");
        }
        if ticks && !form.contains("```") {
            let text = format!("{before}\n```\n{form}\n```");
            let found = outcome(&read(&text, &tools));
            prop_assert!(CALLS.contains(&found), "{found}: {text:?}");
            let text = format!("{before}\n```\n{form}\n```\n{after}");
            prop_assert_eq!(outcome(&read(&text, &tools)), "answer", "{:?}", text);
        }
    }

    /// Prose that names tools is an answer.
    #[test]
    fn prose_is_an_answer(
        sentences in prop::collection::vec(
            (sentence(), prop::sample::select(vec!["get_weather", "ping", "search", "lamp", "`ping()`", "get_weather(city)"])),
            1..5,
        ),
        lines in any::<bool>(),
    ) {
        let tools = tools();
        let told: Vec<String> = sentences.iter().map(|(text, name)| {
            let (first, rest) = text.split_once(' ').unwrap();
            format!("{first} {name} {rest}")
        }).collect();
        let text = told.join(if lines { "\n" } else { " " });
        prop_assert_eq!(outcome(&read(&text, &tools)), "answer", "{:?}", text);
    }
}

/// The time to look for a call grows with the text.
#[test]
fn hostile_texts_are_looked_at_in_linear_time() {
    let tools = tools();
    for piece in
        ["{\n", "[\n", "<a>\n", "get_weather(\n", "{\"name\": \"", "```\n", "<", "a: {\n", "<get\n", "ping()\n x\n"]
    {
        let looked = |times: usize| {
            let text = piece.repeat(times);
            let way = Way::plain("chatty");
            let reply = way.read(&[text.as_bytes()]).reply;
            let started = std::time::Instant::now();
            untagged_call::checked(&*way.protocol, &tools, reply);
            started.elapsed()
        };
        looked(2_000);
        let (short, long) = (looked(4_000), looked(32_000));
        assert!(long < short * 40 + std::time::Duration::from_millis(200), "{piece:?}: {short:?}, then {long:?}");
    }
}
