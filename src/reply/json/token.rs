//! Between two tokens: the token that the next byte begins, and its meaning if JSON does not allow it.

use super::frame::{Frame, Key, Kind, quoted};
use super::string::Quote;
use super::{BoxedViolation, Flow, JsonReader, Last, LastKind, State, Token};
use crate::reply::tag::Match;
use crate::reply::{Code, RepairCode, RepairPolicy, Span, Value};
use compact_str::CompactString;

impl JsonReader {
    /// Skips blanks and takes the next token.
    pub(super) fn between(&mut self, text: &str, end: bool) -> Result<Flow, BoxedViolation> {
        let bytes = text.as_bytes();
        let from = self.position;
        while let Some(&byte) = bytes.get(self.position) {
            match byte {
                b' ' | b'\t' | b'\r' => {}
                b'\n' => self.recent.last.newline = true,
                _ => break,
            }
            self.position += 1;
        }
        self.recent.blanks += self.position - from;
        if self.recent.blanks > self.settings.limits.blanks {
            let message = format!("expected at most {} blanks in a row: got more", self.settings.limits.blanks);
            let place = self.position - (self.recent.blanks - self.settings.limits.blanks);
            return Err(self.violation(Code::LimitExceeded, message, Span::at(place)));
        }
        if self.state == State::Done {
            return Ok(Flow::Done);
        }
        let Some(&byte) = bytes.get(self.position) else { return Ok(Flow::More) };
        let flow = match self.state {
            State::After => self.after_value(text, byte, end)?,
            State::Colon if byte == b':' => self.colon(),
            State::Colon if byte >= 0x80 => {
                if self.wide(text, &['：', '︰', '﹕'])? {
                    self.colon_at_end()
                } else {
                    self.trivia_or(text, byte, end, Self::no_colon)?
                }
            }
            State::Colon => match self.trivia(text, byte, end)? {
                Some(flow) => flow,
                None => return Err(self.no_colon(text)),
            },
            State::FirstKey | State::NextKey if byte == b'"' => match self.clean_key(text)? {
                Some(flow) => flow,
                None => self.key_position(text, byte, end)?,
            },
            _ if byte == b'"' && !self.wants_record() => match self.clean_text(text)? {
                Some(flow) => flow,
                None => self.value_position(text, byte, end)?,
            },
            State::Value | State::FirstElement | State::NextElement
                if matches!(byte, b'0'..=b'9' | b'-') && !self.wants_record() =>
            {
                match self.clean_number(text)? {
                    Some(flow) => flow,
                    None => self.value_position(text, byte, end)?,
                }
            }
            _ if !self.stack.is_empty() && self.at_proven_end(text, byte, end) != Match::No => {
                return self.ends_early(text, byte, end);
            }
            State::FirstKey | State::NextKey => self.key_position(text, byte, end)?,
            _ => self.value_position(text, byte, end)?,
        };
        if flow == Flow::Go {
            self.recent.blanks = 0;
        }
        Ok(flow)
    }

    /// An end tag or closing fence in place of a key or value.
    fn ends_early(&mut self, text: &str, byte: u8, end: bool) -> Result<Flow, BoxedViolation> {
        if self.at_proven_end(text, byte, end) == Match::Partial {
            return Ok(Flow::More);
        }
        let due = if matches!(self.state, State::FirstKey | State::NextKey) { "a key" } else { "a value" };
        let message = format!("expected {due} here: the payload ended");
        let fault = self.violation(Code::Truncated, message, Span::at(self.position));
        let fault = match self.stack.last() {
            Some(frame) => fault.related(Span::new(frame.open, frame.open + 1), "opened here"),
            None => *fault,
        };
        Err(Box::new(fault.hint("write the reply again, whole")))
    }

    /// Passes a mark of East Asian width, if one of `marks` stands here.
    fn wide(&mut self, text: &str, marks: &[char]) -> Result<bool, BoxedViolation> {
        let place = self.character(text);
        if !place.of(text).starts_with(marks) {
            return Ok(false);
        }
        self.repair(RepairCode::WidePunctuation, place)?;
        self.position = place.end;
        Ok(true)
    }

    pub(super) fn colon(&mut self) -> Flow {
        self.position += 1;
        self.colon_at_end()
    }

    /// The colon that ends at the present position.
    fn colon_at_end(&mut self) -> Flow {
        if let Some(frame) = self.stack.last()
            && let Some(key) = &frame.key
        {
            self.output.committed |= key.quoted;
            self.output.meant |= frame.is_record() && self.settings.keys.contains(&key.text.as_str());
        }
        self.state = State::Value;
        Flow::Go
    }

    fn no_colon(&self, text: &str) -> BoxedViolation {
        let place = self.character(text);
        let Some(key) = self.stack.last().and_then(|frame| frame.key.as_ref()) else {
            return self.violation(Code::MissingColon, "expected ':'", place);
        };
        if let Some(string) = key.after_string {
            return self.unescaped(text, string);
        }
        let message = format!("expected ':' after the key {}: got {}", quoted(&key.text), self.found(text));
        Box::new(self.violation(Code::MissingColon, message, place).related(key.span, "the key"))
    }

    /// Takes the token at the beginning of a value.
    fn value_position(&mut self, text: &str, byte: u8, end: bool) -> Result<Flow, BoxedViolation> {
        if byte != b'{' && byte != b']' && byte != b'[' && self.wants_record() {
            return match self.trivia(text, byte, end)? {
                Some(flow) => Ok(flow),
                None => Err(self.no_record(self.character(text))),
            };
        }
        match byte {
            b'"' | b'\'' | b'`' => self.open_quote(text, byte, false, end),
            b'{' | b'[' => self.open(byte),
            b'0'..=b'9' | b'-' | b'+' => {
                self.token = Token::Number { start: self.position, digits: 0 };
                Ok(Flow::Go)
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => {
                self.token = Token::Word { start: self.position };
                Ok(Flow::Go)
            }
            b']' | b'}' if self.state == State::FirstElement => self.close(byte),
            b']' | b'}' if self.state == State::NextElement => {
                self.repair(RepairCode::TrailingComma, self.recent.comma)?;
                self.close(byte)
            }
            b'.' => match text.as_bytes().get(self.position + 1) {
                Some(b'0'..=b'9') => {
                    self.token = Token::Number { start: self.position, digits: 0 };
                    Ok(Flow::Go)
                }
                None if !end => Ok(Flow::More),
                _ => self.trivia_or(text, byte, end, Self::no_value),
            },
            0x80.. if self.open_curly(text, false)? => Ok(Flow::Go),
            _ => self.trivia_or(text, byte, end, Self::no_value),
        }
    }

    fn no_value(&self, text: &str) -> BoxedViolation {
        let place = self.character(text);
        let rest = text.get(self.position..).unwrap_or("");
        let c = rest.chars().next().unwrap_or(' ');
        if c.is_alphabetic() || matches!(c, '/' | '~' | '@' | '.') {
            return self.unquoted_value(text, place);
        }
        let expected = if self.state == State::Value { "a value" } else { "a value or ']'" };
        self.violation(Code::UnexpectedToken, format!("expected {expected}: got {}", self.found(text)), place)
    }

    /// Takes the token at the beginning of a key.
    fn key_position(&mut self, text: &str, byte: u8, end: bool) -> Result<Flow, BoxedViolation> {
        match byte {
            b'"' | b'\'' => self.open_quote(text, byte, true, end),
            b'}' | b']' if self.state == State::FirstKey => self.close(byte),
            b'}' | b']' => {
                self.repair(RepairCode::TrailingComma, self.recent.comma)?;
                self.close(byte)
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => {
                self.token = Token::Word { start: self.position };
                Ok(Flow::Go)
            }
            b'{' if self.state == State::FirstKey && !self.in_doubled() => self.open_doubled(),
            0x80.. if self.open_curly(text, true)? => Ok(Flow::Go),
            0x80.. if self.character(text).of(text).starts_with(char::is_alphabetic) => {
                self.token = Token::Word { start: self.position };
                Ok(Flow::Go)
            }
            _ => self.trivia_or(text, byte, end, Self::no_key),
        }
    }

    fn in_doubled(&self) -> bool {
        matches!(self.stack.iter().rev().nth(1), Some(frame) if matches!(frame.kind, Kind::Doubled(_)))
    }

    fn no_key(&self, text: &str) -> BoxedViolation {
        let expected = if self.state == State::FirstKey { "a key in quotes or '}'" } else { "a key in quotes" };
        let message = format!("expected {expected}: got {}", self.found(text));
        self.violation(Code::UnexpectedToken, message, self.character(text))
    }

    /// After a value inside an array or object.
    fn after_value(&mut self, text: &str, byte: u8, end: bool) -> Result<Flow, BoxedViolation> {
        let Some(frame) = self.stack.last() else { return Ok(Flow::Done) };
        let (array, doubled) = (frame.is_array(), matches!(frame.kind, Kind::Doubled(_)));
        match byte {
            b',' if !doubled => {
                self.after_strays()?;
                self.recent.comma = Span::new(self.position, self.position + 1);
                self.position += 1;
                self.state = if array { State::NextElement } else { State::NextKey };
                return Ok(Flow::Go);
            }
            0x80.. if !doubled && self.wide(text, &['，', '、', '﹐', '､'])? => {
                self.after_strays()?;
                self.recent.comma = Span::new(self.position, self.position);
                self.state = if array { State::NextElement } else { State::NextKey };
                return Ok(Flow::Go);
            }
            b'}' | b']' => return self.close(byte),
            _ => {}
        }
        match self.at_proven_end(text, byte, end) {
            Match::Yes { length, .. } => {
                self.output.proven = Some(self.position + length);
                return self.close_all(text);
            }
            Match::Partial => return Ok(Flow::More),
            Match::No => {}
        }
        if let Some(flow) = self.trivia(text, byte, end)? {
            return Ok(flow);
        }
        self.after_strays()?;
        if doubled {
            let message = format!("expected a second '}}': got {}", self.found(text));
            return Err(self.violation(Code::UnexpectedToken, message, self.character(text)));
        }
        self.missing_comma(text, byte, array, end)
    }

    /// Another token in place of a comma.
    fn missing_comma(&mut self, text: &str, byte: u8, array: bool, end: bool) -> Result<Flow, BoxedViolation> {
        let Last { span, kind, newline } = self.recent.last;
        let c = text.get(self.position..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
        let quoted = matches!(c, '"' | '\'' | '“' | '‘');
        let key = quoted || matches!(c, '_' | '$') || c.is_ascii_alphabetic();
        let value = key || matches!(byte, b'{' | b'[' | b'-' | b'`') || byte.is_ascii_digit();
        // A line of a text may look like a key without quotes: `"text": "print("`, and on the next line `Note: …`. In a
        // list of Python, texts without a comma between them are one.
        let joined = array && span.of(text).starts_with('\'');
        if kind == LastKind::String && byte != b':' && (!newline || !array && key && !quoted || joined) {
            return Err(self.unescaped(text, span));
        }
        if kind == LastKind::Number && !newline && byte == b'-' {
            return Err(self.calculation(span));
        }
        if kind == LastKind::Number && !newline && array && byte.is_ascii_digit() {
            // Three digits after a blank may be the next group of one number, and any may be decimals behind a point.
            let rest = text.as_bytes().get(self.position..).unwrap_or_default();
            let digits = rest.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
            let decimals = span.of(text).ends_with('.');
            if !decimals && digits == rest.len() && digits < 4 && !end {
                return Ok(Flow::More);
            }
            if !decimals && digits != 3 {
                return self.added_comma(array, span);
            }
            let message = "expected ',' between two numbers, or one number without blanks: got a blank";
            return Err(self.violation(Code::InvalidNumber, message, span));
        }
        if !(key || array && value) {
            let expected = if array { "',' or ']'" } else { "',' or '}'" };
            let message = format!("expected {expected} after the value: got {}", self.found(text));
            return Err(self.violation(Code::UnexpectedToken, message, self.character(text)));
        }
        self.added_comma(array, span)
    }

    /// Goes on as if a comma stood behind the last value.
    fn added_comma(&mut self, array: bool, last: Span) -> Result<Flow, BoxedViolation> {
        self.repair(RepairCode::MissingComma, Span::at(last.end))?;
        self.recent.comma = Span::at(last.end);
        self.state = if array { State::NextElement } else { State::NextKey };
        Ok(Flow::Go)
    }

    /// A number that something is done with.
    pub(super) fn calculation(&self, number: Span) -> BoxedViolation {
        let message = "expected one number, or ',' behind it: got a calculation";
        Box::new(self.violation(Code::InvalidNumber, message, number).hint("write the result of the calculation"))
    }

    /// A string that can't end at its closing quote.
    fn unescaped(&self, text: &str, string: Span) -> BoxedViolation {
        let mut characters = string.of(text).chars();
        let opening = Span::new(string.start, string.start + characters.next().map_or(0, char::len_utf8));
        let quote = Span::new(string.end - characters.next_back().map_or(0, char::len_utf8), string.end);
        let which = match quote.of(text) {
            "'" => "single ",
            "”" | "“" | "’" | "‘" => "typographic ",
            _ => "",
        };
        let found = self.found(text);
        let message =
            format!("expected ',' or a closing bracket after the {which}quote that ends the string here: got {found}");
        let hint = if which.is_empty() {
            "escape each quote inside a string as \\\""
        } else {
            "write each string in straight double quotes, and each such quote inside it as \\\""
        };
        Box::new(
            self.violation(Code::UnescapedQuote, message, quote)
                .related(opening, "the string begins here")
                .found(found)
                .hint(hint),
        )
    }

    /// A word: a key without quotes, a literal, or text that should have quotes.
    pub(super) fn in_word(&mut self, text: &str, start: usize, end: bool) -> Result<Flow, BoxedViolation> {
        let rest = text.get(self.position..).unwrap_or("");
        let length = rest
            .char_indices()
            .find(|&(_, c)| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '-')))
            .map(|(offset, _)| offset);
        let Some(length) = length else {
            self.position = text.len();
            if !(end && self.stack.is_empty()) {
                return Ok(Flow::More);
            }
            return self.word(text, Span::new(start, text.len()));
        };
        self.position += length;
        self.word(text, Span::new(start, self.position))
    }

    fn word(&mut self, text: &str, span: Span) -> Result<Flow, BoxedViolation> {
        self.token = Token::None;
        let word = span.of(text);
        if matches!(self.state, State::FirstKey | State::NextKey) {
            if word.len() > self.settings.limits.key_bytes {
                return Err(self.long_key(span));
            }
            self.set_key(word, span, false)?;
            self.repair(RepairCode::UnquotedKey, span)?;
            return Ok(Flow::Go);
        }
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ => {
                let (value, code) = match word.to_ascii_lowercase().as_str() {
                    "true" => (
                        Value::Bool(true),
                        if word == "True" { RepairCode::PythonLiteral } else { RepairCode::LiteralCase },
                    ),
                    "false" => (
                        Value::Bool(false),
                        if word == "False" { RepairCode::PythonLiteral } else { RepairCode::LiteralCase },
                    ),
                    "none" => {
                        (Value::Null, if word == "None" { RepairCode::PythonLiteral } else { RepairCode::LiteralCase })
                    }
                    "null" => (Value::Null, RepairCode::LiteralCase),
                    "nan" | "infinity" | "inf" => return Err(self.non_finite(span, word)),
                    _ => return Err(self.unquoted_value(text, span)),
                };
                self.repair(code, span)?;
                value
            }
        };
        self.deliver(value, span, LastKind::Other)
    }

    pub(super) fn set_key(&mut self, text: &str, span: Span, quoted: bool) -> Result<(), BoxedViolation> {
        let text = self.own_key(text, span)?;
        let before = self.like_before(text);
        let fresh = before.is_some();
        let text = before.unwrap_or_else(|| CompactString::new(text));
        // A comma that was added stands right after the value before it.
        let after_string = (self.recent.last.kind == LastKind::String
            && self.recent.comma == Span::at(self.recent.last.span.end))
        .then_some(self.recent.last.span);
        if let Some(frame) = self.stack.last_mut() {
            self.output.meant |= quoted && frame.is_record() && self.settings.keys.contains(&text.as_str());
            frame.key = Some(Key { text, span, quoted, fresh, after_string });
        }
        self.doubts.elision = None;
        self.state = State::Colon;
        Ok(())
    }

    /// The key of a record that `text` names: in another case, or by another name if the policy is lenient.
    fn own_key<'a>(&mut self, text: &'a str, span: Span) -> Result<&'a str, BoxedViolation> {
        if !self.stack.last().is_some_and(Frame::is_record) || self.settings.own.contains(&text) {
            return Ok(text);
        }
        let spelled = |key: &&&str| letters(key).eq(letters(text));
        if let Some(key) = self.settings.own.iter().find(spelled) {
            self.repair(RepairCode::KeyCase, span)?;
            return Ok(key);
        }
        let lenient = self.settings.policy == RepairPolicy::Lenient;
        let alias = self.settings.aliases.iter().find(|(alias, _)| lenient && letters(alias).eq(letters(text)));
        match alias {
            Some((_, key)) => {
                self.repair(RepairCode::KeyAlias, span)?;
                Ok(key)
            }
            None => Ok(text),
        }
    }

    pub(super) fn long_key(&self, span: Span) -> BoxedViolation {
        let message = format!("expected keys of at most {} bytes: got a longer one", self.settings.limits.key_bytes);
        self.violation(Code::LimitExceeded, message, span)
    }

    fn unquoted_value(&self, text: &str, span: Span) -> BoxedViolation {
        let found: String = span.of(text).chars().take(40).collect();
        Box::new(
            self.violation(
                Code::UnquotedValue,
                format!("expected text in double quotes: got {found} without them"),
                span,
            )
            .found(found)
            .hint("a value that is no number, true, false or null stands in double quotes"),
        )
    }

    /// The character at the present position.
    pub(super) fn character(&self, text: &str) -> Span {
        let length = text.get(self.position..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        Span::new(self.position, self.position + length)
    }

    /// The text at the current position, for a message.
    pub(super) fn found(&self, text: &str) -> String {
        match text.get(self.position..).and_then(|rest| rest.chars().next()) {
            Some('\'') => "a single quote".to_owned(),
            Some(c) => format!("'{c}'"),
            None => "the end of the text".to_owned(),
        }
    }

    /// Opens a string or key in a typographic quote, if one stands here.
    fn open_curly(&mut self, text: &str, key: bool) -> Result<bool, BoxedViolation> {
        let quote = match text.get(self.position..).and_then(|rest| rest.chars().next()) {
            Some('“') => Quote::Curly,
            Some('‘') => Quote::CurlySingle,
            _ => return Ok(false),
        };
        self.open_string(quote, key)?;
        Ok(true)
    }
}

/// A key's letters and digits in small letters, which are the same in all spellings.
fn letters(key: &str) -> impl Iterator<Item = char> {
    key.chars().filter(|c| !matches!(c, '_' | '-') && !c.is_whitespace()).flat_map(char::to_lowercase)
}
