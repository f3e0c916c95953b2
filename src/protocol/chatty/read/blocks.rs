//! The blocks of a reply that have ended.

use super::ChattyDecoder;
use super::call::{self, Calls};
use crate::protocol::around;
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::{ToolCall, violations};
use crate::reply::{BoxedViolation, Code, RepairCode, Span, Violation};

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
    /// Whether one has begun: the text before it is narration.
    pub(super) begun: bool,
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

impl ChattyDecoder {
    /// Joins a later block with the first: a copy is dropped, an adjacent block continues the list.
    pub(super) fn join(&mut self, text: &str, span: Span, notes: &mut RepairNotes) -> Result<(), BoxedViolation> {
        let later = std::mem::take(&mut self.blocks.later_calls).into_all();
        let first = self.blocks.calls.all();
        // Another call_id makes another call, also where the rest is alike; one that was filled in does not.
        let alike = |a: &ToolCall, b: &ToolCall| {
            a.tool == b.tool
                && a.arguments == b.arguments
                && (a.call_id == b.call_id || a.span.of(text) == b.span.of(text))
        };
        let same = later.len() == first.len() && later.iter().zip(first).all(|(a, b)| alike(a, b));
        let adjacent = text.get(self.blocks.joined_end..span.start).unwrap_or("").trim().is_empty();
        if same {
            if adjacent {
                self.blocks.joined_end = span.end;
            }
            *notes = RepairNotes::new(self.options.repairs);
            return notes.note(RepairCode::DuplicateObjectDropped, span);
        }
        if self.blocks.ended.last().is_some_and(|block| !block.junk.is_empty()) {
            let first = self.blocks.ended.first().map_or(Span::at(0), |block| block.span);
            return Err(violations::several(first, span, call::CALL));
        }
        if !adjacent {
            self.blocks.apart.get_or_insert(span);
            return Ok(());
        }
        self.blocks.joined_end = span.end;
        notes.note(RepairCode::MergedBlocks, span)?;
        for call in later {
            if let Some(twin) = self.blocks.calls.twin(&call) {
                let id = call.call_id.as_deref().unwrap_or_default();
                let message = format!("expected a call_id of its own for each call: got '{id}' twice");
                return Err(Box::new(
                    Violation::new(Code::DuplicateCallId, message)
                        .at(call.span)
                        .related(twin.span, "the first call with it")
                        .expected(call::CALL),
                ));
            }
            self.blocks.calls.push(call);
        }
        Ok(())
    }
}
