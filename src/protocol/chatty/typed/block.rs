//! The answer block: `<answer>`, one JSON value, `</answer>`, and nothing after it.

use super::{ANSWER, END, START};
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::{Delta, FinishReason, ReadOptions, Status, violations};
use crate::reply::json::{JsonReader, Progress, Settings};
use crate::reply::tag::{Match, Tag};
use crate::reply::{BoxedViolation, Code, Repair, RepairCode, RepairPolicy, Span, Value, Violation};
use crate::tool::{AnswerType, CheckedAnswer};
use std::sync::Arc;

/// The block while it arrives.
pub(super) struct Block {
    options: ReadOptions,
    returns: AnswerType,
    tag: Span,
    exact: bool,
    end_tag: Tag,
    part: Part,
    /// Up to here the value was published.
    sent: usize,
    fault: Option<BoxedViolation>,
}

/// The part of the block at the present position.
enum Part {
    /// Blanks, and perhaps the line that opens a fence.
    Before,
    /// The value. `fence` is the line that opens a fence around it.
    Value { reader: Box<JsonReader>, fence: Option<Span> },
    /// What stands between the value and the end tag.
    After { read: Value, span: Span, repairs: Vec<Repair>, fence: Option<Span> },
    /// The block has ended.
    Ended { read: Value, span: Span, repairs: Vec<Repair>, fence: Option<Span>, close: Option<Span> },
}

/// The answer of a block.
pub(super) struct Answer {
    pub(super) checked: CheckedAnswer,
    /// The place in the reply.
    pub(super) span: Span,
    pub(super) repairs: Vec<Repair>,
}

impl Block {
    pub(super) fn new(options: ReadOptions, returns: AnswerType, tag: Span, exact: bool) -> Self {
        Self { options, returns, tag, exact, end_tag: Tag::new(END), part: Part::Before, sent: 0, fault: None }
    }

    /// Its start tag.
    pub(super) fn tag(&self) -> Span {
        self.tag
    }

    /// Reads on in `text`, the whole reply so far.
    pub(super) fn run(&mut self, text: &str, end: bool, deltas: &mut Vec<Delta>) -> Status {
        while self.fault.is_none() {
            if !self.step(text, end, deltas) {
                return Status::Open;
            }
        }
        Status::Doomed
    }

    /// Whether there may be more to read now.
    fn step(&mut self, text: &str, end: bool, deltas: &mut Vec<Delta>) -> bool {
        match std::mem::replace(&mut self.part, Part::Before) {
            Part::Before => self.begin(text, end),
            Part::Value { mut reader, fence } => {
                let progress = reader.run(text, end);
                self.publish(text, &reader, progress, deltas);
                match progress {
                    Progress::More => {
                        self.part = Part::Value { reader, fence };
                        return false;
                    }
                    Progress::Failed => self.fault = reader.into_fault(),
                    Progress::Done => {
                        let span = reader.span();
                        let (read, repairs) = reader.into_value();
                        self.part = Part::After { read, span, repairs, fence };
                    }
                }
                true
            }
            Part::After { read, span, repairs, fence } => {
                let Some((close, more)) = self.end_after(text, span, fence, end) else {
                    self.part = Part::After { read, span, repairs, fence };
                    return false;
                };
                self.part = Part::Ended { read, span, repairs, fence, close };
                more
            }
            Part::Ended { read, span, repairs, fence, close } => {
                let rest = close.map_or(text.len(), |close| close.end);
                if !text.get(rest..).unwrap_or_default().trim().is_empty() {
                    self.fault = Some(self.followed(text, rest));
                }
                self.part = Part::Ended { read, span, repairs, fence, close };
                self.fault.is_some()
            }
        }
    }

    /// Finds where the value begins; `false` where more text is needed or none will come.
    fn begin(&mut self, text: &str, end: bool) -> bool {
        let rest = text.get(self.tag.end..).unwrap_or_default();
        let inside = rest.trim_start();
        let start = text.len() - inside.len();
        if inside.is_empty() || !end && inside.len() < 3 && "```".starts_with(inside) {
            if end {
                let message = format!("expected the answer as JSON after {START}: the text ended");
                self.fault = Some(Box::new(Violation::new(Code::Truncated, message).at(self.tag)));
            }
            return end;
        }
        let end_tag = self.end_tag.at(inside, end);
        if end_tag == Match::Partial {
            return false;
        }
        if let Match::Yes { length, .. } = end_tag {
            let message = format!("expected the answer as JSON between {START} and {END}: got an empty block");
            let place = Span::new(self.tag.start, start + length);
            self.fault = Some(Box::new(Violation::new(Code::InvalidAnswer, message).at(place)));
            return true;
        }
        let (mut begin, mut fence) = (start, None);
        if inside.starts_with("```") {
            let Some(line) = inside.find('\n') else {
                if end {
                    let message = "expected the answer after the fence: the text ended";
                    self.fault =
                        Some(Box::new(Violation::new(Code::Truncated, message).at(Span::new(start, text.len()))));
                }
                return end;
            };
            begin = start + line + 1;
            fence = Some(Span::new(start, begin));
        }
        let mut settings = Settings::new(self.options.repairs, self.options.limits);
        settings.ends = Arc::new([self.end_tag.clone()]);
        settings.fenced = fence.is_some();
        self.sent = begin;
        self.part = Part::Value { reader: Box::new(JsonReader::new(settings, begin)), fence };
        true
    }

    /// Publishes the value as it stands in the reply.
    fn publish(&mut self, text: &str, reader: &JsonReader, progress: Progress, deltas: &mut Vec<Delta>) {
        if self.options.whole || progress == Progress::Failed {
            return;
        }
        let until = if progress == Progress::Done { reader.span().end } else { reader.position() };
        let Some(more) = text.get(self.sent..until).filter(|more| !more.is_empty()) else { return };
        deltas.push(Delta::Value(more.to_owned()));
        self.sent = until;
    }

    /// The end tag after the value, `None` within where the reply ends without it, and whether text follows; `None` where
    /// more text is needed.
    fn end_after(&mut self, text: &str, value: Span, fence: Option<Span>, end: bool) -> Option<(Option<Span>, bool)> {
        let mut rest = text.get(value.end..).unwrap_or_default().trim_start();
        if fence.is_some() {
            if !end && "```".starts_with(rest) {
                return None;
            }
            rest = rest.strip_prefix("```").unwrap_or(rest).trim_start();
        }
        let at = text.len() - rest.len();
        match self.end_tag.at(rest, end) {
            Match::Yes { length, .. } => Some((Some(Span::new(at, at + length)), true)),
            _ if rest.is_empty() => end.then_some((None, false)),
            Match::Partial => None,
            Match::No => {
                let message = format!("expected {END} after the answer: got more text");
                self.fault = Some(Box::new(Violation::new(Code::ExtraData, message).at(first_of(text, at))));
                Some((None, true))
            }
        }
    }

    /// The violation of text after the block.
    fn followed(&self, text: &str, from: usize) -> BoxedViolation {
        let rest = text.get(from..).unwrap_or_default();
        let start = text.len() - rest.trim_start().len();
        let message = format!("expected nothing after {END}: got more text");
        let fault = Violation::new(Code::ExtraData, message)
            .at(first_of(text, start))
            .related(Span::new(self.tag.start, from), "the answer")
            .hint("write everything else before the answer, which ends the reply");
        Box::new(fault)
    }

    /// The answer, if it fits.
    pub(super) fn into_answer(
        mut self,
        raw: &str,
        options: &ReadOptions,
        reason: FinishReason,
    ) -> Result<Answer, BoxedViolation> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let Part::Ended { read, span, repairs, fence, close } = self.part else {
            return Err(violations::truncated_answer(raw, END));
        };
        let mut notes = RepairNotes::new(options.repairs);
        if !self.exact {
            notes.note(RepairCode::TagForm, self.tag)?;
        }
        if let Some(fence) = fence {
            notes.note(RepairCode::FenceStripped, fence)?;
        }
        notes.extend(repairs);
        if close.is_none() {
            // A number may have more digits.
            if reason != FinishReason::Stop || matches!(read, Value::Number(_)) {
                return Err(violations::truncated_answer(raw, END));
            }
            notes.note(RepairCode::MissingCloseTag, Span::at(span.end))?;
        }
        let value = Arc::new(read);
        let checked = match options.repairs {
            RepairPolicy::Strict => self.returns.check_strictly(ANSWER, &value, false),
            RepairPolicy::Default | RepairPolicy::Lenient => self.returns.check(ANSWER, &value),
        };
        let checked = checked.map_err(|violation| Box::new(violation.at(span)))?;
        Ok(Answer { checked, span, repairs: notes.into_sorted() })
    }
}

/// The first character from `at` on: how much follows it depends on the chunks.
fn first_of(text: &str, at: usize) -> Span {
    let length = text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    Span::new(at, at + length)
}
