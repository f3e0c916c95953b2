//! One call, and how JSON objects of other protocols hold it.

use super::cursor::{self, Json};
use crate::protocol::unknown_keys::{self, Carries};
use crate::reply::json::{Field, Record};
use crate::reply::{Object, Repair, RepairCode, Span, Value};

/// Keys of a tool's name, of its arguments, of the call's id.
const NAMES: &[&str] = &["name", "tool_name", "tool", "function", "action", "route"];
const ARGUMENTS: &[&str] =
    &["arguments", "parameters", "args", "params", "input", "action_input", "tool_input", "payload"];
const IDS: &[&str] = &["id", "call_id", "tool_call_id"];
/// What the `type` of a call says.
const TYPES: &[&str] = &["function", "tool_use", "tool_call", "function_call", "CALL"];

#[derive(Debug)]
pub(in crate::protocol) struct Call {
    pub(in crate::protocol) tool: String,
    pub(in crate::protocol) arguments: Value,
    pub(super) id: Option<String>,
    pub(super) span: Span,
    pub(super) tool_span: Span,
    pub(super) arguments_span: Span,
    /// Keys that were dropped.
    pub(super) unread: Vec<String>,
    pub(super) repairs: Vec<Repair>,
}

impl Call {
    pub(super) fn new(tool: (String, Span), arguments: Object, arguments_span: Span, span: Span) -> Self {
        Self {
            tool: tool.0,
            arguments: Value::Object(arguments),
            id: None,
            span,
            tool_span: tool.1,
            arguments_span,
            unread: Vec::new(),
            repairs: Vec::new(),
        }
    }

    /// Whether both ask for the same.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.tool == other.tool && self.arguments == other.arguments
    }
}

/// The calls of a JSON object or of an array of objects; `None` if one of them is not a call, or needs a guess.
pub(super) fn of_json(json: Json) -> Option<Vec<Call>> {
    let mut calls: Vec<Call> = json.records.iter().map(of_record).collect::<Option<_>>()?;
    calls.first_mut()?.repairs.extend(json.repairs);
    Some(calls)
}

fn of_record(record: &Record) -> Option<Call> {
    if record.supplied {
        return None;
    }
    let fields = &record.fields;
    // `{"type": "function", "function": {…}}`, as in requests to servers.
    let nested = fields.get("function").and_then(|field| Some((field, field.value.as_object()?)));
    let mut members: Vec<(&str, &Value, Option<&Field>)> =
        fields.iter().map(|(key, field)| (key, &*field.value, Some(field))).collect();
    if let Some((_, object)) = nested {
        members.retain(|(key, ..)| *key != "function");
        members.extend(object.iter().map(|(key, value)| (key, value, None)));
    }
    let (mut tool, mut arguments, mut id, mut unread) = (None, None, None, Vec::new());
    let has_parameters = members.iter().any(|(key, ..)| *key == "parameters");
    for (key, value, field) in members {
        let place = field.map_or(record.span, |field| field.span);
        if *value == Value::Null && !ARGUMENTS.contains(&key) {
            continue;
        }
        if NAMES.contains(&key) && tool.is_none() {
            tool = Some((cursor::name(value.as_str()?)?, place));
        } else if ARGUMENTS.contains(&key) && arguments.is_none() {
            arguments = Some((object_of(value)?, place));
        } else if IDS.contains(&key) && id.is_none() {
            id = Some(match value {
                Value::String(text) => text.to_string(),
                Value::Number(number) => number.as_str().to_owned(),
                _ => return None,
            });
        } else if key == "type" && value.as_str().is_some_and(|text| TYPES.contains(&text)) {
        } else if unknown_keys::is_empty(value) || unknown_keys::carries(key, value, true) == Carries::Nothing {
            unread.push(key.to_owned());
        } else {
            return None;
        }
    }
    // It may define a tool: models repeat the list of tools that they were given.
    if has_parameters && unread.iter().any(|key| key == "description") {
        return None;
    }
    let missing = arguments.is_none().then(|| Repair::new(RepairCode::MissingArguments, Span::at(record.span.start)));
    let (arguments, arguments_span) = arguments.unwrap_or_else(|| (Object::new(), record.span));
    let call = Call::new(tool?, arguments, arguments_span, record.span);
    Some(Call {
        id: id.filter(|id: &String| !id.trim().is_empty()),
        unread,
        repairs: missing.into_iter().collect(),
        ..call
    })
}

/// The object that arguments are: itself, its JSON text, or none.
fn object_of(value: &Value) -> Option<Object> {
    match unknown_keys::decoded(value).into_owned() {
        Value::Object(object) => Some(object),
        value if unknown_keys::is_empty(&value) => Some(Object::new()),
        _ => None,
    }
}
