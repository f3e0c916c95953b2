//! The wall time of a run is the time in which something works on it: not that in which people decide, or no process runs.

use crate::kit::{begun, block, ok, reply};
use callslip::protocol::FinishReason;
use callslip::run::{Command, Event, Limit, Limits, Note, Phase, Record, RunMachine, replay};
use callslip::ticket::{Outcome, TicketId};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What happens next, after so many seconds.
#[derive(Debug, Clone)]
enum Step {
    /// The model calls these tools; a number stands for one.
    Call(Vec<u8>),
    /// The model answers.
    Answer,
    /// A call ends.
    Complete,
    /// Somebody approves or answers a call.
    Allow,
    /// Somebody denies a call, or says that there is no result.
    Refuse,
    /// The user says something.
    Say,
    /// The process ends.
    Kill,
    /// Another process goes on.
    Resume,
}

fn steps() -> impl Strategy<Value = Vec<(f64, Step)>> {
    let step = prop_oneof![
        3 => vec(0..4u8, 1..4).prop_map(Step::Call),
        1 => Just(Step::Answer),
        4 => Just(Step::Complete),
        4 => Just(Step::Allow),
        2 => Just(Step::Refuse),
        1 => Just(Step::Say),
        2 => Just(Step::Kill),
        3 => Just(Step::Resume),
    ];
    vec(((0..9u8).prop_map(f64::from), step), 1..40)
}

const TOOLS: [&str; 4] = ["call", "gated", "outside", "gated_outside"];

fn is_open(machine: &RunMachine, ticket: TicketId) -> bool {
    machine.state().calls.tickets.get(ticket).is_some_and(|ticket| ticket.outcome.is_none())
}

/// A driver with a clock of its own, which knows what it works on.
struct Drive {
    machine: RunMachine,
    log: Vec<Arc<Record>>,
    now: f64,
    is_alive: bool,
    is_asking: bool,
    calls: BTreeSet<TicketId>,
    /// Seconds in which it has worked, up to the last event.
    worked: f64,
    /// Those since.
    since: f64,
}

impl Drive {
    fn new(seconds: f64) -> Self {
        let machine = begun("chatty", Limits { seconds: Some(seconds), turns: None, ..Limits::default() });
        let mut drive = Self {
            machine,
            log: Vec::new(),
            now: 1.0,
            is_alive: true,
            is_asking: true,
            calls: BTreeSet::new(),
            worked: 0.0,
            since: 0.0,
        };
        drive.log.extend(drive.machine.take_records());
        drive
    }

    fn works(&self) -> bool {
        self.is_alive && (self.is_asking || !self.calls.is_empty())
    }

    fn finished(&self) -> bool {
        self.machine.state().position.ending.is_some()
    }

    fn wait(&mut self, seconds: f64) {
        self.now += seconds;
        if self.works() {
            self.since += seconds;
        }
    }

    /// Takes up what follows from an input, and compares what is counted.
    fn follow(&mut self) {
        let commands = self.machine.commands(self.now);
        let records = self.machine.take_records();
        if !records.is_empty() {
            self.worked += std::mem::take(&mut self.since);
        }
        self.log.extend(records);
        self.is_asking &= self.machine.state().position.phase == Phase::Asking;
        self.calls.retain(|ticket| is_open(&self.machine, *ticket));
        if self.is_alive {
            for command in commands {
                match command {
                    Command::AskModel { .. } => self.is_asking = true,
                    Command::CallTool { ticket, .. } => drop(self.calls.insert(ticket)),
                    _ => {}
                }
            }
        }
        if self.finished() {
            return;
        }
        let state = self.machine.state();
        let counted = self.now - state.spending.started_at - state.spending.paused;
        assert!((counted - self.worked).abs() < 1e-6, "counted {counted}, worked {}: {:?}", self.worked, self.log);
        if self.is_alive {
            assert_eq!(self.machine.deadline().is_some(), self.works(), "{:?}", self.log);
        }
    }

    fn step(&mut self, step: &Step) {
        let (now, machine) = (self.now, &mut self.machine);
        let first = |which: &dyn Fn(TicketId) -> bool| {
            let tickets = machine.state().calls.tickets.iter().map(|ticket| ticket.id);
            tickets.filter(|ticket| is_open(machine, *ticket)).find(|ticket| which(*ticket))
        };
        let approving = first(&|ticket| machine.awaits_approval(ticket));
        let answering = first(&|ticket| machine.awaits_result(ticket));
        match step {
            Step::Call(tools) if self.is_asking && self.is_alive => {
                let named =
                    tools.iter().enumerate().map(|(place, tool)| (format!("c{place}"), TOOLS[usize::from(*tool)]));
                let argument = format!(r#"{{"a": {now}}}"#);
                let named: Vec<_> = named.collect();
                let calls: Vec<_> = named.iter().map(|(id, tool)| (id.as_str(), *tool, argument.as_str())).collect();
                self.is_asking = false;
                machine.reply(&block(&calls), FinishReason::Stop, None, now);
            }
            Step::Answer if self.is_asking && self.is_alive => {
                self.is_asking = false;
                machine.reply("done", FinishReason::Stop, None, now);
            }
            Step::Complete if self.is_alive && !self.calls.is_empty() => {
                let ticket = self.calls.pop_first().unwrap();
                machine.complete_call(ticket, ok(r#""a result""#), now);
            }
            Step::Allow => match (approving, answering) {
                (Some(ticket), _) => machine.approve(ticket, None, None, now),
                (None, Some(ticket)) => machine.answer(ticket, ok("7"), &[], Some("ann"), now),
                _ => return,
            },
            Step::Refuse => match (answering, approving) {
                (Some(ticket), _) => {
                    let outcome = Outcome::Error { message: "it is full".to_owned(), transient: false };
                    machine.answer(ticket, outcome, &[], None, now);
                }
                (None, Some(ticket)) => machine.deny(ticket, "", None, now),
                _ => return,
            },
            Step::Say => machine.send("more", now),
            Step::Kill if self.is_alive => {
                // What was done since the last event is lost, and so is its time.
                self.machine = RunMachine::load(&self.log).unwrap();
                (self.is_alive, self.is_asking, self.since) = (false, false, 0.0);
                self.calls.clear();
                return;
            }
            Step::Resume if !self.is_alive => {
                self.is_alive = true;
                machine.resume(now);
            }
            _ => return,
        }
        self.follow();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::of(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn time_counts_in_which_something_works(steps in steps()) {
        let mut drive = Drive::new(1e9);
        for (seconds, step) in &steps {
            drive.wait(*seconds);
            drive.step(step);
            if drive.finished() {
                break;
            }
        }
        prop_assert!(replay(&drive.log).is_ok(), "{:?}", replay(&drive.log).err());
    }

    #[test]
    fn a_run_ends_when_it_has_worked_for_its_time(steps in steps()) {
        let limit = 20.0;
        let mut drive = Drive::new(limit);
        for (seconds, step) in &steps {
            let left = drive.machine.deadline().filter(|_| drive.works()).map(|deadline| deadline - drive.now);
            if let Some(left) = left.filter(|left| left <= seconds) {
                drive.wait(left);
                prop_assert!((drive.worked + drive.since - limit).abs() < 1e-6);
                drive.machine.time_out(drive.now - 0.001);
                prop_assert!(drive.machine.take_records().is_empty());
                drive.machine.time_out(drive.now);
                drive.log.extend(drive.machine.take_records());
                let is_end = |record: &Arc<Record>| matches!(&record.event, Event::Noted { note: Note::LastTurn(Limit::Seconds) });
                prop_assert!(drive.log.iter().any(is_end));
                break;
            }
            drive.wait(*seconds);
            drive.step(step);
            if drive.finished() {
                break;
            }
        }
        prop_assert!(replay(&drive.log).is_ok(), "{:?}", replay(&drive.log).err());
    }
}

#[test]
fn a_wait_below_the_run_is_noted_once_and_replayed() {
    let mut machine = begun("chatty", Limits { seconds: Some(5.0), ..Limits::default() });
    reply(&mut machine, &block(&[("c", "call", r#"{"a": 1}"#)]));
    assert_eq!(machine.deadline(), Some(6.0));
    machine.pause(2.5, 4.0);
    machine.pause(2.5, 4.0);
    assert_eq!(machine.deadline(), Some(7.5));
    machine.time_out(7.0);
    machine.complete_call(TicketId(1), ok("1"), 7.25);
    let log = machine.take_records();
    let notes = log.iter().filter(
        |record| matches!(record.event, Event::Noted { note: Note::Paused(seconds) } if (seconds - 1.5).abs() < 1e-9),
    );
    assert_eq!(notes.count(), 1);
    assert_eq!(replay(&log).unwrap().deadline(), Some(7.5));
    assert_eq!(RunMachine::load(&log).unwrap().deadline(), Some(7.5));
}
