//! Replies in logs before version 9 are not read again: what they led to is in the log.

use crate::random_run::{Kind, RandomRun};
use crate::resume::{choices, kinds, reread, run, text};
use callslip::run::event::VERSION;
use callslip::run::{Event, Record, RunMachine, compact, read_log, replay};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// The log as an earlier version wrote it.
fn as_version(version: u32, log: &[Arc<Record>]) -> Vec<Arc<Record>> {
    let mut log: Vec<_> = log.iter().map(|record| reread(record)).collect();
    let Event::RunStarted(start) = &log[0].event else { unreachable!("a log begins with run_started") };
    let own = format!(r#""version":{},"#, start.version);
    let first = serde_json::to_string(&*log[0]).unwrap();
    assert_eq!(first.matches(&own).count(), 1);
    log[0] = Arc::new(serde_json::from_str(&first.replace(&own, &format!(r#""version":{version},"#))).unwrap());
    log
}

/// The log with replies that no version reads as the calls that it has.
fn with_other_replies(log: &[Arc<Record>]) -> Vec<Arc<Record>> {
    let mut log: Vec<Record> = log.iter().map(|record| Record::clone(record)).collect();
    for record in &mut log {
        if let Event::ModelReplied { text, .. } = &mut record.event {
            *text = "not what was read".into();
        }
    }
    log.into_iter().map(Arc::new).collect()
}

/// Whether the log ends among the calls that the end of a run cancels, before it says why the run ended.
fn ends_in_an_end(log: &[Arc<Record>]) -> bool {
    let is_cancelled =
        |event: &Event| matches!(event, Event::TicketCompleted { outcome, .. } if outcome.is_cancelled());
    let mut backwards = log.iter().rev().map(|record| &record.event).skip_while(|event| is_cancelled(event));
    log.last().is_some_and(|last| is_cancelled(&last.event))
        && matches!(backwards.next(), Some(Event::ModelReplied { .. }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::of(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_old_log_is_replayed_whatever_its_replies_are_read_as_now(
        kind in kinds(), choices in choices(), cut in any::<prop::sample::Index>()
    ) {
        let run = run(kind, &choices);
        let log = as_version(8, &run.log);
        let replayed = replay(&log);
        prop_assert!(replayed.is_ok(), "{}", replayed.unwrap_err());
        prop_assert_eq!(text(replayed.unwrap().state()), text(RunMachine::load(&log).unwrap().state()));

        let log = with_other_replies(&log);
        let replayed = replay(&log);
        prop_assert!(replayed.is_ok(), "{}", replayed.unwrap_err());
        prop_assert_eq!(text(replayed.unwrap().state()), text(RunMachine::load(&log).unwrap().state()));

        let cut = &log[..=cut.index(log.len())];
        if ends_in_an_end(cut) {
            return Ok(());
        }
        let replayed = replay(cut);
        prop_assert!(replayed.is_ok(), "{}", replayed.unwrap_err());
        prop_assert!(compact(cut).is_ok());
        RunMachine::load(cut).unwrap().resume(1e6);
    }
}

#[test]
fn replies_of_this_version_are_read_again() {
    let mut run = RandomRun::start(Kind { protocol: 0, options: 0, steps: 9, seconds: false, shared: false });
    run.happen(21, 0);
    assert!(replay(&with_other_replies(&as_version(VERSION - 1, &run.log))).is_ok());
    let error = replay(&with_other_replies(&run.log)).unwrap_err().to_string();
    assert!(error.starts_with(r#"event 3 differs: the log has {"seq":3,"at":1001.0,"event":{"moved":"#), "{error}");
}

/// What version 8 executed and a later reader refuses is in these logs.
#[test]
fn replies_that_an_earlier_version_executed_are_replayed_resumed_and_compacted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs/version_8");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let logs: Vec<_> = files.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).collect();
    assert_eq!(logs.len(), 13);
    let mut opened = 0;
    for path in logs {
        let lines: Vec<String> = std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
        let written = read_log(&lines).unwrap();
        opened += written.iter().filter(|record| matches!(record.event, Event::TicketOpened(_))).count();
        is_continued(&written, &path.display().to_string());
        // Version 7 is that of the release 0.2.0.
        for log in [as_version(7, &written), with_other_replies(&written)] {
            let replayed = replay(&log);
            assert!(replayed.is_ok(), "{}: {}", path.display(), replayed.unwrap_err());
        }
    }
    assert_eq!(opened, 159);
}

/// Every beginning that a process may have left is replayed, resumed and compacted.
fn is_continued(log: &[Arc<Record>], name: &str) {
    for end in 1..=log.len() {
        // What follows from one input has one time, and is written as a whole.
        #[expect(clippy::float_cmp, reason = "the same number is copied")]
        if log.get(end).is_some_and(|next| next.at == log[end - 1].at) {
            continue;
        }
        let head = &log[..end];
        let replayed = replay(head);
        assert!(replayed.is_ok(), "{name}, {end} events: {}", replayed.unwrap_err());
        let mut machine = RunMachine::load(head).unwrap();
        assert_eq!(text(replayed.unwrap().state()), text(machine.state()), "{name}, {end} events");
        let compacted = RunMachine::load(&[Arc::new(compact(head).unwrap())]).unwrap();
        assert_eq!(text(compacted.state()), text(machine.state()), "{name}, {end} events");
        let tickets = machine.state().calls.tickets.len();
        machine.resume(2e9);
        assert_eq!(
            machine.state().calls.tickets.len(),
            tickets,
            "{name}, {end} events: resuming makes no calls of its own"
        );
        let whole: Vec<_> = head.iter().cloned().chain(machine.take_records()).collect();
        let replayed = replay(&whole);
        assert!(replayed.is_ok(), "{name}, {end} events, resumed: {}", replayed.unwrap_err());
    }
}
