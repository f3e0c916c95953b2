//! What the driver does: commands are performed, what has happened is written down, runs begin, end and go on.

use super::scope::Choice;
use super::world::{ROOT, Run, World, child_id, depth, hash, ok};
use callslip::protocol::FinishReason;
use callslip::run::{Command, Event, Parent, Phase, Record, RunMachine, StopReason};
use callslip::ticket::{Outcome, TicketId};
use std::sync::Arc;

impl World {
    pub(super) fn run(&mut self, id: &str) -> &mut Run {
        self.runs.get_mut(id).unwrap()
    }

    /// Gives an input to a run, whether or not a process works on it, and does what it says.
    pub(super) fn give(&mut self, id: &str, input: impl FnOnce(&mut RunMachine, f64)) {
        let now = self.now;
        if let Some(machine) = &mut self.run(id).machine {
            input(machine, now);
            return self.take(id);
        }
        // It is written down, and nothing is done about it.
        let mut machine = RunMachine::load(&self.runs[id].log).unwrap();
        input(&mut machine, now);
        machine.commands(now);
        self.keep(id, &mut machine);
    }

    /// Writes down what is new of a run that nobody works on.
    fn keep(&mut self, id: &str, machine: &mut RunMachine) {
        self.write(id, machine.take_records());
        self.run(id).kept = hash(machine.state());
    }

    /// Performs what a machine has to say.
    pub(super) fn take(&mut self, id: &str) {
        let now = self.now;
        let machine = self.run(id).machine.as_mut().unwrap();
        let commands = machine.commands(now);
        let (records, phase) = (machine.take_records(), machine.state().position.phase);
        self.write(id, records);
        let run = self.run(id);
        if phase != Phase::Settling {
            run.settling = false;
        }
        // The driver stops the model of a run that is over.
        run.asking = run.asking && phase != Phase::Finished;
        for command in commands {
            self.perform(id, &command);
        }
    }

    fn perform(&mut self, id: &str, command: &Command) {
        let run = self.run(id);
        match command {
            Command::AskModel { turn } => {
                let fresh = *turn > run.asked && *turn > run.answered;
                (run.asked, run.asking) = (*turn, true);
                self.check(fresh, &|| format!("{id} asks once more for turn {turn}"));
            }
            Command::CallTool { ticket, .. } | Command::StartRun { ticket, .. } => {
                let fresh = run.told.insert(*ticket) && !run.completed.contains(ticket);
                run.ever_told.insert(*ticket);
                let begun = self.runs.contains_key(&child_id(id, *ticket));
                self.check(fresh, &|| format!("{id} has {ticket} made once more"));
                match command {
                    Command::StartRun { again, .. } => {
                        self.check(*again || !begun, &|| format!("{id} begins the run of {ticket} once more"));
                        // What a run that goes on has spent counts before anything else is done.
                        if begun {
                            self.begin(id, *ticket, true);
                        } else {
                            self.run(id).beginning.insert(*ticket);
                        }
                    }
                    _ => drop(self.run(id).calls.insert(*ticket)),
                }
            }
            Command::AskApproval { ticket } => drop(run.questions.insert(*ticket)),
            Command::Settle => run.settling = true,
            Command::Cancel { ticket } => self.give_up(id, *ticket),
            Command::Finish => run.over = true,
            _ => {}
        }
    }

    fn give_up(&mut self, id: &str, ticket: TicketId) {
        let now = self.now;
        let run = self.run(id);
        let given_up = if run.tasks.remove(&ticket) {
            run.ending.insert(ticket)
        } else {
            run.calls.remove(&ticket) || run.beginning.remove(&ticket) || run.questions.remove(&ticket)
        };
        let machine = run.machine.as_mut().unwrap();
        machine.complete_call(ticket, ok("1"), now);
        let late = machine.take_records().len();
        self.check(given_up, &|| format!("{id} gives up {ticket}, which is not under way"));
        self.check(late == 0, &|| format!("{id} takes an outcome of {ticket}, which it has given up"));
    }

    /// Appends to a log.
    fn write(&mut self, id: &str, records: Vec<Arc<Record>>) {
        if !records.is_empty() {
            self.touched.insert(id.to_owned());
        }
        let given_up = self.is_given_up(id);
        for record in records {
            let run = self.run(id);
            let (seq, length) = (record.seq, run.log.len());
            let (mut is_new, mut in_doubt) = (seq == length as u64, false);
            match &record.event {
                Event::TicketCompleted { ticket, outcome, .. } => {
                    is_new &= run.completed.insert(*ticket);
                    in_doubt = outcome.word() == "in_doubt" && !run.ever_told.contains(ticket);
                }
                Event::TicketOpened(opened) => {
                    is_new &= !run.completed.contains(&opened.ticket);
                    run.uncounted += usize::from(given_up);
                }
                Event::ModelReplied { turn, .. } => {
                    is_new &= *turn > run.answered;
                    run.answered = *turn;
                }
                _ => {}
            }
            run.log.push(record);
            self.check(is_new, &|| format!("{id} writes its event {seq} once more"));
            self.check(!in_doubt, &|| format!("{id} is in doubt of a call that nobody was told to make: event {seq}"));
        }
        if !self.known {
            self.check_limits(id);
        }
    }

    /// Whether it, or one above it, was given up and is not ended yet.
    fn is_given_up(&self, id: &str) -> bool {
        let Some((above, ticket)) = id.rsplit_once('.') else { return false };
        let ending = &self.runs[above].ending;
        TicketId::parse(ticket).is_some_and(|ticket| ending.contains(&ticket)) || self.is_given_up(above)
    }

    fn check_limits(&self, id: &str) {
        for (above, run) in &self.runs {
            let Some(machine) = &run.machine else { continue };
            let is_above = id == above || id.starts_with(&format!("{above}."));
            let limits = &machine.setup().limits;
            let within = |count: usize, limit: Option<u32>| limit.is_none_or(|limit| count <= limit as usize);
            let below = self.runs.iter().filter(|(id, _)| id.starts_with(above.as_str()));
            let uncounted: usize = below.map(|(_, run)| run.uncounted).sum();
            let kept = within(self.tickets_below(above) - uncounted, limits.tickets)
                && within(self.tasks_below(above), limits.runs);
            self.check(!is_above || kept, &|| format!("more was opened below {above} than its limits allow"));
        }
    }

    /// The events of a run and of all below it.
    fn events_below(&self, id: &str) -> impl Iterator<Item = &Event> {
        let below = format!("{id}.");
        let runs = self.runs.iter().filter(move |(other, _)| *other == id || other.starts_with(&below));
        runs.flat_map(|(_, run)| &run.log).map(|record| &record.event)
    }

    pub(super) fn tickets_below(&self, id: &str) -> usize {
        self.events_below(id).filter(|event| matches!(event, Event::TicketOpened(_))).count()
    }

    pub(super) fn tasks_below(&self, id: &str) -> usize {
        let is_task = |event: &&Event| matches!(event, Event::TicketOpened(opened) if opened.kind.as_str() == "task");
        self.events_below(id).filter(is_task).count()
    }

    pub(super) fn reply(&mut self, id: &str, choice: Choice) {
        self.run(id).asking = false;
        let ground = Arc::clone(&self.ground);
        let text = self.runs[id].machine.as_ref().and_then(|machine| ground.scope.text(choice, machine.state()));
        self.give(id, |machine, now| machine.reply(&text.unwrap(), FinishReason::Stop, None, now));
    }

    /// Begins the run of a task, or goes on with it.
    pub(super) fn begin(&mut self, id: &str, ticket: TicketId, again: bool) {
        let below = child_id(id, ticket);
        let levels = u32::try_from(depth(&below)).unwrap();
        let account = self.run(id).machine.as_mut().unwrap().account();
        let run = self.run(id);
        run.beginning.remove(&ticket);
        run.tasks.insert(ticket);
        if again {
            let mut machine = RunMachine::load(&self.runs[&below].log).unwrap();
            machine.join(levels, &account);
            self.run(&below).machine = Some(machine);
            self.end_children(&below);
            self.give(&below, RunMachine::resume);
        } else {
            let setup = Arc::clone(&self.ground.setups[depth(&below)]);
            let parent = Parent { run_id: id.to_owned(), ticket };
            let mut machine = RunMachine::new(below.clone(), "agent".to_owned(), Some(parent), setup);
            machine.join(levels, &account);
            self.runs.insert(below.clone(), Run { machine: Some(machine), ..Run::default() });
            self.give(&below, |machine, now| machine.start(&format!("part of {id}: {ticket}"), now));
        }
    }

    pub(super) fn tell(&mut self, id: &str, ticket: TicketId) {
        self.run(id).tasks.remove(&ticket);
        let child = self.runs[&child_id(id, ticket)].machine.as_ref().unwrap();
        let spent = child.state().spent();
        let outcome = match &child.state().position.ending {
            Some(ending) if ending.reason == StopReason::Finished => ok("1"),
            _ => Outcome::Error { message: "The agent failed.".to_owned(), transient: false },
        };
        self.give(id, |machine, now| machine.complete(ticket, outcome, &[], Some(spent), now));
    }

    pub(super) fn crash(&mut self) {
        self.down = true;
        for run in self.runs.values_mut() {
            let machine = run.machine.take();
            let kept = machine.map_or(run.kept, |machine| hash(machine.state()));
            let Run { log, completed, answered, uncounted, ever_told, .. } = std::mem::take(run);
            *run = Run { log, kept, completed, answered, uncounted, ever_told, ..Run::default() };
        }
    }

    pub(super) fn resume(&mut self) {
        self.down = false;
        let mut machine = RunMachine::load(&self.runs[ROOT].log).unwrap();
        machine.account();
        self.run(ROOT).machine = Some(machine);
        self.end_children(ROOT);
        self.give(ROOT, RunMachine::resume);
    }

    /// Ends the runs of tasks that are completed, whose process ended before that was done.
    fn end_children(&mut self, id: &str) {
        let below: Vec<String> = self.runs[id].completed.iter().map(|ticket| child_id(id, *ticket)).collect();
        for child in below.iter().filter(|child| self.runs.contains_key(*child)).cloned().collect::<Vec<_>>() {
            if self.runs[&child].machine.is_some() {
                continue;
            }
            self.give(&child, RunMachine::cancel);
            self.end_children(&child);
        }
    }

    /// What holds when nothing is left to be done.
    pub(crate) fn check_end(&self) {
        for (id, run) in &self.runs {
            let state = RunMachine::load(&run.log).unwrap();
            let open = state.state().calls.tickets.open_count();
            self.check(open == 0, &|| format!("all is over, and {id} has {open} open tickets"));
            let ended = state.state().position.phase == Phase::Finished;
            self.check(ended, &|| format!("all is over, and {id} is not"));
        }
    }
}
