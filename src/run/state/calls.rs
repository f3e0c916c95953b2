//! The calls of a run: their tickets, those that are open, and what is known of calls that were made before.

use super::ScriptState;
use crate::reply::Value;
use crate::run::event::FailedCall;
use crate::run::opened::Opened;
use crate::run::repetition::{self, Repetition};
use crate::ticket::{TicketId, TicketKind, TicketList, is_false};
use crate::tool::MoreApproval;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A call whose ticket is open.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::run) struct OpenCall {
    pub(in crate::run) tool: Arc<str>,
    /// With references as they were written, until they are filled.
    pub(in crate::run) arguments: Arc<Value>,
    /// Whether its references were filled, so that its arguments are final.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(in crate::run) filled: bool,
    /// Whether the program is still to decide if it needs approval.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(in crate::run) unchecked: bool,
    pub(in crate::run) needs: Vec<TicketId>,
    /// Its position in its reply.
    pub(super) position: usize,
    /// The repetition guard's key, once the arguments are whole.
    pub(in crate::run) key: Option<String>,
    /// The failure of its last attempt, where no other one follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::run) failure: Option<String>,
}

impl OpenCall {
    /// Sets its final arguments.
    pub(super) fn fill(&mut self, arguments: &Arc<Value>) {
        self.key = Some(repetition::key(&self.tool, arguments));
        self.arguments = Arc::clone(arguments);
        self.filled = true;
    }

    /// Whether its arguments are those that it is made with.
    pub(in crate::run) fn is_final(&self) -> bool {
        self.filled || self.needs.is_empty()
    }
}

/// The calls of a run.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    /// Every call and task so far.
    pub tickets: TicketList,
    /// Whether any call was made.
    pub called: bool,
    /// By ticket, so that calls start in the order of their tickets.
    pub(in crate::run) open: BTreeMap<TicketId, Box<OpenCall>>,
    /// The tickets of the model's own names for calls; the latest where it gave a name twice.
    pub(in crate::run) call_ids: BTreeMap<String, TicketId>,
    pub(in crate::run) repetition: Repetition,
    /// The calls of the last reply in its own order, whose results the next message tells.
    pub(in crate::run) batch: BTreeMap<usize, TicketId>,
    /// Calls of the batch without an outcome.
    pub(in crate::run) batch_open: usize,
    /// The calls of the last reply, those that were not opened yet among them.
    pub(in crate::run) batch_size: usize,
    /// How often calls of the batch have given the same result in a row, where more than once.
    pub(in crate::run) times: BTreeMap<TicketId, u32>,
    /// Calls that have ended while their reply was still arriving, with their keys of the guard.
    pub(in crate::run) early: BTreeMap<TicketId, String>,
    /// Calls that were started for a reply which was lost or refused.
    pub(in crate::run) unheard: BTreeSet<TicketId>,
    /// Calls that were approved while no driver worked on the run.
    pub(in crate::run) unbegun: BTreeSet<TicketId>,
    /// What a script has asked for; `None` in runs of models.
    pub script: Option<Box<ScriptState>>,
    /// The approval that its tools need beyond what their specifications say, as agents since have it.
    pub(in crate::run) more_approval: MoreApproval,
}

impl Calls {
    /// Whether this attempt at a call is the one that can fail now.
    pub(in crate::run) fn is_next_failure(&self, failed: &FailedCall) -> bool {
        let is_open = self.open.get(&failed.ticket).is_some_and(|call| call.failure.is_none());
        is_open && self.tickets.get(failed.ticket).is_some_and(|ticket| ticket.attempts == failed.attempt)
    }

    /// Whether a script has asked for calls that are not made yet.
    pub(super) fn has_waiting(&self) -> bool {
        self.script.as_ref().is_some_and(|script| !script.waiting.is_empty())
    }

    /// Whether all results that a call uses are there.
    pub(in crate::run) fn has_needs(&self, call: &OpenCall) -> bool {
        !call.needs.iter().any(|need| self.open.contains_key(need))
    }

    /// Whether something works on a call: it awaits nobody outside, and no other call.
    pub(in crate::run) fn is_under_way(&self, ticket: TicketId, call: &OpenCall) -> bool {
        !self.awaits_decision(ticket) && self.has_needs(call)
    }

    /// Whether the result of a call can turn out to come from outside: it is made, and no run of its own works on it.
    pub(in crate::run) fn may_pend(&self, ticket: TicketId) -> bool {
        let known = self.tickets.get(ticket).filter(|known| known.kind == TicketKind::ToolCall && !known.parked);
        let call = self.open.get(&ticket);
        known.is_some_and(|known| known.external.is_none())
            && call.is_some_and(|call| call.is_final() && !call.unchecked && call.failure.is_none())
    }

    /// Whether somebody outside of the run is to decide on a call or answer it, which does not go on until then.
    pub(in crate::run) fn awaits_decision(&self, ticket: TicketId) -> bool {
        self.awaits_approval(ticket) || self.tickets.get(ticket).is_some_and(|ticket| ticket.awaits_result)
    }

    /// Whether a call awaits approval and its arguments are final.
    pub(in crate::run) fn awaits_approval(&self, ticket: TicketId) -> bool {
        self.tickets.get(ticket).is_some_and(|ticket| ticket.parked)
            && self.open.get(&ticket).is_some_and(|call| call.is_final())
    }

    /// A reply with so many calls was taken; those that were started early have their tickets already.
    pub(super) fn begin_batch(&mut self, calls: usize) {
        self.repetition.left();
        self.count_early();
        self.batch_size = calls;
        self.batch_open = calls - self.batch.len().min(calls)
            + self.batch.values().filter(|ticket| self.open.contains_key(ticket)).count();
    }

    /// Whether calls of the last reply have no tickets yet.
    pub(super) fn is_batch_missing(&self) -> bool {
        self.batch.len() < self.batch_size
    }

    /// Adds the open call of a new ticket.
    pub(super) fn begin(&mut self, opened: &Opened) {
        let Opened { ticket, call, call_id, tool, arguments, needs, detached, checks_approval, .. } = opened;
        if let Some(call_id) = call_id {
            self.call_ids.insert(call_id.clone(), *ticket);
        }
        let key = needs.is_empty().then(|| repetition::key(tool, arguments));
        let open = OpenCall {
            tool: Arc::clone(tool),
            arguments: Arc::clone(arguments),
            filled: false,
            unchecked: *checks_approval,
            needs: needs.clone(),
            position: *call,
            key,
            failure: None,
        };
        self.open.insert(*ticket, Box::new(open));
        if let Some(script) = &mut self.script {
            return script.open(*ticket);
        }
        self.batch.insert(*call, *ticket);
        if *detached {
            self.batch_open = self.batch_open.saturating_sub(1);
        }
    }

    pub(super) fn on_attempt_failed(&mut self, failed: &FailedCall) {
        let is_last = failed.wait.is_none();
        self.tickets.set_attempts(failed.ticket, failed.attempt.saturating_add(u32::from(!is_last)));
        if let Some(call) = self.open.get_mut(&failed.ticket).filter(|_| is_last) {
            call.failure = Some(failed.error.clone());
        }
    }
}
