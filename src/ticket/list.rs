//! The tickets of one run, in the order of opening.

use super::{Decision, External, Outcome, Status, Ticket, TicketId};
use crate::origin::{Kind, Origin};
use crate::part::Part;
use crate::reply::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// Where the ticket of this id stands.
fn position(id: TicketId) -> Option<usize> {
    usize::try_from(id.0).ok()?.checked_sub(1)
}

/// All tickets of a run. Ids are positions, so that looking one up costs nothing.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TicketList {
    tickets: Vec<Ticket>,
    open: usize,
    /// The tickets that were changed after they were opened, in order, for readers that keep what they have read.
    #[serde(skip)]
    changes: Vec<TicketId>,
    /// The tickets that have an outcome, in the order in which they had it.
    #[serde(skip)]
    ended: Vec<TicketId>,
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
    pub(crate) fn complete(
        &mut self,
        id: TicketId,
        outcome: Outcome,
        parts: &[Part],
        by: Option<&Arc<str>>,
        at: f64,
    ) -> bool {
        match self.get_mut(id) {
            Some(ticket) if ticket.outcome.is_none() => {
                ticket.parked = false;
                ticket.awaits_result = false;
                ticket.answered_by = by.cloned();
                ticket.outcome = Some(outcome);
                ticket.parts = parts.to_vec();
                ticket.completed_at = Some(at);
                self.open = self.open.saturating_sub(1);
                self.ended.push(id);
                true
            }
            _ => false,
        }
    }

    /// A ticket that is about to change.
    fn get_mut(&mut self, id: TicketId) -> Option<&mut Ticket> {
        let ticket = self.tickets.get_mut(position(id)?)?;
        self.changes.push(id);
        Some(ticket)
    }

    /// The tickets that have an outcome, in the order in which they had it.
    pub fn ended(&self) -> &[TicketId] {
        &self.ended
    }

    /// Puts the tickets that have ended in order. A snapshot has their times.
    pub(crate) fn order_ended(&mut self) {
        let mut ended: Vec<_> =
            self.tickets.iter().filter_map(|ticket| Some((ticket.completed_at?, ticket.id))).collect();
        ended.sort_by(|one, other| one.0.total_cmp(&other.0));
        self.ended = ended.into_iter().map(|(_, id)| id).collect();
    }

    /// How many changes there were of tickets that were opened before.
    pub fn change_count(&self) -> usize {
        self.changes.len()
    }

    /// All tickets count as changed, for readers that know this many changes at most.
    pub(crate) fn renew(&mut self, changes: usize) {
        let all: Vec<TicketId> = self.tickets.iter().map(|ticket| ticket.id).collect();
        let Some(first) = all.first() else { return };
        self.changes = vec![*first; changes];
        self.changes.extend(all);
    }

    /// What is new to a reader who knows the first tickets, as they were after so many changes: those of them that have
    /// changed since, each once, then the others.
    pub fn news(&self, known: usize, changes: usize) -> impl Iterator<Item = &Ticket> {
        let renewed: BTreeSet<_> = self.changes.get(changes..).unwrap_or_default().iter().copied().collect();
        let again = renewed.into_iter().filter_map(move |id| self.tickets.get(position(id).filter(|at| *at < known)?));
        again.chain(self.tickets.get(known..).unwrap_or_default())
    }

    /// The role of its run is known.
    pub(crate) fn set_role(&mut self, id: TicketId, role: String) {
        if let Some(ticket) = self.get_mut(id) {
            ticket.role = Some(role);
        }
    }

    /// Its result is untrusted, where that is so.
    pub(crate) fn distrust(&mut self, id: TicketId, untrusted: bool) {
        if untrusted
            && self.get(id).is_some_and(|ticket| !ticket.untrusted)
            && let Some(ticket) = self.get_mut(id)
        {
            ticket.untrusted = true;
        }
    }

    /// The results in its arguments are there: those that turned out to be untrusted are so in its origins.
    pub(crate) fn label_references(&mut self, id: TicketId) {
        let Some(ticket) = self.get(id) else { return };
        let turned = |origin: &Origin| {
            let result = TicketId::parse(&origin.place).and_then(|result| self.get(result));
            origin.kind == Kind::Reference && !origin.untrusted && result.is_some_and(|result| result.untrusted)
        };
        if !ticket.origins.iter().any(|(_, origin)| turned(origin)) {
            return;
        }
        let label = |(pointer, origin): &(String, Origin)| {
            (pointer.clone(), Origin { untrusted: origin.untrusted || turned(origin), ..origin.clone() })
        };
        let origins = ticket.origins.iter().map(label).collect();
        if let Some(ticket) = self.get_mut(id) {
            ticket.origins = origins;
        }
    }

    /// Its arguments are final. `is_free` is whether it waits for no approval, and no check of the program either.
    pub(crate) fn fill(&mut self, id: TicketId, arguments: &Arc<Value>, parked: bool, is_free: bool) {
        if let Some(ticket) = self.get_mut(id) {
            ticket.arguments = Some(Arc::clone(arguments));
            ticket.parked = parked;
            ticket.awaits_result = is_free && ticket.external.is_some();
        }
    }

    /// It was begun, and its result comes from outside.
    pub(crate) fn pend(&mut self, id: TicketId, key: Option<&Arc<str>>, external: &Arc<External>) {
        if let Some(ticket) = self.get_mut(id) {
            ticket.external = Some(Arc::clone(external));
            ticket.answer_key = key.cloned();
            ticket.awaits_result = true;
        }
    }

    /// An attempt at it has failed, so that it is tried this often so far.
    pub(crate) fn set_attempts(&mut self, id: TicketId, attempts: u32) {
        if let Some(ticket) = self.get_mut(id) {
            ticket.attempts = attempts;
        }
    }

    /// A person, `by`, has approved of it, with other arguments if there are any.
    pub(crate) fn approve(&mut self, id: TicketId, arguments: Option<&Arc<Value>>, by: Option<&Arc<str>>) {
        if let Some(ticket) = self.get_mut(id) {
            ticket.parked = false;
            ticket.awaits_result = ticket.external.is_some();
            ticket.decision = Some(Decision::Approved);
            ticket.approved_by = by.cloned();
            if let Some(arguments) = arguments {
                ticket.arguments = Some(Arc::clone(arguments));
                ticket.decision = Some(Decision::Edited);
            }
        }
    }

    /// The program has decided whether it needs approval.
    pub(crate) fn approval_checked(&mut self, id: TicketId, parked: bool, reason: Option<Arc<str>>) {
        if let Some(ticket) = self.get_mut(id) {
            ticket.parked = parked;
            ticket.awaits_result = !parked && ticket.external.is_some();
            ticket.approval_reason = reason;
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

    /// The list as the ticket protocol shows it: a JSON array of `id`, `description`, `status`, oldest first. The run's
    /// `own` task, which is no ticket of the store, is the first.
    pub fn to_json(&self, own: Option<&str>) -> String {
        rows(own, self.tickets.iter())
    }

    /// The same of these tickets alone.
    pub(crate) fn to_json_of(&self, own: Option<&str>, ids: &[TicketId]) -> String {
        rows(own, ids.iter().filter_map(|id| self.get(*id)))
    }

    /// The ids of all tickets but these, which are in ascending order: `T1 to T7, T9`. Empty where there are no others.
    pub fn ids_without(&self, left_out: &[TicketId]) -> String {
        let (mut text, mut first) = (String::new(), 1);
        for end in left_out.iter().copied().chain([self.next_id()]) {
            let last = end.0.saturating_sub(1);
            if first <= last {
                let comma = if text.is_empty() { "" } else { ", " };
                let between = last - first;
                let (first, last) = (TicketId(first), TicketId(last));
                // Writing into a string has no failing case.
                let _ = match between {
                    0 => write!(text, "{comma}{first}"),
                    1 => write!(text, "{comma}{first}, {last}"),
                    _ => write!(text, "{comma}{first} to {last}"),
                };
            }
            first = end.0.saturating_add(1);
        }
        text
    }
}

fn rows<'a>(own: Option<&'a str>, tickets: impl Iterator<Item = &'a Ticket>) -> String {
    let own = own.map(|description| Row { id: TicketId::OWN.to_string(), description, status: Status::InProgress });
    let row = |ticket: &'a Ticket| Row {
        id: ticket.id.to_string(),
        description: &ticket.description,
        status: ticket.status(),
    };
    serde_json::to_string(&own.into_iter().chain(tickets.map(row)).collect::<Vec<_>>()).unwrap_or_default()
}
