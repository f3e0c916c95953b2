//! The parts of a reply that have arrived so far, for readers that poll instead of handling each delta.

use super::Delta;

/// The deltas of one reply, joined.
#[derive(Debug, Default)]
pub struct ReplySnapshot {
    /// The thoughts.
    pub thoughts: String,
    /// The reasoning in front of a reply whose protocol has thoughts of its own (ticket, react).
    pub reasoning: String,
    /// The text before a tool block, or the direct answer (chatty).
    pub text: String,
    /// The final answer, once it has begun.
    pub answer: Option<SnapshotAnswer>,
    /// The id of the ticket to await or load.
    pub ticket_id: Option<String>,
    calls: Vec<SnapshotCall>,
}

/// A final answer.
#[derive(Debug)]
pub enum SnapshotAnswer {
    /// Text.
    Text(String),
    /// Any other JSON value (ticket).
    Json(Unread),
}

/// A call.
#[derive(Debug, Default)]
pub struct SnapshotCall {
    /// Its own id (chatty).
    pub id: Option<String>,
    /// Its tool or route.
    pub tool: Option<String>,
    /// Its arguments.
    pub arguments: Unread,
}

/// The JSON text that has come since it was last taken.
#[derive(Debug, Default)]
pub struct Unread(String);

impl Unread {
    /// Moves it to the end of what was read before.
    pub fn read_to(&mut self, text: &mut String) {
        text.push_str(&self.0);
        self.0.clear();
    }
}

impl ReplySnapshot {
    /// Joins what is new.
    pub fn add(&mut self, delta: &Delta) {
        match delta {
            Delta::Thoughts(more) => self.thoughts.push_str(more),
            Delta::Reasoning(more) => self.reasoning.push_str(more),
            Delta::Text(more) => self.text.push_str(more),
            Delta::Answer(more) => {
                if let SnapshotAnswer::Text(text) = self.answer.get_or_insert(SnapshotAnswer::Text(String::new())) {
                    text.push_str(more);
                }
            }
            Delta::Value(more) => {
                if let SnapshotAnswer::Json(Unread(text)) =
                    self.answer.get_or_insert(SnapshotAnswer::Json(Unread::default()))
                {
                    text.push_str(more);
                }
            }
            Delta::CallId { call, id } => self.call_to(*call, |told| told.id = Some(id.clone())),
            Delta::Tool { call, name, .. } => self.call_to(*call, |told| told.tool = Some(name.clone())),
            Delta::Arguments { call, text } => self.call_to(*call, |told| told.arguments.0.push_str(text)),
            Delta::TicketId { id, .. } => self.ticket_id = Some(id.clone()),
            Delta::CallReady { .. } => {}
        }
    }

    /// How many calls there certainly are: arguments alone may belong to a final answer, which may have empty ones.
    pub fn calls(&self) -> usize {
        self.calls.iter().rposition(|call| call.id.is_some() || call.tool.is_some()).map_or(0, |last| last + 1)
    }

    /// A call that has begun to arrive.
    pub fn call(&self, call: usize) -> Option<&SnapshotCall> {
        self.calls.get(call)
    }

    /// The same, to take its arguments.
    pub fn call_mut(&mut self, call: usize) -> Option<&mut SnapshotCall> {
        self.calls.get_mut(call)
    }

    fn call_to(&mut self, call: usize, add: impl FnOnce(&mut SnapshotCall)) {
        if self.calls.len() <= call {
            self.calls.resize_with(call + 1, SnapshotCall::default);
        }
        if let Some(told) = self.calls.get_mut(call) {
            add(told);
        }
    }
}
