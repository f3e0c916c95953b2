//! Runs that end at their first valid move: their calls are checked and are the value, and nothing is opened.

use crate::kit::{act, block, machine, output, reply, take_log, told};
use crate::resume::{reread, text};
use callslip::codes::Code;
use callslip::protocol::{FinishReason, Move};
use callslip::run::command::OnLimit;
use callslip::run::{
    Account, Command, Comparison, Event, Limit, Limits, Phase, Record, RunMachine, Setup, Spent, StopReason, compact,
    replay,
};
use callslip::tool::{ToolSet, ToolSpec};
use std::sync::Arc;

const FINISH: &str = r#"{"thought": "t", "action": "FINISH", "final_answer": "3", "task_successful": true}"#;

fn setup(protocol: &str, limits: Limits) -> Setup {
    let add = r#"{"name": "add", "description": "", "needs_approval": true, "parameters": {"type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}}, "required": ["a"]}}"#;
    let kit = machine(protocol, limits);
    let add: ToolSpec = serde_json::from_str(add).unwrap();
    let tools: Vec<ToolSpec> = kit.setup().tools.iter().cloned().chain([add]).collect();
    Setup { ends_at_call: true, tools: Arc::new(ToolSet::new(tools).unwrap()), ..kit.setup().clone() }
}

fn begun_with(setup: Setup) -> RunMachine {
    let mut run = RunMachine::new("r".into(), "agent".into(), None, Arc::new(setup));
    run.start("the work", 1.0);
    run.commands(1.0);
    run
}

fn begun(protocol: &str) -> RunMachine {
    begun_with(setup(protocol, Limits::default()))
}

fn call(protocol: &str, arguments: &str) -> String {
    match protocol {
        "ticket" => {
            output(&format!(r#"{{"type": "CALL", "route": "add", "payload": {arguments}, "description": "d"}}"#))
        }
        "chatty" => block(&[("c", "add", arguments)]),
        _ => act("add", arguments),
    }
}

fn value(run: &RunMachine) -> String {
    run.state().position.ending.as_ref().unwrap().value.to_json()
}

fn code(log: &[Arc<Record>]) -> Vec<Code> {
    let codes = log.iter().filter_map(|record| match &record.event {
        Event::Violated { violation, .. } => Some(violation.code),
        _ => None,
    });
    codes.collect()
}

/// A log says all: it replays to the same run, each prefix of it loads, and its fold can be kept.
fn assert_is_kept(run: &RunMachine, log: &[Arc<Record>]) {
    let log: Vec<Arc<Record>> = log.iter().map(|record| reread(record)).collect();
    let replayed = replay(&log).unwrap();
    assert_eq!(text(replayed.state()), text(run.state()));
    assert_eq!(replayed.ended_at_calls(), run.ended_at_calls());
    let kept = RunMachine::load(&[reread(&compact(&log).unwrap())]).unwrap();
    assert_eq!(text(kept.state()), text(run.state()));
    assert_eq!(kept.ended_at_calls(), run.ended_at_calls());
    for end in 1..=log.len() {
        let head = &log[..end];
        replay(head).unwrap();
        let mut loaded = RunMachine::load(head).unwrap();
        let is_cut = match &head.last().unwrap().event {
            Event::ModelReplied { .. } | Event::Violated { .. } => true,
            Event::Moved { moved, .. } => matches!(moved, Move::Call { .. }),
            _ => false,
        };
        // What the reply leads to is worked out again, and only then.
        assert_eq!(!loaded.take_records().is_empty(), is_cut);
        loaded.resume(9.0);
        assert!(loaded.commands(9.0).iter().all(|command| !matches!(command, Command::CallTool { .. })));
    }
}

#[test]
fn a_call_ends_the_run_with_its_checked_arguments() {
    for (protocol, id) in [("react", ""), ("chatty", r#""id":"c","#), ("ticket", "")] {
        let mut run = begun(protocol);
        assert_eq!(reply(&mut run, &call(protocol, r#"{"a": 1}"#)), [Command::Finish], "{protocol}");
        assert_eq!(value(&run), format!(r#"[{{{id}"tool":"add","arguments":{{"a":1}}}}]"#));
        assert!(run.ended_at_calls() && run.state().calls.tickets.is_empty());
        let position = &run.state().position;
        assert_eq!((position.phase, position.ending.as_ref().unwrap().reason), (Phase::Finished, StopReason::Finished));
        let log = take_log(&mut run);
        assert!(matches!(log[log.len() - 2].event, Event::Moved { .. }));
        assert_is_kept(&run, &log);
        // It is over, and stays so.
        run.resume(3.0);
        run.cancel(3.0);
        assert!(run.commands(3.0).is_empty() && run.take_records().is_empty());
    }
}

#[test]
fn what_was_read_as_another_type_is_said() {
    let mut run = begun("react");
    reply(&mut run, &call("react", r#"{"a": "1", "b": 2}"#));
    assert_eq!(value(&run), r#"[{"tool":"add","arguments":{"a":1,"b":2},"coerced":["/a"]}]"#);
    let log = take_log(&mut run);
    assert_is_kept(&run, &log);
}

#[test]
fn several_calls_of_one_block_are_all_there() {
    let mut run = begun("chatty");
    let calls =
        block(&[("x", "add", r#"{"a": 1}"#), ("y", "look", r#"{"a": "$5 and $$x"}"#), ("z", "add", r#"{"a": 1}"#)]);
    assert_eq!(reply(&mut run, &calls), [Command::Finish]);
    assert_eq!(
        value(&run),
        concat!(
            r#"[{"id":"x","tool":"add","arguments":{"a":1}},{"id":"y","tool":"look","arguments":{"a":"$5 and $$x"}},"#,
            r#"{"id":"z","tool":"add","arguments":{"a":1}}]"#
        )
    );
    let log = take_log(&mut run);
    assert_is_kept(&run, &log);
}

#[test]
fn one_wrong_call_of_several_ends_nothing() {
    let mut run = begun("chatty");
    let calls = block(&[("x", "add", r#"{"a": 1}"#), ("y", "add", r#"{"a": "one"}"#)]);
    assert_eq!(reply(&mut run, &calls), [Command::AskModel { turn: 2 }]);
    assert!(!run.ended_at_calls());
}

#[test]
fn results_can_not_be_referred_to() {
    for arguments in [r#"{"a": "$x"}"#, r#"{"a": "$call_1"}"#, r#"{"a": ["see $x"]}"#, r#"{"a": "$y"}"#] {
        let mut run = begun("chatty");
        let commands = reply(&mut run, &block(&[("x", "look", r#"{"a": 1}"#), ("y", "look", arguments)]));
        assert_eq!(commands, [Command::AskModel { turn: 2 }], "{arguments}");
        assert!(told(&run).contains("expected a value: got a reference to the call"), "{}", told(&run));
        let log = take_log(&mut run);
        assert_eq!(code(&log), [Code::BadReference]);
        assert_is_kept(&run, &log);
    }
}

#[test]
fn a_dollar_is_written_twice_as_ever() {
    let mut run = begun("chatty");
    let calls = block(&[("x", "look", r#"{"a": 1}"#), ("y", "look", r#"{"a": ["$$x", "$$other", "$HOME"]}"#)]);
    assert_eq!(reply(&mut run, &calls), [Command::Finish]);
    assert!(value(&run).ends_with(r#""arguments":{"a":["$x","$$other","$HOME"]}}]"#), "{}", value(&run));
    let log = take_log(&mut run);
    assert_is_kept(&run, &log);
}

#[test]
fn an_answer_is_one_as_ever() {
    let mut run = begun("react");
    assert_eq!(reply(&mut run, FINISH), [Command::Finish]);
    assert_eq!(value(&run), r#""3""#);
    assert!(!run.ended_at_calls());
    let log = take_log(&mut run);
    assert_is_kept(&run, &log);
}

#[test]
fn violations_are_asked_again_until_a_call_is_valid() {
    for protocol in ["react", "chatty", "ticket"] {
        let mut run = begun(protocol);
        assert_eq!(reply(&mut run, &call(protocol, r#"{"b": 1}"#)), [Command::AskModel { turn: 2 }]);
        assert_eq!(reply(&mut run, &call(protocol, r#"{"a": "one"}"#)), [Command::AskModel { turn: 3 }]);
        assert_eq!(reply(&mut run, &call(protocol, r#"{"a": 3}"#)), [Command::Finish]);
        assert!(value(&run).contains(r#""arguments":{"a":3}"#));
        let log = take_log(&mut run);
        assert_eq!(code(&log), [Code::MissingArgument, Code::InvalidArgument]);
        assert_is_kept(&run, &log);
    }
}

#[test]
fn after_too_many_violations_there_is_no_value() {
    let limits = Limits { max_violations: 1, ..Limits::default() };
    let mut run = begun_with(setup("react", limits));
    reply(&mut run, &call("react", "{}"));
    assert_eq!(reply(&mut run, &call("react", "{}")), [Command::Finish]);
    let ending = run.state().position.ending.clone().unwrap();
    assert_eq!((ending.reason, ending.value.to_json().as_str()), (StopReason::Violations, "null"));
    assert!(!run.ended_at_calls());
    let log = take_log(&mut run);
    assert_is_kept(&run, &log);
}

#[test]
fn a_call_is_required_first_where_the_run_says_so() {
    let mut run = begun_with(Setup { call_first: true, ..setup("react", Limits::default()) });
    assert!(!run.possible_moves().finish);
    assert_eq!(reply(&mut run, FINISH), [Command::AskModel { turn: 2 }]);
    assert_eq!(reply(&mut run, &call("react", r#"{"a": 1}"#)), [Command::Finish]);
    let log = take_log(&mut run);
    assert_eq!(code(&log), [Code::CallRequired]);
    assert_is_kept(&run, &log);
}

#[test]
fn nothing_starts_while_the_reply_arrives() {
    let mut run = begun("chatty");
    let calls = block(&[("x", "look", r#"{"a": 1}"#), ("y", "look", r#"{"a": 2}"#)]);
    for byte in calls.as_bytes() {
        run.push(&[*byte], 2.0);
        assert!(run.commands(2.0).is_empty());
    }
    run.end_reply(FinishReason::Stop, None, 2.0);
    assert_eq!(run.commands(2.0), [Command::Finish]);
    let log = take_log(&mut run);
    assert!(!log.iter().any(|record| matches!(record.event, Event::TicketOpened(_))));
    assert_is_kept(&run, &log);
}

#[test]
fn tasks_are_not_delegated_by_a_move() {
    let mut run = begun("ticket");
    assert!(!run.possible_moves().delegates);
    assert_eq!(reply(&mut run, &output(r#"{"type": "DELEGATE", "task": "t"}"#)), [Command::AskModel { turn: 2 }]);
    assert_eq!(reply(&mut run, &output(r#"{"type": "AWAIT", "ticket_id": "T1"}"#)), [Command::AskModel { turn: 3 }]);
    let log = take_log(&mut run);
    assert_eq!(code(&log), [Code::NotOffered, Code::UnknownTicket]);
}

#[test]
fn a_run_that_was_left_goes_on_to_its_call() {
    let mut run = begun("react");
    reply(&mut run, &call("react", "{}"));
    let log = take_log(&mut run);
    let mut resumed = RunMachine::load(&log).unwrap();
    resumed.resume(3.0);
    assert_eq!(resumed.commands(3.0), [Command::AskModel { turn: 2 }]);
    assert_eq!(reply(&mut resumed, &call("react", r#"{"a": 1}"#)), [Command::Finish]);
    assert!(resumed.ended_at_calls());
    let whole: Vec<Arc<Record>> = log.into_iter().chain(take_log(&mut resumed)).collect();
    assert_is_kept(&resumed, &whole);
}

#[test]
fn tickets_and_runs_are_not_counted_and_turns_are() {
    let limits = Limits { tickets: Some(0), open_tickets: Some(0), runs: Some(0), ..Limits::default() };
    let account = Account::open(None, limits.clone(), Spent::default());
    let mut run = RunMachine::new("r".into(), "agent".into(), None, Arc::new(setup("chatty", limits)));
    run.join(0, &account);
    run.start("the work", 1.0);
    let calls = block(&[("x", "expert", r#"{"task": "t"}"#), ("y", "look", r#"{"a": 1}"#)]);
    run.reply(&calls, FinishReason::Stop, None, 2.0);
    assert!(run.ended_at_calls(), "{}", value(&run));
    let log = take_log(&mut run);
    assert_is_kept(&run, &log);

    for (on_limit, calls) in [(OnLimit::Answer, 2), (OnLimit::Raise, 1)] {
        let limits = Limits { turns: Some(1), ..Limits::default() };
        let mut run = begun_with(Setup { on_limit, ..setup("react", limits) });
        for _ in 0..calls {
            // In a last turn only an answer may come.
            reply(&mut run, &call("react", if calls == 1 { "{}" } else { r#"{"a": "x"}"# }));
        }
        let position = &run.state().position;
        assert_eq!(position.ending.as_ref().unwrap().reason, StopReason::Limit);
        assert_eq!(position.limit, Some(Limit::Turns));
        assert!(!run.ended_at_calls());
        let log = take_log(&mut run);
        assert_is_kept(&run, &log);
    }
}

#[test]
fn a_message_begins_the_next_move() {
    let mut run = begun("react");
    reply(&mut run, &call("react", r#"{"a": 1}"#));
    run.send("and then?", 3.0);
    assert_eq!(run.commands(3.0), [Command::AskModel { turn: 2 }]);
    assert!(!run.ended_at_calls());
    assert_eq!(reply(&mut run, FINISH), [Command::Finish]);
    assert_eq!((value(&run).as_str(), run.ended_at_calls()), (r#""3""#, false));
    run.send("again", 4.0);
    assert_eq!(reply(&mut run, &call("react", r#"{"a": 2}"#)), [Command::Finish]);
    assert!(run.ended_at_calls());
    let log = take_log(&mut run);
    assert_is_kept(&run, &log);
}

#[test]
fn it_is_written_only_where_it_is_on_and_told_apart() {
    let on = setup("react", Limits::default());
    let off = Setup { ends_at_call: false, ..on.clone() };
    let written = |setup: &Setup| serde_json::to_string(setup).unwrap();
    assert!(written(&on).contains(r#""ends_at_call":true"#) && !written(&off).contains("ends_at_call"));
    let read: Setup = serde_json::from_str(&written(&off)).unwrap();
    assert!(!read.ends_at_call);
    assert_ne!(on.shape(), off.shape());
    let found = |kept: &Setup, offered: &Setup| -> Comparison {
        let run = begun_with(kept.clone());
        run.compare(offered)
    };
    assert!(found(&on, &on).differences.is_empty());
    assert_eq!(found(&on, &off).differences.len(), 1);
    assert_eq!(found(&off, &on).differences.len(), 1);
}
