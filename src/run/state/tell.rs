//! What the next message tells the model, and what it has been shown.

use super::{Phase, RunState};
use crate::protocol::{Message, Outcomes, Protocol, Role, Telling};
use crate::ticket::{Ticket, TicketId};

/// Results that the last turn puts before the model unasked.
const UNSEEN: usize = 16;

impl RunState {
    pub(super) fn asked(&mut self, turn: u32, protocol: &dyn Protocol) {
        self.midway = false;
        self.count_early();
        let mut tellings = Vec::with_capacity(self.batch.len() + self.tellings.len());
        for id in std::mem::take(&mut self.batch).into_values() {
            let Some(ticket) = self.tickets.get(id) else { continue };
            if ticket.detached {
                tellings.push(Telling::Spawned(id));
            } else if let Some(outcome) = &ticket.outcome {
                let short = protocol.inlines(outcome.text().len());
                tellings.push(Telling::Result { ticket: id, times: self.times.remove(&id).unwrap_or(1) });
                // A last turn has been told of it already.
                if protocol.guides_to_results() && !self.loaded.contains(&id) {
                    tellings.push(if short { Telling::Loaded(id) } else { Telling::Completed(id) });
                    if short {
                        self.loaded.insert(id);
                    }
                }
            }
        }
        tellings.append(&mut self.tellings);
        self.batch_open = 0;
        self.said = false;
        // A question that is asked again, because its answer never came, has nothing new to tell.
        if turn == 1 || !tellings.is_empty() || self.messages.last().is_some_and(|last| last.role != Role::User) {
            let mut listed = std::mem::take(&mut self.changed);
            listed.extend(self.open_calls.keys());
            let listed: Vec<TicketId> = listed.into_iter().collect();
            let outcomes = Outcomes {
                tickets: &self.tickets,
                result_bytes: self.result_bytes,
                listed: self.last_turn.is_none().then_some(&listed),
            };
            let mut message = Message::new(Role::User, protocol.message(&tellings, outcomes));
            if tellings.iter().any(|telling| matches!(telling, Telling::Loaded(_))) {
                for telling in &mut tellings {
                    if let Telling::Loaded(id) = telling {
                        *telling = Telling::Dropped(*id);
                    }
                }
                message.short = Some(protocol.message(&tellings, outcomes).into());
            }
            self.messages.push(message);
        }
        self.turn = turn;
        self.phase = Phase::Asking;
    }

    /// Puts results before the model that it can't ask for any more: those never loaded (ticket), those of agents
    /// never waited for (chatty).
    pub(super) fn tell_unseen(&mut self, background: bool) {
        let unseen = self.tickets.iter().filter(|ticket| {
            ticket.outcome.is_some() && (background || ticket.detached) && !self.loaded.contains(&ticket.id)
        });
        let mut unseen: Vec<TicketId> = unseen.map(|ticket| ticket.id).collect();
        // The latest are the likeliest to matter, and a message has an end.
        let earlier = unseen.len().saturating_sub(UNSEEN);
        unseen.drain(..earlier);
        self.tellings.retain(|telling| !matches!(telling, Telling::Completed(_)));
        let tell = |id| if background { Telling::Loaded(id) } else { Telling::Result { ticket: id, times: 1 } };
        self.tellings.extend(unseen.iter().copied().map(tell));
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
    pub(super) fn is_to_be_told(&self, id: TicketId) -> bool {
        let tells =
            |telling: &Telling| matches!(telling, Telling::Completed(told) | Telling::Loaded(told) if *told == id);
        self.tellings.iter().any(tells)
    }
}
