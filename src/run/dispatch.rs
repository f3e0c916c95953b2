//! The machine's commands: what its state asks the driver to do, each given once.

use super::command::Command;
use super::event::Event;
use super::machine::{RunMachine, SharedLimits};
use super::repeated_calls::refuse_repetition;
use super::state::OpenCall;
use super::state::Phase;
use crate::protocol::Move;
use crate::reply::{Span, Value};
use crate::ticket::{Outcome, Ticket, TicketId, TicketKind};
use crate::tool::{Approval, ToolKind};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// How one agent ended, for a call that waits for agents.
#[derive(Serialize)]
struct AgentEnd<'a> {
    agent_id: Cow<'a, str>,
    role: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl<'a> AgentEnd<'a> {
    fn of(ticket: &'a Ticket, by_ticket: bool) -> Option<Self> {
        let (status, result, error) = match ticket.outcome.as_ref()? {
            Outcome::Ok(json) => ("ok", Some(&**json), None),
            other => ("error", None, Some(other.text())),
        };
        let named = || Cow::Borrowed(ticket.call_id.as_deref().unwrap_or_default());
        let agent_id = if by_ticket { Cow::Owned(ticket.id.to_string()) } else { named() };
        Some(Self { agent_id, role: ticket.role.as_deref().unwrap_or_default(), status, result, error })
    }
}

/// The arguments with JSON text in place of values that are not text: a task is text.
fn as_texts(arguments: &Value) -> Value {
    let text = |value: &Value| match value {
        Value::String(_) => value.clone(),
        other => Value::from(other.to_json()),
    };
    match arguments {
        Value::Object(given) => Value::Object(given.iter().map(|(name, value)| (name, text(value))).collect()),
        other => other.clone(),
    }
}

impl RunMachine {
    /// Completes what needs nobody's work: calls whose references can't be filled, because what they refer to failed,
    /// those that wait for agents which have all ended, and those that show a part of a result.
    pub(super) fn settle_dependants(&mut self, now: f64) {
        loop {
            if let Some((ticket, outcome)) = self.waited() {
                let mut event = Event::completed(ticket, outcome);
                if let Event::TicketCompleted { untrusted, .. } = &mut event {
                    *untrusted = self.needs_untrusted(ticket);
                }
                self.emit(event, now);
                continue;
            }
            let failed = self.given.pending.iter().find_map(|ticket| {
                let call = self.state.calls.open.get(ticket).filter(|call| !self.waits(call))?;
                let need = call.needs.iter().filter_map(|need| self.state.calls.tickets.get(*need));
                let bad =
                    need.into_iter().find(|need| need.outcome.as_ref().is_some_and(|outcome| !outcome.is_ok()))?;
                Some((*ticket, call.tool.clone(), bad.call_id.clone().unwrap_or_default()))
            });
            let Some((ticket, tool, call_id)) = failed else {
                if self.fill(now) {
                    continue;
                }
                return;
            };
            let message =
                format!("Error calling tool '{tool}': NotRun: it uses the result of call '{call_id}', which failed.");
            self.emit(Event::completed(ticket, Outcome::Error { message, transient: false }), now);
        }
    }

    /// Fills the references of one call whose needs are all there, which may turn out to give wrong arguments. Returns
    /// whether there was one.
    fn fill(&mut self, now: f64) -> bool {
        if let SharedLimits::Replayed(recorded) = &self.shared_limits
            && self.seq < recorded.end
            && !recorded.filled.contains(&self.seq)
        {
            return false;
        }
        let due = self.given.pending.iter().find(|ticket| {
            let call = self.state.calls.open.get(ticket);
            call.is_some_and(|call| !call.is_final() && self.state.calls.has_needs(call) && !self.waits(call))
        });
        let Some(ticket) = due.copied() else { return false };
        match self.filled(ticket) {
            Ok((arguments, approval)) => {
                // Values were the reason when it was opened.
                let opened = self.state.calls.tickets.get(ticket);
                let has_reason =
                    opened.is_some_and(|opened| opened.approval_reason.is_some()) || self.asks_for_results(ticket);
                let needs_approval = approval == Approval::Needed || has_reason;
                let checks_approval = approval == Approval::Checked && !has_reason;
                let untrusted = self.inherits(ticket) && self.needs_untrusted(ticket);
                self.emit(
                    Event::ArgumentsFilled { ticket, arguments, needs_approval, checks_approval, untrusted },
                    now,
                );
            }
            Err(outcome) => self.emit(Event::completed(ticket, outcome), now),
        }
        true
    }

    /// Whether the run itself answers a call: it waits for agents, or shows a part of a result.
    pub(super) fn waits(&self, call: &OpenCall) -> bool {
        self.setup.tools.get(&call.tool).is_some_and(|spec| spec.kind == ToolKind::Wait) || self.reads_part(call)
    }

    /// A call that shows a part of a result, or waits for agents which have all ended, with its outcome.
    fn waited(&self) -> Option<(TicketId, Outcome)> {
        let (ticket, call) = self.given.pending.iter().find_map(|ticket| {
            let call = self.state.calls.open.get(ticket)?;
            (self.waits(call) && self.state.calls.has_needs(call)).then_some((*ticket, call))
        })?;
        if self.reads_part(call) {
            return Some((ticket, self.state.part_outcome(ticket)?));
        }
        let by_ticket = self.setup.protocol.pairs_results();
        let waited_for = call.needs.iter().filter_map(|need| self.state.calls.tickets.get(*need));
        let agents: Vec<AgentEnd<'_>> = waited_for.filter_map(|ticket| AgentEnd::of(ticket, by_ticket)).collect();
        let json = serde_json::value::to_raw_value(&agents).ok()?;
        Some((ticket, Outcome::Ok(json.into())))
    }

    /// The commands for the driver. Each is returned once.
    pub fn commands(&mut self, now: f64) -> Vec<Command> {
        let mut cancelled = std::mem::take(&mut self.given.cancelled);
        cancelled.retain(|ticket| self.given.take_back(*ticket));
        let mut commands: Vec<Command> = cancelled.into_iter().map(|ticket| Command::Cancel { ticket }).collect();
        // A call that can't be made after all completes its ticket, and may free or fail others.
        loop {
            let ready = self.ready();
            if ready.is_empty() {
                break;
            }
            for ticket in ready {
                self.given.pending.remove(&ticket);
                self.given.started.insert(ticket);
                commands.extend(self.call(ticket, now));
            }
        }
        commands.extend(self.approval_questions());
        commands.extend(self.result_questions());
        match self.state.position.phase {
            Phase::Asking if self.given.asked < self.state.position.turn => {
                self.given.asked = self.state.position.turn;
                commands.push(Command::AskModel { turn: self.state.position.turn });
            }
            Phase::Checking if self.given.checked < self.state.position.turn => {
                self.given.checked = self.state.position.turn;
                let offered = self.state.position.offered.as_ref();
                if let Some(Move::Finish { value, .. }) = offered.map(|offered| &offered.moved) {
                    commands.push(Command::CheckAnswer { turn: self.state.position.turn, value: Arc::clone(value) });
                }
            }
            Phase::Settling if self.given.settled < self.state.position.turn => {
                self.given.settled = self.state.position.turn;
                commands.push(Command::Settle);
            }
            Phase::Finished if !self.given.ended => {
                self.given.ended = true;
                commands.push(Command::Finish);
            }
            _ => {}
        }
        commands
    }

    /// The open calls that were not started and have all the results they need.
    fn ready(&self) -> Vec<TicketId> {
        let ready = self.given.pending.iter().filter(|ticket| {
            let call = self.state.calls.open.get(ticket).filter(|call| self.state.calls.has_needs(call));
            let is_due = |call: &OpenCall| call.is_final() || !self.start.writes_filled_arguments();
            let is_made = |call| !self.waits(call) && !self.is_external(**ticket);
            call.is_some_and(|call| is_due(call) && !call.unchecked && !self.is_parked(**ticket) && is_made(call))
        });
        ready.copied().collect()
    }

    /// The command to make a call; none where its references turn out to give wrong arguments.
    fn call(&mut self, ticket: TicketId, now: f64) -> Option<Command> {
        let call = self.state.calls.open.get(&ticket)?;
        let tool = Arc::clone(&call.tool);
        let again = self.given.again.contains(&ticket);
        let arguments = if call.is_final() {
            Ok(Arc::clone(&call.arguments))
        } else {
            self.filled(ticket).map(|(arguments, _)| arguments)
        };
        match arguments {
            Ok(arguments) if self.is_task(ticket) => {
                let given = |name| Some(arguments.as_object()?.get(name)?.as_str()?.to_owned());
                let task = given("task").or_else(|| given("prompt")).or_else(|| given("code")).unwrap_or_default();
                Some(Command::StartRun { ticket, tool, role: given("role"), task, again })
            }
            Ok(arguments) => Some(Command::CallTool { ticket, tool, arguments, again }),
            Err(outcome) => {
                self.complete_call(ticket, outcome, now);
                None
            }
        }
    }

    pub(super) fn is_task(&self, ticket: TicketId) -> bool {
        self.state.calls.tickets.get(ticket).is_some_and(|ticket| ticket.kind == TicketKind::Task)
    }

    /// The tasks that other runs work on: ticket, tool, role.
    pub fn open_tasks(&self) -> Vec<(TicketId, Arc<str>, Option<String>)> {
        let open = self.state.calls.open.iter().filter(|(ticket, _)| self.is_task(**ticket));
        open.map(|(ticket, call)| {
            let filled = self.state.filled(call);
            let role = filled.as_object().and_then(|given| given.get("role")?.as_str());
            (*ticket, Arc::clone(&call.tool), role.map(str::to_owned))
        })
        .collect()
    }

    /// The final arguments of a call, and whether it needs approval.
    fn filled(&self, ticket: TicketId) -> Result<(Arc<Value>, Approval), Outcome> {
        let Some(call) = self.state.calls.open.get(&ticket) else {
            return Ok((Arc::default(), Approval::NotNeeded));
        };
        let mut arguments = self.state.filled(call);
        let Some(spec) = self.setup.tools.get(&call.tool) else { return Ok((arguments, Approval::NotNeeded)) };
        if spec.kind.starts_run() {
            arguments = Arc::new(as_texts(&arguments));
        }
        let checked = self.setup.tools.check(spec, &arguments).and_then(|checked| {
            let mut checked = Arc::new(Value::Object(checked.arguments));
            if self.start.fills_defaults() && spec.approval_with(&self.state.calls.more_approval) != Approval::NotNeeded
            {
                checked = self.setup.tools.with_defaults(spec, checked);
            }
            if !spec.repeatable {
                refuse_repetition(&call.tool, &checked, Span::at(0), &self.state, &self.setup)?;
            }
            let approval = self.setup.tools.approval(spec, &checked, &self.state.calls.more_approval)?;
            Ok((checked, approval))
        });
        match checked {
            Ok(filled) => Ok(filled),
            Err(violation) => {
                let tool = &call.tool;
                let message = format!("Error calling tool '{tool}': InvalidArguments: {}", violation.sentence());
                Err(Outcome::Error { message, transient: false })
            }
        }
    }
}
