//! Reads envelopes: the items of a reply, and the move that they make.

use super::items::{Kind, Line, Lines, decode, decoded, line};
use super::{ANSWER, ANSWER_TOOL, BETWEEN_TEXTS, Native};
use crate::protocol::arguments::{Written, arguments};
use crate::protocol::field_reader::{FieldReader, Form};
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::{
    Decoder, Delta, FinishReason, Move, Protocol as _, ReadOptions, Reply, Status, TextSpans, ToolCall, answer,
    violations,
};
use crate::reply::buffer::Buffer;
use crate::reply::json::{Field, Fields, Record};
use crate::reply::{BoxedViolation, Code, Span, Value, Violation};
use crate::tool::CheckedAnswer;
use std::sync::Arc;

/// How the arguments of a call are read.
const CALL: Form = Form {
    name: "a tool call",
    keys: &["arguments"],
    nullable: &[],
    protocol: &["arguments"],
    arguments: "inside 'arguments'",
    effect: true,
    expected: "a call whose arguments are one JSON object",
};

/// The largest `data` of an item, in bytes.
const DATA_BYTES: usize = 1 << 20;

/// The decoder of one envelope.
pub(super) struct NativeDecoder {
    protocol: Native,
    options: ReadOptions,
    buffer: Buffer,
    /// The start of the current line.
    start: usize,
    /// The state of the current line; `None` until its kind is known.
    open: Option<OpenLine>,
    /// The calls that have ended and can be read; none behind one that can't.
    calls: Vec<ToolCall>,
    notes: RepairNotes,
    /// The violation of the first invalid call.
    fault: Option<BoxedViolation>,
    /// Calls, texts and sections of reasoning that have begun.
    begun: Begun,
    /// Bytes of `data`, which do not count towards the size limit.
    data: usize,
}

#[derive(Debug, Default, Clone, Copy)]
struct Begun {
    calls: usize,
    texts: usize,
    thoughts: usize,
}

/// The line that is arriving.
#[derive(Debug, Clone, Copy)]
struct OpenLine {
    kind: Streamed,
    /// Up to here its text was published, or its end was searched.
    next: usize,
    /// The end of the text.
    closed: Option<usize>,
    /// Whether any of its text was published.
    told: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Streamed {
    Reasoning,
    Text,
    Arguments,
    Answer,
    Nothing,
}

impl Decoder for NativeDecoder {
    fn push(&mut self, chunk: &[u8], deltas: &mut Vec<Delta>) -> Status {
        self.buffer.push(chunk);
        if self.options.whole {
            return Status::Open;
        }
        let buffer = std::mem::take(&mut self.buffer);
        while self.advance(buffer.text(), deltas) {}
        let doomed = self.is_too_large(buffer.text());
        self.buffer = buffer;
        if doomed { Status::Doomed } else { Status::Open }
    }

    fn calls(&self) -> &[ToolCall] {
        &self.calls
    }

    fn settled(&self) -> Option<usize> {
        None
    }

    fn stands_first(&self) -> bool {
        self.begun.texts == 0
    }

    fn finish(mut self: Box<Self>, reason: FinishReason) -> Reply {
        self.buffer.close();
        let raw = std::mem::take(&mut self.buffer).into_text();
        let lines = Lines::of(&raw);
        if self.options.whole {
            lines.calls().for_each(|line| self.end_call(&raw, line, &mut Vec::new()));
        }
        self.data = lines.lines.iter().filter_map(|line| line.data_part(&raw)).map(|part| part.end - part.start).sum();
        self.open = None;
        let texts = |kind: fn(Kind) -> Option<Span>| -> Vec<Span> {
            let spans = lines.lines.iter().filter_map(|line| kind(line.kind));
            spans.filter(|span| !decoded(&raw, *span).is_empty()).collect()
        };
        let said = texts(|kind| if let Kind::Text { text } = kind { Some(text) } else { None });
        let thoughts = texts(|kind| if let Kind::Reasoning { text } = kind { Some(text) } else { None });
        let mut notes = std::mem::take(&mut self.notes);
        let outcome = self.outcome(&raw, &lines, &said, reason, &mut notes).map_err(|fault| *fault);
        let joined = |spans: &[Span], between: &str| {
            let texts: Vec<_> = spans.iter().map(|span| decoded(&raw, *span)).collect();
            Some(texts.join(between)).filter(|text| !text.is_empty())
        };
        let thought = joined(&thoughts, "\n");
        let (mut spans, mut narration) = (TextSpans { thoughts, ..TextSpans::default() }, None);
        match &outcome {
            Ok(Move::Call { .. }) => {
                narration = joined(&said, BETWEEN_TEXTS);
                spans.narration = said;
            }
            Ok(Move::Finish { .. }) => match lines.calls().next().map(|line| line.kind) {
                Some(Kind::Call { arguments, .. }) => {
                    narration = joined(&said, BETWEEN_TEXTS);
                    spans.narration = said;
                    spans.answer = vec![arguments];
                }
                _ => spans.answer = said,
            },
            _ => {}
        }
        let repairs = if outcome.is_ok() { notes.into_sorted() } else { Vec::new() };
        let (discarded, around) = (Vec::new(), Vec::new());
        Reply { raw, thoughts: thought, reasoning: None, narration, spans, outcome, repairs, discarded, around }
    }
}

impl NativeDecoder {
    pub(super) fn new(protocol: Native, options: ReadOptions) -> Self {
        Self {
            protocol,
            notes: RepairNotes::new(options.repairs),
            options,
            buffer: Buffer::default(),
            start: 0,
            open: None,
            calls: Vec::new(),
            fault: None,
            begun: Begun::default(),
            data: 0,
        }
    }

    /// Reads the next part. Returns whether there may be another one.
    fn advance(&mut self, text: &str, deltas: &mut Vec<Delta>) -> bool {
        let Some(mut open) = self.open else { return self.begin(text, deltas) };
        if open.closed.is_none() {
            let piece = decode(text, open.next);
            open.next = piece.next;
            open.closed = piece.closed.then_some(piece.next);
            self.publish(&mut open, piece.text, deltas);
        }
        let mut end = None;
        if open.closed.is_some() {
            end = text.get(open.next..).and_then(|rest| Some(open.next + rest.find('\n')?));
            // A long `data` is not searched again with each of its pieces.
            open.next = text.len();
        }
        self.open = Some(open);
        let Some(end) = end else { return false };
        if let Some(line) = line(text, self.start).filter(|line| line.whole) {
            self.data += line.data_part(text).map_or(0, |data| data.end - data.start);
            if matches!(line.kind, Kind::Call { .. }) {
                self.end_call(text, &line, deltas);
            }
        }
        self.start = end + 1;
        self.open = None;
        true
    }

    fn publish(&mut self, open: &mut OpenLine, text: String, deltas: &mut Vec<Delta>) {
        if text.is_empty() {
            return;
        }
        let first = !std::mem::replace(&mut open.told, true);
        let (count, between) = match open.kind {
            Streamed::Text => (&mut self.begun.texts, BETWEEN_TEXTS),
            Streamed::Reasoning => (&mut self.begun.thoughts, "\n"),
            Streamed::Arguments => {
                if !self.options.whole {
                    deltas.push(Delta::Arguments { call: self.begun.calls.saturating_sub(1), text });
                }
                return;
            }
            Streamed::Answer | Streamed::Nothing => return,
        };
        *count += usize::from(first);
        if self.options.whole {
            return;
        }
        let text = if first && *count > 1 { format!("{between}{text}") } else { text };
        deltas.push(if open.kind == Streamed::Text { Delta::Text(text) } else { Delta::Thoughts(text) });
    }

    /// Determines the kind of the next line.
    fn begin(&mut self, text: &str, deltas: &mut Vec<Delta>) -> bool {
        let rest = text.get(self.start..).unwrap_or("");
        let after = |head: &str| rest.starts_with(head).then_some(self.start + head.len());
        let open = |kind, next| Some(OpenLine { kind, next, closed: None, told: false });
        if let Some(next) = after("{\"reasoning\":\"") {
            self.open = open(Streamed::Reasoning, next);
        } else if let Some(next) = after("{\"text\":\"") {
            self.open = open(Streamed::Text, next);
        } else if rest.starts_with("{\"call\":\"") {
            const BEFORE: &str = ",\"arguments\":\"";
            // In a string the quotes have a backslash.
            let Some(at) = rest.find(BEFORE) else { return false };
            let next = self.start + at + BEFORE.len();
            let kind = self.begin_call(text, deltas);
            self.open = open(kind, next);
        } else if rest.starts_with("{\"fault\":\"") {
            let Some(end) = rest.find('\n') else { return false };
            let next = self.start + end;
            self.open = Some(OpenLine { kind: Streamed::Nothing, next, closed: Some(next), told: false });
        }
        self.open.is_some()
    }

    fn begin_call(&mut self, text: &str, deltas: &mut Vec<Delta>) -> Streamed {
        let Some(Kind::Call { id, tool, .. }) = line(text, self.start).map(|line| line.kind) else {
            return Streamed::Nothing;
        };
        let call = self.begun.calls;
        self.begun.calls += 1;
        let name = decoded(text, tool).into_owned();
        if self.protocol.answer_tool().is_some_and(|answer| answer == name) {
            return Streamed::Answer;
        }
        let id = decoded(text, id).into_owned();
        if !id.is_empty() {
            deltas.push(Delta::CallId { call, id });
        }
        deltas.push(Delta::Tool { call, name, span: tool });
        Streamed::Arguments
    }

    /// Reads a call that has ended.
    fn end_call(&mut self, text: &str, line: &Line, deltas: &mut Vec<Delta>) {
        if self.fault.is_some() {
            return;
        }
        match self.read_call(text, line) {
            Err(fault) => self.fault = Some(fault),
            Ok(call) if self.protocol.answer_tool().is_some_and(|answer| answer == call.tool) => {
                if let Some(answer) = call.arguments.as_object().and_then(|given| given.get(ANSWER))
                    && !self.options.whole
                {
                    deltas.push(match (answer, answer::publishes_json(self.protocol.options.typed())) {
                        (Value::String(text), false) => Delta::Answer(text.to_string()),
                        (other, _) => Delta::Value(other.to_json()),
                    });
                }
            }
            Ok(call) => {
                self.calls.push(call);
                deltas.push(Delta::CallReady { call: self.calls.len() - 1 });
            }
        }
    }

    fn read_call(&mut self, text: &str, line: &Line) -> Result<ToolCall, BoxedViolation> {
        let Kind::Call { id, tool, arguments: literal } = line.kind else { return Err(strange(line.span.start)) };
        let written = Arc::new(Value::from(decoded(text, literal).into_owned()));
        let mut fields = Fields::with_capacity(1);
        fields.push("arguments".into(), Field { key_span: Span::at(literal.start), value: written, span: literal });
        let record = Record { fields, span: line.span, supplied: false };
        let mut reader = FieldReader { record: &record, form: &CALL, at: String::new(), notes: &mut self.notes };
        let (read, _) = arguments(&mut reader, "arguments", Written::AsText, text, &self.options)?;
        let id = decoded(text, id).into_owned();
        Ok(ToolCall {
            call_id: Some(id).filter(|id| !id.is_empty()),
            tool: decoded(text, tool).into_owned(),
            arguments: read,
            description: None,
            span: line.span,
            tool_span: tool,
            arguments_span: literal,
            unread: Vec::new(),
        })
    }

    fn is_too_large(&self, text: &str) -> bool {
        let open_data = self.open.and_then(|open| open.closed).map_or(0, |end| text.len().saturating_sub(end));
        text.len().saturating_sub(self.data + open_data) > self.options.limits.bytes
    }

    fn outcome(
        &mut self,
        raw: &str,
        lines: &Lines,
        said: &[Span],
        reason: FinishReason,
        notes: &mut RepairNotes,
    ) -> Result<Move, BoxedViolation> {
        self.check_form(raw, lines, reason)?;
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let all: Vec<&Line> = lines.calls().collect();
        let answer_tool = self.protocol.answer_tool();
        let answers = |line: &&&Line| {
            let Kind::Call { tool, .. } = line.kind else { return false };
            answer_tool.is_some_and(|answer| decoded(raw, tool) == answer)
        };
        match (all.iter().find(answers), all.len()) {
            (Some(answer), 1) => return self.answer(raw, answer, notes),
            (Some(answer), _) => return Err(both(answer.span, &self.protocol)),
            (None, 0) => {}
            (None, calls) => {
                if let (false, Some(second)) = (self.protocol.parallel, all.get(1).filter(|_| calls > 1)) {
                    let first = all.first().map_or(second.span, |first| first.span);
                    return Err(violations::several(first, second.span, CALL.expected));
                }
                return Ok(Move::Call { calls: std::mem::take(&mut self.calls) });
            }
        }
        let form = self.protocol.answer_form();
        let texts: Vec<_> = said.iter().map(|span| decoded(raw, *span)).collect();
        let text = texts.join(BETWEEN_TEXTS);
        if text.trim().is_empty() {
            return Err(violations::blank(&form));
        }
        if self.protocol.options.typed().is_some() {
            let message = format!("expected the answer by a call of '{ANSWER_TOOL}': got text alone");
            let fault = Violation::new(Code::InvalidAnswer, message).expected(form.into_owned());
            return Err(Box::new(fault.at(said.first().copied().unwrap_or(Span::at(0)))));
        }
        Ok(Move::Finish { value: Arc::new(Value::from(text)), success: None, coerced: Vec::new() })
    }

    /// Refuses a reply that is too long, none, cut, or that the service could not read itself.
    fn check_form(&self, raw: &str, lines: &Lines, reason: FinishReason) -> Result<(), BoxedViolation> {
        let form = self.protocol.answer_form();
        if self.is_too_large(raw) {
            return Err(violations::too_large(&self.options));
        }
        for line in &lines.lines {
            if let Kind::Fault { message, raw: written } = line.kind {
                let said = decoded(raw, message);
                let message =
                    format!("expected a call that the model's service can read: got one that it refused: {said}");
                let place = if decoded(raw, written).trim().is_empty() { line.span } else { written };
                return Err(Box::new(
                    Violation::new(Code::ServiceRefusedCall, message)
                        .at(place)
                        .expected(CALL.expected)
                        .hint("write the call again in the form of the tools, or answer"),
                ));
            }
            if let Some(data) = line.data.filter(|data| data.end - data.start > DATA_BYTES) {
                let message = format!("expected at most {DATA_BYTES} bytes of data with an item: got more");
                return Err(Box::new(Violation::new(Code::LimitExceeded, message).at(Span::at(data.start))));
            }
        }
        if raw.trim().is_empty() && reason != FinishReason::Length {
            return Err(violations::blank(&form));
        }
        let open = lines.lines.iter().find(|line| !line.whole);
        if reason == FinishReason::Length || open.is_some() {
            let place = open.map_or(Span::at(raw.len()), |line| Span::at(line.span.end));
            let message = "expected a whole reply: it ended in the middle";
            let fault = Violation::new(Code::Truncated, message).at(place).hint("write the reply again, whole");
            return Err(violations::mention_truncation(Box::new(fault), reason, &form));
        }
        lines.strange.map_or(Ok(()), |start| Err(strange(start)))
    }

    /// The answer that a call of `final_answer` gives.
    fn answer(&mut self, raw: &str, line: &Line, notes: &mut RepairNotes) -> Result<Move, BoxedViolation> {
        self.notes = RepairNotes::new(self.options.repairs);
        let call = self.read_call(raw, line)?;
        *notes = std::mem::take(&mut self.notes);
        let (Some(returns), Some(given)) = (self.protocol.options.typed(), call.arguments.as_object()) else {
            return Err(strange(line.span.start));
        };
        let Some(value) = given.get(ANSWER).filter(|_| given.len() == 1) else {
            let message = format!("expected '{ANSWER}' alone in a call of '{ANSWER_TOOL}': got other arguments");
            let fault = Violation::new(Code::InvalidAnswer, message).at(call.arguments_span);
            return Err(Box::new(fault.expected(self.protocol.answer_form().into_owned())));
        };
        let span = call.arguments_span;
        let field = Field { key_span: Span::at(span.start), value: Arc::new(value.clone()), span };
        let CheckedAnswer { value, coerced } = answer::read(returns, ANSWER, &field, "", &self.options, false)?;
        Ok(Move::Finish { value, success: None, coerced })
    }
}

/// The violation of a final answer with calls.
fn both(answer: Span, protocol: &Native) -> BoxedViolation {
    let message = format!("expected '{ANSWER_TOOL}' alone in a reply: got other calls beside it");
    Box::new(
        Violation::new(Code::BothActionAndFinal, message)
            .at(answer)
            .expected(protocol.answer_form().into_owned())
            .hint("make the calls first; answer when their results are there"),
    )
}

/// A violation of a text that is no envelope.
fn strange(start: usize) -> BoxedViolation {
    let message = "expected the lines of a reply with the model's own tool calls: got something else";
    Box::new(Violation::new(Code::InvalidJson, message).at(Span::at(start)))
}
