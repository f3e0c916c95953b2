//! Runs of scripts: an interpreter asks for calls, receives each outcome, and a wrong call is refused alone.

use crate::kit::{machine, ok, reply, take_log};
use crate::resume::{reread, text};
use callslip::codes::Code;
use callslip::protocol::{Protocol, ProtocolKind, Script};
use callslip::run::command::OnLimit;
use callslip::run::{
    Command, Event, InputError, Limit, Limits, Parent, Phase, Record, RunMachine, ScriptOutcome, Setup, StopReason,
    compact, replay,
};
use callslip::ticket::{Outcome, TicketId, TicketKind};
use callslip::tool::{AgentLevel, Level, ToolSet, ToolSpec};
use std::sync::Arc;

/// What scripts are set up with: the tools of the kit, and `free` (which may be made again).
pub(crate) fn setup(limits: Limits) -> Setup {
    let kit = machine("react", limits);
    let free = r#"{"name": "free", "description": "", "effect": "idempotent", "parameters": {"type": "object"}}"#;
    let free: ToolSpec = serde_json::from_str(free).unwrap();
    let tools: Vec<ToolSpec> = kit.setup().tools.iter().cloned().chain([free]).collect();
    Setup {
        protocol: Arc::new(Script { engine: "stub 1".to_owned(), ..Script::default() }),
        prompt: "".into(),
        tools: Arc::new(ToolSet::new(tools).unwrap()),
        on_limit: OnLimit::Raise,
        early_start: false,
        ..kit.setup().clone()
    }
}

pub(crate) fn begun(limits: Limits) -> RunMachine {
    begun_with(setup(limits), None)
}

fn begun_with(setup: Setup, parent: Option<Parent>) -> RunMachine {
    let mut run = RunMachine::new("r.T1".into(), "agent/script".into(), parent, Arc::new(setup));
    run.start("pay(1)", 1.0);
    assert_eq!(run.commands(1.0), [Command::AskModel { turn: 1 }]);
    run
}

/// A reply with these calls: tool and arguments.
pub(crate) fn calls(calls: &[(&str, &str)]) -> String {
    let rows = calls.iter().enumerate().map(|(line, (tool, arguments))| {
        format!(r#"{{"tool": "{tool}", "arguments": {arguments}, "line": {}}}"#, line + 1)
    });
    format!(r#"{{"calls": [{}]}}"#, rows.collect::<Vec<_>>().join(", "))
}

const END: &str = r#"{"end": {"status": "ok"}}"#;

/// The tickets whose calls are to be made.
pub(crate) fn made(commands: &[Command]) -> Vec<u32> {
    let ticket = |command: &Command| match command {
        Command::CallTool { ticket, .. } => Some(ticket.0),
        _ => None,
    };
    commands.iter().filter_map(ticket).collect()
}

fn complete(run: &mut RunMachine, ticket: u32, outcome: Outcome) -> Vec<Command> {
    run.complete_call(TicketId(ticket), outcome, 3.0);
    run.commands(3.0)
}

fn failed(message: &str) -> Outcome {
    Outcome::Error { message: message.to_owned(), transient: false }
}

/// The outcomes so far: the number of the call, and its text or the code of what is wrong.
pub(crate) fn outcomes(run: &RunMachine) -> Vec<(usize, String)> {
    let said = |outcome: ScriptOutcome<'_>| match outcome {
        ScriptOutcome::Ended(ticket) => ticket.outcome.as_ref().unwrap().text().to_owned(),
        ScriptOutcome::Refused(refused) => refused.code.to_string(),
    };
    run.state().script_outcomes(0).map(|(number, outcome)| (number, said(outcome))).collect()
}

/// How many outcomes the interpreter knew at each turn.
fn told(run: &RunMachine) -> Vec<usize> {
    run.state().calls.script.as_ref().unwrap().steps().iter().map(|step| step.told).collect()
}

fn ending(run: &RunMachine) -> (StopReason, Option<Limit>) {
    let position = &run.state().position;
    (position.ending.as_ref().unwrap().reason, position.limit)
}

/// A log says all: it replays to the same run, folds to the same state, and a snapshot keeps it.
pub(crate) fn assert_is_kept(run: &mut RunMachine) {
    let log: Vec<Arc<Record>> = take_log(run);
    assert_eq!(text(replay(&log).unwrap().state()), text(run.state()));
    assert_eq!(text(RunMachine::load(&log).unwrap().state()), text(run.state()));
    let kept = RunMachine::load(&[reread(&compact(&log).unwrap())]).unwrap();
    assert_eq!(text(kept.state()), text(run.state()));
    assert_eq!(outcomes(&kept), outcomes(run));
}

#[test]
fn it_is_in_no_list() {
    assert!(ProtocolKind::all().all(|kind| kind.name != "script"));
    assert!(!ProtocolKind::names().contains("script"));
    assert!(ProtocolKind::find("script").is_some());
    assert!(Script::default().delegation(&[]).is_empty() && !Script::default().answers_in_text());
}

#[test]
fn one_call_that_awaits_a_person_holds_up_no_other() {
    let mut run = begun(Limits::default());
    assert_eq!(made(&reply(&mut run, &calls(&[("gated", r#"{"a": 1}"#), ("free", r#"{"n": 1}"#)]))), [2]);
    for n in 2..40 {
        // Nothing else is to come soon, so there is no time to wait.
        let turn = n;
        assert_eq!(complete(&mut run, n, ok(&n.to_string())), [Command::AskModel { turn }]);
        let commands = reply(&mut run, &calls(&[("free", &format!(r#"{{"n": {n}}}"#))]));
        assert_eq!(made(&commands), [n + 1]);
    }
    assert_eq!(complete(&mut run, 40, ok("40")), [Command::AskModel { turn: 40 }]);
    // The rest of the script waits for the person alone.
    assert!(reply(&mut run, &calls(&[])).is_empty());
    assert_eq!((run.state().position.phase, run.under_way()), (Phase::Calling, Some(Vec::new())));
    run.approve(TicketId(1), None, None, 4.0);
    assert_eq!(made(&run.commands(4.0)), [1]);
    assert_eq!(complete(&mut run, 1, ok("1")), [Command::AskModel { turn: 41 }]);
    assert_eq!(reply(&mut run, END), [Command::Finish]);
    assert_eq!(outcomes(&run).last().unwrap(), &(0, "1".to_owned()));
    assert_is_kept(&mut run);
}

#[test]
fn outcomes_are_told_in_the_order_of_the_log_and_those_of_one_moment_together() {
    let mut run = begun(Limits::default());
    let three = calls(&[("free", r#"{"n": 1}"#), ("free", r#"{"n": 2}"#), ("free", r#"{"n": 3}"#)]);
    assert_eq!(made(&reply(&mut run, &three)), [1, 2, 3]);
    assert_eq!(complete(&mut run, 3, ok("3")), [Command::Settle]);
    assert!(complete(&mut run, 1, ok("1")).is_empty());
    run.end_grace(3.5);
    assert_eq!(run.commands(3.5), [Command::AskModel { turn: 2 }]);
    assert!(complete(&mut run, 2, ok("2")).is_empty());
    assert_eq!(told(&run), [0, 2]);
    assert_eq!(reply(&mut run, &calls(&[])), [Command::AskModel { turn: 3 }]);
    assert_eq!(told(&run), [0, 2, 3]);
    let expected = [(2, "3"), (0, "1"), (1, "2")].map(|(number, text)| (number, text.to_owned()));
    assert_eq!(outcomes(&run), expected);
    assert_is_kept(&mut run);
}

#[test]
fn calls_beyond_the_room_wait_in_order() {
    let mut run = begun(Limits { open_tickets: Some(2), ..Limits::default() });
    let rows: Vec<String> = (0..50).map(|n| format!(r#"{{"n": {n}}}"#)).collect();
    let all: Vec<(&str, &str)> = rows.iter().map(|row| ("free", row.as_str())).collect();
    assert_eq!(made(&reply(&mut run, &calls(&all))), [1, 2]);
    for ticket in 1..=48 {
        let commands = complete(&mut run, ticket, ok("1"));
        assert_eq!(made(&commands), [ticket + 2]);
        assert_eq!(run.state().calls.tickets.open_count(), 2);
    }
    for ticket in run.state().calls.tickets.iter() {
        let n = ticket.arguments.as_ref().unwrap().as_object().unwrap().get("n").unwrap().to_json();
        assert_eq!(n, (ticket.id.0 - 1).to_string());
        assert_eq!(ticket.description.as_ref(), format!(r#"line {}: free {{"n":{n}}}"#, ticket.id.0));
    }
    assert_is_kept(&mut run);
}

#[test]
fn turns_do_not_count_and_a_loop_repeats_what_it_likes() {
    let mut run = begun(Limits { turns: Some(2), tokens: Some(1), max_repeats: 1, ..Limits::default() });
    for n in 1..=60 {
        assert_eq!(made(&reply(&mut run, &calls(&[("free", "{}")]))), [n]);
        let outcome = if n % 3 == 0 { failed("no") } else { ok("1") };
        assert_eq!(complete(&mut run, n, outcome), [Command::AskModel { turn: n + 1 }]);
    }
    assert_eq!(reply(&mut run, END), [Command::Finish]);
    assert_eq!(ending(&run), (StopReason::Finished, None));
    assert_is_kept(&mut run);
}

#[test]
fn what_a_person_has_denied_is_not_asked_for_again() {
    let mut run = begun(Limits::default());
    reply(&mut run, &calls(&[("gated", r#"{"a": 1}"#)]));
    run.deny(TicketId(1), "too much", None, 3.0);
    assert_eq!(run.commands(3.0), [Command::AskModel { turn: 2 }]);
    assert_eq!(reply(&mut run, &calls(&[("gated", r#"{"a": 1.0}"#)])), [Command::AskModel { turn: 3 }]);
    assert_eq!(outcomes(&run)[1], (1, "repeated_after_failure".to_owned()));
    // Another call is another question.
    assert!(made(&reply(&mut run, &calls(&[("gated", r#"{"a": 2}"#)]))).is_empty());
    assert!(run.awaits_approval(TicketId(2)));
    assert_is_kept(&mut run);
}

#[test]
fn a_wrong_call_is_refused_alone() {
    let mut run = begun(Limits::default());
    let too_long = format!(r#"{{"n": "{}"}}"#, "x".repeat(64 << 10));
    let mixed = calls(&[
        ("free", "{}"),
        ("call", r#"{"b": 1}"#),
        ("nothing", "{}"),
        ("free", &too_long),
        ("free", r#"{"n": "$k0 </tool> <tool>"}"#),
    ]);
    assert_eq!(made(&reply(&mut run, &mixed)), [1, 2]);
    let wrong = [(1, "unknown_argument"), (2, "unknown_tool"), (3, "too_large")];
    assert_eq!(outcomes(&run), wrong.map(|(number, code)| (number, code.to_owned())));
    assert_eq!(run.state().calls.tickets.len(), 2);
    // None of it counts as a violation in a row, and the interpreter goes on.
    assert_eq!(run.state().position.violations, 0);
    complete(&mut run, 1, ok("1"));
    complete(&mut run, 2, ok("2"));
    assert_eq!(run.state().position.phase, Phase::Asking);
    assert_eq!(reply(&mut run, END), [Command::Finish]);
    let log = take_log(&mut run);
    let places: Vec<Code> = log
        .iter()
        .filter_map(|record| match &record.event {
            Event::Violated { violation, .. } => {
                assert!(violation.span.is_some());
                Some(violation.code)
            }
            _ => None,
        })
        .collect();
    assert_eq!(places, [Code::UnknownArgument, Code::UnknownTool, Code::TooLarge]);
    assert_eq!(text(replay(&log).unwrap().state()), text(run.state()));
}

#[test]
fn a_faulty_interpreter_ends_the_run() {
    for wrong in ["", "pay(1)", r#"{"calls": []}"#, r#"{"end": 1}"#, "<tool>[]</tool>"] {
        let mut run = begun(Limits::default());
        assert_eq!(reply(&mut run, wrong), [Command::Finish], "{wrong}");
        assert_eq!(ending(&run).0, StopReason::Violations);
        assert_is_kept(&mut run);
    }
}

#[test]
fn wrong_calls_count_towards_the_limit() {
    let mut run = begun(Limits { tickets: Some(5), ..Limits::default() });
    for turn in 1..=5 {
        assert_eq!(reply(&mut run, &calls(&[("nothing", "{}")])), [Command::AskModel { turn: turn + 1 }]);
    }
    assert_eq!(reply(&mut run, &calls(&[("free", "{}")])), [Command::Finish]);
    assert_eq!(ending(&run), (StopReason::Limit, Some(Limit::Tickets)));
    assert!(run.state().calls.tickets.is_empty());
    assert_is_kept(&mut run);
}

#[test]
fn nothing_is_made_behind_an_outcome_in_doubt() {
    let mut run = begun(Limits { open_tickets: Some(1), ..Limits::default() });
    assert_eq!(made(&reply(&mut run, &calls(&[("call", r#"{"a": 1}"#), ("free", "{}")]))), [1]);
    let mut resumed = RunMachine::load(&take_log(&mut run)).unwrap();
    resumed.resume(9.0);
    let commands = resumed.commands(9.0);
    assert_eq!(commands, [Command::AskModel { turn: 2 }]);
    assert_eq!(outcomes(&resumed).len(), 1);
    // Not even for an interpreter that goes on.
    assert_eq!(reply(&mut resumed, &calls(&[("free", "{}")])), [Command::Finish]);
    assert_eq!(resumed.state().calls.tickets.len(), 1);
}

#[test]
fn a_call_that_waits_for_room_is_not_in_doubt_after_a_crash() {
    let mut run = begun(Limits { open_tickets: Some(1), ..Limits::default() });
    assert_eq!(made(&reply(&mut run, &calls(&[("free", "{}"), ("call", r#"{"a": 1}"#)]))), [1]);
    let mut resumed = RunMachine::load(&take_log(&mut run)).unwrap();
    resumed.resume(9.0);
    assert_eq!(made(&resumed.commands(9.0)), [1]);
    assert_eq!(made(&complete(&mut resumed, 1, ok("1"))), [2]);
}

#[test]
fn the_end_of_a_script_waits_for_what_has_begun_and_drops_the_rest() {
    let mut run = begun(Limits { open_tickets: Some(1), ..Limits::default() });
    let all = calls(&[("gated", r#"{"a": 1}"#), ("outside", r#"{"a": 1}"#), ("call", r#"{"a": 1}"#), ("free", "{}")]);
    assert_eq!(made(&reply(&mut run, &all)), [3]);
    run.deny(TicketId(1), "", None, 3.0);
    assert_eq!(run.commands(3.0), [Command::Settle]);
    run.end_grace(3.0);
    run.commands(3.0);
    reply(&mut run, END);
    assert_eq!(run.state().position.phase, Phase::Closing);
    assert_eq!(complete(&mut run, 3, ok("3")), [Command::Finish]);
    let ended: Vec<&str> = run.state().calls.tickets.iter().map(|t| t.outcome.as_ref().unwrap().word()).collect();
    assert_eq!(ended, ["denied", "cancelled", "ok"]);
    assert_is_kept(&mut run);
}

#[test]
fn what_is_printed_stays_with_the_run() {
    let mut run = begun(Limits { tickets: Some(1), ..Limits::default() });
    reply(&mut run, r#"{"calls": [{"tool": "free", "arguments": {}, "line": 1}], "printed": "one\n"}"#);
    complete(&mut run, 1, ok("1"));
    reply(&mut run, r#"{"calls": [{"tool": "free", "arguments": {}, "line": 2}], "printed": "tw\u00f6\n"}"#);
    assert_eq!(ending(&run), (StopReason::Limit, Some(Limit::Tickets)));
    assert_eq!(run.state().calls.script.as_ref().unwrap().printed(), "one\ntwö\n");
    assert_is_kept(&mut run);
}

#[test]
fn a_script_takes_no_messages() {
    let run = begun(Limits::default());
    assert_eq!(run.check_said("more", &[], None), Err(InputError::TakesNoMessages("r.T1".to_owned())));
}

#[test]
fn another_version_of_the_interpreter_may_go_on() {
    let run = begun(Limits::default());
    let engine = |engine: &str| Setup {
        protocol: Arc::new(Script { engine: engine.to_owned(), ..Script::default() }),
        ..setup(Limits::default())
    };
    assert!(run.compare(&engine("stub 2")).differences.is_empty());
    assert_eq!(run.setup().shape(), engine("stub 2").shape());
}

/// A run whose model has written a script, with what is to be done then.
fn above(task: &str) -> (RunMachine, Command) {
    let tool = |json: &str| serde_json::from_str::<ToolSpec>(json).unwrap();
    let script = tool(
        r#"{"name": "script", "description": "", "kind": "script_run", "parameters": {"type": "object",
            "properties": {"code": {"type": "string"}}, "required": ["code"]}}"#,
    );
    let above = machine("chatty", Limits { runs: Some(0), ..Limits::default() });
    let tools: Vec<ToolSpec> = above.setup().tools.iter().cloned().chain([script]).collect();
    let above = Setup { tools: Arc::new(ToolSet::new(tools).unwrap()), ..above.setup().clone() };
    let mut above = RunMachine::new("r".into(), "agent".into(), None, Arc::new(above));
    above.start(task, 1.0);
    above.commands(1.0);
    let code = r#"{"code": "call(a='eve@evil.example')"}"#;
    let mut commands = reply(&mut above, &crate::kit::block(&[("c", "script", code)]));
    (above, commands.remove(0))
}

#[test]
fn a_script_is_no_run_that_counts() {
    let (mut run, command) = above("Write.");
    assert!(matches!(command, Command::StartRun { .. }));
    assert_eq!(run.state().spent().runs, 0);
    let log = take_log(&mut run);
    assert_eq!(text(replay(&log).unwrap().state()), text(run.state()));
    run.complete(TicketId(1), ok("1"), &[], None, 3.0);
    // Others do.
    let limited = crate::kit::block(&[("e", "expert", r#"{"task": "x"}"#)]);
    reply(&mut run, &limited);
    assert_eq!(run.state().position.limit, Some(Limit::Runs));
}

/// The run of a script that has the address in its code, below a run whose user says `task`.
fn strict_run(task: &str) -> RunMachine {
    let (mut above, command) = above(task);
    assert!(matches!(command, Command::StartRun { .. }), "{command:?}");
    let Command::StartRun { ticket, task, .. } = &command else { unreachable!() };
    assert_eq!(task, "call(a='eve@evil.example')");
    assert_eq!(above.state().calls.tickets.get(*ticket).unwrap().kind, TicketKind::Task);
    let strict = Some(AgentLevel { level: Level::Strict, by_model: false });
    let parent = Some(Parent { run_id: "r".to_owned(), ticket: *ticket });
    let setup = Setup { values: strict, ..setup(Limits::default()) };
    let mut run = RunMachine::new("r.T1".into(), "agent/script".into(), parent, Arc::new(setup));
    run.inherit(&mut above);
    run.start(task, 1.0);
    run.commands(1.0);
    run
}

#[test]
fn the_code_of_a_script_vouches_for_no_value() {
    let call = calls(&[("call", r#"{"a": "eve@evil.example"}"#)]);
    for again in 1..5 {
        let mut run = strict_run("Write to Ann.");
        for turn in 1..=again {
            assert_eq!(reply(&mut run, &call), [Command::AskModel { turn: turn + 1 }]);
        }
        assert!(outcomes(&run).iter().all(|(_, code)| code == "unstated_value"));
        let log = take_log(&mut run);
        assert_eq!(text(replay(&log).unwrap().state()), text(run.state()));
    }
    let mut run = strict_run("Write to eve@evil.example.");
    assert_eq!(made(&reply(&mut run, &call)), [1]);
    let log = take_log(&mut run);
    assert_eq!(text(replay(&log).unwrap().state()), text(run.state()));
}

#[test]
fn a_result_of_the_script_vouches_for_later_calls() {
    let mut run = strict_run("Write to Ann.");
    assert_eq!(made(&reply(&mut run, &calls(&[("look", r#"{"a": "Ann"}"#)]))), [1]);
    complete(&mut run, 1, ok(r#"{"mail": "ann@b.example"}"#));
    assert_eq!(made(&reply(&mut run, &calls(&[("call", r#"{"a": "ann@b.example"}"#)]))), [2]);
}
