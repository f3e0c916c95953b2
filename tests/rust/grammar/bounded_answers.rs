//! Answers that reach the bound of a small model: they end with their sentence, or are refused as cut.

use crate::walk::{Random, admits, is_refused, matcher, read, walk};
use callslip::protocol::grammar::{Bounds, Scope};
use callslip::protocol::{Chatty, Code, Move, Protocol, React, Ticket};
use callslip::tool::ToolSet;
use serde_json::Value as Json;

const ANSWER: u32 = 40;

fn scope(tools: &ToolSet) -> Scope<'_> {
    Scope {
        tools,
        calls: false,
        delegates: false,
        finish: true,
        in_progress: Vec::new(),
        completed: Vec::new(),
        longest: None,
        agents: Vec::new(),
        thoughts: Some(0),
        bounds: Some(Bounds { answer: ANSWER, string: 20, items: 3, thoughts: 10 }),
    }
}

fn protocols() -> [Box<dyn Protocol>; 3] {
    [Box::new(Chatty::default()), Box::new(React::default()), Box::new(Ticket::default())]
}

/// A reply with this answer; without an end, if it is cut.
fn reply(protocol: &dyn Protocol, answer: &str, is_whole: bool) -> String {
    let text = Json::from(answer).to_string();
    let text = if is_whole { text.as_str() } else { text.trim_end_matches('"') };
    match (protocol.name(), is_whole) {
        ("chatty", true) => answer.to_owned(),
        ("chatty", false) => format!("{answer}<tool>"),
        ("react", true) => {
            format!(r#"{{"thought": "", "action": "FINISH", "final_answer": {text}, "task_successful": true}}"#)
        }
        ("react", false) => format!(r#"{{"thought": "", "action": "FINISH", "final_answer": {text}"#),
        (_, true) => {
            format!("<thoughts>\n\n</thoughts>\n<output>\n{{\"type\": \"RETURN\", \"value\": {text}}}\n</output>")
        }
        (_, false) => format!("<thoughts>\n\n</thoughts>\n<output>\n{{\"type\": \"RETURN\", \"value\": {text}"),
    }
}

#[test]
fn an_answer_ends_with_the_sentence_in_which_it_reaches_its_bound() {
    let tools = ToolSet::empty();
    let head = "The harbour has forty berths and a crane";
    assert_eq!(head.chars().count(), ANSWER as usize);
    for protocol in protocols() {
        let grammar = protocol.grammar(&scope(&tools)).lark;
        let whole = |answer: &str| admits(&grammar, &reply(&*protocol, answer, true));
        for answer in [
            "The harbour has forty berths.",
            "The harbour has forty berths. It has a.",
            "The harbour has forty berths and a crane, which is old.",
            "The harbour has forty berths and a crane of 3.14 tons at www.example.com!",
            "The harbour has forty berths and a crane...really?!",
            "The harbour has forty berths and a crane of \u{65e5}\u{672c}\u{3002}",
            "The harbour has forty berths and a crane\n",
        ] {
            assert!(whole(answer), "{} {answer}", protocol.name());
            let moved = read(&*protocol, &tools, &reply(&*protocol, answer, true));
            assert!(matches!(moved, Move::Finish { .. }), "{answer}");
        }
        for answer in [
            "The harbour has forty berths and a crane, which",
            "The harbour has forty berths and a crane, which is old. It",
            "The harbour has forty berths and a crane, which is old. It is red.",
            "The harbour has forty berths and a crane,\nwhich is old.",
        ] {
            assert!(!whole(answer), "{} {answer}", protocol.name());
        }
        // Without an end of the sentence, the reply is cut.
        let endless = format!("{head}{}", ", and".repeat(ANSWER as usize / 5));
        assert!(!whole(&format!("{endless}x.")), "{}", protocol.name());
        let cut = reply(&*protocol, &endless, false);
        assert!(admits(&grammar, &cut), "{cut}");
        assert!(is_refused(&*protocol, &tools, &cut, &[Code::Truncated]), "{cut}");
    }
}

#[test]
fn bounded_answers_are_read_or_cut() {
    let tools = ToolSet::empty();
    for protocol in protocols() {
        let grammar = protocol.grammar(&scope(&tools)).lark;
        let matcher = matcher(&grammar);
        let mut random = Random::new(crate::walk::seed());
        for _ in 0..crate::cases::of(60) {
            let text = walk(&matcher, &mut random);
            if !is_refused(&*protocol, &tools, &text, &[Code::Truncated]) {
                assert!(matches!(read(&*protocol, &tools, &text), Move::Finish { .. }), "{text}");
            }
        }
    }
}
