//! What the model was told, what the next message tells it, and what it is shown no longer.

use crate::part::Part;
use crate::protocol::{Message, MessageEntry, Parts, ToolCall, unknown_keys};
use crate::run::event::Shortened;
use crate::run::refused_values::RefusedValues;
use crate::run::said::{SaidUnderKey, Words};
use crate::ticket::{TicketId, TicketList, is_false};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Results that the last turn puts before the model unasked.
const UNSEEN: usize = 16;

/// The results that are too long for a message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::run) struct LongResults {
    /// The longest part in a message, in bytes. The stored state has it beside these.
    #[serde(skip)]
    pub(in crate::run) bytes: usize,
    /// How the model asks for parts, by the first event of the run.
    #[serde(skip)]
    pub(in crate::run) parts: Parts,
    /// Whether one was cut that the model was shown.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(in crate::run) has_cut: bool,
    /// What the last message tells, where it may be cut to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::run) last: Option<LastMessage>,
}

impl LongResults {
    /// Whether nothing is known of them.
    pub(in crate::run) fn is_nothing(&self) -> bool {
        !self.has_cut && self.last.is_none()
    }
}

/// What a message is written from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::run) struct LastMessage {
    pub(super) entries: Vec<MessageEntry>,
    pub(super) listed: Vec<TicketId>,
    pub(super) batch: BTreeMap<usize, TicketId>,
}

/// The conversation of a run with its model.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact, which stands by its name in the log")]
pub struct Conversation {
    /// All messages so far. They never change.
    pub messages: Vec<Message>,
    /// What the model is shown no longer.
    pub shortened: Option<Arc<Shortened>>,
    /// The position of the message with the user's last words; 0 for the task.
    pub said_at: usize,
    /// Whether any message or result has images or files.
    pub has_parts: bool,
    /// Whether the model has read untrusted results, or began with what was written after such.
    pub untrusted: bool,
    /// Results that are too long for a message.
    pub(in crate::run) long: LongResults,
    /// Whether results stand in frames. Runs begun before version 9 continue without.
    pub(in crate::run) framed: bool,
    /// What each task ends with.
    pub(in crate::run) reminder: Option<Arc<str>>,
    /// Whether there is a message of the user that the model has not seen.
    pub(in crate::run) said: bool,
    /// The keys of the user's messages.
    pub(in crate::run) said_keys: BTreeMap<String, SaidUnderKey>,
    /// Images and files of the user that the model has not seen.
    pub(in crate::run) said_parts: Vec<Part>,
    /// Images and files of the user so far.
    pub(in crate::run) user_parts: u32,
    /// Tickets whose results the model was shown: on its own asking, inline, or in a last turn (ticket).
    pub(in crate::run) loaded: BTreeSet<TicketId>,
    /// The run's own task, as the list of tickets describes it (ticket).
    pub(in crate::run) own_task: Option<Arc<str>>,
    /// Tickets that were opened or changed since the last message.
    pub(in crate::run) changed: BTreeSet<TicketId>,
    /// What counts as the user's words since the task: each message, and the answer of the model that it follows.
    pub(in crate::run) words: Vec<Words>,
    /// Whether words of the user are missing, because a version that did not keep them has compacted the log.
    pub(in crate::run) words_lost: bool,
    /// The untrusted results that the model was shown, with the turn of the first request that had them.
    pub(in crate::run) read_untrusted: BTreeMap<TicketId, u32>,
    /// The calls that were refused because of where their values come from.
    pub(in crate::run) refused: RefusedValues,
    /// What the next message tells beside the results of the last reply's calls.
    pub(in crate::run) entries: Vec<MessageEntry>,
}

impl Conversation {
    /// The run's own task, as the list of tickets describes it. `None` where the list does not have it.
    pub fn own_task(&self) -> Option<&str> {
        self.own_task.as_deref()
    }

    /// The positions of refused replies that the model is shown no longer, with the message behind each.
    pub fn hidden_replies(&self) -> Vec<usize> {
        self.refused.hidden(self.messages.len().saturating_sub(1)).collect()
    }

    /// Whether the model was shown the result of any call.
    pub fn has_read(&self) -> bool {
        !self.loaded.is_empty()
    }

    /// Whether the model is shown no more than before.
    pub(in crate::run) fn can_be_shortened(&self, shortened: &Shortened) -> bool {
        let before = self.shortened.as_ref().map_or(0, |before| before.exchanges);
        (before..=shortened.results).contains(&shortened.exchanges)
    }

    pub(super) fn add_task(&mut self, task: &str) {
        self.entries.push(MessageEntry::Task(task.to_owned()));
        self.entries.extend(self.reminder.as_deref().map(|reminder| MessageEntry::Reminder(reminder.to_owned())));
    }

    pub(super) fn add_user_parts(&mut self, parts: &[Part]) {
        self.user_parts = self.user_parts.saturating_add(u32::try_from(parts.len()).unwrap_or(u32::MAX));
        self.said_parts.extend_from_slice(parts);
        self.has_parts |= self.user_parts > 0;
    }

    pub(super) fn note_key(&mut self, key: Option<&str>, text: &str, parts: &[Part]) {
        if let Some(key) = key {
            self.said_keys.insert(key.to_owned(), SaidUnderKey::new(text, parts, self.user_parts));
        }
    }

    /// Names the keys of a reply that were ignored: they may have had a meaning for the model.
    pub(super) fn note_unread_keys(&mut self, calls: &[ToolCall]) {
        let mut keys: Vec<&str> = calls.iter().flat_map(|call| &call.unread).map(String::as_str).collect();
        keys.dedup();
        if !keys.is_empty() {
            let keys = unknown_keys::listed(keys.into_iter());
            self.entries.push(MessageEntry::Note(format!(
                "Note: the {keys} of your reply was left out: a call has no such key."
            )));
        }
    }

    /// Puts results before the model that it can't ask for any more: those never loaded (ticket), those of agents
    /// never waited for (chatty).
    pub(super) fn show_unseen_results(&mut self, tickets: &TicketList, background: bool) {
        let unseen = tickets.iter().filter(|ticket| {
            ticket.outcome.is_some() && (background || ticket.detached) && !self.loaded.contains(&ticket.id)
        });
        let mut unseen: Vec<TicketId> = unseen.map(|ticket| ticket.id).collect();
        // The latest are the likeliest to matter, and a message has an end.
        let earlier = unseen.len().saturating_sub(UNSEEN);
        unseen.drain(..earlier);
        self.entries.retain(|entry| !matches!(entry, MessageEntry::Completed(_)));
        let tell =
            |id| if background { MessageEntry::Loaded(id) } else { MessageEntry::Result { ticket: id, times: 1 } };
        self.entries.extend(unseen.iter().copied().map(tell));
        if background {
            self.loaded.extend(unseen);
        }
    }

    /// Tells the result of a ticket from a byte on; with `None`, that it is there.
    pub(super) fn tell_result(&mut self, ticket: TicketId, offset: Option<usize>) {
        self.entries.push(match offset {
            None => MessageEntry::Completed(ticket),
            Some(0) => MessageEntry::Loaded(ticket),
            Some(offset) => MessageEntry::LoadedPart { ticket, offset },
        });
        if offset.is_some() {
            self.loaded.insert(ticket);
        }
    }

    /// Whether the next message says that a ticket is completed, or what came of it.
    pub(super) fn is_announced(&self, id: TicketId) -> bool {
        let tells = |entry: &MessageEntry| {
            matches!(entry, MessageEntry::Completed(told)
            | MessageEntry::Loaded(told)
            | MessageEntry::LoadedPart { ticket: told, .. } if *told == id)
        };
        self.entries.iter().any(tells)
    }
}
