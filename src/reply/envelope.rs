//! The push machine for the text around payloads: tags, reasoning blocks, Markdown code and the brackets that may
//! begin a payload. It never looks into a payload: whoever reads one sets the position past it.

use super::Span;
use super::tag::{Match, Tag};
use std::borrow::Cow;
use std::sync::LazyLock;

/// The names of tags whose content is reasoning.
const REASONING: [&str; 8] =
    ["think", "thinking", "thought", "thoughts", "reasoning", "analysis", "scratchpad", "reflection"];

/// Marks of models whose reasoning stands in none of these tags: Magistral, Kimi, Command A, `OpenThinker`, Apertus, gpt-oss.
const REASONING_MARKS: [(&str, &[&str]); 9] = [
    ("[THINK]", &["[/THINK]"]),
    ("◁think▷", &["◁/think▷"]),
    ("<|START_THINKING|>", &["<|END_THINKING|>"]),
    ("<|begin_of_thought|>", &["<|end_of_thought|>"]),
    ("<|inner_prefix|>", &["<|inner_suffix|>"]),
    ("<|think|>", &["<|/think|>"]),
    ("<|thinking|>", &["<|/thinking|>"]),
    ("<|channel|>analysis<|message|>", CHANNEL_ENDS),
    ("<|start|>assistant<|channel|>analysis<|message|>", CHANNEL_ENDS),
];
const CHANNEL_ENDS: &[&str] = &["<|end|>", "<|start|>assistant", "<|channel|>final<|message|>"];
/// What such models write before the reply proper. It is set aside like a reasoning block without content.
const HEADERS: [&str; 6] = [
    "<|start|>assistant<|channel|>final<|message|>",
    "<|channel|>final<|message|>",
    "<|start|>assistant<|channel|>commentary<|message|>",
    "<|channel|>commentary<|message|>",
    "<|START_RESPONSE|>",
    "<|begin_of_solution|>",
];

/// How one kind of reasoning begins and ends; without an end it is a mark alone.
#[derive(Debug, Clone)]
struct Kind {
    /// The name of its tag, where it has one.
    name: &'static str,
    start: Tag,
    ends: Vec<Tag>,
    /// Its ends are those of reasoning alone; names such as "thought" are also those of other tags.
    telling: bool,
}

/// The kinds that are known, made once: every reply has an envelope of its own.
static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let named = REASONING.iter().chain(&["seed:think"]);
    let named = named.map(|name| Kind {
        name,
        start: Tag::open(name),
        ends: vec![Tag::close(name)],
        telling: name.contains("think"),
    });
    let marks = REASONING_MARKS.iter().map(|(start, ends)| Kind {
        name: "",
        start: Tag::new(*start),
        ends: ends.iter().map(|end| Tag::new(*end)).collect(),
        telling: *ends != CHANNEL_ENDS,
    });
    let headers =
        HEADERS.iter().map(|header| Kind { name: "", start: Tag::new(*header), ends: Vec::new(), telling: false });
    named.chain(marks).chain(headers).collect()
});

/// How the reasoning of models begins and ends, where its end says by itself that it was reasoning.
pub(crate) fn reasoning_ends() -> impl Iterator<Item = (&'static Tag, &'static Tag)> {
    KINDS.iter().filter(|kind| kind.telling).flat_map(|kind| kind.ends.iter().map(|end| (&kind.start, end)))
}

/// The longest run of backticks that is read as one.
const TICKS: usize = 100;
/// The deepest indent of a line that closes a fence.
const INDENT: usize = 8;

/// What is found in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// `{` or `[`.
    Bracket(usize),
    /// One of the protocol's own tags.
    Tag {
        /// Which one, in the order they were given.
        index: usize,
        /// Where it stands.
        span: Span,
        /// It is written exactly as configured.
        exact: bool,
    },
    /// A reasoning block, closed.
    Reasoning {
        /// With its tags.
        whole: Span,
        /// Without them.
        content: Span,
        /// The chat template had opened it.
        implicit: bool,
    },
}

/// What counts at the present place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Brackets.
    pub brackets: bool,
    /// Reasoning blocks.
    pub reasoning: bool,
    /// Markdown code, inside which nothing counts.
    pub code: bool,
}

/// A reasoning block that is open.
#[derive(Debug, Clone)]
struct Reasoning {
    start: usize,
    content: usize,
    implicit: bool,
    ends: Vec<Tag>,
}

#[derive(Debug, Clone, Copy)]
struct Fence {
    byte: u8,
    count: usize,
    start: usize,
    first_line: bool,
}

#[derive(Debug, Clone, Copy)]
struct Inline {
    start: usize,
    count: usize,
    /// The first place inside that may be a tag.
    doubt: Option<usize>,
}

/// The machine.
#[derive(Debug)]
pub struct Envelope {
    position: usize,
    settled: usize,
    tags: Vec<Tag>,
    kinds: Vec<Cow<'static, Kind>>,
    /// The first bytes of what begins reasoning.
    firsts: Vec<u8>,
    open: Option<Reasoning>,
    /// The chat template has opened a reasoning block, and nothing was read yet.
    prefilled: bool,
    fence: Option<Fence>,
    inline: Option<Inline>,
    /// Up to here backticks are plain text: the code they would begin has no end.
    plain_until: usize,
    /// Where the present line begins.
    line: usize,
    code: Vec<Span>,
}

impl Envelope {
    /// A machine that finds `tags`, and reasoning blocks under any name that is not among `own`.
    pub fn new(tags: Vec<Tag>, own: &[&str], prefilled: bool) -> Self {
        let kinds = KINDS.iter().filter(|kind| !own.contains(&kind.name)).map(Cow::Borrowed).collect();
        Self {
            position: 0,
            settled: 0,
            tags,
            kinds,
            firsts: vec![b'<', b'[', 0xe2],
            open: None,
            prefilled,
            fence: None,
            inline: None,
            plain_until: 0,
            line: 0,
            code: Vec::new(),
        }
    }

    /// Adds reasoning between other marks: pairs of start and end.
    #[must_use]
    pub fn reasoning(mut self, marks: &[(String, String)]) -> Self {
        for (start, end) in marks {
            let kind =
                Kind { name: "", start: Tag::new(start.as_str()), ends: vec![Tag::new(end.as_str())], telling: false };
            self.firsts.extend([kind.start.first().to_ascii_lowercase(), kind.start.first().to_ascii_uppercase()]);
            self.kinds.push(Cow::Owned(kind));
        }
        self
    }

    /// Up to here the text is read; what lies before it and is no mark is plain.
    pub fn settled(&self) -> usize {
        self.settled
    }

    /// Goes on at `position`, after something that was read by another machine.
    pub fn resume(&mut self, position: usize) {
        self.position = self.position.max(position);
        self.settled = self.position;
    }

    /// Goes back to `position`, where text that was passed over counts after all.
    pub fn rewind(&mut self, position: usize) {
        self.position = position;
        self.settled = position;
    }

    /// The content of the reasoning block that is open, as far as it is certain.
    pub fn open_reasoning(&self) -> Option<Span> {
        self.open.as_ref().map(|open| Span::new(open.content, self.settled))
    }

    /// Where the reasoning block that is open begins.
    pub fn reasoning_start(&self) -> Option<usize> {
        self.open.as_ref().map(|open| open.start)
    }

    /// The spans of Markdown code so far; one that is open ends at `end`.
    pub fn code(&self, end: usize) -> Vec<Span> {
        let open = self.fence.map(|fence| Span::new(fence.start, end));
        self.code.iter().copied().chain(open).collect()
    }

    /// The end of the first Markdown code, once it is closed.
    pub fn first_code_end(&self) -> Option<usize> {
        self.code.first().map(|code| code.end)
    }

    /// The next mark, or `None` where more text is needed; `end` says that no more will come.
    pub fn next(&mut self, text: &str, end: bool, look: Look) -> Option<Mark> {
        let bytes = text.as_bytes();
        if self.prefilled && !self.begin_prefilled(text, end) {
            return None;
        }
        loop {
            if self.open.is_some() {
                return self.in_reasoning(text, end);
            }
            if self.fence.is_some() {
                if !self.in_fence(text, end) {
                    return None;
                }
                continue;
            }
            let Some(&byte) = bytes.get(self.position) else {
                if end && let Some(inline) = self.inline.take() {
                    self.no_code(inline);
                    continue;
                }
                self.settled = self.inline.and_then(|inline| inline.doubt).unwrap_or(self.position);
                return None;
            };
            match byte {
                b'\n' => {
                    if let Some(inline) = self.inline.take() {
                        self.plain_until = self.position;
                        self.no_code(inline);
                        continue;
                    }
                    self.position += 1;
                    self.line = self.position;
                }
                b'`' | b'~' if look.code && self.position >= self.plain_until => {
                    if !self.ticks(bytes, byte, end) {
                        return None;
                    }
                }
                _ if self.inline.is_some() => {
                    if self.tags.iter().any(|tag| tag.first() == byte) || self.firsts.contains(&byte) {
                        let place = self.position;
                        if let Some(inline) = &mut self.inline {
                            inline.doubt.get_or_insert(place);
                        }
                    }
                    self.position += 1;
                }
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

    /// Whether a tag begins with the bracket here.
    fn may_be_tag(&self, text: &str, end: bool, look: Look) -> bool {
        let rest = text.get(self.position..).unwrap_or("");
        let reasoning = self.kinds.iter().map(|kind| &kind.start).filter(|_| look.reasoning && !self.quoted(text));
        self.tags.iter().chain(reasoning).any(|tag| !matches!(tag.at(rest, end), Match::No))
    }

    /// Whether a quote stands right before the present place.
    fn quoted(&self, text: &str) -> bool {
        let before = self.position.checked_sub(1).and_then(|at| text.as_bytes().get(at));
        matches!(before, Some(b'`' | b'"' | b'\''))
    }

    fn tag(&mut self, text: &str, byte: u8, end: bool, look: Look) -> Found {
        let own = self.tags.iter().any(|tag| tag.first().eq_ignore_ascii_case(&byte));
        if !own && !self.firsts.contains(&byte) {
            return Found::Nothing;
        }
        let Some(rest) = text.get(self.position..) else { return Found::Nothing };
        let mut partial = false;
        for (index, tag) in self.tags.iter().enumerate() {
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
        if look.reasoning && self.firsts.contains(&byte) && !self.quoted(text) {
            for kind in &self.kinds {
                match kind.start.at(rest, end) {
                    Match::No => {}
                    Match::Partial => partial = true,
                    Match::Yes { length, .. } => {
                        let start = self.position;
                        self.position += length;
                        self.settled = self.position;
                        if kind.ends.is_empty() {
                            let (whole, content) = (Span::new(start, self.position), Span::at(self.position));
                            return Found::Mark(Mark::Reasoning { whole, content, implicit: false });
                        }
                        let ends = kind.ends.clone();
                        self.open = Some(Reasoning { start, content: self.position, implicit: false, ends });
                        return Found::Reasoning;
                    }
                }
            }
        }
        if partial { Found::Partial } else { Found::Nothing }
    }

    /// Finds out whether the reply repeats the start tag that the chat template has already written.
    fn begin_prefilled(&mut self, text: &str, end: bool) -> bool {
        let blanks = text.bytes().skip(self.position).take_while(u8::is_ascii_whitespace).count();
        self.position += blanks;
        let rest = text.get(self.position..).unwrap_or("");
        if rest.is_empty() && !end {
            return false;
        }
        let matches: Vec<Match> = self.kinds.iter().map(|kind| kind.start.at(rest, end)).collect();
        if matches.contains(&Match::Partial) {
            return false;
        }
        self.prefilled = false;
        if !matches.iter().any(|found| matches!(found, Match::Yes { .. })) {
            let ends = self.kinds.iter().flat_map(|kind| kind.ends.iter().cloned()).collect();
            self.open = Some(Reasoning { start: 0, content: 0, implicit: true, ends });
        }
        true
    }

    fn in_reasoning(&mut self, text: &str, end: bool) -> Option<Mark> {
        let open = self.open.as_ref()?;
        let (start, from, implicit) = (open.start, open.content, open.implicit);
        let mut firsts: Vec<u8> = open.ends.iter().map(Tag::first).collect();
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
            for close in &open.ends {
                match close.at(rest, end) {
                    Match::No => {}
                    Match::Partial => partial = true,
                    Match::Yes { length, .. } => {
                        let content = Span::new(from, self.position);
                        let whole = Span::new(start, self.position + length);
                        self.position = whole.end;
                        self.settled = whole.end;
                        self.open = None;
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

    /// A run of backticks or tildes: it may open a fence, or open or close code in a line.
    fn ticks(&mut self, bytes: &[u8], byte: u8, end: bool) -> bool {
        let start = self.position;
        let count = bytes.iter().skip(start).take(TICKS).take_while(|&&other| other == byte).count();
        if start + count == bytes.len() && count < TICKS && !end {
            self.settled = self.inline.and_then(|inline| inline.doubt).unwrap_or(start);
            return false;
        }
        self.position = start + count;
        if let Some(inline) = self.inline {
            if byte == b'`' && count == inline.count {
                self.code.push(Span::new(inline.start, self.position));
                self.inline = None;
            }
            return true;
        }
        let indent = bytes.get(self.line..start).unwrap_or_default();
        if count >= 3 && is_container(indent) {
            self.fence = Some(Fence { byte, count, start, first_line: true });
        } else if byte == b'`' {
            self.inline = Some(Inline { start, count, doubt: None });
        }
        true
    }

    /// Backticks that began no code: what follows them is read as plain text.
    fn no_code(&mut self, inline: Inline) {
        self.plain_until = self.plain_until.max(self.position);
        self.position = inline.start + inline.count;
    }

    /// Goes on in a fence; `false` where more text is needed.
    fn in_fence(&mut self, text: &str, end: bool) -> bool {
        let Some(fence) = self.fence else { return true };
        let bytes = text.as_bytes();
        loop {
            let rest = bytes.get(self.position..).unwrap_or_default();
            if rest.is_empty() {
                self.settled = self.position;
                return false;
            }
            let first_line = self.fence.is_some_and(|fence| fence.first_line);
            // In a block quote each line begins with its marks.
            let blanks = rest.iter().take(INDENT + 1).take_while(|byte| matches!(byte, b' ' | b'\t' | b'>')).count();
            let run = rest.iter().skip(blanks).take(TICKS).take_while(|&&byte| byte == fence.byte).count();
            let at_start = self.position == self.line && blanks <= INDENT;
            if at_start && run < TICKS && blanks + run == rest.len() && !end {
                self.settled = self.position;
                return false;
            }
            if at_start && run >= fence.count {
                self.position += blanks + run;
                self.code.push(Span::new(fence.start, self.position));
                self.fence = None;
                return true;
            }
            let stop = if first_line { memchr::memchr2(b'\n', fence.byte, rest) } else { memchr::memchr(b'\n', rest) };
            let Some(stop) = stop else {
                self.position = bytes.len();
                self.settled = self.position;
                return false;
            };
            self.position += stop;
            if bytes.get(self.position) == Some(&b'\n') {
                self.position += 1;
                self.line = self.position;
                if let Some(fence) = &mut self.fence {
                    fence.first_line = false;
                }
                continue;
            }
            // Code that opens and closes in one line.
            let rest = bytes.get(self.position..).unwrap_or_default();
            let run = rest.iter().take(TICKS).take_while(|&&byte| byte == fence.byte).count();
            if run == rest.len() && run < TICKS && !end {
                self.settled = self.position;
                return false;
            }
            self.position += run;
            if run >= fence.count {
                self.code.push(Span::new(fence.start, self.position));
                self.fence = None;
                return true;
            }
        }
    }
}

/// Whether the beginning of a line holds nothing but the marks of the block quotes and lists around a block.
fn is_container(line: &[u8]) -> bool {
    let mut line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    loop {
        line = line.trim_ascii_start();
        let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = line.get(digits..).unwrap_or_default();
        line = match (digits, rest) {
            (0, []) => return true,
            (0, [b'>', rest @ ..]) => rest,
            (0, [b'-' | b'*' | b'+', rest @ ..]) | (1..=9, [b'.' | b')', rest @ ..]) if rest.starts_with(b" ") => rest,
            _ => return false,
        };
    }
}

enum Found {
    Mark(Mark),
    Partial,
    Reasoning,
    Nothing,
}
