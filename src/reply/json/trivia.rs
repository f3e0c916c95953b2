//! What stands between tokens and carries nothing: blanks and comments that JSON does not know. Dots in place of content
//! are none of it.

use super::{Fault, Flow, Machine, Token};
use crate::reply::tag::{Match, control_token};
use crate::reply::{Code, RepairCode, Span};

impl Machine {
    /// Comments, blanks that JSON does not know, written-out blanks and dots for left-out content; `None` for anything else.
    pub(super) fn trivia(&mut self, text: &str, byte: u8, end: bool) -> Result<Option<Flow>, Fault> {
        let start = self.position;
        let next = text.as_bytes().get(start + 1).copied();
        match byte {
            b'/' | b'\\' | b'.' if next.is_none() && !end => return Ok(Some(Flow::More)),
            b'<' => match control_token(text.get(start..).unwrap_or(""), end) {
                // The model has ended here.
                Match::Yes { .. } => return Err(self.truncated(text.get(..start).unwrap_or(text))),
                Match::Partial => return Ok(Some(Flow::More)),
                Match::No => return Ok(None),
            },
            b'#' => self.token = Token::LineComment { start },
            b'/' if next == Some(b'/') => self.token = Token::LineComment { start },
            b'/' if next == Some(b'*') => {
                self.position += 2;
                self.token = Token::BlockComment { start };
            }
            b'\\' if matches!(next, Some(b'n' | b'r' | b't')) => {
                self.last.newline |= next == Some(b'n');
                self.blank(RepairCode::EscapedWhitespace, 2)?;
            }
            b'.' if next == Some(b'.') => {
                let rest = text.get(start..).unwrap_or("");
                if rest.len() < 3 && !end {
                    return Ok(Some(Flow::More));
                }
                if rest.starts_with("...") {
                    return Err(self.elided(Span::new(start, start + 3)));
                }
                return Ok(None);
            }
            0x0b | 0x0c => self.blank(RepairCode::UnicodeWhitespace, 1)?,
            0x80.. => {
                let Some(c) = text.get(start..).and_then(|rest| rest.chars().next()) else { return Ok(None) };
                match c {
                    '…' => return Err(self.elided(Span::new(start, start + c.len_utf8()))),
                    '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => {}
                    c if c.is_whitespace() => self.last.newline |= matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}'),
                    _ => return Ok(None),
                }
                self.blank(RepairCode::UnicodeWhitespace, c.len_utf8())?;
            }
            _ => return Ok(None),
        }
        Ok(Some(Flow::Go))
    }

    pub(super) fn trivia_or(
        &mut self,
        text: &str,
        byte: u8,
        end: bool,
        fault: fn(&Self, &str) -> Fault,
    ) -> Result<Flow, Fault> {
        match self.trivia(text, byte, end)? {
            Some(flow) => Ok(flow),
            None => Err(fault(self, text)),
        }
    }

    fn blank(&mut self, code: RepairCode, length: usize) -> Result<(), Fault> {
        self.repair(code, Span::new(self.position, self.position + length))?;
        self.position += length;
        Ok(())
    }

    fn elided(&self, place: Span) -> Fault {
        Box::new(
            self.violation(
                Code::ElidedContent,
                "expected all of the content: got dots in place of a part of it",
                place,
            )
            .hint("write out what was left out"),
        )
    }

    pub(super) fn in_line_comment(&mut self, text: &str, start: usize) -> Result<Flow, Fault> {
        let bytes = text.as_bytes();
        let rest = bytes.get(self.position..).unwrap_or_default();
        let Some(offset) = memchr::memchr(b'\n', rest) else {
            self.position = bytes.len();
            return Ok(Flow::More);
        };
        self.position += offset;
        self.end_comment(text, Span::new(start, self.position))
    }

    pub(super) fn in_block_comment(&mut self, text: &str, start: usize) -> Result<Flow, Fault> {
        let bytes = text.as_bytes();
        let rest = bytes.get(self.position..).unwrap_or_default();
        let Some(offset) = memchr::memchr(b'*', rest) else {
            self.position = bytes.len();
            return Ok(Flow::More);
        };
        self.position += offset;
        match bytes.get(self.position + 1) {
            None => Ok(Flow::More),
            Some(b'/') => {
                self.position += 2;
                let span = Span::new(start, self.position);
                self.last.newline |= memchr::memchr(b'\n', span.of(text).as_bytes()).is_some();
                self.end_comment(text, span)
            }
            Some(_) => {
                self.position += 1;
                Ok(Flow::Go)
            }
        }
    }

    fn end_comment(&mut self, text: &str, span: Span) -> Result<Flow, Fault> {
        self.token = Token::None;
        let whole = span.of(text);
        if !whole.starts_with("/*") && (whole.contains(['}', ']']) || whole.contains("\":")) {
            self.swallowed.get_or_insert(span);
        }
        let body = whole.trim_start_matches(['/', '*', '#']).trim_start();
        if body.starts_with("...") || body.starts_with('…') {
            return Err(self.elided(span));
        }
        self.repair(RepairCode::Comment, span)?;
        Ok(Flow::Go)
    }
}
