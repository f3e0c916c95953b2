//! The next message of a native run: one result for each call of the reply before it, then texts.

use super::ANSWER_TOOL;
use super::items::{Kind, Line, Lines, decoded};
use crate::protocol::message_entry::{Answered, MessageEntry, Outcomes, quote, repetition};
use crate::ticket::{Outcome, TicketId};
use std::collections::{BTreeMap, BTreeSet};

/// The results of calls that were not executed.
const NOT_EXECUTED: &str = "not executed: another call of this reply was refused";
const NO_REPLY: &str = "not executed: the reply as a whole was refused";
const AT_LIMIT: &str = "not executed: the limit of this run is reached";
const ANSWERED: &str = "the answer was given to the user";
const CANCELLED: &str = "not executed: the run was stopped";

/// The message: a line of JSON for each item.
pub(super) fn message(entries: &[MessageEntry], outcomes: Outcomes<'_>) -> String {
    let told: BTreeMap<TicketId, Told> = entries.iter().filter_map(|entry| Told::of(entry, outcomes)).collect();
    let mut out = String::new();
    let mut paired = BTreeSet::new();
    if let Some(answered) = outcomes.answered {
        let refused = entries.iter().find_map(|entry| match entry {
            MessageEntry::Refused { feedback, call } => Some((feedback.as_str(), *call)),
            _ => None,
        });
        let at_limit = entries.iter().any(|entry| matches!(entry, MessageEntry::LastTurn(_)));
        let lines = Lines::of(answered.reply);
        for (position, line) in lines.calls().enumerate() {
            let ticket = answered.tickets.get(&position).copied();
            let told = ticket.and_then(|ticket| told.get(&ticket));
            paired.extend(ticket);
            let default = default_result(&answered, line, refused, position, at_limit);
            push_result(&mut out, answered.reply, line, told.unwrap_or(&default));
        }
    }
    for entry in entries {
        match entry {
            MessageEntry::Task(text)
            | MessageEntry::Reminder(text)
            | MessageEntry::Note(text)
            | MessageEntry::Violation(text)
            | MessageEntry::LastTurn(text) => push_text(&mut out, text),
            MessageEntry::Refused { feedback, call } => {
                // The result of a call has this text already.
                if call.is_none() || outcomes.answered.is_none() {
                    push_text(&mut out, feedback);
                }
            }
            MessageEntry::Result { ticket, .. }
            | MessageEntry::Spawned(ticket)
            | MessageEntry::Loaded(ticket)
            | MessageEntry::LoadedPart { ticket, .. }
            | MessageEntry::Dropped(ticket)
            | MessageEntry::Completed(ticket) => {
                if paired.contains(ticket) {
                    continue;
                }
                // An earlier call, such as the start of an agent, has ended meanwhile.
                if let (Some(told), Some(of)) = (told.get(ticket), outcomes.tickets.get(*ticket)) {
                    let mark = if told.failed { "error: " } else { "" };
                    push_text(&mut out, &format!("{} ({ticket}): {mark}{}", of.tool, told.content));
                }
            }
        }
    }
    out
}

/// The result of a call, as the model reads it.
struct Told {
    content: String,
    failed: bool,
}

impl Told {
    fn of(entry: &MessageEntry, outcomes: Outcomes<'_>) -> Option<(TicketId, Self)> {
        match entry {
            MessageEntry::Result { ticket: id, times } => {
                let (ticket, outcome) = outcomes.get(*id)?;
                let mut content = outcomes.text(ticket, outcome).into_owned();
                if let Some(note) = repetition(*times) {
                    content.push_str("\n(note: ");
                    content.push_str(&note);
                    content.push(')');
                }
                Some((*id, Self { content, failed: !matches!(outcome, Outcome::Ok(_)) }))
            }
            MessageEntry::Spawned(id) => {
                let content = format!("{{\"agent_id\": \"{id}\", \"status\": \"IN_PROGRESS\"}}");
                Some((*id, Self { content, failed: false }))
            }
            _ => None,
        }
    }
}

/// The result of a call without a ticket.
fn default_result(
    answered: &Answered<'_>,
    line: &Line,
    refused: Option<(&str, Option<usize>)>,
    position: usize,
    at_limit: bool,
) -> Told {
    let failed = |content: &str| Told { content: content.to_owned(), failed: true };
    match refused {
        Some((feedback, Some(call))) if call == position => return failed(feedback),
        Some((_, Some(_))) => return failed(NOT_EXECUTED),
        Some((_, None)) => return failed(NO_REPLY),
        None => {}
    }
    if let Kind::Call { tool, .. } = line.kind
        && decoded(answered.reply, tool) == ANSWER_TOOL
    {
        return Told { content: ANSWERED.to_owned(), failed: false };
    }
    failed(if at_limit { AT_LIMIT } else { CANCELLED })
}

fn push_result(out: &mut String, reply: &str, line: &Line, told: &Told) {
    let Kind::Call { id, tool, .. } = line.kind else { return };
    let quoted = |literal| quote(&decoded(reply, literal));
    let parts = [
        "{\"result\":",
        &quoted(id),
        ",\"tool\":",
        &quoted(tool),
        ",\"content\":",
        &quote(&told.content),
        ",\"error\":",
        if told.failed { "true" } else { "false" },
        "}\n",
    ];
    out.extend(parts);
}

fn push_text(out: &mut String, text: &str) {
    out.extend(["{\"text\":", &quote(text), "}\n"]);
}
