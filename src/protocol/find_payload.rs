//! Seeks the one protocol object in a text with prose around it (react, ticket).
//!
//! Every bracket in the text may begin it. What is no JSON, or JSON of another kind, is prose; what is certainly meant
//! as the payload and is broken ends the search, because nothing after it can be trusted to stand alone.

use super::ReadOptions;
use super::surrounding_text::fence_before;
use crate::reply::json::{Fields, JsonReader, Progress, Record, Settings};
use crate::reply::tag::Tag;
use crate::reply::{BoxedViolation, Code, Repair, Span};
use std::sync::Arc;

/// What kind of object is looked for.
pub(crate) struct PayloadKind {
    /// Keys that show an object to be meant as one, even if it is broken.
    pub(crate) keys: &'static [&'static str],
    /// All its keys.
    pub(crate) own: &'static [&'static str],
    /// Other names of its keys, for the lenient.
    pub(crate) aliases: &'static [(&'static str, &'static str)],
    /// Whether a complete object is one.
    pub(crate) is: fn(&Record) -> bool,
    /// Whether two say the same.
    pub(crate) same: fn(&Record, &Record) -> bool,
}

/// An object that was found.
#[derive(Debug)]
pub(crate) struct FoundPayload {
    pub(crate) record: Record,
    pub(crate) repairs: Vec<Repair>,
    /// With the array around it, if it stands in one.
    pub(crate) root: Span,
    /// Where it was certain to have ended.
    pub(crate) proven: usize,
    pub(crate) in_array: bool,
}

/// Searches one reply for its payload.
pub(crate) struct PayloadFinder {
    kind: &'static PayloadKind,
    settings: Settings,
    reader: Option<JsonReader>,
    /// Text before this place belongs to something else.
    from: usize,
    /// The first object.
    pub(crate) first: Option<FoundPayload>,
    /// Identical copies of it.
    pub(crate) copies: Vec<Span>,
    /// Another one, or the beginning of one, that is different.
    pub(crate) second: Option<Span>,
    /// The first complete object of another kind.
    pub(crate) other: Option<Record>,
    pub(crate) checks: Checks,
    /// What ended the search before anything was found.
    pub(crate) fault: Option<BoxedViolation>,
    /// Where the first JSON begins that is certainly meant as such and is broken.
    broken: Option<usize>,
    /// What is wrong with JSON that may have been meant as the object.
    pub(crate) doubt: Option<BoxedViolation>,
}

/// Further conditions on the object.
#[derive(Default)]
pub(crate) struct Checks {
    /// What makes an object a violation before it is complete.
    pub(crate) early: Option<fn(&Fields) -> Option<BoxedViolation>>,
    /// What is wrong with an object that has keys of the protocol and is none of its moves: it was published while it
    /// arrived, so that it can't be prose.
    pub(crate) misfit: Option<fn(&Record) -> BoxedViolation>,
    /// Whether the first of these may stand before a move without being a part of it.
    pub(crate) aside: Option<fn(&Record) -> bool>,
}

impl PayloadFinder {
    pub(crate) fn new(kind: &'static PayloadKind, options: &ReadOptions, ends: Arc<[Tag]>) -> Self {
        let mut settings = Settings::new(options.repairs, options.limits);
        settings.records = true;
        settings.keys = kind.keys;
        settings.own = kind.own;
        settings.aliases = kind.aliases;
        settings.ends = ends;
        Self {
            kind,
            settings,
            reader: None,
            from: 0,
            first: None,
            copies: Vec::new(),
            second: None,
            other: None,
            checks: Checks::default(),
            fault: None,
            broken: None,
            doubt: None,
        }
    }

    /// The object that stands before the move without being a part of it.
    pub(crate) fn aside(&self) -> Option<&Record> {
        self.other.as_ref().filter(|other| self.checks.aside.is_some_and(|aside| aside(other)))
    }

    /// The payload that is being read.
    pub(crate) fn reader(&self) -> Option<&JsonReader> {
        self.reader.as_ref()
    }

    /// Text before `position` is no prose: a fence in it does not count.
    pub(crate) fn begin_at(&mut self, position: usize) {
        self.from = position;
    }

    /// A bracket may begin the object.
    pub(crate) fn open(&mut self, text: &str, at: usize) {
        let mut settings = self.settings.clone();
        // The longest fence opening, with its word and the blanks after it, that is looked for.
        let mut from = at.saturating_sub(200).max(self.from);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        let before = text.get(from..at).unwrap_or("");
        settings.fenced = fence_before(before).is_some_and(|fence| {
            let rest = before.get(fence..).unwrap_or("");
            rest.starts_with("``") || rest.starts_with('~')
        });
        self.reader = Some(JsonReader::new(settings, at));
    }

    /// Reads on in the payload. Returns the position where prose continues, or `None` where more text is
    /// needed.
    pub(crate) fn run(&mut self, text: &str, end: bool) -> Option<usize> {
        let reader = self.reader.as_mut()?;
        let progress = reader.run(text, end);
        if self.first.is_none()
            && let Some(early) = self.checks.early
            && let Some(fields) = reader.records().first().map(|record| &record.fields).or(reader.open_record())
            && let Some(fault) = early(fields)
        {
            // It stands before whatever else may be wrong.
            self.fault = Some(fault);
            return Some(reader.position());
        }
        match progress {
            Progress::More => None,
            Progress::Done => {
                let position = reader.position();
                let reader = self.reader.take()?;
                let before = self.first.is_none();
                self.on_value(reader);
                if before && self.stands_in_broken(text) {
                    self.first = None;
                    self.fault = self.doubt.take();
                }
                Some(position)
            }
            Progress::Failed => {
                let reader = self.reader.take()?;
                let position = if reader.meant() { reader.position() } else { reader.prose_after() };
                self.settings.prose = self.settings.prose.max(reader.prose_comments_end());
                self.on_failure(reader);
                Some(position)
            }
        }
    }

    /// Whether what was found stands inside JSON that is broken: then it is a part of something else.
    fn stands_in_broken(&self, text: &str) -> bool {
        let (Some(found), Some(broken)) = (&self.first, self.broken) else { return false };
        let between = Span::new(broken, found.root.start).of(text);
        between.matches(['{', '[']).count() > between.matches(['}', ']']).count()
    }

    fn on_value(&mut self, reader: JsonReader) {
        let meant = reader.meant();
        let (root, proven, in_array) = (reader.span(), reader.proven_at(), reader.is_array());
        let (mut records, repairs) = reader.into_records();
        let moves = records.iter().filter(|record| (self.kind.is)(record)).count();
        if moves == 0 {
            let alone = records.len() == 1 && !in_array && self.other.is_none();
            let misfit = self.checks.misfit.filter(|_| meant && self.first.is_none());
            if let (Some(misfit), Some(record)) = (misfit, records.first())
                && !(alone && self.checks.aside.is_some_and(|aside| aside(record)))
            {
                self.fault = Some(misfit(record));
            } else if self.other.is_none() && !records.is_empty() {
                self.other = Some(records.swap_remove(0));
            }
            return;
        }
        let mut rest = Vec::new();
        if let Some(first) = &self.first {
            for record in &records {
                if (self.kind.same)(&first.record, record) {
                    self.copies.push(if records.len() == 1 { root } else { record.span });
                } else {
                    self.second.get_or_insert(record.span);
                }
            }
            return;
        }
        let record = records.remove(0);
        for other in records {
            if (self.kind.same)(&record, &other) {
                rest.push(other.span);
            } else {
                self.second.get_or_insert(other.span);
            }
        }
        self.copies = rest;
        self.first = Some(FoundPayload { record, repairs, root, proven, in_array });
    }

    fn on_failure(&mut self, reader: JsonReader) {
        let (meant, committed, start) = (reader.meant(), reader.committed(), reader.start());
        let Some(fault) = reader.into_fault() else { return };
        if self.first.is_some() {
            if meant {
                self.second.get_or_insert(Span::new(start, start + 1));
            }
        } else if meant || matches!(fault.code, Code::TooDeep | Code::LimitExceeded) {
            self.fault = Some(fault);
        } else if committed && self.broken.is_none() {
            self.broken = Some(start);
            self.doubt = Some(fault);
        } else if self.doubt.is_none() && fault.code == Code::Truncated {
            self.doubt = Some(fault);
        }
    }
}
