//! What a valid reply leads to: its move is checked against the run as a whole, then logged, then begun.

use super::account::Account;
use super::event::{Event, Note, StopReason};
use super::limits::Limit;
use super::machine::{RunMachine, SharedLimits};
use super::opened::Opened;
use super::plan::{self, Planned, Refusal};
use super::untrusted::inherits_untrusted;
use crate::codes::Code;
use crate::protocol::{Move, TextSpans};
use crate::reply::violation::Violation;
use crate::ticket::TicketId;
use crate::tool::Approval;

impl RunMachine {
    pub(super) fn apply_move(&mut self, moved: Move, spans: TextSpans, now: f64) {
        if let Some(limit) = self.state.position.last_turn
            && !matches!(moved, Move::Finish { .. })
        {
            let error = format!("the limit is reached ({limit}), and the last turn gave no answer but another move");
            return self.finish(StopReason::Limit, Some(error), now);
        }
        let refused = match &moved {
            Move::Call { calls } if self.setup.protocol.runs_code() => return self.take_calls(calls, spans, now),
            Move::Finish { .. } => match self.judge_answer(&moved, now).and_then(|()| self.answer_allowed()) {
                Ok(()) if self.setup.checks_answer => {
                    let turn = self.state.position.turn;
                    return self.emit(Event::AnswerOffered { turn, moved, spans }, now);
                }
                allowed => allowed,
            },
            Move::Call { .. } | Move::Delegate { .. } => match self.plan(&moved, now) {
                Ok(planned) => {
                    let turn = self.state.position.turn;
                    self.emit(Event::Moved { turn, moved, spans }, now);
                    if self.setup.ends_at_call {
                        return self.end_at_calls(&planned, now);
                    }
                    for call in planned {
                        self.open(call, now);
                    }
                    return self.advance(now);
                }
                Err(Refusal::Violation(violation)) => Err(*violation),
                Err(Refusal::Limit(limit)) => return self.limit(limit, now),
            },
            Move::Await { ticket_id } => self.ticket(ticket_id).map(|_| ()),
            Move::Load { ticket_id, offset } => self.loadable(ticket_id, *offset),
        };
        match refused {
            Ok(()) => {
                let turn = self.state.position.turn;
                self.emit(Event::Moved { turn, moved, spans }, now);
                self.advance(now);
            }
            Err(violation) => self.record_violation(violation, spans, now),
        }
    }

    /// The calls of a move, if all of them can be opened.
    pub(super) fn plan(&mut self, moved: &Move, now: f64) -> Result<Vec<Planned>, Refusal> {
        let mut planned = match moved {
            Move::Delegate { task } => vec![plan::delegate(task, &self.start.task, &self.state, &self.setup)?],
            Move::Call { calls } => plan::calls(calls, &self.state.calls.batch, &self.state, &self.setup, &self.start)?,
            _ => Vec::new(),
        };
        if let Move::Call { calls } = moved {
            self.judge(&mut planned, calls, now)?;
        }
        if self.setup.ends_at_call {
            return Ok(planned);
        }
        let tickets = u32::try_from(planned.len()).unwrap_or(u32::MAX);
        let runs = plan::runs(&planned);
        self.check_shared_limits(now, |account| account.reserve(tickets, runs)).map_err(Refusal::Limit)?;
        Ok(planned)
    }

    /// Checks the limits that runs share. A limit that is reached is logged, so that a replay reaches it too.
    pub(super) fn check_shared_limits(
        &mut self,
        now: f64,
        ask: impl FnOnce(&Account) -> Result<(), Limit>,
    ) -> Result<(), Limit> {
        let reached = match &self.shared_limits {
            SharedLimits::None => return Ok(()),
            SharedLimits::Live(account) => ask(account).err(),
            SharedLimits::Replayed(replayed) => replayed.limits.get(&self.seq).copied(),
        };
        let Some(limit) = reached else { return Ok(()) };
        self.emit(Event::Noted { note: Note::Exhausted(limit) }, now);
        Err(limit)
    }

    fn answer_allowed(&self) -> Result<(), Violation> {
        let may_call = !self.state.conversation.refused.leaves_an_answer();
        if self.setup.call_first && may_call && !self.state.calls.called && self.state.position.last_turn.is_none() {
            return Err(Violation::new(
                Code::CallRequired,
                "expected a tool call before the answer: none was made yet",
            )
            .expected(self.setup.protocol.call_form()));
        }
        Ok(())
    }

    pub(super) fn ticket(&self, id: &str) -> Result<TicketId, Violation> {
        if self.state.conversation.own_task().is_some() && id.trim() == TicketId::OWN.to_string() {
            return Err(own_ticket(id.trim()));
        }
        let known = TicketId::parse(id).filter(|ticket| self.state.calls.tickets.get(*ticket).is_some());
        known.ok_or_else(|| {
            let ids = if self.setup.protocol.guides_to_results() {
                self.state.calls.tickets.ids_without(&[])
            } else {
                let ids: Vec<String> = self.state.calls.tickets.iter().map(|ticket| ticket.id.to_string()).collect();
                ids.join(", ")
            };
            let there = if ids.is_empty() { "there is none yet".to_owned() } else { format!("there are {ids}") };
            Violation::new(Code::UnknownTicket, format!("expected the id of a ticket of this run: got '{id}', {there}"))
        })
    }

    fn loadable(&self, id: &str, offset: usize) -> Result<(), Violation> {
        let ticket = self.ticket(id)?;
        match self.state.calls.tickets.get(ticket) {
            Some(ticket) if ticket.outcome.is_none() => Err(Violation::new(
                Code::TicketInProgress,
                format!("expected a COMPLETED ticket: {} is still IN_PROGRESS", ticket.id),
            )
            .expected(format!(r#"{{"type": "AWAIT", "ticket_id": "{}"}}"#, ticket.id))
            .hint("AWAIT it first, then LOAD_TICKET")),
            Some(ticket) => self.state.check_offset(ticket, offset),
            None => Ok(()),
        }
    }

    pub(super) fn open(&mut self, call: Planned, now: f64) {
        self.open_in_turn(call, self.state.position.turn, now);
    }

    /// Opens a call of the reply of this turn.
    pub(super) fn open_in_turn(&mut self, call: Planned, turn: u32, now: f64) {
        let spec = self.setup.tools.get(&call.tool);
        let external = spec.and_then(|spec| spec.external.clone());
        let inherits = self.state.conversation.untrusted && inherits_untrusted(call.kind, spec);
        let shows = self.shows_untrusted_part(&call.tool, &call.arguments);
        let untrusted = inherits || shows || spec.is_some_and(|spec| spec.untrusted);
        let opened = Opened {
            ticket: call.ticket,
            kind: call.kind,
            script: call.script,
            turn,
            call: call.call,
            call_id: call.call_id,
            description: call.description.into(),
            tool: call.tool,
            arguments: call.arguments,
            needs_approval: call.approval == Approval::Needed
                && (call.needs.is_empty() || !self.start.writes_filled_arguments()),
            checks_approval: call.approval == Approval::Checked && call.needs.is_empty(),
            needs: call.needs,
            detached: call.detached,
            coerced: call.coerced,
            external,
            untrusted,
            origins: call.judged.origins,
            reason: call.judged.reason,
        };
        self.emit(Event::TicketOpened(Box::new(opened)), now);
    }
}

/// The violation of a move that asks for the result of the run's own task.
fn own_ticket(id: &str) -> Violation {
    let message = format!(
        "expected the ticket of a call or of a delegated task: {id} is your own task, which has no result before you RETURN it"
    );
    Violation::new(Code::OwnTicket, message).hint("go on with a CALL, or RETURN the value of the task")
}
