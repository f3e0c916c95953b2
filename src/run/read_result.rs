//! Results that are too long for a message, read in parts: by calls of `read_result`, which the run answers from its own
//! tickets, or by the move that loads results (ticket).

use super::command::Setup;
use super::event::Start;
use super::machine::RunMachine;
use super::state::{OpenCall, RunState};
use crate::codes::Code;
use crate::protocol::Parts;
use crate::protocol::message_entry::bytes_of;
use crate::reply::Value;
use crate::reply::violation::Violation;
use crate::ticket::{Outcome, ResultPart, Ticket, TicketId};
use crate::tool::{READ_RESULT, ToolSet, ToolSpec, read_result};
use serde_json::value::RawValue;
use std::sync::Arc;

impl Start {
    /// How its model asks for the parts of a long result.
    pub(super) fn parts(&self) -> Parts {
        if !self.reads_parts() {
            Parts::None
        } else if self.setup.protocol.loads_results() {
            Parts::Load
        } else if self.setup.tools.get(READ_RESULT).is_none() {
            Parts::Call
        } else {
            Parts::None
        }
    }
}

impl RunState {
    /// Whether the model is offered `read_result`: once a result was cut. It stays, so that services cache the tools.
    pub(super) fn offers_read_result(&self) -> bool {
        self.conversation.long.has_cut && self.conversation.long.parts == Parts::Call
    }

    /// The part of a result that a call reads; `None` for other calls.
    pub(super) fn part_read(&self, tool: &str, arguments: &Value) -> Option<ResultPart> {
        if self.conversation.long.parts != Parts::Call || tool != READ_RESULT {
            return None;
        }
        let given = arguments.as_object()?;
        Some(ResultPart {
            ticket: TicketId::parse(given.get("ticket")?.as_str()?)?,
            offset: offset(given.get("offset"))?,
        })
    }

    /// The tickets whose results can be read in parts, and the bytes of the longest one.
    pub(super) fn readable_results(&self) -> (Vec<TicketId>, usize) {
        let as_json = self.conversation.long.parts == Parts::Load;
        let own = self.calls.tickets.iter().filter(|ticket| ticket.reads.is_none());
        let ended = own.filter_map(|ticket| Some((ticket.id, bytes_of(ticket.outcome.as_ref()?, as_json))));
        ended.fold((Vec::new(), 0), |(mut tickets, longest), (id, bytes)| {
            tickets.push(id);
            (tickets, longest.max(bytes))
        })
    }

    /// Refuses a part that begins behind the end of its result.
    pub(super) fn check_offset(&self, ticket: &Ticket, offset: usize) -> Result<(), Violation> {
        let Some(outcome) = &ticket.outcome else { return Ok(()) };
        let bytes = bytes_of(outcome, self.conversation.long.parts == Parts::Load);
        if offset == 0 || offset < bytes {
            return Ok(());
        }
        let message = format!(
            "expected an 'offset' below {bytes}, the bytes of the result of {}: got {}",
            ticket.id,
            // A number that is too large for a machine has no digits here.
            if offset == usize::MAX { "more".to_owned() } else { offset.to_string() }
        );
        Err(Violation::new(Code::InvalidArgument, message)
            .pointer("/offset")
            .hint("use the offset that the mark of the last part names"))
    }

    /// Refuses a call of `read_result` that reads nothing.
    pub(super) fn check_part(&self, arguments: &Value) -> Result<(), Violation> {
        let given = arguments.as_object();
        let written = given.and_then(|given| given.get("ticket")?.as_str()).unwrap_or_default();
        let found = TicketId::parse(written).and_then(|id| self.calls.tickets.get(id));
        let Some(ticket) = found else {
            let message = format!("expected the ticket of a result of this run: got '{written}'");
            let hint = "use the ticket that the mark of the cut result names";
            return Err(Violation::new(Code::UnknownTicket, message).pointer("/ticket").hint(hint));
        };
        if let Some(part) = ticket.reads {
            let message =
                format!("expected the ticket of a whole result: {} shows a part of {}", ticket.id, part.ticket);
            let hint = format!("use the ticket {}", part.ticket);
            return Err(Violation::new(Code::UnknownTicket, message).pointer("/ticket").hint(hint));
        }
        if ticket.outcome.is_none() {
            let message = format!("expected the ticket of a call that has ended: {} is still IN_PROGRESS", ticket.id);
            return Err(Violation::new(Code::TicketInProgress, message).pointer("/ticket"));
        }
        let Some(offset) = offset(given.and_then(|given| given.get("offset"))) else {
            let message = "expected a whole number from 0 on in 'offset': got something else";
            return Err(Violation::new(Code::InvalidArgument, message).pointer("/offset"));
        };
        self.check_offset(ticket, offset)
    }

    /// The result of a call that reads a part of another one, which stays in the log once.
    pub(super) fn part_outcome(&self, ticket: TicketId) -> Option<Outcome> {
        let part = self.calls.tickets.get(ticket)?.reads?;
        let json = serde_json::json!({"ticket": part.ticket.to_string(), "offset": part.offset}).to_string();
        Some(Outcome::Ok(RawValue::from_string(json).ok()?.into()))
    }
}

fn offset(value: Option<&Value>) -> Option<usize> {
    match value {
        None => Some(0),
        Some(Value::Number(number)) if number.is_integer() && !number.as_str().starts_with('-') => {
            Some(number.as_str().parse().unwrap_or(usize::MAX))
        }
        Some(_) => None,
    }
}

/// The tools that the next reply can call: those of the run, and `read_result` once a result was cut.
pub(super) fn offered_tools(state: &RunState, setup: &Setup) -> Arc<ToolSet> {
    with_read_result(state, setup, || read_result::spec(None))
}

fn with_read_result(state: &RunState, setup: &Setup, spec: impl FnOnce() -> ToolSpec) -> Arc<ToolSet> {
    if !state.offers_read_result() {
        return Arc::clone(&setup.tools);
    }
    let more = setup.tools.without(&[]).with(vec![spec()]);
    // No tool of the run has this name.
    more.map_or_else(|_| Arc::clone(&setup.tools), Arc::new)
}

impl RunMachine {
    /// Whether the model is offered `read_result`.
    pub fn offers_read_result(&self) -> bool {
        self.state.offers_read_result()
    }

    /// The tools that the next reply can call.
    pub(super) fn offered_tools(&self) -> Arc<ToolSet> {
        offered_tools(&self.state, &self.setup)
    }

    /// The same for a grammar, which spells out the tickets that can be read.
    pub(super) fn tools_for_grammar(&self, results: Option<&(Vec<TicketId>, usize)>) -> Arc<ToolSet> {
        let known = results.map(|(tickets, longest)| (tickets.as_slice(), *longest));
        with_read_result(&self.state, &self.setup, || read_result::spec(known))
    }

    /// Whether a call reads a part of another result.
    pub(super) fn reads_part(&self, call: &OpenCall) -> bool {
        self.state.conversation.long.parts == Parts::Call && &*call.tool == READ_RESULT
    }

    /// Whether a call that is planned shows a part of an untrusted result.
    pub(super) fn shows_untrusted_part(&self, tool: &str, arguments: &Value) -> bool {
        let part = self.state.part_read(tool, arguments);
        let read = part.and_then(|part| self.state.calls.tickets.get(part.ticket));
        read.is_some_and(Ticket::tells_untrusted)
    }
}
