//! From the calls of a reply to tickets: each is looked up, checked and guarded before any of them is opened.

use super::command::Setup;
use super::limits::Limit;
use super::reference;
use super::repetition::{self, Verdict};
use super::state::RunState;
use crate::protocol::ToolCall;
use crate::reply::violation::{Code, Violation};
use crate::reply::{Span, Value};
use crate::ticket::TicketId;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A call that may be made.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) ticket: TicketId,
    /// Its position in the reply.
    pub(super) call: usize,
    pub(super) call_id: Option<String>,
    pub(super) description: String,
    pub(super) tool: Arc<str>,
    pub(super) arguments: Arc<Value>,
    pub(super) needs: Vec<TicketId>,
}

/// Why the calls of a reply are not made.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The reply breaks the protocol.
    Violation(Violation),
    /// A limit is reached.
    Limit(Limit),
}

impl From<Violation> for Refusal {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

/// Characters of a call's arguments that stand in its ticket's description.
const DESCRIPTION_CHARACTERS: usize = 80;

/// Plans all `calls` but those at the positions of `started`, whose tickets are open already.
pub(super) fn calls(
    calls: &[ToolCall],
    started: &BTreeMap<usize, TicketId>,
    state: &RunState,
    setup: &Setup,
) -> Result<Vec<Planned>, Refusal> {
    let fresh = u32::try_from(calls.len() - started.len().min(calls.len())).unwrap_or(u32::MAX);
    limits(fresh, state, setup)?;
    let mut next = state.tickets.next_id().0;
    let mut tickets = Vec::with_capacity(calls.len());
    for position in 0..calls.len() {
        tickets.push(*started.get(&position).unwrap_or(&TicketId(next)));
        next += u32::from(!started.contains_key(&position));
    }
    let mut block = Block { state, setup, names: HashMap::new(), later: HashMap::new() };
    if setup.protocol.references() {
        block.later = calls.iter().filter_map(|call| Some((call.call_id.as_deref()?, call.tool_span))).collect();
    }
    let mut planned = Vec::with_capacity(calls.len());
    for (position, (call, ticket)) in calls.iter().zip(&tickets).enumerate() {
        if !started.contains_key(&position) {
            planned.push(block.plan(position, call, *ticket)?);
        }
        if let Some(call_id) = call.call_id.as_deref() {
            block.later.remove(call_id);
            block.names.insert(call_id, *ticket);
        }
    }
    Ok(planned)
}

/// Budgets are reserved for the whole reply before any of its calls starts.
fn limits(fresh: u32, state: &RunState, setup: &Setup) -> Result<(), Refusal> {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).saturating_add(fresh);
    if setup.limits.tickets.is_some_and(|limit| count(state.tickets.len()) > limit) {
        return Err(Refusal::Limit(Limit::Tickets));
    }
    if setup.limits.open_tickets.is_some_and(|limit| count(state.tickets.open_count()) > limit) {
        return Err(Refusal::Limit(Limit::OpenTickets));
    }
    Ok(())
}

struct Block<'a> {
    state: &'a RunState,
    setup: &'a Setup,
    /// Calls of this block so far, by their names.
    names: HashMap<&'a str, TicketId>,
    /// Calls of this block that are still to come, the one at hand among them.
    later: HashMap<&'a str, Span>,
}

impl Block<'_> {
    fn plan(&self, position: usize, call: &ToolCall, ticket: TicketId) -> Result<Planned, Refusal> {
        let tools = &*self.setup.tools;
        let (mut arguments, mut pointers, mut needs) = (call.arguments.clone(), Vec::new(), Vec::new());
        if self.setup.protocol.references() {
            (pointers, needs) = self.references(call)?;
            if needs.is_empty() {
                arguments = Arc::new(reference::substitute(&arguments, &|_| None));
            }
        }
        let place = |violation: Violation, span| if violation.span.is_none() { violation.at(span) } else { violation };
        let (spec, checked) = if self.setup.protocol.routes() {
            let resolved = tools.resolve_route(&call.tool).map_err(|violation| place(violation, call.tool_span))?;
            let checked = tools.check_call(&resolved, &arguments);
            (resolved.tool, checked)
        } else {
            let spec = tools.resolve(&call.tool).map_err(|violation| place(violation, call.tool_span))?;
            (spec, tools.check_except(spec, &arguments, &pointers))
        };
        let checked = checked.map_err(|violation| place(violation, call.arguments_span))?;
        let tool: Arc<str> = spec.name.as_str().into();
        let arguments = Arc::new(Value::Object(checked.arguments));
        if needs.is_empty() && !spec.repeatable {
            guard(&tool, &arguments, call.span, self.state, self.setup.limits.max_repeats)?;
        }
        let description = match call.description.as_deref().map(str::trim) {
            Some(description) if !description.is_empty() => description.to_owned(),
            _ => describe(&tool, &arguments),
        };
        Ok(Planned { ticket, call: position, call_id: call.call_id.clone(), description, tool, arguments, needs })
    }

    /// Where the arguments refer to other calls, and the tickets of those calls.
    fn references(&self, call: &ToolCall) -> Result<(Vec<String>, Vec<TicketId>), Violation> {
        let (mut pointers, mut needs) = (Vec::new(), Vec::new());
        for mention in reference::mentions(&call.arguments) {
            if let Some(span) = self.later.get(mention.name) {
                let own = call.call_id.as_deref() == Some(mention.name);
                let whose = if own { "itself" } else { "a later call" };
                return Err(Violation::new(
                    Code::BadReference,
                    format!("expected a reference to an earlier call: '${}' refers to {whose}", mention.name),
                )
                .at(call.arguments_span)
                .pointer(mention.pointer)
                .related(*span, "the call it refers to")
                .hint("put the call whose result is needed first; write '$$' for a literal '$'"));
            }
            let Some(ticket) = self.names.get(mention.name).or_else(|| self.state.call_ids.get(mention.name)) else {
                continue;
            };
            pointers.push(mention.pointer);
            if !needs.contains(ticket) {
                needs.push(*ticket);
            }
        }
        Ok((pointers, needs))
    }
}

/// Refuses a call that failed before, or that keeps giving the same result.
pub(super) fn guard(
    tool: &str,
    arguments: &Value,
    span: Span,
    state: &RunState,
    max_repeats: u32,
) -> Result<(), Violation> {
    match state.repetition.check(&repetition::key(tool, arguments), max_repeats) {
        Verdict::Fresh => Ok(()),
        Verdict::Failed => Err(Violation::new(
            Code::RepeatedAfterFailure,
            format!("expected another call: '{tool}' with these arguments has failed before"),
        )
        .at(span)
        .hint("change the arguments, use another tool, or finish")),
        Verdict::Exhausted(times) => Err(Violation::new(
            Code::Repeated,
            format!("expected another call: '{tool}' with these arguments gave the same result {times} times"),
        )
        .at(span)
        .hint("use the result you have, change the arguments, or finish")),
    }
}

fn describe(tool: &str, arguments: &Value) -> String {
    let arguments = arguments.to_json();
    let mut shown: String = arguments.chars().take(DESCRIPTION_CHARACTERS).collect();
    if shown.len() < arguments.len() {
        shown.push('…');
    }
    format!("{tool} {shown}")
}
