//! Reads chatty replies: a direct answer, or one tool block with an array of calls.

mod after_start_tag;
mod block;
mod blocks;
mod call;
pub(in crate::protocol) mod displayed_block;
mod narrated_fence;
mod outcome;
mod template_reasoning;
mod untagged;
mod wrong_tags;

use crate::protocol::following_text::{Copies, FollowingText, WhatFollows};
use crate::protocol::reasoning::{Growing, Reasoning, gaps};
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::{
    Decoder, Delta, FinishReason, Move, ReadOptions, Reply, Status, TextSpans, ToolCall, violations,
};
use crate::reply::buffer::Buffer;
use crate::reply::envelope::{DETAILS, Envelope, LOOSE, Look, Mark};
use crate::reply::tag::{Match, Tag, special_token, unfinished_tokens};
use crate::reply::{BoxedViolation, Code, RepairCode, Span, Violation};
use after_start_tag::{AfterStartTag, Next};
use block::{Block, Step};
use blocks::{Blocks, EndedBlock};
use call::Calls;
pub(super) use call::{corrected, written_call};
use narrated_fence::Beginning;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
/// Marks of reasoning that are text of an answer.
pub(in crate::protocol) const NO_REASONING: &[&str] = &[DETAILS, LOOSE];
/// The longest text between two marks that are only named.
const MENTION: usize = 120;
/// The start tag among the envelope's.
const START: usize = 0;

/// A decoder of one chatty reply.
pub fn decoder(options: ReadOptions, tags: &ToolTags, reasoning: &[(String, String)]) -> Box<dyn Decoder> {
    let tags = BlockTags { start: Tag::new(&*tags.start), end: Tag::new(&*tags.end) };
    let own: Arc<[Tag]> = Arc::new([tags.start.clone(), tags.end.clone()]);
    Box::new(ChattyDecoder {
        options,
        buffer: Buffer::default(),
        envelope: Envelope::new(own, NO_REASONING, options.think_prefilled).reasoning(reasoning),
        tags,
        reasoning: Reasoning::default(),
        narration: Narration::default(),
        opening: Opening::default(),
        state: State::Text,
        orphan: None,
        blocks: Blocks::default(),
        following: FollowingText::default(),
        answer: Vec::new(),
        fault: None,
    })
}

struct ChattyDecoder {
    options: ReadOptions,
    buffer: Buffer,
    envelope: Envelope,
    tags: BlockTags,
    reasoning: Reasoning,
    narration: Narration,
    opening: Opening,
    state: State,
    /// The first end tag outside a block.
    orphan: Option<Span>,
    blocks: Blocks,
    following: FollowingText,
    /// The place of the answer.
    answer: Vec<Span>,
    fault: Option<BoxedViolation>,
}

/// The tags around a block, as they are searched for.
struct BlockTags {
    start: Tag,
    end: Tag,
}

impl BlockTags {
    fn pair(&self) -> (&Tag, &Tag) {
        (&self.start, &self.end)
    }
}

/// The text before the first block.
#[derive(Default)]
struct Narration {
    text: Growing,
    /// Up to here the reply's text was published as narration.
    sent: usize,
}

/// How the reply begins, as far as it was looked at: nothing of it is looked at twice.
#[derive(Default)]
struct Opening {
    /// Up to here there is only reasoning and blanks.
    end: usize,
    /// The reasoning blocks before that place.
    reasoning_blocks: usize,
    /// Up to here there are only control tokens and blanks after that.
    after_tokens: usize,
    /// Up to here there are only blanks after the fence that the reply begins with.
    after_fence: usize,
}

/// What the text at the present position belongs to.
enum State {
    /// Text outside blocks.
    Text,
    /// A start tag whose next token has not arrived.
    StartTag { span: Span, exact: bool, next: AfterStartTag },
    /// The text after a start tag that no bracket follows. It is text, unless an end tag comes.
    Mention { span: Span, exact: bool },
    /// A block.
    Block(Box<Block>),
}

impl Decoder for ChattyDecoder {
    fn push(&mut self, chunk: &[u8], deltas: &mut Vec<Delta>) -> Status {
        self.buffer.push(chunk);
        self.advance(false, deltas);
        match (&self.fault, self.blocks.ended.first()) {
            (Some(_), _) => Status::Doomed,
            (None, Some(block)) => self.after_blocks(block.span),
            _ => Status::Open,
        }
    }

    fn calls(&self) -> &[ToolCall] {
        self.blocks.calls.all()
    }

    fn settled(&self) -> Option<usize> {
        let apart = self.fault.is_none() && self.following.found() == Some(WhatFollows::Apart);
        let whole = self.stands_first() && !self.blocks.is_fragile();
        (apart && whole).then_some(self.blocks.joined_end)
    }

    fn stands_first(&self) -> bool {
        self.narration.text.len() == 0
    }

    fn finish(mut self: Box<Self>, reason: FinishReason) -> Reply {
        self.buffer.close();
        self.advance(true, &mut Vec::new());
        let raw = std::mem::take(&mut self.buffer).into_text();
        let mut notes = RepairNotes::new(self.options.repairs);
        let (mut discarded, mut around) = (Vec::new(), Vec::new());
        let outcome = self.outcome(&raw, reason, &mut notes, &mut discarded, &mut around);
        let mut spans = TextSpans { thoughts: self.reasoning.text.take_spans(), ..TextSpans::default() };
        let thoughts = self.reasoning.text.into_text();
        if self.blocks.begun {
            spans.narration = self.narration.text.take_spans();
        }
        let (outcome, narration, repairs) = match outcome {
            Ok(outcome @ Move::Call { .. }) => (Ok(outcome), self.narration.text.into_text(), notes.into_sorted()),
            Ok(outcome) => {
                spans.answer = self.answer;
                (Ok(outcome), None, notes.into_sorted())
            }
            Err(fault) => (Err(*fault), None, Vec::new()),
        };
        Reply { raw, thoughts, reasoning: None, narration, spans, outcome, repairs, discarded, around }
    }
}

impl ChattyDecoder {
    fn advance(&mut self, end: bool, deltas: &mut Vec<Delta>) {
        if self.fault.is_some() {
            return;
        }
        let buffer = std::mem::take(&mut self.buffer);
        let bound = violations::bound(buffer.text(), &self.options);
        self.scan(bound, end && bound.len() == buffer.text().len(), deltas);
        if bound.len() < buffer.text().len() && self.fault.is_none() {
            self.fault = Some(violations::too_large(&self.options));
        }
        self.buffer = buffer;
    }

    fn scan(&mut self, text: &str, end: bool, deltas: &mut Vec<Delta>) {
        while self.fault.is_none() {
            let goes_on = match &self.state {
                State::Block(_) => self.in_block(text, end, deltas),
                State::StartTag { .. } => self.after_start_tag(text, end),
                State::Text | State::Mention { .. } => self.in_text(text, end, deltas),
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Decides what a start tag begins; `false` where more text is needed or nothing more can come.
    fn after_start_tag(&mut self, text: &str, end: bool) -> bool {
        let State::StartTag { span: tag, exact, next } = &mut self.state else { return true };
        let (tag, exact) = (*tag, *exact);
        match next.read(text, &self.tags.end, end) {
            Next::Unknown => {
                if end && self.blocks.ended.is_empty() {
                    let message = "expected an array of calls after the tag: the text ended";
                    self.fault = Some(Box::new(Violation::new(Code::Truncated, message).at(tag)));
                }
                return false;
            }
            Next::Block => {
                // Only the first block: looking back from each one would take the square of the text.
                let displayed =
                    if self.blocks.ended.is_empty() { displayed_block::place(text, tag.start) } else { None };
                if let Some(place) = displayed {
                    self.fault = Some(displayed_block::fault(place, tag, self.tags.pair()));
                    return false;
                }
                self.open(tag, exact);
            }
            Next::Text => self.state = State::Mention { span: tag, exact },
        }
        true
    }

    /// Reads on in the text outside blocks; `false` if more text is needed.
    fn in_text(&mut self, text: &str, end: bool, deltas: &mut Vec<Delta>) -> bool {
        let mark = self.envelope.next(text, end, LOOK);
        if self.blocks.ended.is_empty() {
            self.look(text, mark, deltas);
        }
        match mark {
            Some(Mark::Tag { index: START, span, exact }) => {
                self.state = State::StartTag { span, exact, next: AfterStartTag::new(span.end) };
            }
            Some(Mark::Tag { span, .. }) => self.end_tag(text, span, deltas),
            Some(_) => {}
            None => return false,
        }
        true
    }

    /// Publishes the text and the reasoning before the first block.
    fn look(&mut self, text: &str, mark: Option<Mark>, deltas: &mut Vec<Delta>) {
        // Reasoning in mid-text counts only once it is closed: it may be a tag that an answer speaks of.
        let leading = match self.envelope.reasoning_start() {
            Some(start) => self.leading(text, start) && !self.envelope.reasoning_is_words(),
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
        if matches!(mark, Some(Mark::Tag { .. }))
            || !matches!(self.state, State::Mention { .. }) && !self.may_be_whole(text, until)
        {
            // The end of the text may be a control token.
            let until = if mark.is_none() { self.narration.sent.max(self.certain(text, until)) } else { until };
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
            && !between.contains(self.tags.start.literal())
            && before.ends_with(char::is_alphanumeric)
            && !self.leading(text, whole.start)
    }

    /// Up to where the text before `until` is no control token that may still be arriving; reasoning holds none.
    fn certain(&self, text: &str, until: usize) -> usize {
        let ended = self.reasoning.blocks.iter().rev().map(|(block, _)| block.end).find(|end| *end <= until);
        unfinished_tokens(text, until).max(ended.unwrap_or(0))
    }

    fn tell(&mut self, text: &str, until: usize, deltas: &mut Vec<Delta>) {
        self.narration.sent = self.narration.sent.max(byte_order_mark(text).min(until));
        for piece in
            gaps(self.narration.sent, until.max(self.narration.sent), &self.reasoning.spans_from(self.narration.sent))
        {
            deltas.extend(self.narration.text.push(text, piece).map(Delta::Text));
        }
        self.narration.sent = self.narration.sent.max(until);
    }

    /// Passes the blanks and reasoning before the reply proper, up to `until`.
    fn pass_lead(&mut self, text: &str, until: usize) {
        self.opening.end = self.opening.end.max(byte_order_mark(text).min(until));
        loop {
            let rest = text.get(self.opening.end..until).unwrap_or("");
            self.opening.end += rest.len() - rest.trim_start().len();
            match self.reasoning.blocks.get(self.opening.reasoning_blocks) {
                Some((block, _)) if block.start == self.opening.end => {
                    self.opening.end = block.end;
                    self.opening.reasoning_blocks += 1;
                }
                _ => return,
            }
        }
    }

    /// The text before `until` behind the control tokens that the reply proper begins with.
    fn pass_tokens<'a>(&mut self, text: &'a str, until: usize) -> &'a str {
        loop {
            let rest = text.get(self.opening.after_tokens..until).unwrap_or("");
            match special_token(rest) {
                Some(length) => self.opening.after_tokens += length,
                None if rest.starts_with(char::is_whitespace) => {
                    self.opening.after_tokens += rest.len() - rest.trim_start().len();
                }
                None => return rest,
            }
        }
    }

    /// Whether only reasoning and blanks stand before `at`.
    fn leading(&mut self, text: &str, at: usize) -> bool {
        self.pass_lead(text, at);
        self.opening.end >= at
    }

    /// Where the reply proper begins, after blanks and reasoning.
    fn body(&mut self, text: &str) -> usize {
        self.pass_lead(text, text.len());
        self.opening.end
    }

    /// Whether the reply may yet turn out to be one fence, or JSON without tags: then it is no answer.
    fn may_be_whole(&mut self, text: &str, until: usize) -> bool {
        self.pass_lead(text, until);
        self.opening.after_tokens = self.opening.after_tokens.max(self.opening.end);
        let rest = self.pass_tokens(text, until);
        if rest.starts_with(['[', '{']) {
            return true;
        }
        let rest = match narrated_fence::beginning(rest) {
            Beginning::Open => return true,
            Beginning::Fence(at) => rest.get(at..).unwrap_or(""),
            Beginning::Other => rest,
        };
        if !rest.starts_with("```")
            && !rest.starts_with("~~~")
            && !["```", "~~~"].iter().any(|ticks| ticks.starts_with(rest))
        {
            return false;
        }
        let Some(end) = self.envelope.first_code_end() else { return true };
        self.opening.after_fence = self.opening.after_fence.max(end);
        let rest = text.get(self.opening.after_fence..until).unwrap_or("");
        self.opening.after_fence += rest.len() - rest.trim_start().len();
        self.opening.after_fence >= until
    }

    fn open(&mut self, tag: Span, exact: bool) {
        let mut block = Box::new(Block::new(self.options, self.tags.pair(), tag, self.blocks.calls.all().len()));
        self.blocks.later_calls = Calls::default();
        self.blocks.begun = true;
        if !exact && let Err(fault) = block.notes.note(RepairCode::TagForm, tag) {
            self.fault = Some(fault);
        }
        self.state = State::Block(block);
    }

    /// Reads on in a block; `false` if more text is needed or nothing more can come.
    fn in_block(&mut self, text: &str, end: bool, deltas: &mut Vec<Delta>) -> bool {
        let State::Block(mut block) = std::mem::replace(&mut self.state, State::Text) else { return true };
        let first = self.blocks.ended.is_empty();
        let step = if first {
            block.run(text, end, &mut self.blocks.calls, deltas)
        } else {
            // Calls after the first block are not published: they may be a copy.
            block.run(text, end, &mut self.blocks.later_calls, &mut Vec::new())
        };
        match step {
            Step::More => {
                self.state = State::Block(block);
                return false;
            }
            Step::Failed if first => {
                self.fault = block.fault.take();
                return false;
            }
            Step::Failed => {
                self.blocks.apart.get_or_insert(block.tag());
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
            self.blocks.joined_end = span.end;
        }
        self.blocks.ended.push(EndedBlock {
            span,
            junk: block.junk(text),
            open_list: block.open_list(),
            notes: block.notes,
        });
        true
    }

    /// What is known of a reply whose first block has ended.
    fn after_blocks(&mut self, first: Span) -> Status {
        let text = violations::bound(self.buffer.text(), &self.options);
        let rest = self.following.begin(text, self.blocks.joined_end);
        if self.following.found().is_none()
            && (matches!(self.state, State::Block(_) | State::StartTag { .. })
                || self.tags.start.at(rest, false) == Match::Partial)
        {
            // Another block may stand right behind it.
            return Status::Complete(first.end);
        }
        // The whole reply is read in pieces: no member goes on in a later block.
        let (text, end) = (self.blocks.until_later(text), self.blocks.joined_end);
        match self.following.look(text, Span::new(first.start, end), end, Copies::NONE) {
            WhatFollows::Open | WhatFollows::Apart => Status::Complete(first.end),
            WhatFollows::Refused => Status::Doomed,
        }
    }

    /// An end tag outside a block.
    fn end_tag(&mut self, text: &str, span: Span, deltas: &mut Vec<Delta>) {
        let State::Mention { span: tag, exact } = self.state else {
            self.orphan.get_or_insert(span);
            return;
        };
        self.state = State::Text;
        if !self.blocks.ended.is_empty() {
            return;
        }
        if let Some(place) = displayed_block::place(text, tag.start) {
            self.fault = Some(displayed_block::fault(place, tag, self.tags.pair()));
            return;
        }
        // A block with text before its array: read once more, now that its end is known.
        let (sent, told) = (self.narration.sent, deltas.len());
        self.open(tag, exact);
        let upto = text.get(..span.end).unwrap_or(text);
        self.in_block(upto, true, deltas);
        debug_assert!(sent <= tag.start);
        if self.blocks.ended.first().is_some_and(|block| block.span.end != span.end) {
            deltas.truncate(told);
            self.blocks.calls = Calls::default();
            let message = "expected an array of calls between the tags: got one more end tag, in a fence";
            let fault = Violation::new(Code::InvalidJson, message).at(span).related(tag, "the block begins here");
            self.fault = Some(Box::new(fault));
        }
    }
}

/// The length of the byte order mark that the text begins with, or 0.
fn byte_order_mark(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}
