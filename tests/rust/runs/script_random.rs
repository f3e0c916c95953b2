//! Scripts at random: whatever the order of outcomes and wherever a process dies, no call is made twice that may not be,
//! and another interpreter that is fed the record asks for the same.

use crate::kit::ok;
use crate::resume::{reread, text};
use crate::script::{calls, setup};
use callslip::protocol::FinishReason;
use callslip::run::{Command, Limits, Record, RunMachine, ScriptOutcome, compact, replay};
use callslip::ticket::{Outcome, TicketId};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const TOOLS: [&str; 5] = ["free", "look", "call", "gated", "nothing"];

/// An interpreter of chains side by side: each makes its next call when the one before has ended.
struct Chains<'a> {
    tools: &'a [Vec<u8>],
    next: Vec<usize>,
    /// The chain of each call.
    asked: Vec<usize>,
    told: usize,
    begun: bool,
    /// A script computes the same only from the same outcomes in the same order.
    sum: u64,
}

impl<'a> Chains<'a> {
    fn new(tools: &'a [Vec<u8>]) -> Self {
        Self { tools, next: vec![0; tools.len()], asked: Vec::new(), told: 0, begun: false, sum: 7 }
    }

    fn step(&mut self, outcomes: &[(usize, String)]) -> String {
        let mut due: Vec<usize> = if self.begun { Vec::new() } else { (0..self.tools.len()).collect() };
        self.begun = true;
        self.told += outcomes.len();
        for (number, said) in outcomes {
            for byte in said.bytes() {
                self.sum = self.sum.wrapping_mul(31).wrapping_add(u64::from(byte));
            }
            due.push(self.asked[*number]);
        }
        let mut rows = Vec::new();
        for chain in due {
            if let Some(tool) = self.tools[chain].get(self.next[chain]) {
                self.next[chain] += 1;
                self.asked.push(chain);
                rows.push((TOOLS[usize::from(*tool) % TOOLS.len()], format!(r#"{{"a": {}}}"#, self.sum % 1000)));
            }
        }
        if self.told == self.asked.len() {
            return format!(r#"{{"end": {{"sum": {}}}}}"#, self.sum);
        }
        calls(&rows.iter().map(|(tool, arguments)| (*tool, arguments.as_str())).collect::<Vec<_>>())
    }
}

fn outcomes(run: &RunMachine) -> Vec<(usize, String)> {
    let said = |outcome: ScriptOutcome<'_>| match outcome {
        ScriptOutcome::Ended(ticket) => ticket.outcome.as_ref().unwrap().text().to_owned(),
        ScriptOutcome::Refused(refused) => refused.message.clone(),
    };
    run.state().script_outcomes(0).map(|(number, outcome)| (number, said(outcome))).collect()
}

/// Another interpreter, fed the recorded portions: it must reply as the record says, and returns what is due.
fn fed<'a>(run: &RunMachine, chains: &'a [Vec<u8>]) -> (Chains<'a>, String) {
    let (mut other, outcomes) = (Chains::new(chains), outcomes(run));
    let (mut known, mut reply) = (0, String::new());
    for step in run.state().calls.script.as_ref().unwrap().steps() {
        reply = other.step(&outcomes[known..step.told]);
        known = step.told;
        assert!(step.hash.is_empty() || step.hash == sha256(&reply));
    }
    (other, reply)
}

fn sha256(text: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(text).iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

/// The processes that work on a script, one after the other.
struct World<'a> {
    chains: &'a [Vec<u8>],
    run: RunMachine,
    engine: Option<Chains<'a>>,
    log: Vec<Arc<Record>>,
    /// The calls that this process is making.
    making: Vec<TicketId>,
    asks: bool,
    settles: bool,
    /// How often each call had its effect, and its tool.
    effects: BTreeMap<TicketId, (String, u32)>,
    now: f64,
}

impl<'a> World<'a> {
    fn new(chains: &'a [Vec<u8>], room: u32) -> Self {
        let limits = Limits { open_tickets: Some(room), ..Limits::default() };
        let run = RunMachine::new("r".into(), "agent/script".into(), None, Arc::new(setup(limits)));
        let (log, making, effects) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut world = Self { chains, run, engine: None, log, making, asks: false, settles: false, effects, now: 1.0 };
        world.run.start("code", 1.0);
        world.follow();
        world
    }

    fn follow(&mut self) {
        let commands = self.run.commands(self.now);
        self.log.extend(self.run.take_records());
        for command in commands {
            match command {
                Command::CallTool { ticket, tool, .. } => {
                    self.making.push(ticket);
                    self.effects.entry(ticket).or_insert((tool.to_string(), 0)).1 += 1;
                }
                Command::AskModel { .. } => self.asks = true,
                Command::Settle => self.settles = true,
                _ => {}
            }
        }
    }

    fn over(&self) -> bool {
        self.run.state().position.ending.is_some()
    }

    fn reply(&mut self) {
        let steps = self.run.state().calls.script.as_ref().unwrap().steps().to_vec();
        let known = steps.len().checked_sub(2).map_or(0, |before| steps[before].told);
        let text = if let Some(engine) = &mut self.engine {
            engine.step(&outcomes(&self.run)[known..steps.last().unwrap().told])
        } else {
            let (engine, reply) = fed(&self.run, self.chains);
            self.engine = Some(engine);
            reply
        };
        let in_doubt = self.run.state().script_outcomes(0).any(|(_, outcome)| {
            matches!(outcome, ScriptOutcome::Ended(ticket) if matches!(ticket.outcome, Some(Outcome::InDoubt { .. })))
        });
        let text = if in_doubt { r#"{"end": {"status": "in_doubt"}}"#.to_owned() } else { text };
        self.asks = false;
        self.run.reply(&text, FinishReason::Stop, None, self.now);
    }

    fn happen(&mut self, choice: u8, more: u8) {
        self.now += 1.0;
        let parked: Vec<TicketId> = self
            .run
            .state()
            .calls
            .tickets
            .iter()
            .map(|ticket| ticket.id)
            .filter(|id| self.run.awaits_approval(*id))
            .collect();
        match choice % 8 {
            0..=2 if self.asks => self.reply(),
            3 if !parked.is_empty() => {
                let ticket = parked[usize::from(more) % parked.len()];
                if more.is_multiple_of(3) {
                    self.run.deny(ticket, "no", None, self.now);
                } else {
                    self.run.approve(ticket, None, None, self.now);
                }
            }
            4 if self.settles => {
                self.settles = false;
                self.run.end_grace(self.now);
            }
            5 if more.is_multiple_of(4) => return self.die(more),
            _ if !self.making.is_empty() => {
                let ticket = self.making.remove(usize::from(more) % self.making.len());
                let outcome = match more % 5 {
                    0 => Outcome::Error { message: format!("no {more}"), transient: more.is_multiple_of(2) },
                    1 => Outcome::Retry { message: "again".into() },
                    _ => ok(&more.to_string()),
                };
                self.run.complete_call(ticket, outcome, self.now);
            }
            _ => {}
        }
        self.follow();
    }

    /// The process dies, and another one goes on from the log or from its fold.
    fn die(&mut self, more: u8) {
        let mut log: Vec<Arc<Record>> = self.log.iter().map(|record| reread(record)).collect();
        if more.is_multiple_of(8) {
            log = vec![reread(&compact(&log).unwrap())];
        }
        self.run = RunMachine::load(&log).unwrap();
        self.log = log;
        (self.asks, self.settles, self.engine) = (false, false, None);
        self.making.clear();
        self.run.resume(self.now);
        self.follow();
    }

    /// Lets all that is under way end.
    fn settle(&mut self) {
        for round in 0..10_000 {
            if self.over() {
                return;
            }
            self.happen([0, 3, 4, 6][round % 4], u8::try_from(round % 250).unwrap() | 1);
        }
        assert!(self.over(), "the script does not end: {:?}", self.run.state().position);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::of(1000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_script_is_its_log(
        chains in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..8), 1..6),
        room in 1..5_u32,
        choices in prop::collection::vec(any::<(u8, u8)>(), 0..120),
    ) {
        let mut world = World::new(&chains, room);
        for (choice, more) in choices {
            world.happen(choice, more);
            // Of a call that ends, nobody hears twice; and calls are made in the order in which they are asked for.
            let told: Vec<usize> = outcomes(&world.run).into_iter().map(|(number, _)| number).collect();
            let mut once = told.clone();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), told.len());
        }
        world.settle();
        for (ticket, (tool, times)) in &world.effects {
            let once = matches!(&**tool, "call" | "gated");
            prop_assert!(!once || *times <= 1, "{ticket} {tool} {times}");
        }
        // The record alone gives the same script again.
        fed_to_the_end(&world.run, &chains)?;
        let log: Vec<Arc<Record>> = world.log.iter().map(|record| reread(record)).collect();
        let loaded = RunMachine::load(&log).unwrap();
        prop_assert_eq!(text(loaded.state()), text(world.run.state()));
        if matches!(log[0].event, callslip::run::Event::RunStarted(_)) {
            let replayed = replay(&log).unwrap();
            prop_assert_eq!(text(replayed.state()), text(world.run.state()));
        }
        let kept = RunMachine::load(&[reread(&compact(&log).unwrap())]).unwrap();
        fed_to_the_end(&kept, &chains)?;
    }
}

fn fed_to_the_end(run: &RunMachine, chains: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let in_doubt = run.state().script_outcomes(0).any(|(_, outcome)| {
        matches!(outcome, ScriptOutcome::Ended(ticket) if matches!(ticket.outcome, Some(Outcome::InDoubt { .. })))
    });
    if !in_doubt {
        let (other, _) = fed(run, chains);
        prop_assert!(other.told <= run.state().script_outcomes(0).count());
    }
    Ok(())
}
