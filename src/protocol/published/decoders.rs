//! The protocol's own decoder, with the published forms beside it: named where they are refused, read by the lenient.

use super::find_form::Finder;
use super::{Forms, Unread, bare, body, may_be_bare};
use crate::protocol::around::more_of_it;
use crate::protocol::{Code, Decoder, Delta, FinishReason, Move, Reply, Status, ToolCall, violations};
use crate::reply::buffer::Buffer;
use crate::reply::{BoxedViolation, Span};
use std::borrow::Cow;

/// The protocol's decoder as it is; what it refuses is named where it is a call in a published form.
pub(super) struct Named {
    forms: Forms,
    inner: Box<dyn Decoder>,
    /// The text so far, where there may be text before a call (chatty).
    text: Buffer,
    ahead: Ahead,
}

/// What is known of the text before the first call.
enum Ahead {
    /// The first call has not arrived.
    Unknown,
    /// The text is no call.
    Text,
    /// The text may be a call too.
    Call(BoxedViolation),
}

impl Named {
    pub(super) fn new(forms: Forms, inner: Box<dyn Decoder>) -> Self {
        Self { forms, inner, text: Buffer::default(), ahead: Ahead::Unknown }
    }
}

impl Decoder for Named {
    fn push(&mut self, chunk: &[u8], deltas: &mut Vec<Delta>) -> Status {
        let status = self.inner.push(chunk, deltas);
        if self.forms.host.answers && matches!(self.ahead, Ahead::Unknown) {
            self.text.push(chunk);
            self.ahead = match self.inner.calls().first().map(|own| self.forms.ahead(self.text.text(), own)) {
                None => Ahead::Unknown,
                Some(None) => Ahead::Text,
                Some(Some(fault)) => Ahead::Call(fault),
            };
        }
        if matches!(self.ahead, Ahead::Call(_)) { Status::Doomed } else { status }
    }

    fn calls(&self) -> &[ToolCall] {
        self.inner.calls()
    }

    fn settled(&self) -> Option<usize> {
        self.inner.settled()
    }

    fn stands_first(&self) -> bool {
        self.inner.stands_first()
    }

    fn finish(self: Box<Self>, reason: FinishReason) -> Reply {
        let Self { forms, inner, ahead, .. } = *self;
        let reply = inner.finish(reason);
        let reply = match ahead {
            Ahead::Unknown => forms.own(reply),
            Ahead::Call(fault) if is_call(&reply) => reply.refused(*fault),
            Ahead::Text | Ahead::Call(_) => reply,
        };
        let may_be = match &reply.outcome {
            Ok(Move::Finish { .. }) => forms.host.answers,
            Ok(_) => false,
            Err(violation) => violation.code != Code::Truncated,
        };
        let found = may_be.then(|| forms.look(&reply.raw)).flatten().filter(|found| found.answer.is_none());
        let Some(found) = found else { return reply };
        let fault = forms.refused(found.mark);
        reply.refused(*fault)
    }
}

/// A decoder that stands by what it has reported: a doomed reply never becomes a move, whatever its whole text says. What
/// was completed at the end of a reply counts only if the reply is known to be whole.
pub(super) struct Final {
    inner: Box<dyn Decoder>,
    /// The smallest correct call.
    form: Cow<'static, str>,
    doomed: bool,
}

impl Final {
    pub(super) fn new(inner: Box<dyn Decoder>, form: Cow<'static, str>) -> Self {
        Self { inner, form, doomed: false }
    }
}

impl Decoder for Final {
    fn push(&mut self, chunk: &[u8], deltas: &mut Vec<Delta>) -> Status {
        let status = self.inner.push(chunk, deltas);
        self.doomed |= status == Status::Doomed;
        status
    }

    fn calls(&self) -> &[ToolCall] {
        self.inner.calls()
    }

    fn settled(&self) -> Option<usize> {
        self.inner.settled()
    }

    fn stands_first(&self) -> bool {
        self.inner.stands_first()
    }

    fn finish(self: Box<Self>, reason: FinishReason) -> Reply {
        let reply = self.inner.finish(reason);
        if reason == FinishReason::Unknown
            && let Some(fault) = violations::completed_at_end(&reply, &self.form)
        {
            return reply.refused(fault);
        }
        let place = match &reply.outcome {
            Err(_) => return reply,
            Ok(Move::Call { calls }) => calls.last().map_or(reply.raw.len(), |call| call.span.end),
            Ok(_) => reply.raw.len(),
        };
        if self.doomed { reply.refused(more_of_it(Span::at(place))) } else { reply }
    }
}

/// Whether a reply is a call, or one that only its surroundings refuse.
fn is_call(reply: &Reply) -> bool {
    match &reply.outcome {
        Ok(moved) => matches!(moved, Move::Call { .. }),
        Err(violation) => matches!(violation.code, Code::ExtraData | Code::QuotedMove),
    }
}

/// The protocol's decoder up to the first mark of a published form.
pub(super) struct Lenient {
    forms: Forms,
    inner: Box<dyn Decoder>,
    buffer: Buffer,
    finder: Finder,
    /// Bytes of the text that the inner decoder has.
    fed: usize,
    /// All goes to the inner decoder: it has a move, or an attempt at one.
    off: bool,
}

impl Lenient {
    pub(super) fn new(forms: Forms, inner: Box<dyn Decoder>) -> Self {
        let finder = forms.finder();
        Self { forms, inner, buffer: Buffer::default(), finder, fed: 0, off: false }
    }

    /// Where the reply proper begins, as far as it has arrived.
    fn body(&self) -> usize {
        body(self.buffer.text(), self.finder.reasoning())
    }

    /// Whether the reply may yet be an element that is a call: nothing of it is published as an answer.
    fn is_element(&self) -> bool {
        self.buffer.text().get(self.body()..).is_some_and(bare::may_be_element)
    }

    fn feed(&mut self, upto: usize, deltas: &mut Vec<Delta>) -> Status {
        let piece = self.buffer.text().get(self.fed..upto).unwrap_or("");
        let status = self.inner.push(piece.as_bytes(), deltas);
        self.fed = self.fed.max(upto);
        status
    }

    fn advance(&mut self, end: bool, deltas: &mut Vec<Delta>) -> Status {
        let length = self.buffer.text().len();
        if self.off || length > self.forms.options.limits.bytes {
            self.off = true;
            return self.feed(length, deltas);
        }
        if self.finder.found().is_some() {
            return Status::Open;
        }
        let certain = self.finder.advance(self.buffer.text(), end);
        if self.forms.host.answers && !end && self.fed <= self.body() && self.is_element() {
            return Status::Open;
        }
        let status = self.feed(certain, deltas);
        let alone =
            |text: &str| self.finder.found().is_none() || self.forms.nothing_before(text, &self.finder).is_some();
        self.off = status != Status::Open || !alone(self.buffer.text());
        if self.off { self.feed(length, deltas) } else { Status::Open }
    }
}

impl Decoder for Lenient {
    fn push(&mut self, chunk: &[u8], deltas: &mut Vec<Delta>) -> Status {
        self.buffer.push(chunk);
        self.advance(false, deltas)
    }

    fn calls(&self) -> &[ToolCall] {
        self.inner.calls()
    }

    fn settled(&self) -> Option<usize> {
        self.inner.settled()
    }

    fn stands_first(&self) -> bool {
        self.inner.stands_first()
    }

    fn finish(mut self: Box<Self>, reason: FinishReason) -> Reply {
        self.buffer.close();
        self.advance(true, &mut Vec::new());
        let mark = self.finder.found().filter(|_| !self.off);
        let found = mark.map_or(Err(Unread::Broken), |mark| {
            let raw = self.buffer.text();
            let before = self.forms.nothing_before(raw, &self.finder);
            before.ok_or(Unread::Broken).and_then(|before| self.forms.read(raw, mark, before))
        });
        self.feed(self.buffer.text().len(), &mut Vec::new());
        let ahead = self.inner.calls().first().and_then(|own| self.forms.ahead(self.buffer.text(), own));
        let reply = self.inner.finish(reason);
        let forms = &self.forms;
        // Two calls are named as such, also where the surroundings alone refuse the second.
        let own_reading = |reply: Reply| match ahead {
            Some(fault) if is_call(&reply) => reply.refused(*fault),
            _ => forms.own(reply),
        };
        let Some(mark) = mark else {
            let unmarked = !self.off && reason == FinishReason::Stop && may_be_bare(&reply, &self.forms.host);
            let found = unmarked.then(|| self.forms.bare(&reply.raw, &reply, self.finder.reasoning())).flatten();
            return match found.map(|found| self.forms.calls(&reply.raw, found, self.finder.reasoning())) {
                Some(Ok(read)) => read,
                Some(Err(fault)) => reply.refused(*fault),
                None => own_reading(reply),
            };
        };
        let own = match &reply.outcome {
            Ok(Move::Finish { .. }) => !self.forms.host.answers,
            outcome => outcome.is_ok(),
        };
        let fault = match found {
            // A move of the protocol's own between foreign tags.
            Ok(_) if own && !mark.row.names_outside => return own_reading(reply),
            Ok(found) if !found.open || reason == FinishReason::Stop => {
                match self.forms.calls(&reply.raw, found, self.finder.reasoning()) {
                    Ok(read) => return read,
                    Err(fault) => fault,
                }
            }
            Err(Unread::Several(first, second)) if own => violations::several(first, second, &self.forms.host.form),
            // What the own decoder has read are pieces of a call that can't be read.
            _ if own && mark.row.names_outside => self.forms.refused(mark),
            _ => return own_reading(reply),
        };
        reply.refused(*fault)
    }
}
