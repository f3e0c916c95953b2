//! What the next message tells the model, and what it has been shown.

use super::{LastMessage, Phase, RunState};
use crate::part::Part;
use crate::protocol::message_entry::bytes_of;
use crate::protocol::{Answered, Message, MessageEntry, Outcomes, Parts, Protocol, Role};
use crate::run::event::Shortened;
use crate::ticket::{Ticket, TicketId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a result that is no longer than the sentence that would replace it.
const SHORT: usize = 64;

/// Bytes of a result that are shown however little room there is.
const LEAST: usize = 256;

impl RunState {
    pub(super) fn on_model_asked(&mut self, turn: u32, protocol: &dyn Protocol) {
        if self.calls.script.is_some() {
            return self.on_interpreter_asked(turn);
        }
        self.position.midway = false;
        self.calls.count_early();
        let batch = std::mem::take(&mut self.calls.batch);
        let mut entries = self.results(&batch, protocol);
        entries.append(&mut self.conversation.entries);
        self.calls.batch_open = 0;
        let said = std::mem::take(&mut self.conversation.said);
        // A question that is asked again, because its answer never came, has nothing new to tell.
        if turn == 1
            || !entries.is_empty()
            || self.conversation.messages.last().is_some_and(|last| last.role != Role::User)
        {
            let mut listed = std::mem::take(&mut self.conversation.changed);
            listed.extend(self.calls.open.keys());
            let listed: Vec<TicketId> = listed.into_iter().collect();
            for id in self.shown_untrusted(&entries, protocol) {
                self.conversation.untrusted = true;
                self.conversation.read_untrusted.entry(id).or_insert(turn);
            }
            let mut message = self.written(&entries, &listed, &batch, protocol);
            message.parts = self.shown_parts(&entries, protocol);
            message.parts.append(&mut self.conversation.said_parts);
            let longest = self.longest_of(&entries, protocol);
            self.conversation.long.has_cut |=
                self.conversation.long.parts != Parts::None && longest > self.conversation.long.bytes;
            let is_feedback = |entry| matches!(entry, &MessageEntry::Violation(_) | &MessageEntry::Refused { .. });
            if said || !entries.iter().all(is_feedback) {
                self.conversation.refused.keep(self.conversation.messages.len().saturating_sub(1));
            }
            if said {
                self.conversation.said_at = self.conversation.messages.len();
            }
            self.conversation.messages.push(message);
            let may_be_cut = longest > LEAST && self.conversation.framed;
            self.conversation.long.last = may_be_cut.then_some(LastMessage { entries, listed, batch });
        }
        self.position.turn = turn;
        self.position.phase = Phase::Asking;
    }

    pub(super) fn shorten(&mut self, shortened: &Shortened, protocol: &dyn Protocol) {
        self.conversation.shortened = Some(Arc::new(shortened.clone()));
        if let Some(bytes) = shortened.result_bytes {
            self.cut_results(bytes, protocol);
        }
    }

    /// Shows fewer bytes of each result from now on, in the last message too.
    fn cut_results(&mut self, bytes: usize, protocol: &dyn Protocol) {
        self.conversation.long.bytes = self.conversation.long.bytes.min(bytes);
        let Some(last) = self.conversation.long.last.clone() else { return };
        let Some(before) = self.conversation.messages.pop() else { return };
        let message = self.written(&last.entries, &last.listed, &last.batch, protocol);
        self.conversation.long.has_cut |= self.longest_of(&last.entries, protocol) > self.conversation.long.bytes;
        self.conversation.messages.push(Message { parts: before.parts, ..message });
    }

    /// Bytes that the last message shows of its longest result; 0 where that is no longer than what is always shown.
    pub fn longest_shown(&self, protocol: &dyn Protocol) -> usize {
        let last = self.conversation.long.last.as_ref();
        last.map_or(0, |last| self.longest_of(&last.entries, protocol).min(self.conversation.long.bytes))
    }

    /// Bytes of the longest result that these entries show, from where they begin to show it.
    fn longest_of(&self, entries: &[MessageEntry], protocol: &dyn Protocol) -> usize {
        let loads = protocol.loads_results();
        let bytes = |id: TicketId, offset: usize| {
            let part = self.calls.tickets.get(id).and_then(|ticket| ticket.reads);
            let (id, offset) = part.map_or((id, offset), |part| (part.ticket, part.offset));
            let outcome = self.calls.tickets.get(id)?.outcome.as_ref()?;
            // Escapes make no result more than three times as long.
            let is_short = outcome.text().len() <= LEAST && self.conversation.long.bytes >= 3 * LEAST;
            let bytes = if is_short { outcome.text().len() } else { bytes_of(outcome, loads) };
            Some(bytes.saturating_sub(offset))
        };
        let shown = entries.iter().filter_map(|entry| match entry {
            MessageEntry::Loaded(id) => bytes(*id, 0),
            MessageEntry::LoadedPart { ticket, offset } => bytes(*ticket, *offset),
            MessageEntry::Result { ticket, .. } if !loads => bytes(*ticket, 0),
            _ => None,
        });
        shown.max().unwrap_or(0)
    }

    /// The message of these entries, and the same without the results that were loaded into it.
    fn written(
        &self,
        entries: &[MessageEntry],
        listed: &[TicketId],
        batch: &BTreeMap<usize, TicketId>,
        protocol: &dyn Protocol,
    ) -> Message {
        let reply = self.answered(protocol);
        let is_last = self.position.last_turn.is_some();
        let outcomes = Outcomes {
            tickets: &self.calls.tickets,
            result_bytes: self.conversation.long.bytes,
            // In the last turn nothing more can be asked for.
            parts: if is_last { Parts::None } else { self.conversation.long.parts },
            framed: self.conversation.framed,
            listed: (!is_last).then_some(listed),
            own_task: self.conversation.own_task.as_deref(),
            answered: reply.as_deref().map(|reply| Answered { reply, tickets: batch }),
        };
        let mut message = Message::new(Role::User, protocol.message(entries, outcomes));
        let loaded = |entry: &MessageEntry| match entry {
            MessageEntry::Loaded(id) | MessageEntry::LoadedPart { ticket: id, .. } => Some(*id),
            _ => None,
        };
        let outcome = |id: TicketId| self.calls.tickets.get(id)?.outcome.as_ref();
        if entries.iter().filter_map(loaded).filter_map(outcome).any(|outcome| outcome.text().len() > SHORT) {
            let short = entries.iter().map(|entry| loaded(entry).map_or_else(|| entry.clone(), MessageEntry::Dropped));
            let short: Vec<MessageEntry> = short.collect();
            message.short = Some(protocol.message(&short, outcomes).into());
        }
        message
    }

    /// The results of the calls of the last reply, by their positions in it.
    fn results(&mut self, batch: &BTreeMap<usize, TicketId>, protocol: &dyn Protocol) -> Vec<MessageEntry> {
        let mut entries = Vec::with_capacity(self.calls.batch.len() + self.conversation.entries.len());
        for id in batch.values().copied() {
            let Some(ticket) = self.calls.tickets.get(id) else { continue };
            if ticket.detached {
                entries.push(MessageEntry::Spawned(id));
            } else if let Some(outcome) = &ticket.outcome {
                let short = protocol.inlines(outcome.text().len());
                entries.push(MessageEntry::Result { ticket: id, times: self.calls.times.remove(&id).unwrap_or(1) });
                // A last turn has been told of it already.
                if protocol.guides_to_results() && !self.conversation.loaded.contains(&id) {
                    entries.push(if short { MessageEntry::Loaded(id) } else { MessageEntry::Completed(id) });
                    if short {
                        self.conversation.loaded.insert(id);
                    }
                }
            }
        }
        entries
    }

    /// The reply to which the next message has results.
    fn answered(&self, protocol: &dyn Protocol) -> Option<Arc<str>> {
        // Before the first turn there is an earlier conversation at most, which is text.
        let last = self.conversation.messages.last().filter(|last| last.role == Role::Assistant);
        last.filter(|_| protocol.pairs_results() && self.position.turn > 0).map(|last| Arc::clone(&last.content))
    }

    /// The tickets whose outcomes these entries show.
    fn shown<'a>(
        &'a self,
        entries: &'a [MessageEntry],
        protocol: &'a dyn Protocol,
    ) -> impl Iterator<Item = &'a Ticket> {
        entries.iter().filter_map(|entry| match entry {
            MessageEntry::Loaded(id) | MessageEntry::LoadedPart { ticket: id, .. } => self.calls.tickets.get(*id),
            MessageEntry::Result { ticket, .. } if !protocol.guides_to_results() => self.calls.tickets.get(*ticket),
            _ => None,
        })
    }

    /// Images and files of the results that these entries show.
    fn shown_parts(&self, entries: &[MessageEntry], protocol: &dyn Protocol) -> Vec<Part> {
        self.shown(entries, protocol).flat_map(|ticket| &ticket.parts).cloned().collect()
    }

    /// The untrusted results that these entries show.
    fn shown_untrusted(&self, entries: &[MessageEntry], protocol: &dyn Protocol) -> Vec<TicketId> {
        self.shown(entries, protocol).filter(|ticket| ticket.tells_untrusted()).map(|ticket| ticket.id).collect()
    }
}
