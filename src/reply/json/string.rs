//! Strings and keys: quotes, escapes and raw control characters. A string ends at its own quote, never at a tag.

use super::{BoxedViolation, Flow, JsonReader, LastKind, State, Token};
use crate::reply::{Code, RepairCode, Span, Value};

/// The quotes of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Quote {
    #[default]
    Double,
    Single,
    Curly,
    CurlySingle,
    TripleDouble,
    TripleSingle,
    Backtick,
    TripleBacktick,
}

impl Quote {
    const fn opening(self) -> &'static str {
        match self {
            Self::Double => "\"",
            Self::Single => "'",
            Self::Curly => "“",
            Self::CurlySingle => "‘",
            Self::TripleDouble => "\"\"\"",
            Self::TripleSingle => "'''",
            Self::Backtick => "`",
            Self::TripleBacktick => "```",
        }
    }

    const fn closing(self) -> &'static str {
        match self {
            Self::Curly => "”",
            Self::CurlySingle => "’",
            other => other.opening(),
        }
    }

    const fn repair(self) -> Option<RepairCode> {
        match self {
            Self::Double => None,
            Self::Single => Some(RepairCode::SingleQuotes),
            Self::Curly | Self::CurlySingle => Some(RepairCode::CurlyQuotes),
            Self::TripleDouble | Self::TripleSingle => Some(RepairCode::TripleQuotedString),
            Self::Backtick | Self::TripleBacktick => Some(RepairCode::BacktickString),
        }
    }

    /// Whether a backslash in it has JSON's meaning; the escapes inside other quotes are unknown.
    const fn escapes(self) -> bool {
        matches!(self, Self::Double | Self::Single | Self::Curly | Self::CurlySingle)
    }
}

/// The string that is being read.
#[derive(Debug, Default)]
pub(super) struct StringToken {
    pub(super) start: usize,
    quote: Quote,
    pub(super) key: bool,
    /// The decoded text, up to `from`.
    pub(super) decoded: String,
    /// The start of the text that needs no decoding.
    pub(super) from: usize,
    /// The first backslash that begins no escape.
    invalid: Option<Span>,
    /// The first escape that would change its meaning if backslashes were themselves.
    escape: Option<Span>,
    /// A raw control character was recorded.
    control: bool,
}

impl StringToken {
    /// A string in double quotes was read in one step.
    pub(super) fn passed(&mut self, start: usize) {
        self.start = start;
        self.quote = Quote::Double;
    }

    /// The start of its content.
    pub(super) fn content(&self) -> usize {
        self.start + self.quote.opening().len()
    }

    pub(super) fn is_double(&self) -> bool {
        self.quote == Quote::Double
    }
}

impl JsonReader {
    /// The quote at the current position: one, or three if a value may stand here.
    pub(super) fn open_quote(&mut self, text: &str, byte: u8, key: bool, end: bool) -> Result<Flow, BoxedViolation> {
        let mut quote = match byte {
            b'"' => Quote::Double,
            b'\'' => Quote::Single,
            _ => Quote::Backtick,
        };
        let bytes = text.as_bytes();
        let (second, third) = (bytes.get(self.position + 1), bytes.get(self.position + 2));
        if !key {
            if second.is_none() && !end || second == Some(&byte) && third.is_none() && !end {
                return Ok(Flow::More);
            }
            if second == Some(&byte) && third == Some(&byte) {
                quote = match quote {
                    Quote::Double => Quote::TripleDouble,
                    Quote::Single => Quote::TripleSingle,
                    _ => Quote::TripleBacktick,
                };
            }
        }
        if quote == Quote::TripleBacktick {
            // A word after the backticks names a language, or belongs to the text.
            match bytes.get(self.position + 3) {
                None if !end => return Ok(Flow::More),
                Some(byte) if byte.is_ascii_alphanumeric() => {
                    let message = "expected a string in double quotes: got a fence";
                    return Err(self.violation(
                        Code::UnexpectedToken,
                        message,
                        Span::new(self.position, self.position + 3),
                    ));
                }
                _ => {}
            }
        }
        self.open_string(quote, key)?;
        Ok(Flow::Go)
    }

    pub(super) fn open_string(&mut self, quote: Quote, key: bool) -> Result<(), BoxedViolation> {
        let start = self.position;
        self.position += quote.opening().len();
        if let Some(code) = quote.repair() {
            self.repair(code, Span::new(start, self.position))?;
        }
        if quote == Quote::Single {
            self.doubts.python.get_or_insert(start);
            if let Some(place) = self.doubts.foreign_escape {
                return Err(self.ambiguous(place, None));
            }
        }
        let mut decoded = std::mem::take(&mut self.string.decoded);
        decoded.clear();
        self.string = StringToken { start, quote, key, decoded, from: self.position, ..StringToken::default() };
        self.token = Token::String;
        Ok(())
    }

    /// Reads on in a string: to its end, an escape, or the end of the text.
    pub(super) fn in_string(&mut self, text: &str, end: bool) -> Result<Flow, BoxedViolation> {
        let bytes = text.as_bytes();
        let quote = self.string.quote;
        let closing = quote.closing();
        let first = closing.bytes().next().unwrap_or(b'"');
        loop {
            let rest = bytes.get(self.position..).unwrap_or_default();
            let stop = memchr::memchr2(first, b'\\', rest);
            let plain = rest.get(..stop.unwrap_or(rest.len())).unwrap_or_default();
            // One check of the whole text is faster than a search for the first one, which is rarely there.
            if !self.string.control
                && quote.escapes()
                && plain.iter().map(|byte| u8::from(*byte < 0x20)).fold(0, u8::max) == 1
            {
                // Quotes that span lines have line breaks in them by nature.
                let offset = plain.iter().position(|&byte| byte < 0x20).unwrap_or(0);
                self.string.control = true;
                let place = self.position + offset;
                self.repair(RepairCode::ControlCharInString, Span::new(place, place + 1))?;
            }
            let Some(stop) = stop else {
                self.position = bytes.len();
                return Ok(Flow::More);
            };
            self.position += stop;
            let rest = text.get(self.position..).unwrap_or("");
            if rest.starts_with('\\') {
                if !self.escape(text)? {
                    return Ok(Flow::More);
                }
            } else if rest.starts_with(closing) {
                if quote == Quote::Backtick && rest.len() < 2 && !end {
                    return Ok(Flow::More);
                }
                if quote == Quote::Backtick && rest.starts_with("``") {
                    return Err(self.run_of_backticks());
                }
                return self.end_string(text);
            } else if closing.starts_with(rest) {
                return Ok(Flow::More);
            } else {
                if rest.starts_with(quote.opening()) {
                    self.reopened(quote)?;
                }
                self.position += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
    }

    /// A second opening quote inside typographic quotes: which one the closing quote belongs to is a guess.
    fn reopened(&self, quote: Quote) -> Result<(), BoxedViolation> {
        if !matches!(quote, Quote::Curly | Quote::CurlySingle) {
            return Ok(());
        }
        let place = Span::new(self.position, self.position + quote.opening().len());
        let message = format!("expected '{}' before another '{}'", quote.closing(), quote.opening());
        let start = self.string.start;
        Err(Box::new(
            self.violation(Code::UnescapedQuote, message, place)
                .related(Span::new(start, start + quote.opening().len()), "the string begins here")
                .hint("use straight double quotes"),
        ))
    }

    /// Several backticks in a string in backticks: a fence, or text, or its end.
    fn run_of_backticks(&self) -> BoxedViolation {
        let start = self.string.start;
        let message = "expected one backtick to end the string: got several";
        Box::new(
            self.violation(Code::UnescapedQuote, message, Span::new(self.position, self.position + 2))
                .related(Span::new(start, start + 1), "the string begins here")
                .hint("use straight double quotes"),
        )
    }

    fn end_string(&mut self, text: &str) -> Result<Flow, BoxedViolation> {
        let mut decoded = std::mem::take(&mut self.string.decoded);
        let mut content = text.get(self.string.from..self.position).unwrap_or("");
        if !decoded.is_empty() {
            decoded.push_str(content);
            content = &decoded;
        }
        self.position += self.string.quote.closing().len();
        self.token = Token::None;
        let span = Span::new(self.string.start, self.position);
        if let Some(place) = self.string.invalid {
            self.repair(RepairCode::InvalidEscape, place)?;
        }
        if self.string.key {
            if content.len() > self.settings.limits.key_bytes {
                return Err(self.long_key(span));
            }
            self.set_key(content, span, true)?;
        } else {
            self.check_braces(content, span)?;
            debug_assert!(!matches!(self.state, State::FirstKey | State::NextKey | State::Colon));
            self.deliver(Value::from(content), span, LastKind::String)?;
        }
        self.string.decoded = decoded;
        Ok(if self.state == State::Done { Flow::Done } else { Flow::Go })
    }

    /// Refuses doubled braces in a string of an object with doubled braces: if a template was filled in, they mean
    /// single ones, else they don't.
    pub(super) fn check_braces(&self, content: &str, place: Span) -> Result<(), BoxedViolation> {
        if !self.doubts.doubled {
            return Ok(());
        }
        // A text that is an object itself has all of its braces doubled as well.
        let object =
            content.trim_start().strip_prefix("{{").is_some_and(|rest| rest.trim_start().starts_with(['"', '}']));
        if object || !["{{", "}}"].iter().any(|braces| content.contains(braces)) {
            return Ok(());
        }
        let message = "expected single braces: got doubled ones around the object and inside a string";
        Err(Box::new(self.violation(Code::UnexpectedToken, message, place).hint("write every brace once")))
    }

    /// The backslash at the current position; `false` if its escape is still incomplete.
    fn escape(&mut self, text: &str) -> Result<bool, BoxedViolation> {
        let rest = text.get(self.position..).unwrap_or("");
        let Some(next) = rest.chars().nth(1) else { return Ok(false) };
        let quote = self.string.quote;
        let place = Span::new(self.position, self.position + 1 + next.len_utf8());
        // If blanks between the tokens are written as escapes, the escapes in strings are doubled too.
        if !quote.escapes() || self.doubts.written_blank.is_some() {
            return Err(self.ambiguous(place, None));
        }
        self.doubts.backslash.get_or_insert(place);
        let decoded = match next {
            // Python keeps this backslash, and JSON drops it.
            '/' if quote == Quote::Single || self.doubts.python.is_some() => return Err(self.ambiguous(place, None)),
            '/' => {
                self.doubts.foreign_escape.get_or_insert(place);
                next
            }
            '"' | '\\' => next,
            '\'' if quote == Quote::Single => next,
            '\'' => {
                // It can only mean one thing, regardless of the rest of the string.
                self.repair(RepairCode::InvalidEscape, place)?;
                next
            }
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.unicode_escape(text),
            'x' | 'U' => return self.python_escape(text, next),
            'a' | 'v' | 'N' | '1'..='7' if quote == Quote::Single => return Err(self.ambiguous(place, None)),
            // Most languages write a character without a form as `\0`, in any quotes; only some continue a line that
            // ends in a backslash.
            '0' | '\n' | '\r' => return Err(self.ambiguous(place, None)),
            'a' | 'v' | 'N' | '1'..='7' => {
                // JSON knows no such escape, and the strings of a Python object mean another character by it.
                if self.doubts.python.is_some() {
                    return Err(self.ambiguous(place, None));
                }
                self.doubts.foreign_escape.get_or_insert(place);
                self.not_an_escape(place)?;
                return Ok(true);
            }
            _ => {
                self.not_an_escape(place)?;
                return Ok(true);
            }
        };
        if matches!(next, 'b' | 'f' | 'n' | 'r' | 't') {
            self.certain_escape(place)?;
        }
        self.decode(text, decoded, 2);
        Ok(true)
    }

    /// A backslash that is itself, unless the string also holds escapes.
    fn not_an_escape(&mut self, place: Span) -> Result<(), BoxedViolation> {
        if let Some(other) = self.string.escape {
            return Err(self.ambiguous(place, Some(other)));
        }
        if self.settings.policy == crate::reply::RepairPolicy::Strict {
            return Err(super::refused(RepairCode::InvalidEscape, place));
        }
        self.string.invalid.get_or_insert(place);
        self.position += 1;
        Ok(())
    }

    /// An escape that JSON knows, unless the string also holds backslashes that are themselves.
    fn certain_escape(&mut self, place: Span) -> Result<(), BoxedViolation> {
        if let Some(other) = self.string.invalid {
            return Err(self.ambiguous(place, Some(other)));
        }
        self.string.escape.get_or_insert(place);
        Ok(())
    }

    pub(super) fn ambiguous(&self, place: Span, other: Option<Span>) -> BoxedViolation {
        let message = if other.is_some() {
            "expected one meaning for the backslashes of a string: got some that are escapes and some that are not"
        } else {
            "expected one meaning for a backslash: got an escape that JSON does not have"
        };
        let fault = self
            .violation(Code::AmbiguousEscape, message, place)
            .hint("use double quotes, write each backslash of the text as \\\\ and any other character as itself or as \\u00e9");
        Box::new(match other {
            Some(other) => fault.related(other, "the other kind"),
            None => fault,
        })
    }

    /// `\xNN` or `\UNNNNNNNN`: a character in a string of Python's; elsewhere it could also be the text as it stands.
    fn python_escape(&mut self, text: &str, letter: char) -> Result<bool, BoxedViolation> {
        let wanted = if letter == 'x' { 2 } else { 8 };
        let digits = text.get(self.position + 2..).unwrap_or("").bytes().take(wanted);
        let hex: String = digits.clone().take_while(u8::is_ascii_hexdigit).map(char::from).collect();
        let place = Span::new(self.position, self.position + 2 + hex.len());
        if hex.len() < wanted {
            if digits.len() == hex.len() && text.len() == place.end {
                return Ok(false);
            }
            self.not_an_escape(Span::new(self.position, self.position + 2))?;
            return Ok(true);
        }
        let c = u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32);
        let Some(c) = c.filter(|_| self.string.quote == Quote::Single) else { return Err(self.ambiguous(place, None)) };
        self.certain_escape(place)?;
        self.repair(RepairCode::PythonEscape, place)?;
        self.decode(text, c, 2 + wanted);
        Ok(true)
    }

    fn unicode_escape(&mut self, text: &str) -> Result<bool, BoxedViolation> {
        let rest = text.get(self.position..).unwrap_or("");
        let unit = match hex(rest) {
            Hex::Unit(unit) => unit,
            Hex::Partial => return Ok(false),
            // The escape of other languages, which is never meant as text.
            Hex::No if rest.starts_with("\\u{") => {
                return Err(self.ambiguous(Span::new(self.position, self.position + 3), None));
            }
            Hex::No => {
                self.not_an_escape(Span::new(self.position, self.position + 2))?;
                return Ok(true);
            }
        };
        let place = Span::new(self.position, self.position + 6);
        if let Some(c) = char::from_u32(u32::from(unit)) {
            self.certain_escape(place)?;
            self.decode(text, c, 6);
            return Ok(true);
        }
        let second = match rest.get(6..) {
            Some("" | "\\") => return Ok(false),
            Some(second) if unit < 0xdc00 && second.starts_with("\\u") => hex(second),
            _ => Hex::No,
        };
        match second {
            Hex::Partial => Ok(false),
            Hex::Unit(low @ 0xdc00..=0xdfff) => {
                let scalar = 0x10000 + (u32::from(unit) - 0xd800) * 0x400 + (u32::from(low) - 0xdc00);
                self.certain_escape(place)?;
                self.decode(text, char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
                Ok(true)
            }
            _ => {
                let message = "expected both halves of a surrogate pair: got one";
                Err(Box::new(self.violation(Code::LoneSurrogate, message, place).hint("write the character itself")))
            }
        }
    }

    /// Adds the plain text before the escape at the current position, and the character of the escape.
    fn decode(&mut self, text: &str, c: char, length: usize) {
        self.string.decoded.push_str(text.get(self.string.from..self.position).unwrap_or(""));
        self.string.decoded.push(c);
        self.position += length;
        self.string.from = self.position;
    }
}

enum Hex {
    Unit(u16),
    Partial,
    No,
}

/// The four digits of `\uXXXX`, with which `rest` begins.
fn hex(rest: &str) -> Hex {
    let mut unit = 0_u16;
    for at in 2..6 {
        match rest.as_bytes().get(at).map(|byte| char::from(*byte).to_digit(16)) {
            None => return Hex::Partial,
            Some(None) => return Hex::No,
            Some(Some(digit)) => unit = unit << 4 | u16::try_from(digit).unwrap_or_default(),
        }
    }
    Hex::Unit(unit)
}
