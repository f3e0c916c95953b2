//! A driver in small: a tree of runs, what is under way for each of them, and all that may happen next.

use super::scope::{Choice, Scope};
use crate::resume::text;
use callslip::run::{Phase, Record, RunMachine, RunState, Setup};
use callslip::ticket::{Outcome, TicketId};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The run above all others.
pub(super) const ROOT: &str = "r";

/// One thing that happens. Runs are named by their ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The model replies.
    Reply(String, Choice),
    /// A call ends, well or not.
    Complete(String, TicketId, bool),
    /// The grace is over.
    Settle(String),
    /// The run of a task begins.
    Begin(String, TicketId),
    /// The run of a task is over, and the one above it is told.
    Tell(String, TicketId),
    /// The run of a task that was given up is ended.
    End(String, TicketId),
    /// A person approves of a call, or refuses it.
    Decide(String, TicketId, bool),
    /// The deadline has come.
    TimeOut(String),
    /// The user says more.
    Send,
    /// A run is cancelled from outside.
    Cancel(String),
    /// A model client fails.
    Fail(String),
    /// The process ends.
    Crash,
    /// Another one goes on.
    Resume,
}

impl Step {
    /// What happens at most once on a path, and never has to.
    fn disturbance(&self) -> Option<u8> {
        match self {
            Self::Send => Some(1),
            Self::Cancel(_) => Some(2),
            Self::Fail(_) => Some(4),
            Self::Crash => Some(8),
            _ => None,
        }
    }
}

/// A due time limit is no disturbance any more: the timer will say so.
const TIMED_OUT: u8 = 16;

/// The setups of a scope, made once.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) scope: Scope,
    pub(super) setups: Vec<Arc<Setup>>,
}

impl Ground {
    pub(crate) fn new(scope: Scope) -> Arc<Self> {
        let setups = (0..scope.choices.len()).map(|depth| scope.setup(depth)).collect();
        Arc::new(Self { scope, setups })
    }
}

/// One run, and what its driver has under way for it.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// None after its process has ended, until it is gone on with.
    pub(super) machine: Option<RunMachine>,
    pub(super) log: Vec<Arc<Record>>,
    /// Of its state, while there is no machine.
    pub(super) kept: u64,
    pub(super) asking: bool,
    /// Tickets whose approval is asked for.
    pub(super) questions: BTreeSet<TicketId>,
    pub(super) settling: bool,
    pub(super) over: bool,
    pub(super) calls: BTreeSet<TicketId>,
    /// Tasks whose runs are to begin, are under way, are to be ended because they were given up.
    pub(super) beginning: BTreeSet<TicketId>,
    pub(super) tasks: BTreeSet<TicketId>,
    pub(super) ending: BTreeSet<TicketId>,
    /// By its log.
    pub(super) completed: BTreeSet<TicketId>,
    pub(super) answered: u32,
    /// Tickets that it has opened after it was given up, of which nobody knows any more.
    pub(super) uncounted: usize,
    /// What any process was told to make.
    pub(super) ever_told: BTreeSet<TicketId>,
    /// What the driver was told to make in this process, and to ask.
    pub(super) told: BTreeSet<TicketId>,
    pub(super) asked: u32,
}

impl Run {
    fn is_quiet(&self) -> bool {
        let nothing = self.calls.is_empty() && self.beginning.is_empty();
        nothing && self.tasks.is_empty() && self.ending.is_empty() && !self.asking
    }

    fn machine(&self) -> Option<&RunMachine> {
        self.machine.as_ref().filter(|machine| machine.state().position.phase != Phase::Finished)
    }
}

/// The tree of runs, as it came to be by some steps.
#[derive(Debug)]
pub(crate) struct World {
    pub(super) ground: Arc<Ground>,
    pub(super) runs: BTreeMap<String, Run>,
    pub(crate) path: Vec<Step>,
    pub(super) now: f64,
    /// What disturbances there were.
    pub(super) had: u8,
    pub(super) down: bool,
    /// Whether this has happened before, and was checked then.
    pub(super) known: bool,
    /// The runs whose logs the last step has added to.
    pub(super) touched: BTreeSet<String>,
}

pub(super) fn child_id(run: &str, ticket: TicketId) -> String {
    format!("{run}.{ticket}")
}

pub(super) fn depth(run: &str) -> usize {
    run.matches('.').count()
}

/// All of a state but the words of its transcript, which decide nothing.
pub(super) fn hash(state: &RunState) -> u64 {
    let mut state = state.clone();
    let last = state.conversation.messages.drain(..).next_back().map(|message| message.role.as_str());
    let mut hasher = DefaultHasher::new();
    (last, text(&state)).hash(&mut hasher);
    hasher.finish()
}

impl World {
    pub(crate) fn new(ground: &Arc<Ground>) -> Self {
        let ground = Arc::clone(ground);
        let mut machine = RunMachine::new(ROOT.to_owned(), "agent".to_owned(), None, Arc::clone(&ground.setups[0]));
        machine.account();
        machine.start("work", 1000.0);
        let runs = [(ROOT.to_owned(), Run { machine: Some(machine), ..Run::default() })].into();
        let mut world = Self {
            ground,
            runs,
            path: Vec::new(),
            now: 1000.0,
            had: 0,
            down: false,
            known: false,
            touched: BTreeSet::new(),
        };
        world.take(ROOT);
        world
    }

    /// The same once more, from the beginning.
    pub(crate) fn again(ground: &Arc<Ground>, path: &[Step]) -> Self {
        let mut world = Self { known: true, ..Self::new(ground) };
        for step in path {
            world.apply(step);
        }
        Self { known: false, ..world }
    }

    /// Two worlds with the same number have the same future.
    pub(crate) fn identity(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.now.to_bits(), self.had, self.down).hash(&mut hasher);
        for (id, run) in &self.runs {
            let state = run.machine.as_ref().map_or(run.kept, |machine| hash(machine.state()));
            (id, state, run.machine.is_some(), run.asking, run.settling, run.over).hash(&mut hasher);
            (&run.calls, &run.beginning, &run.tasks, &run.ending, &run.ever_told, run.uncounted).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The logs that the last step has added to.
    pub(crate) fn logs(&self) -> impl Iterator<Item = &[Arc<Record>]> {
        self.touched.iter().map(|id| &*self.runs[id].log)
    }

    /// Whether nothing is left to be done.
    pub(crate) fn is_over(&self) -> bool {
        !self.down && self.runs[ROOT].over && self.runs.values().all(Run::is_quiet)
    }

    /// What may happen next: first what has to (one of these), then what may come between.
    pub(crate) fn steps(&self) -> (Vec<Step>, Vec<Step>) {
        let mut due = Vec::new();
        let mut disturbing = vec![Step::Send];
        if self.down {
            due.push(Step::Resume);
            for (id, run) in &self.runs {
                let machine = RunMachine::load(&run.log).unwrap();
                decisions(id, &machine, &mut due);
            }
        } else {
            disturbing.push(Step::Crash);
        }
        for (id, run) in &self.runs {
            self.steps_of(id, run, &mut due, &mut disturbing);
        }
        let room = self.had.count_ones() < self.ground.scope.disturbances;
        disturbing.retain(|step| match step {
            Step::TimeOut(_) => room && self.had & TIMED_OUT == 0,
            step => room && step.disturbance().is_some_and(|once| self.had & once == 0),
        });
        (due, disturbing)
    }

    fn steps_of(&self, id: &str, run: &Run, due: &mut Vec<Step>, disturbing: &mut Vec<Step>) {
        let name = || id.to_owned();
        for ticket in &run.calls {
            due.extend([true, false].map(|well| Step::Complete(name(), *ticket, well)));
        }
        due.extend(run.beginning.iter().map(|ticket| Step::Begin(name(), *ticket)));
        due.extend(run.ending.iter().map(|ticket| Step::End(name(), *ticket)));
        let ended = run.tasks.iter().filter(|ticket| self.runs[&child_id(id, **ticket)].over);
        due.extend(ended.map(|ticket| Step::Tell(name(), *ticket)));
        let Some(machine) = run.machine() else { return };
        if run.asking {
            let scope = &self.ground.scope;
            let opened = self.tickets_below(ROOT);
            let left = scope.tickets.saturating_sub(opened);
            let runs = scope.runs.saturating_sub(1 + self.tasks_below(ROOT));
            let replies = scope.replies(depth(id), machine.state(), left, runs);
            due.extend(replies.into_iter().map(|choice| Step::Reply(name(), choice)));
            disturbing.push(Step::Fail(name()));
        }
        if run.settling {
            due.push(Step::Settle(name()));
        }
        decisions(id, machine, due);
        if let Some(deadline) = machine.deadline() {
            let timer = if deadline <= self.now { due } else { &mut *disturbing };
            timer.push(Step::TimeOut(name()));
        }
        disturbing.push(Step::Cancel(name()));
    }

    pub(crate) fn apply(&mut self, step: &Step) {
        self.path.push(step.clone());
        self.touched.clear();
        self.had |= step.disturbance().unwrap_or_default();
        match step {
            Step::Reply(id, choice) => self.reply(id, *choice),
            Step::Complete(id, ticket, well) => {
                self.run(id).calls.remove(ticket);
                let outcome =
                    if *well { ok("1") } else { Outcome::Error { message: "Error.".to_owned(), transient: false } };
                self.give(id, |machine, now| machine.complete_call(*ticket, outcome, now));
            }
            Step::Settle(id) => {
                self.run(id).settling = false;
                self.give(id, RunMachine::end_grace);
            }
            Step::Begin(id, ticket) => self.begin(id, *ticket, false),
            Step::Tell(id, ticket) => self.tell(id, *ticket),
            Step::End(id, ticket) => {
                self.run(id).ending.remove(ticket);
                self.give(&child_id(id, *ticket), RunMachine::cancel);
            }
            Step::Decide(id, ticket, true) => self.give(id, |machine, now| machine.approve(*ticket, None, None, now)),
            Step::Decide(id, ticket, false) => {
                let outcome = Outcome::Denied { message: "denied".to_owned(), by: None };
                self.give(id, |machine, now| machine.complete_call(*ticket, outcome, now));
            }
            Step::TimeOut(id) => {
                let deadline = self.runs[id].machine.as_ref().and_then(RunMachine::deadline).unwrap();
                if deadline > self.now {
                    self.now = deadline;
                    self.had |= TIMED_OUT;
                }
                self.give(id, RunMachine::time_out);
            }
            Step::Send => {
                self.run(ROOT).over = false;
                self.give(ROOT, |machine, now| machine.send("more", now));
            }
            Step::Cancel(id) => self.give(id, RunMachine::cancel),
            Step::Fail(id) => {
                self.run(id).asking = false;
                self.give(id, |machine, now| machine.model_failed("ConnectionError", now));
            }
            Step::Crash => self.crash(),
            Step::Resume => self.resume(),
        }
    }

    /// Fails, and says how it came to that.
    pub(crate) fn check(&self, holds: bool, what: &dyn Fn() -> String) {
        assert!(holds, "{}", self.told(&what()));
    }

    fn told(&self, what: &str) -> String {
        let mut text = format!("{what}\nscope {:?}\n", self.ground.scope.name);
        for step in &self.path {
            let _ = writeln!(text, "  {step:?}");
        }
        for (id, run) in &self.runs {
            let _ = writeln!(text, "log of {id}:");
            for record in run.log.iter().skip(1) {
                let _ = writeln!(text, "  {} {}", record.seq, serde_json::to_string(&record.event).unwrap());
            }
            let phase = run.machine.as_ref().map(|machine| machine.state().position.phase);
            let _ = writeln!(text, "  {phase:?}, asking {}, settling {}", run.asking, run.settling);
        }
        text
    }
}

fn decisions(id: &str, machine: &RunMachine, steps: &mut Vec<Step>) {
    for ticket in machine.state().calls.tickets.iter().filter(|ticket| ticket.parked) {
        steps.extend([true, false].map(|approved| Step::Decide(id.to_owned(), ticket.id, approved)));
    }
}

pub(super) fn ok(json: &str) -> Outcome {
    Outcome::Ok(RawValue::from_string(json.to_owned()).unwrap().into())
}
