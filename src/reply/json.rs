//! The push JSON reader: an explicit stack, places for everything, and repairs as labelled transitions.
//!
//! It runs over text that only grows, from the opening bracket to the end of the value, found by structure. If a byte
//! is not JSON and the text can only mean one thing, it takes a transition that carries the name of a repair; else it
//! ends in a violation. Clean JSON takes none of them and keeps its exact spelling.

mod clean;
mod closing;
mod frame;
mod number;
mod open;
mod remark;
mod string;
mod token;
mod trivia;

#[cfg(test)]
mod tests;

pub(crate) use frame::quoted;
pub use frame::{Field, Fields, Record};
pub use open::{Complete, OpenContainer, OpenField, OpenPart};

use super::tag::Tag;
use super::{BoxedViolation, Code, ReadLimits, Repair, RepairCode, RepairPolicy, Span, Value, Violation};
use compact_str::CompactString;
use frame::Frame;
use std::sync::Arc;
use string::StringToken;

/// How a value is read.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The action if a repair is possible.
    pub policy: RepairPolicy,
    /// Bounds on the value.
    pub limits: ReadLimits,
    /// Keep the outermost object, or each object of the outermost array, as a [`Record`] with places.
    pub records: bool,
    /// Keys that show an object to be meant as the payload even when its syntax is broken right after them.
    pub keys: &'static [&'static str],
    /// The keys of a record, which are read in any case.
    pub own: &'static [&'static str],
    /// Other names of keys of a record, each with the key it stands for if the policy is lenient.
    pub aliases: &'static [(&'static str, &'static str)],
    /// End tags: after a complete value they prove that the payload has ended.
    pub ends: Arc<[Tag]>,
    /// A fence stands before the value, so that a closing one proves that the payload has ended.
    pub fenced: bool,
    /// Reads text that is known to be JSON: the last of equal keys counts, any number passes.
    pub plain: bool,
    /// Before this position no comment begins: an earlier reader has taken the text for JSON, and it is prose.
    pub prose: usize,
}

impl Settings {
    /// For one value with the given policy and bounds.
    pub fn new(policy: RepairPolicy, limits: ReadLimits) -> Self {
        Self {
            policy,
            limits,
            records: false,
            keys: &[],
            own: &[],
            aliases: &[],
            ends: Arc::default(),
            fenced: false,
            plain: false,
            prose: 0,
        }
    }

    /// For text that is known to be JSON.
    pub(crate) fn plain() -> Self {
        Self { plain: true, ..Self::new(RepairPolicy::Strict, ReadLimits::none()) }
    }
}

/// How far a reader has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It needs more text.
    More,
    /// The value has ended.
    Done,
    /// It can no longer become a value: [`JsonReader::fault`] says why.
    Failed,
}

/// The tokens that may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Only a value.
    Value,
    /// A value, or the end of an array that was just opened.
    FirstElement,
    /// A value after a comma.
    NextElement,
    /// A key, or the end of an object that was just opened.
    FirstKey,
    /// A key after a comma.
    NextKey,
    /// The colon after a key.
    Colon,
    /// A comma or a closing bracket after a value.
    After,
    /// No token: the value has ended.
    Done,
}

/// The token that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    None,
    String,
    Number { start: usize, digits: usize },
    Word { start: usize },
    LineComment { start: usize },
    BlockComment { start: usize },
}

/// The request of one step of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Go,
    More,
    Done,
}

/// The value that ended last, which decides about the next token.
#[derive(Debug, Clone, Copy)]
struct Last {
    span: Span,
    kind: LastKind,
    /// A line ended since.
    newline: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastKind {
    String,
    Number,
    Other,
}

/// Reads one JSON value from text that only grows.
#[derive(Debug)]
pub struct JsonReader {
    settings: Settings,
    position: usize,
    state: State,
    token: Token,
    string: StringToken,
    stack: Vec<Frame>,
    /// By depth, the keys of the object that was closed last.
    shapes: Vec<Vec<CompactString>>,
    /// How many values have ended.
    values: usize,
    recent: Recent,
    doubts: Doubts,
    output: Output,
    fault: Option<BoxedViolation>,
}

/// The tokens right before the present position.
#[derive(Debug)]
struct Recent {
    last: Last,
    comma: Span,
    /// Blanks since the last token.
    blanks: usize,
    /// The end of the last comment.
    comment: usize,
}

/// Findings that only later text shows to be harmless or wrong.
#[derive(Debug, Default)]
struct Doubts {
    /// A comment up to the end of its line that may hold closing brackets or members.
    swallowed: Option<Span>,
    /// A comment in place of a member: if a closing bracket follows, the comment stands for left-out members.
    elision: Option<Span>,
    /// The first single quote of a string, as Python writes them.
    python: Option<usize>,
    /// The first escape in a string in double quotes that JSON does not have and Python does.
    foreign_escape: Option<Span>,
    /// The first blank between tokens that is written as an escape.
    written_blank: Option<Span>,
    /// The first backslash in a string.
    backslash: Option<Span>,
    /// All braces are doubled.
    doubled: bool,
    /// Closing brackets without an opening one, in the current run of closing brackets.
    strays: Vec<(u8, Span)>,
}

/// The result so far.
#[derive(Debug)]
struct Output {
    start: usize,
    span: Span,
    /// The position that proved the end, if it is not the end of the value.
    proven: Option<usize>,
    array: bool,
    committed: bool,
    meant: bool,
    value: Value,
    records: Vec<Record>,
    /// A record in doubled braces, while the outer braces are still open.
    inner: Option<Record>,
    repairs: Vec<Repair>,
}

impl JsonReader {
    /// A reader for the value that begins at or after `position`.
    pub fn new(settings: Settings, position: usize) -> Self {
        let nowhere = Span::at(position);
        Self {
            settings,
            position,
            state: State::Value,
            token: Token::None,
            string: StringToken::default(),
            stack: Vec::new(),
            shapes: Vec::new(),
            values: 0,
            recent: Recent {
                last: Last { span: nowhere, kind: LastKind::Other, newline: false },
                comma: nowhere,
                blanks: 0,
                comment: position,
            },
            doubts: Doubts::default(),
            output: Output {
                start: position,
                span: nowhere,
                proven: None,
                array: false,
                committed: false,
                meant: false,
                value: Value::Null,
                records: Vec::new(),
                inner: None,
                repairs: Vec::new(),
            },
            fault: None,
        }
    }

    /// Reads on in `text`, which begins with all text of the earlier calls; `end` says that no more will come.
    pub fn run(&mut self, text: &str, end: bool) -> Progress {
        if self.fault.is_some() {
            return Progress::Failed;
        }
        loop {
            let step = match self.token {
                Token::None => self.between(text, end),
                Token::String => self.in_string(text, end),
                Token::Number { start, digits } => self.in_number(text, start, digits, end),
                Token::Word { start } => self.in_word(text, start, end),
                Token::LineComment { start } => self.in_line_comment(text, start),
                Token::BlockComment { start } => self.in_block_comment(text, start),
            };
            match step {
                Ok(Flow::Go) => {}
                Ok(Flow::Done) => return Progress::Done,
                Ok(Flow::More) if !end => return Progress::More,
                Ok(Flow::More) => {
                    let fault = self.truncated(text);
                    self.fault = Some(fault);
                    return Progress::Failed;
                }
                Err(fault) => {
                    self.fault = Some(fault);
                    return Progress::Failed;
                }
            }
        }
    }

    /// The current position: the end of the value once it is done, the place of the fault once it has failed.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The position at which prose continues after a failure: inside the last string, if there is one, because in prose
    /// its quote may be plain text and the string may hold the payload. The same holds for a comment that does not end.
    pub fn prose_after(&self) -> usize {
        let key = self.stack.last().and_then(|frame| frame.key.as_ref());
        let after_string = match (self.token, self.state) {
            (Token::String, _) => true,
            (_, State::Colon) => key.is_some_and(|key| key.quoted),
            (_, State::After) => self.recent.last.kind == LastKind::String,
            _ => false,
        };
        let from = match self.token {
            _ if after_string => self.string.content(),
            Token::LineComment { start } | Token::BlockComment { start } => start,
            _ => self.position,
        };
        from.max(self.output.start + 1)
    }

    /// The end of the last comment, after a failure. The prose before is looked through for a payload, but not for
    /// comments: to read each to its end again would take a time that grows with the square of the text.
    pub(crate) fn prose_comments_end(&self) -> usize {
        match self.token {
            Token::LineComment { .. } | Token::BlockComment { .. } => self.position,
            _ => self.recent.comment,
        }
    }

    /// The start of the value.
    pub fn start(&self) -> usize {
        self.output.start
    }

    /// The whole value in the text, once it is done.
    pub fn span(&self) -> Span {
        self.output.span
    }

    /// The position that proves the end of the value: past the end tag or fence, if that was the proof.
    pub fn proven_at(&self) -> usize {
        self.output.proven.unwrap_or(self.output.span.end)
    }

    /// Whether the outermost value is an array.
    pub fn is_array(&self) -> bool {
        self.output.array
    }

    /// Whether this is certainly meant as JSON: a quoted key with its colon, or a key of the protocol, was read.
    pub fn committed(&self) -> bool {
        self.output.committed || self.output.meant
    }

    /// Whether this is certainly meant as a payload of the protocol: a record has one of the protocol's keys.
    pub fn meant(&self) -> bool {
        self.output.meant
    }

    /// The fault, once it has failed.
    pub fn fault(&self) -> Option<&Violation> {
        self.fault.as_deref()
    }

    /// The fault, once it has failed.
    pub fn into_fault(self) -> Option<Box<Violation>> {
        self.fault
    }

    /// The records read so far.
    pub fn records(&self) -> &[Record] {
        &self.output.records
    }

    /// The records and the repairs, once it is done.
    pub fn into_records(self) -> (Vec<Record>, Vec<Repair>) {
        (self.output.records, self.output.repairs)
    }

    /// The value and the repairs, once it is done.
    pub fn into_value(self) -> (Value, Vec<Repair>) {
        (self.output.value, self.output.repairs)
    }

    /// Records a repair, or refuses it if the policy is strict.
    fn repair(&mut self, code: RepairCode, span: Span) -> Result<(), BoxedViolation> {
        if self.settings.policy == RepairPolicy::Strict {
            return Err(refused(code, span));
        }
        if let Some(last) = self.output.repairs.last_mut()
            && last.code == code
            && last.span.end == span.start
        {
            last.span.end = span.end;
            return Ok(());
        }
        if self.output.repairs.len() >= self.settings.limits.repairs {
            let message = format!("expected at most {} departures from JSON: got more", self.settings.limits.repairs);
            return Err(Box::new(Violation::new(Code::LimitExceeded, message).at(span)));
        }
        self.output.repairs.push(Repair::new(code, span));
        Ok(())
    }

    /// A violation at a place of the value, with its JSON pointer.
    fn violation(&self, code: Code, message: impl Into<String>, span: Span) -> BoxedViolation {
        let violation = Violation::new(code, message).at(span);
        let pointer = self.pointer();
        Box::new(if pointer.is_empty() { violation } else { violation.pointer(pointer) })
    }

    /// The text ended with something open.
    fn truncated(&self, text: &str) -> BoxedViolation {
        if let Some((code, span)) = self.doubts.strays.first() {
            return self.unbalanced(*code, *span);
        }
        let end = text.len();
        let (message, span) = match self.token {
            Token::String => {
                ("expected the end of the string that begins here: the text ended", Span::new(self.string.start, end))
            }
            Token::BlockComment { start } => {
                ("expected the end of the comment that begins here: the text ended", Span::new(start, end))
            }
            _ => match self.stack.last() {
                Some(frame) if frame.is_array() => ("expected ']' to close the array: the text ended", Span::at(end)),
                Some(_) => ("expected '}' to close the object: the text ended", Span::at(end)),
                None => ("expected a JSON value: the text ended", Span::at(end)),
            },
        };
        let odd_quote = self.token == Token::String && !self.string.is_double();
        let hint = if odd_quote {
            "write the reply again, whole, with each string in straight double quotes"
        } else {
            "write the reply again, whole, with every bracket closed"
        };
        let fault = self.violation(Code::Truncated, message, span).hint(hint);
        Box::new(match self.stack.last() {
            Some(frame) => fault.related(Span::new(frame.open, frame.open + 1), "opened here"),
            None => fault,
        })
    }
}

/// A repair that strictness forbids.
pub fn refused(code: RepairCode, span: Span) -> Box<Violation> {
    let meaning = code.meaning().trim_end_matches('.');
    let message = format!("expected strict syntax: {code} would be needed here");
    Box::new(
        Violation::new(Code::RepairRefused, message)
            .at(span)
            .found(code.name())
            .hint(format!("write it without this departure: {}", meaning.to_lowercase())),
    )
}
