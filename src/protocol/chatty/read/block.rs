//! One tool block, from the end of its start tag to the end of its end tag.

use super::BlockTags;
use super::call::{self, Calls};
use crate::protocol::around;
use crate::protocol::field_stream::{self, FieldStream, Piece};
use crate::protocol::following_text;
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::surrounding_text::{shifted, without_tokens};
use crate::protocol::{Code, Delta, ReadOptions, Violation, violations};
use crate::reply::json::{Fields, JsonReader, Progress, Settings};
use crate::reply::tag::{Match, Tag};
use crate::reply::{BoxedViolation, RepairCode, Span};
use std::sync::Arc;

/// What has become of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It needs more text.
    More,
    /// It has ended, with its tag or without one at the end of the text.
    Ended,
    /// It breaks the protocol.
    Failed,
}

/// Reads one block.
pub(super) struct Block {
    options: ReadOptions,
    /// Calls in the blocks ahead of it.
    ahead: usize,
    tags: BlockTags,
    /// The start tag in the text.
    tag: Span,
    position: usize,
    value: OpenValue,
    fenced: bool,
    pieces: Pieces,
    doubt: Option<BoxedViolation>,
    pub(super) notes: RepairNotes,
    pub(super) fault: Option<BoxedViolation>,
    /// Where it ends, once it has.
    pub(super) end: usize,
    /// The end tag, if there is one.
    pub(super) close: Option<Span>,
}

/// The array or object that is being read.
struct OpenValue {
    reader: Option<Box<JsonReader>>,
    fields: FieldStream,
    /// Comments before this position stand in prose.
    prose: usize,
    /// Whether the call that is being read is another one than those before it, once its id has shown that.
    new: Option<bool>,
    /// Records of the present reader that were read.
    read: usize,
}

/// What a block consists of.
#[derive(Default)]
struct Pieces {
    /// Text before the first value.
    prose: Option<Span>,
    /// Arrays and single objects, each with its place.
    roots: Vec<(bool, Span)>,
    /// Text after the last value.
    junk: Option<Span>,
}

impl Block {
    pub(super) fn new(options: ReadOptions, tags: (&Tag, &Tag), tag: Span, ahead: usize) -> Self {
        Self {
            options,
            ahead,
            tags: BlockTags { start: tags.0.clone(), end: tags.1.clone() },
            tag,
            position: tag.end,
            value: OpenValue { reader: None, fields: FieldStream::new(&options), prose: 0, new: None, read: 0 },
            fenced: false,
            pieces: Pieces::default(),
            doubt: None,
            notes: RepairNotes::new(options.repairs),
            fault: None,
            end: tag.end,
            close: None,
        }
    }

    pub(super) fn tag(&self) -> Span {
        self.tag
    }

    /// Reads on. New calls are appended to `calls`.
    pub(super) fn run(&mut self, text: &str, end: bool, calls: &mut Calls, deltas: &mut Vec<Delta>) -> Step {
        match self.step(text, end, calls, deltas) {
            Ok(step) => step,
            Err(fault) => {
                self.fault = Some(fault);
                Step::Failed
            }
        }
    }

    fn step(
        &mut self,
        text: &str,
        end: bool,
        calls: &mut Calls,
        deltas: &mut Vec<Delta>,
    ) -> Result<Step, BoxedViolation> {
        loop {
            if self.value.reader.is_some() {
                if !self.in_value(text, end, calls, deltas)? {
                    return Ok(Step::More);
                }
                continue;
            }
            let rest = text.get(self.position..).unwrap_or("");
            let blanks = rest.len() - rest.trim_start().len();
            self.position += blanks;
            let rest = text.get(self.position..).unwrap_or("");
            let Some(c) = rest.chars().next() else {
                return if end { self.finish(text) } else { Ok(Step::More) };
            };
            match self.tags.end.at(rest, end) {
                Match::Yes { length, exact } => return self.closed(text, length, exact),
                Match::Partial => return Ok(Step::More),
                Match::No => {}
            }
            match self.tags.start.at(rest, end) {
                Match::Yes { .. } if !self.pieces.roots.is_empty() => return self.finish(text),
                Match::Partial => return Ok(Step::More),
                _ => {}
            }
            match c {
                '[' | '{' => self.open(),
                '`' | '~' => {
                    if !self.fence(rest, end)? {
                        return Ok(Step::More);
                    }
                }
                ',' if !self.pieces.roots.is_empty() && self.pieces.junk.is_none() => self.position += 1,
                ']' | '}' if !self.pieces.roots.is_empty() && self.pieces.junk.is_none() => {
                    self.notes.note(RepairCode::ExtraClosers, Span::new(self.position, self.position + 1))?;
                    self.position += 1;
                }
                '\\' if !self.pieces.roots.is_empty() && self.pieces.junk.is_none() && rest.len() < 2 && !end => {
                    return Ok(Step::More);
                }
                '\\' if !self.pieces.roots.is_empty() && self.pieces.junk.is_none() && rest.starts_with("\\n") => {
                    self.notes.note(RepairCode::EscapedWhitespace, Span::new(self.position, self.position + 2))?;
                    self.position += 2;
                }
                _ => self.text(text),
            }
        }
    }

    fn open(&mut self) {
        let mut settings = Settings::new(self.options.repairs, self.options.limits);
        settings.records = true;
        settings.keys = call::KEYS;
        settings.own = call::KEYS;
        settings.aliases = call::ALIASES;
        settings.ends = Arc::new([self.tags.end.clone()]);
        settings.fenced = self.fenced;
        settings.prose = self.value.prose;
        self.value.reader = Some(Box::new(JsonReader::new(settings, self.position)));
        self.value.fields = FieldStream::new(&self.options);
        self.value.new = None;
        self.value.read = 0;
    }

    /// Text that is no JSON, up to the next place that may be something else.
    fn text(&mut self, text: &str) {
        let rest = text.get(self.position..).unwrap_or("");
        let tags = [self.tags.start.first(), self.tags.end.first()];
        let stops = |c: char| {
            matches!(c, '[' | '{' | '`' | '~' | '\n' | '<')
                || tags.iter().any(|tag| char::from(*tag).eq_ignore_ascii_case(&c))
        };
        let length = rest.char_indices().skip(1).find(|&(_, c)| stops(c)).map_or(rest.len(), |(at, _)| at);
        self.passed(Span::new(self.position, self.position + length));
        self.position += length;
    }

    fn passed(&mut self, span: Span) {
        let place = if self.pieces.roots.is_empty() { &mut self.pieces.prose } else { &mut self.pieces.junk };
        let from = place.map_or(span.start, |before| before.start);
        *place = Some(Span::new(from, span.end));
    }

    /// The opening of a fence before the value, with its word, or its end; `false` where more text is needed.
    fn fence(&mut self, rest: &str, end: bool) -> Result<bool, BoxedViolation> {
        let after = rest.trim_start_matches(['`', '~']);
        let run = rest.len() - after.len();
        let word = after.len() - after.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).len();
        if run + word == rest.len() && run + word < 100 && !end {
            return Ok(false);
        }
        let least = if rest.starts_with('~') { 3 } else { 2 };
        let opening = self.pieces.roots.is_empty() && !self.fenced && run >= least && word <= 20;
        if opening {
            self.notes.note(RepairCode::FenceStripped, Span::new(self.position, self.position + run + word))?;
            self.fenced = true;
            self.position += run + word;
        } else {
            if !self.fenced || self.pieces.roots.is_empty() {
                self.passed(Span::new(self.position, self.position + run));
            }
            self.position += run;
        }
        Ok(true)
    }

    /// Reads on in a value; `false` if more text is needed.
    fn in_value(
        &mut self,
        text: &str,
        end: bool,
        calls: &mut Calls,
        deltas: &mut Vec<Delta>,
    ) -> Result<bool, BoxedViolation> {
        let Some(mut reader) = self.value.reader.take() else { return Ok(true) };
        let progress = reader.run(text, end);
        self.take_calls(text, &reader, calls, deltas)?;
        match progress {
            Progress::More => {
                self.value.reader = Some(reader);
                return Ok(false);
            }
            Progress::Done => {
                let (root, array) = (reader.span(), reader.is_array());
                self.position = reader.position();
                if let (Some((_, first)), Some(_)) = (self.pieces.roots.first(), self.pieces.junk) {
                    return Err(violations::several(*first, root, call::CALL));
                }
                self.pieces.roots.push((array, root));
                self.notes.extend(reader.into_records().1);
            }
            Progress::Failed => {
                let (start, position, committed) = (reader.start(), reader.position(), reader.committed());
                let after = reader.prose_after();
                self.value.prose = self.value.prose.max(reader.prose_comments_end());
                let Some(fault) = reader.into_fault() else { return Ok(true) };
                // Arrays inside the array are meant as one, a bracket in prose is not.
                let nested = fault.code == Code::BadType && text.as_bytes().get(position) == Some(&b'[');
                if committed
                    || nested
                    || matches!(fault.code, Code::TooDeep | Code::LimitExceeded | Code::RepairRefused)
                {
                    return Err(fault);
                }
                self.doubt.get_or_insert(fault);
                self.position = after;
                self.passed(Span::new(start, self.position));
            }
        }
        Ok(true)
    }

    /// Whether calls stand one after the other with nothing to show that the last one has come.
    pub(super) fn open_list(&self) -> bool {
        self.close.is_none() && self.pieces.roots.iter().any(|(array, _)| !array)
    }

    /// The text in it that is no call.
    pub(super) fn junk(&self, text: &str) -> Vec<Span> {
        let pieces = [self.pieces.prose, self.pieces.junk];
        let kept = |piece: Span| without_tokens(piece.of(text)).0.map(|kept| shifted(kept, piece.start));
        pieces.into_iter().flatten().filter_map(kept).collect()
    }

    /// Reads the calls that are complete, and publishes the open one as far as it has arrived.
    fn take_calls(
        &mut self,
        text: &str,
        reader: &JsonReader,
        calls: &mut Calls,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), BoxedViolation> {
        while let Some(record) = reader.records().get(self.value.read) {
            let index = calls.all().len();
            if self.is_new(&record.fields, calls) {
                self.tell(text, reader, index, deltas);
            }
            let place = if reader.is_array() { format!("/{}", self.value.read) } else { String::new() };
            if let Some(call) =
                call::read(record, &place, calls, self.ahead + index + 1, text, &self.options, &mut self.notes)?
            {
                self.tell(text, reader, index, deltas);
                if let (None, Some(id)) = (record.fields.get("call_id").and_then(field_stream::id), &call.call_id) {
                    deltas.push(Delta::CallId { call: index, id: id.clone() });
                }
                calls.push(call);
                deltas.push(Delta::CallReady { call: index });
            }
            self.value.fields = FieldStream::new(&self.options);
            self.value.new = None;
            self.value.read += 1;
        }
        if reader.meant()
            && let Some(fields) = reader.open_record()
            && self.is_new(fields, calls)
        {
            self.tell(text, reader, calls.all().len(), deltas);
        }
        Ok(())
    }

    /// Whether a call may be published: from the second one on it may be a copy, which is dropped, until its id has
    /// arrived.
    fn is_new(&mut self, fields: &Fields, calls: &Calls) -> bool {
        if self.value.new.is_none() {
            self.value.new = fields.get("call_id").and_then(field_stream::id).map(|id| !calls.has(id));
        }
        self.value.new.unwrap_or(calls.all().is_empty())
    }

    /// Publishes the new part of the call that is being read.
    fn tell(&mut self, text: &str, reader: &JsonReader, call: usize, deltas: &mut Vec<Delta>) {
        self.value.fields.poll(text, reader, self.value.read, &mut |key, piece| tell(call, key, &piece, deltas));
    }

    /// The end tag stands here.
    fn closed(&mut self, text: &str, length: usize, exact: bool) -> Result<Step, BoxedViolation> {
        let close = Span::new(self.position, self.position + length);
        self.close = Some(close);
        if !exact {
            self.notes.note(RepairCode::TagForm, close)?;
        }
        self.end = close.end;
        self.settle(text, close)
    }

    /// The text ends, or another block begins, without an end tag.
    fn finish(&mut self, text: &str) -> Result<Step, BoxedViolation> {
        self.end = self.position;
        let here = Span::at(self.position);
        if self.pieces.roots.is_empty() {
            if let Some(doubt) = self.doubt.take() {
                return Err(doubt);
            }
            let message = "expected an array of calls after the tag: the text ended";
            return Err(self.fault(Code::Truncated, message, self.tag));
        }
        self.notes.note(RepairCode::MissingCloseTag, here)?;
        self.settle(text, here)
    }

    /// What the whole block comes to.
    fn settle(&mut self, text: &str, close: Span) -> Result<Step, BoxedViolation> {
        let arrays = self.pieces.roots.iter().filter(|(array, _)| *array).count();
        let (first, last) = match (self.pieces.roots.first(), self.pieces.roots.last()) {
            (Some((_, first)), Some((_, last))) => (*first, *last),
            _ => return Err(self.nothing(close)),
        };
        let whole = Span::new(first.start, last.end);
        if let Some((_, root)) = self.pieces.roots.iter().find(|(_, root)| following_text::in_quotes(text, *root)) {
            return Err(following_text::quoted(*root));
        }
        let (prose, junk) = (self.pieces.prose, self.pieces.junk);
        let [before, after] =
            [(prose, whole.start), (junk, whole.end)].map(|(piece, at)| piece.unwrap_or(Span::at(at)));
        if (prose.is_some() || junk.is_some() || self.fenced)
            && (around::shown_by(text, &[whole], &[before], &[after]).is_some()
                || around::has_words(before.of(text), self.close.map_or("", |_| after.of(text))))
        {
            return Err(following_text::quoted(whole));
        }
        if self.value.read == 0
            && arrays == self.pieces.roots.len()
            && self.pieces.roots.len() == 1
            && first.of(text).trim() != ""
        {
            // An array without calls says nothing of what to do.
            return Err(self.fault(Code::Empty, "expected at least one call in the array: got none", first));
        }
        match (self.pieces.roots.len(), arrays) {
            (1, 1) => {}
            (1, _) => self.notes.note(RepairCode::SingleObjectWrapped, whole)?,
            (_, 0) => self.notes.note(RepairCode::NdjsonToArray, whole)?,
            _ => self.notes.note(RepairCode::MergedArrays, whole)?,
        }
        for (code, place) in
            [(RepairCode::ProseStripped, self.pieces.prose), (RepairCode::TrailingTextDropped, self.pieces.junk)]
        {
            let Some(place) = place else { continue };
            let (kept, tokens) = without_tokens(place.of(text));
            if let Some(token) = tokens {
                self.notes.note(RepairCode::SpecialTokenStripped, shifted(token, place.start))?;
            }
            if let Some(kept) = kept {
                self.notes.note(code, shifted(kept, place.start))?;
            }
        }
        Ok(Step::Ended)
    }

    fn nothing(&mut self, close: Span) -> BoxedViolation {
        match (self.doubt.take(), self.pieces.prose) {
            (Some(doubt), prose)
                if doubt.code == Code::BadType
                    && prose.is_none_or(|prose| Some(prose.start) == doubt.span.map(|span| span.start - 1)) =>
            {
                doubt
            }
            (_, Some(_)) => {
                self.fault(Code::InvalidJson, "expected an array of calls between the tags: got something else", close)
            }
            _ => self.fault(Code::Empty, "expected an array of calls between the tags: got nothing", close),
        }
    }

    fn fault(&self, code: Code, message: &str, span: Span) -> BoxedViolation {
        let violation = Violation::new(code, message).at(span);
        Box::new(if span == self.tag { violation } else { violation.related(self.tag, "the block begins here") })
    }
}

/// Publishes a piece of a call.
fn tell(call: usize, key: &str, piece: &Piece<'_>, deltas: &mut Vec<Delta>) {
    match (key, piece) {
        ("arguments", Piece::Text(more) | Piece::Json(more)) => {
            deltas.push(Delta::Arguments { call, text: (*more).to_owned() });
        }
        ("call_id", Piece::End(field)) => {
            if let Some(id) = field_stream::id(field) {
                deltas.push(Delta::CallId { call, id: id.to_owned() });
            }
        }
        ("tool_name", Piece::End(field)) => {
            if let Some(name) = field.value.as_str().map(str::trim) {
                deltas.push(Delta::Tool { call, name: name.to_owned(), span: field.span });
            }
        }
        _ => {}
    }
}
