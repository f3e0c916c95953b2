//! Where a run is: its turn, what it is doing, and how it ended.

use crate::protocol::{Move, TextSpans};
use crate::reply::Value;
use crate::run::event::StopReason;
use crate::run::limits::Limit;
use crate::run::model_name::ModelName;
use crate::ticket::TicketId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What the run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing is under way.
    #[default]
    Idle,
    /// The model is to reply.
    Asking,
    /// All calls of the last reply are to end.
    Calling,
    /// The call of the last reply may end within the grace (ticket).
    Settling,
    /// The program is to check the answer.
    Checking,
    /// A ticket is to be completed.
    Awaiting(TicketId),
    /// The model has finished; open tickets are waited for.
    Closing,
    /// The run is over.
    Finished,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub struct Ending {
    pub reason: StopReason,
    /// The run's value; null where there is none.
    pub value: Arc<Value>,
    /// What a react reply says of its own success.
    pub success: Option<bool>,
    /// What went wrong, where something did.
    pub error: Option<String>,
}

/// An answer that the program is to check.
#[derive(Debug, Clone)]
pub(in crate::run) struct Offered {
    pub(in crate::run) moved: Move,
    /// The places of narration, thoughts and answer in its reply.
    pub(in crate::run) spans: TextSpans,
}

/// Where a run is.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub struct Position {
    /// What it is doing.
    pub phase: Phase,
    /// The turn of the last question; 0 before the first.
    pub turn: u32,
    /// Violations since the last valid reply.
    pub violations: u32,
    pub violations_total: u32,
    /// The limit that made the coming or running turn the last one.
    pub last_turn: Option<Limit>,
    /// The limit that was reached, for the last turn or for good.
    pub limit: Option<Limit>,
    pub ending: Option<Ending>,
    /// The model of the last question.
    pub(in crate::run) asked_model: ModelName,
    /// The phase in which the run ended.
    pub(in crate::run) interrupted: Phase,
    /// Whether events that follow from the last reply are still missing.
    pub(in crate::run) midway: bool,
    /// The answer that the program is to check.
    pub(in crate::run) offered: Option<Box<Offered>>,
    /// The value and the success of the model's last FINISH.
    pub(in crate::run) answer: Option<(Arc<Value>, Option<bool>)>,
}

impl Position {
    /// Whether it can be resumed: it has not ended, or it was cancelled, or its model client failed.
    pub fn resumable(&self) -> bool {
        let reason = self.ending.as_ref().map(|ending| ending.reason);
        matches!(reason, None | Some(StopReason::ModelError | StopReason::Cancelled))
    }

    pub(super) fn finish(&mut self, ending: Ending, limit: Option<Limit>) {
        self.limit = limit.or(self.limit);
        self.midway = false;
        self.interrupted = self.phase;
        self.phase = Phase::Finished;
        self.ending = Some(ending);
    }

    /// Ends a last turn: another task of the user has all limits anew.
    pub(super) fn go_on(&mut self) {
        self.violations = 0;
        self.last_turn = None;
        self.limit = None;
    }
}
