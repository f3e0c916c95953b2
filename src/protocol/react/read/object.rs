//! The react object: its fields, what they mean, and what is published of it while it arrives.

use crate::protocol::arguments::{Written, arguments};
use crate::protocol::correction::{Correction, Salvaged, is_answer, written};
use crate::protocol::field_reader::{FieldReader, Form};
use crate::protocol::field_stream::Piece;
use crate::protocol::find_payload::{FoundPayload, PayloadKind};
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::{Code, Delta, Move, ReadOptions, ToolCall, Violation, answer};
use crate::reply::json::{Field, Record};
use crate::reply::json_text;
use crate::reply::{BoxedViolation, Repair, RepairCode, RepairPolicy, Value};
use crate::tool::AnswerType;
use std::sync::Arc;

/// The keys of both forms.
pub(super) const KEYS: &[&str] = &["thought", "action", "args", "final_answer", "task_successful"];

/// What is sought in a reply.
pub(super) static PAYLOAD: PayloadKind = PayloadKind {
    keys: KEYS,
    own: KEYS,
    aliases: &[
        ("thoughts", "thought"),
        ("reasoning", "thought"),
        ("tool", "action"),
        ("tool_name", "action"),
        ("action_input", "args"),
        ("arguments", "args"),
        ("parameters", "args"),
        ("params", "args"),
        ("input", "args"),
        ("tool_input", "args"),
        ("kwargs", "args"),
        ("finalAnswer", "final_answer"),
        ("answer", "final_answer"),
        ("success", "task_successful"),
    ],
    is: |record| record.fields.keys().any(|key| super::MOVE_KEYS.contains(&key)),
    same,
};

/// Whether two objects say the same, however their arguments are written.
fn same(a: &Record, b: &Record) -> bool {
    let arguments = |field: &Field| match &*field.value {
        Value::String(text) => json_text::parse(text).map_or_else(|| Arc::clone(&field.value), Arc::new),
        _ => Arc::clone(&field.value),
    };
    a.fields.object().matches(b.fields.object(), |key, field, other| {
        field.value == other.value || key == "args" && arguments(field) == arguments(other)
    })
}

const CALL: &str = r#"{"thought": "why", "action": "tool_name", "args": {"name": "value"}}"#;
const STRICT_CALL: &str = r#"{"thought": "why", "action": "tool_name", "args": "{\"name\": \"value\"}"}"#;
const FINISH: &str = r#"{"thought": "why", "action": "FINISH", "final_answer": ..., "task_successful": true}"#;

/// How to answer, for those who call it otherwise.
pub(in crate::protocol) const ANSWER: &str =
    "to answer, write \"action\": \"FINISH\" with 'final_answer' and 'task_successful', and no 'args'";

const CALL_FORM: Form = Form {
    name: "a tool call",
    keys: &["thought", "action", "args"],
    nullable: &[],
    protocol: KEYS,
    arguments: "inside 'args'",
    effect: true,
    expected: CALL,
};
static STRICT_CALL_FORM: Form = Form { expected: STRICT_CALL, ..CALL_FORM };
const FINISH_FORM: Form = Form {
    name: "a final answer",
    keys: &["thought", "action", "final_answer", "task_successful"],
    nullable: &[],
    protocol: KEYS,
    arguments: "",
    effect: false,
    expected: FINISH,
};

static PLAIN_FINISH_FORM: Form = FINISH_FORM;
/// The final answer of a type, which may admit null.
static TYPED_FINISH_FORM: Form = Form { nullable: &["final_answer"], ..FINISH_FORM };

/// The smallest correct final answer of a type, as feedback shows it.
pub(in crate::protocol) fn finish_form(returns: &AnswerType) -> String {
    let shape = returns.shape();
    format!(r#"{{"thought": "...", "action": "FINISH", "final_answer": {shape}, "task_successful": true}}"#)
}

/// The smallest correct call, as feedback shows it.
pub(in crate::protocol) fn call_form(policy: RepairPolicy) -> &'static str {
    if policy == RepairPolicy::Strict { STRICT_CALL } else { CALL }
}

pub(super) struct Object {
    pub(super) thought: Option<String>,
    pub(super) outcome: Move,
    pub(super) repairs: Vec<Repair>,
}

/// Whether an object holds a thought and nothing else.
pub(super) fn is_thought(record: &Record) -> bool {
    let text = |field: &Field| matches!(*field.value, Value::String(_));
    !record.supplied && record.fields.iter().len() == 1 && record.fields.get("thought").is_some_and(text)
}

/// Reads a complete object.
pub(super) fn read(
    found: &FoundPayload,
    raw: &str,
    options: &ReadOptions,
    returns: Option<&AnswerType>,
) -> Result<Object, BoxedViolation> {
    read_object(found, raw, options, returns).map_err(|mut fault| {
        if let Some(returns) = returns
            && (fault.code == Code::InvalidAnswer || fault.expected.as_deref() == Some(FINISH))
        {
            fault.expected = Some(finish_form(returns));
        }
        fault
    })
}

fn read_object(
    found: &FoundPayload,
    raw: &str,
    options: &ReadOptions,
    returns: Option<&AnswerType>,
) -> Result<Object, BoxedViolation> {
    let mut notes = RepairNotes::new(options.repairs);
    if found.in_array {
        notes.note(RepairCode::SingleElementArray, found.root)?;
    }
    let record = &found.record;
    let at = if found.in_array { "/0".to_owned() } else { String::new() };
    let form = if options.repairs == RepairPolicy::Strict { &STRICT_CALL_FORM } else { &CALL_FORM };
    let mut reader = FieldReader { record, form, at, notes: &mut notes };
    let has = |key: &str| record.fields.get(key).is_some_and(|field| *field.value != Value::Null);

    let (action, action_span) = reader.name("action")?;
    let keyword = action == "FINISH" || action.eq_ignore_ascii_case("FINISH") && (has("final_answer") || !has("args"));
    if keyword {
        reader.form = if returns.is_some() { &TYPED_FINISH_FORM } else { &PLAIN_FINISH_FORM };
        if action != "FINISH" {
            reader.notes.note(RepairCode::KeywordCase, action_span)?;
        }
    }
    let thought = reader.thoughts("thought")?;
    if thought.is_none() {
        reader.notes.note(RepairCode::MissingThoughts, record.span)?;
    }
    let outcome = if keyword { finish(&mut reader, options, returns)? } else { call(&mut reader, raw, options)? };
    Ok(Object { thought, outcome, repairs: notes.into_sorted() })
}

fn call(reader: &mut FieldReader<'_>, raw: &str, options: &ReadOptions) -> Result<Move, BoxedViolation> {
    let record = reader.record;
    let (tool, tool_span) = match reader.get("action") {
        Some(field) => (field.value.as_str().unwrap_or("").trim(), field.span),
        None => return Err(reader.missing("action")),
    };
    if tool.is_empty() {
        let message = "expected the name of a tool or FINISH in 'action': it is empty";
        let fault = reader.fault(Code::MissingField, message, tool_span, "action");
        return Err(Box::new(fault.expected(FINISH).hint(ANSWER)));
    }
    for key in ["final_answer", "task_successful"] {
        let Some(field) = reader.get(key) else { continue };
        if key == "task_successful" && is_false(&field.value) {
            reader.notes.note(RepairCode::UnknownKeyDropped, field.span)?;
            continue;
        }
        if key == "final_answer" && field.value.as_str().is_some_and(|answer| answer.trim().is_empty()) {
            reader.notes.note(RepairCode::EmptyField, field.span)?;
            continue;
        }
        let message = format!("expected either a tool call or a final answer: got the call of '{tool}' with '{key}'");
        return Err(both(reader, message, key));
    }
    let (arguments, arguments_span) = arguments(reader, "args", Written::AsText, raw, options)?;
    reader.meant("thought")?;
    // They were judged above; their nulls are noted with the rest.
    let unread = rest(reader, &["final_answer", "task_successful"])?;
    let call = ToolCall {
        call_id: None,
        tool: tool.to_owned(),
        arguments,
        description: None,
        span: record.span,
        tool_span,
        arguments_span,
        unread,
    };
    Ok(Move::Call { calls: vec![call] })
}

fn finish(
    reader: &mut FieldReader<'_>,
    options: &ReadOptions,
    returns: Option<&AnswerType>,
) -> Result<Move, BoxedViolation> {
    if let Some(field) = reader.get("args") {
        let empty = match &*field.value {
            Value::Object(object) => object.is_empty(),
            Value::String(text) => matches!(text.trim(), "" | "{}" | "null"),
            _ => false,
        };
        if !empty {
            return Err(both(reader, "expected either a tool call or a final answer: got FINISH with 'args'", "args"));
        }
        reader.notes.note(RepairCode::EmptyArgs, field.span)?;
    }
    let (value, coerced) = match returns {
        None => (Arc::new(Value::from(reader.text("final_answer")?.0)), Vec::new()),
        Some(returns) => {
            let field = reader.required("final_answer")?;
            let checked = answer::read(returns, "final_answer", field, &reader.at, options, true)?;
            (checked.value, checked.coerced)
        }
    };
    let field = reader.required("task_successful")?;
    let success = match &*field.value {
        Value::Bool(success) => *success,
        Value::String(text) if is_word(text, "true") || is_word(text, "false") => {
            reader.notes.note(RepairCode::BoolFromString, field.span)?;
            is_word(text, "true")
        }
        other => return Err(reader.bad_type("task_successful", field, "true or false", other)),
    };
    rest(reader, &["args"])?;
    Ok(Move::Finish { value, success: Some(success), coerced })
}

/// Notes and drops what is left, but for keys that were judged before and are `null` or harmless.
fn rest(reader: &mut FieldReader<'_>, judged: &[&str]) -> Result<Vec<String>, BoxedViolation> {
    for key in judged {
        if let Some(field) = reader.record.fields.get(key)
            && *field.value == Value::Null
        {
            reader.notes.note(RepairCode::NullField, field.span)?;
        }
    }
    reader.rest(judged)
}

fn both(reader: &FieldReader<'_>, message: impl Into<String>, key: &str) -> BoxedViolation {
    let fields = &reader.record.fields;
    let place = fields.get(key).map_or(reader.record.span, |field| field.key_span);
    let fault = reader.fault(Code::BothActionAndFinal, message, place, key);
    let fault = match fields.get("action") {
        Some(action) => fault.related(action.span, "the action"),
        None => *fault,
    };
    let action = fields.get("action").and_then(|field| field.value.as_str()).unwrap_or("");
    Box::new(if action != "FINISH" && is_answer(action) {
        fault.expected(FINISH).hint(ANSWER)
    } else {
        fault.hint("first call the tool, and answer when its outcome is there")
    })
}

fn is_word(text: &str, word: &str) -> bool {
    text.trim().eq_ignore_ascii_case(word)
}

fn is_false(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => !flag,
        Value::String(text) => is_word(text, "false"),
        _ => false,
    }
}

/// The violation of a reply whose only object is of another kind.
pub(super) fn misfit(record: &Record, policy: RepairPolicy) -> BoxedViolation {
    let known = |key: &str| KEYS.contains(&key);
    if let Some((key, field)) = record.fields.iter().find(|(key, _)| !known(key)) {
        let shown = Value::from(key).to_json();
        let message = format!("expected an object with 'action': got the unknown key {shown} and no 'action'");
        return Box::new(Violation::new(Code::UnknownKey, message).at(field.key_span).expected(call_form(policy)));
    }
    let message = "expected an object with 'action': got one that says nothing of what to do";
    Box::new(Violation::new(Code::NoAction, message).at(record.span).expected(call_form(policy)))
}

/// Publishes the object while it arrives.
#[derive(Debug, Default)]
pub(super) struct DeltaWriter {
    named: bool,
    /// The answer has a type, and whether its text is published as JSON.
    typed: bool,
    json_text: bool,
}

impl DeltaWriter {
    pub(super) fn new(returns: Option<&AnswerType>) -> Self {
        Self { named: false, typed: returns.is_some(), json_text: answer::publishes_json(returns) }
    }

    /// What a piece of a field is news of.
    pub(super) fn write(&mut self, key: &str, piece: &Piece<'_>, deltas: &mut Vec<Delta>) {
        match (key, piece) {
            ("thought", Piece::Text(more)) => deltas.push(Delta::Thoughts((*more).to_owned())),
            ("final_answer", Piece::Text(more)) if self.json_text => deltas.push(Delta::Value((*more).to_owned())),
            ("final_answer", Piece::Json(more)) if self.typed => deltas.push(Delta::Value((*more).to_owned())),
            ("final_answer", Piece::Text(more)) => deltas.push(Delta::Answer((*more).to_owned())),
            ("args", Piece::Text(more) | Piece::Json(more)) => {
                deltas.push(Delta::Arguments { call: 0, text: (*more).to_owned() });
            }
            ("action", Piece::End(field)) => {
                if let Some(name) = field.value.as_str().map(str::trim)
                    && !name.is_empty()
                    && !name.eq_ignore_ascii_case("FINISH")
                {
                    self.named = true;
                    deltas.push(Delta::Tool { call: 0, name: name.to_owned(), span: field.span });
                }
            }
            _ => {}
        }
    }

    /// The object is complete: a tool called like the keyword is known only now.
    pub(super) fn close(&mut self, object: &Result<Object, BoxedViolation>, deltas: &mut Vec<Delta>) {
        if let Ok(Object { outcome: Move::Finish { value, .. }, .. }) = object
            && value.as_str() == Some("")
        {
            deltas.push(Delta::Answer(String::new()));
        }
        if let Ok(Object { outcome: Move::Call { calls }, .. }) = object
            && let Some(call) = calls.first()
            && !self.named
        {
            deltas.push(Delta::Tool { call: 0, name: call.tool.clone(), span: call.tool_span });
        }
    }
}

/// The object that a broken reply was to be, where it is certain.
pub(in crate::protocol) fn corrected(
    raw: &str,
    policy: RepairPolicy,
    returns: Option<&AnswerType>,
) -> Option<Correction> {
    let read = Salvaged::read(raw, KEYS);
    let thought = Value::from(read.text("thought").unwrap_or("I go on."));
    let action = read.first_text(&["action", "tool", "tool_name", "name", "function"]);
    if let Some(returns) = returns
        && action.map_or(read.get("final_answer").is_some(), is_answer)
    {
        return Some(Correction::form(finish_form(returns)));
    }
    let answer = read.first_text(&["final_answer", "answer"]).filter(|answer| !answer.trim().is_empty());
    if action.map_or(answer.is_some(), is_answer) {
        let within = || {
            let arguments = read.arguments("args", KEYS)?;
            match arguments.values().next() {
                Some(Value::String(text)) if arguments.len() == 1 => Some(text.to_string()),
                _ => None,
            }
        };
        let plain = || read.text("args").filter(|text| !text.trim_start().starts_with('{') && !text.trim().is_empty());
        let answer = answer.map(str::to_owned).or_else(within).or_else(|| plain().map(str::to_owned));
        let Some(answer) = answer else { return Some(Correction::form(FINISH)) };
        let success = !matches!(read.get("task_successful"), Some(Value::Bool(false)));
        return Some(Correction::certain(written(&[
            ("thought", thought),
            ("action", Value::from("FINISH")),
            ("final_answer", Value::from(answer)),
            ("task_successful", Value::Bool(success)),
        ])));
    }
    let known: Vec<&str> = KEYS.iter().copied().chain(["tool", "tool_name", "name", "function"]).collect();
    let action = Value::from(action?.trim());
    let Some(arguments) = read.arguments("args", &known) else {
        let members = written(&[("thought", thought), ("action", action)]);
        let members = members.trim_end_matches('}');
        return Some(Correction::form(format!(r#"{members}, "args": {{...}}}}"#)));
    };
    Some(Correction::certain(call_of(thought, action, &Value::Object(arguments), policy)))
}

/// The object that makes a call.
pub(in crate::protocol) fn written_call(tool: &str, arguments: &Value, policy: RepairPolicy) -> String {
    call_of(Value::from("I go on."), Value::from(tool), arguments, policy)
}

fn call_of(thought: Value, action: Value, arguments: &Value, policy: RepairPolicy) -> String {
    let arguments = match policy {
        RepairPolicy::Strict => Value::from(arguments.to_json()),
        RepairPolicy::Default | RepairPolicy::Lenient => arguments.clone(),
    };
    written(&[("thought", thought), ("action", action), ("args", arguments)])
}
