//! Tasks that a run gives to others: what is refused, what is waited for, and the limits that they share.

use crate::kit::{act, begun, block, machine, ok, output, reply, take_log, told};
use callslip::protocol::FinishReason;
use callslip::run::{
    Command, Event, Limit, Limits, Note, Phase, Record, RunMachine, Setup, Spent, StopReason, Usage, replay,
};
use callslip::ticket::{Outcome, TicketId};
use std::sync::Arc;

const FINISH: &str = r#"{"thought": "t", "action": "FINISH", "final_answer": "3", "task_successful": true}"#;

fn started(commands: &[Command]) -> Vec<(u32, &str, &str)> {
    let task = |command| match command {
        &Command::StartRun { ticket, ref role, ref task, .. } => {
            Some((ticket.0, role.as_deref().unwrap_or_default(), &**task))
        }
        _ => None,
    };
    commands.iter().filter_map(task).collect()
}

#[track_caller]
fn assert_refused(machine: &mut RunMachine, text: &str, code: &str, words: &str) {
    assert_eq!(reply(machine, text), [Command::AskModel { turn: machine.state().position.turn }]);
    let records = machine.take_records();
    let violated = records.iter().find_map(|record| match &record.event {
        Event::Violated { violation, .. } => Some(violation.code.name()),
        _ => None,
    });
    assert_eq!(violated, Some(code));
    assert!(told(machine).contains(words), "{}", told(machine));
    assert_eq!(machine.state().calls.tickets.open_count(), 0);
}

#[test]
fn the_own_task_cannot_be_given_on() {
    let mut ticket = begun("ticket", Limits::default());
    let own = output(r#"{"type": "DELEGATE", "task": " the\n work "}"#);
    assert_refused(&mut ticket, &own, "self_delegation", "delegate a smaller part");
    let commands = reply(&mut ticket, &output(r#"{"type": "DELEGATE", "task": "the work, first half"}"#));
    assert_eq!(started(&commands), [(1, "", "the work, first half")]);
    let mut react = begun("react", Limits::default());
    let own = act("delegate_task", r#"{"task": "the  work"}"#);
    assert_refused(&mut react, &own, "self_delegation", "delegate a smaller part");
    assert_eq!(started(&reply(&mut react, &act("delegate_task", r#"{"task": "a part"}"#))), [(1, "", "a part")]);
}

const SPAWN_A: (&str, &str, &str) = ("a", "spawn_agent", r#"{"role": "Planner", "prompt": "plan"}"#);
const SPAWN_B: (&str, &str, &str) = ("b", "spawn_agent", r#"{"role": "Writer", "prompt": "write"}"#);

#[test]
fn agents_are_waited_for_at_the_end_of_a_block_and_must_be_known() {
    let mut machine = begun("chatty", Limits { max_violations: 9, ..Limits::default() });
    let wait = ("w", "wait_for_agents", r#"{"agent_ids": ["$a"]}"#);
    assert_refused(&mut machine, &block(&[SPAWN_A, wait, SPAWN_B]), "wait_not_last", "last call of its block");
    assert_refused(&mut machine, &block(&[wait]), "bad_reference", "spawn_agent comes first");
    let unknown = ("w", "wait_for_agents", r#"{"agent_ids": ["$c"]}"#);
    assert_refused(&mut machine, &block(&[SPAWN_A, SPAWN_B, unknown]), "bad_reference", "there are '$a', '$b'");
    let a_call = block(&[("c", "call", r#"{"a": 1}"#), unknown]);
    assert_refused(&mut machine, &a_call, "bad_reference", "spawn_agent comes first");
}

#[test]
fn all_agents_are_waited_for_and_one_that_fails_is_told_beside_the_others() {
    let mut machine = begun("chatty", Limits::default());
    // Named with and without the `$`, one of them twice.
    let wait = ("w", "wait_for_agents", r#"{"agent_ids": ["b", "$a", "a"]}"#);
    let commands = reply(&mut machine, &block(&[SPAWN_A, SPAWN_B, wait]));
    assert_eq!(started(&commands), [(1, "Planner", "plan"), (2, "Writer", "write")]);
    assert_eq!(commands.len(), 2);
    machine.complete(TicketId(1), ok(r#""a plan""#), &[], None, 3.0);
    assert_eq!(machine.commands(3.0), []);
    let failed = Outcome::Error { message: "The agent failed: LimitExceeded.".into(), transient: false };
    machine.complete(TicketId(2), failed, &[], None, 4.0);
    assert_eq!(machine.commands(4.0), [Command::AskModel { turn: 2 }]);
    assert!(
        told(&machine).contains(
            r#"wait_for_agents (w): [{"agent_id":"b","role":"Writer","status":"error","error":"The agent failed: LimitExceeded."},{"agent_id":"a","role":"Planner","status":"ok","result":"a plan"}]"#
        ),
        "{}",
        told(&machine)
    );
    // Once more they are there at once.
    let again = block(&[("v", "wait_for_agents", r#"{"agent_ids": ["$a"]}"#)]);
    assert_eq!(reply(&mut machine, &again), [Command::AskModel { turn: 3 }]);
    assert!(told(&machine).contains(r#"[{"agent_id":"a","role":"Planner","status":"ok","result":"a plan"}]"#));
}

#[test]
fn a_call_with_the_result_of_an_agent_waits_for_it() {
    for fails in [false, true] {
        let mut machine = begun("chatty", Limits::default());
        assert_eq!(reply(&mut machine, &block(&[SPAWN_A])).len(), 2);
        let commands = reply(&mut machine, &block(&[("c", "call", r#"{"a": ["$a"]}"#)]));
        assert_eq!(commands, []);
        let outcome = if fails { Outcome::Error { message: "no".into(), transient: false } } else { ok(r#"{"x": 1}"#) };
        machine.complete(TicketId(1), outcome, &[], None, 3.0);
        let commands = machine.commands(3.0);
        if fails {
            assert_eq!(commands, [Command::AskModel { turn: 3 }]);
            assert!(told(&machine).contains("NotRun: it uses the result of call 'a', which failed."));
        } else {
            assert!(matches!(&commands[..], [Command::CallTool { ticket: TicketId(2), arguments, .. }]
                if arguments.to_json() == r#"{"a":[{"x":1}]}"#));
        }
    }
}

#[test]
fn the_last_turn_tells_the_results_of_agents_that_were_never_waited_for() {
    let limits = Limits { turns: Some(2), ..Limits::default() };
    let mut machine = begun("chatty", limits);
    reply(&mut machine, &block(&[SPAWN_A, SPAWN_B]));
    assert!(!told(&machine).contains("a plan"));
    machine.complete(TicketId(1), ok(r#""a plan""#), &[], None, 3.0);
    machine.complete(TicketId(2), ok(r#""a text""#), &[], None, 3.0);
    assert_eq!(machine.commands(3.0), []);
    let waits_for_one = block(&[("w", "wait_for_agents", r#"{"agent_ids": ["b"]}"#)]);
    assert_eq!(reply(&mut machine, &waits_for_one), [Command::AskModel { turn: 3 }]);
    assert_eq!(machine.state().position.last_turn, Some(Limit::Turns));
    let told = told(&machine);
    assert_eq!((told.matches("a plan").count(), told.matches("a text").count()), (1, 1), "{told}");
}

#[test]
fn a_task_that_needs_approval_starts_only_then() {
    let mut machine = begun("react", Limits::default());
    let ask = |task| act("expert", &format!(r#"{{"task": "{task}"}}"#));
    assert_eq!(reply(&mut machine, &ask("one")), [Command::AskApproval { ticket: TicketId(1) }]);
    assert!(machine.awaits_approval(TicketId(1)));
    machine.approve(TicketId(2), None, None, 3.0);
    assert_eq!(machine.commands(3.0), []);
    machine.approve(TicketId(1), None, None, 3.0);
    assert_eq!(started(&machine.commands(3.0)), [(1, "", "one")]);
    machine.approve(TicketId(1), None, None, 3.0);
    assert_eq!(machine.commands(3.0), []);
    machine.complete(TicketId(1), ok("1"), &[], None, 4.0);
    assert_eq!(machine.commands(4.0), [Command::AskModel { turn: 2 }]);
    assert_eq!(reply(&mut machine, &ask("two")), [Command::AskApproval { ticket: TicketId(2) }]);
    machine.complete_call(
        TicketId(2),
        Outcome::Denied { message: "The call of 'expert' was denied".into(), by: None },
        5.0,
    );
    assert_eq!(machine.commands(5.0), [Command::AskModel { turn: 3 }]);
    assert!(told(&machine).contains("was denied"));
}

/// A run below another, of which it is the only one.
fn below(above: &mut RunMachine, limits: Limits) -> RunMachine {
    let mut child = machine("react", limits);
    child.join(1, &above.account());
    child.start("part", 1.0);
    child.commands(1.0);
    child
}

#[test]
fn runs_and_tickets_are_counted_over_the_tree() {
    let limits = Limits { runs: Some(2), tickets: Some(3), ..Limits::default() };
    let delegate = |part| act("delegate_task", &format!(r#"{{"task": "{part}"}}"#));
    let mut root = begun("react", limits);
    assert_eq!(started(&reply(&mut root, &delegate("a"))).len(), 1);
    let mut child = below(&mut root, Limits::default());
    assert_eq!(started(&reply(&mut child, &delegate("b"))).len(), 1);
    let mut grandchild = below(&mut child, Limits::default());
    // The third run is one too many, the third ticket is not.
    let mut sibling = below(&mut child, Limits::default());
    assert_eq!(reply(&mut sibling, &delegate("c")), [Command::AskModel { turn: 2 }]);
    assert_eq!(sibling.state().position.last_turn, Some(Limit::Runs));
    assert!(matches!(&reply(&mut grandchild, &act("call", r#"{"a": 1}"#))[..], [Command::CallTool { .. }]));
    grandchild.complete_call(TicketId(1), ok("1"), 3.0);
    grandchild.commands(3.0);
    assert_eq!(reply(&mut grandchild, &act("call", r#"{"a": 2}"#)), [Command::AskModel { turn: 3 }]);
    assert_eq!(grandchild.state().position.last_turn, Some(Limit::Tickets));
    reply(&mut grandchild, FINISH);
    assert_eq!(grandchild.state().position.ending.as_ref().unwrap().reason, StopReason::Limit);
    let log = take_log(&mut grandchild);
    let exhausted =
        log.iter().filter(|record| matches!(record.event, Event::Noted { note: Note::Exhausted(Limit::Tickets) }));
    assert_eq!(exhausted.count(), 1);
    // On its own it would have had both limits to itself: its log says that others had not left them.
    assert_eq!(replay(&log).unwrap().state().position.phase, Phase::Finished);
}

#[test]
fn a_run_counts_what_those_below_it_have_spent() {
    let limits = Limits { tickets: Some(4), runs: Some(3), tokens: Some(100), ..Limits::default() };
    let mut machine = begun("ticket", limits);
    // Its own replies are counted too, or the limit would end it.
    let own = Usage { output_tokens: 1, ..Usage::default() };
    machine.reply(&output(r#"{"type": "DELEGATE", "task": "a"}"#), FinishReason::Stop, Some(own), 2.0);
    machine.commands(2.0);
    let mut usage = Usage { input_tokens: 20, output_tokens: 5, ..Usage::default() };
    let spent = Spent { usage, tickets: 2, runs: 1 };
    machine.complete(TicketId(1), ok("1"), &[], Some(spent), 3.0);
    assert_eq!(machine.commands(3.0), [Command::AskModel { turn: 2 }]);
    usage += own;
    assert_eq!(machine.state().spent(), Spent { usage, tickets: 3, runs: 2 });
    reply(&mut machine, &output(r#"{"type": "DELEGATE", "task": "b"}"#));
    let usage = Usage { input_tokens: 75, ..Usage::default() };
    machine.complete(TicketId(2), ok("1"), &[], Some(Spent { usage, ..Spent::default() }), 4.0);
    machine.commands(4.0);
    assert_eq!(machine.state().position.last_turn, Some(Limit::Tokens));
    assert!(replay(&take_log(&mut machine)).is_ok());
}

#[test]
fn what_a_run_has_spent_that_is_given_up_stands_in_the_log_of_the_one_above() {
    let mut root = begun("react", Limits { tickets: Some(2), ..Limits::default() });
    reply(&mut root, &act("delegate_task", r#"{"task": "a"}"#));
    let mut child = below(&mut root, Limits::default());
    let usage = Usage { input_tokens: 7, ..Usage::default() };
    child.reply(&act("call", r#"{"a": 1}"#), FinishReason::Stop, Some(usage), 2.0);
    assert_eq!(root.state().spent().tickets, 1);
    root.cancel(3.0);
    assert_eq!(root.state().spent(), Spent { usage, tickets: 2, runs: 1 });
    let log = take_log(&mut root);
    replay(&log).unwrap();
    // So it counts in the next process too.
    let mut again = RunMachine::load(&log).unwrap();
    again.account();
    again.resume(4.0);
    assert_eq!(again.commands(4.0), [Command::AskModel { turn: 2 }]);
    assert_eq!(reply(&mut again, &act("call", r#"{"a": 1}"#)), [Command::AskModel { turn: 3 }]);
    assert_eq!(again.state().position.last_turn, Some(Limit::Tickets));
}

#[test]
fn a_log_that_is_cut_after_a_reply_whose_calls_were_not_let_start_early_can_be_read() {
    let mut root = begun("react", Limits { tickets: Some(0), ..Limits::default() });
    let setup = Setup { early_stop: false, ..machine("chatty", Limits::default()).setup().clone() };
    let mut child = RunMachine::new("r.T1".into(), "agent".into(), None, Arc::new(setup));
    child.join(1, &root.account());
    child.start("part", 1.0);
    for byte in block(&[("a", "look", r#"{"a": 1}"#), ("b", "call", r#"{"a": 1}"#)]).bytes() {
        child.push(&[byte], 2.0);
    }
    child.end_reply(FinishReason::Stop, None, 2.0);
    let log = take_log(&mut child);
    let exhausted = |record: &&Arc<Record>| matches!(record.event, Event::Noted { note: Note::Exhausted(_) });
    assert_eq!(log.iter().filter(exhausted).count(), 2);
    for end in 1..=log.len() {
        assert!(RunMachine::load(&log[..end]).is_ok(), "cut at {end}");
    }
    replay(&log).unwrap();
}
