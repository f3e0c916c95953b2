//! The rows of runs and tickets in listings, and the filters that select them.

use crate::part::Part;
use crate::run::{Parent, StopReason};
use crate::ticket::{External, Status, TicketId, TicketKind};
use serde_json::Value as Json;

/// Whether a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub enum RunStatus {
    /// It can go on.
    Running,
    Finished,
}

impl RunStatus {
    /// `running` or `finished`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
        }
    }
}

/// A run at a glance: the sum of its events so far.
#[derive(Debug, Clone, PartialEq, Default)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub struct RunRow {
    pub run_id: String,
    /// The agent that works on it.
    pub agent: String,
    /// The owner of its data.
    pub owner: Option<String>,
    /// The caller's own name for it.
    pub key: Option<String>,
    /// `ticket`, `chatty` or `react`; empty for a run that waits for a worker and has not begun.
    pub protocol: String,
    /// The task, in the user's words.
    pub task: String,
    /// The call of another run in which it was started.
    pub parent: Option<Parent>,
    /// The reason of its end, if it has ended.
    pub stop_reason: Option<StopReason>,
    /// The error that ended it, if there is one.
    pub error: Option<String>,
    /// The number of model turns.
    pub turns: u32,
    pub violations: u32,
    /// Tokens of the messages, as the client says.
    pub input_tokens: u64,
    /// Tokens of the replies, as the client says.
    pub output_tokens: u64,
    /// Tokens of the messages that came from the client's cache.
    pub cached_tokens: u64,
    /// In the client's own currency.
    pub cost: f64,
    /// Unix seconds of the start.
    pub started_at: f64,
    /// Unix seconds of the last event.
    pub updated_at: f64,
    /// Unix seconds of the end.
    pub finished_at: Option<f64>,
}

impl RunRow {
    /// Whether it is over.
    pub fn status(&self) -> RunStatus {
        if self.finished_at.is_some() { RunStatus::Finished } else { RunStatus::Running }
    }
}

/// A ticket of any run, with its whole result.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub struct TicketRow {
    pub run_id: String,
    /// Its id in the run.
    pub ticket: TicketId,
    /// The kind of work: a call, a child run and so on.
    pub kind: TicketKind,
    pub tool: String,
    /// A short description of the call or task.
    pub description: String,
    /// The arguments of the call as JSON: with references until they are filled, then final. None if the log was
    /// compacted by a version before 3 and then imported.
    pub arguments: Option<String>,
    /// The turn with the reply that opened it.
    pub turn: u32,
    /// The model's own name for the call (chatty).
    pub call_id: Option<String>,
    /// Whether it waits for a person's approval.
    pub parked: bool,
    /// How many attempts were made, the one that is waited for among them.
    pub attempts: u32,
    /// Why it needs approval, in the program's words.
    pub approval_reason: Option<String>,
    /// Whether it waits for a result from outside now; `None` for a call that the runtime makes itself.
    pub awaits_result: Option<bool>,
    /// The key under which a call with a result from outside can be answered.
    pub answer_key: Option<String>,
    /// The description of that result, as JSON.
    pub external: Option<String>,
    /// Whether its result comes from others, or from a child run or a script that has read such a result.
    pub untrusted: bool,
    /// Unix seconds of opening.
    pub opened_at: f64,
    /// Unix seconds of completion.
    pub completed_at: Option<f64>,
    /// How it ended: `ok`, `error`, `retry`, `in_doubt`, `denied` or `cancelled`.
    pub outcome: Option<String>,
    /// The JSON of its result or the message of its failure, whole.
    pub text: Option<String>,
    /// Images and files of its result.
    pub parts: Vec<Part>,
}

impl TicketRow {
    /// JSON Schema of the result that it takes from outside; `None` if it takes none, or any JSON value.
    pub fn answers(&self) -> Option<Json> {
        let external: External = serde_json::from_str(self.external.as_deref()?).ok()?;
        external.answers(serde_json::from_str(self.arguments.as_deref()?).ok().as_ref())
    }

    /// `IN_PROGRESS` until there is an outcome.
    pub fn status(&self) -> Status {
        if self.outcome.is_some() { Status::Completed } else { Status::InProgress }
    }
}

/// A filter of runs: all set fields must match. Runs are listed newest first.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Those that are in this state.
    pub status: Option<RunStatus>,
    /// Only runs of this agent.
    pub agent: Option<String>,
    /// Only runs of this owner.
    pub owner: Option<String>,
    /// Those started by this run.
    pub parent: Option<String>,
    /// Started then or later, in Unix seconds.
    pub since: Option<f64>,
    /// Started before, in Unix seconds.
    pub until: Option<f64>,
    /// At most so many.
    pub limit: Option<usize>,
}

impl RunFilter {
    /// Whether the filter matches this run. `limit` is not about one run.
    pub fn admits(&self, row: &RunRow) -> bool {
        self.status.is_none_or(|status| row.status() == status)
            && self.agent.as_ref().is_none_or(|agent| row.agent == *agent)
            && self.owner.as_ref().is_none_or(|owner| row.owner.as_ref() == Some(owner))
            && self.parent.as_ref().is_none_or(|id| row.parent.as_ref().is_some_and(|parent| parent.run_id == *id))
            && self.since.is_none_or(|since| row.started_at >= since)
            && self.until.is_none_or(|until| row.started_at < until)
    }
}

/// A filter of tickets: all set fields must match. Tickets are listed newest first.
#[derive(Debug, Clone, Default)]
pub struct TicketFilter {
    /// Only tickets of this run.
    pub run: Option<String>,
    /// Those that are in this state.
    pub status: Option<Status>,
    /// Only tickets of this kind.
    pub kind: Option<TicketKind>,
    /// Only tickets in runs of this owner.
    pub owner: Option<String>,
    /// Only tickets in child runs of this run.
    pub parent: Option<String>,
    /// Those that wait for a person's approval, or those that do not.
    pub parked: Option<bool>,
    /// Those that wait for a result from outside, or those that do not.
    pub awaits_result: Option<bool>,
    /// Opened then or later, in Unix seconds.
    pub since: Option<f64>,
    /// Opened before, in Unix seconds.
    pub until: Option<f64>,
    /// At most so many.
    pub limit: Option<usize>,
}

impl TicketFilter {
    /// Whether the filter matches this ticket of this run. `limit` is not about one ticket.
    pub fn admits(&self, row: &TicketRow, run: &RunRow) -> bool {
        self.run.as_ref().is_none_or(|run| row.run_id == *run)
            && self.status.is_none_or(|status| row.status() == status)
            && self.kind.is_none_or(|kind| row.kind == kind)
            && self.owner.as_ref().is_none_or(|owner| run.owner.as_ref() == Some(owner))
            && self.parent.as_ref().is_none_or(|id| run.parent.as_ref().is_some_and(|parent| parent.run_id == *id))
            && self.parked.is_none_or(|parked| row.parked == parked)
            && self.awaits_result.is_none_or(|awaits| row.awaits_result.unwrap_or_default() == awaits)
            && self.since.is_none_or(|since| row.opened_at >= since)
            && self.until.is_none_or(|until| row.opened_at < until)
    }
}
