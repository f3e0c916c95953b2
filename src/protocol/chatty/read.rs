//! Reads chatty replies: a direct answer, or one tool block with an array of calls.

use crate::protocol::{Decoder, ReadOptions};

/// The configured tags around a tool block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolTags {
    /// Default `<tool>`.
    pub start: String,
    /// Default `</tool>`.
    pub end: String,
}

/// A decoder of one chatty reply.
pub fn decoder(_options: ReadOptions, _tags: &ToolTags) -> Box<dyn Decoder> {
    unimplemented!()
}
