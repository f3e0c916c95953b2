//! Text between tokens without a meaning: blanks, and comments that JSON does not know. Dots in place of content
//! are none of it.

use super::frame::Frame;
use super::remark::{closes_brackets, is_plain};
use super::{BoxedViolation, Flow, JsonReader, LastKind, State, Token};
use crate::reply::doubt::words_of;
use crate::reply::tag::{Match, control_token};
use crate::reply::{Code, RepairCode, Span};

impl JsonReader {
    /// Comments, blanks that JSON does not know, written-out blanks and dots for left-out content; `None` for anything else.
    pub(super) fn trivia(&mut self, text: &str, byte: u8, end: bool) -> Result<Option<Flow>, BoxedViolation> {
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
            b'#' | b'/' if start < self.settings.prose => return Ok(None),
            // `{#` begins a comment of a template, whatever follows.
            b'#' if text.get(..start).is_some_and(|before| before.ends_with('{')) => return Ok(None),
            b'#' => self.token = Token::LineComment { start },
            b'/' if next == Some(b'/') => self.token = Token::LineComment { start },
            b'/' if next == Some(b'*') => {
                self.position += 2;
                self.token = Token::BlockComment { start };
            }
            b'\\' if matches!(next, Some(b'n' | b'r' | b't')) => {
                self.recent.last.newline |= next == Some(b'n');
                if let Some(place) = self.doubts.backslash {
                    return Err(self.ambiguous(place, None));
                }
                self.doubts.written_blank.get_or_insert(Span::new(start, start + 2));
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
                    c if c.is_whitespace() => {
                        self.recent.last.newline |= matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}');
                    }
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
        fault: fn(&Self, &str) -> BoxedViolation,
    ) -> Result<Flow, BoxedViolation> {
        match self.trivia(text, byte, end)? {
            Some(flow) => Ok(flow),
            None => Err(fault(self, text)),
        }
    }

    fn blank(&mut self, code: RepairCode, length: usize) -> Result<(), BoxedViolation> {
        self.repair(code, Span::new(self.position, self.position + length))?;
        self.position += length;
        Ok(())
    }

    pub(super) fn elided(&self, place: Span) -> BoxedViolation {
        Box::new(
            self.violation(
                Code::ElidedContent,
                "expected all of the content: got dots or a comment in place of a part of it",
                place,
            )
            .hint("write out what was left out"),
        )
    }

    pub(super) fn in_line_comment(&mut self, text: &str, start: usize) -> Result<Flow, BoxedViolation> {
        let bytes = text.as_bytes();
        let rest = bytes.get(self.position..).unwrap_or_default();
        let Some(offset) = memchr::memchr(b'\n', rest) else {
            self.position = bytes.len();
            return Ok(Flow::More);
        };
        self.position += offset;
        self.end_comment(text, Span::new(start, self.position))
    }

    pub(super) fn in_block_comment(&mut self, text: &str, start: usize) -> Result<Flow, BoxedViolation> {
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
                self.recent.last.newline |= memchr::memchr(b'\n', span.of(text).as_bytes()).is_some();
                self.end_comment(text, span)
            }
            Some(_) => {
                self.position += 1;
                Ok(Flow::Go)
            }
        }
    }

    /// A comment that is no plain remark.
    pub(super) fn changing_comment(&self, place: Span) -> BoxedViolation {
        let message = "expected values alone: got a comment that may change them";
        let violation = self.violation(Code::UnexpectedToken, message, place);
        Box::new(violation.hint("write the values that you mean, without comments"))
    }

    fn end_comment(&mut self, text: &str, span: Span) -> Result<Flow, BoxedViolation> {
        self.token = Token::None;
        self.recent.comment = self.position;
        let whole = span.of(text);
        let swallows = !whole.starts_with("/*") && closes_brackets(whole);
        if swallows {
            self.doubts.swallowed.get_or_insert(span);
        }
        let body = whole.trim_start_matches(['/', '*', '#']).trim_end_matches(['/', '*']).trim();
        let last = self.recent.last;
        let behind = last.span.end >= self.recent.comma.end;
        let beside = text.get(last.span.end..span.start).is_some_and(|between| between.trim().is_empty());
        if whole.starts_with("//") && last.kind == LastKind::Number && beside && goes_on_a_number(body) {
            return Err(self.calculation(last.span));
        }
        let in_array = self.stack.last().is_some_and(Frame::is_array);
        let small = body.to_lowercase();
        let words: Vec<&str> = words_of(&small).collect();
        if says_left_out(body, &words) || in_array && behind && (small.contains('等') || says_more(&words)) {
            return Err(self.elided(span));
        }
        // The end of the text shows whether one has swallowed the rest of its line.
        if !swallows && !is_plain(body) {
            return Err(self.changing_comment(span));
        }
        // A comment up to the end of its line is about the member before its comma; any other one stands for a member.
        let line = text.get(self.recent.comma.end..span.start).unwrap_or("\n");
        let line = if whole.starts_with("/*") { "\n" } else { line };
        let in_place = match self.state {
            State::FirstKey | State::FirstElement => true,
            State::NextKey | State::NextElement => line.contains('\n'),
            _ => false,
        };
        if in_place {
            self.doubts.elision.get_or_insert(span);
        }
        self.repair(RepairCode::Comment, span)?;
        Ok(Flow::Go)
    }
}

/// Whether a comment behind a number may be the rest of a calculation: `7 // 2`, `7 // n`.
fn goes_on_a_number(comment: &str) -> bool {
    let variable = comment.len() <= 2 && comment.starts_with(char::is_alphabetic);
    variable || comment.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '(' | '-' | '.' | '*' | '+'))
}

/// Words of comments behind the last element of an array that say that more would follow.
const MORE: &[&str] = &[
    "additional",
    "continue",
    "continued",
    "continues",
    "ditto",
    "further",
    "likewise",
    "more",
    "other",
    "others",
    "remaining",
    "repeat",
    "repeated",
    "rest",
    "similar",
    "similarly",
    "todo",
    "usw",
];

/// Whether a comment behind an element says that others were left out.
fn says_more(words: &[&str]) -> bool {
    let number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let counted = words.windows(3).any(|three| matches!(three, [a, "of", b] if number(a) && number(b)));
    counted || words.iter().any(|word| MORE.contains(word))
}

/// Words of comments that say that something was left out.
const LEFT_OUT: &[&str] = &["omitted", "elided", "truncated", "abbreviated", "snipped", "unchanged", "etc"];
/// The same in several words.
const LEFT_OUT_PHRASES: &[&str] = &[
    "and so on",
    "and so forth",
    "and the rest",
    "the rest of",
    "rest of the",
    "and others",
    "and more",
    "and many more",
    "as above",
    "as before",
    "same as previous",
    "existing code",
    "previous code",
    "remaining items",
    "remaining entries",
    "other items",
    "other entries",
    "other fields",
    "goes here",
    "go here",
];

/// Whether a comment stands for content that was left out.
fn says_left_out(comment: &str, words: &[&str]) -> bool {
    if comment.starts_with("...") || comment.starts_with('…') || comment.ends_with("...") || comment.ends_with('…')
    {
        return true;
    }
    let counted = words
        .windows(2)
        .any(|pair| matches!(pair, [count, "more" | "others"] if count.bytes().all(|byte| byte.is_ascii_digit())));
    let joined = words.join(" ");
    counted
        || words.iter().any(|word| LEFT_OUT.contains(word))
        || LEFT_OUT_PHRASES.iter().any(|phrase| format!(" {joined} ").contains(&format!(" {phrase} ")))
}
