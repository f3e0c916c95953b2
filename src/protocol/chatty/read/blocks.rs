//! The blocks of a reply that have ended.

use super::call::Calls;
use crate::protocol::around;
use crate::protocol::repair_notes::RepairNotes;
use crate::reply::Span;

/// The blocks that have ended, and their calls.
#[derive(Default)]
pub(super) struct Blocks {
    pub(super) ended: Vec<EndedBlock>,
    /// The calls of the first block and of those that were joined with it.
    pub(super) calls: Calls,
    /// The calls of the later block that is being read.
    pub(super) later_calls: Calls,
    /// The first block that can't be joined with those before it.
    pub(super) apart: Option<Span>,
    /// The end of the last of the blocks that stand right after the first.
    pub(super) joined_end: usize,
}

/// A block that has ended.
pub(super) struct EndedBlock {
    pub(super) span: Span,
    /// Text in it that is no call, before or behind them.
    pub(super) junk: Vec<Span>,
    /// Nothing shows that its last call has come.
    pub(super) open_list: bool,
    pub(super) notes: RepairNotes,
}

impl Blocks {
    /// Whether a repair of a block makes what stands around it doubtful.
    pub(super) fn is_fragile(&self) -> bool {
        self.ended.iter().any(|block| around::is_fragile(block.notes.all()) || !block.junk.is_empty())
    }

    /// The text up to the first block that is not one with those at the beginning.
    pub(super) fn until_later<'a>(&self, text: &'a str) -> &'a str {
        let later = self.ended.iter().map(|block| block.span.start).find(|start| *start >= self.joined_end);
        later.and_then(|later| text.get(..later)).unwrap_or(text)
    }
}
