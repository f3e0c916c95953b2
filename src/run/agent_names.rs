//! The names by which a reply waits for agents: their `call_id`s, or the ids of their tickets (native).

use super::state::RunState;
use crate::ticket::{Ticket, TicketId};
use std::collections::HashMap;

/// The agents that a reply can wait for.
pub(super) struct Agents<'a> {
    pub(super) state: &'a RunState,
    /// The calls of this reply so far, by their names.
    pub(super) names: &'a HashMap<&'a str, TicketId>,
    /// Those of them that start agents.
    pub(super) here: &'a [TicketId],
    /// Whether the ids of tickets count.
    pub(super) by_ticket: bool,
}

impl Agents<'_> {
    /// The agent of this name, the latest of several. A call of another tool does not hide it.
    pub(super) fn find(&self, name: &str) -> Option<TicketId> {
        if self.by_ticket {
            let id = TicketId::parse(name)?;
            return (self.here.contains(&id) || self.earlier().any(|ticket| ticket.id == id)).then_some(id);
        }
        let here = self.names.get(name).copied().filter(|ticket| self.here.contains(ticket));
        let named = |ticket: &&Ticket| ticket.call_id.as_deref() == Some(name);
        here.or_else(|| Some(self.earlier().rev().find(named)?.id))
    }

    /// The names of all agents, for a hint.
    pub(super) fn known(&self) -> Vec<String> {
        let mut known: Vec<String> = if self.by_ticket {
            let ids = self.earlier().map(|ticket| ticket.id).chain(self.here.iter().copied());
            ids.map(|id| format!("'{id}'")).collect()
        } else {
            let here = self.names.iter().filter(|(_, ticket)| self.here.contains(ticket)).map(|(name, _)| *name);
            let names = self.earlier().filter_map(|ticket| ticket.call_id.as_deref()).chain(here);
            names.map(|name| format!("'${name}'")).collect()
        };
        known.sort_unstable();
        known.dedup();
        known
    }

    /// The word for such a name.
    pub(super) fn word(&self) -> &'static str {
        if self.by_ticket { "agent_id" } else { "call_id" }
    }

    fn earlier(&self) -> impl DoubleEndedIterator<Item = &Ticket> {
        self.state.calls.tickets.iter().filter(|ticket| ticket.detached)
    }
}

/// The word for the calls that stand together.
pub(super) fn together(by_ticket: bool) -> &'static str {
    if by_ticket { "reply" } else { "block" }
}
