//! The commands that a driver was given, so that it is given each of them once.

use crate::protocol::grammar::Bounds;
use crate::ticket::TicketId;
use std::collections::BTreeSet;

/// What the driver of a run was told to do, and what it is still to be told.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// The turns of the last `AskModel` and of the last `Settle`.
    pub(super) asked: u32,
    pub(super) settled: u32,
    /// The turn of the last `CheckAnswer`.
    pub(super) checked: u32,
    /// Open tickets whose calls have no command yet.
    pub(super) pending: BTreeSet<TicketId>,
    /// Tickets whose calls have a command.
    pub(super) started: BTreeSet<TicketId>,
    /// Tickets whose calls an earlier process may have made.
    pub(super) again: BTreeSet<TicketId>,
    /// Tickets for which the program is asked whether they need approval.
    pub(super) checking: BTreeSet<TicketId>,
    /// Tickets whose approval is asked for.
    pub(super) approving: BTreeSet<TicketId>,
    /// Tickets whose results from outside are asked for.
    pub(super) asking: BTreeSet<TicketId>,
    /// Tickets that were cancelled since the last commands.
    pub(super) cancelled: Vec<TicketId>,
    /// Whether `Finish` was given.
    pub(super) ended: bool,
    /// The bounds of the grammar that was given for the coming reply.
    pub(super) bounds: Option<Bounds>,
    /// The probability of the name of the first tool in the coming reply.
    pub(super) certainty: Option<f64>,
}

impl Given {
    /// Begins anew for a driver that takes the run up with these open tickets, in the turn after `answered`. What an
    /// earlier process may have made stays known.
    pub(super) fn renew(&mut self, pending: BTreeSet<TicketId>, answered: u32) {
        let again = std::mem::take(&mut self.again);
        *self = Self { pending, again, ..Self::default() };
        self.skip(answered);
    }

    /// Gives nothing more for the turns up to this one.
    pub(super) fn skip(&mut self, turn: u32) {
        (self.asked, self.settled, self.checked) = (turn, turn, turn);
    }

    /// Whether the driver has something to stop for a ticket that was cancelled. Its call is given up with that.
    pub(super) fn take_back(&mut self, ticket: TicketId) -> bool {
        let was_asked = [&self.checking, &self.approving, &self.asking].iter().any(|asked| asked.contains(&ticket));
        self.started.remove(&ticket) || was_asked
    }
}
