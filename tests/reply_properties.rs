//! What holds of every reply: chunks don't matter, deltas only grow, clean JSON is not touched, places lie in the
//! text, and time grows with the text.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod corpus;

use callslip::protocol::chatty::read::ToolTags;
use callslip::protocol::{Delta, FinishReason, Move, ReadOptions, Reply, Status};
use callslip::reply::json::{Machine, Progress, Settings};
use callslip::reply::{ReadLimits, RepairPolicy, Span};
use corpus::{Case, Read, read_chunks};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

fn cases() -> Vec<Case> {
    let mut cases = corpus::load("tests/data/replies.jsonl").unwrap_or_default();
    cases.extend(corpus::load("../shared/conformance/replies.jsonl").unwrap_or_default());
    cases
}

fn case(protocol: &str, text: &str) -> Case {
    Case {
        id: String::new(),
        protocol: protocol.to_owned(),
        family: String::new(),
        failure_mode: String::new(),
        text: text.to_owned(),
        chunks: None,
        tags: ToolTags { start: "<tool>".to_owned(), end: "</tool>".to_owned() },
        options: ReadOptions::default(),
        kind: String::new(),
        value: serde_json::Value::Null,
        repairs: BTreeSet::new(),
    }
}

fn beginning(text: &str, end: usize) -> String {
    text.get(..end).expect("a place between characters").to_owned()
}

fn split(text: &[u8], size: usize) -> Vec<&[u8]> {
    text.chunks(size).collect()
}

/// What was told, joined by what it is about.
fn told(deltas: &[Delta]) -> BTreeMap<String, String> {
    let mut told = BTreeMap::<String, String>::new();
    for delta in deltas {
        let (key, text) = match delta {
            Delta::Thoughts(text) => ("thoughts".to_owned(), text.as_str()),
            Delta::Reasoning(text) => ("reasoning".to_owned(), text.as_str()),
            Delta::Text(text) => ("text".to_owned(), text.as_str()),
            Delta::Answer(text) => ("answer".to_owned(), text.as_str()),
            Delta::Tool { call, name, .. } => (format!("tool {call}"), name.as_str()),
            Delta::Arguments { call, text } => (format!("arguments {call}"), text.as_str()),
            Delta::CallReady { call } => (format!("ready {call}"), "!"),
            Delta::TicketId { id, .. } => ("ticket".to_owned(), id.as_str()),
            _ => continue,
        };
        told.entry(key).or_default().push_str(text);
    }
    told
}

/// The deltas of a reply that was read are the beginnings of its final values.
fn deltas_fit(read: &Read, whole: bool) {
    let told = told(&read.deltas);
    let reply = &read.reply;
    let Ok(outcome) = &reply.outcome else { return };
    let fits = |key: &str, value: Option<&str>, end_is_told: bool| {
        let (told, value) = (told.get(key).map_or("", String::as_str), value.unwrap_or(""));
        assert!(value.starts_with(told), "{key}: {told:?} is no beginning of {value:?} in {:?}", reply.raw);
        assert!(!end_is_told || told == value, "{key}: {told:?} instead of {value:?} in {:?}", reply.raw);
    };
    fits("thoughts", reply.thoughts.as_deref(), false);
    fits("reasoning", reply.reasoning.as_deref(), false);
    match outcome {
        Move::Call { calls } => {
            fits("text", reply.narration.as_deref(), false);
            for (index, call) in calls.iter().enumerate() {
                if told.contains_key(&format!("tool {index}")) {
                    fits(&format!("tool {index}"), Some(&call.tool), whole);
                }
            }
        }
        Move::Await { ticket_id } | Move::Load { ticket_id } if told.contains_key("ticket") => {
            fits("ticket", Some(ticket_id), whole);
        }
        Move::Finish { value, .. } => {
            let answer = value.as_str();
            fits("text", if told.contains_key("text") { answer } else { None }, false);
            if answer.is_some() {
                fits("answer", if told.contains_key("answer") { answer } else { None }, false);
            }
        }
        _ => {}
    }
}

fn spans_lie_inside(reply: &Reply) {
    let inside = |span: Span| {
        assert!(span.start <= span.end && span.end <= reply.raw.len(), "{span:?} in {:?}", reply.raw);
        assert!(
            reply.raw.is_char_boundary(span.start) && reply.raw.is_char_boundary(span.end),
            "{span:?} in {:?}",
            reply.raw
        );
    };
    reply.repairs.iter().for_each(|repair| inside(repair.span));
    reply.discarded.iter().for_each(|span| inside(*span));
    match &reply.outcome {
        Ok(Move::Call { calls }) => {
            for call in calls {
                inside(call.span);
                inside(call.tool_span);
                inside(call.arguments_span);
            }
        }
        Ok(_) => {}
        Err(violation) => {
            violation.span.into_iter().for_each(inside);
            violation.related.iter().for_each(|related| inside(related.span));
            if let Some(span) = violation.span {
                callslip::reply::span::excerpt(&reply.raw, span);
            }
        }
    }
}

fn any_split_is_the_whole(case: &Case, chunkings: &[Vec<&[u8]>]) {
    let whole = read_chunks(case, &[case.text.as_bytes()]);
    spans_lie_inside(&whole.reply);
    deltas_fit(&whole, false);
    for chunks in chunkings {
        let read = read_chunks(case, chunks);
        let (one, all) = (&read.reply, &whole.reply);
        assert!(
            one == all,
            "{}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
            case.text,
            one.outcome,
            all.outcome,
            one.repairs,
            all.repairs,
            (
                &one.thoughts,
                &one.narration,
                &one.reasoning,
                &one.discarded,
                &all.thoughts,
                &all.narration,
                &all.reasoning,
                &all.discarded
            )
        );
        deltas_fit(&read, false);
        if whole.reply.outcome.is_ok() {
            assert_eq!(told(&read.deltas), told(&whole.deltas), "{} {:?}", case.id, case.text);
        }
    }
}

#[test]
fn chunks_of_corpus_replies_do_not_matter() {
    for case in cases() {
        let text = case.text.clone();
        let chunkings: Vec<_> = (1..=7).map(|size| split(text.as_bytes(), size)).collect();
        any_split_is_the_whole(&case, &chunkings);
    }
}

#[test]
fn beginnings_of_corpus_replies_are_read_without_harm() {
    for case in cases() {
        for (cut, _) in case.text.char_indices() {
            let mut cut_case = Case { text: beginning(&case.text, cut), ..self::case(&case.protocol, "") };
            cut_case.tags = case.tags.clone();
            cut_case.options = case.options;
            let text = cut_case.text.clone();
            any_split_is_the_whole(&cut_case, &[split(text.as_bytes(), 1)]);
            // A cut reply never does something else, and never a part of it.
            let whole = read_chunks(&case, &[case.text.as_bytes()]).reply;
            let list = |code: &str| matches!(code, "ndjson_to_array" | "merged_arrays" | "merged_blocks");
            if whole.repairs.iter().any(|repair| list(repair.code.name())) {
                continue;
            }
            let part = read_chunks(&cut_case, &[text.as_bytes()]).reply.outcome;
            if let (Ok(whole), Ok(part)) = (whole.outcome, part)
                && !(case.protocol == "chatty" && matches!(part, Move::Finish { .. }))
            {
                assert_eq!(part, whole, "{} {text:?}", case.id);
            }
        }
    }
}

#[test]
fn a_stream_may_be_cut_where_it_is_complete() {
    for case in cases() {
        let mut decoder = corpus::decoder(&case);
        let mut deltas = Vec::new();
        let mut complete = None;
        for byte in case.text.as_bytes().chunks(1) {
            if let Status::Complete(at) = decoder.push(byte, &mut deltas) {
                complete = Some(at);
                break;
            }
        }
        let Some(at) = complete else { continue };
        let cut = Case { text: beginning(&case.text, at), ..self::case(&case.protocol, "") };
        let cut = Case { tags: case.tags.clone(), options: case.options, ..cut };
        let early = read_chunks(&cut, &[cut.text.as_bytes()]);
        assert!(early.reply.outcome.is_ok(), "{} {:?}: {:?}", case.id, cut.text, early.reply.outcome);
        let whole = read_chunks(&case, &[case.text.as_bytes()]).reply;
        if let Ok(outcome) = whole.outcome
            && !whole.repairs.iter().any(|repair| repair.code.name() == "merged_blocks")
        {
            assert_eq!(early.reply.outcome, Ok(outcome), "{} {:?}", case.id, case.text);
        }
    }
}

#[test]
fn strictness_refuses_exactly_the_repaired() {
    for mut case in cases() {
        let whole = read_chunks(&case, &[case.text.as_bytes()]).reply;
        case.options.repairs = RepairPolicy::Strict;
        let strict = read_chunks(&case, &[case.text.as_bytes()]).reply;
        if whole.outcome.is_ok() {
            assert_eq!(
                strict.outcome.is_ok(),
                whole.repairs.is_empty(),
                "{} {:?}: {:?}",
                case.id,
                case.text,
                strict.outcome
            );
        } else {
            assert!(strict.outcome.is_err(), "{} {:?}", case.id, case.text);
        }
    }
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<u64>().prop_map(serde_json::Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(serde_json::Value::from),
        any::<String>().prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|entries| serde_json::Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Writes JSON with blanks and escapes of its own choice.
fn written(value: &serde_json::Value, style: u8) -> String {
    match style % 3 {
        0 => value.to_string(),
        1 => serde_json::to_string_pretty(value).unwrap(),
        _ => {
            let mut escaped = String::new();
            for c in value.to_string().chars() {
                if c.is_ascii() {
                    escaped.push(c);
                } else {
                    let mut units = [0; 2];
                    escaped.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
                }
            }
            escaped
        }
    }
}

/// Pieces of which hostile replies are made.
fn shards() -> impl Strategy<Value = String> {
    let shard = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "{{",
        "\"",
        "'",
        "`",
        "```",
        "```json\n",
        "\n",
        " ",
        ",",
        ":",
        "\\",
        "\\n",
        "\\u12",
        "\\ud83d",
        "<think>",
        "</think>",
        "<tool>",
        "</tool>",
        "<tool",
        "</",
        "<output>",
        "</output>",
        "<thoughts>",
        "</thoughts>",
        "\"action\": ",
        "\"args\": ",
        "\"thought\"",
        "\"FINISH\"",
        "\"type\": \"RETURN\"",
        "\"value\": 1",
        "\"tool_name\": \"x\"",
        "\"arguments\": {}",
        "\"call_id\": 1",
        "final_answer",
        "true",
        "None",
        "12",
        "-1.5e3",
        "//",
        "/*",
        "*/",
        "#",
        "...",
        "“",
        "”",
        "é",
        "😀",
        "\u{a0}",
        "\u{feff}",
        "<|im_end|>",
        "Observation: x",
        "\"type\": \"NONE\"",
        "\"task\": \"a\"",
        "[[GO",
        "END]]",
        "{\"action\": \"a\", \"args\": \"{}\"}",
        "[{\"call_id\": \"1\", \"tool_name\": \"a\", \"arguments\": {}}]",
        "{\"type\": \"AWAIT\", \"ticket_id\": \"T1\"}",
        "~~~",
        "\"\"\"",
    ]);
    prop::collection::vec(shard, 0..40).prop_map(|shards| shards.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn clean_json_is_not_touched(value in json(), style in any::<u8>(), size in 1_usize..40) {
        let text = written(&value, style);
        let mut settings = Settings::new(RepairPolicy::Default, ReadLimits::default());
        settings.fenced = true;
        let mut machine = Machine::new(settings, 0);
        let mut progress = Progress::More;
        let mut buffer = callslip::reply::buffer::Buffer::default();
        for chunk in text.as_bytes().chunks(size) {
            buffer.push(chunk);
            progress = machine.run(buffer.text(), false);
        }
        if progress == Progress::More {
            progress = machine.run(&text, true);
        }
        prop_assert_eq!(progress, Progress::Done, "{:?} {:?}", machine.fault(), text);
        let (read, repairs) = machine.into_value();
        prop_assert!(repairs.is_empty(), "{:?} {}", repairs, text);
        let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&read.to_json()).unwrap(), theirs);
        let again: callslip::reply::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(again, read);
    }

    #[test]
    fn chunks_of_hostile_replies_do_not_matter(text in shards(), sizes in prop::collection::vec(1_usize..12, 1..4), variant in 0_u8..4) {
        for protocol in ["react", "chatty", "ticket"] {
            let chunkings: Vec<_> = sizes.iter().map(|size| split(text.as_bytes(), *size)).collect();
            let mut case = case(protocol, &text);
            case.options.think_prefilled = variant == 1;
            if variant > 1 {
                let (start, end) = if variant == 2 { ("[[GO", "END]]") } else { ("true", "None") };
                case.tags = ToolTags { start: start.to_owned(), end: end.to_owned() };
            }
            any_split_is_the_whole(&case, &chunkings);
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200) {
        for protocol in ["react", "chatty", "ticket"] {
            let case = case(protocol, "");
            let whole = read_chunks(&case, &[&bytes]);
            let (left, right) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(&read_chunks(&case, &[left, right]).reply, &whole.reply);
            spans_lie_inside(&whole.reply);
        }
    }
}

/// The fastest of a few readings.
fn time(case: &Case, text: &str, chunk: usize) -> Duration {
    let once = || {
        let mut decoder = corpus::decoder(case);
        let mut deltas = Vec::new();
        let start = Instant::now();
        for chunk in text.as_bytes().chunks(chunk) {
            decoder.push(chunk, &mut deltas);
            deltas.clear();
        }
        decoder.finish(FinishReason::Stop);
        start.elapsed()
    };
    (0..3).map(|_| once()).min().unwrap_or_default()
}

/// Makes a text of about so many bytes.
type Make = Box<dyn Fn(usize) -> String>;

#[test]
fn time_grows_with_the_text() {
    let quoted = |n: usize| "\\\"".repeat(n / 2);
    let kinds: Vec<(&str, Make)> = vec![
        ("nested openers", Box::new(|n| "[{".repeat(n / 2))),
        ("braces", Box::new(|n| "{".repeat(n))),
        ("keys", Box::new(|n| "{\"a\":".repeat(n / 5))),
        ("quotes", Box::new(|n| "\"".repeat(n))),
        ("object of quotes", Box::new(|n| format!("{{\"{}", "\"".repeat(n)))),
        ("escaped quotes", Box::new(move |n| format!("{{\"action\": \"a\", \"args\": \"{}", quoted(n)))),
        ("blanks", Box::new(|n| format!("{{\"action\": \"a\"{}", " ".repeat(n)))),
        ("blanks after", Box::new(|n| format!("{{\"action\": \"a\", \"args\": \"{{}}\"}}{}", " \n".repeat(n / 2)))),
        ("blanks before", Box::new(|n| " ".repeat(n))),
        ("candidates that fail late", Box::new(|n| "{a: {b: {c: [1, 2, 3, x ".repeat(n / 24))),
        ("small objects", Box::new(|n| "{\"x\": 1} ".repeat(n / 9))),
        ("tags", Box::new(|n| "<tool>".repeat(n / 6))),
        ("half tags", Box::new(|n| "<t<o</tool<".repeat(n / 11))),
        ("blocks", Box::new(|n| "<tool> x [{ </tool>".repeat(n / 19))),
        ("open outputs", Box::new(|n| "<thoughts><output>".repeat(n / 18))),
        ("outputs", Box::new(|n| "<output>{</output>".repeat(n / 18))),
        ("thinking", Box::new(|n| "<think>".repeat(n / 7))),
        ("thoughts", Box::new(|n| "<think>a</think>".repeat(n / 16))),
        ("backticks", Box::new(|n| "`".repeat(n))),
        ("backticks apart", Box::new(|n| "` `` ``` ```` ".repeat(n / 14))),
        ("fence of blanks", Box::new(|n| format!("```\n{}", " ".repeat(n)))),
        ("fences", Box::new(|n| "```\nx\n".repeat(n / 6))),
        ("comments", Box::new(|n| format!("{{{}", "/* * */".repeat(n / 7)))),
        ("backslashes", Box::new(|n| format!("{{\"a\": \"{}", "\\".repeat(n)))),
        ("closers", Box::new(|n| format!("[{{\"action\": 1{}", "]".repeat(n)))),
        ("long answer", Box::new(|n| "word and more words. ".repeat(n / 21))),
        (
            "long code",
            Box::new(|n| {
                format!(
                    "<tool>[{{\"call_id\": \"1\", \"tool_name\": \"w\", \"arguments\": {{\"c\": \"{}\"}}}}]</tool>",
                    "x = \\n".repeat(n / 6)
                )
            }),
        ),
        ("many calls", Box::new(|n| format!("<tool>[{}", "{\"tool_name\": \"w\", \"arguments\": {}},".repeat(n / 37)))),
        ("specials", Box::new(|n| "<|x|>".repeat(n / 5))),
        ("numbers", Box::new(|n| format!("{{\"action\": [{}", "1234567890, ".repeat(n / 12)))),
    ];
    let (small, large) = (6_000, 48_000);
    let mut slow = Vec::new();
    for (name, make) in &kinds {
        for protocol in ["react", "chatty", "ticket"] {
            let case = case(protocol, "");
            for chunk in [1, usize::MAX] {
                // Eight times the text: a square would take 64 times as long. Other work on the machine is forgiven
                // twice.
                let grows = || {
                    let (short, long) = (time(&case, &make(small), chunk), time(&case, &make(large), chunk));
                    (long > short.max(Duration::from_micros(300)) * 32).then_some((short, long))
                };
                if let Some((short, long)) = grows().and_then(|_| grows()).and_then(|_| grows()) {
                    slow.push(format!("{name}, {protocol}, chunks of {chunk}: {short:?} then {long:?}"));
                }
            }
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}
