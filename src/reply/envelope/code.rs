//! Markdown code, which hides marks inside it: fences, and inline code.

use super::Envelope;
use crate::reply::Span;

/// The longest run of backticks that is read as one.
const TICKS: usize = 100;
/// The deepest indent of a line that closes a fence.
const INDENT: usize = 8;

/// The code that was read, and the code that is open.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) fence: Option<Fence>,
    pub(super) inline: Option<Inline>,
    /// Up to here backticks are plain text: the code they would begin has no end.
    pub(super) plain_until: usize,
    /// The start of the current line.
    pub(super) line: usize,
    /// The code that was closed.
    pub(super) spans: Vec<Span>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Fence {
    byte: u8,
    count: usize,
    pub(super) start: usize,
    first_line: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Inline {
    pub(super) start: usize,
    count: usize,
    /// The first place inside that may be a tag.
    pub(super) doubt: Option<usize>,
}

impl Envelope {
    /// A run of backticks or tildes: it may open a fence, or open or close code in a line.
    pub(super) fn ticks(&mut self, bytes: &[u8], byte: u8, end: bool) -> bool {
        let start = self.position;
        let count = bytes.iter().skip(start).take(TICKS).take_while(|&&other| other == byte).count();
        if start + count == bytes.len() && count < TICKS && !end {
            self.settled = self.code.inline.and_then(|inline| inline.doubt).unwrap_or(start);
            return false;
        }
        self.position = start + count;
        if let Some(inline) = self.code.inline {
            if byte == b'`' && count == inline.count {
                self.code.spans.push(Span::new(inline.start, self.position));
                self.code.inline = None;
            }
            return true;
        }
        let indent = bytes.get(self.code.line..start).unwrap_or_default();
        if count >= 3 && is_container(indent) {
            self.code.fence = Some(Fence { byte, count, start, first_line: true });
        } else if byte == b'`' {
            self.code.inline = Some(Inline { start, count, doubt: None });
        }
        true
    }

    /// Backticks that began no code: the text after them is read as plain text.
    pub(super) fn no_code(&mut self, inline: Inline) {
        self.code.plain_until = self.code.plain_until.max(self.position);
        self.position = inline.start + inline.count;
    }

    /// Reads on in a fence; `false` if more text is needed.
    pub(super) fn in_fence(&mut self, text: &str, end: bool) -> bool {
        let Some(fence) = self.code.fence else { return true };
        let bytes = text.as_bytes();
        loop {
            let rest = bytes.get(self.position..).unwrap_or_default();
            if rest.is_empty() {
                self.settled = self.position;
                return false;
            }
            let first_line = self.code.fence.is_some_and(|fence| fence.first_line);
            // In a block quote each line begins with its marks.
            let blanks = rest.iter().take(INDENT + 1).take_while(|byte| matches!(byte, b' ' | b'\t' | b'>')).count();
            let run = rest.iter().skip(blanks).take(TICKS).take_while(|&&byte| byte == fence.byte).count();
            let at_start = self.position == self.code.line && blanks <= INDENT;
            if at_start && run < TICKS && blanks + run == rest.len() && !end {
                self.settled = self.position;
                return false;
            }
            if at_start && run >= fence.count {
                self.position += blanks + run;
                self.code.spans.push(Span::new(fence.start, self.position));
                self.code.fence = None;
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
                self.code.line = self.position;
                if let Some(fence) = &mut self.code.fence {
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
                self.code.spans.push(Span::new(fence.start, self.position));
                self.code.fence = None;
                return true;
            }
        }
    }
}

/// Whether the beginning of a line holds only the marks of the block quotes and lists around a block.
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
