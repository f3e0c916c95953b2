//! What a reply asks for: the same small set in every protocol.

use crate::reply::{Span, Value};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What one reply asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Move {
    /// The run is over.
    Finish {
        /// The run's value: any JSON in the ticket protocol or of its type, else text.
        value: Arc<Value>,
        /// What a react reply says of its own success; `None` where the protocol has no such word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        success: Option<bool>,
        /// JSON pointers into a typed answer, of the values that were read as another type than they were written in.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        coerced: Vec<String>,
    },
    /// Tool calls, side by side; one alone in the ticket and react protocols.
    Call {
        /// At least one, except for a script that waits for earlier calls.
        calls: Vec<ToolCall>,
    },
    /// A task for a child run.
    Delegate {
        /// What the child is to do.
        task: String,
    },
    /// Sleep until a ticket is completed.
    Await {
        /// The ticket waited for.
        ticket_id: String,
    },
    /// Put a completed ticket's result before the model.
    Load {
        /// The ticket to load.
        ticket_id: String,
        /// Bytes of the result that are skipped.
        #[serde(default, skip_serializing_if = "is_start")]
        offset: usize,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
pub(crate) fn is_start(offset: &usize) -> bool {
    *offset == 0
}

/// One tool call as the model wrote it, before its tool is looked up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's own name for the call (chatty); `None` elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The tool's name, or the route in the ticket protocol.
    pub tool: String,
    /// An object (chatty, react), or the payload as it was written (ticket: any JSON).
    pub arguments: Arc<Value>,
    /// Why the call is made (ticket).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The call in the reply.
    pub span: Span,
    /// The tool's name or route in the reply.
    pub tool_span: Span,
    /// The arguments in the reply.
    pub arguments_span: Span,
    /// Keys beside the arguments that were left out: none can have carried a part of the call, unless the tool has a
    /// parameter of that name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}
