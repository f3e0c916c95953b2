//! From events to rows: written once, for every store.

use super::row::{RunRow, TicketRow};
use crate::part::Part;
use crate::run::{Event, Note, Record, Start, Usage};
use crate::ticket::{Outcome, Ticket, TicketId};

/// The change that an event makes to the tickets of its run.
pub(super) enum TicketChange<'a> {
    /// The tickets stay as they are.
    None,
    /// This one is new.
    Opened(Box<TicketRow>),
    /// This one has an outcome, if it had none: an outcome never changes.
    Completed { ticket: TicketId, outcome: &'a Outcome, parts: &'a [Part], untrusted: bool },
    /// The arguments of this one are final. `is_free` is whether it waits for no approval, and no check of the program
    /// either; `untrusted` is whether its result turned out to be.
    Filled { ticket: TicketId, arguments: String, parked: bool, is_free: bool, untrusted: bool },
    /// This one is tried this often so far.
    Attempted { ticket: TicketId, attempts: u32 },
    /// The program has decided whether this one needs approval, and why.
    ApprovalChecked { ticket: TicketId, parked: bool, reason: Option<&'a str> },
    /// A person has approved of this one, with other arguments if there are any.
    Approved { ticket: TicketId, arguments: Option<String> },
    /// This one has begun, and awaits its result from outside, by a key if there is one.
    Pending { ticket: TicketId, key: Option<&'a str>, external: String },
    /// A log begins with its snapshot: these are all its tickets.
    All(Vec<TicketRow>),
}

/// The change that an event makes to the tickets of this run. `first` is whether the log begins with it.
pub(super) fn tickets<'a>(run_id: &str, record: &'a Record, first: bool) -> TicketChange<'a> {
    match &record.event {
        Event::TicketOpened(opened) => TicketChange::Opened(Box::new(TicketRow {
            run_id: run_id.to_owned(),
            ticket: opened.ticket,
            kind: opened.kind,
            tool: opened.tool.to_string(),
            description: opened.description.to_string(),
            arguments: serde_json::to_string(&opened.arguments).ok(),
            turn: opened.turn,
            call_id: opened.call_id.clone(),
            parked: opened.needs_approval && opened.needs.is_empty(),
            attempts: 1,
            approval_reason: None,
            awaits_result: opened
                .external
                .as_ref()
                .map(|_| opened.needs.is_empty() && !opened.needs_approval && !opened.checks_approval),
            answer_key: None,
            external: opened.external.as_ref().and_then(|external| serde_json::to_string(external).ok()),
            untrusted: opened.untrusted,
            opened_at: record.at,
            completed_at: None,
            outcome: None,
            text: None,
            parts: Vec::new(),
        })),
        Event::TicketCompleted { ticket, outcome, parts, untrusted, .. } => {
            TicketChange::Completed { ticket: *ticket, outcome, parts, untrusted: *untrusted }
        }
        Event::ArgumentsFilled { ticket, arguments, needs_approval, checks_approval, untrusted } => {
            TicketChange::Filled {
                ticket: *ticket,
                arguments: arguments.to_json(),
                parked: *needs_approval,
                is_free: !needs_approval && !checks_approval,
                untrusted: *untrusted,
            }
        }
        Event::ToolAttemptFailed(failed) => {
            let attempts = failed.attempt.saturating_add(u32::from(failed.wait.is_some()));
            TicketChange::Attempted { ticket: failed.ticket, attempts }
        }
        Event::ApprovalChecked { ticket, needs_approval, reason } => {
            TicketChange::ApprovalChecked { ticket: *ticket, parked: *needs_approval, reason: reason.as_deref() }
        }
        Event::Approved { ticket, arguments, .. } => TicketChange::Approved {
            ticket: *ticket,
            arguments: arguments.as_ref().map(|arguments| arguments.to_json()),
        },
        Event::TicketPending { ticket, key, external } => TicketChange::Pending {
            ticket: *ticket,
            key: key.as_deref(),
            external: serde_json::to_string(external).unwrap_or_default(),
        },
        Event::Compacted { state, .. } if first => {
            TicketChange::All(state.calls.tickets.iter().map(|ticket| from_snapshot(run_id, ticket)).collect())
        }
        _ => TicketChange::None,
    }
}

fn from_snapshot(run_id: &str, ticket: &Ticket) -> TicketRow {
    let mut row = TicketRow {
        run_id: run_id.to_owned(),
        ticket: ticket.id,
        kind: ticket.kind,
        tool: ticket.tool.to_string(),
        description: ticket.description.to_string(),
        arguments: ticket.arguments.as_ref().map(|arguments| arguments.to_json()),
        turn: ticket.turn,
        call_id: ticket.call_id.clone(),
        parked: ticket.parked,
        attempts: ticket.attempts,
        approval_reason: ticket.approval_reason.as_deref().map(str::to_owned),
        awaits_result: ticket.external.as_ref().map(|_| ticket.awaits_result),
        answer_key: ticket.answer_key.as_deref().map(str::to_owned),
        external: ticket.external.as_ref().and_then(|external| serde_json::to_string(external).ok()),
        untrusted: ticket.untrusted,
        opened_at: ticket.opened_at,
        completed_at: None,
        outcome: None,
        text: None,
        parts: Vec::new(),
    };
    if let Some(outcome) = &ticket.outcome {
        row.complete(outcome, &ticket.parts, ticket.completed_at.unwrap_or(ticket.opened_at));
    }
    row
}

impl TicketRow {
    /// Something is changed after which it waits for a result, or not, if that comes from outside.
    pub(super) fn free(&mut self, is_free: bool) {
        self.awaits_result = self.awaits_result.map(|_| is_free);
    }

    /// Awaits a result from outside from now on.
    pub(super) fn pend(&mut self, key: Option<&str>, external: String) {
        self.awaits_result = Some(true);
        (self.answer_key, self.external) = (key.map(str::to_owned), Some(external));
    }

    /// Its result is untrusted, if it is still to come.
    pub(super) fn distrust(&mut self, untrusted: bool) {
        self.untrusted |= untrusted && self.outcome.is_none();
    }

    /// Takes the outcome, if there is none yet.
    pub(super) fn complete(&mut self, outcome: &Outcome, parts: &[Part], at: f64) {
        if self.outcome.is_none() {
            self.parked = false;
            self.free(false);
            self.completed_at = Some(at);
            self.outcome = Some(outcome.word().to_owned());
            self.text = Some(outcome.text().to_owned());
            self.parts = parts.to_vec();
        }
    }
}

impl RunRow {
    /// The row of a run before its first event.
    pub(super) fn new(run_id: &str, at: f64) -> Self {
        Self { run_id: run_id.to_owned(), started_at: at, updated_at: at, ..Self::default() }
    }

    /// Adds one event. `first` is whether the log begins with it.
    pub(super) fn add(&mut self, record: &Record, first: bool) {
        self.updated_at = record.at;
        match &record.event {
            Event::RunStarted(start) => self.start(start),
            Event::Compacted { start, state, .. } if first => {
                self.start(start);
                self.turns = state.position.turn;
                self.violations = state.position.violations_total;
                self.input_tokens = state.spending.usage.input_tokens;
                self.output_tokens = state.spending.usage.output_tokens;
                self.cached_tokens = state.spending.usage.cached_tokens;
                self.cost = state.spending.usage.cost;
                self.started_at = state.spending.started_at;
                if let Some(ending) = &state.position.ending {
                    self.stop_reason = Some(ending.reason);
                    self.error.clone_from(&ending.error);
                    self.finished_at = Some(record.at);
                }
            }
            Event::ModelAsked { turn, .. } => self.turns = self.turns.max(*turn),
            Event::ModelReplied { usage: Some(usage), .. } => self.add_usage(usage),
            Event::ModelAttemptFailed(attempt) => {
                if let Some(usage) = &attempt.usage {
                    self.add_usage(usage);
                }
            }
            Event::HistoryShortened(shortened) => {
                if let Some(usage) = &shortened.usage {
                    self.add_usage(usage);
                }
            }
            Event::Violated { .. } => self.violations = self.violations.saturating_add(1),
            Event::Noted { note: Note::Resumed } | Event::UserSaid { .. } => {
                self.stop_reason = None;
                self.error = None;
                self.finished_at = None;
            }
            Event::RunFinished { reason, error, .. } => {
                self.stop_reason = Some(*reason);
                self.error.clone_from(error);
                self.finished_at = Some(record.at);
            }
            _ => {}
        }
    }

    fn add_usage(&mut self, usage: &Usage) {
        self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(usage.cached_tokens);
        self.cost += usage.cost;
    }

    fn start(&mut self, start: &Start) {
        start.agent.clone_into(&mut self.agent);
        self.owner = start.owner.as_deref().map(str::to_owned);
        self.key = start.key.as_deref().map(str::to_owned);
        start.setup.protocol.name().clone_into(&mut self.protocol);
        self.task = start.task.to_string();
        self.parent.clone_from(&start.parent);
    }
}
