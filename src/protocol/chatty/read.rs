//! Reads chatty replies: a direct answer, or one tool block with an array of calls.

mod answer;
mod block;
mod call;
mod judge;
mod lead;
mod shown;
mod untagged;

use crate::protocol::after::{Following, Follows};
use crate::protocol::notes::{Fault, Notes};
use crate::protocol::reasoning::{Growing, Reasoning, gaps};
use crate::protocol::refusal;
use crate::protocol::{Decoder, Delta, FinishReason, Move, ReadOptions, Reply, Status, ToolCall};
use crate::reply::buffer::Buffer;
use crate::reply::envelope::{Envelope, Look, Mark};
use crate::reply::tag::{Match, Tag, unfinished_tokens};
use crate::reply::{Code, RepairCode, Span, Violation};
use block::{Block, Step};
use call::Calls;
pub(super) use call::{corrected, written_call};
use lead::{After, Lead};
use serde::{Deserialize, Serialize};

/// The configured tags around a tool block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolTags {
    /// Default `<tool>`.
    pub start: String,
    /// Default `</tool>`.
    pub end: String,
}

/// What counts in the text.
const LOOK: Look = Look { brackets: false, reasoning: true, code: true };
/// The longest text between two marks that are only named.
const MENTION: usize = 120;
/// The start tag among the envelope's.
const START: usize = 0;

/// A decoder of one chatty reply.
pub fn decoder(options: ReadOptions, tags: &ToolTags, reasoning: &[(String, String)]) -> Box<dyn Decoder> {
    let (start, end) = (Tag::new(&*tags.start), Tag::new(&*tags.end));
    Box::new(ChattyDecoder {
        options,
        buffer: Buffer::default(),
        envelope: Envelope::new(vec![start.clone(), end.clone()], &[], options.think_prefilled).reasoning(reasoning),
        start,
        end,
        reasoning: Reasoning::default(),
        narration: Growing::default(),
        sent: 0,
        lead: 0,
        lead_blocks: 0,
        after_fence: 0,
        tag: None,
        maybe: None,
        orphan: None,
        block: None,
        blocks: Vec::new(),
        calls: Calls::default(),
        later: Calls::default(),
        second: None,
        joined: 0,
        following: Following::default(),
        fault: None,
    })
}

/// A block that has ended.
struct Ended {
    span: Span,
    /// Text stands between its last call and its end, which no end tag shows.
    loose: bool,
    /// Nothing shows that its last call has come.
    open_list: bool,
    notes: Notes,
}

struct ChattyDecoder {
    options: ReadOptions,
    buffer: Buffer,
    envelope: Envelope,
    start: Tag,
    end: Tag,
    reasoning: Reasoning,
    narration: Growing,
    /// Up to here the text before the first block was told.
    sent: usize,
    /// Up to here there is only reasoning and blanks.
    lead: usize,
    /// The reasoning blocks before that place.
    lead_blocks: usize,
    /// Up to here there are only blanks after the fence that the reply begins with.
    after_fence: usize,
    /// A start tag whose next token has not arrived.
    tag: Option<(Span, bool, Lead)>,
    /// A start tag that no bracket follows: text, unless an end tag comes.
    maybe: Option<(Span, bool)>,
    /// The first end tag outside a block.
    orphan: Option<Span>,
    block: Option<Box<Block>>,
    blocks: Vec<Ended>,
    calls: Calls,
    /// The calls of a later block.
    later: Calls,
    /// Another block that can't be joined with the first.
    second: Option<Span>,
    /// The end of the last of the blocks that stand right after the first.
    joined: usize,
    following: Following,
    fault: Option<Fault>,
}

impl Decoder for ChattyDecoder {
    fn push(&mut self, chunk: &[u8], deltas: &mut Vec<Delta>) -> Status {
        self.buffer.push(chunk);
        self.advance(false, deltas);
        match (&self.fault, self.blocks.first()) {
            (Some(_), _) => Status::Doomed,
            (None, Some(block)) => self.after_blocks(block.span),
            _ => Status::Open,
        }
    }

    fn calls(&self) -> &[ToolCall] {
        self.calls.all()
    }

    fn settled(&self) -> Option<usize> {
        (self.fault.is_none() && self.following.found() == Some(Follows::Apart)).then_some(self.joined)
    }

    fn finish(mut self: Box<Self>, reason: FinishReason) -> Reply {
        self.buffer.close();
        self.advance(true, &mut Vec::new());
        let raw = std::mem::take(&mut self.buffer).into_text();
        let mut notes = Notes::new(self.options.repairs);
        let mut discarded = Vec::new();
        let outcome = self.judge(&raw, reason, &mut notes, &mut discarded);
        let thoughts = self.reasoning.text.into_text();
        let (outcome, narration, repairs) = match outcome {
            Ok(outcome @ Move::Call { .. }) => (Ok(outcome), self.narration.into_text(), notes.into_sorted()),
            Ok(outcome) => (Ok(outcome), None, notes.into_sorted()),
            Err(fault) => (Err(*fault), None, Vec::new()),
        };
        Reply { raw, thoughts, reasoning: None, narration, outcome, repairs, discarded }
    }
}

impl ChattyDecoder {
    fn advance(&mut self, end: bool, deltas: &mut Vec<Delta>) {
        if self.fault.is_some() {
            return;
        }
        let buffer = std::mem::take(&mut self.buffer);
        let bound = refusal::bound(buffer.text(), &self.options);
        self.scan(bound, end && bound.len() == buffer.text().len(), deltas);
        if bound.len() < buffer.text().len() && self.fault.is_none() {
            self.fault = Some(refusal::too_large(&self.options));
        }
        self.buffer = buffer;
    }

    fn scan(&mut self, text: &str, end: bool, deltas: &mut Vec<Delta>) {
        while self.fault.is_none() {
            if self.block.is_some() {
                if !self.in_block(text, end, deltas) {
                    return;
                }
                continue;
            }
            if let Some((tag, exact, lead)) = &mut self.tag {
                let (tag, exact) = (*tag, *exact);
                match lead.after(text, &self.end, end) {
                    After::Unknown if !end => return,
                    After::Unknown => {
                        let message = "expected an array of calls after the tag: the text ended";
                        if self.blocks.is_empty() {
                            self.fault = Some(Box::new(Violation::new(Code::Truncated, message).at(tag)));
                        }
                        return;
                    }
                    // Only the first block: looking back from each one would take the square of the text.
                    After::Block if !self.blocks.is_empty() => self.open(tag, exact),
                    After::Block => match shown::place(text, tag.start) {
                        Some(place) => {
                            self.fault = Some(shown::fault(place, tag, (&self.start, &self.end)));
                            return;
                        }
                        None => self.open(tag, exact),
                    },
                    After::Text => self.maybe = Some((tag, exact)),
                }
                self.tag = None;
                continue;
            }
            let mark = self.envelope.next(text, end, LOOK);
            if self.blocks.is_empty() {
                self.look(text, mark, deltas);
            }
            match mark {
                Some(Mark::Tag { index: START, span, exact }) => {
                    self.tag = Some((span, exact, Lead::new(span.end)));
                    self.maybe = None;
                }
                Some(Mark::Tag { span, .. }) => self.end_tag(text, span, deltas),
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Tells the text and the reasoning before the first block.
    fn look(&mut self, text: &str, mark: Option<Mark>, deltas: &mut Vec<Delta>) {
        // Reasoning in mid-text counts only once it is closed: it may be a tag that an answer speaks of.
        let leading = match self.envelope.reasoning_start() {
            Some(start) => self.leading(text, start),
            None => true,
        };
        // Marks that the text speaks of are a part of it.
        let mark = mark.filter(|mark| !self.is_mention(text, *mark));
        if leading || mark.is_some() {
            deltas.extend(self.reasoning.look(text, &self.envelope, mark).map(Delta::Thoughts));
        }
        let until = match mark {
            Some(Mark::Reasoning { whole, .. }) => self.certain(text, whole.start),
            Some(Mark::Tag { index: START, span, .. }) => span.start,
            Some(_) => return,
            None => self.envelope.reasoning_start().unwrap_or(self.envelope.settled()),
        };
        if matches!(mark, Some(Mark::Tag { .. })) || self.maybe.is_none() && !self.may_be_whole(text, until) {
            // The end of the text may be a control token.
            let until = if mark.is_none() { self.sent.max(self.certain(text, until)) } else { until };
            self.tell(text, until, deltas);
        }
    }

    /// Whether a pair of marks stands in the middle of a sentence, in one line: text that names both.
    fn is_mention(&mut self, text: &str, mark: Mark) -> bool {
        let Mark::Reasoning { whole, content, implicit: false } = mark else { return false };
        let between = content.of(text);
        let before = text.get(..whole.start).unwrap_or("").trim_end_matches([' ', '\t']);
        between.len() <= MENTION
            && !between.contains('\n')
            && !between.contains(self.start.literal())
            && before.ends_with(char::is_alphanumeric)
            && !self.leading(text, whole.start)
    }

    /// Up to where the text before `until` is no control token that may still be arriving; reasoning holds none.
    fn certain(&self, text: &str, until: usize) -> usize {
        let ended = self.reasoning.blocks.iter().rev().map(|(block, _)| block.end).find(|end| *end <= until);
        unfinished_tokens(text, until).max(ended.unwrap_or(0))
    }

    fn tell(&mut self, text: &str, until: usize, deltas: &mut Vec<Delta>) {
        self.sent = self.sent.max(byte_order_mark(text).min(until));
        for piece in gaps(self.sent, until.max(self.sent), &self.reasoning.spans_from(self.sent)) {
            deltas.extend(self.narration.push(piece.of(text)).map(Delta::Text));
        }
        self.sent = self.sent.max(until);
    }

    /// Passes the blanks and reasoning before the reply proper, up to `until`.
    fn pass_lead(&mut self, text: &str, until: usize) {
        self.lead = self.lead.max(byte_order_mark(text).min(until));
        loop {
            let rest = text.get(self.lead..until).unwrap_or("");
            self.lead += rest.len() - rest.trim_start().len();
            match self.reasoning.blocks.get(self.lead_blocks) {
                Some((block, _)) if block.start == self.lead => {
                    self.lead = block.end;
                    self.lead_blocks += 1;
                }
                _ => return,
            }
        }
    }

    /// Whether only reasoning and blanks stand before `at`.
    fn leading(&mut self, text: &str, at: usize) -> bool {
        self.pass_lead(text, at);
        self.lead >= at
    }

    /// Where the reply proper begins, after blanks and reasoning.
    fn body(&mut self, text: &str) -> usize {
        self.pass_lead(text, text.len());
        self.lead
    }

    /// Whether the reply may yet turn out to be one fence, or JSON without tags: then it is no answer.
    fn may_be_whole(&mut self, text: &str, until: usize) -> bool {
        self.pass_lead(text, until);
        let rest = text.get(self.lead..until).unwrap_or("");
        if rest.starts_with(['[', '{']) {
            return true;
        }
        if !rest.starts_with("```") && !rest.starts_with("~~~") && !"```".starts_with(rest) {
            return false;
        }
        let Some(end) = self.envelope.first_code_end() else { return true };
        self.after_fence = self.after_fence.max(end);
        let rest = text.get(self.after_fence..until).unwrap_or("");
        self.after_fence += rest.len() - rest.trim_start().len();
        self.after_fence >= until
    }

    fn open(&mut self, tag: Span, exact: bool) {
        let mut block = Box::new(Block::new(self.options, (&self.start, &self.end), tag, self.calls.all().len()));
        self.later = Calls::default();
        if !exact && let Err(fault) = block.notes.note(RepairCode::TagForm, tag) {
            self.fault = Some(fault);
        }
        self.block = Some(block);
    }

    /// Goes on in a block; `false` where more text is needed or nothing more can come.
    fn in_block(&mut self, text: &str, end: bool, deltas: &mut Vec<Delta>) -> bool {
        let Some(mut block) = self.block.take() else { return true };
        let first = self.blocks.is_empty();
        let step = if first {
            block.run(text, end, &mut self.calls, deltas)
        } else {
            // What follows the first block is not told: it may be a copy.
            block.run(text, end, &mut self.later, &mut Vec::new())
        };
        match step {
            Step::More => {
                self.block = Some(block);
                return false;
            }
            Step::Failed if first => {
                self.fault = block.fault.take();
                return false;
            }
            Step::Failed => {
                self.second.get_or_insert(block.tag());
                self.envelope.resume(block.tag().end);
                return true;
            }
            Step::Ended => {}
        }
        self.envelope.resume(block.end);
        let span = Span::new(block.tag().start, block.end);
        if !first && let Err(fault) = self.join(text, span, &mut block.notes) {
            self.fault = Some(fault);
            return false;
        }
        if first {
            self.joined = span.end;
        }
        self.blocks.push(Ended { span, loose: block.loose(text), open_list: block.open_list(), notes: block.notes });
        true
    }

    /// What is known of a reply whose first block has ended.
    fn after_blocks(&mut self, first: Span) -> Status {
        let text = refusal::bound(self.buffer.text(), &self.options);
        let rest = self.following.begin(text, self.joined);
        if self.following.found().is_none()
            && (self.block.is_some() || self.tag.is_some() || self.start.at(rest, false) == Match::Partial)
        {
            // Another block may stand right behind it.
            return Status::Complete(first.end);
        }
        match self.following.look(text, Span::new(first.start, self.joined), self.joined, &[]) {
            Follows::Open | Follows::Apart => Status::Complete(first.end),
            Follows::Refused => Status::Doomed,
        }
    }

    /// Joins a later block with the first: a copy is dropped, an adjacent block goes on with the list.
    fn join(&mut self, text: &str, span: Span, notes: &mut Notes) -> Result<(), Fault> {
        let later = std::mem::take(&mut self.later).into_all();
        let first = self.calls.all();
        // Another call_id makes another call, also where the rest is alike; one that was filled in does not.
        let alike = |a: &ToolCall, b: &ToolCall| {
            a.tool == b.tool
                && a.arguments == b.arguments
                && (a.call_id == b.call_id || a.span.of(text) == b.span.of(text))
        };
        let same = later.len() == first.len() && later.iter().zip(first).all(|(a, b)| alike(a, b));
        let adjacent = text.get(self.joined..span.start).unwrap_or("").trim().is_empty();
        if same {
            if adjacent {
                self.joined = span.end;
            }
            *notes = Notes::new(self.options.repairs);
            return notes.note(RepairCode::DuplicateObjectDropped, span);
        }
        if self.blocks.last().is_some_and(|block| block.loose) {
            let first = self.blocks.first().map_or(Span::at(0), |block| block.span);
            return Err(refusal::several(first, span, call::CALL));
        }
        if !adjacent {
            self.second.get_or_insert(span);
            return Ok(());
        }
        self.joined = span.end;
        notes.note(RepairCode::MergedBlocks, span)?;
        for call in later {
            if let Some(twin) = self.calls.twin(&call) {
                let id = call.call_id.as_deref().unwrap_or_default();
                let message = format!("expected a call_id of its own for each call: got '{id}' twice");
                return Err(Box::new(
                    Violation::new(Code::DuplicateCallId, message)
                        .at(call.span)
                        .related(twin.span, "the first call with it")
                        .expected(call::CALL),
                ));
            }
            self.calls.push(call);
        }
        Ok(())
    }

    /// An end tag outside a block.
    fn end_tag(&mut self, text: &str, span: Span, deltas: &mut Vec<Delta>) {
        let Some((tag, exact)) = self.maybe.take() else {
            self.orphan.get_or_insert(span);
            return;
        };
        if !self.blocks.is_empty() {
            return;
        }
        if let Some(place) = shown::place(text, tag.start) {
            self.fault = Some(shown::fault(place, tag, (&self.start, &self.end)));
            return;
        }
        // A block with text before its array: read once more, now that its end is known.
        let (sent, told) = (self.sent, deltas.len());
        self.open(tag, exact);
        let upto = text.get(..span.end).unwrap_or(text);
        self.in_block(upto, true, deltas);
        debug_assert!(sent <= tag.start);
        if self.blocks.first().is_some_and(|block| block.span.end != span.end) {
            deltas.truncate(told);
            self.calls = Calls::default();
            let message = "expected an array of calls between the tags: got one more end tag, in a fence";
            let fault = Violation::new(Code::InvalidJson, message).at(span).related(tag, "the block begins here");
            self.fault = Some(Box::new(fault));
        }
    }
}

/// The length of the byte order mark that the text begins with; none is none.
fn byte_order_mark(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}
