//! Events: the only thing that is ever stored of a run. Its state is their fold.

use super::account::Spent;
use super::command::Setup;
use super::limits::{Limit, Limits};
use super::opened::Opened;
use super::own_setup::Instructions;
use super::snapshot::Snapshot;
use crate::part::Part;
use crate::protocol::{FinishReason, Message, Move, TextSpans, Violation};
use crate::reply::{Repair, Value};
use crate::ticket::{External, Outcome, TicketId, is_false};
use crate::tool::MoreApproval;
use crate::tool::describe::truncate;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;
use std::sync::Arc;

/// The version of the records that this build writes.
pub const VERSION: u32 = 9;

/// One event with its place in the run's log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub struct Record {
    /// Position in the log, from 0.
    pub seq: u64,
    /// Unix seconds of the driver's clock.
    pub at: f64,
    pub event: Event,
}

/// What a reply cost, as the model client reports it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the messages.
    pub input_tokens: u64,
    /// Tokens of the reply.
    pub output_tokens: u64,
    /// Those of the input that came from the client's cache.
    pub cached_tokens: u64,
    /// In the client's own currency; 0 if it reports none.
    pub cost: f64,
    /// Whether the client reports no cost for a reply; not known of sums.
    #[serde(skip_serializing_if = "is_false")]
    pub unpriced: bool,
}

impl Usage {
    /// The difference to an earlier sum.
    pub(super) fn minus(&self, other: &Self) -> Self {
        let cost = self.cost - other.cost;
        Self {
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(other.cached_tokens),
            // Sums that were added up in different orders differ in the last digits.
            cost: if cost > self.cost * 1e-12 { cost } else { 0.0 },
            unpriced: false,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.cost += other.cost;
    }
}

/// One request to one model that has failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// The turn of the reply.
    pub turn: u32,
    /// The name of the model.
    pub model: String,
    /// What went wrong.
    pub error: String,
    /// Seconds until the next attempt; `None` if there is no other.
    pub wait: Option<f64>,
    /// Whether a part of the reply was streamed, and is void.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dropped: bool,
    /// What it cost, where the client says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
}

/// One attempt at a tool call that has failed, where the runtime makes another one or has made several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedCall {
    /// The ticket of the call.
    pub ticket: TicketId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// What went wrong, as the model would read it.
    pub error: String,
    /// Seconds until the next attempt; `None` if there is no other.
    pub wait: Option<f64>,
}

impl FailedCall {
    /// Characters of an error. The whole one of the last attempt is the outcome of the ticket.
    const ERROR: usize = 4_000;

    /// A failed attempt, with its error truncated to what a log has room for.
    pub fn new(ticket: TicketId, attempt: u32, error: &str, wait: Option<f64>) -> Self {
        Self { ticket, attempt, error: truncate(error, Self::ERROR), wait }
    }
}

/// What the model is shown no longer, from one request on. Of the messages of the run only the last one may change, whose
/// results are cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shortened {
    /// The turn of the request.
    pub turn: u32,
    /// The oldest exchanges that are left out, in all.
    pub exchanges: u32,
    /// The oldest exchanges that are left out or shown without the results that were loaded into them.
    pub results: u32,
    /// What is shown in place of the exchanges that are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Arc<str>>,
    /// Bytes of one result that are shown from now on, in the last message too, whose results did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<usize>,
    /// Why the request before it, or the summary, failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the summary cost, where the client says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub enum StopReason {
    /// The model finished it.
    Finished,
    /// A limit was reached.
    Limit,
    /// Too many violations in a row.
    Violations,
    /// Ends the run because the model client failed.
    ModelError,
    Cancelled,
}

/// How a run began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Start {
    /// `VERSION` of the writer.
    pub version: u32,
    /// Unique among runs.
    pub run_id: String,
    /// The name of the agent that works on it.
    pub agent: String,
    /// Whose data it is. The runs below it have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Arc<str>>,
    /// By what its caller knows it, unique among the runs of this owner and agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Arc<str>>,
    /// The key of the seals of its calls, in hexadecimal digits; its calls that need approval have their defaults too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal_key: Option<Arc<str>>,
    /// The call of another run in which it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// How many runs are above it.
    #[serde(default, skip_serializing_if = "is_root")]
    pub depth: u32,
    /// Its limits, where they are others than those of the setup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Its instructions, where a function of the program has given them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    /// An earlier conversation, before the task.
    #[serde(default, skip_serializing_if = "<[Message]>::is_empty")]
    pub messages: Arc<[Message]>,
    /// Whether its task, or the conversation before it, was written by a model that had read untrusted results.
    #[serde(default, skip_serializing_if = "is_false")]
    pub untrusted: bool,
    /// The trace of a telemetry system that it began in, as the header `traceparent` of the W3C has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Arc<str>>,
    /// What the user asks for.
    pub task: Arc<str>,
    /// Images and files of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// What it was set up with.
    pub setup: Arc<Setup>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_root(depth: &u32) -> bool {
    *depth == 0
}

/// A call of another run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The run that calls.
    pub run_id: String,
    /// The ticket of the call.
    pub ticket: TicketId,
}

impl StopReason {
    /// As it is written in a log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Limit => "limit",
            Self::Violations => "violations",
            Self::ModelError => "model_error",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What happened in a run. The set is closed and versioned: `RunStarted` names the version.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub enum Event {
    /// The run began.
    RunStarted(Box<Start>),
    /// The model is asked for its next reply.
    ModelAsked {
        /// From 1.
        turn: u32,
        /// The name of the model, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Arc<str>>,
        /// The name of its service, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<Arc<str>>,
    },
    /// The model replied.
    ModelReplied {
        /// The turn it answers.
        turn: u32,
        /// The reply as far as it was read.
        text: Arc<str>,
        /// Whether it was read chunk by chunk.
        streamed: bool,
        /// How it ended: as the client says, and `stop` where the stream was stopped.
        finish_reason: FinishReason,
        /// What it cost, where the client says so.
        usage: Option<Box<Usage>>,
        /// What was repaired in it.
        repairs: Vec<Repair>,
        /// Unix seconds of its first piece, where it was streamed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_at: Option<f64>,
        /// The probability of the first tool's name before the grammar, if the client reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        certainty: Option<f64>,
        /// The model that wrote it, where it is not the one that was to be asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Arc<str>>,
        /// The service of that model, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<Arc<str>>,
    },
    /// A request for a reply failed, and nothing of the reply was executed. The model, or another one, is asked again
    /// unless the run ends.
    ModelAttemptFailed(Box<FailedAttempt>),
    /// The conversation was too long for the model, which is shown less of it from now on.
    HistoryShortened(Box<Shortened>),
    /// The reply broke the protocol; nothing of it is executed.
    Violated {
        /// The turn of the reply.
        turn: u32,
        violation: Box<Violation>,
        /// The places of `narration`, `thoughts` and `answer` in the reply.
        #[serde(flatten)]
        spans: TextSpans,
    },
    /// The model gave an answer, which the program is to check before it counts.
    AnswerOffered {
        /// The turn of the reply.
        turn: u32,
        /// The final answer.
        #[serde(rename = "move")]
        moved: Move,
        /// The places of `narration`, `thoughts` and `answer` in the reply.
        #[serde(flatten)]
        spans: TextSpans,
    },
    /// The move of a valid reply.
    Moved {
        /// The turn of the reply.
        turn: u32,
        /// What it asks for.
        #[serde(rename = "move")]
        moved: Move,
        /// The places of `narration`, `thoughts` and `answer` in the reply.
        #[serde(flatten)]
        spans: TextSpans,
    },
    /// A message of the user, during the run or after its end. The run continues with it.
    UserSaid {
        /// In the user's words.
        text: Arc<str>,
        /// Images and files of the message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Part>,
        /// By what its sender knows it: a message with a key that the run has is not said again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Arc<str>>,
    },
    /// A call is to be made, or a task is to be given to another run.
    TicketOpened(Box<Opened>),
    /// The results that a call refers to are there, and its arguments are final.
    ArgumentsFilled {
        ticket: TicketId,
        /// Its checked arguments, whole and final.
        arguments: Arc<Value>,
        /// Whether it waits for a person's approval now.
        #[serde(default, skip_serializing_if = "is_false")]
        needs_approval: bool,
        /// Whether the program decides first if it needs approval.
        #[serde(default, skip_serializing_if = "is_false")]
        checks_approval: bool,
        /// Whether it is a task or a script that has an untrusted result among its arguments.
        #[serde(default, skip_serializing_if = "is_false")]
        untrusted: bool,
    },
    /// The program has decided whether a call needs approval.
    ApprovalChecked {
        ticket: TicketId,
        /// Whether it waits for a person's approval now.
        #[serde(default, skip_serializing_if = "is_false")]
        needs_approval: bool,
        /// Why it does, in the program's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Arc<str>>,
    },
    /// A person has approved a call.
    Approved {
        ticket: TicketId,
        /// The arguments that the person has put in the place of the call's own, checked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Arc<Value>>,
        /// Whether no driver worked on the run, so that the call has not begun.
        #[serde(default, skip_serializing_if = "is_false")]
        at_rest: bool,
        /// Who has approved it, where the program has named somebody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Arc<str>>,
    },
    /// A call has begun, and its result comes from outside. It is not made again, whatever its tool says of that.
    TicketPending {
        ticket: TicketId,
        /// By what others know the call: unique among the runs of this owner and agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Arc<str>>,
        /// What is known of the result.
        external: Arc<External>,
    },
    /// An attempt at a call failed. Another one follows, or the call ends with this failure.
    ToolAttemptFailed(Box<FailedCall>),
    /// A call ended.
    TicketCompleted {
        ticket: TicketId,
        outcome: Outcome,
        /// What the run of a task has spent, with those below it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<Box<Spent>>,
        /// Images and files of its result.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Part>,
        /// Who has given the result from outside, where the program has named somebody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Arc<str>>,
        /// Whether the result turned out to be untrusted: its child run or script has read such a result.
        #[serde(default, skip_serializing_if = "is_false")]
        untrusted: bool,
    },
    /// A decision of the runtime.
    Noted { note: Note },
    /// The events so far, folded: this takes their place, at the `seq` of the last of them.
    Compacted {
        /// How the run began.
        start: Box<Start>,
        /// SHA-256 of the records it takes the place of, as JSON lines.
        hash: String,
        /// SHA-256 of their fold, as JSON.
        sum: String,
        /// Their fold.
        state: Box<Snapshot>,
    },
    /// The run ended.
    RunFinished {
        reason: StopReason,
        /// Its value; null where there is none.
        value: Arc<Value>,
        /// What a react reply says of its own success.
        success: Option<bool>,
        /// What went wrong, where something did.
        error: Option<String>,
        /// The limit that ended it, where one did.
        limit: Option<Limit>,
    },
}

impl Event {
    /// A call ended, without images or files, and no other run worked on it.
    pub fn completed(ticket: TicketId, outcome: Outcome) -> Self {
        Self::TicketCompleted { ticket, outcome, spent: None, parts: Vec::new(), by: None, untrusted: false }
    }

    /// The places of narration, thoughts and answer in the reply of this turn.
    pub fn spans(&self) -> Option<&TextSpans> {
        match self {
            Self::Violated { spans, .. } | Self::AnswerOffered { spans, .. } | Self::Moved { spans, .. } => Some(spans),
            _ => None,
        }
    }

    /// Removes these places.
    pub(super) fn forget_spans(&mut self) {
        if let Self::Violated { spans, .. } | Self::AnswerOffered { spans, .. } | Self::Moved { spans, .. } = self {
            *spans = TextSpans::default();
        }
    }

    /// The ticket of which this has what came of an attempt: an outcome, a failure, or that it comes from outside.
    pub fn ended_ticket(&self) -> Option<TicketId> {
        match self {
            Self::TicketCompleted { ticket, .. } | Self::TicketPending { ticket, .. } => Some(*ticket),
            Self::ToolAttemptFailed(failed) => Some(failed.ticket),
            _ => None,
        }
    }
}

/// A decision of the runtime.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// A limit was reached: the next turn is the last and offers no tools.
    LastTurn(Limit),
    /// A limit of this run or of one above it is reached by what the runs below that have spent.
    Exhausted(Limit),
    /// The run was resumed, after its process ended or its model failed.
    Resumed,
    /// The agent that continues the run asks for more approval than the run did. It holds from the next call on.
    MoreApproval(MoreApproval),
    /// Nothing worked on the run in these seconds before, which the other events don't tell.
    Paused(f64),
}
