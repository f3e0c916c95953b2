//! Which results are untrusted: those of tools whose results come from others, and those of child runs and scripts that
//! have read one.

use super::account::Spent;
use super::judge::argument_of;
use super::machine::RunMachine;
use crate::origin::{Index, Kind};
use crate::part::Part;
use crate::ticket::{Outcome, TicketId, TicketKind};
use crate::tool::{Level, ToolKind, ToolSpec};
use std::sync::Arc;

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

    /// Completes a task whose run is at hand: the texts in which its answer is looked up are those of that run.
    pub fn complete_task_of(
        &mut self,
        ticket: TicketId,
        outcome: (Outcome, &[Part]),
        below: Option<(Spent, bool, Arc<Index>)>,
        now: f64,
    ) {
        let below = below.map(|(spent, untrusted, texts)| {
            self.traced.answers.insert(ticket, texts);
            (spent, untrusted)
        });
        self.complete_task(ticket, outcome, below, now);
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

    /// Whether a call needs approval because a result in its arguments turned out to be untrusted: a run below or a script
    /// has read one since the call was opened.
    pub(super) fn asks_for_results(&self, ticket: TicketId) -> bool {
        let Some(call) = self.state.calls.tickets.get(ticket).filter(|_| self.start.traces_values()) else {
            return false;
        };
        let Some(spec) = self.setup.tools.get(&call.tool).filter(|spec| spec.kind == ToolKind::Function) else {
            return false;
        };
        let is_asked = |pointer: &str| {
            spec.asks_untrusted
                || (!self.setup.ends_at_call
                    && spec.has_level(self.setup.values)
                    && spec.level(&argument_of(pointer), self.setup.values) == Level::Trusted)
        };
        call.origins.iter().any(|(pointer, origin)| {
            let result = TicketId::parse(&origin.place).and_then(|result| self.state.calls.tickets.get(result));
            origin.kind == Kind::Reference && is_asked(pointer) && result.is_some_and(|result| result.untrusted)
        })
    }

    fn is_script(&self, ticket: TicketId) -> bool {
        let spec = self.state.calls.tickets.get(ticket).and_then(|ticket| self.setup.tools.get(&ticket.tool));
        spec.is_some_and(|spec| spec.kind == ToolKind::Script)
    }
}
