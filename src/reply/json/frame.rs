//! The stack of open arrays and objects, and how a finished value reaches the one that holds it.

use super::{BoxedViolation, Flow, JsonReader, Last, LastKind, State};
use crate::reply::object::Members;
use crate::reply::{Code, Object, ReadLimits, RepairCode, Span, Value};
use compact_str::CompactString;
use std::sync::Arc;

/// Keys of an object that are remembered.
const SHAPE: usize = 64;

/// One member of a record, with its places.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The key in the text.
    pub key_span: Span,
    /// The value of the member.
    pub value: Arc<Value>,
    /// The value in the text.
    pub span: Span,
}

/// The members of a record, in the order of the text.
pub type Fields = Members<Field>;

/// An outermost object, or an object of the outermost array, with the places of its members.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The members in the order of the text.
    pub fields: Fields,
    /// The object in the text.
    pub span: Span,
    /// Its closing bracket is missing and was added.
    pub supplied: bool,
}

impl Record {
    /// Whether both have the same content, at any places.
    pub fn same(&self, other: &Self) -> bool {
        self.fields.object().matches(other.fields.object(), |_, field, its| field.value == its.value)
    }
}

/// An array or object that is open.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    /// The position of its opening bracket.
    pub(super) open: usize,
    /// The key of the value that is awaited or being read.
    pub(super) key: Option<Key>,
    /// Its keys so far equal the keys of the last closed object of this depth, in the same order.
    pub(super) alike: bool,
}

#[derive(Debug)]
pub(super) enum Kind {
    Array(Vec<Value>),
    Object(Members),
    Record(Fields),
    /// The outermost array of records: how many there were.
    Records(usize),
    /// The outer one of two braces in a row.
    Doubled(Option<Value>),
}

/// A key in the text.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) text: CompactString,
    pub(super) span: Span,
    pub(super) quoted: bool,
    /// It is known to be new in its object.
    pub(super) fresh: bool,
    /// It follows a string without a comma: if no colon follows, the string held an unescaped quote.
    pub(super) after_string: Option<Span>,
}

impl Frame {
    pub(super) fn is_array(&self) -> bool {
        matches!(self.kind, Kind::Array(_) | Kind::Records(_))
    }

    pub(super) fn is_record(&self) -> bool {
        matches!(self.kind, Kind::Record(_))
    }

    pub(super) fn closer(&self) -> u8 {
        if self.is_array() { b']' } else { b'}' }
    }

    pub(super) fn name(&self) -> &'static str {
        if self.is_array() { "array" } else { "object" }
    }
}

impl JsonReader {
    /// Opens the array or object at the present position.
    pub(super) fn open(&mut self, byte: u8) -> Result<Flow, BoxedViolation> {
        let open = self.position;
        let bracket = Span::new(open, open + 1);
        self.check_depth(bracket)?;
        let kind = match (byte, self.settings.records, self.stack.as_slice()) {
            (b'[', true, []) => Kind::Records(0),
            (b'[', true, [Frame { kind: Kind::Records(_), .. }]) => return Err(self.no_record(bracket)),
            (b'[', ..) => Kind::Array(Vec::new()),
            (_, true, [] | [Frame { kind: Kind::Records(_), .. }]) => Kind::Record(Members::default()),
            _ => Kind::Object(Members::with_capacity(self.shapes.get(self.stack.len()).map_or(0, Vec::len))),
        };
        if self.stack.is_empty() {
            self.output.start = open;
            self.output.array = byte == b'[';
        }
        self.doubts.elision = None;
        self.state = if byte == b'[' { State::FirstElement } else { State::FirstKey };
        self.stack.push(Frame { kind, open, key: None, alike: true });
        self.position += 1;
        Ok(Flow::Go)
    }

    /// Refuses a bracket that is one level too deep.
    fn check_depth(&self, bracket: Span) -> Result<(), BoxedViolation> {
        let most = self.settings.limits.depth.min(ReadLimits::DEEPEST);
        if self.stack.len() < most {
            return Ok(());
        }
        Err(self.violation(
            Code::TooDeep,
            format!("expected at most {most} brackets inside one another: got more"),
            bracket,
        ))
    }

    /// A second brace right after the first: both are one.
    pub(super) fn open_doubled(&mut self) -> Result<Flow, BoxedViolation> {
        let open = self.position;
        let Some(outer) = self.stack.last_mut() else { return Ok(Flow::Go) };
        let kind = std::mem::replace(&mut outer.kind, Kind::Doubled(None));
        let places = Span::new(outer.open, open + 1);
        self.check_depth(Span::new(open, open + 1))?;
        self.repair(RepairCode::DoubledBraces, places)?;
        self.doubts.doubled = true;
        self.stack.push(Frame { kind, open, key: None, alike: true });
        self.position += 1;
        Ok(Flow::Go)
    }

    /// Closes the innermost array or object at `end`, one past its closing bracket, which may be `supplied`.
    pub(super) fn pop(&mut self, end: usize, supplied: bool) -> Result<Flow, BoxedViolation> {
        let Some(frame) = self.stack.pop() else { return Ok(Flow::Go) };
        let span = Span::new(frame.open, end);
        let value = match frame.kind {
            Kind::Array(items) => Value::Array(items),
            Kind::Object(members) => {
                let object = members.into_object();
                self.remember(&object, frame.alike);
                Value::Object(object)
            }
            Kind::Doubled(value) => {
                self.output.records.extend(self.output.inner.take().map(|inner| Record { span, ..inner }));
                value.unwrap_or_default()
            }
            Kind::Records(_) => Value::Null,
            Kind::Record(fields) => {
                let record = Record { fields, span, supplied };
                match self.stack.last() {
                    Some(Frame { kind: Kind::Doubled(_), .. }) => self.output.inner = Some(record),
                    _ => self.output.records.push(record),
                }
                Value::Null
            }
        };
        self.deliver(value, span, LastKind::Other)
    }

    /// Keeps the keys of the object that was just closed: in an array the next one often has the same.
    fn remember(&mut self, object: &Object, alike: bool) {
        let depth = self.stack.len();
        if self.shapes.len() <= depth {
            self.shapes.resize(depth + 1, Vec::new());
        }
        if let Some(shape) = self.shapes.get_mut(depth)
            && !(alike && shape.len() == object.len())
        {
            shape.clear();
            shape.extend(object.keys().take(SHAPE).map(CompactString::new));
        }
    }

    /// The key `text` of the open object, if the previous object had it at the same position.
    pub(super) fn like_before(&mut self, text: &str) -> Option<CompactString> {
        let depth = self.stack.len().checked_sub(1)?;
        let frame = self.stack.last_mut()?;
        let Kind::Object(members) = &frame.kind else { return None };
        let shape = if frame.alike { self.shapes.get(depth) } else { None };
        let key = shape.and_then(|keys| keys.get(members.object().len())).filter(|key| *key == text);
        frame.alike = key.is_some();
        key.cloned()
    }

    /// Hands a finished value to the array or object that holds it.
    pub(super) fn deliver(&mut self, value: Value, span: Span, kind: LastKind) -> Result<Flow, BoxedViolation> {
        self.values += 1;
        if self.values > self.settings.limits.values {
            let message = format!("expected at most {} values: got more", self.settings.limits.values);
            return Err(Box::new(crate::reply::Violation::new(Code::LimitExceeded, message).at(span)));
        }
        self.doubts.elision = None;
        self.recent.last = Last { span, kind, newline: false };
        self.state = State::After;
        let Some(frame) = self.stack.last_mut() else {
            self.output.value = value;
            self.output.span = span;
            self.state = State::Done;
            return match self.doubts.strays.first().copied() {
                Some((_, first)) => {
                    self.repair(RepairCode::ExtraClosers, first)?;
                    Ok(Flow::Done)
                }
                None => Ok(Flow::Done),
            };
        };
        match &mut frame.kind {
            Kind::Array(items) => items.push(value),
            Kind::Records(count) => *count += 1,
            Kind::Doubled(slot) => *slot = Some(value),
            Kind::Object(object) => {
                let Some(key) = frame.key.take() else { return Ok(Flow::Go) };
                match if key.fresh { None } else { object.get_mut(&key.text) } {
                    None => object.push(key.text, value),
                    Some(present) if self.settings.plain => *present = value,
                    Some(present) => {
                        let same = *present == value;
                        return self.second(same, &key.text, key.span, None);
                    }
                }
            }
            Kind::Record(fields) => {
                let Some(key) = frame.key.take() else { return Ok(Flow::Go) };
                match fields.get_mut(&key.text) {
                    None => fields.push(key.text, Field { key_span: key.span, value: Arc::new(value), span }),
                    Some(field) => {
                        let (same, first) = (*field.value == value, field.key_span);
                        return self.second(same, &key.text, key.span, Some(first));
                    }
                }
            }
        }
        Ok(Flow::Go)
    }

    /// A key stands a second time.
    fn second(&mut self, same: bool, key: &str, span: Span, first: Option<Span>) -> Result<Flow, BoxedViolation> {
        if same {
            self.repair(RepairCode::DuplicateKeyDropped, span)?;
            return Ok(Flow::Go);
        }
        let message = format!("expected each key once: got {} twice with different values", quoted(key));
        let fault = self.violation(Code::DuplicateKey, message, span);
        Err(match first {
            Some(first) => Box::new(fault.related(first, "first here")),
            None => fault,
        })
    }

    /// The outermost array holds something that is no object.
    pub(super) fn no_record(&self, span: Span) -> BoxedViolation {
        self.violation(Code::BadType, "expected an array of objects: got something else in it", span)
    }

    /// Whether a value that is no object is about to stand in the array of records.
    pub(super) fn wants_record(&self) -> bool {
        matches!(self.stack.as_slice(), [Frame { kind: Kind::Records(_), .. }])
    }

    /// The JSON pointer of the present place.
    pub(super) fn pointer(&self) -> String {
        let mut pointer = String::new();
        for frame in &self.stack {
            let step = match (&frame.kind, &frame.key) {
                (Kind::Array(items), _) => items.len().to_string(),
                (Kind::Records(count), _) => count.to_string(),
                (_, Some(key)) => crate::json_pointer::escape(&key.text),
                _ => continue,
            };
            pointer.push('/');
            pointer.push_str(&step);
        }
        pointer
    }
}

/// A key or word as a message quotes it: short, and in JSON's quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    Value::from(short).to_json()
}
