//! The content of the next message to the model, and the parts that all protocols share.

use crate::ticket::{Outcome, Ticket, TicketId, TicketList};
use crate::tool::READ_RESULT;
use crate::tool::describe::truncate;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

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
    /// The same from a byte of the result on (ticket).
    LoadedPart {
        /// The ticket.
        ticket: TicketId,
        /// Bytes of the result that are skipped.
        offset: usize,
    },
    /// The same, and the result was left out to make room.
    Dropped(TicketId),
    /// This ticket is completed, and its result is shown when it is loaded (ticket).
    #[serde(alias = "awaited")]
    Completed(TicketId),
    /// Something that is to be known of the last reply, which was carried out.
    Note(String),
    /// The last reply broke the protocol: the feedback, as it is sent.
    Violation(String),
    /// The same for a protocol with a result for each call (native).
    Refused {
        /// The feedback, as it is sent.
        feedback: String,
        /// The position of the invalid call in the reply; `None` if no call is the reason.
        call: Option<usize>,
    },
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
    /// How the model asks for the rest of a longer one.
    pub parts: Parts,
    /// Whether the text of a result is kept from looking like what is around it. Older runs go on as they began.
    pub framed: bool,
    /// Those that the message lists, oldest first; all others are completed. `None` lists them all (ticket).
    pub listed: Option<&'a [TicketId]>,
    /// The run's own task in a few words, which is in the list as well (ticket).
    pub own_task: Option<&'a str>,
    /// The reply before the message, for a protocol with a result for each call (native).
    pub answered: Option<Answered<'a>>,
}

/// How a model asks for the next part of a result that was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parts {
    /// It can't.
    #[default]
    None,
    /// With the move that loads results (ticket).
    Load,
    /// With a call of `read_result`.
    Call,
}

impl Parts {
    fn advice(self, id: TicketId, offset: usize) -> String {
        match self {
            Self::None => format!("ticket {id} keeps the whole result"),
            Self::Load => format!("LOAD_TICKET {id} with the offset {offset} shows the next part"),
            Self::Call => format!("call {READ_RESULT} with the ticket {id} and the offset {offset} for the next part"),
        }
    }
}

/// A reply before a message with its results.
#[derive(Debug, Clone, Copy)]
pub struct Answered<'a> {
    /// Its text.
    pub reply: &'a str,
    /// The tickets of its calls, by their positions in the reply.
    pub tickets: &'a BTreeMap<usize, TicketId>,
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

    /// A result as text, with the mark if it was cut.
    pub(super) fn text(&self, ticket: &'a Ticket, outcome: &'a Outcome) -> Cow<'a, str> {
        joined(self.shown(ticket, outcome))
    }

    /// The same from a byte of it on.
    pub(super) fn part(&self, ticket: &'a Ticket, outcome: &'a Outcome, offset: usize) -> Cow<'a, str> {
        joined(self.cut(as_text(outcome, self.framed), ticket.id, offset))
    }

    /// A result as text, and the mark if it was cut because it is too long. Of a call that reads a part of another
    /// result, that part.
    pub(super) fn shown(&self, ticket: &'a Ticket, outcome: &'a Outcome) -> (Cow<'a, str>, Option<String>) {
        let part = ticket.reads.and_then(|part| Some((self.get(part.ticket)?, part.offset)));
        match part {
            Some(((read, outcome), offset)) => self.cut(as_text(outcome, self.framed), read.id, offset),
            None => self.cut(as_text(outcome, self.framed), ticket.id, 0),
        }
    }

    /// A result as JSON from a byte on; one that is too long becomes a JSON string of what is shown.
    pub(super) fn json(&self, ticket: &'a Ticket, json: &'a str, offset: usize) -> Cow<'a, str> {
        match self.cut(self.on_one_line(json.into()), ticket.id, offset) {
            (json, None) => json,
            (start, Some(mark)) => self.on_one_line(quote(&format!("{start}\n{mark}")).into()),
        }
    }

    /// The same JSON without the characters in its strings that end a line for some readers.
    pub(super) fn on_one_line<'b>(&self, json: Cow<'b, str>) -> Cow<'b, str> {
        if self.framed { escaped(json) } else { json }
    }

    fn cut(&self, whole: Cow<'a, str>, id: TicketId, offset: usize) -> (Cow<'a, str>, Option<String>) {
        let bytes = whole.len();
        if offset == 0 && bytes <= self.result_bytes {
            return (whole, None);
        }
        let start = boundary(&whole, offset);
        // Each part has a character, or the model would ask for the same one again.
        let next = whole.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        let end = boundary(&whole, start.saturating_add(self.result_bytes)).max(start + next);
        let mark = match (start, end < bytes) {
            (_, false) => format!("[bytes {start} to {end} of {bytes} are shown: this is the end]"),
            (0, true) => format!("[cut: {end} of {bytes} bytes are shown; {}]", self.parts.advice(id, end)),
            (_, true) => {
                format!("[cut: bytes {start} to {end} of {bytes} are shown; {}]", self.parts.advice(id, end))
            }
        };
        (whole.get(start..end).unwrap_or("").to_owned().into(), Some(mark))
    }
}

fn joined((text, mark): (Cow<'_, str>, Option<String>)) -> Cow<'_, str> {
    match mark {
        None => text,
        Some(mark) => Cow::Owned(format!("{text}\n{mark}")),
    }
}

/// The last boundary of characters that is not past an offset.
fn boundary(text: &str, offset: usize) -> usize {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// A result as text: a string as it is, anything else as compact JSON.
fn as_text(outcome: &Outcome, framed: bool) -> Cow<'_, str> {
    match outcome {
        Outcome::Ok(json) => match serde_json::from_str::<String>(json.get()) {
            Ok(text) => Cow::Owned(text),
            Err(_) if framed => escaped(json.get().into()),
            Err(_) => json.get().into(),
        },
        other => Cow::Borrowed(other.text()),
    }
}

/// Bytes of a result as its model is shown it: as JSON where it is loaded (ticket), else as text.
pub(crate) fn bytes_of(outcome: &Outcome, as_json: bool) -> usize {
    match outcome {
        Outcome::Ok(json) if as_json => escaped(json.get().into()).len(),
        other => as_text(other, true).len(),
    }
}

/// The text of a part of a result, as a model is shown it.
pub(crate) fn part_of(outcome: &Outcome, offset: usize, bytes: usize) -> String {
    let text = as_text(outcome, true);
    let start = boundary(&text, offset);
    text.get(start..boundary(&text, start.saturating_add(bytes))).unwrap_or("").to_owned()
}

/// JSON without the characters in its strings that end a line for some readers.
fn escaped(json: Cow<'_, str>) -> Cow<'_, str> {
    if !json.contains(LATE_LINE_ENDS) {
        return json;
    }
    let escaped = LATE_LINE_ENDS
        .iter()
        .fold(json.into_owned(), |json, mark| json.replace(*mark, &format!("\\u{:04x}", u32::from(*mark))));
    Cow::Owned(escaped)
}

/// What begins each line but the first of a result with several (react).
const INDENT: &str = "  ";

/// Whether some reader takes the text after this character for another line.
pub(super) fn ends_line(mark: char) -> bool {
    matches!(mark, '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Text in which all lines but the first are indented, so that none of them looks like a line of the message. Without the
/// indents it is the text again.
pub(super) fn indented(text: &str) -> Cow<'_, str> {
    if !text.contains(ends_line) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(mark) = rest.next() {
        out.push(mark);
        if ends_line(mark) && (mark != '\r' || rest.peek() != Some(&'\n')) {
            out.push_str(INDENT);
        }
    }
    Cow::Owned(out)
}

/// Characters that end a line for some readers, and that JSON does not escape.
const LATE_LINE_ENDS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// The beginning of the note that stands beside a result.
pub(super) const REPETITION: &str = "this is the same call with the same result as before";

/// The note beside a result that the same call has given before.
pub(super) fn repetition(times: u32) -> Option<String> {
    (times > 1).then(|| format!("{REPETITION} ({times} times now): calling it again will not change the result"))
}

/// JSON text of a string.
pub(super) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
