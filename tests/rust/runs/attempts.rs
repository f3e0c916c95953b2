//! Attempts at a tool call: in the log, in its ticket, and after a crash between them.

use crate::kit::{act, begun, ok, reply, take_log, told};
use callslip::run::{Command, FailedCall, Limits, RunMachine, compact, replay};
use callslip::ticket::{Outcome, TicketId};
use std::sync::Arc;

const T1: TicketId = TicketId(1);

fn fail(machine: &mut RunMachine, attempt: u32, wait: Option<f64>) {
    machine.tool_attempt_failed(FailedCall::new(T1, attempt, "E: no.", wait), 3.0);
}

fn error() -> Outcome {
    Outcome::Error { message: "E: no.".into(), transient: true }
}

/// A run whose one call is under way.
fn calling() -> RunMachine {
    let mut machine = begun("react", Limits::default());
    assert!(matches!(reply(&mut machine, &act("call", r#"{"a": 1}"#))[..], [Command::CallTool { .. }]));
    machine
}

fn kinds(lines: &[String]) -> Vec<&str> {
    let names = ["tool_attempt_failed", "ticket_completed", "model_asked", "noted"];
    lines.iter().filter_map(|line| names.into_iter().find(|name| line.contains(&format!("{{\"{name}\"")))).collect()
}

#[test]
fn each_failed_attempt_is_logged_and_the_model_reads_the_last_one() {
    let mut machine = calling();
    take_log(&mut machine);
    fail(&mut machine, 1, Some(0.5));
    assert_eq!(machine.attempts(T1), 2);
    assert!(machine.commands(3.0).is_empty());
    fail(&mut machine, 2, Some(1.0));
    machine.complete_call(T1, error(), 4.0);
    let log: Vec<String> =
        machine.take_records().iter().map(|record| serde_json::to_string(&record.event).unwrap()).collect();
    let failed = |attempt: u32, wait: &str| {
        format!(r#"{{"tool_attempt_failed":{{"ticket":1,"attempt":{attempt},"error":"E: no.","wait":{wait}}}}}"#)
    };
    assert_eq!(log[..3], [failed(1, "0.5"), failed(2, "1.0"), failed(3, "null")]);
    assert_eq!(kinds(&log[3..]), ["ticket_completed", "model_asked"]);
    assert_eq!(machine.attempts(T1), 3);
    assert_eq!(told(&machine), "Observation: E: no. The call was tried 3 times.");
}

#[test]
fn a_call_that_succeeds_in_the_end_is_told_as_any_other() {
    let mut machine = calling();
    fail(&mut machine, 1, Some(0.5));
    machine.complete_call(T1, ok("1"), 4.0);
    assert_eq!((machine.attempts(T1), told(&machine)), (2, "Observation: 1"));
    let mut asks = calling();
    fail(&mut asks, 1, Some(0.5));
    asks.complete_call(T1, Outcome::Retry { message: "say a".into() }, 4.0);
    assert_eq!((asks.attempts(T1), told(&asks)), (2, "Observation: say a"));
    for mut machine in [machine, asks] {
        let log = take_log(&mut machine);
        assert_eq!(replay(&log).unwrap().attempts(T1), 2);
        assert_eq!(RunMachine::load(&[Arc::new(compact(&log).unwrap())]).unwrap().attempts(T1), 2);
    }
}

#[test]
fn only_the_attempt_under_way_can_fail() {
    let mut machine = calling();
    for attempt in [0, 2] {
        fail(&mut machine, attempt, Some(0.5));
    }
    fail(&mut machine, 1, Some(0.5));
    fail(&mut machine, 1, Some(0.5));
    assert_eq!(machine.attempts(T1), 2);
    let log = take_log(&mut machine);
    machine.cancel(5.0);
    fail(&mut machine, 2, Some(0.5));
    let after = take_log(&mut machine);
    let texts: Vec<String> = after.iter().map(|record| serde_json::to_string(&record.event).unwrap()).collect();
    assert!(!texts.concat().contains("tool_attempt_failed"));
    // A log that says that it failed twice was changed.
    let last = log.last().unwrap();
    let text = serde_json::to_string(last).unwrap();
    let twice = text.replace(&format!("\"seq\":{}", last.seq), &format!("\"seq\":{}", last.seq + 1));
    let changed: Vec<_> = log.iter().cloned().chain([Arc::new(serde_json::from_str(&twice).unwrap())]).collect();
    assert!(RunMachine::load(&changed).unwrap_err().to_string().contains("the log was changed"));
}

#[test]
fn attempts_are_counted_on_after_a_crash() {
    let mut before = begun("react", Limits::default());
    reply(&mut before, &act("look", r#"{"a": 1}"#));
    fail(&mut before, 1, Some(0.5));
    let log = take_log(&mut before);
    let mut machine = RunMachine::load(&log).unwrap();
    machine.resume(9.0);
    // A call of a tool with the effect `once` is in doubt, as without further attempts.
    assert!(machine.commands(9.0).iter().all(|command| !matches!(command, Command::CallTool { .. })));
    let outcome = machine.state().calls.tickets.get(T1).unwrap().outcome.clone();
    assert!(matches!(outcome, Some(Outcome::InDoubt { .. })));

    fail(&mut before, 2, None);
    let log: Vec<_> = log.into_iter().chain(take_log(&mut before)).collect();
    let mut machine = RunMachine::load(&log).unwrap();
    machine.resume(9.0);
    assert_eq!(told(&machine), "Observation: E: no. The call was tried 2 times.");
    assert!(machine.commands(9.0).iter().all(|command| !matches!(command, Command::CallTool { .. })));
    let whole: Vec<_> = log.into_iter().chain(take_log(&mut machine)).collect();
    assert!(replay(&whole).is_ok());
}
