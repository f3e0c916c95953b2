//! An answer block in a fence that is the whole reply.

use super::START;
use super::block::{Answer, Block};
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::{FinishReason, Move, ReadOptions, Violation};
use crate::reply::tag::{Match, Tag};
use crate::reply::{BoxedViolation, RepairCode, Span};
use crate::tool::AnswerType;

/// The answer in the last of the fences in `code`, if `before`, what is read without it, is nothing but that fence.
pub(super) fn answer(
    raw: &str,
    code: &[Span],
    before: &Result<Move, Violation>,
    options: &ReadOptions,
    returns: &AnswerType,
    reason: FinishReason,
) -> Option<Result<Answer, BoxedViolation>> {
    let Ok(Move::Finish { value, .. }) = before else { return None };
    let fence = code.last()?;
    let whole = fence.of(raw).trim();
    let inside = whole.trim_start_matches(['`', '~']);
    let ticks = whole.get(..whole.len() - inside.len()).filter(|ticks| ticks.len() >= 3)?;
    if value.as_str().map(str::trim) != Some(whole) {
        return None;
    }
    let content = inside.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).trim_start();
    let Match::Yes { length, exact } = Tag::new(START).at(content, true) else { return None };
    let end = raw.get(..fence.end)?.trim_end().len();
    let start = end - content.len();
    let until = content.strip_suffix(ticks).map_or(end, |content| start + content.len());
    let read = || {
        let mut notes = RepairNotes::new(options.repairs);
        notes.note(RepairCode::FenceAroundBlock, Span::new(end - whole.len(), end))?;
        let mut block = Block::new(*options, returns.clone(), Span::new(start, start + length), exact);
        let text = raw.get(..until).unwrap_or(raw);
        block.run(text, true, &mut Vec::new());
        let answer = block.into_answer(text, options, reason)?;
        notes.extend(answer.repairs);
        Ok(Answer { repairs: notes.into_sorted(), ..answer })
    };
    Some(read())
}
