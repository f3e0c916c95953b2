//! The time in which nothing works on a run: it does not count towards its wall time.

use super::{OpenCall, Phase, RunState};
use crate::run::event::{Event, Note};
use crate::ticket::{TicketId, TicketKind};

impl RunState {
    /// Whether nothing works on the run: each open call awaits a decision or a result from outside, or such a call.
    pub fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Calling | Phase::Awaiting(_) | Phase::Closing)
            && !self.midway
            && self.open_calls.keys().any(|ticket| self.awaits_decision(*ticket))
            && !self.open_calls.iter().any(|(ticket, call)| self.is_under_way(*ticket, call))
    }

    /// Whether something works on a call: it awaits nobody outside, and no other call.
    pub(in crate::run) fn is_under_way(&self, ticket: TicketId, call: &OpenCall) -> bool {
        !self.awaits_decision(ticket) && self.has_needs(call)
    }

    /// Whether the result of a call can turn out to come from outside: it is made, and no run of its own works on it.
    pub(crate) fn may_pend(&self, ticket: TicketId) -> bool {
        let known = self.tickets.get(ticket).filter(|known| known.kind == TicketKind::ToolCall && !known.parked);
        let call = self.open_calls.get(&ticket);
        known.is_some_and(|known| known.external.is_none())
            && call.is_some_and(|call| call.is_final() && !call.unchecked && call.failure.is_none())
    }

    /// Whether somebody outside of the run is to decide on a call or answer it, which does not go on until then.
    pub(crate) fn awaits_decision(&self, ticket: TicketId) -> bool {
        self.awaits_approval(ticket) || self.tickets.get(ticket).is_some_and(|ticket| ticket.awaits_result)
    }

    /// Whether a call awaits approval and its arguments are final.
    pub(crate) fn awaits_approval(&self, ticket: TicketId) -> bool {
        self.tickets.get(ticket).is_some_and(|ticket| ticket.parked)
            && self.open_calls.get(&ticket).is_some_and(|call| call.is_final())
    }

    /// Whether the time before this event is known not to count, because of the event or of what was before it.
    pub(crate) fn is_paused_before(&self, event: &Event) -> bool {
        matches!(event, Event::Noted { note: Note::Resumed } | Event::Approved { at_rest: true, .. })
            || self.is_waiting()
    }

    /// Unix seconds of the last event.
    pub fn last_at(&self) -> f64 {
        self.last_at
    }

    /// Seconds from the last event to this moment.
    pub(crate) fn since_last(&self, now: f64) -> f64 {
        (now - self.last_at).max(0.0)
    }

    /// Adds the time before an event to that which does not count, if nothing worked on the run in it.
    pub(super) fn add_pause(&mut self, event: &Event, at: f64) {
        if let Event::Noted { note: Note::Paused(seconds) } = event {
            self.paused += seconds.max(0.0).min(self.since_last(at));
        } else if self.is_paused_before(event) {
            self.paused += self.since_last(at);
        }
    }
}
