//! Log before effect: no command is returned before its events are in the store, and none once the store has refused.

use crate::kit::{act, block, machine, ok, output};
use crate::resume::text;
use callslip::live::{ClaimedRun, LiveError, LiveRun};
use callslip::protocol::FinishReason;
use callslip::run::{Command, Event, Limits, Record, RunMachine};
use callslip::store::{Durability, MemoryStore, Position, SqliteStore, Store, StoreError};
use callslip::ticket::TicketId;
use std::sync::Arc;
use std::time::Duration;

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

fn live(protocol: &str, store: &Arc<dyn Store>) -> LiveRun {
    LiveRun::new(machine(protocol, Limits::default()), Some(store), None).unwrap()
}

fn start(run: &mut LiveRun) -> Result<Vec<Command>, LiveError> {
    run.apply(1.0, |machine| machine.start("the work", 1.0)).map(|((), commands)| commands)
}

fn reply(run: &mut LiveRun, text: &str) -> Result<Vec<Command>, LiveError> {
    let input = |machine: &mut RunMachine| machine.reply(text, FinishReason::Stop, None, 2.0);
    run.apply(2.0, input).map(|((), commands)| commands)
}

fn complete(run: &mut LiveRun, ticket: TicketId) -> Result<Vec<Command>, LiveError> {
    run.apply(3.0, |machine| machine.complete_call(ticket, ok("1"), 3.0)).map(|((), commands)| commands)
}

/// Whether the events of a log ask for this command.
fn is_asked_for(command: &Command, log: &[Arc<Record>]) -> bool {
    log.iter().any(|record| match (command, &record.event) {
        (Command::AskModel { turn }, Event::ModelAsked { turn: asked, .. }) => turn == asked,
        (Command::CallTool { ticket, .. } | Command::StartRun { ticket, .. }, Event::TicketOpened(opened)) => {
            *ticket == opened.ticket
        }
        (Command::Cancel { ticket }, Event::TicketCompleted { ticket: cancelled, .. }) => ticket == cancelled,
        (Command::Settle, Event::TicketOpened(_)) | (Command::Finish, Event::RunFinished { .. }) => true,
        _ => false,
    })
}

fn json(records: &[Arc<Record>]) -> Vec<String> {
    records.iter().map(|record| serde_json::to_string(record).unwrap()).collect()
}

fn state(run: &LiveRun) -> String {
    text(run.machine().state())
}

/// A reply of each protocol with a call, and one that finishes.
fn replies(protocol: &str) -> (String, String) {
    match protocol {
        "ticket" => (
            output(r#"{"type": "CALL", "route": "call", "payload": {"a": 1}, "description": "d"}"#),
            output(r#"{"type": "RETURN", "value": 1}"#),
        ),
        "chatty" => (block(&[("c", "call", r#"{"a": 1}"#)]), "done".to_owned()),
        _ => (
            act("call", r#"{"a": 1}"#),
            r#"{"thought": "t", "action": "FINISH", "final_answer": "3", "task_successful": true}"#.to_owned(),
        ),
    }
}

#[test]
fn every_command_follows_from_events_in_the_store() {
    for protocol in ["ticket", "chatty", "react"] {
        let (call, finish) = replies(protocol);
        let store = memory();
        let mut run = live(protocol, &store);
        let check = |run: &LiveRun, commands: &[Command]| {
            let stored = store.load("r").unwrap();
            assert_eq!(json(&stored), json(run.log().records()));
            assert!(!commands.is_empty());
            for command in commands {
                assert!(is_asked_for(command, &stored), "{protocol}: {command:?}");
            }
        };
        let commands = start(&mut run).unwrap();
        check(&run, &commands);
        let commands = reply(&mut run, &call).unwrap();
        check(&run, &commands);
        let commands = complete(&mut run, TicketId(1)).unwrap();
        check(&run, &commands);
        let commands = reply(&mut run, &finish).unwrap();
        check(&run, &commands);
        assert_eq!(commands, [Command::Finish], "{protocol}");
    }
}

#[test]
fn no_command_is_returned_once_the_store_refuses() {
    let store = memory();
    let mut run = live("chatty", &store);
    start(&mut run).unwrap();
    let before = json(&store.load("r").unwrap());
    store.close().unwrap();
    let refused = reply(&mut run, &replies("chatty").0).unwrap_err();
    assert!(matches!(refused, LiveError::Store(StoreError::Closed)), "{refused}");
    let refused = complete(&mut run, TicketId(1)).unwrap_err();
    assert!(matches!(refused, LiveError::Store(StoreError::Closed)), "{refused}");
    assert!(run.has_lost_its_store());
    assert_eq!(json(&store.load("r").unwrap()), before);
}

#[test]
fn a_run_ends_when_another_driver_writes_to_it() {
    let store = memory();
    let mut run = live("chatty", &store);
    start(&mut run).unwrap();
    let next = run.log().next();
    let stranger =
        Record { seq: next, at: 2.0, event: Event::UserSaid { text: "more".into(), parts: Vec::new(), key: None } };
    store.append("r", vec![Arc::new(stranger)]).unwrap();
    let position = run.position();
    let refused = reply(&mut run, &replies("chatty").0).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "expected event {} of run r: got {next}: another driver has written to this run since it was loaded; load \
             it again",
            next + 1
        )
    );
    assert!(complete(&mut run, TicketId(1)).is_err());
    assert_eq!((run.position(), store.load("r").unwrap().len()), (position, 3));
}

#[test]
fn one_driver_claims_a_run() {
    let store = memory();
    let mut run = live("chatty", &store);
    start(&mut run).unwrap();
    assert!(matches!(ClaimedRun::claim(&store, "r", None), Err(StoreError::UnderWay { .. })));
    run.release();
    let mut other = LiveRun::open(ClaimedRun::claim(&store, "r", None).unwrap()).unwrap();
    assert!(matches!(ClaimedRun::claim(&store, "r", None), Err(StoreError::UnderWay { .. })));
    other.apply(5.0, |machine| machine.resume(5.0)).unwrap();
    drop(other);
    let late = run.reclaim(ClaimedRun::claim(&store, "r", None).unwrap()).unwrap_err();
    assert_eq!(late.to_string(), "another driver has resumed run r meanwhile: call store.run(…) to load it again");
}

#[test]
fn a_released_run_is_claimed_again() {
    let store = memory();
    let mut run = live("chatty", &store);
    start(&mut run).unwrap();
    run.release();
    assert!(!store.is_claimed("r"));
    run.reclaim(ClaimedRun::claim(&store, "r", None).unwrap()).unwrap();
    run.attend();
    reply(&mut run, &replies("chatty").0).unwrap();
    assert_eq!(json(&store.load("r").unwrap()), json(run.log().records()));
}

#[test]
fn a_run_that_is_opened_again_equals_the_one_that_was_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let file: Arc<dyn Store> = SqliteStore::open(folder.path().join("runs.sqlite"), Durability::Normal).unwrap();
    for store in [memory(), file] {
        for protocol in ["ticket", "chatty", "react"] {
            let id = format!("r-{protocol}");
            let setup = machine(protocol, Limits::default()).setup().clone();
            let machine = RunMachine::new(id.clone(), "agent".into(), None, Arc::new(setup));
            let mut run = LiveRun::new(machine, Some(&store), None).unwrap();
            start(&mut run).unwrap();
            reply(&mut run, &replies(protocol).0).unwrap();
            let position = run.position();
            assert!(position > Position::default());
            assert!(store.wait(position, Duration::from_secs(60)).unwrap());
            let (was, log) = (state(&run), json(run.log().records()));
            drop(run);
            let again = LiveRun::open(ClaimedRun::claim(&store, &id, None).unwrap()).unwrap();
            assert_eq!(state(&again), was);
            assert_eq!(json(again.log().records()), log);
        }
    }
}

#[test]
fn a_run_without_a_store_has_its_log_alone() {
    let mut run = LiveRun::new(machine("chatty", Limits::default()), None, None).unwrap();
    let commands = start(&mut run).unwrap();
    assert!(commands.iter().all(|command| is_asked_for(command, run.log().records())));
    assert_eq!(run.position(), Position::default());
    assert!(!run.has_lost_its_store());
}
