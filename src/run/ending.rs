//! How a run ends, and how calls are cancelled: no ticket is left open.

use super::command::OnLimit;
use super::event::{Event, Note, StopReason};
use super::limits::Limit;
use super::machine::{RunMachine, SharedLimits};
use super::state::{OpenCall, Phase};
use crate::ticket::{Outcome, TicketId};

impl RunMachine {
    /// Ends the run because the model client failed.
    pub fn model_failed(&mut self, error: &str, now: f64) {
        if self.state.position.phase != Phase::Finished {
            self.finish(StopReason::ModelError, Some(error.to_owned()), now);
        }
    }

    /// Ends the run as cancelled.
    pub fn cancel(&mut self, now: f64) {
        if self.state.position.phase != Phase::Finished {
            self.finish(StopReason::Cancelled, Some("the run was cancelled".to_owned()), now);
        }
    }

    pub(super) fn cancel_open(&mut self, now: f64) {
        self.cancel_those(|_, _| true, now);
    }

    pub(super) fn cancel_those(&mut self, which: impl Fn(&Self, &OpenCall) -> bool, now: f64) {
        let chosen = self.state.calls.open.iter().filter(|(_, call)| which(self, call));
        let chosen: Vec<(TicketId, bool)> =
            chosen.map(|(ticket, call)| (*ticket, self.may_have_begun(*ticket, call))).collect();
        for (ticket, begun) in chosen {
            self.cancel_call(ticket, begun, now);
        }
    }

    /// Whether a call may have had an effect: it waits for no other call, no check and no approval.
    pub(super) fn may_have_begun(&self, ticket: TicketId, call: &OpenCall) -> bool {
        // Versions before 3 made calls without writing down what their references were filled with.
        let ready = call.is_final() || (!self.start.writes_filled_arguments() && self.state.calls.has_needs(call));
        ready && !call.unchecked && !self.is_parked(ticket) && !self.state.calls.unbegun.contains(&ticket)
    }

    pub(super) fn cancel_call(&mut self, ticket: TicketId, begun: bool, now: f64) {
        self.given.cancelled.push(ticket);
        let outcome = if begun { Outcome::Cancelled } else { Outcome::NotBegun };
        // A cancelled run does not report what it has spent. If there are several, the first has the sum.
        let spent = match &self.shared_limits {
            SharedLimits::Live(account) if self.is_task(ticket) => account.minus(&self.state.spent()),
            SharedLimits::Replayed(replayed) => replayed.spent.get(&self.seq).copied(),
            _ => None,
        };
        self.emit(
            Event::TicketCompleted {
                ticket,
                outcome,
                spent: spent.map(Box::new),
                parts: Vec::new(),
                by: None,
                untrusted: false,
            },
            now,
        );
    }

    pub(super) fn limit_reached(&self, now: f64) -> Option<Limit> {
        let limits = &self.setup.limits;
        let counts_turns = !self.setup.protocol.runs_code();
        if counts_turns && limits.turns.is_some_and(|turns| self.state.turns() >= turns) {
            return Some(Limit::Turns);
        }
        if self.is_out_of_time(now) {
            return Some(Limit::Seconds);
        }
        self.state.spent().limit_reached(limits)
    }

    /// Grants one last turn, or ends the run.
    pub(super) fn limit(&mut self, limit: Limit, now: f64) {
        if self.setup.on_limit == OnLimit::Raise || self.state.position.last_turn.is_some() {
            let error =
                format!("the run reached its limit of {limit}; raise Limits({}=…) if it needs more", limit.name());
            return self.end(StopReason::Limit, Some(error), Some(limit), now);
        }
        self.emit(Event::Noted { note: Note::LastTurn(limit) }, now);
        self.ask_now(now);
    }

    /// Ends the run because nothing counts what a limit bounds.
    pub(super) fn end_uncounted(&mut self, limit: Limit, now: f64) {
        let (counted, hint) = match limit {
            Limit::Cost => (
                "the cost of its replies",
                "wrap the model in Priced(model, input=…, output=…), or use Limits(tokens=…)",
            ),
            _ => ("the usage of its replies", "let the client report token counts, or use another limit"),
        };
        let name = limit.name();
        let error = format!("expected the model client to report {counted}, for Limits({name}=…): got none; {hint}");
        self.end(StopReason::Limit, Some(error), Some(limit), now);
    }

    pub(super) fn close(&mut self, now: f64) {
        if self.state.calls.tickets.open_count() == 0 {
            let reason = if self.state.position.last_turn.is_some() { StopReason::Limit } else { StopReason::Finished };
            self.finish(reason, None, now);
        }
    }

    pub(super) fn finish(&mut self, reason: StopReason, error: Option<String>, now: f64) {
        self.end(reason, error, None, now);
    }

    /// However a run ends, no ticket is left open.
    pub(super) fn end(&mut self, reason: StopReason, error: Option<String>, limit: Option<Limit>, now: f64) {
        // A reply that was broken off is no part of the next one.
        self.stream = None;
        self.cancel_open(now);
        let (value, success) = match &error {
            None => self.state.position.answer.clone().unwrap_or_default(),
            Some(_) => Default::default(),
        };
        self.emit(Event::RunFinished { reason, value, success, error, limit }, now);
    }
}
