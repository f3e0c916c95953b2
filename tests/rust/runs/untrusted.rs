//! Untrusted results: which tickets say so, what inherits it, and that every way of reading a log keeps it.

use crate::kit::{act, begun, block, ok, reply, take_log};
use crate::random_run::{Kind, RandomRun};
use crate::resume::{choices, kinds, reread, run};
use callslip::run::{Command, Event, Limits, Parent, Record, RunMachine, Setup, Spent, compact, replay};
use callslip::ticket::{Outcome, TicketId, TicketKind};
use callslip::tool::agent_tools::{background, delegate};
use callslip::tool::{ToolSet, ToolSpec};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The tickets by the flags that the log has for them.
fn flags(log: &[Arc<Record>]) -> BTreeMap<TicketId, bool> {
    let mut flags = BTreeMap::new();
    for record in log {
        match &record.event {
            Event::TicketOpened(opened) => drop(flags.insert(opened.ticket, opened.untrusted)),
            Event::ArgumentsFilled { ticket, untrusted, .. } | Event::TicketCompleted { ticket, untrusted, .. } => {
                *flags.entry(*ticket).or_default() |= untrusted;
            }
            _ => {}
        }
    }
    flags
}

fn of_state(machine: &RunMachine) -> BTreeMap<TicketId, bool> {
    machine.state().calls.tickets.iter().map(|ticket| (ticket.id, ticket.untrusted)).collect()
}

fn is_of_tool(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Ok(_) | Outcome::Error { .. } | Outcome::Retry { .. })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::of(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_flag_of_a_ticket_is_that_of_the_log(kind in kinds(), choices in choices()) {
        let run = run(kind, &choices);
        let expected = flags(&run.log);
        prop_assert_eq!(&of_state(&run.machine), &expected);
        let records: Vec<Arc<Record>> = run.log.iter().map(|record| reread(record)).collect();
        prop_assert_eq!(&of_state(&replay(&records).unwrap()), &expected);
        let snapshot = reread(&compact(&records).unwrap());
        let kept = RunMachine::load(&[snapshot]).unwrap();
        prop_assert_eq!(&of_state(&kept), &expected);
        prop_assert_eq!(kept.state().conversation.untrusted, run.machine.state().conversation.untrusted);
        let resumed = RandomRun::resume(records, 1e6);
        let after = of_state(&resumed.machine);
        prop_assert!(expected.iter().all(|(ticket, flag)| after[ticket] || !flag));
        let looked = |log: &[Arc<Record>]| log.iter().any(|record| matches!(
            &record.event, Event::TicketOpened(opened) if &*opened.tool == "look"
        ));
        for ticket in run.machine.state().calls.tickets.iter() {
            let inherits = ticket.kind == TicketKind::Task || matches!(&*ticket.tool, "script" | "wait_for_agents");
            prop_assert_eq!(ticket.untrusted, &*ticket.tool == "look" || (inherits && ticket.untrusted));
        }
        if !looked(&run.log) {
            prop_assert!(!expected.values().any(|flag| *flag) && !run.machine.state().conversation.untrusted);
        }
    }

    /// In react each outcome is shown in the message after it, so that the log says what the model had read.
    #[test]
    fn tasks_and_scripts_inherit_what_was_read_before_them(options in any::<u8>(), choices in choices()) {
        let kind = Kind { protocol: 0, options, steps: 11, seconds: false, shared: false };
        let run = run(kind, &choices);
        let (mut came, mut read, mut scripts) = (false, false, false);
        let mut flags = BTreeMap::new();
        for record in &run.log {
            match &record.event {
                Event::ModelAsked { .. } => read |= came,
                Event::TicketOpened(opened) => {
                    let inherits = opened.kind == TicketKind::Task || &*opened.tool == "script";
                    prop_assert_eq!(opened.untrusted, &*opened.tool == "look" || (inherits && read));
                    flags.insert(opened.ticket, (opened.untrusted, &*opened.tool == "script"));
                }
                Event::TicketCompleted { ticket, outcome, untrusted, .. } => {
                    let (flag, is_script) = flags[ticket];
                    prop_assert!(!untrusted || (is_script && (scripts || flag || read)));
                    came |= (flag || *untrusted) && is_of_tool(outcome);
                    scripts |= is_script && (flag || *untrusted);
                }
                _ => {}
            }
        }
        prop_assert_eq!(run.machine.state().conversation.untrusted, read);
    }
}

/// A run with `page`, whose results are untrusted, `plain`, `script` and all that starts other runs.
fn machine(protocol: &str) -> RunMachine {
    let tool = |name: &str, more: &str| -> ToolSpec {
        let json = format!(
            r#"{{"name": "{name}", "description": "", "parameters": {{"type": "object",
                "properties": {{"a": {{}}}}}}{more}}}"#
        );
        serde_json::from_str(&json).unwrap()
    };
    let mut tools = vec![tool("page", r#", "untrusted": true"#), tool("plain", "")];
    tools.push(tool("script", r#", "kind": "script""#));
    let expert = r#"{"name": "expert", "description": "", "kind": "agent", "parameters":
        {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}}"#;
    tools.push(serde_json::from_str(expert).unwrap());
    match protocol {
        "chatty" => tools.extend(background(&[])),
        _ => tools.push(delegate()),
    }
    let setup = Setup::clone(begun(protocol, Limits::default()).setup());
    let setup = Setup { tools: Arc::new(ToolSet::new(tools).unwrap()), ..setup };
    let mut machine = RunMachine::new("r".into(), "agent".into(), None, Arc::new(setup));
    machine.start("the work", 1.0);
    machine.commands(1.0);
    machine
}

fn complete(machine: &mut RunMachine, ticket: u32, outcome: Outcome) {
    machine.complete(TicketId(ticket), outcome, &[], None, 3.0);
    machine.commands(3.0);
}

#[track_caller]
fn assert_untrusted(machine: &mut RunMachine, expected: &[u32]) {
    let found: Vec<u32> = machine.state().calls.tickets.iter().filter(|it| it.untrusted).map(|it| it.id.0).collect();
    assert_eq!(found, expected);
    let log = take_log(machine);
    let again = replay(&log).unwrap();
    assert_eq!(of_state(&again), of_state(machine));
    machine_is_stored_as_it_is(&log);
}

fn machine_is_stored_as_it_is(log: &[Arc<Record>]) {
    for record in log {
        reread(record);
    }
}

#[test]
fn what_a_model_writes_after_an_untrusted_result_is_no_origin_of_trust() {
    let mut react = machine("react");
    reply(&mut react, &act("plain", "{}"));
    complete(&mut react, 1, ok("1"));
    reply(&mut react, &act("delegate_task", r#"{"task": "before"}"#));
    complete(&mut react, 2, ok("2"));
    reply(&mut react, &act("script", r#"{"a": 1}"#));
    complete(&mut react, 3, ok("3"));
    reply(&mut react, &act("page", "{}"));
    complete(&mut react, 4, ok("4"));
    reply(&mut react, &act("plain", r#"{"a": 2}"#));
    complete(&mut react, 5, ok("5"));
    reply(&mut react, &act("delegate_task", r#"{"task": "after"}"#));
    complete(&mut react, 6, ok("6"));
    reply(&mut react, &act("script", r#"{"a": 2}"#));
    complete(&mut react, 7, ok("7"));
    assert_untrusted(&mut react, &[4, 6, 7]);
}

#[test]
fn a_result_that_a_task_or_a_script_refers_to_is_read_by_it() {
    let mut chatty = machine("chatty");
    let calls = [
        ("a", "page", "{}"),
        ("b", "plain", r#"{"a": "$a"}"#),
        ("c", "expert", r#"{"task": "$a"}"#),
        ("d", "expert", r#"{"task": "t"}"#),
        ("e", "script", r#"{"a": "$a"}"#),
    ];
    reply(&mut chatty, &block(&calls));
    for ticket in 1..=5 {
        complete(&mut chatty, ticket, ok("\"text\""));
    }
    assert_untrusted(&mut chatty, &[1, 3, 5]);
}

#[test]
fn a_child_that_has_read_one_makes_the_ticket_untrusted_and_whoever_waits_for_it() {
    let mut chatty = machine("chatty");
    let spawned = ("a", "spawn_agent", r#"{"role": "Planner", "prompt": "plan"}"#);
    let waits = ("w", "wait_for_agents", r#"{"agent_ids": ["$a"]}"#);
    reply(&mut chatty, &block(&[spawned, ("b", "expert", r#"{"task": "t"}"#), waits]));
    chatty.read_untrusted(TicketId(1));
    chatty.complete(TicketId(1), ok("1"), &[], Some(Spent::default()), 3.0);
    complete(&mut chatty, 2, ok("2"));
    assert_untrusted(&mut chatty, &[1, 3]);
}

#[test]
fn a_run_that_is_begun_with_words_written_after_one_has_read_it() {
    let mut above = machine("react");
    reply(&mut above, &act("page", "{}"));
    complete(&mut above, 1, ok("1"));
    let commands = reply(&mut above, &act("delegate_task", r#"{"task": "after"}"#));
    assert!(matches!(commands[..], [Command::StartRun { ticket: TicketId(2), .. }]));
    let parent = Parent { run_id: "r".into(), ticket: TicketId(2) };
    let setup = Arc::new(Setup::clone(above.setup()));
    let mut child = RunMachine::new("r.T2".into(), "agent".into(), Some(parent), setup);
    child.inherit(&mut above);
    child.start("after", 1.0);
    child.commands(1.0);
    reply(&mut child, &act("script", "{}"));
    complete(&mut child, 1, ok("1"));
    assert_untrusted(&mut child, &[1]);
    assert!(child.state().conversation.untrusted);
}

#[test]
fn the_words_of_a_person_or_the_runtime_are_no_untrusted_result() {
    let denied = Outcome::Denied { message: "no".into(), by: None };
    for (outcome, read) in [(denied, false), (Outcome::InDoubt { message: "?".into() }, false), (ok("1"), true)] {
        let mut react = machine("react");
        reply(&mut react, &act("page", "{}"));
        complete(&mut react, 1, outcome);
        assert_eq!(react.state().conversation.untrusted, read);
    }
}
