//! What is said to a run from outside of it: more by its user, and yes or no by those who approve.

use crate::kit::{act, begun, block, machine, ok, output, reply, take_log, told};
use callslip::protocol::{FinishReason, Message, Role};
use callslip::run::{Command, Event, Limit, Limits, Phase, RunMachine, Shortened, Usage, compact, replay};
use callslip::ticket::{Outcome, TicketId};
use std::sync::Arc;

const FINISH: &str = r#"{"thought": "t", "action": "FINISH", "final_answer": "3", "task_successful": true}"#;

#[test]
fn a_message_while_the_answer_arrives_keeps_the_run_going() {
    let mut machine = begun("react", Limits::default());
    let (head, tail) = FINISH.split_at(30);
    machine.push(head.as_bytes(), 2.0);
    machine.send("And in euros?", 2.0);
    assert_eq!(machine.commands(2.0), []);
    machine.push(tail.as_bytes(), 3.0);
    machine.end_reply(FinishReason::Stop, None, 3.0);
    assert_eq!(machine.commands(3.0), [Command::AskModel { turn: 2 }]);
    assert_eq!(told(&machine), "And in euros?");
    assert_eq!(reply(&mut machine, FINISH), [Command::Finish]);
    replay(&take_log(&mut machine)).unwrap();
}

#[test]
fn a_message_is_told_with_the_next_outcome_and_reopens_a_run_that_only_waits() {
    let mut machine = begun("react", Limits::default());
    reply(&mut machine, &act("call", r#"{"a": 1}"#));
    machine.send("Hurry.", 2.0);
    assert_eq!(machine.commands(2.0), []);
    machine.complete_call(TicketId(1), ok("1"), 3.0);
    assert_eq!(machine.commands(3.0), [Command::AskModel { turn: 2 }]);
    assert_eq!(told(&machine), "Observation: 1\n\nHurry.");

    let mut machine = begun("ticket", Limits::default());
    reply(&mut machine, &output(r#"{"type": "CALL", "route": "call", "payload": {"a": 1}, "description": "c"}"#));
    machine.end_grace(2.0);
    assert_eq!(machine.commands(2.0), [Command::AskModel { turn: 2 }]);
    assert_eq!(reply(&mut machine, &output(r#"{"type": "RETURN", "value": 1}"#)), []);
    assert_eq!(machine.state().position.phase, Phase::Closing);
    machine.send("Wait.", 3.0);
    assert_eq!(machine.commands(3.0), [Command::AskModel { turn: 3 }]);
    assert!(told(&machine).contains("Wait.") && told(&machine).contains("IN_PROGRESS"));
    reply(&mut machine, &output(r#"{"type": "RETURN", "value": 2}"#));
    machine.complete_call(TicketId(1), ok("1"), 4.0);
    assert_eq!(machine.commands(4.0), [Command::Finish]);
    assert_eq!(machine.state().position.ending.as_ref().unwrap().value.to_json(), "2");
    replay(&take_log(&mut machine)).unwrap();
}

#[test]
fn steps_and_seconds_count_anew_after_a_message_to_a_run_that_is_over() {
    let limits = Limits { turns: Some(1), seconds: Some(10.0), ..Limits::default() };
    let mut machine = machine("react", limits);
    machine.start("work", 100.0);
    machine.commands(100.0);
    reply(&mut machine, &act("call", r#"{"a": 1}"#));
    machine.complete_call(TicketId(1), ok("1"), 101.0);
    machine.commands(101.0);
    assert_eq!(machine.state().position.last_turn, Some(Limit::Turns));
    assert_eq!(reply(&mut machine, FINISH), [Command::Finish]);
    machine.send("More.", 500.0);
    assert_eq!(machine.commands(500.0), [Command::AskModel { turn: 3 }]);
    assert_eq!((machine.state().position.last_turn, machine.deadline()), (None, Some(510.0)));
    reply(&mut machine, &act("call", r#"{"a": 2}"#));
    machine.complete_call(TicketId(2), ok("2"), 501.0);
    assert_eq!(machine.commands(501.0), [Command::AskModel { turn: 4 }]);
    assert_eq!(machine.state().position.last_turn, Some(Limit::Turns));
    assert_eq!(reply(&mut machine, FINISH), [Command::Finish]);
    replay(&take_log(&mut machine)).unwrap();
}

/// The commands of a run that goes on, which had one call that waited for approval; how it was approved is given.
fn gone_on(attended: bool) -> (Vec<Command>, RunMachine) {
    let mut first = begun("react", Limits::default());
    reply(&mut first, &act("gated", r#"{"a": 1}"#));
    if attended {
        first.approve(TicketId(1), None, None, 3.0);
        assert_eq!(first.commands(3.0).len(), 1);
    }
    let mut log = take_log(&mut first);
    if !attended {
        // Somebody approves of it in the log of a run that nobody works on.
        let mut kept = RunMachine::load(&log).unwrap();
        kept.approve(TicketId(1), None, None, 3.0);
        kept.commands(3.0);
        log.extend(take_log(&mut kept));
    }
    let mut second = RunMachine::load(&log).unwrap();
    second.resume(4.0);
    let commands = second.commands(4.0);
    log.extend(take_log(&mut second));
    replay(&log).unwrap();
    (commands, second)
}

#[test]
fn a_call_that_was_approved_while_nobody_worked_on_the_run_is_made_and_not_in_doubt() {
    let (commands, machine) = gone_on(false);
    assert!(matches!(commands[..], [Command::CallTool { ticket: TicketId(1), again: false, .. }]));
    assert_eq!(machine.state().calls.tickets.open_count(), 1);
    let (commands, machine) = gone_on(true);
    assert_eq!(commands, [Command::AskModel { turn: 2 }]);
    let outcome = machine.state().calls.tickets.get(TicketId(1)).unwrap().outcome.clone();
    assert!(matches!(outcome, Some(Outcome::InDoubt { .. })));
}

#[test]
fn a_call_with_the_result_of_one_that_is_denied_is_not_made() {
    let mut machine = begun("chatty", Limits::default());
    let calls = block(&[("g", "gated", r#"{"a": 1}"#), ("c", "call", r#"{"a": "$g"}"#)]);
    assert_eq!(reply(&mut machine, &calls), [Command::AskApproval { ticket: TicketId(1) }]);
    machine.complete_call(
        TicketId(1),
        Outcome::Denied { message: "The call of 'gated' was denied: no".into(), by: None },
        3.0,
    );
    assert_eq!(machine.commands(3.0), [Command::AskModel { turn: 2 }]);
    assert!(told(&machine).contains("was denied: no") && told(&machine).contains("NotRun"), "{}", told(&machine));
}

/// What is said before its task, and what it is set up with alone.
#[test]
fn a_run_keeps_its_own_instructions_limits_and_earlier_conversation() {
    let said = |role, content: &str| Message { role, content: content.into(), short: None, parts: Vec::new() };
    let earlier = [said(Role::User, "I am Ann."), said(Role::Assistant, "Hello Ann.")];
    let own = Limits { turns: Some(1), result_bytes: 9, ..Limits::default() };
    let mut machine = machine("react", Limits::default()).limited(own.clone()).after(earlier.clone().into());
    machine.instruct("Be brief.", "p\n\nBe brief.\n");
    machine.start("work", 1.0);
    machine.commands(1.0);
    machine.instruct("Too late.", "x");
    reply(&mut machine, &act("call", r#"{"a": 1}"#));
    machine.complete_call(TicketId(1), ok(r#""more than nine bytes""#), 2.0);
    machine.commands(2.0);
    assert_eq!(machine.state().position.limit, Some(Limit::Turns));
    reply(&mut machine, FINISH);
    let log = take_log(&mut machine);

    let state = RunMachine::load(&log).unwrap();
    for one in
        [&machine, &state, &replay(&log).unwrap(), &RunMachine::load(&[Arc::new(compact(&log).unwrap())]).unwrap()]
    {
        assert_eq!(one.setup().limits, own);
        assert_eq!(one.setup().instructions.as_deref(), Some("Be brief."));
        assert_eq!(&*one.setup().prompt, "p\n\nBe brief.\n");
        assert_eq!(one.messages_before_task(), 2);
        assert_eq!(one.state().conversation.messages, machine.state().conversation.messages);
    }
    assert_eq!(&*machine.state().conversation.messages[0].content, "p\n\nBe brief.\n");
    assert_eq!(machine.state().conversation.messages[1..3], earlier);
    assert_eq!(&*machine.state().conversation.messages[3].content, "work");
    let told = &machine.state().conversation.messages[5].content;
    assert!(told.contains("more") && !told.contains("nine bytes"), "{told}");
}

#[test]
fn limits_that_are_those_of_the_setup_are_not_written_twice() {
    let mut machine = machine("react", Limits::default()).limited(Limits::default());
    machine.start("work", 1.0);
    let Event::RunStarted(start) = &take_log(&mut machine)[0].event else { unreachable!() };
    assert!(start.limits.is_none() && start.instructions.is_none() && start.messages.is_empty());
}

/// A run in its second turn.
fn second_turn() -> RunMachine {
    let mut machine = begun("react", Limits { tokens: Some(500), ..Limits::default() });
    let usage = Some(Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() });
    machine.reply(&act("call", r#"{"a": 1}"#), FinishReason::Stop, usage, 2.0);
    machine.commands(2.0);
    machine.complete_call(TicketId(1), ok("1"), 3.0);
    assert_eq!(machine.commands(3.0), [Command::AskModel { turn: 2 }]);
    machine
}

fn shortened(turn: u32, exchanges: u32, results: u32) -> Shortened {
    Shortened { turn, exchanges, results, summary: None, result_bytes: None, error: None, usage: None }
}

#[test]
fn a_history_that_is_shortened_is_a_part_of_the_run() {
    let mut machine = second_turn();
    let usage = Usage { input_tokens: 600, output_tokens: 20, ..Usage::default() };
    let first = Shortened { summary: Some("One call.".into()), usage: Some(Box::new(usage)), ..shortened(2, 1, 1) };
    machine.shorten_history(first.clone(), 4.0);
    assert_eq!(machine.commands(4.0), []);
    assert_eq!(machine.state().conversation.shortened.as_deref(), Some(&first));
    assert_eq!(machine.state().spending.usage.input_tokens, 610);
    // The summary has reached the limit of tokens, which the next question finds.
    let usage = Some(Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() });
    machine.reply(&act("call", r#"{"a": 2}"#), FinishReason::Stop, usage, 5.0);
    machine.commands(5.0);
    machine.complete_call(TicketId(2), ok("2"), 6.0);
    assert_eq!(machine.commands(6.0), [Command::AskModel { turn: 3 }]);
    assert_eq!(machine.state().position.last_turn, Some(Limit::Tokens));
    let log = take_log(&mut machine);
    assert_eq!(replay(&log).unwrap().state().conversation.shortened.as_deref(), Some(&first));
    let snapshot = Arc::new(compact(&log).unwrap());
    assert_eq!(RunMachine::load(&[snapshot]).unwrap().state().conversation.shortened.as_deref(), Some(&first));
}

#[test]
fn a_history_is_not_shown_again_in_another_turn_or_after_calls_have_started() {
    let mut machine = second_turn();
    machine.shorten_history(shortened(2, 1, 1), 4.0);
    take_log(&mut machine);
    for refused in [shortened(1, 1, 1), shortened(3, 1, 1), shortened(2, 0, 1), shortened(2, 2, 1)] {
        machine.shorten_history(refused, 4.0);
    }
    assert!(take_log(&mut machine).is_empty());
    reply(&mut machine, FINISH);
    take_log(&mut machine);
    machine.shorten_history(shortened(2, 2, 2), 5.0);
    assert!(take_log(&mut machine).is_empty());
}

#[test]
fn the_last_words_of_the_user_are_found_again() {
    let mut machine = begun("react", Limits::default());
    assert_eq!(machine.state().conversation.said_at, 0);
    reply(&mut machine, FINISH);
    machine.send("And in euros?", 2.0);
    machine.commands(2.0);
    let said_at = machine.state().conversation.said_at;
    assert_eq!(machine.state().conversation.messages[said_at].content.as_ref(), "And in euros?");
    assert_eq!(said_at, machine.state().conversation.messages.len() - 1);
    reply(&mut machine, &act("call", r#"{"a": 1}"#));
    machine.complete_call(TicketId(1), ok("1"), 3.0);
    machine.commands(3.0);
    assert_eq!(machine.state().conversation.said_at, said_at);
}
