//! The tickets of one run, in the order of opening.

use super::{Outcome, Status, Ticket, TicketId};
use serde::{Deserialize, Serialize};

/// Where the ticket of this id stands.
fn position(id: TicketId) -> Option<usize> {
    usize::try_from(id.0).ok()?.checked_sub(1)
}

/// All tickets of a run. Ids are positions, so that looking one up costs nothing.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TicketList {
    tickets: Vec<Ticket>,
    open: usize,
}

#[derive(Serialize)]
struct Row<'a> {
    id: String,
    description: &'a str,
    status: Status,
}

impl TicketList {
    /// The id that the next ticket gets.
    pub fn next_id(&self) -> TicketId {
        TicketId(u32::try_from(self.tickets.len()).unwrap_or(u32::MAX).saturating_add(1))
    }

    /// Adds a ticket, which must carry `next_id`.
    pub(crate) fn open(&mut self, ticket: Ticket) {
        self.open += 1;
        self.tickets.push(ticket);
    }

    /// Completes a ticket. False where there is none, or it is completed already: an outcome never changes.
    pub(crate) fn complete(&mut self, id: TicketId, outcome: Outcome, at: f64) -> bool {
        match position(id).and_then(|position| self.tickets.get_mut(position)) {
            Some(ticket) if ticket.outcome.is_none() => {
                ticket.parked = false;
                ticket.outcome = Some(outcome);
                ticket.completed_at = Some(at);
                self.open = self.open.saturating_sub(1);
                true
            }
            _ => false,
        }
    }

    /// The role of its run is known.
    pub(crate) fn set_role(&mut self, id: TicketId, role: String) {
        if let Some(ticket) = position(id).and_then(|position| self.tickets.get_mut(position)) {
            ticket.role = Some(role);
        }
    }

    /// A person has approved of it.
    pub(crate) fn approve(&mut self, id: TicketId) {
        if let Some(ticket) = position(id).and_then(|position| self.tickets.get_mut(position)) {
            ticket.parked = false;
        }
    }

    /// The ticket with this id.
    pub fn get(&self, id: TicketId) -> Option<&Ticket> {
        self.tickets.get(position(id)?)
    }

    /// All tickets, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Ticket> {
        self.tickets.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tickets.len()
    }

    /// Whether none was opened yet.
    pub fn is_empty(&self) -> bool {
        self.tickets.is_empty()
    }

    /// How many have no outcome yet.
    pub fn open_count(&self) -> usize {
        self.open
    }

    /// The list as the ticket protocol shows it: a JSON array of `id`, `description`, `status`, oldest first.
    pub fn to_json(&self) -> String {
        let rows: Vec<Row<'_>> = self
            .tickets
            .iter()
            .map(|ticket| Row { id: ticket.id.to_string(), description: &ticket.description, status: ticket.status() })
            .collect();
        serde_json::to_string(&rows).unwrap_or_default()
    }
}
