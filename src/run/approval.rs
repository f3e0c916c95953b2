//! Approval of calls: by a check of the program, and by a person, who may change the arguments.

use super::command::Command;
use super::event::{Event, Note};
use super::input::InputError;
use super::machine::{RunMachine, SharedLimits};
use super::reference;
use crate::reply::Value;
use crate::ticket::{Decision, Outcome, TicketId};
use std::sync::Arc;

/// Characters of a reason for approval.
const LONG: usize = 4_000;

impl RunMachine {
    /// Whether the program is still to decide if this call needs approval.
    pub fn is_checking_approval(&self, ticket: TicketId) -> bool {
        self.state.calls.open.get(&ticket).is_some_and(|call| call.unchecked)
    }

    /// The program has decided whether a call needs approval, and why. A second decision is ignored.
    pub fn approval_checked(&mut self, ticket: TicketId, needs_approval: bool, reason: Option<&str>, now: f64) {
        if !self.is_checking_approval(ticket) {
            return;
        }
        let reason = reason.map(str::trim).filter(|reason| needs_approval && !reason.is_empty());
        let reason = reason.map(|reason| reason.chars().take(LONG).collect::<String>().into());
        self.emit(Event::ApprovalChecked { ticket, needs_approval, reason }, now);
    }

    /// Approves a call in the name of `by`, with other arguments if `arguments` are given, which were checked. It is
    /// made now, or when the run is resumed.
    pub fn approve(&mut self, ticket: TicketId, arguments: Option<Arc<Value>>, by: Option<&str>, now: f64) {
        // Before version 3 approval was asked for before references were filled.
        if self.awaits_approval(ticket)
            || (self.is_parked(ticket) && matches!(self.shared_limits, SharedLimits::Replayed(_)))
        {
            let by = by.map(Arc::from);
            self.emit(Event::Approved { ticket, arguments, at_rest: !self.attended, by }, now);
        }
    }

    /// A person, `by`, denies a call that awaits approval.
    pub fn deny(&mut self, ticket: TicketId, why: &str, by: Option<&str>, now: f64) {
        let tool = self.state.calls.tickets.get(ticket).map(|ticket| ticket.tool.clone()).unwrap_or_default();
        let reason = if why.trim().is_empty() { String::new() } else { format!(": {}", why.trim()) };
        let message = format!("The call of '{tool}' was denied{reason}");
        self.complete_call(ticket, Outcome::Denied { message, by: by.map(Arc::from) }, now);
    }

    /// Whether a call awaits approval and its arguments are final.
    pub fn awaits_approval(&self, ticket: TicketId) -> bool {
        self.state.calls.awaits_approval(ticket)
    }

    /// Whether somebody outside of the run is to decide on a call or answer it, which does not go on until then.
    pub fn awaits_decision(&self, ticket: TicketId) -> bool {
        self.state.calls.awaits_decision(ticket)
    }

    /// The calls that somebody is to decide on or answer, oldest first.
    pub fn awaiting_decision(&self) -> Vec<TicketId> {
        self.state.calls.open.keys().copied().filter(|ticket| self.awaits_decision(*ticket)).collect()
    }

    /// Whether a call awaits approval.
    pub(super) fn is_parked(&self, ticket: TicketId) -> bool {
        self.state.calls.tickets.get(ticket).is_some_and(|ticket| ticket.parked)
    }

    /// Whether a person can approve or deny the call of this ticket.
    ///
    /// # Errors
    /// `DecidedAlready` or `NoApprovalNeeded`.
    pub fn check_awaits_approval(&self, ticket: TicketId) -> Result<(), InputError> {
        if self.awaits_approval(ticket) {
            return Ok(());
        }
        let known = self.state.calls.tickets.get(ticket);
        let decision = match known.map(|ticket| (ticket.decision, ticket.outcome.as_ref())) {
            Some((_, Some(Outcome::Denied { .. }))) => Some("denied"),
            Some((Some(Decision::Approved), _)) => Some("approved"),
            Some((Some(Decision::Edited), _)) => Some("approved with other arguments"),
            _ => None,
        };
        if let Some(decision) = decision {
            return Err(InputError::DecidedAlready { ticket, decision });
        }
        let ids = self.state.calls.tickets.iter().map(|ticket| ticket.id);
        Err(InputError::NoApprovalNeeded { ticket, waiting: ids.filter(|id| self.awaits_approval(*id)).collect() })
    }

    /// The arguments with which a person approves a call, checked as those of the model are.
    ///
    /// # Errors
    /// The call does not await approval, or `WrongArguments`.
    pub fn check_edited(&self, ticket: TicketId, arguments: &Value) -> Result<Arc<Value>, InputError> {
        self.check_awaits_approval(ticket)?;
        let tool = self.state.calls.open.get(&ticket).map(|call| Arc::clone(&call.tool)).unwrap_or_default();
        let of =
            |problems: String, each| InputError::WrongArguments { ticket, tool: Arc::clone(&tool), problems, each };
        let wrong = |problems: String| {
            let each = vec![(String::new(), problems.clone())];
            of(problems, each)
        };
        if self.setup.protocol.references() {
            let known = |name: &str| self.state.calls.call_ids.contains_key(name);
            let mentions = reference::mentions(arguments, !self.start.plans_whole_values());
            if let Some(mention) = mentions.iter().find(|mention| known(mention.name)) {
                let (pointer, name) = (&mention.pointer, mention.name);
                return Err(wrong(format!("expected a value at '{pointer}': got '${name}', a reference to a call")));
            }
        }
        let Some(spec) = self.setup.tools.get(&tool) else { return Err(wrong("there is no such tool".to_owned())) };
        let checked = self.setup.tools.check(spec, arguments);
        let checked = checked.map_err(|violation| of(violation.message, self.setup.tools.problems(spec, arguments)))?;
        let checked = Arc::new(Value::Object(checked.arguments));
        // Another operation that is not offered may be reached by a value in the path.
        self.setup
            .tools
            .approval(spec, &checked, &self.state.calls.more_approval)
            .map_err(|violation| wrong(violation.message))?;
        Ok(if self.start.fills_defaults() { self.setup.tools.with_defaults(spec, checked) } else { checked })
    }

    /// Writes down what the agent that continues the run asks for beyond the run's own approval.
    pub(super) fn note_more_approval(&mut self, now: f64) {
        let more = std::mem::take(&mut self.more_approval);
        if !more.is_empty() {
            self.emit(Event::Noted { note: Note::MoreApproval(more) }, now);
        }
    }

    /// The questions that are due about open calls: to the program, then to a person.
    pub(super) fn approval_questions(&mut self) -> Vec<Command> {
        let mut questions = Vec::new();
        for ticket in &self.given.pending {
            let Some(call) = self.state.calls.open.get(ticket) else { continue };
            if call.unchecked && self.given.checking.insert(*ticket) {
                let (tool, arguments) = (Arc::clone(&call.tool), Arc::clone(&call.arguments));
                questions.push(Command::CheckApproval { ticket: *ticket, tool, arguments });
            } else if call.is_final()
                && self.state.calls.tickets.get(*ticket).is_some_and(|ticket| ticket.parked)
                && self.given.approving.insert(*ticket)
            {
                questions.push(Command::AskApproval { ticket: *ticket });
            }
        }
        questions
    }
}
