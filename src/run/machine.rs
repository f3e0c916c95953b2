//! The machine: inputs become events, events become state, state says what the driver is to do next.
//!
//! It has no clock and does no I/O: every input brings the time with it.

use super::account::{Account, Spent};
use super::command::{OnLimit, OnOpenTickets, Setup};
use super::event::{Event, FILLED, Note, Opened, Parent, Record, Start, StopReason, VERSION};
use super::limits::Limit;
use super::plan::{self, Planned, Refusal};
use super::state::{OpenCall, Phase, RunState};
use super::stream::Stream;
use crate::protocol::Move;
use crate::reply::violation::{Code, Violation};
use crate::ticket::{Outcome, TicketId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the runs around this one have spent: they share limits.
#[derive(Debug)]
pub(super) enum Tree {
    /// There are none.
    Alone,
    /// As it is now.
    Live(Arc<Account>),
    /// As it was, by its log.
    Recorded(Recorded),
}

/// What a log says of the runs around its own, by the positions of the events that say so.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// The limits that were found reached.
    pub(super) limits: BTreeMap<u64, Limit>,
    /// What runs had spent that were given up.
    pub(super) spent: BTreeMap<u64, Spent>,
    /// Where arguments were filled, which versions before 3 did not write down.
    pub(super) filled: BTreeSet<u64>,
    /// The position after the log's last event.
    pub(super) end: u64,
}

/// One run under way.
#[derive(Debug)]
pub struct Machine {
    pub(super) start: Start,
    pub(super) setup: Arc<Setup>,
    pub(super) state: RunState,
    pub(super) tree: Tree,
    /// Events not yet taken for the log.
    fresh: Vec<Arc<Record>>,
    pub(super) seq: u64,
    pub(super) stream: Option<Stream>,
    /// The turn that the driver was last told to ask, to settle.
    pub(super) asked: u32,
    pub(super) settled: u32,
    /// Open tickets whose calls the driver was not told to make yet.
    pub(super) pending: BTreeSet<TicketId>,
    /// Tickets whose calls the driver was told to make.
    pub(super) started: BTreeSet<TicketId>,
    /// Tickets whose calls a process that ended may have made.
    pub(super) again: BTreeSet<TicketId>,
    pub(super) cancelled: Vec<TicketId>,
    pub(super) ended: bool,
    /// Whether its commands are carried out: a run that was only loaded may be told something all the same.
    pub(super) attended: bool,
}

impl Machine {
    /// A run that has not begun: unique among runs, of an agent of that name, started in a call of another run.
    pub fn new(run_id: String, agent: String, parent: Option<Parent>, setup: Arc<Setup>) -> Self {
        let task = Arc::default();
        Self::of(Start { version: VERSION, run_id, agent, parent, depth: 0, task, setup })
    }

    /// A run that has not begun, and begins so.
    pub(super) fn of(start: Start) -> Self {
        Self {
            setup: Arc::clone(&start.setup),
            start,
            state: RunState::default(),
            tree: Tree::Alone,
            fresh: Vec::new(),
            seq: 0,
            stream: None,
            asked: 0,
            settled: 0,
            pending: BTreeSet::new(),
            started: BTreeSet::new(),
            again: BTreeSet::new(),
            cancelled: Vec::new(),
            ended: false,
            attended: true,
        }
    }

    /// Says that so many runs are above it, and what it draws from.
    pub fn join(&mut self, depth: u32, above: &Arc<Account>) {
        self.start.depth = depth;
        let account = Account::open(Some(Arc::clone(above)), self.setup.limits.clone(), self.state.spent());
        self.tree = Tree::Live(account);
    }

    /// The account that the runs below it draw from.
    pub fn account(&mut self) -> Arc<Account> {
        if let Tree::Live(account) = &self.tree {
            return Arc::clone(account);
        }
        let account = Account::open(None, self.setup.limits.clone(), self.state.spent());
        self.tree = Tree::Live(Arc::clone(&account));
        account
    }

    /// How many runs are above it.
    pub fn depth(&self) -> u32 {
        self.start.depth
    }

    /// Its id.
    pub fn run_id(&self) -> &str {
        &self.start.run_id
    }

    /// The fold of its events.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// What it was set up with.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The events since the last call of this, which belong in the log before their commands are carried out.
    pub fn take_records(&mut self) -> Vec<Arc<Record>> {
        std::mem::take(&mut self.fresh)
    }

    /// Events that were taken and do not stand in the log yet.
    pub(super) fn put_back(&mut self, records: Vec<Arc<Record>>) {
        self.fresh = records;
    }

    /// Whether there are events that were not taken yet.
    pub(super) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Unix seconds at which the driver is to say `timed_out`.
    pub fn deadline(&self) -> Option<f64> {
        let seconds = self.setup.limits.seconds?;
        // The last turn after a time limit is bounded too: by the same time once more.
        let times = if self.state.last_turn == Some(Limit::Seconds) { 2.0 } else { 1.0 };
        Some(self.state.timed_from() + times * seconds)
    }

    /// Begins the run.
    pub fn start(&mut self, task: &str, now: f64) {
        if self.state.turn > 0 || self.state.phase != Phase::Idle {
            return;
        }
        self.start.task = task.into();
        self.emit(Event::RunStarted(Box::new(self.start.clone())), now);
        self.ask(now);
    }

    /// The user says more. A run that was over goes on with it; one that is under way is told with its next message.
    pub fn send(&mut self, text: &str, now: f64) {
        if self.state.messages.is_empty() {
            return;
        }
        let was_over = self.state.phase == Phase::Finished;
        self.emit(Event::UserSaid { text: text.into() }, now);
        if was_over {
            (self.ended, self.attended) = (false, true);
            (self.asked, self.settled) = (self.state.turn, self.state.turn);
        }
        self.go_on(now);
    }

    /// A person approves of a call, which is made now, or once the run is gone on with.
    pub fn approve(&mut self, ticket: TicketId, now: f64) {
        // Before version 3 approval was asked for before references were filled.
        if self.awaits_approval(ticket) || (self.is_parked(ticket) && matches!(self.tree, Tree::Recorded(_))) {
            self.emit(Event::Approved { ticket, at_rest: !self.attended }, now);
        }
    }

    /// Somebody carries its commands out once more.
    pub fn attend(&mut self) {
        self.attended = true;
    }

    /// Nobody carries its commands out any more.
    pub fn leave(&mut self) {
        self.attended = false;
    }

    /// Whether a call waits for a person's approval with the arguments that it is made with.
    pub fn awaits_approval(&self, ticket: TicketId) -> bool {
        self.is_parked(ticket) && self.state.open_calls.get(&ticket).is_some_and(|call| call.is_final())
    }

    /// Whether a call is not made before a person approves.
    pub(super) fn is_parked(&self, ticket: TicketId) -> bool {
        self.state.tickets.get(ticket).is_some_and(|ticket| ticket.parked)
    }

    pub(super) fn enact(&mut self, moved: Move, now: f64) {
        if let Some(limit) = self.state.last_turn
            && !matches!(moved, Move::Finish { .. })
        {
            let error = format!("the limit is reached ({limit}), and the last turn gave no answer but another move");
            return self.finish(StopReason::Limit, Some(error), now);
        }
        let refused = match &moved {
            Move::Finish { .. } => self.answer_allowed(),
            Move::Call { .. } | Move::Delegate { .. } => match self.plan(&moved, now) {
                Ok(planned) => {
                    let turn = self.state.turn;
                    self.emit(Event::Moved { turn, moved }, now);
                    for call in planned {
                        self.open(call, now);
                    }
                    return self.go_on(now);
                }
                Err(Refusal::Violation(violation)) => Err(violation),
                Err(Refusal::Limit(limit)) => return self.limit(limit, now),
            },
            Move::Await { ticket_id } => self.ticket(ticket_id).map(|_| ()),
            Move::Load { ticket_id } => self.loadable(ticket_id),
        };
        match refused {
            Ok(()) => {
                let turn = self.state.turn;
                self.emit(Event::Moved { turn, moved }, now);
                self.go_on(now);
            }
            Err(violation) => self.violated(violation, now),
        }
    }

    /// What a move opens, once it is sure that all of it may be opened.
    fn plan(&mut self, moved: &Move, now: f64) -> Result<Vec<Planned>, Refusal> {
        let planned = match moved {
            Move::Delegate { task } => vec![plan::delegate(task, &self.start.task, &self.state, &self.setup)?],
            Move::Call { calls } => plan::calls(calls, &self.state.batch, &self.state, &self.setup, &self.start.task)?,
            _ => Vec::new(),
        };
        let tickets = u32::try_from(planned.len()).unwrap_or(u32::MAX);
        let runs = plan::runs(&planned);
        self.consult(now, |account| account.reserve(tickets, runs)).map_err(Refusal::Limit)?;
        Ok(planned)
    }

    /// Asks what the runs around this one leave of the limits they share. What they do not leave stands in the log.
    pub(super) fn consult(&mut self, now: f64, ask: impl FnOnce(&Account) -> Result<(), Limit>) -> Result<(), Limit> {
        let reached = match &self.tree {
            Tree::Alone => return Ok(()),
            Tree::Live(account) => ask(account).err(),
            Tree::Recorded(recorded) => recorded.limits.get(&self.seq).copied(),
        };
        let Some(limit) = reached else { return Ok(()) };
        self.emit(Event::Noted { note: Note::Exhausted(limit) }, now);
        Err(limit)
    }

    fn answer_allowed(&self) -> Result<(), Violation> {
        if self.setup.call_first && !self.state.called && self.state.last_turn.is_none() {
            return Err(Violation::new(
                Code::CallRequired,
                "expected a tool call before the answer: none was made yet",
            )
            .expected(self.setup.protocol.call_form()));
        }
        Ok(())
    }

    pub(super) fn ticket(&self, id: &str) -> Result<TicketId, Violation> {
        let known = TicketId::parse(id).filter(|ticket| self.state.tickets.get(*ticket).is_some());
        known.ok_or_else(|| {
            let ids = if self.setup.protocol.guides_to_results() {
                self.state.tickets.ids_without(&[])
            } else {
                let ids: Vec<String> = self.state.tickets.iter().map(|ticket| ticket.id.to_string()).collect();
                ids.join(", ")
            };
            let there = if ids.is_empty() { "there is none yet".to_owned() } else { format!("there are {ids}") };
            Violation::new(Code::UnknownTicket, format!("expected the id of a ticket of this run: got '{id}', {there}"))
        })
    }

    fn loadable(&self, id: &str) -> Result<(), Violation> {
        let ticket = self.ticket(id)?;
        match self.state.tickets.get(ticket) {
            Some(ticket) if ticket.outcome.is_none() => Err(Violation::new(
                Code::TicketInProgress,
                format!("expected a COMPLETED ticket: {} is still IN_PROGRESS", ticket.id),
            )
            .expected(format!(r#"{{"type": "AWAIT", "ticket_id": "{}"}}"#, ticket.id))
            .hint("AWAIT it first, then LOAD_TICKET")),
            _ => Ok(()),
        }
    }

    pub(super) fn open(&mut self, call: Planned, now: f64) {
        let opened = Opened {
            ticket: call.ticket,
            kind: call.kind,
            turn: self.state.turn,
            call: call.call,
            call_id: call.call_id,
            description: call.description.into(),
            tool: call.tool,
            arguments: call.arguments,
            needs_approval: call.needs_approval && (call.needs.is_empty() || self.start.version < FILLED),
            needs: call.needs,
            detached: call.detached,
            coerced: call.coerced,
        };
        self.emit(Event::TicketOpened(Box::new(opened)), now);
    }

    /// A call has ended. The outcome of a ticket that has one already is let drop.
    pub fn completed(&mut self, ticket: TicketId, outcome: Outcome, now: f64) {
        self.run_ended(ticket, outcome, None, now);
    }

    /// The same for the run of a task, with what it has spent.
    pub fn run_ended(&mut self, ticket: TicketId, outcome: Outcome, spent: Option<Spent>, now: f64) {
        if self.state.phase == Phase::Finished || !self.state.open_calls.contains_key(&ticket) {
            return;
        }
        self.emit(Event::TicketCompleted { ticket, outcome, spent: spent.map(Box::new) }, now);
        self.go_on(now);
    }

    /// The grace for calls just started is over.
    pub fn settled(&mut self, now: f64) {
        if self.state.phase == Phase::Settling {
            self.ask(now);
        }
    }

    /// The deadline is reached: what is under way is given up. Before the deadline this does nothing, so that each of
    /// several waiters may say it.
    pub fn timed_out(&mut self, now: f64) {
        let due = self.deadline().is_some_and(|deadline| now >= deadline);
        if !due || matches!(self.state.phase, Phase::Finished | Phase::Idle) {
            return;
        }
        self.stream = None;
        self.cancel_all_but_waits(now);
        if self.state.phase == Phase::Closing {
            return self.close(now);
        }
        self.limit(Limit::Seconds, now);
    }

    /// The model client failed.
    pub fn failed(&mut self, error: &str, now: f64) {
        if self.state.phase != Phase::Finished {
            self.finish(StopReason::ModelError, Some(error.to_owned()), now);
        }
    }

    /// The run is to end now.
    pub fn cancel(&mut self, now: f64) {
        if self.state.phase != Phase::Finished {
            self.finish(StopReason::Cancelled, Some("the run was cancelled".to_owned()), now);
        }
    }

    /// What waited for agents tells the last turn what has come of them.
    fn cancel_all_but_waits(&mut self, now: f64) {
        self.cancel_those(|machine, call| !machine.waits(call), now);
        self.settle_dependants(now);
    }

    fn cancel_open(&mut self, now: f64) {
        self.cancel_those(|_, _| true, now);
    }

    fn cancel_those(&mut self, which: impl Fn(&Self, &OpenCall) -> bool, now: f64) {
        let chosen = self.state.open_calls.iter().filter(|(_, call)| which(self, call));
        let chosen: Vec<(TicketId, bool)> =
            chosen.map(|(ticket, call)| (*ticket, self.may_have_begun(*ticket, call))).collect();
        for (ticket, begun) in chosen {
            self.cancel_call(ticket, begun, now);
        }
    }

    /// Whether a call may have had an effect: it waits for nobody.
    pub(super) fn may_have_begun(&self, ticket: TicketId, call: &OpenCall) -> bool {
        // Versions before 3 made calls without writing down what their references were filled with.
        let ready = call.is_final() || (self.start.version < FILLED && self.state.has_needs(call));
        ready && !self.is_parked(ticket) && !self.state.unbegun.contains(&ticket)
    }

    pub(super) fn cancel_call(&mut self, ticket: TicketId, begun: bool, now: f64) {
        self.cancelled.push(ticket);
        let outcome = if begun { Outcome::Cancelled } else { Outcome::NotBegun };
        // Nobody tells what a run had spent that is given up. Where there are several, it is said of the first.
        let spent = match &self.tree {
            Tree::Live(account) if self.is_task(ticket) => account.beyond(&self.state.spent()),
            Tree::Recorded(recorded) => recorded.spent.get(&self.seq).copied(),
            _ => None,
        };
        self.emit(Event::TicketCompleted { ticket, outcome, spent: spent.map(Box::new) }, now);
    }

    pub(super) fn violated(&mut self, violation: Violation, now: f64) {
        let message = violation.message.clone();
        self.emit(Event::Violated { turn: self.state.turn, violation: Box::new(violation) }, now);
        if let Some(limit) = self.state.last_turn {
            let error = format!("the limit is reached ({limit}), and the last turn broke the protocol: {message}");
            return self.finish(StopReason::Limit, Some(error), now);
        }
        if self.state.refused_too_often() {
            let told = if self.setup.protocol.guides_to_results() {
                "not to make again"
            } else {
                "would give the same result"
            };
            let error = format!("the model kept making a call that it was told {told}");
            return self.end(StopReason::Limit, Some(error), Some(Limit::MaxRepeats), now);
        }
        if self.state.violations > self.setup.limits.max_violations {
            let error = format!(
                "the model broke the protocol {} times in a row, the limit is {} (max_violations); the last time: {message}",
                self.state.violations, self.setup.limits.max_violations
            );
            return self.finish(StopReason::Violations, Some(error), now);
        }
        self.ask(now);
    }

    /// Grants one last turn, or ends the run.
    fn limit(&mut self, limit: Limit, now: f64) {
        if self.setup.on_limit == OnLimit::Raise || self.state.last_turn.is_some() {
            let error =
                format!("the run reached its limit of {limit}; raise Limits({}=…) if it needs more", limit.name());
            return self.end(StopReason::Limit, Some(error), Some(limit), now);
        }
        self.emit(Event::Noted { note: Note::LastTurn(limit) }, now);
        self.ask_now(now);
    }

    /// Goes on after a move or an outcome, if nothing is left to wait for.
    pub(super) fn go_on(&mut self, now: f64) {
        self.settle_dependants(now);
        match self.state.phase {
            Phase::Idle => self.ask(now),
            Phase::Calling | Phase::Settling if self.state.batch_open == 0 => self.ask(now),
            Phase::Awaiting(ticket) if !self.state.open_calls.contains_key(&ticket) => self.ask(now),
            Phase::Closing => {
                if self.setup.on_open_tickets == OnOpenTickets::Cancel {
                    self.cancel_open(now);
                }
                self.close(now);
            }
            _ => {}
        }
    }

    fn close(&mut self, now: f64) {
        if self.state.tickets.open_count() == 0 {
            let reason = if self.state.last_turn.is_some() { StopReason::Limit } else { StopReason::Finished };
            self.finish(reason, None, now);
        }
    }

    fn finish(&mut self, reason: StopReason, error: Option<String>, now: f64) {
        self.end(reason, error, None, now);
    }

    /// However a run ends, no ticket is left open.
    fn end(&mut self, reason: StopReason, error: Option<String>, limit: Option<Limit>, now: f64) {
        // A reply that was broken off is no part of the next one.
        self.stream = None;
        self.cancel_open(now);
        let (value, success) = match &error {
            None => self.state.answer.clone().unwrap_or_default(),
            Some(_) => Default::default(),
        };
        self.emit(Event::RunFinished { reason, value, success, error, limit }, now);
    }

    /// Asks the model, unless a limit is reached.
    fn ask(&mut self, now: f64) {
        if self.state.last_turn.is_none() {
            let reached = self.reached(now).map_or(Ok(()), Err);
            let reached = reached.and_then(|()| self.consult(now, |account| account.reached().map_or(Ok(()), Err)));
            if let Err(limit) = reached {
                return self.limit(limit, now);
            }
        }
        self.ask_now(now);
    }

    fn ask_now(&mut self, now: f64) {
        self.emit(Event::ModelAsked { turn: self.state.turn.saturating_add(1) }, now);
    }

    fn reached(&self, now: f64) -> Option<Limit> {
        let limits = &self.setup.limits;
        if limits.steps.is_some_and(|steps| self.state.steps() >= steps) {
            return Some(Limit::Steps);
        }
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            return Some(Limit::Seconds);
        }
        self.state.spent().reached(limits)
    }

    pub(super) fn emit(&mut self, event: Event, now: f64) {
        self.state.apply(&event, now, &*self.setup.protocol);
        match &event {
            Event::TicketOpened(opened) => drop(self.pending.insert(opened.ticket)),
            Event::TicketCompleted { ticket, .. } => drop(self.pending.remove(ticket)),
            _ => {}
        }
        self.fresh.push(Arc::new(Record { seq: self.seq, at: now, event }));
        self.seq += 1;
    }
}
