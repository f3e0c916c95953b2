//! Tickets: the record of every tool call and every delegated task, in every protocol.

mod external;
mod list;

pub use external::External;
pub use list::TicketList;

use crate::origin::{Origin, as_map};
use crate::part::Part;
use crate::reply::Value;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;

/// A ticket's id: short and local to its run, shown as `T1`, `T2`, … in the order of opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TicketId(pub u32);

impl TicketId {
    /// The run's own task in the list that the model is shown. No ticket of the store has this id, and none is read of it.
    pub const OWN: Self = Self(0);

    /// Reads `T12`, as the model writes it; blanks around it are let pass.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.trim().strip_prefix('T')?;
        let canonical = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
        canonical.then(|| digits.parse().ok().map(Self)).flatten()
    }
}

impl fmt::Display for TicketId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "T{}", self.0)
    }
}

/// How a ticket ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The tool returned this JSON.
    Ok(Arc<RawValue>),
    /// The tool failed.
    Error {
        /// The message for the model, for example `Error calling tool 'f': ValueError: no such city.`
        message: String,
        /// Whether it may pass by itself, so that the same call may be made again.
        #[serde(default, skip_serializing_if = "is_false")]
        transient: bool,
    },
    /// The tool asks the model to try again, in its own words.
    Retry {
        /// The message for the model.
        message: String,
    },
    /// The process ended while the call was under way, and what came of it is not known.
    InDoubt {
        /// The message for the model.
        message: String,
    },
    /// A person has refused the call.
    Denied {
        /// The message for the model.
        message: String,
        /// Who has refused it, where the program has named somebody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Arc<str>>,
    },
    /// The run that worked on it was cancelled, by itself.
    RunCancelled {
        /// The message for the model.
        message: String,
    },
    /// It was given up under way.
    Cancelled,
    /// It was given up before it began.
    NotBegun,
}

impl Outcome {
    /// Whether its own run has given it up.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled | Self::NotBegun)
    }

    /// Whether the call did what it was asked for.
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok(_))
    }

    /// The same, with how often the call was tried where that is more than once.
    #[must_use]
    pub fn after_attempts(self, attempts: u32) -> Self {
        match self {
            Self::Error { message, transient } if attempts > 1 => {
                Self::Error { message: format!("{message} The call was tried {attempts} times."), transient }
            }
            other => other,
        }
    }

    /// The word for it: `ok`, `error`, `retry`, `in_doubt`, `denied` or `cancelled`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ok(_) => "ok",
            Self::Error { .. } => "error",
            Self::Retry { .. } => "retry",
            Self::InDoubt { .. } => "in_doubt",
            Self::Denied { .. } => "denied",
            Self::RunCancelled { .. } | Self::Cancelled | Self::NotBegun => "cancelled",
        }
    }

    /// The JSON of a result, or the message of a failure.
    pub fn text(&self) -> &str {
        match self {
            Self::Ok(json) => json.get(),
            Self::Error { message, .. }
            | Self::Retry { message }
            | Self::InDoubt { message }
            | Self::RunCancelled { message }
            | Self::Denied { message, .. } => message,
            Self::Cancelled => "cancelled under way: whether it took effect is not known",
            Self::NotBegun => "cancelled before it began: it had no effect",
        }
    }
}

/// Whether a ticket is done. The protocols show these two words and no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// Opened, without an outcome.
    InProgress,
    /// It has an outcome.
    Completed,
}

/// What a ticket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TicketKind {
    /// A call of a tool.
    #[default]
    ToolCall,
    /// A task for a run of its own.
    Task,
}

impl TicketKind {
    /// `tool_call` or `task`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolCall => "tool_call",
            Self::Task => "task",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::ToolCall, Self::Task].into_iter().find(|kind| kind.as_str() == name)
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
    pub(crate) fn is_tool_call(&self) -> bool {
        *self == Self::ToolCall
    }
}

/// How a person has approved of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// As it was asked for.
    Approved,
    /// With other arguments.
    Edited,
}

/// One tool call, or one task that was given to another run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact, which stands by its name in the log")]
pub struct Ticket {
    /// Its id in the run.
    pub id: TicketId,
    /// What it is for: the model's words, or the call itself.
    pub description: Arc<str>,
    /// What it is: a call or a task.
    #[serde(default, skip_serializing_if = "TicketKind::is_tool_call")]
    pub kind: TicketKind,
    /// The tool called; `DELEGATE` for that move.
    pub tool: Arc<str>,
    /// Where its values come from, by the JSON pointers of its arguments, as far as somebody has asked.
    #[serde(default, with = "as_map", skip_serializing_if = "<[_]>::is_empty")]
    pub origins: Arc<[(String, Origin)]>,
    /// The role that the run of a task has (chatty).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Whether the model continues without its outcome, and asks for it later (chatty).
    #[serde(default, skip_serializing_if = "is_false")]
    pub detached: bool,
    /// Whether it waits for a person's approval.
    #[serde(default, skip_serializing_if = "is_false")]
    pub parked: bool,
    /// Why it needs approval, in the program's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_reason: Option<Arc<str>>,
    /// How a person has approved of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Who has approved of it, where the program has named somebody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<Arc<str>>,
    /// Set where its result comes from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<Arc<External>>,
    /// By what others know it, where its result turned out to come from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_key: Option<Arc<str>>,
    /// Whether it waits for a result from outside.
    #[serde(default, skip_serializing_if = "is_false")]
    pub awaits_result: bool,
    /// Who has given its result from outside, where the program has named somebody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<Arc<str>>,
    /// Whether its result comes from others, or from a child run or a script that has read such a result.
    #[serde(default, skip_serializing_if = "is_false")]
    pub untrusted: bool,
    /// Its checked arguments: with references until they are filled, then final. None where a version before 3 compacted
    /// the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Arc<Value>>,
    /// The turn whose reply opened it.
    pub turn: u32,
    /// The model's own name for the call (chatty).
    pub call_id: Option<String>,
    /// How many attempts were made, the one that is waited for among them.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub attempts: u32,
    /// Unix seconds of opening.
    pub opened_at: f64,
    /// Unix seconds of completion.
    pub completed_at: Option<f64>,
    pub outcome: Option<Outcome>,
    /// Set where it shows a part of another result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<ResultPart>,
    /// Images and files of its result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// A result from a byte of its text on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultPart {
    /// The ticket that has the result.
    pub ticket: TicketId,
    /// Bytes of the result that are skipped.
    pub offset: usize,
}

impl Ticket {
    /// JSON Schema of the result that it takes from outside; `None` if it takes none, or any JSON value.
    pub fn answers(&self) -> Option<Json> {
        self.external.as_ref()?.answers(self.arguments.as_deref())
    }

    /// Whether its outcome is untrusted text: the words of a person or of the runtime are not.
    pub fn tells_untrusted(&self) -> bool {
        self.untrusted
            && matches!(
                self.outcome,
                Some(Outcome::Ok(_) | Outcome::Error { .. } | Outcome::Retry { .. } | Outcome::RunCancelled { .. })
            )
    }

    /// `IN_PROGRESS` until there is an outcome.
    pub fn status(&self) -> Status {
        if self.outcome.is_some() { Status::Completed } else { Status::InProgress }
    }
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}
