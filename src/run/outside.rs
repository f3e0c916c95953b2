//! Results that come from outside: of calls that the runtime does not make itself.

use super::account::Spent;
use super::command::Command;
use super::event::Event;
use super::input::InputError;
use super::machine::{RunMachine, SharedLimits, result_parts};
use super::state::Phase;
use crate::part::Part;
use crate::reply::Value;
use crate::ticket::{External, Outcome, TicketId};
use crate::tool::AnswerType;
use serde_json::value::RawValue;
use std::sync::Arc;

/// The name under which a result is checked. Messages have it.
const FIELD: &str = "answer";

/// Characters of the words with which a call is answered that failed outside.
const LONG: usize = 4_000;

/// What is told of an outcome beside the outcome itself.
#[derive(Default)]
pub(super) struct Told {
    /// What the run of a task has spent.
    pub(super) spent: Option<Spent>,
    /// In whose name a result comes from outside.
    pub(super) by: Option<Arc<str>>,
    /// Whether a child run or a script has read an untrusted result.
    pub(super) untrusted: bool,
}

impl RunMachine {
    /// Whether the result of a call comes from outside.
    pub(super) fn is_external(&self, ticket: TicketId) -> bool {
        self.state.calls.tickets.get(ticket).is_some_and(|ticket| ticket.external.is_some())
    }

    /// Whether a call awaits a result from outside now.
    pub fn awaits_result(&self, ticket: TicketId) -> bool {
        self.state.calls.tickets.get(ticket).is_some_and(|ticket| ticket.awaits_result)
    }

    /// A call has begun, and its result comes from outside, by this key if there is one. Returns whether that is so.
    pub fn pend(&mut self, ticket: TicketId, key: Option<&str>, external: External, now: f64) -> bool {
        if self.state.position.phase == Phase::Finished || !self.state.calls.may_pend(ticket) {
            return false;
        }
        self.emit(Event::TicketPending { ticket, key: key.map(Arc::from), external: Arc::new(external) }, now);
        // It is no call of this process any more.
        self.given.started.remove(&ticket);
        self.given.pending.insert(ticket);
        true
    }

    /// Completes a call with a result or a failure from outside, which was checked, in the name of `by`.
    pub fn answer(&mut self, ticket: TicketId, outcome: Outcome, parts: &[Part], by: Option<&str>, now: f64) {
        if self.awaits_result(ticket) {
            let told = Told { by: by.map(Arc::from), ..Told::default() };
            self.complete_by(ticket, (outcome, parts), told, now);
        }
    }

    /// Completes a call or a task.
    pub(super) fn complete_by(&mut self, ticket: TicketId, (outcome, parts): (Outcome, &[Part]), told: Told, now: f64) {
        if self.state.position.phase == Phase::Finished || !self.state.calls.open.contains_key(&ticket) {
            return;
        }
        let (outcome, parts) = result_parts(ticket, outcome, parts);
        let Told { spent, by, untrusted } = told;
        let spent = spent.map(Box::new);
        self.emit(Event::TicketCompleted { ticket, outcome, spent, parts, by, untrusted }, now);
        if let SharedLimits::Live(account) = &self.shared_limits {
            // A run that was driven elsewhere has drawn from other accounts.
            account.at_least(&[self.state.spent()]);
        }
        self.advance(now);
    }

    /// Ends a call whose result did not come in time. Before that time it does nothing.
    pub fn expire(&mut self, ticket: TicketId, now: f64) {
        let Some(until) = self.expires_at(ticket).filter(|until| *until <= now) else { return };
        let Some(waiting) = self.state.calls.tickets.get(ticket).filter(|ticket| ticket.awaits_result) else { return };
        let (tool, seconds) = (Arc::clone(&waiting.tool), until - waiting.opened_at);
        // Rounded, because times are large numbers.
        let seconds = (seconds * 1_000.0).round() / 1_000.0;
        let message = format!("Error calling tool '{tool}': TimeoutError: no result within {seconds} seconds.");
        self.complete_call(ticket, Outcome::Error { message, transient: true }, now);
    }

    /// Unix seconds at which the first of the calls fails that await a result.
    pub fn first_expiry(&self) -> Option<f64> {
        let waiting = self.given.pending.iter().filter(|ticket| self.awaits_result(**ticket));
        waiting.filter_map(|ticket| self.expires_at(*ticket)).min_by(f64::total_cmp)
    }

    fn expires_at(&self, ticket: TicketId) -> Option<f64> {
        let ticket = self.state.calls.tickets.get(ticket)?;
        Some(ticket.opened_at + ticket.external.as_ref()?.timeout?)
    }

    /// Whether a call can be answered.
    ///
    /// # Errors
    /// `AnsweredAlready`, `ApprovalFirst` or `NoResultAwaited`.
    pub fn check_awaits_result(&self, ticket: TicketId) -> Result<(), InputError> {
        if self.awaits_result(ticket) {
            return Ok(());
        }
        if self.awaits_approval(ticket) && self.is_external(ticket) {
            return Err(InputError::ApprovalFirst(ticket));
        }
        let known = self.state.calls.tickets.get(ticket);
        if let Some(known) = known.filter(|known| known.external.is_some())
            && matches!(known.outcome, Some(Outcome::Ok(_) | Outcome::Error { transient: false, .. }))
        {
            return Err(InputError::AnsweredAlready { ticket, by: known.answered_by.clone() });
        }
        let waiting = self.state.calls.tickets.iter().filter(|ticket| ticket.awaits_result);
        Err(InputError::NoResultAwaited { ticket, waiting: waiting.map(|ticket| ticket.id).collect() })
    }

    /// The outcome of a call that is answered with this one: a result as its type has it, or a failure in the words that
    /// the model reads.
    ///
    /// # Errors
    /// The call awaits no result, or `WrongResult`.
    pub fn check_answer(&self, ticket: TicketId, outcome: Outcome) -> Result<Outcome, InputError> {
        self.check_awaits_result(ticket)?;
        let Some(waiting) = self.state.calls.tickets.get(ticket) else { return Ok(outcome) };
        let tool = &waiting.tool;
        match outcome {
            Outcome::Ok(json) => {
                let Some(schema) = waiting.answers() else {
                    return Ok(Outcome::Ok(json));
                };
                let wrong = |problems: String| InputError::WrongResult { ticket, tool: Arc::clone(tool), problems };
                let value: Value = serde_json::from_str(json.get()).map_err(|error| wrong(error.to_string()))?;
                let answers = AnswerType::new(schema);
                let checked = answers.check(FIELD, &Arc::new(value)).map_err(|violation| wrong(violation.message))?;
                let problems = answers.format_problems(FIELD, &checked.value);
                if !problems.is_empty() {
                    return Err(wrong(problems.join("; ")));
                }
                if checked.coerced.is_empty() {
                    return Ok(Outcome::Ok(json));
                }
                let read = RawValue::from_string(checked.value.to_json()).map_err(|error| wrong(error.to_string()))?;
                Ok(Outcome::Ok(read.into()))
            }
            Outcome::Error { message, .. } => {
                let words: String = message.trim().trim_end_matches('.').chars().take(LONG).collect();
                let message = format!("Error calling tool '{tool}': {words}.");
                Ok(Outcome::Error { message, transient: false })
            }
            other => Ok(other),
        }
    }

    /// The results that are to be asked for.
    pub(super) fn result_questions(&mut self) -> Vec<Command> {
        let waiting = self.given.pending.iter().copied().filter(|ticket| self.awaits_result(*ticket));
        let due: Vec<TicketId> = waiting.filter(|ticket| !self.given.asking.contains(ticket)).collect();
        self.given.asking.extend(&due);
        due.into_iter().map(|ticket| Command::AskResult { ticket, until: self.expires_at(ticket) }).collect()
    }
}
