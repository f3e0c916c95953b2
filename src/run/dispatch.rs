//! The machine's commands: what its state asks the driver to do, each given once.

use super::command::Command;
use super::event::Event;
use super::machine::Machine;
use super::plan;
use super::state::Phase;
use crate::reply::violation::Violation;
use crate::reply::{Span, Value};
use crate::ticket::{Outcome, TicketId};
use std::sync::Arc;

impl Machine {
    /// Completes calls whose references can't be filled, because what they refer to failed.
    pub(super) fn settle_dependants(&mut self, now: f64) {
        loop {
            let failed = self.pending.iter().find_map(|ticket| {
                let call = self.state.open_calls.get(ticket)?;
                let need = call.needs.iter().filter_map(|need| self.state.tickets.get(*need));
                let bad =
                    need.into_iter().find(|need| need.outcome.as_ref().is_some_and(|outcome| !outcome.is_ok()))?;
                Some((*ticket, call.tool.clone(), bad.call_id.clone().unwrap_or_default()))
            });
            let Some((ticket, tool, call_id)) = failed else { return };
            let message =
                format!("Error calling tool '{tool}': NotRun: it uses the result of call '{call_id}', which failed.");
            self.emit(Event::TicketCompleted { ticket, outcome: Outcome::Error { message } }, now);
        }
    }

    /// What the driver is to do now. Each command is given once.
    pub fn commands(&mut self, now: f64) -> Vec<Command> {
        let mut commands: Vec<Command> = self
            .cancelled
            .drain(..)
            .filter(|ticket| self.started.remove(ticket))
            .map(|ticket| Command::Cancel { ticket })
            .collect();
        // A call that can't be made after all completes its ticket, and may free or fail others.
        loop {
            let ready = self.ready();
            if ready.is_empty() {
                break;
            }
            for ticket in ready {
                self.pending.remove(&ticket);
                self.started.insert(ticket);
                commands.extend(self.call(ticket, now));
            }
        }
        match self.state.phase {
            Phase::Asking if self.asked < self.state.turn => {
                self.asked = self.state.turn;
                commands.push(Command::AskModel { turn: self.state.turn });
            }
            Phase::Settling if self.settled < self.state.turn => {
                self.settled = self.state.turn;
                commands.push(Command::Settle);
            }
            Phase::Finished if !self.ended => {
                self.ended = true;
                commands.push(Command::Finish);
            }
            _ => {}
        }
        commands
    }

    /// The open calls that were not started and have all the results they need.
    fn ready(&self) -> Vec<TicketId> {
        let open = &self.state.open_calls;
        let whole = |need: &TicketId| !open.contains_key(need);
        let ready =
            self.pending.iter().filter(|ticket| open.get(ticket).is_some_and(|call| call.needs.iter().all(whole)));
        ready.copied().collect()
    }

    /// The command to make a call; none where its references turn out to give wrong arguments.
    fn call(&mut self, ticket: TicketId, now: f64) -> Option<Command> {
        let call = self.state.open_calls.get(&ticket)?;
        let tool = Arc::clone(&call.tool);
        let again = self.again.contains(&ticket);
        if call.needs.is_empty() {
            return Some(Command::CallTool { ticket, tool, arguments: Arc::clone(&call.arguments), again });
        }
        match self.filled(ticket) {
            Ok(arguments) => Some(Command::CallTool { ticket, tool, arguments, again }),
            Err(violation) => {
                let message = format!("Error calling tool '{tool}': InvalidArguments: {}.", violation.message);
                self.completed(ticket, Outcome::Error { message }, now);
                None
            }
        }
    }

    fn filled(&self, ticket: TicketId) -> Result<Arc<Value>, Violation> {
        let Some(call) = self.state.open_calls.get(&ticket) else { return Ok(Arc::default()) };
        let arguments = self.state.filled(call);
        let Some(spec) = self.setup.tools.get(&call.tool) else { return Ok(arguments) };
        let checked = Value::Object(self.setup.tools.check(spec, &arguments)?.arguments);
        if !spec.repeatable {
            plan::guard(&call.tool, &arguments, Span::at(0), &self.state, self.setup.limits.max_repeats)?;
        }
        Ok(Arc::new(checked))
    }
}
