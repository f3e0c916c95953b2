//! Places in a reply: bytes, lines and columns, and the excerpt that is quoted back to the model.

use serde::{Deserialize, Serialize};

/// A half-open range of bytes in the reply's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The position of the first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The range `start..end`; an `end` before `start` gives an empty range at `start`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end: end.max(start) }
    }

    /// An empty range at a position.
    pub fn at(position: usize) -> Self {
        Self { start: position, end: position }
    }

    /// The text it covers, or the empty string if it does not fit `text`.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or("")
    }
}

/// A place as people count: both from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineColumn {
    /// The line, counted from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl LineColumn {
    /// The place of byte `position` of `text`; past the end it is the end, inside a character its start.
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

/// How much of a long line is quoted, in characters.
const QUOTED: usize = 72;

/// The line in which `span` begins, shortened around the place if it is long, and under it a line that marks the place:
///
/// ```text
/// line 3: "action": search"
///                   ^^^^^^^
/// ```
pub fn excerpt(text: &str, span: Span) -> String {
    let place = LineColumn::of(text, span.start);
    let start = floor(text, span.start);
    let end = floor(text, span.end.max(span.start)).max(start);
    let (before, rest) = (text.get(..start).unwrap_or(""), text.get(start..).unwrap_or(""));
    let before = before.rsplit('\n').next().unwrap_or("");
    let rest = rest.split('\n').next().unwrap_or("");

    // A third of the room for the text before, the rest for the place itself and the text after it.
    let lead: Vec<char> = before.chars().rev().take(QUOTED / 3 + 1).collect();
    let cut_before = lead.len() > QUOTED / 3;
    let lead: String = lead.iter().rev().skip(usize::from(cut_before)).map(|&c| plain(c)).collect();
    let room = QUOTED - lead.chars().count();
    let tail: String = rest.chars().take(room).map(plain).collect();
    let cut_after = rest.chars().nth(room).is_some();

    let marked = text.get(start..end).unwrap_or("").split('\n').next().unwrap_or("").chars().count();
    let (dots_before, dots_after) = (if cut_before { "…" } else { "" }, if cut_after { "…" } else { "" });
    let opening = format!("line {}: {dots_before}{lead}", place.line);
    let indent = opening.chars().count();
    let line = format!("{opening}{tail}{dots_after}");
    let carets = "^".repeat(marked.clamp(1, room.max(1)));
    format!("{}\n{:indent$}{carets}", line.trim_end(), "")
}

/// The start of the character at `position`, or the end of `text`.
fn floor(text: &str, position: usize) -> usize {
    let mut position = position.min(text.len());
    while !text.is_char_boundary(position) {
        position -= 1;
    }
    position
}

/// The quoted form of a character: a dot for invisible characters, and characters that would move the marker.
fn plain(c: char) -> char {
    match c {
        '\t' | '\r' => ' ',
        c if c.is_control() => '·',
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => '·',
        c => c,
    }
}

/// A text without invisible characters, and without characters that move the text after them. Its lines stay.
pub(super) fn visible(text: String) -> String {
    let shown = |c: char| if c == '\n' { c } else { plain(c) };
    if text.chars().all(|c| shown(c) == c) { text } else { text.chars().map(shown).collect() }
}

#[cfg(test)]
mod tests {
    use super::{Span, excerpt};

    #[test]
    fn marks_the_place_under_its_line() {
        let text = "{\n  \"a\": oops,\n}";
        assert_eq!(excerpt(text, Span::new(9, 13)), "line 2:   \"a\": oops,\n               ^^^^");
    }

    #[test]
    fn shortens_a_long_line_around_the_place() {
        let text = format!("{}HERE{}", "a".repeat(500), "b".repeat(500));
        let quoted = excerpt(&text, Span::new(500, 504));
        assert!(quoted.lines().all(|line| line.chars().count() < 90), "{quoted}");
        let marker = quoted.lines().nth(1).unwrap().find('^').unwrap();
        let place: String = quoted.lines().next().unwrap().chars().skip(marker).take(4).collect();
        assert_eq!(place, "HERE");
    }

    #[test]
    fn is_safe_on_any_span() {
        let text = "é\u{202e}😀\n\t\u{0}x";
        for start in 0..text.len() + 3 {
            for end in 0..text.len() + 3 {
                let quoted = excerpt(text, Span { start, end });
                assert!(quoted.contains('^'));
                assert!(!quoted.contains('\u{202e}'));
            }
        }
    }
}
