//! Large parts of events, stored separately: the event's JSON has `null` instead of them.

use crate::part::Part;
use crate::protocol::Message;
use crate::run::{Event, Instructions, Limits, Parent, Setup, Snapshot, Spent, Start};
use crate::ticket::{Outcome, TicketId, is_false};
use serde::Serialize;
use std::sync::Arc;

/// Bytes of a result that stays in its event.
pub(super) const INLINE: usize = 4 << 10;

/// A part that is stored separately.
#[derive(Clone, Copy)]
pub(super) enum Apart<'a> {
    /// The setup of a run, which many runs share.
    Setup(&'a Arc<Setup>),
    /// A result longer than `INLINE`.
    Result(&'a str),
}

/// An event as it is stored.
pub(super) struct Stored<'a> {
    /// The event with its kind, as `{"kind":data}`.
    text: String,
    /// The part that `text` lacks.
    pub(super) part: Option<Apart<'a>>,
}

/// The events that have such a part, with null for it: field by field as in `Event`.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Without<'a> {
    RunStarted(StartWithout<'a>),
    Compacted {
        start: StartWithout<'a>,
        hash: &'a str,
        sum: &'a str,
        state: &'a Snapshot,
    },
    TicketCompleted {
        ticket: TicketId,
        outcome: OutcomeWithout,
        #[serde(skip_serializing_if = "Option::is_none")]
        spent: Option<&'a Spent>,
        #[serde(skip_serializing_if = "<[Part]>::is_empty")]
        parts: &'a [Part],
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<&'a str>,
        #[serde(skip_serializing_if = "is_false")]
        untrusted: bool,
    },
}

#[derive(Serialize)]
struct StartWithout<'a> {
    version: u32,
    run_id: &'a str,
    agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seal_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a Parent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<&'a Limits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a Instructions>,
    #[serde(skip_serializing_if = "<[Message]>::is_empty")]
    messages: &'a [Message],
    #[serde(skip_serializing_if = "is_false")]
    untrusted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
    task: &'a str,
    #[serde(skip_serializing_if = "<[Part]>::is_empty")]
    parts: &'a [Part],
    setup: (),
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum OutcomeWithout {
    Ok(()),
}

impl<'a> From<&'a Start> for StartWithout<'a> {
    fn from(start: &'a Start) -> Self {
        // All fields by name: the compiler then refuses to leave out a new one.
        let Start {
            version,
            run_id,
            agent,
            owner,
            key,
            seal_key,
            parent,
            depth,
            limits,
            instructions,
            messages,
            untrusted,
            traceparent,
            task,
            parts,
            setup: _,
        } = start;
        Self {
            version: *version,
            run_id,
            agent,
            owner: owner.as_deref(),
            key: key.as_deref(),
            seal_key: seal_key.as_deref(),
            parent: parent.as_ref(),
            depth: (*depth > 0).then_some(*depth),
            limits: limits.as_ref(),
            instructions: instructions.as_ref(),
            messages,
            untrusted: *untrusted,
            traceparent: traceparent.as_deref(),
            task,
            parts,
            setup: (),
        }
    }
}

/// Takes an event apart.
pub(super) fn split(event: &Event) -> serde_json::Result<Stored<'_>> {
    let (without, part) = match event {
        Event::RunStarted(start) => (Without::RunStarted((&**start).into()), Apart::Setup(&start.setup)),
        Event::Compacted { start, hash, sum, state } => {
            (Without::Compacted { start: (&**start).into(), hash, sum, state }, Apart::Setup(&start.setup))
        }
        Event::TicketCompleted { ticket, outcome: Outcome::Ok(json), spent, parts, by, untrusted }
            if json.get().len() > INLINE =>
        {
            let (ticket, outcome, spent) = (*ticket, OutcomeWithout::Ok(()), spent.as_deref());
            let (by, untrusted) = (by.as_deref(), *untrusted);
            (Without::TicketCompleted { ticket, outcome, spent, parts, by, untrusted }, Apart::Result(json.get()))
        }
        _ => return Ok(Stored { text: serde_json::to_string(event)?, part: None }),
    };
    Ok(Stored { text: serde_json::to_string(&without)?, part: Some(part) })
}

impl Stored<'_> {
    /// The kind, and the JSON under it.
    pub(super) fn parts(&self) -> Option<(&str, &str)> {
        self.text.strip_prefix("{\"")?.strip_suffix('}')?.split_once("\":")
    }
}

/// The event's JSON again, with its kind.
pub(super) fn join(kind: &str, data: &str, part: Option<&str>) -> Option<String> {
    let Some(part) = part else { return Some(format!("{{\"{kind}\":{data}}}")) };
    // Quotes in strings are escaped, so this can only be the key itself.
    let key = if kind == "ticket_completed" { "\"ok\":null" } else { "\"setup\":null" };
    let (before, after) = data.split_once(key)?;
    let key = key.strip_suffix("null")?;
    Some(format!("{{\"{kind}\":{before}{key}{part}{after}}}"))
}
