//! Violations that any protocol may have: about the reply as a whole.

use super::around::strip_marks;
use super::reasoning::Reasoning;
use super::repair_notes::RepairNotes;
use super::{Code, FinishReason, ReadOptions, Reply, Violation};
use crate::reply::{BoxedViolation, Repair, RepairCode, Span};

/// As much of the text as may be read.
pub(crate) fn bound<'a>(text: &'a str, options: &ReadOptions) -> &'a str {
    let mut end = options.limits.bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// The reply is longer than allowed.
pub(crate) fn too_large(options: &ReadOptions) -> BoxedViolation {
    let message = format!("expected a reply of at most {} bytes: got a longer one", options.limits.bytes);
    Box::new(Violation::new(Code::TooLarge, message).hint("write a shorter reply"))
}

pub(crate) fn blank(expected: &str) -> BoxedViolation {
    Box::new(Violation::new(Code::Empty, "expected a reply: got an empty one").expected(expected))
}

/// Nothing was said but reasoning.
pub(crate) fn only_reasoning(code: Code, place: Span, expected: &str) -> BoxedViolation {
    Box::new(
        Violation::new(code, "expected a reply after the reasoning: got none")
            .at(place)
            .expected(expected)
            .hint("nothing inside the reasoning is carried out: write the reply after it"),
    )
}

/// A reasoning block never ends.
pub(crate) fn unclosed_think(start: usize, end: usize, reason: FinishReason, expected: &str) -> BoxedViolation {
    let span = Span::new(start, end);
    let violation = match reason {
        FinishReason::Length => Violation::new(
            Code::Truncated,
            "the token limit cut the reply inside its reasoning: expected a shorter one",
        ),
        FinishReason::Stop | FinishReason::Unknown => {
            Violation::new(Code::UnclosedThink, "expected the end of the reasoning that begins here: got none")
        }
    };
    Box::new(violation.at(span).expected(expected).hint("close the reasoning, then reply"))
}

/// Two different moves in one reply.
pub(crate) fn several(first: Span, second: Span, expected: &str) -> BoxedViolation {
    Box::new(
        Violation::new(Code::MultipleActions, "expected one move: got a second, different one here")
            .at(second)
            .related(first, "the first one")
            .expected(expected)
            .hint("send only the one move that you mean now, and wait for its outcome"),
    )
}

/// Says first that the token limit cut the reply, where it did.
pub(crate) fn mention_truncation(mut fault: BoxedViolation, reason: FinishReason, expected: &str) -> BoxedViolation {
    if fault.code == Code::Truncated && reason == FinishReason::Length && !fault.message.starts_with("the token limit")
    {
        fault.message = format!("the token limit cut the reply: {}", fault.message);
        fault.hint = Some("write the reply again, whole and shorter".to_owned());
    }
    if fault.expected.is_none() {
        fault.expected = Some(expected.to_owned());
    }
    fault
}

/// Refuses a reply that ends behind its move, in the middle of a text as far as is known: what was still to come may have
/// taken the move back.
pub(crate) fn cut_behind(
    (raw, move_end): (&str, usize),
    reason: FinishReason,
    notes: &RepairNotes,
    reasoning: &Reasoning,
    expected: &str,
) -> Result<(), BoxedViolation> {
    let message = match reason {
        FinishReason::Stop => return Ok(()),
        FinishReason::Length => "the token limit cut the reply behind its move: expected nothing there",
        FinishReason::Unknown => {
            "it is not known whether the reply is whole, and text stands behind its move: expected nothing there"
        }
    };
    let dropped = notes.all().iter().find(|repair| match repair.code {
        // The tags of a wrapper are no text.
        RepairCode::TrailingTextDropped => strip_marks(repair.span.of(raw)).contains(char::is_alphanumeric),
        code => code == RepairCode::UnclosedThoughts,
    });
    let text = dropped.map(|repair| repair.span);
    let Some(place) = text.or_else(|| reasoning.spans_from(move_end).first().copied()) else { return Ok(()) };
    Err(Box::new(
        Violation::new(Code::Truncated, message)
            .at(place)
            .expected(expected)
            .hint("write the move again, and nothing behind it"),
    ))
}

/// A direct answer is not whole.
pub(crate) fn truncated_answer(raw: &str, expected: &str) -> BoxedViolation {
    if raw.trim().is_empty() {
        return truncated_before_move(raw.len(), expected);
    }
    let message = "the reply was cut before its end: expected a whole answer or a whole tool block";
    Box::new(
        Violation::new(Code::Truncated, message)
            .at(Span::at(raw.len()))
            .expected(expected)
            .hint("write it again, whole and shorter"),
    )
}

/// What had to be completed at the end of a reply of which it is not known whether it is whole.
pub(crate) fn completed_at_end(reply: &Reply, expected: &str) -> Option<Violation> {
    let is_completed = |repair: &&Repair| {
        matches!(repair.code, RepairCode::ClosedBrackets | RepairCode::MissingCloseTag | RepairCode::UnclosedThoughts)
    };
    let place = reply.outcome.as_ref().ok().and_then(|_| reply.repairs.iter().find(is_completed))?.span;
    let message = "it is not known whether the reply is whole, and its end is missing here: expected a whole one";
    Some(
        Violation::new(Code::Truncated, message)
            .at(place)
            .expected(expected)
            .hint("write it again, with every bracket and tag closed"),
    )
}

/// It is not known whether an answer in plain text is whole, and it does not end as sentences do.
pub(crate) fn unmarked_end(raw: &str, expected: &str) -> BoxedViolation {
    let message =
        "it is not known whether the reply is whole, and its text ends without a mark: expected a whole answer";
    Box::new(
        Violation::new(Code::Truncated, message)
            .at(Span::at(raw.len()))
            .expected(expected)
            .hint("write it again, whole, and end it with a full stop"),
    )
}

/// Whether a text ends as sentences do: with a mark, or a fence.
pub(crate) fn ends_with_mark(text: &str) -> bool {
    const CLOSERS: [char; 13] = [')', ']', '}', '"', '\'', '»', '”', '’', '」', '』', '*', '_', '`'];
    let text = text.trim_end();
    let inside = text.trim_end_matches(CLOSERS);
    text.ends_with("```") || inside.ends_with(['.', '!', '?', '…', '。', '！', '？', '．', '؟', '۔', '।', '։', '።'])
}

/// The token limit cut the reply before its move.
pub(crate) fn truncated_before_move(end: usize, expected: &str) -> BoxedViolation {
    let message = "the token limit cut the reply: expected a move, got only text before it";
    Box::new(
        Violation::new(Code::Truncated, message)
            .at(Span::at(end))
            .expected(expected)
            .hint("write less before the move"),
    )
}
