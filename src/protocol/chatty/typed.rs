//! Reads chatty replies of runs with a typed answer: a tool block, or text that ends with one answer block with JSON.
//!
//! The decoder of plain replies sees nothing of the answer block. It reads the tool block, or the text before the answer.

mod block;
mod fenced;

use super::read::{NO_REASONING, ToolTags};
use crate::protocol::around::Around;
use crate::protocol::reasoning::gaps;
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::text_spans::clipped;
use crate::protocol::{
    Decoder, Delta, FinishReason, Move, ReadOptions, Reply, Status, TextSpans, ToolCall, violations,
};
use crate::reply::buffer::Buffer;
use crate::reply::envelope::{Envelope, Look, Mark};
use crate::reply::tag::Tag;
use crate::reply::{BoxedViolation, Code, Span, Violation};
use crate::tool::AnswerType;
use block::{Answer, Block};
use std::sync::Arc;

/// The tags around the answer.
pub(in crate::protocol) const START: &str = "<answer>";
pub(in crate::protocol) const END: &str = "</answer>";
/// The name of the answer in messages.
pub(in crate::protocol) const ANSWER: &str = "answer";

/// What the plain decoder reads in place of the block: the text before a block is no reply on its own.
const STAND_IN: &str = "…";

/// What counts in the text: nothing inside reasoning or Markdown code.
const LOOK: Look = Look { brackets: false, reasoning: true, code: true };
/// The tags, by their place in the envelope's list.
const TOOL: usize = 0;
const OPEN: usize = 1;

/// The smallest correct answer of a type.
pub(super) fn form(returns: &AnswerType) -> String {
    format!("{START}{}{END}", returns.shape())
}

/// A decoder of one reply. `plain` reads what is not the answer block.
pub(super) fn decoder(
    plain: Box<dyn Decoder>,
    options: ReadOptions,
    tags: &ToolTags,
    reasoning: &[(String, String)],
    returns: &AnswerType,
) -> Box<dyn Decoder> {
    let own: Arc<[Tag]> = Arc::new([Tag::new(&*tags.start), Tag::new(START)]);
    Box::new(TypedDecoder {
        plain,
        options,
        returns: returns.clone(),
        buffer: Buffer::default(),
        envelope: Envelope::new(own, NO_REASONING, options.think_prefilled).reasoning(reasoning),
        fed: 0,
        reasoning: Vec::new(),
        state: State::Text,
        fault: None,
    })
}

struct TypedDecoder {
    /// Reads the reply up to the answer block.
    plain: Box<dyn Decoder>,
    options: ReadOptions,
    returns: AnswerType,
    buffer: Buffer,
    envelope: Envelope,
    /// Bytes of the text that the plain decoder has.
    fed: usize,
    /// The reasoning before the answer block.
    reasoning: Vec<Span>,
    state: State,
    fault: Option<BoxedViolation>,
}

/// What the text at the present position belongs to.
enum State {
    /// Text before any block.
    Text,
    /// A tool block has begun, or a tag of one is only named: the plain decoder has the rest.
    Tools,
    /// The answer block has begun.
    Answer(Box<Block>),
}

impl Decoder for TypedDecoder {
    fn push(&mut self, chunk: &[u8], deltas: &mut Vec<Delta>) -> Status {
        self.buffer.push(chunk);
        self.advance(false, deltas)
    }

    fn calls(&self) -> &[ToolCall] {
        self.plain.calls()
    }

    fn settled(&self) -> Option<usize> {
        if matches!(self.state, State::Tools) { self.plain.settled() } else { None }
    }

    fn stands_first(&self) -> bool {
        self.plain.stands_first()
    }

    fn finish(mut self: Box<Self>, reason: FinishReason) -> Reply {
        self.buffer.close();
        self.advance(true, &mut Vec::new());
        let Self { mut plain, options, returns, buffer, envelope, reasoning, state, fault, .. } = *self;
        let raw = buffer.into_text();
        let expected = form(&returns);
        let answered = matches!(state, State::Answer(_));
        if answered {
            plain.push(STAND_IN.as_bytes(), &mut Vec::new());
        }
        let before = plain.finish(if answered { FinishReason::Stop } else { reason });
        let spans = TextSpans { thoughts: before.spans.thoughts, ..TextSpans::default() };
        let mut reply = Reply { raw, narration: None, spans, outcome: Err(without_block(&expected)), ..before };
        let code = envelope.code(reply.raw.len());
        let fenced = match &state {
            State::Text => fenced::answer(&reply.raw, &code, &before.outcome, &options, &returns, reason),
            State::Tools | State::Answer(_) => None,
        };
        let outcome = match (state, fenced) {
            (_, Some(read)) => read.map(|Answer { checked, span, repairs }| {
                reply.repairs.extend(repairs);
                reply.spans.answer = vec![span];
                Move::Finish { value: checked.value, success: None, coerced: checked.coerced }
            }),
            (State::Answer(block), None) => {
                let mut holes: Vec<Span> = reasoning.into_iter().chain(code).collect();
                holes.sort_by_key(|hole| hole.start);
                let text = gaps(0, block.tag().start, &holes);
                answer(&mut reply, *block, (before.outcome, &before.spans.answer), &options, reason)
                    .and_then(|moved| meant(&reply.raw, text, &moved, &options).map(|()| moved))
            }
            (State::Text | State::Tools, None) => match before.outcome {
                Ok(Move::Finish { .. }) => Err(Box::new(without_block(&expected).at(Span::new(0, reply.raw.len())))),
                Ok(moved) => {
                    (reply.narration, reply.spans.narration) = (before.narration, before.spans.narration);
                    apart(&reply.raw, &moved).map(|()| moved)
                }
                Err(fault) => Err(second_move(&reply.raw, fault)),
            },
        };
        let outcome = fault.map_or(outcome, Err);
        reply.outcome = outcome.map_err(|fault| {
            let fault = violations::mention_truncation(fault, reason, &expected);
            if fault.code == Code::InvalidAnswer { fault.expected(expected) } else { *fault }
        });
        if reply.outcome.is_err() {
            (reply.repairs, reply.discarded, reply.narration) = (Vec::new(), Vec::new(), None);
            reply.spans = reply.spans.only_thoughts();
        }
        reply.repairs.sort_by_key(|repair| (repair.span.start, repair.span.end));
        reply
    }
}

impl TypedDecoder {
    fn advance(&mut self, end: bool, deltas: &mut Vec<Delta>) -> Status {
        if self.fault.is_some() {
            return Status::Doomed;
        }
        let buffer = std::mem::take(&mut self.buffer);
        let bound = violations::bound(buffer.text(), &self.options);
        let is_whole = bound.len() == buffer.text().len();
        let status = self.scan(bound, end && is_whole, deltas);
        if !is_whole && self.fault.is_none() {
            self.fault = Some(violations::too_large(&self.options));
        }
        self.buffer = buffer;
        if self.fault.is_some() { Status::Doomed } else { status }
    }

    fn scan(&mut self, text: &str, end: bool, deltas: &mut Vec<Delta>) -> Status {
        while matches!(self.state, State::Text) {
            match self.envelope.next(text, end, LOOK) {
                None => {
                    let until = if end { text.len() } else { self.envelope.settled() };
                    return self.feed(text, until, deltas);
                }
                Some(Mark::Tag { index: TOOL, .. }) => self.state = State::Tools,
                Some(Mark::Tag { index: OPEN, span, exact }) => {
                    let status = self.feed(text, span.start, deltas);
                    if status != Status::Open {
                        self.state = State::Tools;
                        return self.feed(text, text.len(), deltas);
                    }
                    let block = Block::new(self.options, self.returns.clone(), span, exact);
                    self.state = State::Answer(Box::new(block));
                }
                Some(Mark::Reasoning { whole, .. }) => self.reasoning.push(whole),
                Some(_) => {}
            }
        }
        if let State::Answer(block) = &mut self.state {
            return block.run(text, end, deltas);
        }
        self.feed(text, text.len(), deltas)
    }

    /// Passes the text up to `until` to the plain decoder.
    fn feed(&mut self, text: &str, until: usize, deltas: &mut Vec<Delta>) -> Status {
        let piece = text.get(self.fed..until).unwrap_or_default();
        self.fed = self.fed.max(until);
        self.plain.push(piece.as_bytes(), deltas)
    }
}

/// The answer of a block, with the text before it.
fn answer(
    reply: &mut Reply,
    block: Block,
    (before, said): (Result<Move, Violation>, &[Span]),
    options: &ReadOptions,
    reason: FinishReason,
) -> Result<Move, BoxedViolation> {
    let tag = block.tag();
    match before {
        Ok(Move::Finish { value, .. }) => {
            let text = value.as_str().and_then(|text| text.strip_suffix(STAND_IN)).unwrap_or_default();
            let text = text.trim_end();
            reply.narration = Some(text.to_owned()).filter(|text| !text.is_empty());
            reply.spans.narration = clipped(said, Span::new(0, text.len()));
        }
        Ok(_) => return Err(violations::several(Span::at(0), tag, END)),
        Err(violation) => return Err(Box::new(violation)),
    }
    let answer = block.into_answer(&reply.raw, options, reason)?;
    reply.repairs.extend(answer.repairs);
    reply.spans.answer = vec![answer.span];
    Ok(Move::Finish { value: answer.checked.value, success: None, coerced: answer.checked.coerced })
}

/// Whether the text before an answer leaves it meant as such.
fn meant(raw: &str, before: Vec<Span>, moved: &Move, options: &ReadOptions) -> Result<(), BoxedViolation> {
    let start = before.last().map_or(0, |piece| piece.end);
    let notes = RepairNotes::new(options.repairs);
    Around::new(raw, Span::new(start, raw.len()), before, Vec::new()).check(&[], moved, &notes, None)
}

/// An answer behind calls is a second move of this protocol, whatever else their surroundings mean.
fn second_move(raw: &str, fault: Violation) -> BoxedViolation {
    match raw.rfind(START).filter(|_| fault.code == Code::QuotedMove) {
        Some(start) if start > 0 => violations::several(Span::at(0), Span::new(start, start + START.len()), END),
        _ => Box::new(fault),
    }
}

/// Whether nothing but calls stands in a reply with calls.
fn apart(raw: &str, moved: &Move) -> Result<(), BoxedViolation> {
    let Move::Call { calls } = moved else { return Ok(()) };
    let (Some(first), Some(last)) = (calls.first(), calls.last()) else { return Ok(()) };
    let mut envelope = Envelope::new([Tag::new(START)], NO_REASONING, false);
    envelope.resume(last.span.end);
    while let Some(mark) = envelope.next(raw, true, LOOK) {
        if let Mark::Tag { span, .. } = mark {
            return Err(violations::several(Span::new(first.span.start, last.span.end), span, END));
        }
    }
    Ok(())
}

/// The violation of an answer in plain text.
fn without_block(expected: &str) -> Violation {
    let message = format!("expected the answer as JSON between {START} and {END}: got text without it");
    Violation::new(Code::InvalidAnswer, message)
        .expected(expected)
        .hint(format!("end the reply with {START}, the answer as JSON, and {END}, outside of any code fence"))
}
