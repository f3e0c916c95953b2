//! The state of a run: the fold of its events, and nothing else.

mod tell;

use super::account::Spent;
use super::event::{Event, Note, Opened, StopReason, Usage};
use super::limits::Limit;
use super::reference;
use super::repetition::{self, Repetition};
use crate::protocol::{Message, Move, Protocol, Role, Telling, ToolCall, feedback, foreign};
use crate::reply::Value;
use crate::reply::violation::Code;
use crate::ticket::{Outcome, Ticket, TicketId, TicketKind, TicketList, is_false};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing is under way.
    #[default]
    Idle,
    /// The model is to reply.
    Asking,
    /// All calls of the last reply are to end.
    Calling,
    /// The call of the last reply may end within the grace (ticket).
    Settling,
    /// A ticket is to be completed.
    Awaiting(TicketId),
    /// The model has finished; open tickets are waited for.
    Closing,
    /// The run is over.
    Finished,
}

/// A call whose ticket is open.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OpenCall {
    pub(super) tool: Arc<str>,
    /// With references as they were written, until they are filled.
    pub(super) arguments: Arc<Value>,
    /// Whether its references were filled, so that its arguments are final.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) filled: bool,
    pub(super) needs: Vec<TicketId>,
    /// Its position in its reply.
    position: usize,
    /// The repetition guard's key, once the arguments are whole.
    pub(super) key: Option<String>,
}

impl OpenCall {
    /// Whether its arguments are those that it is made with.
    pub(super) fn is_final(&self) -> bool {
        self.filled || self.needs.is_empty()
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// Why.
    pub reason: StopReason,
    /// The run's value; null where there is none.
    pub value: Arc<Value>,
    /// What a react reply says of its own success.
    pub success: Option<bool>,
    /// What went wrong, where something did.
    pub error: Option<String>,
}

/// The fold of a run's events.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RunState {
    result_bytes: usize,
    /// What each task ends with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reminder: Option<Arc<str>>,
    /// The transcript.
    pub messages: Vec<Message>,
    /// The tickets.
    pub tickets: TicketList,
    /// What the replies cost in all.
    pub usage: Usage,
    /// What the runs below it have spent that have ended.
    #[serde(default, skip_serializing_if = "Spent::is_nothing")]
    below: Spent,
    /// Tasks given to other runs.
    #[serde(default, skip_serializing_if = "is_zero")]
    runs: u32,
    /// What it is doing.
    pub phase: Phase,
    /// The turn of the last question; 0 before the first.
    pub turn: u32,
    /// Unix seconds of the start.
    pub started_at: f64,
    /// Unix seconds of the user's message by which a run that was over went on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    went_on_at: Option<f64>,
    /// The turns before that.
    #[serde(default, skip_serializing_if = "is_zero")]
    turns_before: u32,
    /// Calls that were approved while nobody worked on the run.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) unbegun: BTreeSet<TicketId>,
    /// Whether the user has said something that the model was not told yet.
    #[serde(default, skip_serializing_if = "is_false")]
    said: bool,
    /// Seconds between the end of a process that worked on it and the next one's start.
    pub paused: f64,
    /// Unix seconds of the last event.
    last_at: f64,
    /// What it was doing when it ended.
    interrupted: Phase,
    /// Whether what the last reply leads to is not all there yet.
    pub(super) midway: bool,
    /// The calls of the last reply, those that were not opened yet among them.
    batch_size: usize,
    /// Violations since the last valid reply.
    pub violations: u32,
    /// Violations in all.
    pub violations_total: u32,
    /// The limit that made the coming or running turn the last one.
    pub last_turn: Option<Limit>,
    /// The limit that was reached, for the last turn or for good.
    pub limit: Option<Limit>,
    /// Whether any call was made.
    pub called: bool,
    /// How it ended.
    pub ending: Option<Ending>,
    /// What the model asked the run to end with.
    pub(super) answer: Option<(Arc<Value>, Option<bool>)>,
    /// By ticket, so that calls start in the order of their tickets.
    pub(super) open_calls: BTreeMap<TicketId, Box<OpenCall>>,
    pub(super) call_ids: BTreeMap<String, TicketId>,
    pub(super) repetition: Repetition,
    /// The calls of the last reply in its own order, whose results the next message tells.
    pub(super) batch: BTreeMap<usize, TicketId>,
    /// Calls of the batch without an outcome.
    pub(super) batch_open: usize,
    pub(super) times: BTreeMap<TicketId, u32>,
    /// Calls that have ended while their reply was still arriving, with their keys of the guard.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) early: BTreeMap<TicketId, String>,
    /// Calls that were started for a reply which was lost or refused.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) unheard: BTreeSet<TicketId>,
    /// Tickets whose results the model was shown: on its own asking, inline, or in a last turn (ticket).
    loaded: BTreeSet<TicketId>,
    /// Tickets that were opened or changed since the last message.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    changed: BTreeSet<TicketId>,
    tellings: Vec<Telling>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl RunState {
    /// What it has spent, with the runs below it that have ended.
    pub fn spent(&self) -> Spent {
        let tickets = u32::try_from(self.tickets.len()).unwrap_or(u32::MAX);
        let mut spent = Spent { usage: self.usage, tickets, runs: self.runs };
        spent.add(&self.below);
        spent
    }

    /// Turns since the user last had the run begin or go on.
    pub(super) fn steps(&self) -> u32 {
        self.turn.saturating_sub(self.turns_before)
    }

    /// Unix seconds from which its wall time is counted.
    pub(super) fn timed_from(&self) -> f64 {
        self.went_on_at.unwrap_or(self.started_at) + self.paused
    }

    /// Folds one event in. It must be the next one of the log.
    pub fn apply(&mut self, event: &Event, at: f64, protocol: &dyn Protocol) {
        match event {
            Event::RunStarted(start) => {
                self.started_at = at;
                self.result_bytes = start.setup.limits.result_bytes;
                self.messages.push(Message::new(Role::System, Arc::clone(&start.setup.prompt)));
                self.messages.extend_from_slice(&start.setup.examples);
                self.reminder.clone_from(&start.setup.reminder);
                self.asked_for(&start.task);
            }
            Event::Compacted { state, .. } => self.clone_from(&***state),
            Event::ModelAsked { turn } => self.asked(*turn, protocol),
            Event::ModelReplied { text, usage, .. } => {
                self.phase = Phase::Idle;
                self.midway = true;
                // Some model services refuse an assistant message without text.
                let content = if text.trim().is_empty() { Arc::from("(empty reply)") } else { Arc::clone(text) };
                self.messages.push(Message::new(Role::Assistant, content));
                if let Some(usage) = usage {
                    self.usage += **usage;
                }
            }
            Event::Violated { violation, .. } => {
                if violation.code == Code::Repeated {
                    self.repetition.refuse();
                } else {
                    self.violations += 1;
                }
                self.violations_total += 1;
                self.drop_early();
                let raw = self.messages.last().map_or("", |message| &message.content);
                self.tellings.push(Telling::Violation(feedback::render(protocol, violation, raw)));
            }
            Event::Moved { moved, .. } => self.moved(moved, protocol),
            Event::UserSaid { text } => self.user_said(text, at),
            Event::TicketOpened(opened) => self.opened(opened, at),
            Event::ArgumentsFilled { ticket, arguments, needs_approval } => {
                if let Some(call) = self.open_calls.get_mut(ticket) {
                    call.key = Some(repetition::key(&call.tool, arguments));
                    call.arguments = Arc::clone(arguments);
                    call.filled = true;
                }
                self.tickets.fill(*ticket, arguments, *needs_approval);
            }
            Event::Approved { ticket, at_rest } => {
                self.tickets.approve(*ticket);
                if *at_rest {
                    self.unbegun.insert(*ticket);
                }
            }
            Event::TicketCompleted { ticket, outcome, spent } => {
                if let Some(spent) = spent {
                    self.below.add(spent);
                }
                self.completed(*ticket, outcome, at, protocol);
            }
            Event::Noted { note: Note::Exhausted(_) } => {}
            Event::Noted { note: Note::LastTurn(limit) } => {
                self.last_turn = Some(*limit);
                self.limit = Some(*limit);
                self.midway = false;
                // In the last turn nothing can be loaded any more: what there is must be before the model (ticket).
                self.tell_unseen(protocol.background());
                let form = protocol.answer_form();
                self.tellings.push(Telling::LastTurn(format!(
                    "The limit of this run is reached ({limit}): no more calls are made. Answer now from what there \
                     is, in this form: {form}"
                )));
            }
            Event::Noted { note: Note::Resumed } => self.resumed(at),
            Event::RunFinished { reason, value, success, error, limit } => {
                self.limit = limit.or(self.limit);
                self.midway = false;
                self.interrupted = self.phase;
                self.phase = Phase::Finished;
                self.ending =
                    Some(Ending { reason: *reason, value: value.clone(), success: *success, error: error.clone() });
            }
        }
        self.last_at = at;
    }

    /// Whether this event can be the next one. A machine writes no others.
    pub(super) fn admits(&self, event: &Event, first: bool) -> bool {
        let over = self.phase == Phase::Finished;
        let known = |ticket: &TicketId| self.tickets.get(*ticket).is_some();
        match event {
            Event::RunStarted(_) | Event::Compacted { .. } => first,
            _ if first => false,
            Event::Noted { note: Note::Resumed } => self.resumable(),
            Event::UserSaid { .. } => true,
            _ if over => false,
            Event::ModelAsked { turn } => Some(*turn) == self.turn.checked_add(1),
            Event::ModelReplied { turn, .. } => *turn == self.turn && self.phase == Phase::Asking,
            Event::Violated { turn, .. } | Event::Moved { turn, .. } => *turn == self.turn && self.midway,
            Event::TicketOpened(opened) => opened.ticket == self.tickets.next_id() && opened.needs.iter().all(known),
            Event::TicketCompleted { ticket, .. } => self.open_calls.contains_key(ticket),
            Event::Approved { ticket, .. } => self.tickets.get(*ticket).is_some_and(|ticket| ticket.parked),
            Event::ArgumentsFilled { ticket, .. } => {
                self.open_calls.get(ticket).is_some_and(|call| !call.is_final() && self.has_needs(call))
            }
            Event::Noted { .. } | Event::RunFinished { .. } => true,
        }
    }

    /// Whether it can be gone on with: it has not ended, or what ended it is not of its own making.
    pub fn resumable(&self) -> bool {
        let reason = self.ending.as_ref().map(|ending| ending.reason);
        matches!(reason, None | Some(StopReason::ModelError | StopReason::Cancelled))
    }

    fn resumed(&mut self, at: f64) {
        self.paused += (at - self.last_at).max(0.0);
        self.unbegun.clear();
        if self.ending.take().is_some() {
            self.phase = self.interrupted;
            self.limit = self.last_turn;
        }
        if self.phase == Phase::Asking {
            // Calls that were started early belong to a reply that never came.
            self.drop_early();
        }
    }

    /// Whether all calls have ended whose results a call uses.
    pub(super) fn has_needs(&self, call: &OpenCall) -> bool {
        !call.needs.iter().any(|need| self.open_calls.contains_key(need))
    }

    /// The arguments of a call, with references filled where their results are there.
    pub(super) fn filled(&self, call: &OpenCall) -> Arc<Value> {
        if call.is_final() {
            return Arc::clone(&call.arguments);
        }
        let result = |name: &str| match &self.tickets.get(*self.call_ids.get(name)?)?.outcome {
            Some(Outcome::Ok(json)) => serde_json::from_str(json.get()).ok(),
            _ => None,
        };
        Arc::new(reference::substitute(&call.arguments, &result))
    }

    /// Whether the model made refused calls so often that the run is to end.
    pub(super) fn refused_too_often(&self) -> bool {
        self.repetition.refused_too_often()
    }

    fn moved(&mut self, moved: &Move, protocol: &dyn Protocol) {
        self.violations = 0;
        self.midway = false;
        match moved {
            // The user has said more meanwhile: the model is told before the run ends.
            Move::Finish { .. } if self.said => self.phase = Phase::Idle,
            Move::Finish { value, success } => {
                self.answer = Some((value.clone(), *success));
                self.phase = Phase::Closing;
            }
            Move::Call { calls } => {
                self.called = true;
                self.tell_unread(calls);
                self.calling(calls.len(), protocol);
            }
            Move::Delegate { .. } => self.calling(1, protocol),
            Move::Await { ticket_id } | Move::Load { ticket_id } => {
                let Some(ticket) = TicketId::parse(ticket_id) else { return };
                let awaits = matches!(moved, Move::Await { .. });
                self.tellings.push(if awaits && !protocol.await_loads() {
                    Telling::Completed(ticket)
                } else {
                    self.loaded.insert(ticket);
                    Telling::Loaded(ticket)
                });
                self.phase = if awaits { Phase::Awaiting(ticket) } else { Phase::Idle };
            }
        }
    }

    /// Says which keys of a reply were left out: the model may have meant something by them.
    fn tell_unread(&mut self, calls: &[ToolCall]) {
        let mut keys: Vec<&str> = calls.iter().flat_map(|call| &call.unread).map(String::as_str).collect();
        keys.dedup();
        if !keys.is_empty() {
            let keys = foreign::listed(keys.into_iter());
            self.tellings
                .push(Telling::Note(format!("Note: the {keys} of your reply was left out: a call has no such key.")));
        }
    }

    fn calling(&mut self, calls: usize, protocol: &dyn Protocol) {
        self.repetition.left();
        self.count_early();
        self.batch_size = calls;
        self.midway = self.batch.len() < self.batch_size;
        // Calls that were started early have their tickets already.
        self.batch_open = calls - self.batch.len().min(calls)
            + self.batch.values().filter(|ticket| self.open_calls.contains_key(ticket)).count();
        self.phase = if protocol.background() { Phase::Settling } else { Phase::Calling };
    }

    fn asked_for(&mut self, task: &str) {
        self.tellings.push(Telling::Task(task.to_owned()));
        self.tellings.extend(self.reminder.as_deref().map(|reminder| Telling::Reminder(reminder.to_owned())));
    }

    fn user_said(&mut self, text: &str, at: f64) {
        self.said = true;
        self.asked_for(text);
        if self.ending.take().is_some() {
            self.went_on_at = Some(at);
            self.turns_before = self.turn;
            self.paused = 0.0;
            self.violations = 0;
            self.last_turn = None;
            self.limit = None;
            if self.interrupted == Phase::Asking {
                // Calls that were started early belong to a reply that never came.
                self.drop_early();
            }
            self.batch_open = 0;
            self.phase = Phase::Idle;
        }
        if self.phase == Phase::Closing {
            self.phase = Phase::Idle;
        }
        if self.phase == Phase::Idle {
            self.answer = None;
        }
    }

    fn opened(&mut self, opened: &Opened, at: f64) {
        let Opened {
            ticket,
            kind,
            turn,
            call,
            call_id,
            description,
            tool,
            arguments,
            needs,
            detached,
            needs_approval,
            ..
        } = opened;
        let is_task = *kind == TicketKind::Task;
        let role = arguments.as_object().filter(|_| is_task).and_then(|given| given.get("role"));
        self.runs += u32::from(is_task);
        self.changed.insert(*ticket);
        self.tickets.open(Ticket {
            id: *ticket,
            description: Arc::clone(description),
            kind: *kind,
            tool: Arc::clone(tool),
            role: role.and_then(Value::as_str).map(str::to_owned),
            detached: *detached,
            parked: *needs_approval,
            arguments: Some(Arc::clone(arguments)),
            turn: *turn,
            call_id: call_id.clone(),
            opened_at: at,
            completed_at: None,
            outcome: None,
        });
        if let Some(call_id) = call_id {
            self.call_ids.insert(call_id.clone(), *ticket);
        }
        let key = needs.is_empty().then(|| repetition::key(tool, arguments));
        let open = OpenCall {
            tool: Arc::clone(tool),
            arguments: Arc::clone(arguments),
            filled: false,
            needs: needs.clone(),
            position: *call,
            key,
        };
        self.open_calls.insert(*ticket, Box::new(open));
        self.batch.insert(*call, *ticket);
        if *detached {
            self.batch_open = self.batch_open.saturating_sub(1);
        }
        self.midway = self.midway && self.batch.len() < self.batch_size;
    }

    fn completed(&mut self, id: TicketId, outcome: &Outcome, at: f64, protocol: &dyn Protocol) {
        if !self.tickets.complete(id, outcome.clone(), at) {
            return;
        }
        self.changed.insert(id);
        let Some(mut call) = self.open_calls.remove(&id) else { return };
        if !call.needs.is_empty() && self.tickets.get(id).is_some_and(|ticket| ticket.role.is_some()) {
            // Its role may have been another call's result.
            let filled = self.filled(&call);
            if let Some(role) = filled.as_object().and_then(|given| given.get("role")?.as_str()) {
                self.tickets.set_role(id, role.to_owned());
            }
        }
        // What a call that waited for others was made with is known only now.
        let key = call.key.take().unwrap_or_else(|| repetition::key(&call.tool, &self.filled(&call)));
        let times = self.count(key, id);
        let detached = |id: &TicketId| self.tickets.get(*id).is_some_and(|ticket| ticket.detached);
        // Whoever waits for an agent is told its result.
        let waited_for: Vec<TicketId> = call.needs.iter().filter(|need| detached(need)).copied().collect();
        self.loaded.extend(waited_for);
        if self.tickets.get(id).is_some_and(|ticket| ticket.detached) {
            return;
        }
        let told = self.batch.get(&call.position) == Some(&id);
        if times > 1 && told {
            self.times.insert(id, times);
        } else if times > 1 {
            self.tellings.push(Telling::Result { ticket: id, times });
        }
        if told {
            self.batch_open = self.batch_open.saturating_sub(1);
        } else if protocol.guides_to_results() && !self.is_to_be_told(id) {
            self.tellings.push(Telling::Completed(id));
        }
    }
}
