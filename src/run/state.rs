//! The state of a run: the fold of its events, and nothing else.

mod approval;
mod fold;
mod next_message;
mod pause;

use super::account::Spent;
use super::event::{Event, FailedCall, Note, Shortened, StopReason, Usage};
use super::limits::Limit;
use super::model_name::ModelName;
use super::reference;
use super::repetition::{self, Repetition};
use super::said::SaidUnderKey;
use crate::part::Part;
use crate::protocol::{Message, MessageEntry, Move};
use crate::reply::Value;
use crate::ticket::{Outcome, TicketId, TicketList, is_false};
use crate::tool::MoreApproval;
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
    /// The program is to check the answer.
    Checking,
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
    /// Whether the program is still to decide if it needs approval.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) unchecked: bool,
    pub(super) needs: Vec<TicketId>,
    /// Its position in its reply.
    position: usize,
    /// The repetition guard's key, once the arguments are whole.
    pub(super) key: Option<String>,
    /// The failure of its last attempt, where no other one follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
}

impl OpenCall {
    /// Its arguments are these, and final.
    fn fill(&mut self, arguments: &Arc<Value>) {
        self.key = Some(repetition::key(&self.tool, arguments));
        self.arguments = Arc::clone(arguments);
        self.filled = true;
    }

    /// Whether its arguments are those that it is made with.
    pub(super) fn is_final(&self) -> bool {
        self.filled || self.needs.is_empty()
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub struct Ending {
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
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact, which stands by its name in the log")]
pub struct RunState {
    result_bytes: usize,
    /// Whether results stand in frames. Runs begun before version 9 are told them as they began.
    #[serde(default, skip_serializing_if = "is_false")]
    framed: bool,
    /// What each task ends with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reminder: Option<Arc<str>>,
    pub messages: Vec<Message>,
    pub tickets: TicketList,
    /// What the replies cost in all.
    pub usage: Usage,
    /// Whether the usage of replies was reported, and no cost of any.
    #[serde(default, skip_serializing_if = "is_false")]
    unpriced: bool,
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
    /// The model of that question.
    #[serde(default, skip_serializing_if = "ModelName::is_unknown")]
    pub(super) asked_model: ModelName,
    /// Unix seconds of the start.
    pub started_at: f64,
    /// Unix seconds of the message with which an ended run continued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    went_on_at: Option<f64>,
    /// The turns before that.
    #[serde(default, skip_serializing_if = "is_zero")]
    turns_before: u32,
    /// What replies had cost by then.
    #[serde(default, skip_serializing_if = "is_nothing")]
    usage_before: Usage,
    /// The approval that its tools need beyond what their specifications say, as agents since have it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) more_approval: MoreApproval,
    /// Calls that were approved while no driver worked on the run.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) unbegun: BTreeSet<TicketId>,
    /// Whether there is a message of the user that the model has not seen.
    #[serde(default, skip_serializing_if = "is_false")]
    said: bool,
    /// The keys of the messages of the user.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) said_keys: BTreeMap<String, SaidUnderKey>,
    /// Images and files of the user that the model has not seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    said_parts: Vec<Part>,
    /// Images and files of the user so far.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) user_parts: u32,
    /// Whether any message or result has images or files.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_parts: bool,
    /// The position of the message with the user's last words; 0 for the task.
    #[serde(default, skip_serializing_if = "is_at_start")]
    pub said_at: usize,
    /// What the model is shown no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened: Option<Arc<Shortened>>,
    /// Seconds in which nothing worked on the run.
    pub paused: f64,
    /// Unix seconds of the last event.
    last_at: f64,
    /// The phase in which the run ended.
    interrupted: Phase,
    /// Whether events that follow from the last reply are still missing.
    pub(super) midway: bool,
    /// The calls of the last reply, those that were not opened yet among them.
    batch_size: usize,
    /// Violations since the last valid reply.
    pub violations: u32,
    pub violations_total: u32,
    /// The limit that made the coming or running turn the last one.
    pub last_turn: Option<Limit>,
    /// The limit that was reached, for the last turn or for good.
    pub limit: Option<Limit>,
    /// Whether any call was made.
    pub called: bool,
    pub ending: Option<Ending>,
    /// The answer that the program is to check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) offered: Option<Box<Move>>,
    /// The value and the success of the model's last FINISH.
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
    /// The run's own task, as the list of tickets describes it (ticket).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    own_task: Option<Arc<str>>,
    /// Tickets that were opened or changed since the last message.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    changed: BTreeSet<TicketId>,
    /// Whether the model has read untrusted results, or began with what was written after such.
    #[serde(default, skip_serializing_if = "is_false")]
    pub untrusted: bool,
    #[serde(rename = "tellings")]
    entries: Vec<MessageEntry>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_at_start(position: &usize) -> bool {
    *position == 0
}

impl RunState {
    /// The run's own task, as the list of tickets describes it. `None` where the list does not have it.
    pub fn own_task(&self) -> Option<&str> {
        self.own_task.as_deref()
    }

    /// Its images and files, in the order in which they came: of messages, of the user, of tickets.
    pub fn parts(&self) -> Vec<&Part> {
        let user = self.messages.iter().flat_map(|message| &message.parts).filter(|part| part.is_of_user());
        let of_tickets = self.tickets.iter().flat_map(|ticket| &ticket.parts);
        user.chain(&self.said_parts).chain(of_tickets).collect()
    }

    /// What it has spent, with the runs below it that have ended.
    pub fn spent(&self) -> Spent {
        let tickets = u32::try_from(self.tickets.len()).unwrap_or(u32::MAX);
        let mut spent = Spent { usage: self.usage, tickets, runs: self.runs };
        spent.add(&self.below);
        spent
    }

    /// Whether its replies say what this limit bounds. None does before the first reply.
    pub(super) fn is_counted(&self, limit: Limit) -> bool {
        match limit {
            Limit::Tokens => self.usage.input_tokens > 0 || self.usage.output_tokens > 0,
            Limit::Cost => self.usage.cost > 0.0 || (!self.unpriced && self.is_counted(Limit::Tokens)),
            _ => true,
        }
    }

    /// Turns since the user's last task.
    pub(super) fn turns(&self) -> u32 {
        self.turn.saturating_sub(self.turns_before)
    }

    /// What replies have cost since the user's last task.
    pub fn turn_usage(&self) -> Usage {
        self.usage.minus(&self.usage_before)
    }

    /// Unix seconds from which its wall time is counted.
    pub(super) fn timed_from(&self) -> f64 {
        self.went_on_at.unwrap_or(self.started_at) + self.paused
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
            Event::ModelAsked { turn, .. } => Some(*turn) == self.turn.checked_add(1),
            Event::ModelReplied { turn, .. } => *turn == self.turn && self.phase == Phase::Asking,
            Event::ModelAttemptFailed(attempt) => attempt.turn == self.turn && self.phase == Phase::Asking,
            Event::HistoryShortened(shortened) => {
                shortened.turn == self.turn && self.phase == Phase::Asking && self.can_be_shortened(shortened)
            }
            Event::Violated { turn, .. } | Event::Moved { turn, .. } => {
                *turn == self.turn && (self.midway || self.phase == Phase::Checking)
            }
            Event::AnswerOffered { turn, .. } => *turn == self.turn && self.midway,
            Event::TicketOpened(opened) => opened.ticket == self.tickets.next_id() && opened.needs.iter().all(known),
            Event::ToolAttemptFailed(failed) => self.is_next_failure(failed),
            Event::TicketCompleted { ticket, .. } => self.open_calls.contains_key(ticket),
            Event::TicketPending { ticket, .. } => self.may_pend(*ticket),
            Event::Approved { ticket, .. } => self.tickets.get(*ticket).is_some_and(|ticket| ticket.parked),
            Event::ApprovalChecked { ticket, .. } => self.open_calls.get(ticket).is_some_and(|call| call.unchecked),
            Event::ArgumentsFilled { ticket, .. } => {
                self.open_calls.get(ticket).is_some_and(|call| !call.is_final() && self.has_needs(call))
            }
            Event::Noted { .. } | Event::RunFinished { .. } => true,
        }
    }

    /// Whether this attempt at a call is the one that can fail now.
    pub(super) fn is_next_failure(&self, failed: &FailedCall) -> bool {
        let is_open = self.open_calls.get(&failed.ticket).is_some_and(|call| call.failure.is_none());
        is_open && self.tickets.get(failed.ticket).is_some_and(|ticket| ticket.attempts == failed.attempt)
    }

    /// Whether the model is shown no more than before.
    pub(super) fn can_be_shortened(&self, shortened: &Shortened) -> bool {
        let before = self.shortened.as_ref().map_or(0, |before| before.exchanges);
        (before..=shortened.results).contains(&shortened.exchanges)
    }

    /// Whether it can be resumed: it has not ended, or it was cancelled, or its model client failed.
    pub fn resumable(&self) -> bool {
        let reason = self.ending.as_ref().map(|ending| ending.reason);
        matches!(reason, None | Some(StopReason::ModelError | StopReason::Cancelled))
    }

    /// Whether all results that a call uses are there.
    pub(super) fn has_needs(&self, call: &OpenCall) -> bool {
        !call.needs.iter().any(|need| self.open_calls.contains_key(need))
    }

    /// The arguments of a call, with references filled where their results are there.
    pub(super) fn filled(&self, call: &OpenCall) -> Arc<Value> {
        if call.is_final() {
            return Arc::clone(&call.arguments);
        }
        let result = |name: &str| {
            let ticket = self.call_ids.get(name).filter(|ticket| call.needs.contains(ticket))?;
            match &self.tickets.get(*ticket)?.outcome {
                Some(Outcome::Ok(json)) => serde_json::from_str(json.get()).ok(),
                _ => None,
            }
        };
        let is_call =
            |name: &str| !self.framed || reference::can_be_referred_to(name) && self.call_ids.contains_key(name);
        Arc::new(reference::substitute(&call.arguments, &result, &is_call))
    }

    /// Whether the model has repeated refused calls so often that the run ends.
    pub(super) fn refused_too_often(&self) -> bool {
        self.repetition.refused_too_often()
    }
}
