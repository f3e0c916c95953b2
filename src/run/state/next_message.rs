//! What the next message tells the model, and what it has been shown.

use super::{Phase, RunState};
use crate::part::Part;
use crate::protocol::{Message, MessageEntry, Outcomes, Protocol, Role};
use crate::ticket::{Ticket, TicketId};

/// Results that the last turn puts before the model unasked.
const UNSEEN: usize = 16;
/// Bytes of a result that is no longer than the sentence that would replace it.
const SHORT: usize = 64;

impl RunState {
    pub(super) fn on_model_asked(&mut self, turn: u32, protocol: &dyn Protocol) {
        self.midway = false;
        self.count_early();
        let mut entries = Vec::with_capacity(self.batch.len() + self.entries.len());
        for id in std::mem::take(&mut self.batch).into_values() {
            let Some(ticket) = self.tickets.get(id) else { continue };
            if ticket.detached {
                entries.push(MessageEntry::Spawned(id));
            } else if let Some(outcome) = &ticket.outcome {
                let short = protocol.inlines(outcome.text().len());
                entries.push(MessageEntry::Result { ticket: id, times: self.times.remove(&id).unwrap_or(1) });
                // A last turn has been told of it already.
                if protocol.guides_to_results() && !self.loaded.contains(&id) {
                    entries.push(if short { MessageEntry::Loaded(id) } else { MessageEntry::Completed(id) });
                    if short {
                        self.loaded.insert(id);
                    }
                }
            }
        }
        entries.append(&mut self.entries);
        self.batch_open = 0;
        let said = std::mem::take(&mut self.said);
        // A question that is asked again, because its answer never came, has nothing new to tell.
        if turn == 1 || !entries.is_empty() || self.messages.last().is_some_and(|last| last.role != Role::User) {
            let mut listed = std::mem::take(&mut self.changed);
            listed.extend(self.open_calls.keys());
            let listed: Vec<TicketId> = listed.into_iter().collect();
            let outcomes = Outcomes {
                tickets: &self.tickets,
                result_bytes: self.result_bytes,
                framed: self.framed,
                listed: self.last_turn.is_none().then_some(&listed),
                own_task: self.own_task.as_deref(),
            };
            let mut message = Message::new(Role::User, protocol.message(&entries, outcomes));
            self.untrusted |= self.shows_untrusted(&entries, protocol);
            message.parts = self.shown_parts(&entries, protocol);
            message.parts.append(&mut self.said_parts);
            let long = |entry: &MessageEntry| match entry {
                MessageEntry::Loaded(id) => self.tickets.get(*id)?.outcome.as_ref().map(|outcome| outcome.text().len()),
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
            if said {
                self.said_at = self.messages.len();
            }
            self.messages.push(message);
        }
        self.turn = turn;
        self.phase = Phase::Asking;
    }

    /// The tickets whose outcomes these entries show.
    fn shown<'a>(
        &'a self,
        entries: &'a [MessageEntry],
        protocol: &'a dyn Protocol,
    ) -> impl Iterator<Item = &'a Ticket> {
        entries.iter().filter_map(|entry| match entry {
            MessageEntry::Loaded(id) => self.tickets.get(*id),
            MessageEntry::Result { ticket, .. } if !protocol.guides_to_results() => self.tickets.get(*ticket),
            _ => None,
        })
    }

    /// Images and files of the results that these entries show.
    fn shown_parts(&self, entries: &[MessageEntry], protocol: &dyn Protocol) -> Vec<Part> {
        self.shown(entries, protocol).flat_map(|ticket| &ticket.parts).cloned().collect()
    }

    /// Whether these entries show an untrusted result.
    fn shows_untrusted(&self, entries: &[MessageEntry], protocol: &dyn Protocol) -> bool {
        self.shown(entries, protocol).any(Ticket::tells_untrusted)
    }

    /// Puts results before the model that it can't ask for any more: those never loaded (ticket), those of agents
    /// never waited for (chatty).
    pub(super) fn show_unseen_results(&mut self, background: bool) {
        let unseen = self.tickets.iter().filter(|ticket| {
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

    /// Whether the model was shown the result of any call.
    pub fn has_read(&self) -> bool {
        !self.loaded.is_empty()
    }

    /// The ticket of the last call of this key, if the model has not seen its result.
    pub(in crate::run) fn unread(&self, key: &str) -> Option<&Ticket> {
        let open = self.open_calls.iter().find(|(_, call)| call.key.as_deref() == Some(key)).map(|(ticket, _)| *ticket);
        let ticket = open.or_else(|| self.repetition.last(key))?;
        self.tickets.get(ticket).filter(|_| !self.loaded.contains(&ticket))
    }

    /// The ticket of the last call of this key that has ended.
    pub(in crate::run) fn last_of(&self, key: &str) -> Option<TicketId> {
        self.repetition.last(key)
    }

    /// Whether the next message says that a ticket is completed, or what came of it.
    pub(super) fn is_announced(&self, id: TicketId) -> bool {
        let tells = |entry: &MessageEntry| matches!(entry, MessageEntry::Completed(told) | MessageEntry::Loaded(told) if *told == id);
        self.entries.iter().any(tells)
    }
}
