//! The bounds of a run. `None` is no limit; a count of 0 allows none.

use crate::reply::ReadLimits;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Runs in all that a run may start, those of its children among them.
const RUNS: u32 = 100;
/// Levels of runs below a run.
const DEPTH: u32 = 4;

/// How far a run may go. Tickets, tokens, cost and runs are counted with those of all runs below it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Turns; default 50. Logs call them steps.
    #[serde(rename = "steps")]
    pub turns: Option<u32>,
    /// Tickets in all; default 500.
    pub tickets: Option<u32>,
    /// Tickets in progress at once; default 32.
    pub open_tickets: Option<u32>,
    /// Seconds in which something works on the run; default none.
    pub seconds: Option<f64>,
    /// Runs that are started below it in all; default 100.
    #[serde(skip_serializing_if = "is_default_runs")]
    pub runs: Option<u32>,
    /// Levels of runs below it; default 4.
    #[serde(skip_serializing_if = "is_default_depth")]
    pub depth: Option<u32>,
    /// Tokens in and out as the client reports them; default none.
    pub tokens: Option<u64>,
    /// Cost as the client reports it, in the client's own currency; default none.
    pub cost: Option<f64>,
    /// How large a reply and its JSON may be.
    #[serde(flatten)]
    pub read: ReadLimits,
    /// Bytes of a result that the model is shown; default 32 KiB. The whole stays in the ticket.
    pub result_bytes: usize,
    /// Violations in a row before the run ends; default 3.
    pub max_violations: u32,
    /// Times the same call with the same result is run; default 3.
    pub max_repeats: u32,
}

// What stands in a log from before there were runs below runs is written as it was.
#[expect(clippy::trivially_copy_pass_by_ref, clippy::ref_option, reason = "serde gives it so")]
fn is_default_runs(runs: &Option<u32>) -> bool {
    *runs == Some(RUNS)
}

#[expect(clippy::trivially_copy_pass_by_ref, clippy::ref_option, reason = "serde gives it so")]
fn is_default_depth(depth: &Option<u32>) -> bool {
    *depth == Some(DEPTH)
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: Some(50),
            tickets: Some(500),
            open_tickets: Some(32),
            runs: Some(RUNS),
            depth: Some(DEPTH),
            seconds: None,
            tokens: None,
            cost: None,
            read: ReadLimits::default(),
            result_bytes: 32 << 10,
            max_violations: 3,
            max_repeats: 3,
        }
    }
}

impl Limits {
    /// Those that are set of what replies use up.
    pub(super) fn of_usage(&self) -> impl Iterator<Item = Limit> {
        let tokens = self.tokens.map(|_| Limit::Tokens);
        tokens.into_iter().chain(self.cost.map(|_| Limit::Cost))
    }
}

/// The limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// `Limits::turns`
    #[serde(rename = "steps")]
    Turns,
    /// `Limits::tickets`
    Tickets,
    /// `Limits::open_tickets`
    OpenTickets,
    /// `Limits::runs`
    Runs,
    /// `Limits::seconds`
    Seconds,
    /// `Limits::tokens`
    Tokens,
    /// `Limits::cost`
    Cost,
    /// `Limits::max_repeats`
    MaxRepeats,
}

impl Limit {
    /// The name of its field in `Limits`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turns => "steps",
            Self::Tickets => "tickets",
            Self::OpenTickets => "open_tickets",
            Self::Runs => "runs",
            Self::Seconds => "seconds",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::MaxRepeats => "max_repeats",
        }
    }

    /// The words for it that the model is shown. The errors in logs keep the older word for turns.
    pub(super) fn shown(self) -> String {
        match self {
            Self::Turns => "turns".to_owned(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Turns => "steps",
            Self::Tickets => "tickets",
            Self::OpenTickets => "open tickets at once",
            Self::Runs => "runs",
            Self::Seconds => "wall time",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::MaxRepeats => "repetitions of one call",
        })
    }
}
