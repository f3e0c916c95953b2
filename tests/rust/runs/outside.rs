//! Calls whose results come from outside: nothing is called, and the first answer counts.

use crate::kit::{act, begun, block, ok, output, reply, take_log, told};
use callslip::run::{Command, Event, InputError, Limits, RunMachine, compact, replay};
use callslip::ticket::{Outcome, TicketId};
use std::sync::Arc;

const ONE: TicketId = TicketId(1);

/// A run of this protocol that awaits the result of `outside`, and what was to be done then.
fn waiting(protocol: &str) -> (RunMachine, Vec<Command>) {
    let mut machine = begun(protocol, Limits::default());
    let text = match protocol {
        "ticket" => output(r#"{"type": "CALL", "route": "/outside", "payload": {"a": 1}, "description": "d"}"#),
        "chatty" => block(&[("c", "outside", r#"{"a": 1}"#)]),
        _ => act("outside", r#"{"a": 1}"#),
    };
    let commands = reply(&mut machine, &text);
    (machine, commands)
}

fn answer(machine: &mut RunMachine, outcome: Outcome, by: &str) -> Result<(), InputError> {
    let checked = machine.check_answer(ONE, outcome)?;
    machine.answer(ONE, checked, &[], Some(by), 3.0);
    Ok(())
}

#[test]
fn nothing_is_called_and_the_result_is_asked_for_once() {
    for protocol in ["react", "chatty", "ticket"] {
        let (mut machine, commands) = waiting(protocol);
        let until = Some(12.0);
        assert_eq!(commands.first(), Some(&Command::AskResult { ticket: ONE, until }), "{protocol}");
        assert!(!commands.iter().any(|command| matches!(command, Command::CallTool { .. })), "{protocol}");
        assert!(machine.awaits_result(ONE));
        assert_eq!(machine.first_expiry(), until);
        assert!(!machine.commands(2.5).iter().any(|command| matches!(command, Command::AskResult { .. })));
        if protocol != "ticket" {
            assert_eq!(machine.under_way(), Some(Vec::new()), "{protocol}");
        }
    }
}

#[test]
fn the_first_answer_counts_and_a_wrong_one_changes_nothing() {
    let (mut machine, _) = waiting("react");
    let wrong = answer(&mut machine, ok("\"many\""), "ann").unwrap_err();
    assert!(matches!(wrong, InputError::WrongResult { .. }), "{wrong}");
    assert!(machine.awaits_result(ONE));
    answer(&mut machine, ok("\"7\""), "ann").unwrap();
    let second = answer(&mut machine, ok("8"), "ben").unwrap_err();
    assert_eq!(second, InputError::AnsweredAlready { ticket: ONE, by: Some("ann".into()) });
    assert!(told_next(&mut machine).contains('7'));
    let log = take_log(&mut machine);
    assert!(
        log.iter().any(|record| matches!(&record.event, Event::TicketCompleted { by: Some(by), .. } if **by == *"ann"))
    );
    assert_eq!(replay(&log).unwrap().state().calls.tickets.get(ONE).unwrap().outcome.as_ref().unwrap().text(), "7");
}

/// What the model is told with its next turn.
fn told_next(machine: &mut RunMachine) -> String {
    let commands = machine.commands(4.0);
    assert!(commands.iter().any(|command| matches!(command, Command::AskModel { .. })));
    told(machine).to_owned()
}

#[test]
fn a_failure_is_told_and_a_late_result_fails_by_itself() {
    let (mut machine, _) = waiting("chatty");
    let failure = Outcome::Error { message: "no room. ".to_owned(), transient: true };
    answer(&mut machine, failure, "farm").unwrap();
    assert!(told_next(&mut machine).contains("Error calling tool 'outside': no room."));

    let (mut machine, _) = waiting("chatty");
    machine.expire(ONE, 11.9);
    assert!(machine.awaits_result(ONE));
    machine.expire(ONE, 12.0);
    assert!(told_next(&mut machine).contains("TimeoutError: no result within 10 seconds."));
    let late = answer(&mut machine, ok("7"), "ann").unwrap_err();
    assert_eq!(late, InputError::NoResultAwaited { ticket: ONE, waiting: Vec::new() });
}

#[test]
fn approval_comes_first() {
    let mut machine = begun("react", Limits::default());
    let commands = reply(&mut machine, &act("gated_outside", r#"{"a": 1}"#));
    assert_eq!(commands, [Command::AskApproval { ticket: ONE }]);
    assert_eq!(answer(&mut machine, ok("7"), "ann").unwrap_err(), InputError::ApprovalFirst(ONE));
    machine.approve(ONE, None, Some("ann"), 2.5);
    assert_eq!(machine.commands(2.5), [Command::AskResult { ticket: ONE, until: None }]);
    answer(&mut machine, ok("\"any value\""), "ben").unwrap();
    assert!(told_next(&mut machine).contains("any value"));
}

#[test]
fn what_awaits_a_result_survives_a_crash_and_compaction() {
    for protocol in ["react", "chatty", "ticket"] {
        let (mut machine, _) = waiting(protocol);
        let log = take_log(&mut machine);
        for log in [log.clone(), vec![Arc::new(compact(&log).unwrap())]] {
            let mut resumed = RunMachine::load(&log).unwrap();
            assert!(resumed.awaits_result(ONE), "{protocol}");
            resumed.resume(5.0);
            let commands = resumed.commands(5.0);
            assert!(commands.contains(&Command::AskResult { ticket: ONE, until: Some(12.0) }), "{protocol}");
            answer(&mut resumed, ok("7"), "ann").unwrap();
            assert!(resumed.state().calls.tickets.get(ONE).unwrap().outcome.as_ref().unwrap().is_ok());

            // Answered while nobody works on the run.
            let mut at_rest = RunMachine::load(&log).unwrap();
            answer(&mut at_rest, ok("7"), "ann").unwrap();
            at_rest.resume(6.0);
            let commands = at_rest.commands(6.0);
            assert!(!commands.iter().any(|command| matches!(command, Command::AskResult { .. })), "{protocol}");
        }
    }
}

#[test]
fn a_question_takes_one_of_its_choices() {
    let cases = [
        (r#"{"a": 1}"#, "\"in words\"", "5.5"),
        (r#"{"a": 1, "choices": ["x", "y"]}"#, "\"y\"", "\"z\""),
        (r#"{"a": 1, "choices": ["x", "y"], "several": true}"#, r#"["y", "x"]"#, r#"["z"]"#),
        (r#"{"a": 1, "several": true}"#, r#"["z"]"#, r#"{"z": 1}"#),
    ];
    for (arguments, right, wrong) in cases {
        let mut machine = begun("react", Limits::default());
        reply(&mut machine, &act("asks", arguments));
        answer(&mut machine, ok(wrong), "ann").unwrap_err();
        answer(&mut machine, ok(right), "ann").unwrap();
    }
}
