//! Folded states as they were stored before the state had parts: each one is stored in the same bytes today.
//!
//! The file was written once, by the build of 2baddc87, and nothing writes it again. It has the runs of this file and
//! states of random runs and kept logs, which together have every field.

use crate::kit::*;
use crate::parts::{TICKET_CALL, with_files};
use callslip::run::{Event, Limits, ModelName, Note, Record, RunState, Snapshot, compact};
use callslip::tool::Approval;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The stored state after each event of a log; the error where a log that was cut there can't go on.
fn states(log: &[Arc<Record>]) -> Vec<String> {
    let compacted = |end: usize| compact(&log[..end]).map(|record| serde_json::to_string(&record.event).unwrap());
    (1..=log.len()).map(|end| compacted(end).unwrap_or_else(|error| error.to_string())).collect()
}

/// A run with calls that ask a person or the world outside, one of them approved with other arguments, and one denied.
fn decided(protocol: &str) -> Vec<Arc<Record>> {
    let mut machine = machine(protocol, Limits { seconds: Some(50.0), ..Limits::default() });
    machine.use_model(ModelName { model: Some("m".into()), provider: Some("p".into()) });
    machine.start("the work", 1.0);
    machine.commands(1.0);
    let calls = ["gated", "gated", "outside", "gated_outside", "expert"];
    for (position, tool) in calls.into_iter().enumerate() {
        let arguments = if tool == "expert" { r#"{"task": "x"}"# } else { r#"{"a": 1}"# };
        let text = match protocol {
            "react" => act(tool, arguments),
            "chatty" => block(&[(&format!("c{position}"), tool, arguments)]),
            _ => output(&format!(
                r#"{{"type": "CALL", "route": "/{tool}", "payload": {arguments}, "description": "{tool}"}}"#
            )),
        };
        reply(&mut machine, &text);
        let Some(ticket) = machine.awaiting_decision().last().copied() else { continue };
        match position {
            0 => {
                machine.approve(ticket, Some(Arc::new(serde_json::from_str(r#"{"a": 2}"#).unwrap())), Some("ann"), 3.0);
            }
            1 => machine.deny(ticket, "not now", Some("bob"), 3.0),
            2 => machine.answer(ticket, ok("5"), &[], Some("eve"), 3.0),
            _ => machine.approve(ticket, None, None, 3.0),
        }
        machine.commands(4.0);
        machine.complete_call(ticket, ok("1"), 5.0);
        machine.end_grace(6.0);
        machine.commands(6.0);
    }
    machine.send_with("more", &[], Some("key"), 7.0);
    machine.commands(7.0);
    let mut log = take_log(&mut machine);
    let more = Note::MoreApproval([("call".into(), Approval::Needed)].into());
    let seq = log.last().unwrap().seq + 1;
    log.push(Arc::new(Record { seq, at: 8.0, event: Event::Noted { note: more } }));
    log
}

fn with_parts(protocol: &str) -> Vec<Arc<Record>> {
    let call = match protocol {
        "react" => act("call", r#"{"a": 1}"#),
        "chatty" => block(&[("c", "call", r#"{"a": 1}"#)]),
        _ => output(TICKET_CALL),
    };
    take_log(&mut with_files(protocol, &call))
}

/// Runs whose prompts, replies and results are those of this file, by name.
fn fixed() -> Vec<(String, Vec<Arc<Record>>)> {
    let mut logs = Vec::new();
    for protocol in ["react", "chatty", "ticket"] {
        logs.push((format!("decided {protocol}"), decided(protocol)));
        logs.push((format!("parts {protocol}"), with_parts(protocol)));
    }
    logs
}

/// The states of the file, by their run and how many events it had.
fn kept() -> BTreeMap<String, String> {
    let file = std::fs::read_to_string(data().join("states/states.tsv")).unwrap();
    let split = |line: &str| line.split_once('\t').map(|(name, state)| (name.to_owned(), state.to_owned()));
    file.lines().filter_map(split).collect()
}

fn state_of(event: &str) -> Option<String> {
    let Ok(Event::Compacted { state, .. }) = serde_json::from_str(event) else { return None };
    Some(serde_json::to_string(&state).unwrap())
}

/// The state without the fields that came after the file was written.
fn without_later(state: &str) -> serde_json::Value {
    let mut state: serde_json::Value = serde_json::from_str(state).unwrap();
    let fields = state.as_object_mut().unwrap();
    fields.shift_remove("words");
    for ticket in fields["tickets"]["tickets"].as_array_mut().unwrap() {
        ticket.as_object_mut().unwrap().shift_remove("origins");
    }
    state
}

/// Every state of the file is read, and stored again as it was.
#[test]
fn a_stored_state_is_read_and_stored_again() {
    let kept = kept();
    for (name, stored) in &kept {
        let state: Snapshot = serde_json::from_str(stored).unwrap();
        let again = Snapshot::new(RunState::clone(&state)).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), *stored, "{name}");
    }
    assert!(kept.len() > 60);
}

/// The runs with fixed words come to the states that they came to.
#[test]
fn the_same_runs_come_to_the_same_states() {
    let mut kept = kept();
    for (name, log) in fixed() {
        for (position, event) in states(&log).iter().enumerate() {
            if let Some(stored) = kept.remove(&format!("{name} {}", position + 1)) {
                let state = state_of(event).unwrap();
                let has_later = ["\"words\":", "\"origins\":"].iter().any(|field| state.contains(field));
                let events = position + 1;
                if has_later {
                    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
                    assert_eq!(without_later(&state), stored, "{name} after {events} events");
                } else {
                    assert_eq!(state, stored, "{name} after {events} events");
                }
            }
        }
        assert!(!kept.contains_key(&format!("{name} {}", log.len())), "{name}");
    }
}
