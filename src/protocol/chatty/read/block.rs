//! One tool block, from the end of its start tag to the end of its end tag.

use super::call::{self, Calls};
use crate::protocol::after;
use crate::protocol::around::{shifted, without_tokens};
use crate::protocol::notes::{Fault, Notes};
use crate::protocol::watch::{self, Piece, Watch};
use crate::protocol::{Code, Delta, ReadOptions, Violation, refusal};
use crate::reply::json::{Fields, Machine, Progress, Settings};
use crate::reply::tag::{Match, Tag};
use crate::reply::{RepairCode, Span};

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

/// The reader of one block.
pub(super) struct Block {
    options: ReadOptions,
    /// Calls in the blocks ahead of it.
    ahead: usize,
    start_tag: Tag,
    end_tag: Tag,
    /// The start tag in the text.
    tag: Span,
    position: usize,
    machine: Option<Box<Machine>>,
    watch: Watch,
    /// Whether the call that is being read is another one than those before it, once its id has shown that.
    new: Option<bool>,
    /// Records of the present machine that were read.
    read: usize,
    fenced: bool,
    /// Text before the first value.
    prose: Option<Span>,
    /// Arrays and single objects, each with its place.
    roots: Vec<(bool, Span)>,
    /// Text after the last value.
    junk: Option<Span>,
    doubt: Option<Fault>,
    pub(super) notes: Notes,
    pub(super) fault: Option<Fault>,
    /// Where it ends, once it has.
    pub(super) end: usize,
    /// The end tag, if there is one.
    pub(super) close: Option<Span>,
}

impl Block {
    pub(super) fn new(options: ReadOptions, tags: (&Tag, &Tag), tag: Span, ahead: usize) -> Self {
        Self {
            options,
            ahead,
            start_tag: tags.0.clone(),
            end_tag: tags.1.clone(),
            tag,
            position: tag.end,
            machine: None,
            watch: Watch::new(&options),
            new: None,
            read: 0,
            fenced: false,
            prose: None,
            roots: Vec::new(),
            junk: None,
            doubt: None,
            notes: Notes::new(options.repairs),
            fault: None,
            end: tag.end,
            close: None,
        }
    }

    /// The start tag.
    pub(super) fn tag(&self) -> Span {
        self.tag
    }

    /// Goes on. New calls are appended to `calls`.
    pub(super) fn run(&mut self, text: &str, end: bool, calls: &mut Calls, deltas: &mut Vec<Delta>) -> Step {
        match self.step(text, end, calls, deltas) {
            Ok(step) => step,
            Err(fault) => {
                self.fault = Some(fault);
                Step::Failed
            }
        }
    }

    fn step(&mut self, text: &str, end: bool, calls: &mut Calls, deltas: &mut Vec<Delta>) -> Result<Step, Fault> {
        loop {
            if self.machine.is_some() {
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
            match self.end_tag.at(rest, end) {
                Match::Yes { length, exact } => return self.closed(text, length, exact),
                Match::Partial => return Ok(Step::More),
                Match::No => {}
            }
            match self.start_tag.at(rest, end) {
                Match::Yes { .. } if !self.roots.is_empty() => return self.finish(text),
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
                ',' if !self.roots.is_empty() && self.junk.is_none() => self.position += 1,
                ']' | '}' if !self.roots.is_empty() && self.junk.is_none() => {
                    self.notes.note(RepairCode::ExtraClosers, Span::new(self.position, self.position + 1))?;
                    self.position += 1;
                }
                '\\' if !self.roots.is_empty() && self.junk.is_none() && rest.len() < 2 && !end => {
                    return Ok(Step::More);
                }
                '\\' if !self.roots.is_empty() && self.junk.is_none() && rest.starts_with("\\n") => {
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
        settings.ends = vec![self.end_tag.clone()];
        settings.fenced = self.fenced;
        self.machine = Some(Box::new(Machine::new(settings, self.position)));
        self.watch = Watch::new(&self.options);
        self.new = None;
        self.read = 0;
    }

    /// Text that is no JSON, up to the next place that may be something else.
    fn text(&mut self, text: &str) {
        let rest = text.get(self.position..).unwrap_or("");
        let tags = [self.start_tag.first(), self.end_tag.first()];
        let stops = |c: char| {
            matches!(c, '[' | '{' | '`' | '~' | '\n' | '<')
                || tags.iter().any(|tag| char::from(*tag).eq_ignore_ascii_case(&c))
        };
        let length = rest.char_indices().skip(1).find(|&(_, c)| stops(c)).map_or(rest.len(), |(at, _)| at);
        self.passed(Span::new(self.position, self.position + length));
        self.position += length;
    }

    fn passed(&mut self, span: Span) {
        let place = if self.roots.is_empty() { &mut self.prose } else { &mut self.junk };
        let from = place.map_or(span.start, |before| before.start);
        *place = Some(Span::new(from, span.end));
    }

    /// The opening of a fence before the value, with its word, or its end; `false` where more text is needed.
    fn fence(&mut self, rest: &str, end: bool) -> Result<bool, Fault> {
        let after = rest.trim_start_matches(['`', '~']);
        let run = rest.len() - after.len();
        let word = after.len() - after.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).len();
        if run + word == rest.len() && run + word < 100 && !end {
            return Ok(false);
        }
        let opening = self.roots.is_empty() && !self.fenced && run >= 2 && word <= 20;
        if opening {
            self.notes.note(RepairCode::FenceStripped, Span::new(self.position, self.position + run + word))?;
            self.fenced = true;
            self.position += run + word;
        } else {
            if !self.fenced || self.roots.is_empty() {
                self.passed(Span::new(self.position, self.position + run));
            }
            self.position += run;
        }
        Ok(true)
    }

    /// Goes on in a value; `false` where more text is needed.
    fn in_value(&mut self, text: &str, end: bool, calls: &mut Calls, deltas: &mut Vec<Delta>) -> Result<bool, Fault> {
        let Some(mut machine) = self.machine.take() else { return Ok(true) };
        let progress = machine.run(text, end);
        self.take_calls(text, &machine, calls, deltas)?;
        match progress {
            Progress::More => {
                self.machine = Some(machine);
                return Ok(false);
            }
            Progress::Done => {
                let (root, array) = (machine.span(), machine.is_array());
                self.position = machine.position();
                if let (Some((_, first)), Some(_)) = (self.roots.first(), self.junk) {
                    return Err(refusal::several(*first, root, call::CALL));
                }
                self.roots.push((array, root));
                self.notes.extend(machine.into_records().1);
            }
            Progress::Failed => {
                let (start, position, committed) = (machine.start(), machine.position(), machine.committed());
                let after = machine.prose_after();
                let Some(fault) = machine.into_fault() else { return Ok(true) };
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
        self.close.is_none() && self.roots.iter().any(|(array, _)| !array)
    }

    /// Whether text stands after its last call that no end tag shows to belong to it.
    pub(super) fn loose(&self, text: &str) -> bool {
        self.close.is_none() && self.junk.is_some_and(|junk| !junk.of(text).trim().is_empty())
    }

    /// Reads the calls that are complete, and tells of the one that is open.
    fn take_calls(
        &mut self,
        text: &str,
        machine: &Machine,
        calls: &mut Calls,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), Fault> {
        while let Some(record) = machine.records().get(self.read) {
            let index = calls.all().len();
            if self.is_new(&record.fields, calls) {
                self.tell(text, machine, index, deltas);
            }
            let place = if machine.is_array() { format!("/{}", self.read) } else { String::new() };
            if let Some(call) =
                call::read(record, &place, calls, self.ahead + index + 1, text, &self.options, &mut self.notes)?
            {
                self.tell(text, machine, index, deltas);
                if let (None, Some(id)) = (record.fields.get("call_id").and_then(watch::id), &call.call_id) {
                    deltas.push(Delta::CallId { call: index, id: id.clone() });
                }
                calls.push(call);
                deltas.push(Delta::CallReady { call: index });
            }
            self.watch = Watch::new(&self.options);
            self.new = None;
            self.read += 1;
        }
        if machine.meant()
            && let Some(fields) = machine.open_record()
            && self.is_new(fields, calls)
        {
            self.tell(text, machine, calls.all().len(), deltas);
        }
        Ok(())
    }

    /// Whether a call may be told: from the second one on it may be a copy, which is dropped, until its id is there.
    fn is_new(&mut self, fields: &Fields, calls: &Calls) -> bool {
        if self.new.is_none() {
            self.new = fields.get("call_id").and_then(watch::id).map(|id| !calls.has(id));
        }
        self.new.unwrap_or(calls.all().is_empty())
    }

    /// Tells what is new of the call that is being read.
    fn tell(&mut self, text: &str, machine: &Machine, call: usize, deltas: &mut Vec<Delta>) {
        self.watch.poll(text, machine, self.read, &mut |key, piece| tell(call, key, &piece, deltas));
    }

    /// The end tag stands here.
    fn closed(&mut self, text: &str, length: usize, exact: bool) -> Result<Step, Fault> {
        let close = Span::new(self.position, self.position + length);
        self.close = Some(close);
        if !exact {
            self.notes.note(RepairCode::TagForm, close)?;
        }
        self.end = close.end;
        self.settle(text, close)
    }

    /// The text ends, or another block begins, without an end tag.
    fn finish(&mut self, text: &str) -> Result<Step, Fault> {
        self.end = self.position;
        let here = Span::at(self.position);
        if self.roots.is_empty() {
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
    fn settle(&mut self, text: &str, close: Span) -> Result<Step, Fault> {
        let arrays = self.roots.iter().filter(|(array, _)| *array).count();
        let (first, last) = match (self.roots.first(), self.roots.last()) {
            (Some((_, first)), Some((_, last))) => (*first, *last),
            _ => return Err(self.nothing(close)),
        };
        let whole = Span::new(first.start, last.end);
        if let Some((_, root)) = self.roots.iter().find(|(_, root)| after::in_quotes(text, *root)) {
            return Err(after::quoted(*root));
        }
        if self.read == 0 && arrays == self.roots.len() && self.roots.len() == 1 && first.of(text).trim() != "" {
            // An array without calls says nothing of what to do.
            return Err(self.fault(Code::Empty, "expected at least one call in the array: got none", first));
        }
        match (self.roots.len(), arrays) {
            (1, 1) => {}
            (1, _) => self.notes.note(RepairCode::SingleObjectWrapped, whole)?,
            (_, 0) => self.notes.note(RepairCode::NdjsonToArray, whole)?,
            _ => self.notes.note(RepairCode::MergedArrays, whole)?,
        }
        for (code, place) in [(RepairCode::ProseStripped, self.prose), (RepairCode::TrailingTextDropped, self.junk)] {
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

    fn nothing(&mut self, close: Span) -> Fault {
        match (self.doubt.take(), self.prose) {
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

    fn fault(&self, code: Code, message: &str, span: Span) -> Fault {
        let violation = Violation::new(code, message).at(span);
        Box::new(if span == self.tag { violation } else { violation.related(self.tag, "the block begins here") })
    }
}

/// What a piece of a call is news of.
fn tell(call: usize, key: &str, piece: &Piece<'_>, deltas: &mut Vec<Delta>) {
    match (key, piece) {
        ("arguments", Piece::Text(more) | Piece::Json(more)) => {
            deltas.push(Delta::Arguments { call, text: (*more).to_owned() });
        }
        ("call_id", Piece::End(field)) => {
            if let Some(id) = watch::id(field) {
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
