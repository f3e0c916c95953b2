//! What the next message tells the model, and what it has been shown.

use super::{Phase, RunState};
use crate::part::Part;
use crate::protocol::{Answered, Message, MessageEntry, Outcomes, Protocol, Role};
use crate::ticket::{Ticket, TicketId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a result that is no longer than the sentence that would replace it.
const SHORT: usize = 64;

impl RunState {
    pub(super) fn on_model_asked(&mut self, turn: u32, protocol: &dyn Protocol) {
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
            let reply = self.answered(protocol);
            let outcomes = Outcomes {
                tickets: &self.calls.tickets,
                result_bytes: self.conversation.result_bytes,
                framed: self.conversation.framed,
                listed: self.position.last_turn.is_none().then_some(&listed),
                own_task: self.conversation.own_task.as_deref(),
                answered: reply.as_deref().map(|reply| Answered { reply, tickets: &batch }),
            };
            let mut message = Message::new(Role::User, protocol.message(&entries, outcomes));
            message.parts = self.shown_parts(&entries, protocol);
            message.parts.append(&mut self.conversation.said_parts);
            let long = |entry: &MessageEntry| match entry {
                MessageEntry::Loaded(id) => {
                    self.calls.tickets.get(*id)?.outcome.as_ref().map(|outcome| outcome.text().len())
                }
                _ => None,
            };
            if entries.iter().filter_map(long).any(|bytes| bytes > SHORT) {
                for entry in &mut entries {
                    if let MessageEntry::Loaded(id) = entry {
                        *entry = MessageEntry::Dropped(*id);
                    }
                }
                message.short = Some(protocol.message(&entries, outcomes).into());
            }
            let is_feedback = |entry| matches!(entry, &MessageEntry::Violation(_) | &MessageEntry::Refused { .. });
            if said || !entries.iter().all(is_feedback) {
                self.conversation.refused.keep(self.conversation.messages.len().saturating_sub(1));
            }
            if said {
                self.conversation.said_at = self.conversation.messages.len();
            }
            self.conversation.messages.push(message);
        }
        self.position.turn = turn;
        self.position.phase = Phase::Asking;
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
            MessageEntry::Loaded(id) => self.calls.tickets.get(*id),
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
