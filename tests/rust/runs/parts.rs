//! Images and files in the messages and results of a run: their labels, and where the model is told of them.

use crate::kit::*;
use callslip::part::{Content, MARK, Part};
use callslip::protocol::{Message, Role};
use callslip::run::{Event, Limits, RunMachine, compact, read_contents, read_log, replay, write_log};
use callslip::ticket::TicketId;
use std::sync::Arc;

pub(crate) const TICKET_CALL: &str = r#"{"type": "CALL", "route": "call", "payload": {"a": 1}, "description": "c"}"#;

fn marked(mark: &str, data: &[u8]) -> Part {
    Part::new(&format!("{MARK}{mark}"), "text/plain", None, &Content::new(data))
}

fn labels(message: &Message) -> Vec<&str> {
    message.parts.iter().map(|part| &*part.label).collect()
}

/// A run of this protocol with an earlier conversation, a task, a call and a later message, all with files.
pub(crate) fn with_files(protocol: &str, call: &str) -> RunMachine {
    let earlier = |role, content: &str, parts| Message { role, content: content.into(), short: None, parts };
    let before = vec![
        earlier(Role::User, &format!("See {MARK}a."), vec![marked("a", b"a")]),
        earlier(Role::Assistant, "Seen.", Vec::new()),
    ];
    let mut machine = machine(protocol, Limits::default()).after(before);
    let task = format!("Compare {MARK}b with {MARK}c");
    machine.start_with(&task, &[marked("b", b"b"), marked("c", b"c")], 1.0);
    machine.commands(1.0);
    reply(&mut machine, call);
    let result = format!(r#"{{"file": "{MARK}d", "more": ["{MARK}e"]}}"#);
    machine.send_with(&format!("And {MARK}f?"), &[marked("f", b"f")], None, 3.0);
    machine.complete_call_with(TicketId(1), ok(&result), &[marked("d", b"d"), marked("e", b"e")], 3.0);
    machine.commands(3.0);
    machine
}

#[test]
fn files_have_labels_that_are_their_own() {
    let machine = with_files("react", &act("call", r#"{"a": 1}"#));
    let state = machine.state();
    assert_eq!(&*state.conversation.messages[1].content, "See [file text/plain, 1 bytes, U1].");
    assert_eq!(
        &*state.conversation.messages[3].content,
        "Compare [file text/plain, 1 bytes, U2] with [file text/plain, 1 bytes, U3]"
    );
    assert_eq!(
        (labels(&state.conversation.messages[1]), labels(&state.conversation.messages[3])),
        (vec!["U1"], vec!["U2", "U3"])
    );
    let all: Vec<&str> = state.parts().iter().map(|part| &*part.label).collect();
    assert_eq!(all, ["U1", "U2", "U3", "U4", "T1.1", "T1.2"]);
    let result = state.calls.tickets.get(TicketId(1)).unwrap().outcome.as_ref().unwrap().text();
    assert_eq!(result, r#"{"file": "[file text/plain, 1 bytes, T1.1]", "more": ["[file text/plain, 1 bytes, T1.2]"]}"#);
}

#[test]
fn a_message_has_the_files_of_what_it_tells() {
    let machine = with_files("react", &act("call", r#"{"a": 1}"#));
    assert!(told(&machine).contains("T1.2") && told(&machine).contains("U4"), "{}", told(&machine));
    assert_eq!(labels(machine.state().conversation.messages.last().unwrap()), ["T1.1", "T1.2", "U4"]);
}

/// In the ticket protocol a result is told once it is loaded, and a shortened history leaves it out again.
#[test]
fn the_files_of_a_result_come_with_the_message_that_loads_it() {
    let mut machine = machine("ticket", Limits::default());
    machine.start("work", 1.0);
    machine.commands(1.0);
    reply(&mut machine, &output(TICKET_CALL));
    let long = format!(r#"["{MARK}d", "{}"]"#, "x".repeat(3_000));
    machine.complete_call_with(TicketId(1), ok(&long), &[marked("d", b"d")], 2.0);
    machine.commands(2.0);
    assert_eq!(labels(machine.state().conversation.messages.last().unwrap()), Vec::<&str>::new());
    reply(&mut machine, &output(r#"{"type": "LOAD_TICKET", "ticket_id": "T1"}"#));
    let last = machine.state().conversation.messages.last().unwrap();
    assert_eq!(labels(last), ["T1"]);
    assert!(last.content.contains("[file text/plain, 1 bytes, T1]") && last.short.is_some());
}

#[test]
fn a_log_with_files_is_replayed_compacted_and_written() {
    for (protocol, call) in [
        ("react", act("call", r#"{"a": 1}"#)),
        ("chatty", block(&[("c", "call", r#"{"a": 1}"#)])),
        ("ticket", output(TICKET_CALL)),
    ] {
        let mut machine = with_files(protocol, &call);
        let log = take_log(&mut machine);
        let folded = Arc::new(compact(&log).unwrap());
        for again in [replay(&log).unwrap(), RunMachine::load(&log).unwrap(), RunMachine::load(&[folded]).unwrap()] {
            assert_eq!(again.state().conversation.messages, machine.state().conversation.messages, "{protocol}");
            assert_eq!(again.state().parts(), machine.state().parts(), "{protocol}");
        }
        let data = |sha256: &str| {
            let all = [b"a", b"b", b"c", b"d", b"e", b"f"].map(|data| Content::new(*data));
            let found = all.into_iter().find(|content| *content.sha256 == *sha256);
            Ok::<_, serde_json::Error>(found.map(|content| content.data))
        };
        let lines = write_log(&log, data).unwrap();
        assert_eq!(read_contents(&lines).unwrap().len(), 6, "{protocol}");
        let read = read_log(&lines).unwrap();
        assert_eq!(replay(&read).unwrap().state().conversation.messages, machine.state().conversation.messages);
        // Every event has its bytes before it.
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.starts_with("{\"content\"")) {
            let event: callslip::run::Record = serde_json::from_str(line).unwrap();
            for part in event.event.parts() {
                assert!(lines[..at].iter().any(|before| before.contains(&*part.sha256)), "{protocol}: {line}");
            }
        }
    }
}

#[test]
fn bytes_that_are_others_than_a_log_says_are_refused() {
    let sha256 = Content::new(b"a".as_slice()).sha256;
    let line = format!(r#"{{"content":{{"sha256":"{sha256}","base64":"Yg=="}}}}"#);
    let error = read_contents(&[line]).unwrap_err().to_string();
    assert!(error.contains("line 1") && error.contains(&*sha256), "{error}");
    read_contents(&[r#"{"content":{"sha256":"","base64":"?"}}"#.to_owned()]).unwrap_err();
}

#[test]
fn a_result_that_failed_has_no_files() {
    let mut machine = begun("react", Limits::default());
    reply(&mut machine, &act("call", r#"{"a": 1}"#));
    let failed = callslip::ticket::Outcome::Retry { message: "again".to_owned() };
    machine.complete_call_with(TicketId(1), failed, &[marked("d", b"d")], 2.0);
    let log = take_log(&mut machine);
    let parts = log.iter().find_map(|record| match &record.event {
        Event::TicketCompleted { parts, .. } => Some(parts.clone()),
        _ => None,
    });
    assert_eq!(parts, Some(Vec::new()));
}
