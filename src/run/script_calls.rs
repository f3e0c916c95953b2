//! The calls of a script: each is checked and opened alone, in the order in which the script has come to it.

use super::event::{Event, StopReason};
use super::limits::Limit;
use super::machine::RunMachine;
use super::plan::{self, Planned, Refusal};
use super::state::Phase;
use super::state::WaitingCall;
use crate::codes::Code;
use crate::protocol::{Move, TextSpans, ToolCall};
use crate::reply::violation::Violation;
use std::collections::BTreeMap;

/// Bytes of the arguments of one call. No model reads the values that a script passes on.
const ARGUMENTS: usize = 64 << 10;

impl RunMachine {
    /// Takes the calls of a reply, which are made as there is room for them.
    pub(super) fn take_calls(&mut self, calls: &[ToolCall], spans: TextSpans, now: f64) {
        if let Some(violation) = self.refused_reply(calls) {
            return self.record_violation(violation, spans, now);
        }
        if let Err(limit) = self.reserve_calls(calls.len(), now) {
            return self.limit(limit, now);
        }
        let turn = self.state.position.turn;
        self.emit(Event::Moved { turn, moved: Move::Call { calls: calls.to_vec() }, spans }, now);
        self.advance(now);
    }

    /// Why an interpreter may not continue with these calls.
    fn refused_reply(&self, calls: &[ToolCall]) -> Option<Violation> {
        let script = self.state.calls.script.as_ref()?;
        if script.in_doubt && !script.has_news() {
            let message = "expected the end of the script: got calls, though it is not known whether one was made";
            return Some(Violation::new(Code::NotOffered, message));
        }
        let waits = script.has_news() || !script.waiting.is_empty() || !self.state.calls.open.is_empty();
        (calls.is_empty() && !waits)
            .then(|| Violation::new(Code::NoAction, "expected calls or an end: got none, and no call is in progress"))
    }

    /// Every call counts, also one that turns out to be wrong: a script could ask for those without end.
    fn reserve_calls(&mut self, calls: usize, now: f64) -> Result<(), Limit> {
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        let limits = &self.setup.limits;
        let asked = self.state.spent().tickets.saturating_add(calls);
        if limits.tickets.is_some_and(|limit| asked > limit) {
            return Err(Limit::Tickets);
        }
        if calls > 0 && limits.open_tickets == Some(0) {
            return Err(Limit::OpenTickets);
        }
        self.check_shared_limits(now, |account| account.reserve(calls, 0))
    }

    /// Makes the calls for which there is room. Asks the interpreter if no other outcome can come soon.
    pub(super) fn advance_script(&mut self, now: f64) {
        if !matches!(self.state.position.phase, Phase::Idle | Phase::Finished | Phase::Closing) {
            self.open_waiting(now);
        }
        match self.state.position.phase {
            Phase::Idle => self.ask(now),
            Phase::Settling if self.state.calls_in_progress() == 0 => self.ask(now),
            Phase::Closing => {
                // A script that has ended needs no further calls.
                self.cancel_those_not_begun(now);
                self.close(now);
            }
            _ => {}
        }
    }

    fn cancel_those_not_begun(&mut self, now: f64) {
        let open = self.state.calls.open.iter();
        let unbegun =
            open.filter(|(ticket, call)| !self.may_have_begun(**ticket, call) || self.awaits_result(**ticket));
        let unbegun: Vec<_> = unbegun.map(|(ticket, call)| (*ticket, self.may_have_begun(*ticket, call))).collect();
        for (ticket, begun) in unbegun {
            self.cancel_call(ticket, begun, now);
        }
    }

    /// Those that await a person or a result from outside take no room: they hold up no other.
    fn open_waiting(&mut self, now: f64) {
        let room = self.setup.limits.open_tickets.map_or(usize::MAX, |limit| limit as usize);
        while self.state.calls_in_progress() < room {
            let script = self.state.calls.script.as_ref().filter(|script| !script.in_doubt);
            let Some(script) = script else { return };
            let (number, Some(waiting)) = (script.next_number(), script.waiting.front().cloned()) else { return };
            match self.plan_waiting(number, &waiting, now) {
                Ok(planned) => self.open_in_turn(planned, waiting.turn, now),
                Err(Refusal::Limit(limit)) => return self.limit(limit, now),
                Err(Refusal::Violation(violation)) => {
                    let violation = match violation.span {
                        Some(_) => *violation,
                        None => violation.at(waiting.call.span),
                    };
                    let turn = self.state.position.turn;
                    let spans = TextSpans::default();
                    self.emit(Event::Violated { turn, violation: Box::new(violation), spans }, now);
                }
            }
        }
    }

    fn plan_waiting(&mut self, number: usize, waiting: &WaitingCall, now: f64) -> Result<Planned, Refusal> {
        let call = &waiting.call;
        let bytes = call.arguments_span.end.saturating_sub(call.arguments_span.start);
        if bytes > ARGUMENTS {
            let message = format!("expected arguments of at most {ARGUMENTS} bytes: got {bytes}");
            return Err(Violation::new(Code::TooLarge, message).at(call.arguments_span).into());
        }
        let one = std::slice::from_ref(call);
        let planned = plan::calls(one, &BTreeMap::new(), &self.state, &self.setup, &self.start)?;
        let mut planned: Vec<Planned> = planned;
        self.judge(&mut planned, one, now)?;
        let runs = plan::runs(&planned);
        if runs > 0 {
            self.check_shared_limits(now, |account| account.reserve(0, runs)).map_err(Refusal::Limit)?;
        }
        let Some(mut planned) = planned.pop() else {
            return Err(Violation::new(Code::NoAction, "expected a call: got none").into());
        };
        let line = call.description.as_deref().unwrap_or_default();
        planned.description = format!("{line}: {}", plan::describe(&planned.tool, &planned.arguments));
        planned.call = number;
        Ok(planned)
    }

    /// The fault of an interpreter ends the script: it would give the same reply again.
    pub(super) fn end_faulty(&mut self, message: &str, now: f64) {
        self.finish(StopReason::Violations, Some(format!("the interpreter broke the protocol: {message}")), now);
    }
}
