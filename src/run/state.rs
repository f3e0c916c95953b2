//! The state of a run: the fold of its events, and nothing else. `StoredState` is how a log keeps it.

mod approval;
mod calls;
mod conversation;
mod early_calls;
mod fold;
mod next_message;
mod pause;
mod position;
mod script;
mod spending;

pub use calls::Calls;
pub(super) use calls::OpenCall;
pub use conversation::Conversation;
use conversation::LastMessage;
pub(super) use conversation::LongResults;
pub(super) use position::Offered;
pub use position::{Ending, Phase, Position};
pub(super) use script::WaitingCall;
pub use script::{RefusedCall, ScriptOutcome, ScriptState, ScriptStep};
pub use spending::Spending;

use super::account::Spent;
use super::event::{Event, Note};
use super::reference;
use crate::part::Part;
use crate::protocol::message_entry::part_of;
use crate::reply::Value;
use crate::ticket::{Outcome, Ticket, TicketId};
use std::sync::Arc;

/// The fold of a run's events.
#[derive(Debug, Clone, Default)]
pub struct RunState {
    /// What the model was told, and what it is told next.
    pub conversation: Conversation,
    /// Tickets, open calls, and the guard against repetition.
    pub calls: Calls,
    /// Tokens, cost, child runs and time.
    pub spending: Spending,
    /// Turn, phase, limits and ending.
    pub position: Position,
}

impl RunState {
    /// Its images and files, in the order in which they came: of messages, of the user, of tickets.
    pub fn parts(&self) -> Vec<&Part> {
        let Conversation { messages, said_parts, .. } = &self.conversation;
        let user = messages.iter().flat_map(|message| &message.parts).filter(|part| part.is_of_user());
        let of_tickets = self.calls.tickets.iter().flat_map(|ticket| &ticket.parts);
        user.chain(said_parts).chain(of_tickets).collect()
    }

    /// What it has spent, with the runs below it that have ended.
    pub fn spent(&self) -> Spent {
        let asked = self.calls.script.as_ref().map_or(0, |script| script.asked());
        let tickets = u32::try_from(self.calls.tickets.len().max(asked)).unwrap_or(u32::MAX);
        let mut spent = Spent { usage: self.spending.usage, tickets, runs: self.spending.runs };
        spent.add(&self.spending.below);
        spent
    }

    /// Turns since the user's last task.
    pub(super) fn turns(&self) -> u32 {
        self.position.turn.saturating_sub(self.spending.turns_before)
    }

    /// Whether this event can be the next one. A machine writes no others.
    pub(super) fn admits(&self, event: &Event, first: bool) -> bool {
        let Self { conversation, calls, position, .. } = self;
        let over = position.phase == Phase::Finished;
        let asking = position.phase == Phase::Asking;
        let known = |ticket: &TicketId| calls.tickets.get(*ticket).is_some();
        match event {
            Event::RunStarted(_) | Event::Compacted { .. } => first,
            _ if first => false,
            Event::Noted { note: Note::Resumed } => position.resumable(),
            Event::UserSaid { .. } => true,
            _ if over => false,
            Event::ModelAsked { turn, .. } => Some(*turn) == position.turn.checked_add(1),
            Event::ModelReplied { turn, .. } => *turn == position.turn && asking,
            Event::ModelAttemptFailed(attempt) => attempt.turn == position.turn && asking,
            Event::HistoryShortened(shortened) => {
                shortened.turn == position.turn && asking && conversation.can_be_shortened(shortened)
            }
            Event::Violated { turn, .. } | Event::Moved { turn, .. } => {
                let refuses_call = matches!(event, Event::Violated { .. }) && calls.has_waiting();
                *turn == position.turn && (position.midway || position.phase == Phase::Checking || refuses_call)
            }
            Event::AnswerOffered { turn, .. } => *turn == position.turn && position.midway,
            Event::TicketOpened(opened) => opened.ticket == calls.tickets.next_id() && opened.needs.iter().all(known),
            Event::ToolAttemptFailed(failed) => calls.is_next_failure(failed),
            Event::TicketCompleted { ticket, .. } => calls.open.contains_key(ticket),
            Event::TicketPending { ticket, .. } => calls.may_pend(*ticket),
            Event::Approved { ticket, .. } => calls.tickets.get(*ticket).is_some_and(|ticket| ticket.parked),
            Event::ApprovalChecked { ticket, .. } => calls.open.get(ticket).is_some_and(|call| call.unchecked),
            Event::ArgumentsFilled { ticket, .. } => {
                calls.open.get(ticket).is_some_and(|call| !call.is_final() && calls.has_needs(call))
            }
            Event::Noted { .. } | Event::RunFinished { .. } => true,
        }
    }

    /// The arguments of a call, with references filled where their results are there.
    pub(super) fn filled(&self, call: &OpenCall) -> Arc<Value> {
        if call.is_final() {
            return Arc::clone(&call.arguments);
        }
        let Calls { tickets, call_ids, .. } = &self.calls;
        let result = |name: &str| {
            let ticket = call_ids.get(name).filter(|ticket| call.needs.contains(ticket))?;
            let ticket = tickets.get(*ticket)?;
            if let Some(part) = ticket.reads {
                let read = tickets.get(part.ticket)?.outcome.as_ref()?;
                return Some(Value::from(part_of(read, part.offset, self.conversation.long.bytes)));
            }
            match &ticket.outcome {
                Some(Outcome::Ok(json)) => serde_json::from_str(json.get()).ok(),
                _ => None,
            }
        };
        let is_call = |name: &str| {
            !self.conversation.framed || reference::can_be_referred_to(name) && call_ids.contains_key(name)
        };
        Arc::new(reference::substitute(&call.arguments, &result, &is_call))
    }

    /// The ticket of the last call of this key, if the model has not seen its result.
    pub(super) fn unread(&self, key: &str) -> Option<&Ticket> {
        let mut open = self.calls.open.iter();
        let open = open.find(|(_, call)| call.key.as_deref() == Some(key)).map(|(ticket, _)| *ticket);
        let ticket = open.or_else(|| self.calls.repetition.last(key))?;
        self.calls.tickets.get(ticket).filter(|_| !self.conversation.loaded.contains(&ticket))
    }
}
