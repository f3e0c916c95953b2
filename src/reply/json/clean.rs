//! The quick way through clean JSON: a string or number that stands in the text whole is read in one step. The reader's
//! ordinary steps handle all other text, with equal results.

use super::{BoxedViolation, Flow, JsonReader, LastKind};
use crate::reply::{Number, Span, Value};

impl JsonReader {
    /// The string in double quotes that begins here, if it holds no escape and no control character. As a value it may
    /// also be the beginning of three quotes, which is left alone.
    fn clean_string<'a>(&self, text: &'a str) -> Option<&'a str> {
        let start = self.position + 1;
        let length = plain(text.as_bytes().get(start..)?)?;
        text.get(start..start + length)
    }

    /// Takes the key that begins with the double quote here; `None` if it is not clean.
    pub(super) fn clean_key(&mut self, text: &str) -> Result<Option<Flow>, BoxedViolation> {
        let Some(key) = self.clean_string(text).filter(|key| key.len() <= self.settings.limits.key_bytes) else {
            return Ok(None);
        };
        let span = Span::new(self.position, self.position + key.len() + 2);
        self.string.passed(span.start);
        self.position = span.end;
        self.set_key(key, span, true)?;
        Ok(Some(if text.as_bytes().get(self.position) == Some(&b':') { self.colon() } else { Flow::Go }))
    }

    /// Takes the string that begins with the double quote here; `None` if it is not clean.
    pub(super) fn clean_text(&mut self, text: &str) -> Result<Option<Flow>, BoxedViolation> {
        let Some(content) = self.clean_string(text).filter(|content| !content.is_empty()) else { return Ok(None) };
        let span = Span::new(self.position, self.position + content.len() + 2);
        self.check_braces(content, span)?;
        self.string.passed(span.start);
        self.position = span.end;
        self.deliver(Value::from(content), span, LastKind::String).map(Some)
    }

    /// Takes the integer or decimal that begins here; `None` if it has another form or may continue.
    pub(super) fn clean_number(&mut self, text: &str) -> Result<Option<Flow>, BoxedViolation> {
        let start = self.position;
        let Some(length) = text.as_bytes().get(start..).and_then(decimal) else { return Ok(None) };
        let span = Span::new(start, start + length);
        if length > self.settings.limits.digits {
            return Ok(None);
        }
        self.position = span.end;
        self.deliver(Value::Number(Number::from_valid(span.of(text))), span, LastKind::Number).map(Some)
    }
}

/// The number of bytes before the closing double quote; `None` if another byte must be handled first.
fn plain(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xff;
    const TOPS: u64 = ONES << 7;
    // The lowest set bit marks the first byte that is zero; those above it may be wrong.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
    let mut at = 0;
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let word = u64::from_le_bytes(*word);
        let quotes = zeros(word ^ (ONES * u64::from(b'"')));
        let escapes = zeros(word ^ (ONES * u64::from(b'\\')));
        let controls = word.wrapping_sub(ONES * 0x20) & !word & TOPS;
        let stops = quotes | escapes | controls;
        if stops != 0 {
            at += stops.trailing_zeros() as usize / 8;
            return (bytes.get(at) == Some(&b'"')).then_some(at);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    let stop = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20))?;
    (rest.get(stop) == Some(&b'"')).then_some(at + stop)
}

/// The length of a number without exponent, if the next byte proves its end.
fn decimal(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let sign = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(sign);
    if whole == 0 || whole > 1 && bytes.get(sign) == Some(&b'0') {
        return None;
    }
    let mut length = sign + whole;
    if bytes.get(length) == Some(&b'.') {
        let fraction = digits(length + 1);
        if fraction == 0 {
            return None;
        }
        length += 1 + fraction;
    }
    matches!(bytes.get(length), Some(b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t')).then_some(length)
}
