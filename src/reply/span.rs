//! Places in a reply: bytes, lines and columns, and the excerpt that is quoted back to the model.

use serde::{Deserialize, Serialize};

/// A half-open range of bytes in the reply's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The range `start..end`; an `end` before `start` gives an empty range at `start`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end: end.max(start) }
    }

    /// An empty range.
    pub fn at(position: usize) -> Self {
        Self { start: position, end: position }
    }

    /// The text it covers, or the empty string where it does not fit `text`.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or("")
    }
}

/// A place as people count: both from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl LineColumn {
    /// Where byte `position` of `text` stands; past the end it is the end, inside a character its start.
    pub fn of(text: &str, position: usize) -> Self {
        let mut position = position.min(text.len());
        while !text.is_char_boundary(position) {
            position -= 1;
        }
        let before = text.get(..position).unwrap_or("");
        let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self { line, column: before.get(start..).unwrap_or("").chars().count() + 1 }
    }
}
