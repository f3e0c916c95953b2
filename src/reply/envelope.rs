//! The push reader for the text around payloads: tags, reasoning blocks, Markdown code and the brackets that may
//! begin a payload. It never looks into a payload: the reader of a payload sets the position past it.

mod code;
mod reasoning;

pub(crate) use reasoning::{
    DETAILS, LOOSE, begins_reasoning, closings, has_name_of_reasoning, names_reasoning, reasoning_ends, word_ends,
};

use super::Span;
use super::tag::{Match, Tag};
use code::Code;
use reasoning::{Bytes, FIRSTS, KINDS, Kind, LEADS};
use std::sync::Arc;

/// A mark that was found in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// `{` or `[`.
    Bracket(usize),
    /// One of the protocol's own tags.
    Tag {
        /// Its index among the configured tags.
        index: usize,
        /// Its place in the text.
        span: Span,
        /// It is written exactly as configured.
        exact: bool,
    },
    /// A reasoning block, closed.
    Reasoning {
        /// The block with its tags.
        whole: Span,
        /// The block without its tags.
        content: Span,
        /// The chat template had opened it.
        implicit: bool,
    },
}

/// Tags that are sought, with the bytes that one of them may begin with.
#[derive(Debug, Clone)]
pub struct Tags {
    tags: Arc<[Tag]>,
    firsts: Bytes,
}

impl<T: Into<Arc<[Tag]>>> From<T> for Tags {
    fn from(tags: T) -> Self {
        let tags = tags.into();
        let mut firsts = Bytes::default();
        for tag in &*tags {
            firsts.insert_letter(tag.first());
        }
        Self { tags, firsts }
    }
}

/// The kinds of marks that count at the current position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Whether brackets count as marks.
    pub brackets: bool,
    /// Whether reasoning blocks count.
    pub reasoning: bool,
    /// Whether Markdown code is recognised, and hides the marks inside it.
    pub code: bool,
}

/// A reasoning block that is open.
#[derive(Debug, Clone)]
struct Reasoning {
    start: usize,
    content: usize,
    implicit: bool,
    /// It began with ordinary words.
    words: bool,
    /// Each end, and whether it is a part of the reasoning.
    ends: Vec<(Tag, bool)>,
}

/// Finds the marks of one reply.
#[derive(Debug)]
pub struct Envelope {
    position: usize,
    settled: usize,
    tags: Arc<[Tag]>,
    /// Names of reasoning tags that the protocol uses for something else.
    own: &'static [&'static str],
    /// Reasoning between marks that were added.
    added: Vec<Kind>,
    /// The bytes that a tag may begin with.
    tag_firsts: Bytes,
    /// The bytes that a mark of reasoning may begin with anywhere.
    reasoning_firsts: Bytes,
    open: Option<Reasoning>,
    /// Up to here there are only blanks and reasoning.
    lead: usize,
    /// The chat template has opened a reasoning block, and no text has been read yet.
    prefilled: bool,
    code: Code,
}

impl Envelope {
    /// A reader that finds `tags`, and reasoning blocks under any name that is not among `own`.
    pub fn new(tags: impl Into<Tags>, own: &'static [&'static str], prefilled: bool) -> Self {
        let Tags { tags, firsts } = tags.into();
        Self {
            position: 0,
            settled: 0,
            tags,
            own,
            added: Vec::new(),
            tag_firsts: firsts,
            reasoning_firsts: *FIRSTS,
            open: None,
            lead: 0,
            prefilled,
            code: Code::default(),
        }
    }

    /// Adds reasoning between other marks: pairs of start and end.
    #[must_use]
    pub fn reasoning(mut self, marks: &[(String, String)]) -> Self {
        for (start, end) in marks {
            let kind = Kind::added(start, end);
            self.reasoning_firsts.insert_letter(kind.start.first());
            self.added.push(kind);
        }
        self
    }

    /// All kinds of reasoning, including kinds with a name that the protocol uses for something else.
    fn kinds(&self) -> impl Iterator<Item = &Kind> {
        KINDS.iter().chain(&self.added)
    }

    fn other_kinds(&self) -> impl Iterator<Item = &Kind> {
        self.kinds().filter(|kind| !self.is_own(kind))
    }

    /// Whether the protocol uses the name of a kind for something else.
    fn is_own(&self, kind: &Kind) -> bool {
        self.own.contains(&kind.name)
    }

    /// The end of the processed text; everything before it that is no mark is plain text.
    pub fn settled(&self) -> usize {
        self.settled
    }

    /// Continues at `position`, after text that another reader has read.
    pub fn resume(&mut self, position: usize) {
        self.position = self.position.max(position);
        self.settled = self.position;
    }

    /// Goes back to `position`, because skipped text counts after all.
    pub fn rewind(&mut self, position: usize) {
        self.position = position;
        self.settled = position;
    }

    /// The content of the reasoning block that is open, as far as it is certain.
    pub fn open_reasoning(&self) -> Option<Span> {
        self.open.as_ref().map(|open| Span::new(open.content, self.settled))
    }

    /// Whether a tag or a mark of reasoning may begin with a byte.
    fn may_begin(&self, byte: u8) -> bool {
        self.tag_firsts.contains(byte) || self.reasoning_firsts.contains(byte)
    }

    /// The start of the open reasoning block.
    pub fn reasoning_start(&self) -> Option<usize> {
        self.open.as_ref().map(|open| open.start)
    }

    /// Whether the reasoning that is open began with ordinary words, which are text if their end never comes.
    pub fn reasoning_is_words(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.words)
    }

    /// The spans of Markdown code so far; one that is open ends at `end`.
    pub fn code(&self, end: usize) -> Vec<Span> {
        let open = self.code.fence.map(|fence| Span::new(fence.start, end));
        self.code.spans.iter().copied().chain(open).collect()
    }

    /// The end of the first Markdown code, once it is closed.
    pub fn first_code_end(&self) -> Option<usize> {
        self.code.spans.first().map(|code| code.end)
    }

    /// The next mark, or `None` if more text is needed; `end` says that no more will come.
    pub fn next(&mut self, text: &str, end: bool, look: Look) -> Option<Mark> {
        let bytes = text.as_bytes();
        if self.prefilled && !self.begin_prefilled(text, end) {
            return None;
        }
        loop {
            match self.at_beginning(text, end, look) {
                Found::Mark(mark) => return Some(mark),
                Found::Partial => return None,
                Found::Reasoning | Found::Nothing => {}
            }
            if self.open.is_some() {
                return self.in_reasoning(text, end);
            }
            if self.code.fence.is_some() {
                if !self.in_fence(text, end) {
                    return None;
                }
                continue;
            }
            let Some(&byte) = bytes.get(self.position) else {
                if end && let Some(inline) = self.code.inline.take() {
                    self.no_code(inline);
                    continue;
                }
                self.settled = self.code.inline.and_then(|inline| inline.doubt).unwrap_or(self.position);
                return None;
            };
            match byte {
                b'\n' => {
                    if let Some(inline) = self.code.inline.take() {
                        self.code.plain_until = self.position;
                        self.no_code(inline);
                        continue;
                    }
                    self.position += 1;
                    self.code.line = self.position;
                }
                b'`' | b'~' if look.code && self.position >= self.code.plain_until => {
                    if !self.ticks(bytes, byte, end) {
                        return None;
                    }
                }
                _ if self.code.inline.is_some() => self.in_inline_code(byte),
                b'{' | b'[' if look.brackets && !self.may_be_tag(text, end, look) => {
                    self.settled = self.position;
                    return Some(Mark::Bracket(self.position));
                }
                _ => match self.tag(text, byte, end, look) {
                    Found::Mark(mark) => return Some(mark),
                    Found::Partial => {
                        self.settled = self.position;
                        return None;
                    }
                    Found::Reasoning => {}
                    Found::Nothing => self.position += 1,
                },
            }
        }
    }

    /// Passes a byte of code in a line, which is plain text after all if the code has no end.
    fn in_inline_code(&mut self, byte: u8) {
        if self.may_begin(byte) {
            let position = self.position;
            if let Some(inline) = &mut self.code.inline {
                inline.doubt.get_or_insert(position);
            }
        }
        self.position += 1;
    }

    /// Whether a tag begins with the bracket here.
    fn may_be_tag(&self, text: &str, end: bool, look: Look) -> bool {
        let rest = text.get(self.position..).unwrap_or("");
        if !rest.bytes().next().is_some_and(|byte| self.may_begin(byte)) {
            return false;
        }
        let counts = look.reasoning && !self.quoted(text);
        let is_there = |tag: &Tag| !matches!(tag.at(rest, end), Match::No);
        let begins = |kind: &Kind| kind.is_anywhere() && is_there(&kind.start) && !self.is_own(kind);
        self.tags.iter().any(is_there) || counts && self.kinds().any(begins)
    }

    /// Whether a quote stands right before the present place.
    fn quoted(&self, text: &str) -> bool {
        let before = self.position.checked_sub(1).and_then(|at| text.as_bytes().get(at));
        matches!(before, Some(b'`' | b'"' | b'\''))
    }

    fn tag(&mut self, text: &str, byte: u8, end: bool, look: Look) -> Found {
        if !self.may_begin(byte) {
            return Found::Nothing;
        }
        let Some(rest) = text.get(self.position..) else { return Found::Nothing };
        let mut partial = false;
        for (index, tag) in self.tags.iter().enumerate().filter(|(_, tag)| tag.may_begin(byte)) {
            match tag.at(rest, end) {
                Match::No => {}
                Match::Partial => partial = true,
                Match::Yes { length, exact } => {
                    let span = Span::new(self.position, self.position + length);
                    self.settled = span.start;
                    self.position = span.end;
                    return Found::Mark(Mark::Tag { index, span, exact });
                }
            }
        }
        if look.reasoning && self.reasoning_firsts.contains(byte) && !self.quoted(text) {
            match self.begin(rest, end, Kind::is_anywhere) {
                Found::Nothing => {}
                Found::Partial => partial = true,
                found => return found,
            }
        }
        if partial { Found::Partial } else { Found::Nothing }
    }

    /// Looks for marks that count only at the beginning of a reply, if `position` is still there; `Partial` if that
    /// needs more text.
    fn at_beginning(&mut self, text: &str, end: bool, look: Look) -> Found {
        if !look.reasoning || self.position != self.lead || self.open.is_some() || self.code.fence.is_some() {
            return Found::Nothing;
        }
        let found = self.first(text, end);
        if matches!(found, Found::Partial) {
            self.settled = self.position;
        }
        found
    }

    /// Seeks the marks that count at the beginning of a reply alone.
    fn first(&mut self, text: &str, end: bool) -> Found {
        let rest = text.get(self.position..).unwrap_or("");
        match rest.chars().next() {
            None => Found::Nothing,
            Some(blank) if blank.is_whitespace() || blank == '\u{feff}' => {
                // It is passed as all text is.
                self.lead = self.position + blank.len_utf8();
                Found::Nothing
            }
            Some(c) if u8::try_from(c).is_ok_and(|byte| byte.is_ascii() && !LEADS.contains(byte)) => Found::Nothing,
            Some(_) => self.begin(rest, end, |kind| !kind.is_anywhere()),
        }
    }

    /// Begins the reasoning that stands here.
    fn begin(&mut self, rest: &str, end: bool, counts: fn(&Kind) -> bool) -> Found {
        let mut partial = false;
        let mut begun = None;
        let first = rest.bytes().next().unwrap_or(0);
        for kind in self.kinds().filter(|kind| kind.start.may_begin(first) && counts(kind)) {
            match kind.begins(rest, end) {
                Match::No => {}
                _ if self.is_own(kind) => {}
                Match::Partial => partial = true,
                // A longer mark that stands earlier in the table may yet arrive.
                Match::Yes { .. } if partial => break,
                Match::Yes { length, .. } => {
                    begun = Some((length, kind.ends.clone(), kind.is_words()));
                    break;
                }
            }
        }
        let Some((length, ends, words)) = begun else {
            return if partial { Found::Partial } else { Found::Nothing };
        };
        let start = self.position;
        self.position += length;
        self.settled = self.position;
        if ends.is_empty() {
            let (whole, content) = (Span::new(start, self.position), Span::at(self.position));
            self.passed(whole);
            return Found::Mark(Mark::Reasoning { whole, content, implicit: false });
        }
        self.open = Some(Reasoning { start, content: self.position, implicit: false, words, ends });
        Found::Reasoning
    }

    /// Reasoning has ended: the reply may begin behind it.
    fn passed(&mut self, whole: Span) {
        if whole.start <= self.lead {
            self.lead = whole.end;
        }
    }

    /// Finds out whether the reply repeats the start tag that the chat template has already written.
    fn begin_prefilled(&mut self, text: &str, end: bool) -> bool {
        let blanks = text.bytes().skip(self.position).take_while(u8::is_ascii_whitespace).count();
        self.position += blanks;
        let rest = text.get(self.position..).unwrap_or("");
        if rest.is_empty() && !end {
            return false;
        }
        let matches: Vec<Match> = self.other_kinds().map(|kind| kind.begins(rest, end)).collect();
        if matches.contains(&Match::Partial) {
            return false;
        }
        self.prefilled = false;
        self.lead = self.position;
        if !matches.iter().any(|found| matches!(found, Match::Yes { .. })) {
            let ends = self.other_kinds().flat_map(|kind| kind.ends.iter().cloned()).collect();
            self.open = Some(Reasoning { start: 0, content: 0, implicit: true, words: false, ends });
        }
        true
    }

    fn in_reasoning(&mut self, text: &str, end: bool) -> Option<Mark> {
        let open = self.open.as_ref()?;
        let (start, from, implicit) = (open.start, open.content, open.implicit);
        let mut firsts: Vec<u8> = open.ends.iter().map(|(end, _)| end.first()).collect();
        firsts.extend(
            firsts.clone().iter().map(|byte| {
                if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }
            }),
        );
        firsts.dedup();
        loop {
            let rest = text.as_bytes().get(self.position..).unwrap_or_default();
            let found = match firsts.as_slice() {
                [only] => memchr::memchr(*only, rest),
                _ => rest.iter().position(|byte| firsts.contains(byte)),
            };
            let Some(offset) = found else {
                self.position = text.len();
                self.settled = self.position;
                return None;
            };
            self.position += offset;
            let rest = text.get(self.position..).unwrap_or("");
            let mut partial = false;
            for (close, part) in &open.ends {
                match close.at(rest, end) {
                    Match::No => {}
                    Match::Partial => partial = true,
                    Match::Yes { length, .. } => {
                        let content = Span::new(from, self.position);
                        let whole = Span::new(start, self.position + if *part { length } else { 0 });
                        self.position = whole.end;
                        self.settled = whole.end;
                        self.open = None;
                        self.passed(whole);
                        return Some(Mark::Reasoning { whole, content, implicit });
                    }
                }
            }
            if partial {
                self.settled = self.position;
                return None;
            }
            self.position += 1;
        }
    }
}

enum Found {
    Mark(Mark),
    Partial,
    Reasoning,
    Nothing,
}
