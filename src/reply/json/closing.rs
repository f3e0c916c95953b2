//! Closing brackets: the right one, a wrong one, a missing one.
//!
//! Within the last run of closing brackets the openers alone fix the tree, so that a closing bracket that fits nothing
//! carries nothing, and a missing one has one place. That holds only once the end is proven: the value is closed, or
//! an end tag or closing fence follows. Before any other token a wrong bracket is a violation.

use super::frame::Frame;
use super::{BoxedViolation, Flow, JsonReader, Last, LastKind};
use crate::reply::tag::Match;
use crate::reply::{Code, RepairCode, Span};

impl JsonReader {
    /// The closing bracket at the present position.
    pub(super) fn close(&mut self, byte: u8) -> Result<Flow, BoxedViolation> {
        if let Some(comment) = self.doubts.elision {
            return Err(self.elided(comment));
        }
        let place = Span::new(self.position, self.position + 1);
        self.position += 1;
        match self.stack.last() {
            Some(frame) if frame.closer() == byte => match self.doubts.swallowed {
                // All brackets are there without those in the comment.
                Some(comment) if self.stack.len() == 1 || frame.is_record() => Err(self.changing_comment(comment)),
                _ => self.pop(place.end, false),
            },
            _ => {
                if self.settings.policy == crate::reply::RepairPolicy::Strict {
                    return Err(self.unbalanced(byte, place));
                }
                if self.state != super::State::After {
                    // A value without an end: everything open lasts until here.
                    self.recent.last = Last { span: Span::at(place.start), kind: LastKind::Other, newline: false };
                }
                self.doubts.strays.push((byte, place));
                self.state = super::State::After;
                Ok(Flow::Go)
            }
        }
    }

    /// Any other token after a closing bracket without an opening one.
    pub(super) fn after_strays(&self) -> Result<(), BoxedViolation> {
        match self.doubts.strays.first() {
            Some((byte, place)) => Err(self.unbalanced(*byte, *place)),
            None => Ok(()),
        }
    }

    pub(super) fn unbalanced(&self, byte: u8, place: Span) -> BoxedViolation {
        let found = char::from(byte);
        let Some(frame) = self.stack.last() else {
            return self.violation(Code::UnbalancedBrackets, format!("expected the end: got '{found}'"), place);
        };
        let message = format!("expected '{}' to close the {}: got '{found}'", char::from(frame.closer()), frame.name());
        Box::new(
            self.violation(Code::UnbalancedBrackets, message, place)
                .found(found)
                .related(Span::new(frame.open, frame.open + 1), "opened here"),
        )
    }

    /// Whether an end tag or closing fence stands here, after a complete value: then only closing brackets are missing.
    pub(super) fn at_proven_end(&self, text: &str, byte: u8, end: bool) -> Match {
        let rest = text.get(self.position..).unwrap_or("");
        if self.settings.fenced && matches!(byte, b'`' | b'~') {
            let run = rest.bytes().take_while(|&other| other == byte).count();
            return match run {
                2.. => Match::Yes { length: run, exact: true },
                _ if run == rest.len() && !end => Match::Partial,
                _ => Match::No,
            };
        }
        let mut found = Match::No;
        for tag in self.settings.ends.iter().filter(|tag| tag.first().eq_ignore_ascii_case(&byte)) {
            match tag.at(rest, end) {
                Match::No => {}
                Match::Partial => found = Match::Partial,
                yes @ Match::Yes { .. } => return yes,
            }
        }
        found
    }

    /// Adds the closing brackets that are missing before a proven end.
    pub(super) fn close_all(&mut self, text: &str) -> Result<Flow, BoxedViolation> {
        if let Some(comment) = self.doubts.swallowed {
            let message = "expected the closing brackets: got a comment that may hold them";
            let fault = self.violation(Code::Truncated, message, comment);
            return Err(Box::new(fault.hint("leave the comment out, or put it on a line of its own")));
        }
        // Comments and stray brackets belong to the value.
        let end = text.get(..self.position).unwrap_or(text).trim_end().len().max(self.recent.last.span.end);
        // Does each bracket that fitted nothing stand for one of the missing ones, in order?
        let mut missing = self.stack.iter().rev().map(Frame::closer);
        let explained = self.doubts.strays.iter().all(|(byte, _)| missing.any(|closer| closer == *byte));
        let strays = std::mem::take(&mut self.doubts.strays);
        if !explained && let Some((_, first)) = strays.first() {
            self.repair(RepairCode::ExtraClosers, *first)?;
        }
        self.repair(RepairCode::ClosedBrackets, Span::at(end))?;
        let mut flow = Flow::Go;
        while !self.stack.is_empty() {
            flow = self.pop(end, true)?;
        }
        Ok(flow)
    }
}
