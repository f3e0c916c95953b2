//! One call of a tool block: `{call_id, tool_name, arguments}`.

use crate::protocol::arguments::{Written, arguments};
use crate::protocol::correction::{Salvaged, written};
use crate::protocol::field_reader::{FieldReader, Form};
use crate::protocol::repair_notes::RepairNotes;
use crate::protocol::{Code, ReadOptions, ToolCall, Violation, lint};
use crate::reply::json::Record;
use crate::reply::{BoxedViolation, RepairCode, Span, Value};
use std::collections::{HashMap, HashSet};

/// The keys of a call.
pub(super) const KEYS: &[&str] = &["call_id", "tool_name", "arguments"];

/// Other names of these keys.
pub(super) const ALIASES: &[(&str, &str)] = &[
    ("id", "call_id"),
    ("callId", "call_id"),
    ("tool_call_id", "call_id"),
    ("name", "tool_name"),
    ("tool", "tool_name"),
    ("toolName", "tool_name"),
    ("function", "tool_name"),
    ("args", "arguments"),
    ("parameters", "arguments"),
    ("params", "arguments"),
    ("input", "arguments"),
    ("kwargs", "arguments"),
];

/// The smallest correct call.
pub(super) const CALL: &str = r#"{"call_id": "call_1", "tool_name": "tool_name", "arguments": {"name": "value"}}"#;

static FORM: Form = Form {
    name: "a call",
    keys: KEYS,
    nullable: &[],
    protocol: KEYS,
    arguments: "inside 'arguments'",
    effect: true,
    expected: CALL,
};

/// The calls of a reply so far, each found by its id.
#[derive(Debug, Default)]
pub(super) struct Calls {
    all: Vec<ToolCall>,
    ids: HashMap<String, usize>,
}

impl Calls {
    pub(super) fn all(&self) -> &[ToolCall] {
        &self.all
    }

    pub(super) fn into_all(self) -> Vec<ToolCall> {
        self.all
    }

    pub(super) fn push(&mut self, call: ToolCall) {
        if let Some(id) = &call.call_id {
            self.ids.insert(id.clone(), self.all.len());
        }
        self.all.push(call);
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.ids.contains_key(id)
    }

    /// The call that has the id of another.
    pub(super) fn twin(&self, call: &ToolCall) -> Option<&ToolCall> {
        self.all.get(*self.ids.get(call.call_id.as_deref()?)?)
    }
}

/// Reads one call. `before` are the calls ahead of it in its block, `number` counts all of them; `None` says that it is an identical copy of one of them.
pub(super) fn read(
    record: &Record,
    place: &str,
    before: &Calls,
    number: usize,
    raw: &str,
    options: &ReadOptions,
    notes: &mut RepairNotes,
) -> Result<Option<ToolCall>, BoxedViolation> {
    let mut reader = FieldReader { record, form: &FORM, at: place.to_owned(), notes };
    let (tool, tool_span) = reader.name("tool_name")?;
    if tool.is_empty() {
        let message = "expected the name of a tool in 'tool_name': it is empty";
        return Err(reader.fault(Code::MissingField, message, tool_span, "tool_name"));
    }
    let (arguments, arguments_span) = arguments(&mut reader, "arguments", Written::AsObject, raw, options)?;
    let (call_id, id_span) = if reader.get("call_id").is_some() {
        reader.id("call_id")?
    } else {
        reader.notes.note(RepairCode::MissingCallId, record.span)?;
        (free_id(before, number), record.span)
    };
    let unread = reader.rest(&[])?;
    let call = ToolCall {
        call_id: Some(call_id),
        tool: tool.to_owned(),
        arguments,
        description: None,
        span: record.span,
        tool_span,
        arguments_span,
        unread,
    };
    if let Some(twin) = before.twin(&call) {
        if twin.tool == call.tool && twin.arguments == call.arguments {
            reader.notes.note(RepairCode::DuplicateObjectDropped, record.span)?;
            return Ok(None);
        }
        let id = call.call_id.as_deref().unwrap_or_default();
        let message = format!("expected a call_id of its own for each call: got '{id}' twice");
        let fault = reader.fault(Code::DuplicateCallId, message, id_span, "call_id");
        return Err(Box::new(fault.related(twin.span, "the first call with it")));
    }
    Ok(Some(call))
}

/// The id of a call that has none: `call_` and its number, unless that is taken.
fn free_id(before: &Calls, number: usize) -> String {
    let mut id = format!("call_{number}");
    while before.has(&id) {
        id.push('_');
    }
    id
}

/// The calls that a broken reply was to make, where they are certain.
pub(in crate::protocol) fn corrected(violation: &Violation, raw: &str) -> Option<String> {
    let names = &["tool_name", "name", "tool", "function", "action"];
    let arguments = &["arguments", "args", "parameters", "input", "payload"];
    if violation.code == Code::DuplicateCallId {
        return renumbered(raw);
    }
    if violation.code == Code::MultipleActions || raw.matches("tool_name").count() > 1 {
        return None;
    }
    let keys: Vec<&str> = names.iter().chain(arguments).copied().collect();
    let read = Salvaged::read(raw, &keys);
    let name = read.first_text(names)?.trim();
    let own = arguments.iter().find(|key| read.get(key).is_some()).unwrap_or(&"arguments");
    let known: Vec<&str> = keys.iter().copied().chain(["call_id", "id"]).collect();
    let given = read.arguments(own, &known)?;
    let call_id = read.first_text(&["call_id", "id"]).unwrap_or("call_1");
    Some(written_call(call_id, name, Value::Object(given)))
}

/// The calls of a reply that gives one id to several, each with an id of its own; `None` where a reference names that id.
fn renumbered(raw: &str) -> Option<String> {
    let read = |span: Span| {
        let read = Salvaged::read(span.of(raw), KEYS);
        let (id, tool) = (read.text("call_id")?.to_owned(), read.text("tool_name")?.to_owned());
        read.whole.then_some(())?;
        Some((id, tool, Value::Object(read.arguments("arguments", KEYS)?)))
    };
    let calls: Vec<_> = lint::objects(raw, KEYS).into_iter().map(read).collect::<Option<_>>()?;
    let given: HashSet<String> = calls.iter().map(|(id, ..)| id.clone()).collect();
    let mut taken = HashSet::new();
    let mut texts = Vec::new();
    for (id, tool, arguments) in calls {
        let mut own = id.clone();
        if taken.contains(&id) {
            if raw.contains(&format!("${id}")) {
                return None;
            }
            let mut free = (1..).map(|number| format!("call_{number}"));
            own = free.find(|id| !given.contains(id) && !taken.contains(id))?;
        }
        texts.push(written_call(&own, &tool, arguments));
        taken.insert(own);
    }
    (texts.len() > 1).then(|| texts.join(", "))
}

/// The object that is a call.
pub(in crate::protocol) fn written_call(call_id: &str, tool: &str, arguments: Value) -> String {
    written(&[("call_id", Value::from(call_id)), ("tool_name", Value::from(tool)), ("arguments", arguments)])
}
