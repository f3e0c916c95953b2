//! What holds of every reply: chunks don't matter, deltas only grow, clean JSON is not touched, places lie in the
//! text, and time grows with the text.

use crate::corpus::Case;
use crate::invariants::Way;
use crate::invariants::growth::{is_suspicious, reader, superlinear};
use crate::invariants::json::clean;
use crate::invariants::reply::{chunks_do_not_matter, complete_stands_alone, strict_refuses_the_repaired};
use callslip::protocol::Move;
use callslip::reply::RepairPolicy;
use proptest::prelude::*;
use serde_json::json;

const PROTOCOLS: [&str; 4] = ["react", "chatty", "ticket", crate::one_line::NAME];

fn split(text: &[u8], size: usize) -> Vec<&[u8]> {
    text.chunks(size).collect()
}

fn chunks_of_any_size(cases: &[Case]) {
    for case in cases {
        let text = case.text.as_bytes();
        chunks_do_not_matter(&case.way, text, &(1..=7).map(|size| split(text, size)).collect::<Vec<_>>());
    }
}

fn beginnings(cases: &[Case]) {
    for case in cases {
        let whole = case.way.read(&[case.text.as_bytes()]).reply;
        let list = |code: &str| matches!(code, "ndjson_to_array" | "merged_arrays" | "merged_blocks");
        let in_parts = whole.repairs.iter().any(|repair| list(repair.code.name()));
        let finished = matches!(whole.outcome, Ok(Move::Finish { .. }));
        let answer = case.way.protocol.name() == "chatty" && finished;
        // "Final Answer: …" ends where the text does, as an answer in chatty.
        let plain = finished && whole.repairs.iter().any(|repair| repair.code.name() == "published_form");
        for (cut, _) in case.text.char_indices() {
            let text = case.text.get(..cut).unwrap_or_default().as_bytes();
            let part = chunks_do_not_matter(&case.way, text, &[split(text, 1)]).reply;
            // A fence is shown if text follows it, which is known at the end alone.
            let shown = answer && part.repairs.iter().any(|repair| repair.code.name() == "fence_around_block");
            // A cut reply never does something else, and never a part of it.
            if let (Ok(whole), Ok(part)) = (&whole.outcome, part.outcome)
                && !in_parts
                && !plain
                && !shown
                // The beginning of an answer may be a shorter one, or a fence with a block that the answer only shows.
                && !(case.way.protocol.name() == "chatty" && [whole, &part].iter().any(|read| matches!(read, Move::Finish { .. })))
            {
                assert_eq!(part, *whole, "{} {text:?}", case.id);
            }
        }
    }
}

fn complete_streams(cases: &[Case]) {
    for case in cases {
        complete_stands_alone(&case.way, case.text.as_bytes());
    }
}

fn strictness(cases: Vec<Case>) {
    for mut case in cases {
        strict_refuses_the_repaired(&mut case.way, case.text.as_bytes());
    }
}

#[test]
fn chunks_of_corpus_replies_do_not_matter() {
    chunks_of_any_size(&crate::corpus::own());
}

#[test]
fn beginnings_of_corpus_replies_are_read_without_harm() {
    beginnings(&crate::corpus::own());
}

#[test]
fn a_stream_may_be_cut_where_it_is_complete() {
    complete_streams(&crate::corpus::own());
}

#[test]
fn strictness_refuses_exactly_the_repaired() {
    strictness(crate::corpus::own());
}

#[test]
fn replies_of_2026_have_these_properties() {
    let cases = crate::corpus::of_2026();
    chunks_of_any_size(&cases);
    beginnings(&cases);
    complete_streams(&cases);
    strictness(cases);
}

#[test]
#[ignore = "make test-shared runs it"]
fn shared_replies_have_these_properties() {
    let cases = crate::corpus::shared();
    chunks_of_any_size(&cases);
    beginnings(&cases);
    complete_streams(&cases);
    strictness(cases);
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

/// Hostile replies.
fn shards() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(crate::words::dictionary()), 0..40).prop_map(|shards| shards.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::of(4000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn clean_json_is_not_touched(value in json(), style in any::<u8>(), size in 1_usize..40) {
        let text = written(&value, style);
        clean(&text, &serde_json::from_str(&text).unwrap(), &[&split(text.as_bytes(), size)]);
    }

    #[test]
    fn chunks_of_hostile_replies_do_not_matter(text in shards(), sizes in prop::collection::vec(1_usize..12, 1..4), variant in 0_u8..5) {
        let tags = match variant {
            2 => ("[[GO", "END]]"),
            3 => ("true", "None"),
            _ => ("<tool>", "</tool>"),
        };
        let chunkings: Vec<_> = sizes.iter().map(|size| split(text.as_bytes(), *size)).collect();
        crate::one_line::register();
        for protocol in PROTOCOLS {
            let mut way = Way::new(protocol, tags);
            way.options.think_prefilled = variant == 1;
            if variant == 4 {
                way.options.repairs = RepairPolicy::Lenient;
            }
            chunks_do_not_matter(&way, text.as_bytes(), &chunkings);
        }
    }

    #[test]
    fn a_line_of_json_has_the_properties_of_every_reply(value in json(), style in any::<u8>(), call in any::<bool>(), size in 1_usize..12, options in any::<u8>(), rest in "[ \n}a]{0,3}") {
        crate::one_line::register();
        let line = if call {
            json!({"tool": "look", "args": {"a": value}})
        } else {
            json!({"answer": value.to_string()})
        };
        let text = format!("{}{rest}", written(&line, style));
        let way = Way::plain(crate::one_line::NAME);
        let read = chunks_do_not_matter(&way, text.as_bytes(), &[split(text.as_bytes(), size), split(text.as_bytes(), 1)]);
        prop_assert_eq!(read.reply.outcome.is_ok(), rest.trim().is_empty(), "{}", text);
        let data = [&[options, b'1', b'3'], text.as_bytes()].concat();
        crate::invariants::check(crate::one_line::NAME, &data);
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200) {
        let (left, right) = bytes.split_at(cut.min(bytes.len()));
        crate::one_line::register();
        for protocol in PROTOCOLS {
            chunks_do_not_matter(&Way::plain(protocol), &bytes, &[vec![left, right]]);
        }
    }
}

/// Makes a text of about so many bytes.
type Make = Box<dyn Fn(usize) -> String>;

fn long_code(n: usize) -> String {
    let code = "x = \\n".repeat(n / 6);
    format!("<tool>[{{\"call_id\": \"1\", \"tool_name\": \"w\", \"arguments\": {{\"c\": \"{code}\"}}}}]</tool>")
}

/// Texts on which a careless reader would go back again and again.
fn hostile_texts() -> Vec<(&'static str, Make)> {
    let quoted = |n: usize| "\\\"".repeat(n / 2);
    vec![
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
        ("outputs in open thoughts", Box::new(|n| "<thoughts><output></output>".repeat(n / 27))),
        ("outputs", Box::new(|n| "<output>{</output>".repeat(n / 18))),
        ("thinking", Box::new(|n| "<think>".repeat(n / 7))),
        ("thoughts", Box::new(|n| "<think>a</think>".repeat(n / 16))),
        ("backticks", Box::new(|n| "`".repeat(n))),
        ("backticks apart", Box::new(|n| "` `` ``` ```` ".repeat(n / 14))),
        ("fence of blanks", Box::new(|n| format!("```\n{}", " ".repeat(n)))),
        ("fences", Box::new(|n| "```\nx\n".repeat(n / 6))),
        ("comments", Box::new(|n| format!("{{{}", "/* * */".repeat(n / 7)))),
        ("comments after strings", Box::new(|n| format!("<output>{}", "{\"a\"/*".repeat(n / 6)))),
        ("lines after strings", Box::new(|n| format!("<output>{}", "[\"a\"//".repeat(n / 6)))),
        ("backslashes", Box::new(|n| format!("{{\"a\": \"{}", "\\".repeat(n)))),
        ("closers", Box::new(|n| format!("[{{\"action\": 1{}", "]".repeat(n)))),
        ("long answer", Box::new(|n| "word and more words. ".repeat(n / 21))),
        ("long code", Box::new(long_code)),
        ("many calls", Box::new(|n| format!("<tool>[{}", "{\"tool_name\": \"w\", \"arguments\": {}},".repeat(n / 37)))),
        ("specials", Box::new(|n| "<|x|>".repeat(n / 5))),
        ("channels", Box::new(|n| "<|channel|>".repeat(n / 11))),
        ("documents and a block", Box::new(|n| format!("{}{}", "<<EOF\n".repeat(n / 6), block()))),
        ("marks and a block", Box::new(|n| format!("{}{}", "<a>[B]".repeat(n / 6), block()))),
        ("comments and a block", Box::new(|n| format!("{}{}", "<!--/*a//".repeat(n / 9), block()))),
        ("calls in other forms", Box::new(|n| "[TOOL_CALLS]a[ARGS]{\"b\": 1}".repeat(n / 26))),
        ("calls in lines", Box::new(|n| "Action: a\nAction Input: {}\nObservation: b\n".repeat(n / 42))),
        ("parameters", Box::new(|n| format!("<function=a>{}", "<parameter=b>c</parameter>".repeat(n / 26)))),
        ("lines that begin like calls", Box::new(|n| "Action: a\nfunctions.b(\n".repeat(n / 23))),
        ("numbers", Box::new(|n| format!("{{\"action\": [{}", "1234567890, ".repeat(n / 12)))),
    ]
}

fn block() -> &'static str {
    "<tool>[{\"call_id\": \"c1\", \"tool_name\": \"w\", \"arguments\": {}}]</tool>"
}

/// Of the texts that are compared.
const LENGTHS: [usize; 2] = [6_000, 48_000];

#[test]
fn time_grows_with_the_text() {
    let mut slow = Vec::new();
    for (name, make) in &hostile_texts() {
        // The line of JSON is read anew with each byte.
        for protocol in PROTOCOLS.into_iter().filter(|name| *name != crate::one_line::NAME) {
            let lenient = name.contains("calls") || name.contains("parameters");
            for chunk in [1, usize::MAX] {
                let (once, make) = (reader(protocol, chunk, lenient), |length| make(length).into_bytes());
                if is_suspicious(&once, &make, LENGTHS)
                    && let Some(times) = superlinear(&once, &make, LENGTHS)
                {
                    slow.push(format!("{name}, {protocol}, chunks of {chunk}: {times:?}"));
                }
            }
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}
