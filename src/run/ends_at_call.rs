//! Runs that end at their first valid move. A call is one: it opens no ticket and has no effect, and the run ends with its
//! checked calls as the value, for whoever makes them.

use super::event::{Event, StopReason};
use super::machine::RunMachine;
use super::plan::Planned;
use super::reference::{self, Names};
use crate::codes::Code;
use crate::protocol::ToolCall;
use crate::reply::violation::Violation;
use crate::reply::{Object, Value};
use std::sync::Arc;

impl RunMachine {
    /// Whether the run has ended with calls as its value, and not with an answer.
    pub fn ended_at_calls(&self) -> bool {
        let position = &self.state.position;
        let finished = position.ending.as_ref().is_some_and(|ending| ending.reason == StopReason::Finished);
        self.setup.ends_at_call && finished && position.answer.is_none()
    }

    /// Ends the run with these calls, which were checked.
    pub(super) fn end_at_calls(&mut self, calls: &[Planned], now: f64) {
        self.stream = None;
        let value = Arc::new(Value::Array(calls.iter().map(written).collect()));
        let reason = StopReason::Finished;
        self.emit(Event::RunFinished { reason, value, success: None, error: None, limit: None }, now);
    }
}

/// `{"id": …, "tool": …, "arguments": …, "coerced": […]}`: without an id where the model gave none, and with the JSON
/// pointers of what was read as another type only where something was.
fn written(call: &Planned) -> Value {
    let mut object = Object::new();
    if let Some(id) = call.call_id.as_deref() {
        object.insert("id", Value::from(id));
    }
    object.insert("tool", Value::from(&*call.tool));
    object.insert("arguments", Value::clone(&call.arguments));
    if !call.coerced.is_empty() {
        let pointers = call.coerced.iter().map(|pointer| Value::from(pointer.as_str()));
        object.insert("coerced", Value::Array(pointers.collect()));
    }
    Value::Object(object)
}

/// Refuses arguments that refer to the result of a call: nothing puts it in here, and as text it would be sent as it is.
/// `named` is whether a call of this block has a name, and `ids` are all of these names.
pub(super) fn refuse_references(
    call: &ToolCall,
    named: impl Fn(&str) -> bool,
    ids: &Names<'_>,
) -> Result<(), Violation> {
    let mut whole = reference::mentions(&call.arguments, false).into_iter();
    let whole = whole.find(|mention| named(mention.name) || reference::is_id_of_a_call(mention.name));
    let Some(mention) = whole.or_else(|| ids.inside_text(&call.arguments, |_| false)) else { return Ok(()) };
    let message = format!("expected a value: got a reference to the call '{}'", mention.name);
    let violation = Violation::new(Code::BadReference, message).at(call.arguments_span).pointer(mention.pointer);
    Err(violation.hint(
        "make the call that needs a result later, when the result is there, and write the value itself; \
         write '$$' for a literal '$'",
    ))
}
