//! The machine: inputs become events, events become state, state says what the driver is to do next.
//!
//! It has no clock and does no I/O: every input brings the time with it.

use super::account::{Account, Spent};
use super::command::{OnOpenTickets, Setup};
use super::event::{Event, FailedCall, Note, Parent, Record, Start, StopReason, VERSION};
use super::given::Given;
use super::judge::Judged;
use super::limits::{Limit, Limits};
use super::model_name::ModelName;
use super::outside::Told;
use super::own_setup::Instructions;
use super::state::{Phase, RunState};
use super::stream::Stream;
use super::texts_above::TextsAbove;
use super::traced_texts::TracedTexts;
use crate::part::{self, Part, TextForm};
use crate::protocol::{Message, TextSpans};
use crate::reply::violation::Violation;
use crate::ticket::{Outcome, TicketId, TicketKind};
use crate::tool::{Approval, MoreApproval};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The limits that this run shares with the runs above and below it.
#[derive(Debug)]
pub(super) enum SharedLimits {
    /// The run has none above it or below it.
    None,
    /// The accounts of the runs under way.
    Live(Arc<Account>),
    /// What the log of a replayed run says of them.
    Replayed(ReplayedLimits),
}

/// What a log says of the runs above and below its own, by the positions of its events.
#[derive(Debug, Default)]
pub(super) struct ReplayedLimits {
    /// The limits that were found reached.
    pub(super) limits: BTreeMap<u64, Limit>,
    /// Where the wall time was over: from the first call that was cancelled for it to the event that says so.
    pub(super) timed_out: BTreeSet<u64>,
    /// The amounts that cancelled runs had spent.
    pub(super) spent: BTreeMap<u64, Spent>,
    /// Where arguments were filled, which versions before 3 did not write down.
    pub(super) filled: BTreeSet<u64>,
    /// The models that were asked.
    pub(super) models: BTreeMap<u64, ModelName>,
    /// Replies that were refused because of where their values come from.
    pub(super) refused: BTreeMap<u64, Violation>,
    /// What was found of the values of calls.
    pub(super) verdicts: BTreeMap<TicketId, Verdict>,
    /// The position after the log's last event.
    pub(super) end: u64,
}

/// What a log says of the values of a call.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) judged: Judged,
    pub(super) approval: Approval,
}

/// One run under way.
#[derive(Debug)]
pub struct RunMachine {
    pub(super) start: Start,
    pub(super) setup: Arc<Setup>,
    pub(super) state: RunState,
    pub(super) shared_limits: SharedLimits,
    /// The model that its driver asks.
    pub(super) model: ModelName,
    /// Events that were not taken for the log yet.
    fresh: Vec<Arc<Record>>,
    pub(super) seq: u64,
    pub(super) stream: Option<Stream>,
    pub(super) given: Given,
    /// Calls in which a run has read untrusted results.
    pub(super) read_untrusted: BTreeSet<TicketId>,
    /// What the agent that continues the run asks for beyond the run's own approval, and is not in the log yet.
    pub(super) more_approval: MoreApproval,
    /// The texts in which values are looked up.
    pub(super) traced: TracedTexts,
    /// Those of the runs above.
    pub(super) above: Option<Arc<TextsAbove>>,
    /// Its own, for the runs below.
    pub(super) below: Option<Arc<TextsAbove>>,
    /// Whether its driver has somebody to ask for approval now.
    pub(super) can_ask: bool,
    /// Whether a driver performs the commands. A run that was only loaded takes messages and approvals too.
    pub(super) attended: bool,
}

impl RunMachine {
    /// A run that has not begun. `run_id` must be unique; `parent` is the call of another run that starts it.
    pub fn new(run_id: String, agent: String, parent: Option<Parent>, setup: Arc<Setup>) -> Self {
        Self::of(Self::not_begun(run_id, agent, parent, Arc::default(), setup))
    }

    /// A run that another process is to begin.
    pub fn queued(run_id: String, agent: String, task: Arc<str>) -> Self {
        Self::of(Self::not_begun(run_id, agent, None, task, Arc::new(Setup::unknown())))
    }

    fn not_begun(run_id: String, agent: String, parent: Option<Parent>, task: Arc<str>, setup: Arc<Setup>) -> Start {
        Start {
            version: VERSION,
            run_id,
            agent,
            owner: None,
            key: None,
            seal_key: None,
            parent,
            depth: 0,
            limits: None,
            instructions: None,
            messages: Arc::default(),
            untrusted: false,
            traceparent: None,
            task,
            parts: Vec::new(),
            setup,
        }
    }

    /// A run that will begin with this event.
    pub(super) fn of(start: Start) -> Self {
        Self {
            setup: start.own_setup(),
            start,
            state: RunState::default(),
            shared_limits: SharedLimits::None,
            model: ModelName::default(),
            fresh: Vec::new(),
            seq: 0,
            stream: None,
            given: Given::default(),
            read_untrusted: BTreeSet::new(),
            more_approval: MoreApproval::new(),
            traced: TracedTexts::default(),
            above: None,
            below: None,
            can_ask: false,
            attended: true,
        }
    }

    /// Gives a run that has not begun an earlier conversation, which stands before its task.
    #[must_use]
    pub fn after(mut self, mut messages: Vec<Message>) -> Self {
        let mut count = 0;
        for message in &mut messages {
            let (content, parts) = user_parts(&message.content, &message.parts, count);
            count += parts.len();
            (message.content, message.parts) = (content.into(), parts);
        }
        self.start.messages = messages.into();
        self
    }

    /// Gives a run that has not begun limits of its own.
    #[must_use]
    pub fn limited(mut self, limits: Limits) -> Self {
        self.start.limits = (limits != self.start.setup.limits).then_some(limits);
        self.setup = self.start.own_setup();
        self
    }

    /// Gives a run that has not begun instructions of its own, and the prompt that has them.
    pub fn instruct(&mut self, instructions: &str, prompt: &str) {
        if self.state.conversation.messages.is_empty() {
            self.start.instructions = Some(Instructions::between(instructions, &self.start.setup.prompt, prompt));
            self.setup = self.start.own_setup();
        }
    }

    /// Names the trace that a run begins in, before it does.
    pub fn trace_as(&mut self, traceparent: &str) {
        if self.state.conversation.messages.is_empty() {
            self.start.traceparent = Some(traceparent.into());
        }
    }

    /// How it begins or has begun.
    pub fn origin(&self) -> &Start {
        &self.start
    }

    /// How many messages stand between its prompt and its task: those of an example, and an earlier conversation.
    pub fn messages_before_task(&self) -> usize {
        self.setup.examples.len() + self.start.messages.len()
    }

    /// Names the model that is asked from now on.
    pub fn use_model(&mut self, model: ModelName) {
        self.model = model;
    }

    /// Places the run below others: how many they are, and the account that it draws from.
    pub fn join(&mut self, depth: u32, above: &Arc<Account>) {
        self.start.depth = depth;
        let account = Account::open(Some(Arc::clone(above)), self.setup.limits.clone(), self.state.spent());
        self.shared_limits = SharedLimits::Live(account);
    }

    /// The account that the runs below it draw from.
    pub fn account(&mut self) -> Arc<Account> {
        if let SharedLimits::Live(account) = &self.shared_limits {
            return Arc::clone(account);
        }
        let account = Account::open(None, self.setup.limits.clone(), self.state.spent());
        self.shared_limits = SharedLimits::Live(Arc::clone(&account));
        account
    }

    /// Places the run below others that are driven elsewhere: how many they are, and their limits, the nearest first.
    pub fn join_apart(&mut self, depth: u32, above: Vec<Limits>) {
        let chain = above.into_iter().rev();
        let account = chain.fold(None, |parent, limits| Some(Account::open(parent, limits, Spent::default())));
        if let Some(account) = account {
            self.join(depth, &account);
        }
    }

    /// At least these amounts were spent, wherever: by this run and those below it, then by the run above it with those
    /// below that, and so on.
    pub fn spent_at_least(&mut self, spent: &[Spent]) {
        self.account().at_least(spent);
    }

    /// How many runs are above it.
    pub fn depth(&self) -> u32 {
        self.start.depth
    }

    /// Its id.
    pub fn run_id(&self) -> &str {
        &self.start.run_id
    }

    /// What the user asks for; empty before it has begun.
    pub fn task(&self) -> &str {
        &self.start.task
    }

    /// The fold of its events.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// The open tickets for which something is under way, with whether another run works on it; `None` while the model
    /// or the program is asked, or the run is over. Those that await approval, a result from outside or other tickets are
    /// not among them.
    pub fn under_way(&self) -> Option<Vec<(TicketId, bool)>> {
        if !matches!(self.state.position.phase, Phase::Calling | Phase::Awaiting(_) | Phase::Closing) {
            return None;
        }
        let open = self.state.calls.open.iter();
        let open = open.filter(|(_, call)| !self.reads_part(call));
        let begun = open.filter(|(ticket, call)| self.state.calls.is_under_way(**ticket, call));
        let is_task =
            |ticket| self.state.calls.tickets.get(ticket).is_some_and(|ticket| ticket.kind == TicketKind::Task);
        Some(begun.map(|(ticket, _)| (*ticket, is_task(*ticket))).collect())
    }

    /// What it was set up with.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The events since the last call of this, which belong in the log before their commands are carried out.
    pub fn take_records(&mut self) -> Vec<Arc<Record>> {
        std::mem::take(&mut self.fresh)
    }

    /// Returns events that were taken, because the log does not have them yet.
    pub(super) fn put_back(&mut self, records: Vec<Arc<Record>>) {
        self.fresh = records;
    }

    /// Whether there are events that were not taken yet.
    pub(super) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Starts the run.
    pub fn start(&mut self, task: &str, now: f64) {
        self.start_with(task, &[], now);
    }

    /// Starts the run with a task that has images or files.
    pub fn start_with(&mut self, task: &str, parts: &[Part], now: f64) {
        if self.state.position.turn > 0 || self.state.position.phase != Phase::Idle {
            return;
        }
        let earlier = self.start.messages.iter().map(|message| message.parts.len()).sum();
        let (task, parts) = user_parts(task, parts, earlier);
        (self.start.task, self.start.parts) = (task.into(), parts);
        self.emit(Event::RunStarted(Box::new(self.start.clone())), now);
        self.ask(now);
    }

    /// Adds a message of the user. A run that has ended continues with it; a run in progress has it in its next
    /// message.
    pub fn send(&mut self, text: &str, now: f64) {
        self.send_with(text, &[], None, now);
    }

    /// Takes what a request of a turn has led to, unless a message has ended it and begun the next one meanwhile.
    pub fn in_turn<T: Default>(&mut self, turn: u32, act: impl FnOnce(&mut Self) -> T) -> T {
        if self.state.position.turn == turn { act(self) } else { T::default() }
    }

    /// Adds a message of the user that has images or files, or a key. One with a key that the run has is ignored.
    pub fn send_with(&mut self, text: &str, parts: &[Part], key: Option<&str>, now: f64) {
        if self.state.conversation.messages.is_empty()
            || key.is_some_and(|key| self.state.conversation.said_keys.contains_key(key))
        {
            return;
        }
        let (text, parts) = user_parts(text, parts, self.state.conversation.user_parts as usize);
        let was_over = self.state.position.phase == Phase::Finished;
        self.emit(Event::UserSaid { text: text.into(), parts, key: key.map(Arc::from) }, now);
        self.note_more_approval(now);
        if was_over {
            (self.given.ended, self.attended) = (false, true);
            self.given.skip(self.state.position.turn);
        }
        self.advance(now);
    }

    /// A driver performs the commands again.
    pub fn attend(&mut self) {
        self.attended = true;
    }

    /// No driver performs the commands any more.
    pub fn leave(&mut self) {
        self.attended = false;
    }

    /// Completes a call. A second outcome of the same ticket is ignored. If earlier attempts failed, the failure of the
    /// last one is recorded as theirs are.
    pub fn complete_call(&mut self, ticket: TicketId, outcome: Outcome, now: f64) {
        self.complete_call_with(ticket, outcome, &[], now);
    }

    /// Completes a call whose result has images or files.
    pub fn complete_call_with(&mut self, ticket: TicketId, outcome: Outcome, parts: &[Part], now: f64) {
        let attempt = self.attempts(ticket);
        if attempt > 1
            && let Outcome::Error { message, .. } = &outcome
        {
            self.tool_attempt_failed(FailedCall::new(ticket, attempt, message, None), now);
        }
        self.complete(ticket, outcome.after_attempts(attempt), parts, None, now);
    }

    /// An attempt at a call failed. Another one follows after a time, or the call is completed with the failure.
    pub fn tool_attempt_failed(&mut self, failed: FailedCall, now: f64) {
        if self.state.position.phase != Phase::Finished && self.state.calls.is_next_failure(&failed) {
            self.emit(Event::ToolAttemptFailed(Box::new(failed)), now);
        }
    }

    /// How many attempts at a call were made, the one that is waited for among them.
    pub fn attempts(&self, ticket: TicketId) -> u32 {
        self.state.calls.tickets.get(ticket).map_or(1, |ticket| ticket.attempts)
    }

    /// Completes a call or a task with its outcome, the images and files of its result, and, for a task, the amounts that
    /// its run has spent.
    pub fn complete(&mut self, ticket: TicketId, outcome: Outcome, parts: &[Part], spent: Option<Spent>, now: f64) {
        let untrusted = self.has_read_untrusted(ticket);
        self.complete_by(ticket, (outcome, parts), Told { spent, by: None, untrusted }, now);
    }

    /// Ends the time that calls just started have before the model is asked again (ticket).
    pub fn end_grace(&mut self, now: f64) {
        if self.state.position.phase == Phase::Settling {
            self.ask(now);
        }
    }

    pub(super) fn record_violation(&mut self, violation: Violation, spans: TextSpans, now: f64) {
        let message = violation.message.clone();
        let turn = self.state.position.turn;
        self.emit(Event::Violated { turn, violation: Box::new(violation), spans }, now);
        if let Some(limit) = self.state.position.last_turn {
            let error = format!("the limit is reached ({limit}), and the last turn broke the protocol: {message}");
            return self.finish(StopReason::Limit, Some(error), now);
        }
        if self.setup.protocol.runs_code() {
            return self.end_faulty(&message, now);
        }
        if self.state.calls.repetition.refused_too_often() {
            let told = if self.setup.protocol.guides_to_results() {
                "not to make again"
            } else {
                "would give the same result"
            };
            let error = format!("the model kept making a call that it was told {told}");
            return self.end(StopReason::Limit, Some(error), Some(Limit::MaxRepeats), now);
        }
        if self.state.position.violations > self.setup.limits.max_violations {
            let error = format!(
                "the model broke the protocol {} times in a row, the limit is {} (max_violations); the last time: {message}",
                self.state.position.violations, self.setup.limits.max_violations
            );
            return self.finish(StopReason::Violations, Some(error), now);
        }
        self.ask(now);
    }

    /// Asks the model or ends the run, if nothing is left to wait for.
    pub(super) fn advance(&mut self, now: f64) {
        self.settle_dependants(now);
        if self.state.calls.script.is_some() {
            return self.advance_script(now);
        }
        match self.state.position.phase {
            Phase::Idle => self.ask(now),
            Phase::Calling | Phase::Settling if self.state.calls.batch_open == 0 => self.ask(now),
            Phase::Awaiting(ticket) if !self.state.calls.open.contains_key(&ticket) => self.ask(now),
            Phase::Closing => {
                if self.setup.on_open_tickets == OnOpenTickets::Cancel {
                    self.cancel_open(now);
                }
                self.close(now);
            }
            _ => {}
        }
    }

    /// Asks the model, unless a limit is reached.
    pub(super) fn ask(&mut self, now: f64) {
        if self.state.position.last_turn.is_none() {
            let reached = self.limit_reached(now).map_or(Ok(()), Err);
            let reached = reached
                .and_then(|()| self.check_shared_limits(now, |account| account.limit_reached().map_or(Ok(()), Err)));
            if let Err(limit) = reached {
                return self.limit(limit, now);
            }
        }
        self.ask_now(now);
    }

    pub(super) fn ask_now(&mut self, now: f64) {
        let asked = match &self.shared_limits {
            SharedLimits::Replayed(replayed) => replayed.models.get(&self.seq).cloned().unwrap_or_default(),
            _ => self.model.clone(),
        };
        let ModelName { model, provider } = asked;
        self.emit(Event::ModelAsked { turn: self.state.position.turn.saturating_add(1), model, provider }, now);
    }

    pub(super) fn emit(&mut self, event: Event, now: f64) {
        if let Some(seconds) = self.untold_pause(&event, now) {
            self.write(Event::Noted { note: Note::Paused(seconds) }, now);
        }
        self.write(event, now);
    }

    fn write(&mut self, event: Event, now: f64) {
        self.state.apply(&event, now, &*self.setup.protocol);
        match &event {
            Event::TicketOpened(opened) => drop(self.given.pending.insert(opened.ticket)),
            Event::TicketCompleted { ticket, .. } => drop(self.given.pending.remove(ticket)),
            _ => {}
        }
        self.fresh.push(Arc::new(Record { seq: self.seq, at: now, event }));
        self.seq += 1;
    }
}

/// Places the parts of a message of the user, after this many that there were before.
pub(super) fn user_parts(text: &str, parts: &[Part], before: usize) -> (String, Vec<Part>) {
    part::place(text, parts, TextForm::Plain, |position| format!("U{}", before + position + 1))
}

/// Places the parts of a result.
pub(super) fn result_parts(ticket: TicketId, outcome: Outcome, parts: &[Part]) -> (Outcome, Vec<Part>) {
    match &outcome {
        Outcome::Ok(json) if !parts.is_empty() => {
            let label =
                |position| if parts.len() == 1 { ticket.to_string() } else { format!("{ticket}.{}", position + 1) };
            let (text, placed) = part::place(json.get(), parts, TextForm::Json, label);
            // Only the insides of strings have changed.
            RawValue::from_string(text).map_or((outcome.clone(), Vec::new()), |json| (Outcome::Ok(json.into()), placed))
        }
        _ => (outcome, Vec::new()),
    }
}
