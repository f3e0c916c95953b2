//! Numbers keep their spelling; a few other spellings can only mean one number.

use super::{BoxedViolation, Flow, JsonReader, LastKind, Token};
use crate::reply::{Code, Number, RepairCode, Span, Value};

impl JsonReader {
    pub(super) fn in_number(
        &mut self,
        text: &str,
        start: usize,
        mut digits: usize,
        end: bool,
    ) -> Result<Flow, BoxedViolation> {
        let bytes = text.as_bytes();
        while let Some(&byte) = bytes.get(self.position) {
            match byte {
                _ if digits > self.settings.limits.digits => break,
                b'0'..=b'9' => digits += 1,
                b'.' | b'+' | b'-' | b'_' | b'a'..=b'z' | b'A'..=b'Z' => {}
                _ => break,
            }
            self.position += 1;
        }
        self.token = Token::Number { start, digits };
        if digits > self.settings.limits.digits {
            let message = format!("expected a number of at most {} digits: got more", self.settings.limits.digits);
            return Err(self.violation(Code::NumberTooLarge, message, Span::new(start, self.position)));
        }
        let next = bytes.get(self.position).copied();
        if next.is_none() && !(end && self.stack.is_empty()) {
            return Ok(Flow::More);
        }
        if next == Some(b'/') && bytes.get(self.position + 1).is_none() && !end {
            return Ok(Flow::More);
        }
        let span = Span::new(start, self.position);
        let spelled = span.of(text);
        if !self.delimited(text, next) {
            return Err(self.invalid_number(text, span));
        }
        let number = if is_json(spelled.as_bytes()) {
            Number::from_valid(spelled)
        } else if let Some(meant) = meaning(spelled) {
            self.repair(RepairCode::NumberForm, span)?;
            Number::from_valid(&meant)
        } else {
            let word = spelled.trim_start_matches(['+', '-']).to_ascii_lowercase();
            return Err(match word.as_str() {
                "nan" | "infinity" | "inf" => self.non_finite(span, spelled),
                _ => self.invalid_number(text, span),
            });
        };
        if !self.settings.plain && number.is_infinite() {
            return Err(self.non_finite(span, spelled));
        }
        self.token = Token::None;
        self.deliver(Value::Number(number), span, LastKind::Number)
    }

    /// Whether a number may end before `next`.
    fn delimited(&self, text: &str, next: Option<u8>) -> bool {
        match next {
            None | Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b']' | b'}' | b'#' | b'<' | b'`' | b'\\') => true,
            Some(b'/') => matches!(text.as_bytes().get(self.position + 1), Some(b'/' | b'*')),
            Some(0x80..) => text.get(self.position..).and_then(|rest| rest.chars().next()).is_some_and(|c| {
                c.is_whitespace()
                    || matches!(c, '，' | '、' | '﹐' | '､' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}')
            }),
            Some(byte) => self.settings.ends.iter().any(|tag| tag.first() == byte),
        }
    }

    fn invalid_number(&self, text: &str, span: Span) -> BoxedViolation {
        // With the character that makes it no number, where it is one but for that.
        let next =
            text.get(span.end..).and_then(|rest| rest.chars().next()).filter(|_| is_json(span.of(text).as_bytes()));
        let found: String = span.of(text).chars().take(40).chain(next).collect();
        Box::new(
            self.violation(Code::InvalidNumber, format!("expected a number or text in quotes: got {found}"), span)
                .found(found)
                .hint("write the number out, or put the text in double quotes"),
        )
    }

    pub(super) fn non_finite(&self, span: Span, found: &str) -> BoxedViolation {
        let found: String = found.chars().take(40).collect();
        let message = format!("expected a finite number: got {found}");
        Box::new(self.violation(Code::NonFiniteNumber, message, span).found(found).hint("use null, or leave it out"))
    }
}

/// Whether a spelling is JSON's own.
fn is_json(mut bytes: &[u8]) -> bool {
    let digits = |bytes: &mut &[u8]| -> usize {
        let count = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        *bytes = bytes.get(count..).unwrap_or_default();
        count
    };
    if let [b'-', rest @ ..] = bytes {
        bytes = rest;
    }
    let zero = bytes.first() == Some(&b'0');
    match digits(&mut bytes) {
        0 => return false,
        1 => {}
        _ if zero => return false,
        _ => {}
    }
    if let [b'.', rest @ ..] = bytes {
        bytes = rest;
        if digits(&mut bytes) == 0 {
            return false;
        }
    }
    if let [b'e' | b'E', rest @ ..] = bytes {
        bytes = rest;
        if let [b'+' | b'-', rest @ ..] = bytes {
            bytes = rest;
        }
        if digits(&mut bytes) == 0 {
            return false;
        }
    }
    bytes.is_empty()
}

/// The number that another spelling means: `-? digits (. digits)? ([eE] [+-]? digits)?` with a plus sign, a bare point
/// or single underscores.
fn meaning(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut position = 0;
    let mut meant = String::with_capacity(text.len() + 1);
    match bytes.first() {
        Some(b'-') => {
            meant.push('-');
            position = 1;
        }
        Some(b'+') => position = 1,
        _ => {}
    }
    let whole = digits(bytes, &mut position, &mut meant)?;
    let first = bytes.get(position - whole.bytes).copied();
    if whole.digits > 1 && first == Some(b'0') {
        return None;
    }
    if whole.digits == 0 {
        meant.push('0');
    }
    let mut fraction = Run::default();
    if bytes.get(position) == Some(&b'.') {
        position += 1;
        meant.push('.');
        let run = digits(bytes, &mut position, &mut meant)?;
        if run.digits == 0 {
            meant.push('0');
        }
        fraction = run;
    }
    if whole.digits + fraction.digits == 0 {
        return None;
    }
    if let Some(exponent @ (b'e' | b'E')) = bytes.get(position) {
        position += 1;
        meant.push(char::from(*exponent));
        if let Some(sign @ (b'+' | b'-')) = bytes.get(position) {
            position += 1;
            meant.push(char::from(*sign));
        }
        if digits(bytes, &mut position, &mut meant)?.digits == 0 {
            return None;
        }
    }
    (position == bytes.len()).then_some(meant)
}

#[derive(Default)]
struct Run {
    digits: usize,
    bytes: usize,
}

/// A run of digits with single underscores between them; `None` if an underscore has another position.
fn digits(bytes: &[u8], position: &mut usize, meant: &mut String) -> Option<Run> {
    let mut run = Run::default();
    let mut underscore = false;
    while let Some(&byte) = bytes.get(*position) {
        match byte {
            b'0'..=b'9' => {
                meant.push(char::from(byte));
                run.digits += 1;
                underscore = false;
            }
            b'_' if run.digits > 0 && !underscore => {
                underscore = true;
            }
            b'_' => return None,
            _ => break,
        }
        run.bytes += 1;
        *position += 1;
    }
    (!underscore).then_some(run)
}
