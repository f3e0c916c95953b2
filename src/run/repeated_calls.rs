//! Calls that are not made again.

use super::command::Setup;
use super::repetition::{self, Verdict};
use super::state::RunState;
use crate::codes::Code;
use crate::reply::violation::Violation;
use crate::reply::{Span, Value};
use crate::ticket::Ticket;

/// Refuses a call that failed before, that keeps giving the same result, or whose result the model has not looked at.
pub(super) fn refuse_repetition(
    tool: &str,
    arguments: &Value,
    span: Span,
    state: &RunState,
    setup: &Setup,
) -> Result<(), Violation> {
    let key = repetition::key(tool, arguments);
    let guides = setup.protocol.guides_to_results();
    let unread = if guides { state.unread(&key) } else { None };
    let violation = match (state.calls.repetition.check(&key, setup.limits.max_repeats), unread) {
        (Verdict::Failed, unread) => {
            // Of a script, only denials are remembered.
            let ended = if state.calls.script.is_some() { "was denied" } else { "has failed" };
            let message = format!("expected another call: '{tool}' with these arguments {ended} before");
            let violation = Violation::new(Code::RepeatedAfterFailure, message);
            match unread {
                Some(ticket) => shows(violation, ticket).hint(format!("LOAD_TICKET {} shows why it failed", ticket.id)),
                None => violation.hint("change the arguments, use another tool, or finish"),
            }
        }
        (_, Some(ticket)) => unseen(ticket),
        (Verdict::Exhausted(times), None) => {
            let message =
                format!("expected another call: '{tool}' with these arguments gave the same result {times} times");
            let hint = match state.calls.repetition.last(&key).filter(|_| guides) {
                Some(ticket) => format!("LOAD_TICKET {ticket} shows that result; or change the arguments, or finish"),
                None => "use the result you have, change the arguments, or finish".to_owned(),
            };
            Violation::new(Code::Repeated, message).hint(hint)
        }
        (Verdict::Fresh, None) => return Ok(()),
    };
    Err(violation.at(span))
}

/// The violation of a call that was made before, and whose result the model has not seen (ticket).
fn unseen(ticket: &Ticket) -> Violation {
    let id = ticket.id;
    let (message, hint) = if ticket.outcome.is_some() {
        (
            format!("expected LOAD_TICKET {id}, which shows the result of this same call: got the call again"),
            format!("{id} is COMPLETED and its result was not loaded yet: use LOAD_TICKET {id}"),
        )
    } else {
        (
            format!("expected AWAIT {id}, which is this same call and still IN_PROGRESS: got the call again"),
            format!("AWAIT {id} first, then LOAD_TICKET {id} shows its result"),
        )
    };
    shows(Violation::new(Code::Repeated, message), ticket).hint(hint)
}

/// Names the move that leads to a ticket's result.
fn shows(violation: Violation, ticket: &Ticket) -> Violation {
    let kind = if ticket.outcome.is_some() { "LOAD_TICKET" } else { "AWAIT" };
    violation.expected(format!(r#"<output>{{"type": "{kind}", "ticket_id": "{}"}}</output>"#, ticket.id))
}
