//! Grammars of what may be said now, for clients that constrain a model's decoding.

use super::chatty::read::ToolTags;
use crate::tool::ToolSet;

/// What may be said in the coming reply.
#[derive(Debug, Clone)]
pub struct Scope<'a> {
    /// The tools on offer.
    pub tools: &'a ToolSet,
    /// Whether a call may be made.
    pub calls: bool,
    /// Whether the run may be finished.
    pub finish: bool,
    /// Ids of tickets in progress, which may be awaited (ticket).
    pub in_progress: Vec<String>,
    /// Ids of completed tickets, which may be loaded or awaited (ticket).
    pub completed: Vec<String>,
}

/// One language in the forms that inference engines take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grammar {
    /// llama.cpp's form.
    pub gbnf: String,
    /// llguidance's form.
    pub lark: String,
    /// JSON Schema, where the reply is one JSON value (react).
    pub json_schema: Option<String>,
    /// Tokens that the longest reply of the language may take, at most.
    pub max_tokens: u32,
}

/// Of a react reply.
pub fn react(_scope: &Scope<'_>) -> Grammar {
    Grammar { gbnf: String::new(), lark: String::new(), json_schema: None, max_tokens: 0 }
}

/// Of a chatty reply.
pub fn chatty(_scope: &Scope<'_>, _tags: &ToolTags) -> Grammar {
    Grammar { gbnf: String::new(), lark: String::new(), json_schema: None, max_tokens: 0 }
}

/// Of a ticket reply.
pub fn ticket(_scope: &Scope<'_>) -> Grammar {
    Grammar { gbnf: String::new(), lark: String::new(), json_schema: None, max_tokens: 0 }
}
