//! Inputs that a run can't take as it is now.

use super::machine::RunMachine;
use super::{Comparison, Setup};
use crate::ticket::TicketId;
use std::sync::Arc;
use thiserror::Error;

/// Why an input from outside can't be passed to a run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub enum InputError {
    /// The user has no run yet to say more to.
    #[error("the run has not begun yet: pass the first message as its task")]
    NotBegun,
    /// A script takes no messages.
    #[error("run {0} is a script, which takes no messages: call send on the run above it")]
    TakesNoMessages(String),
    /// Another message was said under this key.
    #[error(
        "run {run_id} has a message with the key {key:?}, and another text: use another key for another message, or \
         pass the message that the run has"
    )]
    KeyTaken { run_id: String, key: String },
    /// The call of this ticket needs no approval now.
    #[error("expected a ticket that awaits approval: got {ticket}, {}", listed(.waiting))]
    NoApprovalNeeded {
        ticket: TicketId,
        /// The tickets that await approval.
        waiting: Vec<TicketId>,
    },
    /// Somebody has approved or denied the call.
    #[error("expected a ticket that awaits approval: got {ticket}, which was {decision} already")]
    DecidedAlready {
        ticket: TicketId,
        /// The decision, in words.
        decision: &'static str,
    },
    /// The ticket awaits no result from outside.
    #[error("expected a ticket that awaits a result: got {ticket}, {}", answerable(.waiting))]
    NoResultAwaited {
        ticket: TicketId,
        /// The tickets that await one.
        waiting: Vec<TicketId>,
    },
    /// The ticket awaits approval before it can be answered.
    #[error("expected a ticket that awaits a result: got {0}, which awaits approval first; call approve")]
    ApprovalFirst(TicketId),
    /// The ticket has its result from outside.
    #[error("expected a ticket that awaits a result: got {ticket}, which {} answered already", .by.as_deref().unwrap_or("somebody"))]
    AnsweredAlready {
        ticket: TicketId,
        /// Who has answered it, where the program has named somebody.
        by: Option<Arc<str>>,
    },
    /// The result is not of the type that the tool names.
    #[error("expected a result of '{tool}': got another value for {ticket}, which still awaits its result: {problems}")]
    WrongResult {
        ticket: TicketId,
        tool: Arc<str>,
        /// Every problem, in words.
        problems: String,
    },
    /// The tool does not take the arguments with which a person approves the call.
    #[error("expected arguments that '{tool}' takes: got others for {ticket}, which still awaits approval: {problems}")]
    WrongArguments {
        ticket: TicketId,
        tool: Arc<str>,
        /// Every problem, in words.
        problems: String,
        /// Each problem apart: a JSON pointer, and what is wrong there.
        each: Vec<(String, String)>,
    },
    /// The run was set up with another protocol or with other tools.
    #[error(
        "run {run_id} can't be resumed by this agent: {}. Use an agent that takes all calls of the run, or call \
         agent.hand_over(run), which tells the conversation to a new run of this agent",
        .differences.join("; ")
    )]
    Incompatible {
        run_id: String,
        /// Each difference that matters, in words.
        differences: Vec<String>,
    },
}

fn listed(tickets: &[TicketId]) -> String {
    if tickets.is_empty() {
        return "and no ticket awaits approval".to_owned();
    }
    let ids: Vec<String> = tickets.iter().map(TicketId::to_string).collect();
    format!("but only {} can be approved or denied", ids.join(", "))
}

fn answerable(tickets: &[TicketId]) -> String {
    if tickets.is_empty() {
        return "and no ticket awaits a result".to_owned();
    }
    let ids: Vec<String> = tickets.iter().map(TicketId::to_string).collect();
    format!("but only {} can be answered", ids.join(", "))
}

impl RunMachine {
    /// Whether `send` has an effect.
    ///
    /// # Errors
    /// `NotBegun`.
    pub fn check_begun(&self) -> Result<(), InputError> {
        if self.state.conversation.messages.is_empty() { Err(InputError::NotBegun) } else { Ok(()) }
    }

    /// An agent with this setup continues the run: what it asks for beyond the run's own approval holds from the next call
    /// on. A run that can't be resumed at all can be opened by any agent, unless it `goes_on` with a message. Returns
    /// whether both have the same calls.
    ///
    /// # Errors
    /// `Incompatible`.
    pub fn adopt(&mut self, setup: &Setup, goes_on: bool) -> Result<bool, InputError> {
        let Comparison { differences, more_approval, has_same_calls, .. } = self.compare(setup);
        if !differences.is_empty() && (goes_on || self.state.position.resumable()) {
            return Err(InputError::Incompatible { run_id: self.run_id().to_owned(), differences });
        }
        self.more_approval = more_approval;
        Ok(has_same_calls)
    }

    /// What differs between the run and an agent with this setup.
    pub fn compare(&self, setup: &Setup) -> Comparison {
        Comparison::between(&self.setup, &self.state.calls.more_approval, setup, self.start.knows_read_types())
    }
}
