//! Seeks the one protocol object in a text with prose around it (react, ticket).
//!
//! Every bracket in the text may begin it. What is no JSON, or JSON of another kind, is prose; what is certainly meant
//! as the payload and is broken ends the search, because nothing after it can be trusted to stand alone.

use super::ReadOptions;
use super::around::fence_before;
use super::notes::Fault;
use crate::reply::json::{Fields, Machine, Progress, Record, Settings};
use crate::reply::tag::Tag;
use crate::reply::{Code, Repair, Span};

/// What kind of object is sought.
pub(crate) struct Sought {
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
pub(crate) struct Found {
    pub(crate) record: Record,
    pub(crate) repairs: Vec<Repair>,
    /// With the array around it, if it stands in one.
    pub(crate) root: Span,
    /// Where it was certain to have ended.
    pub(crate) proven: usize,
    pub(crate) in_array: bool,
}

/// The search.
pub(crate) struct Seeker {
    sought: &'static Sought,
    settings: Settings,
    machine: Option<Machine>,
    /// Text before this place belongs to something else.
    from: usize,
    /// The first object.
    pub(crate) first: Option<Found>,
    /// Identical copies of it.
    pub(crate) copies: Vec<Span>,
    /// Another one, or the beginning of one, that is different.
    pub(crate) second: Option<Span>,
    /// The first complete object of another kind.
    pub(crate) other: Option<Record>,
    /// What makes an object a violation before it is complete.
    pub(crate) early: Option<fn(&Fields) -> Option<Fault>>,
    /// What is wrong with an object that has keys of the protocol and is none of its moves: it was told while it
    /// arrived, so that it can't be prose.
    pub(crate) misfit: Option<fn(&Record) -> Fault>,
    /// What ended the search before anything was found.
    pub(crate) fault: Option<Fault>,
    /// Where the first JSON begins that is certainly meant as such and is broken.
    broken: Option<usize>,
    /// What is wrong with JSON that may have been meant as the object.
    pub(crate) doubt: Option<Fault>,
}

impl Seeker {
    pub(crate) fn new(sought: &'static Sought, options: &ReadOptions, ends: Vec<Tag>) -> Self {
        let mut settings = Settings::new(options.repairs, options.limits);
        settings.records = true;
        settings.keys = sought.keys;
        settings.own = sought.own;
        settings.aliases = sought.aliases;
        settings.ends = ends;
        Self {
            sought,
            settings,
            machine: None,
            from: 0,
            first: None,
            copies: Vec::new(),
            second: None,
            other: None,
            early: None,
            misfit: None,
            fault: None,
            broken: None,
            doubt: None,
        }
    }

    /// The payload that is being read.
    pub(crate) fn machine(&self) -> Option<&Machine> {
        self.machine.as_ref()
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
        self.machine = Some(Machine::new(settings, at));
    }

    /// Goes on with the payload that is being read. Gives the place where prose goes on, or `None` where more text is
    /// needed.
    pub(crate) fn run(&mut self, text: &str, end: bool) -> Option<usize> {
        let machine = self.machine.as_mut()?;
        let progress = machine.run(text, end);
        if self.first.is_none()
            && let Some(early) = self.early
            && let Some(fields) = machine.records().first().map(|record| &record.fields).or(machine.open_record())
            && let Some(fault) = early(fields)
        {
            // It stands before whatever else may be wrong.
            self.fault = Some(fault);
            return Some(machine.position());
        }
        match progress {
            Progress::More => None,
            Progress::Done => {
                let position = machine.position();
                let machine = self.machine.take()?;
                let before = self.first.is_none();
                self.done(machine);
                if before && self.stands_in_broken(text) {
                    self.first = None;
                    self.fault = self.doubt.take();
                }
                Some(position)
            }
            Progress::Failed => {
                let machine = self.machine.take()?;
                let position = if machine.meant() { machine.position() } else { machine.prose_after() };
                self.failed(machine);
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

    fn done(&mut self, machine: Machine) {
        let meant = machine.meant();
        let (root, proven, in_array) = (machine.span(), machine.proven_at(), machine.is_array());
        let (mut records, repairs) = machine.into_records();
        let moves = records.iter().filter(|record| (self.sought.is)(record)).count();
        if moves == 0 {
            if let (true, None, Some(misfit), Some(record)) = (meant, &self.first, self.misfit, records.first()) {
                self.fault = Some(misfit(record));
            } else if self.other.is_none() && !records.is_empty() {
                self.other = Some(records.swap_remove(0));
            }
            return;
        }
        let mut rest = Vec::new();
        if let Some(first) = &self.first {
            for record in &records {
                if (self.sought.same)(&first.record, record) {
                    self.copies.push(if records.len() == 1 { root } else { record.span });
                } else {
                    self.second.get_or_insert(record.span);
                }
            }
            return;
        }
        let record = records.remove(0);
        for other in records {
            if (self.sought.same)(&record, &other) {
                rest.push(other.span);
            } else {
                self.second.get_or_insert(other.span);
            }
        }
        self.copies = rest;
        self.first = Some(Found { record, repairs, root, proven, in_array });
    }

    fn failed(&mut self, machine: Machine) {
        let (meant, committed, start) = (machine.meant(), machine.committed(), machine.start());
        let Some(fault) = machine.into_fault() else { return };
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
