//! Reads ticket replies: `<thoughts>` then `<output>` with one JSON object.

mod decision;
mod outcome;

use crate::protocol::around;
use crate::protocol::field_stream::FieldStream;
use crate::protocol::find_payload::PayloadFinder;
use crate::protocol::reasoning::{Growing, Reasoning};
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::{Decoder, Delta, FinishReason, Move, ReadOptions, Reply, Status, TextSpans};
use crate::protocol::{surrounding_text, violations};
use crate::reply::buffer::Buffer;
use crate::reply::envelope::{Envelope, Look, Mark, Tags};
use crate::reply::tag::Tag;
use crate::reply::{BoxedViolation, Span};
use crate::tool::AnswerType;
use decision::{Decision, DeltaWriter};
pub(super) use decision::{corrected, return_form, written_call};
use std::sync::{Arc, LazyLock};

/// The tags, by their place in the envelope's list.
const THOUGHTS: usize = 0;
const END_THOUGHTS: usize = 1;
const OUTPUT: usize = 2;
const END_OUTPUT: usize = 3;

static TAGS: LazyLock<Tags> =
    LazyLock::new(|| ["<thoughts>", "</thoughts>", "<output>", "</output>"].map(Tag::new).into());
/// What ends the object.
static ENDS: LazyLock<Arc<[Tag]>> = LazyLock::new(|| Arc::new([Tag::new("</output>")]));

/// A decoder of one ticket reply.
pub fn decoder(options: ReadOptions, reasoning: &[(String, String)], returns: Option<&AnswerType>) -> Box<dyn Decoder> {
    let mut inside = PayloadFinder::new(&decision::PAYLOAD, &options, Arc::clone(&ENDS));
    inside.checks.early = Some(decision::early);
    inside.checks.misfit = Some(decision::misfit);
    Box::new(TicketDecoder {
        options,
        buffer: Buffer::default(),
        envelope: Envelope::new(TAGS.clone(), &["thoughts"], options.think_prefilled).reasoning(reasoning),
        section: OpenSection::Outside,
        outside: PayloadFinder::new(&decision::PAYLOAD, &options, Arc::clone(&ENDS)),
        inside,
        reasoning: Reasoning::default(),
        published: Published {
            fields: FieldStream::new(&options),
            writer: DeltaWriter::new(returns),
            thoughts: Growing::default(),
            thoughts_sent: 0,
        },
        sections: Sections::default(),
        complete: None,
        decision: None,
        returns: returns.cloned(),
        fault: None,
    })
}

/// Where in the reply the text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenSection {
    Outside,
    Thoughts {
        /// The first start tag of an output inside: the thoughts end there if they are never closed.
        output: Option<Span>,
    },
    Output,
}

/// The sections of the reply.
#[derive(Debug, Default)]
struct Sections {
    /// Each block of thoughts, with its tags.
    thoughts: Vec<Span>,
    /// The thoughts that are open begin here.
    open_thoughts: Option<Span>,
    /// The thoughts end without an end tag.
    unclosed: Option<Span>,
    /// All of the text was looked through, and no further end tag of thoughts is in it.
    no_more_ends: bool,
    /// The thoughts begin without a start tag.
    unopened: Option<Span>,
    /// The start tag of the output that counts.
    output: Option<Span>,
    /// The end tag of that output.
    end_output: Option<Span>,
    /// The first output that holds JSON and no decision.
    broken: Option<Span>,
    /// Tags in other case or with blanks.
    odd: Vec<Span>,
}

struct TicketDecoder {
    options: ReadOptions,
    buffer: Buffer,
    envelope: Envelope,
    section: OpenSection,
    /// Objects outside an output section, in a reply that may have none.
    outside: PayloadFinder,
    inside: PayloadFinder,
    reasoning: Reasoning,
    published: Published,
    sections: Sections,
    /// Where the output ends, once a valid one has.
    complete: Option<usize>,
    /// The first object of the output, read.
    decision: Option<Result<Decision, BoxedViolation>>,
    /// The type of the answer.
    returns: Option<AnswerType>,
    fault: Option<BoxedViolation>,
}

/// What was published as deltas.
struct Published {
    fields: FieldStream,
    writer: DeltaWriter,
    thoughts: Growing,
    /// Up to here the text of the thoughts was published.
    thoughts_sent: usize,
}

impl Decoder for TicketDecoder {
    fn push(&mut self, chunk: &[u8], deltas: &mut Vec<Delta>) -> Status {
        self.buffer.push(chunk);
        self.advance(false, deltas);
        let end = self.sections.end_output;
        // Another object before the output ends can't be cut off.
        let second = [self.inside.second, self.outside.second].into_iter().flatten();
        let several = second.into_iter().any(|second| end.is_none_or(|end| second.start < end.start));
        let status = match (&self.fault, &self.decision, end) {
            (Some(_), ..) | (None, Some(Err(_)), _) => Status::Doomed,
            (None, Some(Ok(_)), _) if several => Status::Doomed,
            (None, Some(Ok(_)), Some(end)) => Status::Complete(end.end),
            _ => Status::Open,
        };
        self.complete = match status {
            Status::Complete(at) if self.complete.is_none() => self.stands_first().then_some(at),
            Status::Complete(_) => self.complete,
            _ => None,
        };
        status
    }

    fn settled(&self) -> Option<usize> {
        self.complete
    }

    fn finish(mut self: Box<Self>, reason: FinishReason) -> Reply {
        self.buffer.close();
        self.advance(true, &mut Vec::new());
        let raw = std::mem::take(&mut self.buffer).into_text();
        let mut notes = RepairNotes::new(self.options.repairs);
        let (mut discarded, mut around) = (Vec::new(), Vec::new());
        let outcome = self.outcome(&raw, reason, &mut notes, &mut discarded, &mut around);
        let mut spans = TextSpans { thoughts: self.published.thoughts.take_spans(), ..TextSpans::default() };
        let (thoughts, reasoning) = (self.published.thoughts.into_text(), self.reasoning.text.into_text());
        let (outcome, repairs) = match outcome {
            Ok(decision) => (Ok(decision.outcome), notes.into_sorted()),
            Err(fault) => (Err(*fault), Vec::new()),
        };
        if let (Ok(Move::Finish { .. }), Some(found)) = (&outcome, &self.inside.first) {
            spans.answer.extend(found.record.fields.get("value").map(|field| field.span));
        }
        Reply { raw, thoughts, reasoning, narration: None, spans, outcome, repairs, discarded, around }
    }
}

impl TicketDecoder {
    /// Whether only blanks, reasoning, thoughts and the tag stand before the object, which is whole.
    fn stands_first(&self) -> bool {
        let (Some(found), Some(Ok(decision))) = (&self.inside.first, &self.decision) else { return false };
        !around::is_fragile(found.repairs.iter().chain(&decision.repairs))
            && surrounding_text::stands_first(self.buffer.text(), &self.before(found.root))
    }

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
        loop {
            if self.inside.reader().is_some() || self.outside.reader().is_some() {
                let Some(position) = self.in_payload(text, end, deltas) else { return };
                if self.fault.is_some() {
                    return;
                }
                self.envelope.resume(position);
            }
            let brackets = !matches!(self.section, OpenSection::Thoughts { .. });
            let look = Look { brackets, reasoning: brackets, code: false };
            let mark = self.envelope.next(text, end, look);
            self.publish_thoughts(text, mark, deltas);
            match mark {
                Some(Mark::Bracket(at)) if self.section == OpenSection::Output => self.inside.open(text, at),
                Some(Mark::Bracket(at)) => self.outside.open(text, at),
                Some(Mark::Reasoning { whole, .. }) => self.begin_at(whole.end),
                Some(Mark::Tag { index, span, exact }) => self.tag(text, index, span, exact, deltas),
                None => match self.section {
                    OpenSection::Thoughts { output: Some(output) } if end => self.thoughts_end_at(output),
                    _ => return,
                },
            }
        }
    }

    /// Reads on in the object. Returns the position after it, or `None` if more text is needed.
    fn in_payload(&mut self, text: &str, end: bool, deltas: &mut Vec<Delta>) -> Option<usize> {
        if self.outside.reader().is_some() {
            let resumed = self.outside.run(text, end);
            // Outside an output nothing is published: an output may yet come.
            if let Some(fault) = self.outside.fault.take() {
                self.fault = Some(fault);
            }
            return resumed;
        }
        let resumed = self.inside.run(text, end);
        let writer = &mut self.published.writer;
        let mut tell = |key: &str, piece: crate::protocol::field_stream::Piece<'_>| writer.write(key, &piece, deltas);
        if self.inside.first.is_none()
            && let Some(reader) = self.inside.reader()
            && reader.meant()
        {
            self.published.fields.poll(text, reader, 0, &mut tell);
        }
        if self.decision.is_none()
            && let Some(found) = &self.inside.first
        {
            self.published.fields.record(text, &found.record, &mut tell);
            let before = self.outside.first.as_ref().filter(|outside| !outside.record.same(&found.record));
            // Two in one array can't be cut apart, and one before the output can't be cut off.
            self.decision = Some(match self.inside.second.or(before.map(|outside| outside.record.span)) {
                Some(second) if second.start < found.record.span.start => {
                    Err(violations::several(second, found.record.span, decision::OUTPUT))
                }
                Some(second) => Err(violations::several(found.record.span, second, decision::OUTPUT)),
                None => self.sections.meant(text, decision::read(found, &self.options, self.returns.as_ref())),
            });
            if let Some(decision) = self.decision.as_ref().filter(|_| !self.options.whole) {
                let route = found.record.fields.get("route").and_then(|field| field.value.as_str());
                DeltaWriter::close(decision, route, deltas);
            }
        }
        if let Some(fault) = self.inside.fault.take() {
            self.fault = Some(fault);
        }
        resumed
    }

    /// Publishes the reasoning and the thoughts.
    fn publish_thoughts(&mut self, text: &str, mark: Option<Mark>, deltas: &mut Vec<Delta>) {
        if self.decision.is_some() {
            return;
        }
        match self.section {
            OpenSection::Thoughts { output: None } => {
                let until = match mark {
                    Some(Mark::Tag { index: END_THOUGHTS | OUTPUT, span, .. }) => span.start,
                    Some(_) => return,
                    None => self.envelope.settled(),
                };
                self.think(text, until, deltas);
            }
            OpenSection::Thoughts { output: Some(_) } => {
                if let Some(Mark::Tag { index: END_THOUGHTS, span, .. }) = mark {
                    self.think(text, span.start, deltas);
                }
            }
            _ => deltas.extend(self.reasoning.look(text, &self.envelope, mark).map(Delta::Reasoning)),
        }
    }

    fn think(&mut self, text: &str, until: usize, deltas: &mut Vec<Delta>) {
        let more = Span::new(self.published.thoughts_sent, until);
        deltas.extend(self.published.thoughts.push(text, more).map(Delta::Thoughts));
        self.published.thoughts_sent = self.published.thoughts_sent.max(until);
    }

    fn tag(&mut self, text: &str, index: usize, span: Span, exact: bool, deltas: &mut Vec<Delta>) {
        let counts = match (index, self.section) {
            (THOUGHTS, OpenSection::Outside) => {
                self.sections.open_thoughts = Some(span);
                self.section = OpenSection::Thoughts { output: None };
                self.published.thoughts_sent = span.end;
                self.decision.is_none()
            }
            (END_THOUGHTS, OpenSection::Thoughts { .. }) => {
                self.section = OpenSection::Outside;
                let start = self.sections.open_thoughts.take().map_or(span.start, |open| open.start);
                if self.decision.is_none() {
                    self.sections.thoughts.push(Span::new(start, span.end));
                    self.published.thoughts.part();
                }
                true
            }
            (END_THOUGHTS, OpenSection::Outside) => self.unopened_thoughts(text, span, deltas),
            (OUTPUT, OpenSection::Thoughts { output: None }) if self.sections.no_more_ends => {
                self.thoughts_end_at(span);
                false
            }
            (OUTPUT, OpenSection::Thoughts { output: None }) => {
                self.section = OpenSection::Thoughts { output: Some(span) };
                false
            }
            (OUTPUT, OpenSection::Outside | OpenSection::Output) => {
                self.note_broken(text, span.start);
                self.section = OpenSection::Output;
                if self.inside.first.is_none() {
                    self.sections.output = Some(span);
                    self.sections.end_output = None;
                }
                true
            }
            (END_OUTPUT, OpenSection::Output) => {
                self.note_broken(text, span.start);
                self.section = OpenSection::Outside;
                self.sections.end_output.get_or_insert(span);
                true
            }
            (END_OUTPUT, OpenSection::Outside)
                if self.sections.output.is_none() && self.decision.is_none() && self.outside.first.is_some() =>
            {
                self.without_start_tag(span)
            }
            _ => false,
        };
        if counts && !exact {
            self.sections.odd.push(span);
        }
        self.begin_at(span.end);
    }

    /// An output that ends at `end` without a decision: what begins like JSON in it was meant as one.
    fn note_broken(&mut self, text: &str, end: usize) {
        if self.section != OpenSection::Output || self.inside.first.is_some() || self.sections.broken.is_some() {
            return;
        }
        let Some(tag) = self.sections.output else { return };
        let content = Span::new(tag.end, end);
        let inside = content.of(text).trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '`' | '~'));
        let inside = inside.strip_prefix("json").map_or(inside, str::trim_start);
        if self.inside.doubt.is_some() || inside.starts_with(['{', '[']) {
            self.sections.broken = Some(content);
        }
    }

    /// An end tag of thoughts that no start tag opened: the chat template may have opened them.
    fn unopened_thoughts(&mut self, text: &str, span: Span, deltas: &mut Vec<Delta>) -> bool {
        let sections = &mut self.sections;
        if !sections.thoughts.is_empty() || sections.output.is_some() || sections.unopened.is_some() {
            return false;
        }
        let start = self.reasoning.blocks.last().map_or(0, |(block, _)| block.end);
        sections.unopened = Some(span);
        sections.thoughts.push(Span::new(start, span.end));
        self.published.thoughts_sent = start;
        self.think(text, span.start, deltas);
        self.published.thoughts.part();
        // What the thoughts hold is a rehearsal.
        self.outside = PayloadFinder::new(&decision::PAYLOAD, &self.options, Arc::clone(&ENDS));
        true
    }

    /// An end tag of an output that no start tag opened, after the only object.
    fn without_start_tag(&mut self, span: Span) -> bool {
        std::mem::swap(&mut self.outside, &mut self.inside);
        self.decision =
            self.inside.first.as_ref().map(|found| decision::read(found, &self.options, self.returns.as_ref()));
        self.sections.end_output = Some(span);
        true
    }

    /// The text has ended in thoughts in which an output began: they end there, and the output counts.
    fn thoughts_end_at(&mut self, output: Span) {
        let start = self.sections.open_thoughts.take().map_or(output.start, |open| open.start);
        if self.decision.is_none() {
            self.sections.thoughts.push(Span::new(start, output.start));
            self.sections.unclosed = Some(Span::new(start, output.start));
            self.published.thoughts.part();
            self.sections.output = Some(output);
            self.sections.end_output = None;
        }
        self.section = OpenSection::Output;
        self.sections.no_more_ends = true;
        self.envelope.rewind(output.end);
        self.begin_at(output.end);
    }

    fn begin_at(&mut self, position: usize) {
        self.outside.begin_at(position);
        self.inside.begin_at(position);
    }
}
