//! Calls in the published forms of model families: read where the protocol is lenient, named in feedback elsewhere.
//!
//! A form counts where the reply holds nothing else: text and reasoning before it, nothing but an invented observation
//! after it. What comes before it is read by the protocol's own decoder, which sees nothing of the form itself.

mod bare;
mod call;
mod cursor;
mod decoders;
mod families;
mod find_form;
mod forms;
mod gemma;
mod pythonic;

use super::around::Around;
use super::chatty::read::NO_REASONING;
use super::reasoning::gaps;
use super::repair_notes::RepairNotes;
use super::surrounding_text::{invents, leading, shifted, without_tokens};
use super::{Code, Decoder, FinishReason, Move, ReadOptions, Reply, TextSpans, ToolCall, Violation, violations};
use crate::reply::{BoxedViolation, RepairCode, RepairPolicy, Span, Value};
pub(super) use call::Call;
use decoders::{Final, Lenient, Named};
use families::{BARE, Form};
use find_form::{Finder, Mark};
use std::borrow::Cow;
use std::sync::Arc;

/// What a protocol makes of such calls.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is one difference between the protocols")]
pub(super) struct Host {
    /// What a call is to stand in, for messages.
    pub(super) wanted: Cow<'static, str>,
    /// The smallest correct call.
    pub(super) form: Cow<'static, str>,
    /// A reply may hold several calls, each with an id; else one, which has none (chatty).
    pub(super) several: bool,
    /// A call has a description (ticket).
    pub(super) described: bool,
    /// Plain text is an answer (chatty).
    pub(super) answers: bool,
    /// The tag that its own calls begin with, where it can be configured (chatty).
    pub(super) own_tag: Option<String>,
    /// The tags that may stand around the call (ticket).
    pub(super) tags: Option<(&'static str, &'static str)>,
    /// Any text is a value of the answer, which may be given in words (react, ticket).
    pub(super) takes_text: bool,
    /// A call's move says whether the task succeeded (react).
    pub(super) says_success: bool,
}

/// Makes the protocol's own decoder.
type Own = Box<dyn Fn(ReadOptions) -> Box<dyn Decoder> + Send>;

/// The protocol's decoder, with the published forms beside it.
pub(super) fn beside(
    host: Host,
    options: ReadOptions,
    reasoning: &[(String, String)],
    own: impl Fn(ReadOptions) -> Box<dyn Decoder> + Send + 'static,
) -> Box<dyn Decoder> {
    let inner = own(options);
    let form = host.form.clone();
    let forms = Forms::new(host, options, reasoning, own);
    let decoder: Box<dyn Decoder> = if options.repairs == RepairPolicy::Lenient {
        Box::new(Lenient::new(forms, inner))
    } else {
        Box::new(Named::new(forms, inner))
    };
    Box::new(Final::new(decoder, form))
}

/// The calls that a reply holds in a published form, and nothing else.
pub(super) fn calls(
    host: Host,
    options: ReadOptions,
    reasoning: &[(String, String)],
    raw: &str,
    own: impl Fn(ReadOptions) -> Box<dyn Decoder> + Send + 'static,
) -> Option<Vec<Call>> {
    let forms = Forms::new(host, options, reasoning, own);
    forms.look(raw).map(|found| found.calls).filter(|calls| !calls.is_empty())
}

/// What ends reasoning that has lost its control tokens.
const END_OF_REASONING: &str = "assistantfinal";

/// Reads the forms of one reply.
struct Forms {
    host: Host,
    options: ReadOptions,
    reasoning: Vec<(String, String)>,
    own: Own,
}

/// Calls in a published form, and what stands around them.
struct Found {
    calls: Vec<Call>,
    mark: Mark,
    place: Span,
    /// What the own decoder says of the text before them.
    before: Reply,
    /// The text that the model invented after them.
    invented: Option<Span>,
    tokens: Option<Span>,
    /// The end tag is missing, or there were no arguments: more may have been to come.
    open: bool,
    /// It is an answer in words.
    answer: Option<Span>,
}

/// Why calls are not read.
#[derive(Clone, Copy)]
enum Unread {
    /// They are broken, or only shown.
    Broken,
    /// Something follows them that may be a move.
    Several(Span, Span),
}

impl Forms {
    fn new(
        host: Host,
        options: ReadOptions,
        reasoning: &[(String, String)],
        own: impl Fn(ReadOptions) -> Box<dyn Decoder> + Send + 'static,
    ) -> Self {
        // Where repairs are refused, a call that needs some is a call all the same, and no answer.
        let repairs = match options.repairs {
            RepairPolicy::Strict => RepairPolicy::Default,
            other => other,
        };
        let options = ReadOptions { repairs, ..options };
        Self { host, options, reasoning: reasoning.to_vec(), own: Box::new(own) }
    }

    fn finder(&self) -> Finder {
        let no_reasoning = if self.host.answers { NO_REASONING } else { &[] };
        Finder::new(&self.reasoning, no_reasoning, self.options.think_prefilled, self.host.own_tag.as_deref())
    }

    /// What the protocol's own decoder says of a piece of a reply, where that is no move and no attempt at one.
    fn nothing(&self, text: &str) -> Option<Reply> {
        let text = match self.host.tags {
            Some((open, _)) => text.trim_end().strip_suffix(open).unwrap_or(text),
            None => text,
        };
        let mut decoder = (self.own)(self.options);
        decoder.push(text.as_bytes(), &mut Vec::new());
        let reply = decoder.finish(FinishReason::Stop);
        let empty = match &reply.outcome {
            Ok(Move::Finish { .. }) => self.host.answers,
            Ok(_) => false,
            Err(violation) => matches!(violation.code, Code::NoAction | Code::NoOutput | Code::Empty),
        };
        empty.then_some(reply)
    }

    /// What the protocol's own decoder says of the text before the mark, where that is nothing.
    fn nothing_before(&self, raw: &str, finder: &Finder) -> Option<Reply> {
        let at = finder.found()?.span.start;
        let text = raw.get(..at)?;
        // Reasoning that the mark itself ends is closed for the decoder, which doesn't see the mark.
        let closed = || {
            let ended = finder.reasoning().last().is_some_and(|block| block.end == at);
            ended.then(|| self.nothing(&format!("{text}{END_OF_REASONING}"))).flatten()
        };
        self.nothing(text).or_else(closed)
    }

    /// Seeks calls in a whole reply.
    fn look(&self, raw: &str) -> Option<Found> {
        if raw.len() > self.options.limits.bytes {
            return None;
        }
        let mut finder = self.finder();
        finder.advance(raw, true);
        let mark = finder.found()?;
        let before = self.nothing_before(raw, &finder)?;
        self.read(raw, mark, before).ok()
    }

    /// Reads the calls that begin where the finder has found a mark.
    fn read(&self, raw: &str, mark: Mark, before: Reply) -> Result<Found, Unread> {
        if mark.row.form == Form::FinalAnswer {
            return self.answer(raw, mark, before);
        }
        let block = forms::read(raw, mark, &self.options).ok_or(Unread::Broken)?;
        let mut rest = raw.get(block.end..).unwrap_or("");
        if let Some((_, close)) = self.host.tags {
            rest = rest.trim_start().strip_prefix(close).unwrap_or(rest);
        }
        let from = raw.len() - rest.len();
        let (kept, tokens) = without_tokens(rest);
        if let Some(kept) = kept {
            let text = kept.of(rest);
            let mut later = self.finder();
            later.advance(text, true);
            if later.found().is_some() || self.nothing(text).is_none() {
                return Err(Unread::Several(Span::new(mark.span.start, block.end), shifted(kept, from)));
            }
            if !invents(text) {
                return Err(Unread::Broken);
            }
        }
        Ok(Found {
            calls: block.calls,
            mark,
            place: Span::new(mark.span.start, block.end),
            before,
            invented: kept.map(|kept| shifted(kept, from)),
            tokens: tokens.map(|tokens| shifted(tokens, from)),
            open: block.open,
            answer: None,
        })
    }

    /// Reads the answer behind `Final Answer:`, which is the rest of the reply.
    fn answer(&self, raw: &str, mark: Mark, before: Reply) -> Result<Found, Unread> {
        let from = mark.span.end;
        let rest = raw.get(from..).unwrap_or("");
        let (kept, tokens) = without_tokens(rest);
        let kept = kept.filter(|_| self.host.takes_text).ok_or(Unread::Broken)?;
        let text = kept.of(rest);
        let mut later = self.finder();
        later.advance(text, true);
        if later.found().is_some() || self.nothing(text).is_none() {
            return Err(Unread::Several(mark.span, shifted(kept, from)));
        }
        Ok(Found {
            calls: Vec::new(),
            mark,
            place: Span::new(mark.span.start, from + kept.end),
            before,
            invented: None,
            tokens: tokens.map(|tokens| shifted(tokens, from)),
            open: false,
            answer: Some(shifted(kept, from)),
        })
    }

    /// Reads a reply that is a call without a mark, and nothing else.
    fn bare(&self, raw: &str, before: &Reply, reasoning: &[Span]) -> Option<Found> {
        let from = body(raw, reasoning);
        let mut end = raw.len();
        let mut start = from;
        if let Some((open, close)) = self.host.tags {
            // The tags of the protocol may stand around it, behind its thoughts.
            let text = raw.get(from..)?;
            if let Some(at) = text.find(open).filter(|at| text.get(..*at).is_some_and(is_thoughts)) {
                start = from + at + open.len();
                let inside = raw.get(start..)?.trim_end();
                end = start + inside.strip_suffix(close).unwrap_or(inside).len();
            }
        }
        let (calls, place, repairs) = bare::read(raw.get(..end)?, start, &self.options)?;
        let mark = Mark { span: Span::at(place.start), row: &BARE };
        let mut calls = calls;
        calls.first_mut()?.repairs.extend(repairs);
        let mut before = Reply { narration: None, ..before.clone() };
        before.spans = before.spans.only_thoughts();
        Some(Found { calls, mark, place, before, invented: None, tokens: None, open: false, answer: None })
    }

    /// The violation where text stands before the protocol's own call that may be a call too (chatty: elsewhere such
    /// text is noted as a repair).
    fn ahead(&self, raw: &str, own: &ToolCall) -> Option<BoxedViolation> {
        let text = raw.get(..own.span.start).filter(|_| self.host.answers)?;
        let tag =
            self.host.own_tag.as_deref().and_then(|tag| text.to_ascii_lowercase().rfind(&tag.to_ascii_lowercase()));
        let text = tag.map_or(text, |tag| text.get(..tag).unwrap_or(text));
        if text.trim().is_empty() {
            return None;
        }
        let mut finder = self.finder();
        finder.advance(text, true);
        let mark = finder.found()?;
        self.nothing(text.get(..mark.span.start)?)?;
        if let Some(block) = forms::read(text, mark, &self.options) {
            return Some(violations::several(Span::new(mark.span.start, block.end), own.span, &self.host.form));
        }
        let inside = text.get(mark.span.end..).unwrap_or("").trim();
        // The own call may stand between foreign tags.
        let broken = mark.row.names_outside || inside.starts_with(['{', '[']) && inside != "[";
        broken.then(|| self.refused(mark))
    }

    /// The protocol's own reading, where nothing before its call may be a call too.
    fn own(&self, reply: Reply) -> Reply {
        let first = match &reply.outcome {
            Ok(Move::Call { calls }) => calls.first(),
            _ => None,
        };
        match first.and_then(|first| self.ahead(&reply.raw, first)) {
            Some(fault) => reply.refused(*fault),
            None => reply,
        }
    }

    /// The violation of such a call where it is not read.
    fn refused(&self, mark: Mark) -> BoxedViolation {
        let shown = mark.row.shown;
        let message = format!("expected {}: got a call in another form, {shown}", self.host.wanted);
        Box::new(Violation::new(Code::WrongTag, message).at(mark.span).found(shown).expected(&*self.host.form).hint(
            if self.host.answers {
                "write calls in the form of this conversation alone; to speak of another, put it in backticks"
            } else {
                "write calls in the form of this conversation alone"
            },
        ))
    }

    /// The move that the calls are.
    fn calls(&self, raw: &str, found: Found, reasoning: &[Span]) -> Result<Reply, BoxedViolation> {
        let Found { mut calls, mark, place, before, invented, tokens, open, answer } = found;
        let mut notes = RepairNotes::new(self.options.repairs);
        for block in reasoning {
            // Thoughts of the protocol are no reasoning.
            let own = self.host.tags.is_some() && block.of(raw).to_ascii_lowercase().starts_with("<thought");
            if !own {
                notes.note(RepairCode::ReasoningStripped, *block)?;
            }
        }
        if !self.host.answers && mark.row.form != Form::Bare {
            leading(raw, &gaps(0, place.start, reasoning), &mut notes)?;
        }
        notes.note(RepairCode::PublishedForm, place)?;
        if open {
            let code = if mark.row.form == Form::Action { RepairCode::EmptyArgs } else { RepairCode::MissingCloseTag };
            notes.note(code, Span::at(place.end))?;
        }
        for call in &mut calls {
            notes.extend(call.repairs.drain(..));
        }
        if !self.host.several {
            self.keep_one(&mut calls, &mut notes)?;
        }
        if let Some(tokens) = tokens {
            notes.note(RepairCode::SpecialTokenStripped, tokens)?;
        }
        if let Some(invented) = invented {
            notes.note(RepairCode::HallucinatedObservation, invented)?;
        }
        if let Some(answer) = answer {
            let (value, success) = (Arc::new(Value::from(answer.of(raw))), self.host.says_success.then_some(true));
            let outcome = Ok(Move::Finish { value, success, coerced: Vec::new() });
            let spans = TextSpans { answer: vec![answer], ..before.spans.only_thoughts() };
            let (raw, repairs) = (raw.to_owned(), notes.into_sorted());
            return Ok(Reply { raw, narration: None, spans, outcome, repairs, ..before });
        }
        let outcome = Move::Call { calls: self.numbered(calls, &mut notes)? };
        let around = Around::new(raw, place, gaps(0, place.start, reasoning), gaps(place.end, raw.len(), reasoning));
        let around = if self.host.answers { around.showing(Vec::new()) } else { around };
        around.check(&[], &outcome, &notes, None)?;
        let narration = match &before.outcome {
            _ if mark.row.form == Form::Bare => None,
            Ok(Move::Finish { value, .. }) => value.as_str().map(str::to_owned),
            _ => None,
        };
        let said = if narration.is_some() { before.spans.answer.clone() } else { Vec::new() };
        let spans = TextSpans { narration: said, ..before.spans.only_thoughts() };
        Ok(Reply {
            raw: raw.to_owned(),
            narration,
            spans,
            outcome: Ok(outcome),
            repairs: notes.into_sorted(),
            discarded: invented.into_iter().collect(),
            around: around.into_pieces(),
            ..before
        })
    }

    /// Keeps the first of several calls: the others must be copies of it.
    fn keep_one(&self, calls: &mut Vec<Call>, notes: &mut RepairNotes) -> Result<(), BoxedViolation> {
        let rest = calls.split_off(calls.len().min(1));
        let Some(first) = calls.first() else { return Ok(()) };
        if let Some(other) = rest.iter().find(|other| !first.same(other)) {
            return Err(violations::several(first.span, other.span, &self.host.form));
        }
        for copy in rest {
            notes.note(RepairCode::DuplicateObjectDropped, copy.span)?;
        }
        Ok(())
    }

    fn numbered(&self, calls: Vec<Call>, notes: &mut RepairNotes) -> Result<Vec<ToolCall>, BoxedViolation> {
        let mut read: Vec<ToolCall> = Vec::with_capacity(calls.len());
        for (number, call) in (1..).zip(calls) {
            let call_id = match call.id.filter(|_| self.host.several) {
                _ if !self.host.several => None,
                Some(id) => Some(id),
                None => {
                    notes.note(RepairCode::MissingCallId, call.span)?;
                    Some(format!("call_{number}"))
                }
            };
            if let Some(twin) = read.iter().find(|twin| call_id.is_some() && twin.call_id == call_id) {
                let id = call_id.unwrap_or_default();
                let message = format!("expected a call_id of its own for each call: got '{id}' twice");
                return Err(Box::new(
                    Violation::new(Code::DuplicateCallId, message)
                        .at(call.span)
                        .related(twin.span, "the first call with it")
                        .expected(&*self.host.form),
                ));
            }
            read.push(ToolCall {
                call_id,
                tool: call.tool,
                arguments: Arc::new(call.arguments),
                description: self.host.described.then(String::new),
                span: call.span,
                tool_span: call.tool_span,
                arguments_span: call.arguments_span,
                unread: call.unread,
            });
        }
        Ok(read)
    }
}

/// Whether the protocol's own decoder has read no move and no attempt at one.
fn may_be_bare(reply: &Reply, host: &Host) -> bool {
    match &reply.outcome {
        Ok(Move::Finish { .. }) => host.answers,
        Ok(_) => false,
        Err(fault) => matches!(fault.code, Code::NoAction | Code::NoOutput | Code::UnknownKey | Code::UntaggedToolCall),
    }
}

/// Where a reply proper begins, after blanks and reasoning.
fn body(raw: &str, reasoning: &[Span]) -> usize {
    let mut at = 0;
    loop {
        let rest = raw.get(at..).unwrap_or("");
        let text = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        at = raw.len() - text.len();
        match reasoning.iter().find(|block| block.start == at && block.end > at) {
            Some(block) => at = block.end,
            None => return at,
        }
    }
}

/// Whether the text is nothing but the thoughts of the protocol (ticket).
fn is_thoughts(text: &str) -> bool {
    let text = text.trim();
    let inside = text.strip_prefix("<thoughts>").and_then(|text| text.strip_suffix("</thoughts>"));
    text.is_empty() || inside.is_some_and(|inside| !inside.contains("thoughts>"))
}
