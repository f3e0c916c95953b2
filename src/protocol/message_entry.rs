//! The content of the next message to the model, and the parts that all three protocols share.

use crate::ticket::{Outcome, Ticket, TicketId, TicketList};
use crate::tool::describe::truncate;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One entry of the next message to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageEntry {
    /// What the user asks for: the task, or what was said later.
    Task(String),
    /// What a task ends with, for models that answer where they should call.
    Reminder(String),
    /// A call of the last reply has ended.
    Result {
        /// Its ticket.
        ticket: TicketId,
        /// How many times the same call has now given the same result; 1 the first time.
        times: u32,
    },
    /// A call of the last reply has started an agent, which works on (chatty).
    Spawned(TicketId),
    /// This ticket's result, which the last reply asked for, or which came at once and is short (ticket).
    Loaded(TicketId),
    /// The same, and the result was left out to make room.
    Dropped(TicketId),
    /// This ticket is completed, and its result is shown when it is loaded (ticket).
    #[serde(alias = "awaited")]
    Completed(TicketId),
    /// Something that is to be known of the last reply, which was carried out.
    Note(String),
    /// The last reply broke the protocol: the feedback, as it is sent.
    Violation(String),
    /// Why the coming reply is the last one, and offers no tools.
    LastTurn(String),
}

/// Tickets and the bound on what is shown of their results.
#[derive(Debug, Clone, Copy)]
pub struct Outcomes<'a> {
    /// The tickets of the run.
    pub tickets: &'a TicketList,
    /// Bytes of one result that are shown; longer ones are cut with a visible mark.
    pub result_bytes: usize,
    /// Those that the message lists, oldest first; all others are completed. `None` lists them all (ticket).
    pub listed: Option<&'a [TicketId]>,
    /// The run's own task in a few words, which is in the list as well (ticket).
    pub own_task: Option<&'a str>,
}

/// Characters of the run's own task that stand in the list of tickets: each message has them.
const OWN_TASK: usize = 60;

/// The run's own task, as the list of tickets describes it.
pub(crate) fn own_task(task: &str) -> String {
    let words: Vec<&str> = task.split_whitespace().take(OWN_TASK).collect();
    format!("your own task: {}", truncate(&words.join(" "), OWN_TASK))
}

impl<'a> Outcomes<'a> {
    /// The ticket and its outcome, where it has one.
    pub(super) fn get(&self, id: TicketId) -> Option<(&'a Ticket, &'a Outcome)> {
        let ticket = self.tickets.get(id)?;
        Some((ticket, ticket.outcome.as_ref()?))
    }

    /// A result as text: a string as it is, anything else as compact JSON, cut where it is too long.
    pub(super) fn text(&self, ticket: &'a Ticket, outcome: &'a Outcome) -> Cow<'a, str> {
        let whole = match outcome {
            Outcome::Ok(json) if json.get().starts_with('"') => {
                serde_json::from_str::<String>(json.get()).map_or(Cow::Borrowed(json.get()), Cow::Owned)
            }
            other => Cow::Borrowed(other.text()),
        };
        self.truncate(whole, ticket.id)
    }

    /// A result as JSON; one that is too long becomes a JSON string of its beginning.
    pub(super) fn json(&self, ticket: &'a Ticket, json: &'a str) -> Cow<'a, str> {
        if json.len() <= self.result_bytes {
            return Cow::Borrowed(json);
        }
        Cow::Owned(quote(&self.truncate(Cow::Borrowed(json), ticket.id)))
    }

    fn truncate(&self, whole: Cow<'a, str>, id: TicketId) -> Cow<'a, str> {
        if whole.len() <= self.result_bytes {
            return whole;
        }
        let mut end = self.result_bytes;
        while !whole.is_char_boundary(end) {
            end -= 1;
        }
        let shown = whole.get(..end).unwrap_or("");
        Cow::Owned(format!(
            "{shown}\n[cut: {end} of {} bytes are shown; ticket {id} keeps the whole result]",
            whole.len()
        ))
    }
}

/// The note beside a result that the same call has given before.
pub(super) fn repetition(times: u32) -> Option<String> {
    (times > 1).then(|| {
        format!(
            "this is the same call with the same result as before ({times} times now): calling it again will not \
             change the result"
        )
    })
}

/// JSON text of a string.
pub(super) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
