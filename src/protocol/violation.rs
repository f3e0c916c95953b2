//! Violations: replies that break the protocol. Nothing of such a reply is executed.

use crate::reply::Span;
use serde::{Deserialize, Serialize};

/// The stable name of a kind of violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    // Reading.
    /// The reply ends with something open.
    Truncated,

    // One move a reply.
    /// Two different moves in one reply.
    MultipleActions,
    /// Nothing in the reply says what to do.
    NoAction,

    // Tools and their arguments.
    /// No tool has this name, or no operation this route.
    UnknownTool,
    /// A required argument is not there.
    MissingArgument,
    /// The tool has no such argument.
    UnknownArgument,
    /// An argument has the wrong type or value.
    InvalidArgument,

    // Tickets.
    /// The run has no ticket with this id.
    UnknownTicket,
    /// The ticket is still in progress.
    TicketInProgress,

    // Guards.
    /// The same call failed before.
    RepeatedAfterFailure,
    /// The same call with the same result was made too often.
    Repeated,
    /// A call is required before an answer.
    CallRequired,
    /// The last turn allows an answer only.
    AnswerRequired,
    /// The move is not offered in this run.
    NotOffered,
}

/// One breach of the protocol, with its place in the reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Violation {
    /// The stable name.
    pub code: Code,
    /// What was expected, what came: lower case, no full stop.
    pub message: String,
    /// Where in the reply; `None` where it is about the reply as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// JSON pointer into the payload, where the place is a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The smallest correct form, or the schema that was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What came instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// A second place that explains the first: the opening bracket, the first of two moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related: Option<Related>,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A second place that explains a violation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Related {
    /// Where in the reply.
    pub span: Span,
    /// What stands there, for example "opened here".
    pub label: String,
}

impl Violation {
    /// A violation with a message and nothing else.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            span: None,
            pointer: None,
            expected: None,
            found: None,
            related: None,
            hint: None,
        }
    }

    /// Adds its place.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Adds the JSON pointer of the value it is about.
    #[must_use]
    pub fn pointer(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// Adds what was expected.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// Adds what came instead.
    #[must_use]
    pub fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    /// Adds a second place.
    #[must_use]
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related = Some(Related { span, label: label.into() });
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
