//! Arguments of a call: an object, or the JSON text of one, peeled up to two layers.

use super::field_reader::FieldReader;
use super::surrounding_text::fence_before;
use super::{Code, ReadOptions};
use crate::reply::json::{Field, JsonReader, Progress, Settings};
use crate::reply::{BoxedViolation, Object, Repair, RepairCode, Span, Value, Violation};
use std::borrow::Cow;
use std::sync::Arc;

/// How a protocol wants its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// As JSON text: an object is a repair (react).
    AsText,
    /// As an object: JSON text is a repair (chatty).
    AsObject,
}

/// Layers of text that are peeled off.
const LAYERS: usize = 2;

/// The arguments in `key`: always an object.
pub(crate) fn arguments(
    reader: &mut FieldReader<'_>,
    key: &str,
    written: Written,
    raw: &str,
    options: &ReadOptions,
) -> Result<(Arc<Value>, Span), BoxedViolation> {
    // `null` means none, and is noted with the other fields that are null.
    if let Some(field) = reader.record.fields.get(key)
        && *field.value == Value::Null
    {
        return Ok((Arc::new(Value::Object(Object::new())), field.span));
    }
    if reader.record.fields.get(key).is_none() && reader.unknown().next().is_none() {
        // Whether the tool needs any is judged with the tool.
        let place = Span::at(reader.record.span.start);
        reader.notes.note(RepairCode::MissingArguments, place)?;
        return Ok((Arc::new(Value::Object(Object::new())), reader.record.span));
    }
    let field = reader.required(key)?;
    let value = match &*field.value {
        Value::Object(_) => {
            if written == Written::AsText {
                reader.notes.note(RepairCode::ArgsObject, field.span)?;
            }
            Arc::clone(&field.value)
        }
        Value::String(text) => {
            if written == Written::AsObject {
                reader.notes.note(RepairCode::ArgumentsString, field.span)?;
            }
            Arc::new(peel(reader, key, field, text, raw, options)?)
        }
        other => {
            let wanted = match written {
                Written::AsText => "the JSON text of an object",
                Written::AsObject => "an object",
            };
            return Err(reader.bad_type(key, field, wanted, other));
        }
    };
    Ok((value, field.span))
}

fn peel(
    reader: &mut FieldReader<'_>,
    key: &str,
    field: &Field,
    text: &str,
    raw: &str,
    options: &ReadOptions,
) -> Result<Value, BoxedViolation> {
    let mut text = Cow::Borrowed(text);
    for layer in 1..=LAYERS {
        let source = ArgumentSource { literal: field.span, raw, exact: layer == 1 };
        if text.trim().is_empty() {
            reader.notes.note(RepairCode::EmptyArgs, field.span)?;
            return Ok(Value::Object(Object::new()));
        }
        let mut repairs = Vec::new();
        let value = read(&text, options, &mut repairs).map_err(|fault| invalid(reader, key, *fault, &source))?;
        repairs.sort_by_key(|repair| repair.span.start);
        let mut tracer = source.tracer();
        for repair in repairs {
            reader.notes.note(repair.code, tracer.of(repair.span))?;
        }
        match value {
            Value::Object(_) => return Ok(value),
            Value::Null => {
                reader.notes.note(RepairCode::NullField, field.span)?;
                return Ok(Value::Object(Object::new()));
            }
            Value::String(inner) if layer < LAYERS => {
                reader.notes.note(RepairCode::ArgsDoubleEncoded, field.span)?;
                text = Cow::Owned(inner.into());
            }
            other => {
                let message = format!("expected an object in its text: got {}", other.type_name());
                let fault = Violation::new(Code::BadType, message).at(Span::new(0, text.len()));
                return Err(invalid(reader, key, fault, &source));
            }
        }
    }
    let fault = Violation::new(Code::BadType, "expected an object in its text: got text inside text");
    Err(invalid(reader, key, fault, &ArgumentSource { literal: field.span, raw, exact: false }))
}

/// Reads one layer: a value, perhaps in a fence, and nothing else but copies of it and surplus closing brackets.
fn read(text: &str, options: &ReadOptions, repairs: &mut Vec<Repair>) -> Result<Value, BoxedViolation> {
    let settings = Settings::new(options.repairs, options.limits);
    let strict = options.repairs == crate::reply::RepairPolicy::Strict;
    let mut note = |code, span| {
        if strict {
            return Err(crate::reply::json::refused(code, span));
        }
        repairs.push(Repair::new(code, span));
        Ok(())
    };
    let mut start = 0;
    let mut end = text.trim_end().len();
    let opening = text.find(['{', '[', '"', '\'']).unwrap_or(0);
    if text.trim_start().starts_with(['`', '~'])
        && let Some(fence) = fence_before(text.get(..opening).unwrap_or(""))
        && text.get(..fence).is_some_and(|before| before.trim().is_empty())
    {
        note(RepairCode::FenceStripped, Span::new(fence, opening))?;
        start = opening;
        end = text.trim_end().trim_end_matches(['`', '~']).len().max(start);
    }
    let text = text.get(..end).unwrap_or(text);
    let mut json = JsonReader::new(settings.clone(), start);
    if json.run(text, true) == Progress::Failed {
        let unread = || Box::new(Violation::new(Code::InvalidJson, "expected a JSON value"));
        return Err(json.into_fault().unwrap_or_else(unread));
    }
    let mut position = json.position();
    let (value, found) = json.into_value();
    let mut more = found;
    loop {
        let rest = text.get(position..).unwrap_or("");
        let after = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '}' | ']'));
        let closers = rest.get(..rest.len() - after.len()).unwrap_or("");
        if !closers.trim().is_empty() {
            note(RepairCode::ExtraClosers, Span::new(position, position + closers.trim_end().len()))?;
        }
        position = text.len() - after.len();
        if after.is_empty() {
            break;
        }
        let mut json = JsonReader::new(settings.clone(), position);
        let done = json.run(text, true) == Progress::Done;
        let (start, next) = (position, json.position());
        if !done || json.into_value().0 != value {
            let message = "expected one object in its text: got more after it";
            return Err(Box::new(Violation::new(Code::ExtraData, message).at(Span::new(start, text.len()))));
        }
        note(RepairCode::DuplicateObjectDropped, Span::new(start, next))?;
        position = next;
    }
    repairs.append(&mut more);
    Ok(value)
}

fn invalid(reader: &FieldReader<'_>, key: &str, inner: Violation, source: &ArgumentSource<'_>) -> BoxedViolation {
    let span = inner.span.map_or(source.literal, |span| source.of(span));
    if inner.code == Code::RepairRefused {
        return Box::new(inner.at(span));
    }
    let message = format!("expected the JSON text of an object in '{key}': inside it, {}", inner.message);
    let mut fault = reader.fault(Code::ArgsInvalid, message, span, key);
    fault.inner = Some(inner.code);
    fault.hint = match inner.code {
        // What stands in it needs its escapes twice.
        Code::UnescapedQuote | Code::AmbiguousEscape | Code::UnexpectedToken | Code::Truncated if key == "args" => {
            Some("write args as an object, not as a text: then a quote inside is \\\" and no more".to_owned())
        }
        _ => inner.hint,
    };
    fault.found = inner.found;
    fault.related = inner.related.map(|related| crate::reply::Related { span: source.of(related.span), ..related });
    fault
}

/// Where decoded text stands in the reply.
struct ArgumentSource<'a> {
    literal: Span,
    raw: &'a str,
    /// Whether offsets can be traced: through one layer of escapes.
    exact: bool,
}

impl<'a> ArgumentSource<'a> {
    fn of(&self, span: Span) -> Span {
        self.tracer().of(span)
    }

    fn tracer(&self) -> Tracer<'a> {
        let literal = self.literal.of(self.raw);
        let quote = literal.chars().next().map_or(1, char::len_utf8);
        let triple = ["\"\"\"", "'''", "```"].iter().any(|open| literal.starts_with(open)) && literal.len() >= 6;
        Tracer {
            literal: self.literal,
            exact: self.exact,
            rest: literal.get(if triple { 3 } else { quote }..).unwrap_or(""),
            decoded: 0,
        }
    }
}

/// Finds places of decoded text in its string literal: later ones after earlier ones.
#[derive(Clone)]
struct Tracer<'a> {
    literal: Span,
    exact: bool,
    /// The literal's text from here on.
    rest: &'a str,
    /// Bytes that were decoded before it.
    decoded: usize,
}

impl Tracer<'_> {
    /// Where a span stands that begins no earlier than those asked for before.
    fn of(&mut self, span: Span) -> Span {
        if !self.exact {
            return self.literal;
        }
        let start = self.advance(span.start);
        Span::new(start, self.clone().advance(span.end))
    }

    fn advance(&mut self, target: usize) -> usize {
        while self.decoded < target {
            let mut chars = self.rest.chars();
            let (bytes, length) = match (chars.next(), chars.next()) {
                (Some('\\'), Some('u')) => {
                    let unit = self.rest.get(2..6).and_then(|digits| u32::from_str_radix(digits, 16).ok());
                    match unit {
                        Some(unit) if (0xd800..0xdc00).contains(&unit) => (12, 4),
                        Some(unit) => (6, char::from_u32(unit).map_or(1, char::len_utf8)),
                        None => (1, 1),
                    }
                }
                (Some('\\'), Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | '\'')) => (2, 1),
                (Some(c), _) => (c.len_utf8(), c.len_utf8()),
                (None, _) => break,
            };
            self.rest = self.rest.get(bytes..).unwrap_or("");
            self.decoded += length;
        }
        self.literal.end.saturating_sub(self.rest.len()).max(self.literal.start)
    }
}
