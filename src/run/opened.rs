//! The opening of a ticket.

use super::traced_texts::Origins;
use crate::origin::as_map;
use crate::reply::Value;
use crate::ticket::{External, TicketId, TicketKind, is_false};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A call to make, or a task for another run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact, which stands by its name in the log")]
pub struct Opened {
    pub ticket: TicketId,
    /// Whether it is a call or a task.
    #[serde(default, skip_serializing_if = "TicketKind::is_tool_call")]
    pub kind: TicketKind,
    /// Whether the task is a script. Its run does not count towards the limit.
    #[serde(default, skip_serializing_if = "is_false")]
    pub script: bool,
    /// The turn of the reply that asks for it.
    pub turn: u32,
    /// Its position among the calls of that reply, from 0.
    pub call: usize,
    /// The model's own name for it (chatty).
    pub call_id: Option<String>,
    /// What it is for.
    pub description: Arc<str>,
    /// The tool to call.
    pub tool: Arc<str>,
    /// Its checked arguments; `$call_id` references stand as they were written.
    pub arguments: Arc<Value>,
    /// The tickets whose results it waits for, because its arguments refer to them.
    pub needs: Vec<TicketId>,
    /// Whether the model continues without its outcome, and asks for it later (chatty).
    #[serde(default, skip_serializing_if = "is_false")]
    pub detached: bool,
    /// Whether it waits for a person's approval now. One that refers to other calls is asked for with
    /// `ArgumentsFilled`; before version 3 it was asked for at once.
    #[serde(default, skip_serializing_if = "is_false")]
    pub needs_approval: bool,
    /// Whether the program decides first if it needs approval.
    #[serde(default, skip_serializing_if = "is_false")]
    pub checks_approval: bool,
    /// JSON pointers of the arguments that were read as another type than they were written in: `"5"` as 5.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coerced: Vec<String>,
    /// Set for a call that is never made: its result comes from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<Arc<External>>,
    /// Whether its result will be untrusted: as its tool's are, or as what its task or script was written after.
    #[serde(default, skip_serializing_if = "is_false")]
    pub untrusted: bool,
    /// Where its values come from, by the JSON pointers of its arguments, as far as somebody has asked.
    #[serde(default, with = "as_map", skip_serializing_if = "Vec::is_empty")]
    pub origins: Origins,
    /// Why it needs approval, where its values are the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
}
