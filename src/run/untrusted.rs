//! Which results are untrusted: those of tools whose results come from others, and those of child runs and scripts that
//! have read one.

use super::account::Spent;
use super::machine::RunMachine;
use crate::part::Part;
use crate::ticket::{Outcome, TicketId, TicketKind};
use crate::tool::{ToolKind, ToolSpec};

/// Whether the result of a call is made from what its model had read: that of a child run, and that of a script.
pub(super) fn inherits_untrusted(kind: TicketKind, spec: Option<&ToolSpec>) -> bool {
    kind == TicketKind::Task || spec.is_some_and(|spec| spec.kind == ToolKind::Script)
}

impl RunMachine {
    /// Begins a run with what a model has written that had read untrusted results.
    #[must_use]
    pub fn untrusted(mut self, untrusted: bool) -> Self {
        self.start.untrusted = untrusted;
        self
    }

    /// Whether a run that begins in a call begins with what a model has written that had read untrusted results.
    pub fn begins_untrusted(&self, ticket: TicketId) -> bool {
        let Some(call) = self.state.calls.tickets.get(ticket) else { return false };
        // The code of a tool may pass anything on to a run that it starts.
        call.untrusted || (call.kind != TicketKind::Task && self.state.conversation.untrusted)
    }

    /// A run that a call has started has read an untrusted result.
    pub fn read_untrusted(&mut self, ticket: TicketId) {
        if self.state.calls.open.contains_key(&ticket) {
            self.read_untrusted.insert(ticket);
        }
    }

    /// Completes a task. `below` is what its run has spent, and whether that has read untrusted results.
    pub fn complete_task(
        &mut self,
        ticket: TicketId,
        (outcome, parts): (Outcome, &[Part]),
        below: Option<(Spent, bool)>,
        now: f64,
    ) {
        if below.is_some_and(|(_, untrusted)| untrusted) {
            self.read_untrusted(ticket);
        }
        self.complete(ticket, outcome, parts, below.map(|(spent, _)| spent), now);
    }

    /// Whether a call that ends now has read an untrusted result: a run in it has, or it is a script. Scripts find the
    /// files of results, and what earlier scripts have left.
    pub(super) fn has_read_untrusted(&self, ticket: TicketId) -> bool {
        let left = || {
            let mut others = self.state.calls.tickets.iter().filter(|other| other.untrusted);
            others.any(|other| !other.parts.is_empty() || self.is_script(other.id))
        };
        self.read_untrusted.contains(&ticket) || (self.is_script(ticket) && left())
    }

    /// Whether the result of a call is made from what its model had read.
    pub(super) fn inherits(&self, ticket: TicketId) -> bool {
        let Some(ticket) = self.state.calls.tickets.get(ticket) else { return false };
        inherits_untrusted(ticket.kind, self.setup.tools.get(&ticket.tool))
    }

    /// Whether a call uses the untrusted result of another.
    pub(super) fn needs_untrusted(&self, ticket: TicketId) -> bool {
        let Some(call) = self.state.calls.open.get(&ticket) else { return false };
        call.needs.iter().filter_map(|need| self.state.calls.tickets.get(*need)).any(|need| need.untrusted)
    }

    fn is_script(&self, ticket: TicketId) -> bool {
        let spec = self.state.calls.tickets.get(ticket).and_then(|ticket| self.setup.tools.get(&ticket.tool));
        spec.is_some_and(|spec| spec.kind == ToolKind::Script)
    }
}
