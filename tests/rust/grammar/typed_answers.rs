//! Answers of a type: what each protocol reads, in whole and in any chunks, what its grammar admits, and the program's
//! own check of an answer in a run.

use crate::walk::{Random, admits, matcher, tool, walk};
use callslip::protocol::decoder::read_whole;
use callslip::protocol::grammar::Scope;
use callslip::protocol::{
    Chatty, Code, Decoder, Delta, FinishReason, Move, Protocol, ProtocolOptions, React, ReadOptions, Reply, Ticket,
};
use callslip::reply::{RepairCode, RepairPolicy};
use callslip::run::{Command, Limits, RunMachine, Setup, read_log, replay};
use callslip::tool::{AnswerType, ToolSet};
use serde_json::{Value as Json, json};
use std::sync::Arc;

fn city() -> Json {
    json!({
        "$ref": "#/$defs/City",
        "$defs": {"City": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "people": {"type": "integer"},
                "twins": {"type": "array", "items": {"$ref": "#/$defs/City"}},
            },
            "required": ["name", "people"],
            "additionalProperties": false,
        }},
    })
}

fn protocols(schema: &Json) -> [Arc<dyn Protocol>; 3] {
    let returns = Some(AnswerType::new(schema.clone()));
    [
        React::default().returning(returns.clone()),
        Ticket::default().returning(returns.clone()),
        Chatty::default().returning(returns),
    ]
}

/// A reply with an answer, as each protocol writes it.
fn reply_with(protocol: &dyn Protocol, answer: &str) -> String {
    match protocol.name() {
        "react" => {
            format!(r#"{{"thought": "t", "action": "FINISH", "final_answer": {answer}, "task_successful": true}}"#)
        }
        "ticket" => {
            format!("<thoughts>\nt\n</thoughts>\n<output>\n{{\"type\": \"RETURN\", \"value\": {answer}}}\n</output>")
        }
        _ => format!("<answer>{answer}</answer>"),
    }
}

fn read(protocol: &dyn Protocol, text: &str, reason: FinishReason) -> Reply {
    read_whole(protocol, protocol.read_options(), text, reason)
}

/// What a reply comes to: the answer with what was coerced and repaired, or the code of the violation.
fn told(reply: &Reply) -> String {
    let repairs: Vec<&str> = reply.repairs.iter().map(|repair| repair.code.name()).collect();
    match &reply.outcome {
        Ok(Move::Finish { value, coerced, .. }) => format!("{} {coerced:?} {repairs:?}", value.to_json()),
        Ok(other) => format!("{other:?}"),
        Err(violation) => violation.code_text(),
    }
}

/// The reply in chunks of every size, and in two at every place.
fn in_chunks(protocol: &dyn Protocol, text: &str, reason: FinishReason) -> Reply {
    let whole = read(protocol, text, reason);
    let bytes = text.as_bytes();
    let mut chunkings: Vec<Vec<&[u8]>> = (1..=7).map(|size| bytes.chunks(size).collect()).collect();
    chunkings.extend((0..=bytes.len()).map(|at| bytes.split_at(at)).map(|(a, b)| vec![a, b]));
    for chunks in chunkings {
        let mut decoder: Box<dyn Decoder> = protocol.decoder(protocol.read_options());
        let mut deltas = Vec::new();
        for chunk in chunks {
            decoder.push(chunk, &mut deltas);
        }
        let streamed = decoder.finish(reason);
        assert_eq!(streamed, whole, "{text}");
        // What a fence around the reply holds is certain only at its end.
        let fenced = streamed.repairs.iter().any(|repair| repair.code == RepairCode::FenceAroundBlock);
        if let Ok(Move::Finish { value, .. }) = &streamed.outcome
            && !fenced
        {
            published(&deltas, &value.to_json(), text);
        }
    }
    whole
}

/// The deltas of an answer join to it.
fn published(deltas: &[Delta], value: &str, text: &str) {
    let (mut json, mut plain) = (String::new(), None::<String>);
    for delta in deltas {
        match delta {
            Delta::Value(more) => json.push_str(more),
            Delta::Answer(more) => plain.get_or_insert_default().push_str(more),
            Delta::Text(_) if matches!(serde_json::from_str(value), Ok(Json::String(_))) => return,
            _ => {}
        }
    }
    let told = plain.map_or(json, |plain| Json::from(plain).to_string());
    let parsed = |text: &str| serde_json::from_str::<Json>(text);
    // What was coerced or repaired was published as it stands in the reply.
    if parsed(&told).is_ok() && !text.contains("\"5\"") && !text.contains("<answer>\"{") {
        assert_eq!(parsed(&told).unwrap(), parsed(value).unwrap(), "{text}");
    }
    assert!(!told.is_empty(), "nothing was told of {text}");
}

#[test]
fn each_protocol_reads_an_answer_of_its_type() {
    let fits = r#"{"name":"Oslo","people":5}"#;
    let spaced = r#"{"name": "Oslo", "people": 5}"#;
    let as_text = Json::from(spaced).to_string();
    for protocol in protocols(&city()) {
        let protocol = &*protocol;
        for (answer, expected) in [
            (spaced, format!("{fits} [] []")),
            (r#"{"name": "Oslo", "people": "5"}"#, format!(r#"{fits} ["/people"] []"#)),
            (&as_text, format!(r#"{fits} [""] []"#)),
            (r#"{"name": "Oslo", "people": 5,}"#, format!("{fits} [] [\"trailing_comma\"]")),
            (r#"{"name": "Oslo"}"#, "invalid_answer".to_owned()),
            ("\"Oslo\"", "invalid_answer".to_owned()),
            ("null", "invalid_answer".to_owned()),
            (r#"{"name": "Oslo", "people": 5, "mayor": "x"}"#, "invalid_answer".to_owned()),
        ] {
            let reply = in_chunks(protocol, &reply_with(protocol, answer), FinishReason::Stop);
            assert_eq!(told(&reply), expected, "{} {answer}", protocol.name());
        }
    }
}

#[test]
fn answers_of_every_kind_are_read() {
    for (schema, answer) in [
        (json!({"type": "integer"}), "5"),
        (json!({"type": ["integer", "null"]}), "null"),
        (json!({"type": "boolean"}), "true"),
        (json!({"type": "array", "items": {"type": "integer"}}), "[1,2]"),
        (json!({"enum": ["a", "b"]}), "\"a\""),
        (json!({"type": ["string", "integer"]}), "\"7\""),
        (json!({"type": "object", "additionalProperties": {"type": "number"}}), r#"{"a":1.5}"#),
        (json!({"type": "string", "minLength": 2}), r#""a </answer> \"b\"""#),
    ] {
        for protocol in protocols(&schema) {
            let reply = in_chunks(&*protocol, &reply_with(&*protocol, answer), FinishReason::Stop);
            assert_eq!(told(&reply), format!("{answer} [] []"), "{}", protocol.name());
        }
    }
}

#[test]
fn every_problem_is_named_at_once_with_the_form() {
    let [react, ticket, chatty] = protocols(&city());
    let answer = r#"{"people": "many", "twins": [{"name": 5}], "mayor": 1}"#;
    for (protocol, name, form) in [
        (react, "final_answer", "\"final_answer\": {name: str, people: int, twins?: [{name: str, people: int, "),
        (ticket, "value", r#"{"type": "RETURN", "value": {name: str, people: int, "#),
        (chatty, "answer", "<answer>{name: str, people: int, "),
    ] {
        let violation = read(&*protocol, &reply_with(&*protocol, answer), FinishReason::Stop).outcome.unwrap_err();
        for part in [
            format!("'{name}' lacks the required property 'name' (string)"),
            format!("'{name}.people' must be an integer: got the string \"many\""),
            format!("'{name}.twins[0]' lacks the required property 'people' (integer)"),
            format!("'{name}.twins[0].name' must be a string: got the integer 5"),
            format!("'{name}' has no property 'mayor'"),
        ] {
            assert!(violation.message.contains(&part), "{part} in {}", violation.message);
        }
        assert!(violation.expected.unwrap().contains(form));
        assert!(violation.hint.unwrap().starts_with(&format!("'{name}' is JSON of the type {{name: str")));
        assert!(violation.span.is_some());
    }
}

#[test]
fn strict_reading_takes_the_type_as_it_is() {
    let returns = Some(AnswerType::new(city()));
    let read_options = ReadOptions { repairs: RepairPolicy::Strict, ..ReadOptions::default() };
    let options = ProtocolOptions { read: read_options, returns, ..ProtocolOptions::default() };
    let react = React::default().with_options(options.clone());
    let ticket = Ticket::default().with_options(options.clone());
    let chatty = Chatty::default().with_options(options);
    let spaced = r#"{"name": "Oslo", "people": 5}"#;
    let as_text = Json::from(spaced).to_string();
    for (protocol, text_is_read) in [(react, true), (ticket, false), (chatty, false)] {
        let read = |answer: &str| read(&*protocol, &reply_with(&*protocol, answer), FinishReason::Stop).outcome;
        assert!(read(spaced).is_ok());
        assert_eq!(read(&as_text).is_ok(), text_is_read, "{}", protocol.name());
        assert_eq!(read(r#"{"name": "Oslo", "people": "5"}"#).unwrap_err().code, Code::InvalidAnswer);
    }
}

#[test]
fn the_answer_block_of_chatty_ends_its_reply() {
    let [_, _, chatty] = protocols(&city());
    let fits = r#"{"name":"Oslo","people":5}"#;
    let block = format!("<answer>{fits}</answer>");
    let call = r#"<tool>[{"call_id": "c", "tool_name": "x", "arguments": {}}]</tool>"#;
    for (text, expected) in [
        (format!("Here it is:\n{block}\n"), format!("{fits} [] []")),
        (format!("<think>{block}</think>{block}"), format!("{fits} [] [\"reasoning_stripped\"]")),
        (format!("<think>{block}</think>Oslo."), "invalid_answer".to_owned()),
        (format!("<ANSWER>{fits}</answer>"), format!("{fits} [] [\"tag_form\"]")),
        (format!("<answer>\n```json\n{fits}\n```\n</answer>"), format!("{fits} [] [\"fence_stripped\"]")),
        (format!("<answer>{fits}"), format!("{fits} [] [\"missing_close_tag\"]")),
        (fits.to_owned(), "invalid_answer".to_owned()),
        ("Oslo has 5.".to_owned(), "invalid_answer".to_owned()),
        ("<answer></answer>".to_owned(), "invalid_answer".to_owned()),
        ("<answer>Oslo</answer>".to_owned(), "unquoted_value".to_owned()),
        (format!("{block} That is it."), "extra_data".to_owned()),
        (format!("{block}{block}"), "extra_data".to_owned()),
        (format!("<answer>{fits} or so</answer>"), "extra_data".to_owned()),
        (format!("```\n{block}\n```"), format!("{fits} [] [\"fence_around_block\"]")),
        (format!("~~~json\n{block}\n~~~\n"), format!("{fits} [] [\"fence_around_block\"]")),
        (
            format!("<think>so</think>\n```\n{block}\n```"),
            format!("{fits} [] [\"reasoning_stripped\", \"fence_around_block\"]"),
        ),
        (format!("It looks so:\n```\n{block}\n```"), "invalid_answer".to_owned()),
        (format!("```\n{block}\n```\nThat is all."), "invalid_answer".to_owned()),
        (format!("```\nx\n```\n```\n{block}\n```"), "invalid_answer".to_owned()),
        (format!("```\n{block} or so\n```"), "extra_data".to_owned()),
        ("```\n<answer>Oslo</answer>\n```".to_owned(), "unquoted_value".to_owned()),
        (format!("{call}{block}"), "multiple_actions".to_owned()),
        (format!("{block}{call}"), "extra_data".to_owned()),
        (r#"<answer>{"name": "Os"#.to_owned(), "truncated".to_owned()),
        ("<answer>".to_owned(), "truncated".to_owned()),
        (String::new(), "empty".to_owned()),
        ("<think>so".to_owned(), "unclosed_think".to_owned()),
    ] {
        assert_eq!(told(&in_chunks(&*chatty, &text, FinishReason::Stop)), expected, "{text}");
    }
    let narrated = read(&*chatty, &format!("Here:\n{block}"), FinishReason::Stop);
    assert_eq!(narrated.narration.as_deref().map(str::trim), Some("Here:"));
    for text in [format!("<answer>{fits}"), "Oslo is".to_owned(), r#"<answer>{"name"#.to_owned()] {
        assert_eq!(told(&in_chunks(&*chatty, &text, FinishReason::Length)), "truncated", "{text}");
    }
    // A number may have lost digits.
    let [_, _, number] = protocols(&json!({"type": "integer"}));
    assert_eq!(told(&in_chunks(&*number, "<answer>47", FinishReason::Stop)), "truncated");
    assert_eq!(told(&in_chunks(&*number, "<answer>47</answer>", FinishReason::Stop)), "47 [] []");
}

#[test]
fn without_a_type_an_answer_tag_is_text() {
    let text = "<answer>5</answer> is how it is written.";
    for chatty in [
        Chatty::default().returning(None),
        Chatty::default().returning(Some(AnswerType::new(json!({"type": "string"})))),
    ] {
        assert_eq!(told(&in_chunks(&*chatty, text, FinishReason::Stop)), format!("{} [] []", Json::from(text)));
    }
}

#[test]
fn a_call_is_read_as_without_a_type() {
    let call = r#"Let me look. <tool>[{"call_id": "c", "tool_name": "x", "arguments": {"a": "<answer>"}}]</tool>"#;
    let [_, _, typed] = protocols(&city());
    assert_eq!(in_chunks(&*typed, call, FinishReason::Stop), read(&Chatty::default(), call, FinishReason::Stop));
}

#[test]
fn what_a_grammar_admits_is_read_and_fits() {
    let nested = json!({"anyOf": [city()["$defs"]["City"], {"type": "array", "items": {"enum": ["a", 1, null]}}]});
    let mut nested = nested;
    nested["$defs"] = city()["$defs"].clone();
    for schema in [city(), nested, json!({"type": "integer", "minimum": 3}), json!({"enum": ["a", "b"]})] {
        let tools = ToolSet::new(vec![tool("now", json!({"type": "object", "properties": {}}))]).unwrap();
        for protocol in protocols(&schema) {
            let scope = Scope {
                tools: &tools,
                calls: false,
                delegates: false,
                finish: true,
                in_progress: vec![],
                completed: vec![],
                longest: None,
                agents: vec![],
                thoughts: Some(0),
                bounds: None,
            };
            let grammar = protocol.grammar(&scope);
            assert_eq!(grammar.unruled, Vec::<String>::new());
            let matcher = matcher(&grammar.lark);
            for seed in (crate::walk::seed()..).take(crate::cases::of(40) as usize) {
                let text = walk(&matcher, &mut Random::new(seed));
                let reply = read(&*protocol, &text, FinishReason::Stop);
                assert!(told(&reply).ends_with(" [] []"), "{}: {text}\n{}", protocol.name(), told(&reply));
            }
        }
    }
    for protocol in protocols(&city()) {
        let tools = ToolSet::new(vec![]).unwrap();
        let scope = Scope {
            tools: &tools,
            calls: false,
            delegates: false,
            finish: true,
            in_progress: vec![],
            completed: vec![],
            longest: None,
            agents: vec![],
            thoughts: None,
            bounds: None,
        };
        let lark = protocol.grammar(&scope).lark;
        assert!(admits(&lark, &reply_with(&*protocol, r#"{"name": "Oslo", "people": 5}"#)), "{lark}");
        assert!(!admits(&lark, &reply_with(&*protocol, r#"{"name": "Oslo", "people": "5"}"#)));
        assert!(!admits(&lark, &reply_with(&*protocol, "\"Oslo\"")));
    }
}

#[test]
fn the_json_schema_of_react_has_the_type_where_servers_take_it() {
    let tools = ToolSet::new(vec![tool("now", json!({"type": "object", "properties": {}}))]).unwrap();
    let schema_of = |schema: &Json, calls: bool| -> Json {
        let [react, ..] = protocols(schema);
        let scope = Scope {
            tools: &tools,
            calls,
            delegates: false,
            finish: true,
            in_progress: vec![],
            completed: vec![],
            longest: None,
            agents: vec![],
            thoughts: None,
            bounds: None,
        };
        serde_json::from_str(&react.grammar(&scope).json_schema.unwrap()).unwrap()
    };
    let whole = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": false,
    });
    assert_eq!(schema_of(&whole, true)["properties"]["final_answer"], json!({"anyOf": [whole, {"type": "null"}]}));
    assert_eq!(schema_of(&whole, false)["properties"]["final_answer"], whole);
    // It has an optional property: the answer is JSON text.
    assert_eq!(schema_of(&city(), false)["properties"]["final_answer"], json!({"type": "string"}));
}

#[test]
fn prompts_say_the_type_and_are_as_they_were_without_one() {
    let tools = ToolSet::new(vec![tool("now", json!({"type": "object", "properties": {}}))]).unwrap();
    for protocol in protocols(&city()) {
        let typed = protocol.system_prompt(&tools, true, "").unwrap();
        assert!(typed.contains("JSON of the type {name: str, people: int, "), "{typed}");
        for plain in ["\"final_answer\": \"the answer\"", "explain in `final_answer`", "any JSON", "plain text"] {
            assert!(!typed.contains(plain), "{plain} in {typed}");
        }
        let answers = callslip::protocol::lint::examples(&*protocol, &typed);
        assert!(answers.iter().all(|example| example.reply.outcome.is_ok()), "{typed}");
        let example = protocol.example_messages(&tools);
        let last = example.last().unwrap();
        assert!(read(&*protocol, &last.content, FinishReason::Stop).outcome.is_ok(), "{}", last.content);
        let plain = protocol.returning(None);
        let default: Arc<dyn Protocol> = match protocol.name() {
            "react" => Arc::new(React::default()),
            "ticket" => Arc::new(Ticket::default()),
            _ => Arc::new(Chatty::default()),
        };
        assert_eq!(plain.options(), default.options());
        assert_eq!(plain.own_options().unwrap(), default.own_options().unwrap());
    }
}

/// A run that has begun, whose answers the program checks.
fn checked(protocol: &Arc<dyn Protocol>) -> RunMachine {
    let kit = crate::kit::machine(protocol.name(), Limits::default());
    let setup = Setup { protocol: Arc::clone(protocol), checks_answer: true, ..kit.setup().clone() };
    let mut machine = RunMachine::new("r".into(), "agent".into(), None, Arc::new(setup));
    machine.start("the work", 1.0);
    machine.commands(1.0);
    machine
}

fn log(machine: &mut RunMachine) -> Vec<String> {
    machine.take_records().iter().map(|record| serde_json::to_string(record).unwrap()).collect()
}

#[test]
fn an_answer_counts_once_the_program_accepts_it() {
    for protocol in protocols(&city()) {
        let answer = reply_with(&*protocol, r#"{"name": "Oslo", "people": 5}"#);
        let mut machine = checked(&protocol);
        let commands = crate::kit::reply(&mut machine, &answer);
        assert!(matches!(commands.as_slice(), [Command::CheckAnswer { turn: 1, .. }]), "{commands:?}");
        machine.accept_answer(2, 3.0);
        assert!(machine.is_checking(1), "the answer of another turn is ignored");
        let mut lines = log(&mut machine);

        // Its process ends here: the check is asked for again.
        let mut resumed = RunMachine::load(&read_log(&lines).unwrap()).unwrap();
        resumed.resume(4.0);
        assert!(matches!(resumed.commands(4.0).as_slice(), [Command::CheckAnswer { turn: 1, .. }]));
        lines.extend(log(&mut resumed));

        resumed.refuse_answer(1, "Too small.", 5.0);
        let commands = resumed.commands(5.0);
        assert!(matches!(commands.as_slice(), [Command::AskModel { turn: 2 }]), "{commands:?}");
        assert!(resumed.state().conversation.messages.last().unwrap().content.contains("not executed: Too small."));
        assert_eq!(resumed.state().position.violations, 1);
        crate::kit::reply(&mut resumed, &answer);
        resumed.accept_answer(2, 6.0);
        assert!(matches!(resumed.commands(6.0).as_slice(), [Command::Finish]));
        assert_eq!(resumed.state().position.ending.as_ref().unwrap().value.to_json(), r#"{"name":"Oslo","people":5}"#);
        lines.extend(log(&mut resumed));
        for end in 1..=lines.len() {
            let records = read_log(lines.get(..end).unwrap()).unwrap();
            replay(&records).unwrap_or_else(|error| panic!("{end}: {error}"));
            RunMachine::load(&records).unwrap();
        }
    }
}

#[test]
fn a_run_goes_on_only_with_the_type_that_it_has() {
    for protocol in protocols(&city()) {
        let machine = checked(&protocol);
        let same = machine.setup().clone();
        assert_eq!(machine.compare(&same).differences, Vec::<String>::new());
        for (returns, words) in [(None, "no type"), (Some(AnswerType::new(json!({"type": "integer"}))), "int")] {
            let other = Setup { protocol: protocol.returning(returns), ..same.clone() };
            let message = machine.compare(&other).differences.join("; ");
            assert!(message.contains("the run returns {name: str, people: int, "), "{message}");
            assert!(message.contains(&format!(", this agent {words}: ")), "{message}");
        }
    }
}
