//! How approval changes the state: arguments become final, and calls wait or are free to be made.

use super::RunState;
use crate::protocol::{MessageEntry, Protocol};
use crate::run::event::Event;
use crate::ticket::{Decision, TicketId};

impl RunState {
    /// Folds in that arguments are filled, or a decision on a call.
    pub(super) fn on_approval(&mut self, event: &Event) {
        match event {
            Event::ArgumentsFilled { ticket, arguments, needs_approval, checks_approval, untrusted } => {
                if let Some(call) = self.calls.open.get_mut(ticket) {
                    call.fill(arguments);
                    call.unchecked = *checks_approval;
                }
                self.calls.tickets.fill(*ticket, arguments, *needs_approval, !*needs_approval && !*checks_approval);
                self.calls.tickets.distrust(*ticket, *untrusted);
                self.calls.tickets.label_references(*ticket);
            }
            Event::ApprovalChecked { ticket, needs_approval, reason } => {
                if let Some(call) = self.calls.open.get_mut(ticket) {
                    call.unchecked = false;
                }
                self.calls.tickets.approval_checked(*ticket, *needs_approval, reason.clone());
            }
            Event::Approved { ticket, arguments, at_rest, by } => {
                if let (Some(call), Some(arguments)) = (self.calls.open.get_mut(ticket), arguments) {
                    call.fill(arguments);
                }
                self.calls.tickets.approve(*ticket, arguments.as_ref(), by.as_ref());
                let is_called = self.calls.tickets.get(*ticket).is_some_and(|ticket| ticket.external.is_none());
                if *at_rest && is_called {
                    self.calls.unbegun.insert(*ticket);
                }
            }
            _ => {}
        }
    }

    /// Tells the model that a person has changed the arguments of a call.
    pub(super) fn note_edit(&mut self, id: TicketId, protocol: &dyn Protocol) {
        let edited = self.calls.tickets.get(id).filter(|ticket| ticket.decision == Some(Decision::Edited));
        let Some(ticket) = edited.filter(|ticket| ticket.outcome.as_ref().is_some_and(|end| !end.is_cancelled()))
        else {
            return;
        };
        let call = match &ticket.call_id {
            Some(call_id) => format!("call '{call_id}'"),
            None if protocol.background() => id.to_string(),
            None => format!("the call of '{}'", ticket.tool),
        };
        let mut arguments = ticket.arguments.as_ref().map(|arguments| arguments.to_json()).unwrap_or_default();
        if arguments.len() > self.conversation.long.bytes {
            let fits = (0..=self.conversation.long.bytes).rev().find(|end| arguments.is_char_boundary(*end));
            arguments.truncate(fits.unwrap_or_default());
            arguments.push('…');
        }
        let note = format!("Note: a person changed the arguments of {call} before it was made: {arguments}");
        self.conversation.entries.push(MessageEntry::Note(note));
    }
}
