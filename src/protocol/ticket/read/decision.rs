//! The ticket object: its `type`, the fields of each type, and what is published of it while it arrives.

use crate::protocol::correction::{Correction, Salvaged, written};
use crate::protocol::field_reader::{FieldReader, Form};
use crate::protocol::field_stream::{self, Piece};
use crate::protocol::find_payload::{FoundPayload, PayloadKind};
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::unknown_keys;
use crate::protocol::{Code, Delta, Move, ReadOptions, ToolCall, Violation, answer};
use crate::reply::json::{Field, Fields, Record};
use crate::reply::{BoxedViolation, Object, Repair, RepairCode, Span, Value};
use crate::tool::AnswerType;
use std::sync::Arc;

/// What is sought in a reply.
pub(super) static PAYLOAD: PayloadKind = PayloadKind {
    // Without those that lists of tickets and other JSON have as well.
    keys: &["type", "route", "payload", "task", "ticket_id"],
    own: KEYS,
    aliases: &[
        ("endpoint", "route"),
        ("body", "payload"),
        ("args", "payload"),
        ("arguments", "payload"),
        ("parameters", "payload"),
        ("ticket", "ticket_id"),
        ("ticketId", "ticket_id"),
        ("id", "ticket_id"),
        ("result", "value"),
    ],
    is: |record| record.fields.get("type").is_some_and(|field| Type::of(field).is_some()),
    same: Record::same,
};

const KEYS: &[&str] = &["type", "value", "route", "payload", "description", "task", "ticket_id"];

/// The smallest correct output, as feedback shows it.
pub(super) const OUTPUT: &str = r#"<output>{"type": "RETURN", "value": ...}</output>"#;

/// The output that returns a text.
pub(super) fn returning(text: &str) -> String {
    let object = written(&[("type", Value::from(Type::Return.keyword())), ("value", Value::from(text))]);
    format!("<output>{object}</output>")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Return,
    Call,
    Delegate,
    Await,
    Load,
}

impl Type {
    const ALL: [Self; 5] = [Self::Return, Self::Call, Self::Delegate, Self::Await, Self::Load];

    const fn keyword(self) -> &'static str {
        match self {
            Self::Return => "RETURN",
            Self::Call => "CALL",
            Self::Delegate => "DELEGATE",
            Self::Await => "AWAIT",
            Self::Load => "LOAD_TICKET",
        }
    }

    /// The type that a field names, in any case.
    fn of(field: &Field) -> Option<Self> {
        let text = field.value.as_str()?.trim();
        Self::ALL.into_iter().find(|kind| kind.keyword().eq_ignore_ascii_case(text))
    }

    fn form(self) -> &'static Form {
        match self {
            Self::Return => &RETURN,
            Self::Call => &CALL,
            Self::Delegate => &DELEGATE,
            Self::Await => &AWAIT,
            Self::Load => &LOAD,
        }
    }
}

static RETURN: Form = Form {
    name: "a RETURN",
    keys: &["type", "value"],
    nullable: &["value"],
    protocol: KEYS,
    arguments: "",
    effect: false,
    expected: r#"{"type": "RETURN", "value": ...}"#,
};
static CALL: Form = Form {
    name: "a CALL",
    keys: &["type", "route", "payload", "description"],
    nullable: &["payload"],
    protocol: KEYS,
    arguments: "inside 'payload'",
    effect: true,
    expected: r#"{"type": "CALL", "route": "...", "payload": {"argument": "value"}, "description": "why"}"#,
};
static DELEGATE: Form = Form {
    name: "a DELEGATE",
    keys: &["type", "task"],
    nullable: &[],
    protocol: KEYS,
    arguments: "",
    effect: true,
    expected: r#"{"type": "DELEGATE", "task": "what to do"}"#,
};
static AWAIT: Form = Form {
    name: "an AWAIT",
    keys: &["type", "ticket_id"],
    nullable: &[],
    protocol: KEYS,
    arguments: "",
    effect: true,
    expected: r#"{"type": "AWAIT", "ticket_id": "T1"}"#,
};
static LOAD: Form = Form {
    name: "a LOAD_TICKET",
    keys: &["type", "ticket_id", "offset"],
    nullable: &[],
    protocol: KEYS,
    arguments: "",
    effect: true,
    expected: r#"{"type": "LOAD_TICKET", "ticket_id": "T1"}"#,
};

pub(super) struct Decision {
    pub(super) outcome: Move,
    pub(super) repairs: Vec<Repair>,
}

/// Reads a complete object.
pub(super) fn read(
    found: &FoundPayload,
    options: &ReadOptions,
    returns: Option<&AnswerType>,
) -> Result<Decision, BoxedViolation> {
    let mut notes = RepairNotes::new(options.repairs);
    if found.in_array {
        notes.note(RepairCode::SingleElementArray, found.root)?;
    }
    let record = &found.record;
    let Some((field, kind)) = record.fields.get("type").and_then(|field| Some((field, Type::of(field)?))) else {
        return Err(misfit(record));
    };
    let at = if found.in_array { "/0".to_owned() } else { String::new() };
    let mut reader = FieldReader { record, form: kind.form(), at, notes: &mut notes };
    if let Some(text) = field.value.as_str() {
        if text.trim() != text {
            reader.notes.note(RepairCode::NameTrimmed, field.span)?;
        }
        if text.trim() != kind.keyword() {
            reader.notes.note(RepairCode::KeywordCase, field.span)?;
        }
    }
    let outcome = match kind {
        Type::Return => returned(&mut reader, options, returns)?,
        Type::Call => call(&mut reader)?,
        Type::Delegate => Move::Delegate { task: reader.text("task")?.0.to_owned() },
        Type::Await => Move::Await { ticket_id: reader.id("ticket_id")?.0 },
        Type::Load => Move::Load { ticket_id: reader.id("ticket_id")?.0, offset: offset(&mut reader)? },
    };
    if kind != Type::Call {
        reader.rest(&[])?;
    }
    Ok(Decision { outcome, repairs: notes.into_sorted() })
}

/// Where a `LOAD_TICKET` begins to show the result.
fn offset(reader: &mut FieldReader<'_>) -> Result<usize, BoxedViolation> {
    let Some(field) = reader.get("offset") else { return Ok(0) };
    match &*field.value {
        // A number with more digits than an offset can have is past the end of any result.
        Value::Number(number) if number.is_integer() && !number.as_str().starts_with('-') => {
            Ok(number.as_str().parse().unwrap_or(usize::MAX))
        }
        Value::Number(number) => {
            let message = format!("expected a whole number from 0 on in 'offset': got {}", number.as_str());
            Err(reader.fault(Code::BadType, message, field.span, "offset"))
        }
        other => Err(reader.bad_type("offset", field, "a whole number", other)),
    }
}

/// The answer of a RETURN.
fn returned(
    reader: &mut FieldReader<'_>,
    options: &ReadOptions,
    returns: Option<&AnswerType>,
) -> Result<Move, BoxedViolation> {
    let field = reader.required("value");
    let Some(returns) = returns else {
        return Ok(Move::Finish { value: Arc::clone(&field?.value), success: None, coerced: Vec::new() });
    };
    let checked = field.and_then(|field| answer::read(returns, "value", field, &reader.at, options, false));
    let checked = checked.map_err(|fault| Box::new(fault.expected(return_form(returns))))?;
    Ok(Move::Finish { value: checked.value, success: None, coerced: checked.coerced })
}

/// The smallest correct RETURN of a type.
pub(in crate::protocol) fn return_form(returns: &AnswerType) -> String {
    format!(r#"{{"type": "RETURN", "value": {}}}"#, returns.shape())
}

/// Keys that name the method of a route, without what spelling changes.
const METHOD_KEYS: &[&str] = &["method", "verb", "httpmethod", "httpverb"];
/// What stands for them.
const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "QUERY"];

/// A method that stands beside a route, with its key.
fn method_beside<'a>(reader: &FieldReader<'a>) -> Option<(&'a str, &'a Field, &'static str)> {
    reader.unknown().find_map(|(key, field)| {
        let written = field.value.as_str()?.trim();
        let method = METHODS.iter().find(|method| method.eq_ignore_ascii_case(written))?;
        METHOD_KEYS.contains(&unknown_keys::plain(key).as_str()).then_some((key, field, *method))
    })
}

/// The route with a method that stands beside it, where it is a path without one, and the key of the method.
fn route<'a>(reader: &mut FieldReader<'a>) -> Result<(String, Span, Option<&'a str>), BoxedViolation> {
    let (route, span) = reader.name("route")?;
    let Some((key, field, method)) = method_beside(reader) else { return Ok((route.to_owned(), span, None)) };
    let whole = Span::new(field.key_span.start, field.span.end);
    let first = route.split_whitespace().next().unwrap_or("");
    if route.starts_with('/') {
        reader.notes.note(RepairCode::MethodJoined, whole)?;
        return Ok((format!("{method} {route}"), span, Some(key)));
    }
    if first.eq_ignore_ascii_case(method) && first.len() < route.len() {
        reader.notes.note(RepairCode::UnknownKeyDropped, whole)?;
        return Ok((route.to_owned(), span, Some(key)));
    }
    // Another method, or one beside the name of an operation, which has its own: left to be refused with the rest.
    Ok((route.to_owned(), span, None))
}

fn call(reader: &mut FieldReader<'_>) -> Result<Move, BoxedViolation> {
    let span = reader.record.span;
    let (tool, tool_span, method) = route(reader)?;
    let beside = reader.unknown().any(|(key, _)| Some(key) != method);
    let (payload, payload_span) = if reader.record.fields.get("payload").is_none() && !beside {
        reader.notes.note(RepairCode::MissingArguments, Span::at(span.start))?;
        (Arc::new(Value::Object(Object::new())), span)
    } else {
        let field = reader.required("payload")?;
        (Arc::clone(&field.value), field.span)
    };
    let description = reader.optional_text("description")?.map(|(text, _)| text.to_owned());
    reader.meant("description")?;
    if description.is_none() {
        reader.notes.note(RepairCode::MissingDescription, span)?;
    }
    let call = ToolCall {
        call_id: None,
        tool,
        arguments: payload,
        description: Some(description.unwrap_or_default()),
        span,
        tool_span,
        arguments_span: payload_span,
        unread: reader.rest(method.as_slice())?,
    };
    Ok(Move::Call { calls: vec![call] })
}

/// The violation of an output whose object is no decision.
pub(super) fn misfit(record: &Record) -> BoxedViolation {
    let keywords = Type::ALL.map(Type::keyword).join(", ");
    if let Some(field) = record.fields.get("type").filter(|field| *field.value != Value::Null) {
        return unknown_type(field);
    }
    let message = format!("expected 'type' in the object, one of {keywords}: it is missing");
    Box::new(Violation::new(Code::NoAction, message).at(record.span).expected(OUTPUT))
}

/// The violation of an unknown `type`: no later field can mend it.
pub(super) fn early(fields: &Fields) -> Option<BoxedViolation> {
    let field = fields.get("type")?;
    (*field.value != Value::Null && Type::of(field).is_none()).then(|| unknown_type(field))
}

fn unknown_type(field: &Field) -> BoxedViolation {
    let keywords = Type::ALL.map(Type::keyword).join(", ");
    let violation = if let Some(text) = field.value.as_str() {
        let found: String = text.chars().take(40).collect();
        let shown = Value::from(found.as_str()).to_json();
        Violation::new(Code::UnknownType, format!("expected a 'type' of {keywords}: got {shown}")).found(found)
    } else {
        let found = field.value.type_name();
        Violation::new(Code::BadType, format!("expected a 'type' of {keywords}: got {found}")).found(found)
    };
    Box::new(violation.at(field.span).pointer("/type").expected(OUTPUT))
}

/// Publishes the object while it arrives.
#[derive(Debug, Default)]
pub(super) struct DeltaWriter {
    kind: Option<Type>,
    /// The text of the answer is published as JSON.
    json_text: bool,
}

impl DeltaWriter {
    pub(super) fn new(returns: Option<&AnswerType>) -> Self {
        Self { kind: None, json_text: answer::publishes_json(returns) }
    }

    /// Publishes a piece of a field. A field before the `type` is published as the field of the only type that has it.
    pub(super) fn write(&mut self, key: &str, piece: &Piece<'_>, deltas: &mut Vec<Delta>) {
        let may_be = |wanted: &[Type]| self.kind.is_none_or(|kind| wanted.contains(&kind));
        match (key, piece) {
            ("type", Piece::End(field)) => self.kind = Type::of(field),
            ("value", Piece::Text(more)) if self.json_text && may_be(&[Type::Return]) => {
                deltas.push(Delta::Value((*more).to_owned()));
            }
            ("value", Piece::Text(more)) if may_be(&[Type::Return]) => deltas.push(Delta::Answer((*more).to_owned())),
            ("value", Piece::End(field)) if field_stream::is_empty(field) && may_be(&[Type::Return]) => {
                deltas.push(Delta::Answer(String::new()));
            }
            ("value", Piece::Json(more)) if may_be(&[Type::Return]) => deltas.push(Delta::Value((*more).to_owned())),
            ("payload", Piece::Text(more) | Piece::Json(more)) if may_be(&[Type::Call]) => {
                deltas.push(Delta::Arguments { call: 0, text: (*more).to_owned() });
            }
            ("route", Piece::End(field)) if may_be(&[Type::Call]) => {
                // A path without a method may have it beside it.
                if let Some(name) = field.value.as_str().map(str::trim).filter(|name| !name.starts_with('/')) {
                    deltas.push(Delta::Tool { call: 0, name: name.to_owned(), span: field.span });
                }
            }
            ("ticket_id", Piece::End(field)) if may_be(&[Type::Await, Type::Load]) => {
                if let Some(id) = field_stream::id(field) {
                    deltas.push(Delta::TicketId { id: id.to_owned(), span: field.span });
                }
            }
            _ => {}
        }
    }

    /// The object is complete: the method of a path is known only now.
    pub(super) fn close(decision: &Result<Decision, BoxedViolation>, route: Option<&str>, deltas: &mut Vec<Delta>) {
        if let Ok(Decision { outcome: Move::Call { calls }, .. }) = decision
            && let Some(call) = calls.first()
            && route.is_some_and(|route| route.trim_start().starts_with('/'))
        {
            deltas.push(Delta::Tool { call: 0, name: call.tool.clone(), span: call.tool_span });
        }
    }
}

/// The object that a broken reply was to be, where it is certain.
pub(in crate::protocol) fn corrected(raw: &str, returns: Option<&AnswerType>) -> Option<Correction> {
    let read = Salvaged::read(raw.rsplit_once("<output>").map_or(raw, |(_, output)| output), KEYS);
    let written_type = read.text("type").unwrap_or("");
    let kind = Type::ALL.into_iter().find(|kind| kind.keyword().eq_ignore_ascii_case(written_type.trim()));
    let has = |key: &str| read.get(key).is_some();
    let kind = match kind {
        Some(kind) => kind,
        None if has("route") => Type::Call,
        None if has("task") => Type::Delegate,
        None if has("value") => Type::Return,
        None => return None,
    };
    if let (Type::Return, Some(returns)) = (kind, returns) {
        let fits = |value: &Value| returns.check("value", &Arc::new(value.clone())).is_ok();
        if !read.get("value").is_some_and(fits) {
            return Some(Correction::form(return_form(returns)));
        }
    }
    let members = members_of(kind, &read);
    Some(
        members
            .map_or_else(|| Correction::form(kind.form().expected), |members| Correction::certain(written(&members))),
    )
}

/// The object that makes a call.
pub(in crate::protocol) fn written_call(route: &str, payload: &Value) -> String {
    written(&[
        ("type", Value::from(Type::Call.keyword())),
        ("route", Value::from(route)),
        ("payload", payload.clone()),
        ("description", Value::from("")),
    ])
}

/// The members of a decision of this type, where all of them can be read.
fn members_of(kind: Type, read: &Salvaged) -> Option<Vec<(&'static str, Value)>> {
    let keyword = ("type", Value::from(kind.keyword()));
    Some(match kind {
        Type::Return => {
            vec![keyword, ("value", read.get("value").or(read.get("result")).or(read.get("answer"))?.clone())]
        }
        Type::Call => {
            let method = read.first_text(&["method", "verb"]).map(str::to_ascii_uppercase);
            let route = read.first_text(&["route", "endpoint", "path", "url"])?.trim();
            let route = match method {
                Some(method) if route.starts_with('/') => format!("{method} {route}"),
                _ => route.to_owned(),
            };
            let known: Vec<&str> = KEYS.iter().copied().chain(["method", "verb", "endpoint", "path", "url"]).collect();
            let payload = read.arguments("payload", &known)?;
            let description = read.text("description").unwrap_or("").to_owned();
            vec![
                keyword,
                ("route", Value::from(route)),
                ("payload", Value::Object(payload)),
                ("description", Value::from(description)),
            ]
        }
        Type::Delegate => vec![keyword, ("task", Value::from(read.text("task")?))],
        Type::Await | Type::Load => {
            vec![keyword, ("ticket_id", Value::from(read.first_text(&["ticket_id", "ticket", "id"])?))]
        }
    })
}
