//! What a driver is asked to do, and what a run is set up with.

use super::certainty::Certainty;
use super::limits::Limits;
use crate::protocol::{self, Message, Protocol, stored_protocol};
use crate::reply::Value;
use crate::ticket::{TicketId, is_false};
use crate::tool::{AgentLevel, ToolSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One thing for the driver to do. Its result is passed to the machine as an input.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub enum Command {
    /// Ask the model for the reply of this turn, with all messages there are now.
    AskModel {
        /// From 1.
        turn: u32,
    },
    /// Call a tool.
    CallTool {
        /// The ticket its outcome completes.
        ticket: TicketId,
        tool: Arc<str>,
        /// Checked arguments, an object.
        arguments: Arc<Value>,
        /// Whether it may have been made before, by a process that ended while it was under way.
        again: bool,
    },
    /// Start the run of a task, or resume it.
    StartRun {
        /// The ticket its outcome completes.
        ticket: TicketId,
        /// The tool that was called; `DELEGATE` for that move.
        tool: Arc<str>,
        /// The role that it has (chatty).
        role: Option<String>,
        /// What it is to do.
        task: String,
        /// Whether it may have been started before, by a process that ended while it was under way.
        again: bool,
    },
    /// Wait a moment for the calls just started before the model is asked again (ticket).
    Settle,
    /// Check the final answer: the run ends with it only if it is accepted.
    CheckAnswer {
        /// The turn of the reply.
        turn: u32,
        /// The value of the run.
        value: Arc<Value>,
    },
    /// Decide whether a call needs approval. It is not made before.
    CheckApproval {
        ticket: TicketId,
        tool: Arc<str>,
        /// Its final arguments, an object.
        arguments: Arc<Value>,
    },
    /// Ask for a person's approval of a call, if the run has somebody to ask.
    AskApproval { ticket: TicketId },
    /// Ask for a result from outside, if the run has something to ask, and end the ticket if none comes in time.
    AskResult {
        ticket: TicketId,
        /// Unix seconds at which the ticket fails; `None` if it waits for any time.
        until: Option<f64>,
    },
    /// Stop working on this ticket, which is completed as cancelled.
    Cancel { ticket: TicketId },
    /// The run is over.
    Finish,
}

/// What happens at a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// The model gets one last turn without tools, to answer from what there is.
    #[default]
    Answer,
    /// The run ends at once.
    Raise,
}

/// What happens to tickets in progress when the model finishes the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnOpenTickets {
    /// They are waited for: a side effect that was asked for is not lost.
    #[default]
    Wait,
    /// They are cancelled.
    Cancel,
}

/// What runs are set up with. It stands in their logs, so that they can be resumed and replayed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is one option, which stands by its name in the log")]
pub struct Setup {
    /// How moves are written.
    #[serde(with = "stored_protocol")]
    pub protocol: Arc<dyn Protocol>,
    /// The system prompt, rendered.
    pub prompt: Arc<str>,
    /// The agent's own instructions, which the prompt has too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Arc<str>>,
    /// An example of a run, between the prompt and the task.
    #[serde(default, skip_serializing_if = "<[Message]>::is_empty")]
    pub examples: Arc<[Message]>,
    /// What each task ends with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminder: Option<Arc<str>>,
    /// What can be called.
    pub tools: Arc<ToolSet>,
    /// How far it may go.
    pub limits: Limits,
    /// What happens at a limit.
    pub on_limit: OnLimit,
    /// What happens to open tickets at the end.
    pub on_open_tickets: OnOpenTickets,
    /// Whether tasks can be delegated: `DELEGATE` (ticket). The other protocols have tools for it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub delegates: bool,
    /// Whether a call is required before an answer.
    pub call_first: bool,
    /// Whether the program checks each answer before the run ends with it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub checks_answer: bool,
    /// Whether a stream is stopped where its first whole move ends.
    pub early_stop: bool,
    /// Whether a readonly call starts while the rest of its block is still arriving.
    pub early_start: bool,
    /// Whether the run ends at its first valid move, with the checked calls of a call as its value. Nothing is opened, so
    /// that limits of tickets and runs have nothing to count, and nothing starts early or refers to a result.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ends_at_call: bool,
    /// How well the origins of values must be known, where their tools do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<AgentLevel>,
    /// The least certainty of a tool's name, for clients that report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_certainty: Option<Certainty>,
}

impl Setup {
    /// Whether a task can be delegated by a move.
    pub(super) fn offers_delegation(&self) -> bool {
        self.delegates && !self.ends_at_call
    }

    /// The setup of a run that waits for its agent: nothing of it is known here.
    pub fn unknown() -> Self {
        Self {
            protocol: protocol::placeholder(),
            prompt: Arc::default(),
            instructions: None,
            examples: Arc::default(),
            reminder: None,
            tools: Arc::new(ToolSet::empty()),
            limits: Limits::default(),
            on_limit: OnLimit::default(),
            on_open_tickets: OnOpenTickets::default(),
            delegates: false,
            call_first: false,
            checks_answer: false,
            early_stop: false,
            early_start: false,
            ends_at_call: false,
            values: None,
            least_certainty: None,
        }
    }
}
