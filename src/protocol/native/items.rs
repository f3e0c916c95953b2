//! The lines of an envelope, with the spans of their texts.

use crate::reply::Span;
use serde_json::Value as Json;
use std::borrow::Cow;

/// The content of a line. Spans are of string literals with their quotes; one that is still open reaches to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reasoning of the model.
    Reasoning {
        /// The string literal of the text.
        text: Span,
    },
    /// Text to the user.
    Text {
        /// The string literal of the text.
        text: Span,
    },
    /// A call of a tool.
    Call {
        /// The service's id, perhaps empty.
        id: Span,
        /// The name of the tool.
        tool: Span,
        /// The text of the arguments.
        arguments: Span,
    },
    /// The service could not read its own model's call.
    Fault {
        /// The message of the service.
        message: Span,
        /// The text of the model, if the service reports it.
        raw: Span,
    },
}

/// One line of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The content of the line.
    pub kind: Kind,
    /// The span of the line, without its line break.
    pub span: Span,
    /// The JSON that the service needs back; `None` if it needs none.
    pub data: Option<Span>,
    /// Whether it has ended.
    pub whole: bool,
}

impl Line {
    /// The key and the JSON of the data, as far as they came; `None` without any.
    pub fn data_part(&self, text: &str) -> Option<Span> {
        let (Kind::Reasoning { text: last } | Kind::Call { arguments: last, .. }) = self.kind else { return None };
        let end = match self.data {
            Some(data) => data.end,
            None if !self.whole => self.span.end,
            None => return None,
        };
        text.get(last.end..end).filter(|part| part.starts_with(',')).map(|_| Span::new(last.end, end))
    }
}

/// The lines of an envelope.
#[derive(Debug, Default)]
pub struct Lines {
    /// Those that could be read.
    pub lines: Vec<Line>,
    /// The start of the first invalid line; `None` if all lines are valid.
    pub strange: Option<usize>,
}

impl Lines {
    /// Reads a reply, whole or as far as it came.
    pub fn of(text: &str) -> Self {
        let mut lines = Vec::new();
        let mut start = 0;
        while start < text.len() {
            let Some(line) = line(text, start) else { return Self { lines, strange: Some(start) } };
            start = line.span.end + 1;
            lines.push(line);
        }
        Self { lines, strange: None }
    }

    /// The calls that have ended, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.whole && matches!(line.kind, Kind::Call { .. }))
    }
}

/// The line that begins at `start`; `None` if it is invalid or its kind is not known yet.
pub fn line(text: &str, start: usize) -> Option<Line> {
    let mut cursor = Cursor { text, at: start };
    let kind = cursor.kind()?;
    let mut line = Line { kind, span: Span::new(start, text.len()), data: None, whole: false };
    if cursor.at >= text.len() {
        return Some(line);
    }
    if matches!(kind, Kind::Reasoning { .. } | Kind::Call { .. }) && cursor.take(",\"data\":") {
        let end = text.get(cursor.at..)?.find('\n').map_or(text.len(), |end| cursor.at + end);
        let closed = end < text.len();
        let data = text.get(cursor.at..end)?;
        if closed {
            let data = data.strip_suffix('}')?;
            serde_json::from_str::<serde::de::IgnoredAny>(data).ok()?;
            line.data = Some(Span::new(cursor.at, cursor.at + data.len()));
            line.span = Span::new(start, end);
        }
        line.whole = closed;
        return Some(line);
    }
    // The beginning of the data's key has no data yet.
    let rest = text.get(cursor.at..)?;
    if ",\"data\":".starts_with(rest) || rest == "}" {
        return Some(line);
    }
    if !cursor.take("}\n") {
        return None;
    }
    line.span = Span::new(start, cursor.at - 1);
    line.whole = true;
    Some(line)
}

/// The decoded text of a literal; an open one as far as it came.
pub fn decoded(text: &str, literal: Span) -> Cow<'_, str> {
    let literal = literal.of(text);
    let inner = literal.strip_prefix('"').unwrap_or(literal);
    match inner.strip_suffix('"').filter(|inner| !ends_in_escape(inner)) {
        Some(inner) if !inner.contains('\\') => Cow::Borrowed(inner),
        Some(_) => serde_json::from_str(literal).map_or_else(|_| Cow::Owned(decode(inner, 0).text), Cow::Owned),
        None => Cow::Owned(decode(inner, 0).text),
    }
}

/// Whether the last character is the second half of an escape, or opens one.
fn ends_in_escape(text: &str) -> bool {
    text.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// A piece of a literal, decoded.
#[derive(Debug, Default)]
pub struct Decoded {
    /// The decoded text.
    pub text: String,
    /// The start of the next piece. An incomplete escape belongs to the next piece.
    pub next: usize,
    /// Whether the literal's closing quote was reached, which stands at `next`.
    pub closed: bool,
}

/// Decodes the inside of a literal from `from` to its closing quote, or to the end of the text.
pub fn decode(text: &str, from: usize) -> Decoded {
    let mut out = Decoded { text: String::new(), next: from, closed: false };
    loop {
        let rest = text.get(out.next..).unwrap_or("");
        let plain = rest.find(['"', '\\']).unwrap_or(rest.len());
        out.text.push_str(rest.get(..plain).unwrap_or(""));
        out.next += plain;
        let rest = rest.get(plain..).unwrap_or("");
        if rest.starts_with('"') {
            out.closed = true;
            return out;
        }
        let Some(length) = escape_length(rest) else { return out };
        let escape = rest.get(..length).unwrap_or("");
        match serde_json::from_str::<String>(&format!("\"{escape}\"")) {
            Ok(text) => out.text.push_str(&text),
            Err(_) => out.text.push(char::REPLACEMENT_CHARACTER),
        }
        out.next += length;
    }
}

/// The bytes of the escape that the text begins with, both halves of a pair of surrogates together; `None` if it has not
/// ended.
fn escape_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.get(1)? != &b'u' {
        // A character that JSON does not escape may be longer than a byte.
        return Some(1 + text.get(1..)?.chars().next()?.len_utf8());
    }
    let unit = u32::from_str_radix(text.get(2..6)?, 16).unwrap_or(0);
    if !(0xd800..0xdc00).contains(&unit) {
        return Some(6);
    }
    match text.get(6..) {
        Some("" | "\\") | None => None,
        Some(rest) if rest.starts_with("\\u") => text.get(6..12).map(|_| 12),
        Some(_) => Some(6),
    }
}

/// The items of a message, as clients of the model are shown them.
#[derive(Debug, Default)]
pub struct Items(pub Vec<Json>);

impl Items {
    /// The complete items of a reply. The reasoning of a truncated reply is left out.
    pub fn of_reply(text: &str) -> Self {
        let read = Lines::of(text);
        if read.strange.is_some() || read.lines.is_empty() {
            return Self(vec![serde_json::json!({ "text": text })]);
        }
        let cut = read.lines.iter().any(|line| !line.whole);
        let mut items = Vec::new();
        for line in &read.lines {
            let says = |literal| decoded(text, literal).into_owned();
            let mut item = match line.kind {
                Kind::Reasoning { .. } if cut => continue,
                Kind::Reasoning { text } => serde_json::json!({ "reasoning": says(text) }),
                Kind::Text { text } => serde_json::json!({ "text": says(text) }),
                Kind::Call { .. } if !line.whole => continue,
                Kind::Call { id, tool, arguments } => {
                    serde_json::json!({ "call": says(id), "tool": says(tool), "arguments": says(arguments) })
                }
                Kind::Fault { message, raw } => {
                    let raw = says(raw);
                    serde_json::json!({ "text": if raw.trim().is_empty() { says(message) } else { raw } })
                }
            };
            if let (Some(data), Some(item)) = (line.data, item.as_object_mut()) {
                let data = serde_json::from_str(data.of(text)).unwrap_or_default();
                item.insert("data".to_owned(), data);
            }
            items.push(item);
        }
        let says = |item: &Json| {
            item.get("call").is_some()
                || item.get("text").and_then(Json::as_str).is_some_and(|text| !text.trim().is_empty())
        };
        if !items.iter().any(says) {
            let note = if cut { "(the reply was cut)" } else { "(empty reply)" };
            items.push(serde_json::json!({ "text": note }));
        }
        Self(items)
    }

    /// The items of a message of the user: a line each.
    pub fn of_message(text: &str) -> Self {
        let items: Result<Vec<Json>, _> =
            text.split('\n').filter(|line| !line.is_empty()).map(serde_json::from_str).collect();
        Self(items.unwrap_or_else(|_| vec![serde_json::json!({ "text": text })]))
    }

    /// The text that says the same to a reader.
    pub fn readable(&self) -> String {
        let part = |item: &Json| {
            let field = |name| item.get(name).and_then(Json::as_str).unwrap_or_default();
            if item.get("result").is_some() {
                let failed = item.get("error").and_then(Json::as_bool).unwrap_or_default();
                let mark = if failed { "error: " } else { "" };
                return format!("{}: {mark}{}", field("tool"), field("content"));
            }
            if item.get("call").is_some() {
                return format!("{}({})", field("tool"), field("arguments"));
            }
            field("text").to_owned()
        };
        let parts: Vec<String> = self.0.iter().map(part).filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }
}

/// A readable form of a reply, and the positions of `offsets` in it. An offset outside of a text maps to the start of its item.
pub fn shown_with_places(text: &str, offsets: &[usize]) -> (String, Vec<usize>) {
    let read = Lines::of(text);
    if read.strange.is_some() || read.lines.is_empty() {
        return (text.to_owned(), offsets.to_vec());
    }
    let mut shown = String::new();
    // For each line and each literal: its span in the reply, and the start of its text.
    let (mut lines, mut literals) = (Vec::new(), Vec::new());
    for line in &read.lines {
        let parts = match line.kind {
            Kind::Reasoning { .. } => continue,
            Kind::Text { text } => vec![("", Some(text))],
            Kind::Call { tool, arguments, .. } => vec![("", Some(tool)), ("(", Some(arguments)), (")", None)],
            Kind::Fault { message, raw } if decoded(text, raw).trim().is_empty() => vec![("", Some(message))],
            Kind::Fault { raw, .. } => vec![("", Some(raw))],
        };
        if !shown.is_empty() {
            shown.push_str("\n\n");
        }
        let start = shown.len();
        for (before, literal) in parts {
            shown.push_str(before);
            if let Some(literal) = literal {
                literals.push((literal, shown.len()));
                shown.push_str(&decoded(text, literal));
            }
        }
        lines.push((line.span, start, shown.len()));
    }
    let place = |offset: &usize| {
        let inside = literals.iter().find(|(literal, _)| literal.start <= *offset && *offset <= literal.end);
        if let Some((literal, start)) = inside {
            let opening = literal.start + 1;
            let until = (*offset).clamp(opening, literal.end.saturating_sub(1).max(opening));
            return start + text.get(opening..until).map_or(0, |before| decode(before, 0).text.len());
        }
        match lines.iter().find(|(line, ..)| line.start <= *offset && *offset <= line.end) {
            Some((line, _, end)) if *offset == line.end => *end,
            Some((_, start, _)) => *start,
            None => 0,
        }
    };
    let places = offsets.iter().map(place).collect();
    (shown, places)
}

/// Reads the fixed parts of a line, and the literals between them.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl Cursor<'_> {
    fn kind(&mut self) -> Option<Kind> {
        if self.take("{\"reasoning\":") {
            return Some(Kind::Reasoning { text: self.literal()? });
        }
        if self.take("{\"text\":") {
            return Some(Kind::Text { text: self.literal()? });
        }
        if self.take("{\"call\":") {
            let id = self.literal()?;
            let tool = self.next(",\"tool\":")?;
            return Some(Kind::Call { id, tool, arguments: self.next(",\"arguments\":")? });
        }
        if self.take("{\"fault\":") {
            let message = self.literal()?;
            return Some(Kind::Fault { message, raw: self.next(",\"raw\":")? });
        }
        None
    }

    /// The literal behind these characters. Of a line that ends before it, an empty one.
    fn next(&mut self, before: &str) -> Option<Span> {
        let rest = self.text.get(self.at..)?;
        if rest.len() < before.len() && before.starts_with(rest) {
            self.at = self.text.len();
            return Some(Span::at(self.at));
        }
        if !self.take(before) {
            return None;
        }
        if self.at == self.text.len() {
            return Some(Span::at(self.at));
        }
        self.literal()
    }

    fn take(&mut self, characters: &str) -> bool {
        let found = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(characters));
        self.at += if found { characters.len() } else { 0 };
        found
    }

    fn literal(&mut self) -> Option<Span> {
        let start = self.at;
        if !self.take("\"") {
            return None;
        }
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr3(b'"', b'\\', b'\n', rest)) {
            at += found;
            match bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Some(Span::new(start, self.at));
                }
                // No line break stands in a string of an envelope.
                Some(b'\n') => return None,
                _ => at += 2,
            }
        }
        self.at = bytes.len();
        Some(Span::new(start, self.at))
    }
}
