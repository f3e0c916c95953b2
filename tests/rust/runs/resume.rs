//! A run is its log: folding, cutting, resuming and replaying logs of runs that were driven at random.

use crate::random_run::{Kind, RandomRun, setup};
use callslip::protocol::FinishReason;
use callslip::run::event::VERSION;
use callslip::run::{Command, Event, Note, Record, RunMachine, RunState, Snapshot, StopReason, compact, replay};
use callslip::ticket::{Outcome, TicketId, TicketKind};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) fn kinds() -> impl Strategy<Value = Kind> {
    let kinds = (any::<u8>(), any::<u8>(), 1..12_u32, any::<bool>(), any::<bool>());
    kinds.prop_map(|(protocol, options, steps, seconds, shared)| Kind { protocol, options, steps, seconds, shared })
}

pub(crate) fn choices() -> impl Strategy<Value = Vec<(u8, u8)>> {
    prop::collection::vec(any::<(u8, u8)>(), 0..40)
}

pub(crate) fn run(kind: Kind, choices: &[(u8, u8)]) -> RandomRun {
    let mut run = RandomRun::start(kind);
    for (choice, more) in choices {
        run.happen(*choice, *more);
    }
    run
}

/// Written and read again: what a process gets that has only the log.
pub(crate) fn reread(record: &Record) -> Arc<Record> {
    let text = serde_json::to_string(record).unwrap();
    let read: Record = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    Arc::new(read)
}

fn fold(kind: Kind, records: &[Arc<Record>]) -> RunState {
    let protocol = Arc::clone(&setup(kind).protocol);
    let mut state = RunState::default();
    for record in records {
        state.apply(&record.event, record.at, &*protocol);
    }
    state
}

pub(crate) fn text(state: &RunState) -> String {
    serde_json::to_string(&Snapshot::new(state.clone()).unwrap()).unwrap()
}

/// Every ticket's outcome, the first that the log has for it.
fn outcomes(records: &[Arc<Record>]) -> BTreeMap<TicketId, String> {
    let mut outcomes = BTreeMap::new();
    for record in records {
        if let Event::TicketCompleted { ticket, outcome, .. } = &record.event {
            outcomes.entry(*ticket).or_insert_with(|| serde_json::to_string(outcome).unwrap());
        }
    }
    outcomes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::of(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_fold_of_a_prefix_and_the_rest_is_the_fold_of_all(kind in kinds(), choices in choices(), cut in any::<prop::sample::Index>()) {
        let run = run(kind, &choices);
        let records: Vec<_> = run.log.iter().map(|record| reread(record)).collect();
        let whole = fold(kind, &records);
        prop_assert_eq!(text(&whole), text(run.machine.state()));
        let (head, tail) = records.split_at(1 + cut.index(records.len()));
        // The fold of the prefix may be written down and read again, as compaction does.
        let stored: Snapshot = serde_json::from_str(&text(&fold(kind, head))).unwrap();
        let Event::RunStarted(start) = &head[0].event else { panic!("expected a log from its beginning") };
        let compacted = Event::Compacted {
            start: start.clone(), hash: String::new(), sum: stored.sum(), state: Box::new(stored),
        };
        let mut state = RunState::default();
        state.apply(&compacted, head.last().unwrap().at, &*setup(kind).protocol);
        for record in tail {
            state.apply(&record.event, record.at, &*setup(kind).protocol);
        }
        prop_assert_eq!(text(&state), text(&whole));
    }

    #[test]
    fn replaying_a_log_gives_the_same_log(kind in kinds(), choices in choices(), cut in any::<prop::sample::Index>()) {
        let run = run(kind, &choices);
        let records: Vec<_> = run.log.iter().map(|record| reread(record)).collect();
        let replayed = replay(&records);
        prop_assert!(replayed.is_ok(), "{}", replayed.unwrap_err());
        prop_assert_eq!(text(replayed.unwrap().state()), text(run.machine.state()));
        let cut = replay(&records[..=cut.index(records.len())]);
        prop_assert!(cut.is_ok(), "{}", cut.unwrap_err());
    }

    #[test]
    fn a_log_that_is_cut_anywhere_can_be_resumed_and_nothing_done_is_done_again(
        kind in kinds(), choices in choices(), more in choices(), cut in any::<prop::sample::Index>()
    ) {
        let before = run(kind, &choices);
        let head: Vec<_> = before.log[..=cut.index(before.log.len())].iter().map(|record| reread(record)).collect();
        let was_over = matches!(head.last().unwrap().event, Event::RunFinished { .. });
        let done = outcomes(&head);
        let answered: BTreeSet<u32> = head.iter().filter_map(|record| match record.event {
            Event::ModelReplied { turn, .. } => Some(turn),
            _ => None,
        }).collect();
        let mut run = RandomRun::resume_as(head.clone(), 1e6, Some(kind));
        let resumed = run.log.len() > head.len();
        for (choice, more) in &more {
            run.happen(*choice, *more);
        }
        // Whatever happens, it can be brought to an end.
        for _ in 0..200 {
            run.happen(20, 15);
        }
        prop_assert!(run.finished() || was_over);
        if resumed || before.finished() && before.log.len() == head.len() {
            prop_assert_eq!(run.machine.state().calls.tickets.open_count(), 0);
        }
        for (ticket, outcome) in &done {
            prop_assert!(run.made.iter().all(|(made, _)| made != ticket), "{} was made again", ticket);
            prop_assert_eq!(&outcomes(&run.log)[ticket], outcome);
        }
        prop_assert!(run.asked.iter().all(|turn| !answered.contains(turn)));
        prop_assert!(run.log.iter().enumerate().all(|(position, record)| record.seq == position as u64));
        let replayed = replay(&run.log);
        // A cut in the middle of what one input led to is no log that a run can have.
        if before.log.len() == head.len() {
            prop_assert!(replayed.is_ok(), "{}", replayed.unwrap_err());
        }
    }

    #[test]
    fn a_compacted_log_goes_on_as_the_whole_one(kind in kinds(), choices in choices(), more in choices()) {
        let whole = run(kind, &choices);
        let snapshot = reread(&compact(&whole.log).unwrap());
        prop_assert_eq!(snapshot.seq + 1, whole.log.len() as u64);
        let mut short = RandomRun::resume_as(vec![snapshot], 1e6, Some(kind));
        let mut long = RandomRun::resume_as(whole.log.clone(), 1e6, Some(kind));
        for (choice, more) in &more {
            short.happen(*choice, *more);
            long.happen(*choice, *more);
        }
        let texts = |records: &[Arc<Record>]| -> Vec<String> {
            records.iter().map(|record| serde_json::to_string(record).unwrap()).collect()
        };
        prop_assert_eq!(texts(&short.log[1..]), texts(&long.log[whole.log.len()..]));
        prop_assert_eq!(text(short.machine.state()), text(long.machine.state()));
        prop_assert!(replay(&short.log).is_err());
    }

    #[test]
    fn calls_under_way_are_treated_as_their_tools_say(kind in kinds(), choices in choices()) {
        let before = run(kind, &choices);
        let open: Vec<TicketId> = before.calls.clone();
        let tool = |ticket: &TicketId| before.machine.state().calls.tickets.get(*ticket).unwrap().tool.to_string();
        let asking = before.machine.state().position.phase == callslip::run::Phase::Asking;
        let after = RandomRun::resume(before.log.clone(), 1e6);
        if before.finished() {
            return Ok(());
        }
        for ticket in &open {
            let made = after.made.iter().find(|(made, _)| made == ticket);
            let early = asking && before.machine.state().calls.tickets.get(*ticket).unwrap().turn == before.machine.state().position.turn;
            let outcome = after.machine.state().calls.tickets.get(*ticket).unwrap().outcome.as_ref();
            match tool(ticket).as_str() {
                _ if early => prop_assert!(matches!(outcome, Some(Outcome::Cancelled))),
                "once" | "gated" | "script" => {
                    let in_doubt = matches!(outcome, Some(Outcome::InDoubt { .. }));
                    prop_assert!(in_doubt);
                }
                _ if outcome.is_some() => prop_assert!(after.finished() || made.is_none()),
                _ => prop_assert_eq!(made, Some(&(*ticket, true))),
            }
        }
    }
}

#[test]
fn random_runs_come_to_all_of_it() {
    let mut random = 7_u32;
    let mut byte = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random.to_be_bytes()[0]
    };
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for _ in 0..800 {
        let shared = byte() < 128;
        let kind = Kind { protocol: byte(), options: byte(), steps: 11, seconds: byte() < 128, shared };
        let choices: Vec<(u8, u8)> = (0..40).map(|_| (byte(), byte())).collect();
        let run = run(kind, &choices);
        let mut over = false;
        for record in &run.log {
            let what = match &record.event {
                Event::UserSaid { .. } if over => "a message after the end",
                Event::UserSaid { .. } => "a message",
                Event::Approved { at_rest: true, .. } => "an approval that nobody attends to",
                Event::Approved { .. } => "an approval",
                Event::Noted { note: Note::Exhausted(_) } => "a shared limit",
                Event::TicketOpened(opened) if opened.detached => "an agent",
                Event::TicketOpened(opened) if opened.kind == TicketKind::Task => "a task",
                Event::TicketOpened(opened) if !opened.needs.is_empty() => "a reference",
                Event::TicketCompleted { outcome: Outcome::Denied { .. }, .. } => "a refusal",
                Event::TicketCompleted { outcome, spent: Some(_), .. } if outcome.is_cancelled() => "a run given up",
                Event::TicketCompleted { spent: Some(_), .. } => "the end of a run",
                Event::ToolAttemptFailed(failed) if failed.wait.is_none() => "the last attempt at a call",
                Event::ToolAttemptFailed(_) => "an attempt at a call",
                _ => "anything else",
            };
            *seen.entry(what).or_default() += 1;
            over = matches!(record.event, Event::RunFinished { .. });
        }
    }
    assert_eq!(seen.len(), 14, "{seen:?}");
    assert!(seen.values().all(|times| *times > 2), "{seen:?}");
}

#[test]
fn time_between_two_processes_does_not_count() {
    let kind = Kind { protocol: 0, options: 0, steps: 9, seconds: true, shared: false };
    let run = RandomRun::start(kind);
    let deadline = run.machine.deadline().unwrap();
    let resumed = RandomRun::resume(run.log.clone(), run.now + 5000.0);
    assert_eq!(resumed.machine.deadline(), Some(deadline + 5000.0));
}

#[test]
fn a_run_whose_model_failed_or_that_was_cancelled_goes_on_and_one_at_a_limit_does_not() {
    let kind = Kind { protocol: 0, options: 1, steps: 1, seconds: false, shared: false };
    for reason in [StopReason::ModelError, StopReason::Cancelled] {
        let mut run = RandomRun::start(kind);
        match reason {
            StopReason::Cancelled => run.machine.cancel(1001.0),
            _ => run.machine.model_failed("ConnectionError", 1001.0),
        }
        run.log.extend(run.machine.take_records());
        assert_eq!(run.machine.state().position.ending.as_ref().unwrap().reason, reason);
        let mut again = RandomRun::resume(run.log, 1002.0);
        assert_eq!(again.asked, [1]);
        assert!(matches!(again.log.last().unwrap().event, Event::Noted { note: Note::Resumed }));
        again.happen(20, 15);
        assert_eq!(again.machine.state().position.ending.as_ref().unwrap().reason, StopReason::Finished);
        assert!(replay(&again.log).is_ok());
    }
    let mut run = RandomRun::start(kind);
    while !run.finished() {
        run.happen(20, 0);
    }
    assert_eq!(run.machine.state().position.ending.as_ref().unwrap().reason, StopReason::Limit);
    let length = run.log.len();
    assert_eq!(RandomRun::resume(run.log, 1e6).log.len(), length);
}

#[test]
fn a_replay_names_the_first_event_that_differs() {
    let kind = Kind { protocol: 0, options: 0, steps: 9, seconds: false, shared: false };
    let mut run = RandomRun::start(kind);
    run.happen(21, 0);
    let text = serde_json::to_string(&*run.log[2]).unwrap();
    let mut log = run.log.clone();
    log[2] =
        Arc::new(serde_json::from_str(&text.replace(r#"\"action\": \"once\""#, r#"\"action\": \"look\""#)).unwrap());
    assert_ne!(serde_json::to_string(&*log[2]).unwrap(), text);
    let error = replay(&log).unwrap_err().to_string();
    assert!(error.starts_with("event 3 differs: the log has {"), "{error}");
}

#[test]
fn logs_that_are_none_are_refused() {
    let run = RandomRun::start(Kind { protocol: 0, options: 0, steps: 9, seconds: false, shared: false });
    let refused = |records: &[Arc<Record>]| RunMachine::load(records).unwrap_err().to_string();
    assert!(refused(&[]).contains("empty"));
    assert!(refused(&run.log[1..]).contains("first events are missing"));
    assert!(refused(&[run.log[0].clone(), run.log[0].clone()]).contains("event 0 where event 1 belongs"));
    let mut called = RandomRun::start(Kind { protocol: 0, options: 0, steps: 9, seconds: false, shared: false });
    called.happen(21, 0);
    let log: Vec<Arc<Record>> = called
        .log
        .iter()
        .map(|record| serde_json::to_string(&**record).unwrap().replace(r#""ticket":1"#, r#""ticket":3"#))
        .map(|line| Arc::new(serde_json::from_str(&line).unwrap()))
        .collect();
    assert_eq!(refused(&log), "event 4 can't follow those before it: the log was changed");
    let own = format!(r#""version":{VERSION}"#);
    let newer = serde_json::to_string(&*run.log[0]).unwrap().replace(&own, r#""version":99"#);
    assert!(refused(&[Arc::new(serde_json::from_str(&newer).unwrap())]).contains("version 99"));
}

fn kept_log(name: &str) -> Vec<String> {
    let path = format!("{}/tests/data/logs/version_1/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn logs_of_every_version_are_read_and_written_as_they_stand() {
    for (name, tickets, messages) in
        [("react", 5, 15), ("chatty", 3, 5), ("ticket", 1, 11), ("failed", 0, 2), ("compacted", 5, 15)]
    {
        let lines = kept_log(name);
        let records: Vec<Arc<Record>> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        for (line, record) in lines.iter().zip(&records) {
            assert_eq!(&serde_json::to_string(record).unwrap(), line, "{name}");
        }
        let machine = RunMachine::load(&records).unwrap();
        assert_eq!(machine.state().calls.tickets.len(), tickets, "{name}");
        assert_eq!(machine.state().conversation.messages.len(), messages, "{name}");
        assert!(machine.state().position.ending.is_some(), "{name}");
    }
    let react: Vec<Arc<Record>> = kept_log("react").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Since version 3 a compacted run keeps the arguments of its tickets, the message of the last turn calls the
    // limit `turns`, a hint that asks ends in its question mark, and one of an unknown tool names FINISH; all else is as version 1 wrote it.
    let now = serde_json::to_value(compact(&react).unwrap()).unwrap();
    let kept = kept_log("compacted")[0].replace("of this run is reached (steps)", "of this run is reached (turns)");
    let kept = kept.replace("did you mean 'once'?.", "did you mean 'once'?");
    let finish = r#"To answer, write \"action\": \"FINISH\" with 'final_answer' and 'task_successful', and no 'args'."#;
    let kept = kept.replace(r"did you mean 'once'?\n", &format!(r"did you mean 'once'? {finish}\n"));
    let before: serde_json::Value = serde_json::from_str(&kept).unwrap();
    let [(now, arguments), (before, none)] = [now, before].map(without_arguments);
    assert_eq!((arguments, none), (5, 0));
    assert_eq!(now, before);
}

/// A compacted record without the arguments of its tickets and the sum over them, and how many had some.
fn without_arguments(mut record: serde_json::Value) -> (serde_json::Value, usize) {
    record.pointer_mut("/event/compacted").and_then(|compacted| compacted.as_object_mut()?.remove("sum")).unwrap();
    let tickets = record.pointer_mut("/event/compacted/state/tickets/tickets").unwrap().as_array_mut().unwrap();
    let removed = tickets.iter_mut().filter_map(|ticket| ticket.as_object_mut().unwrap().remove("arguments")).count();
    (record, removed)
}

/// A protocol that only the tests have: the list has it, and nothing else knows it.
#[test]
fn a_run_of_the_fourth_protocol_is_read_again_from_its_log() {
    let kind = Kind { protocol: 3, options: 0, steps: 9, seconds: false, shared: false };
    let mut machine = RunMachine::new("r".into(), "agent".into(), None, setup(kind));
    machine.start("work", 1.0);
    machine.commands(1.0);
    machine.reply(r#"{"tool": "look", "args": {"a": 1}}"#, FinishReason::Stop, None, 2.0);
    assert!(matches!(&machine.commands(2.0)[..], [Command::CallTool { tool, .. }] if &**tool == "look"));
    let seven = serde_json::value::RawValue::from_string("7".to_owned()).unwrap();
    machine.complete_call(TicketId(1), Outcome::Ok(seven.into()), 3.0);
    machine.commands(3.0);
    machine.reply(r#"{"answer": "x"}"#, FinishReason::Stop, None, 4.0);
    assert_eq!(machine.commands(4.0), [Command::Finish]);

    let log: Vec<_> = machine.take_records().iter().map(|record| reread(record)).collect();
    let start = serde_json::to_string(&log[0]).unwrap();
    assert!(start.contains(r#""protocol":{"one_line":{"read":{"#), "{start}");
    assert_eq!(text(replay(&log).unwrap().state()), text(machine.state()));
}
