//! What a run has used up: tokens, cost, child runs and time.

use crate::run::account::Spent;
use crate::run::event::Usage;
use crate::run::limits::Limit;

/// What a run has used up.
#[derive(Debug, Clone, Default)]
pub struct Spending {
    /// What the replies cost in all.
    pub usage: Usage,
    /// Unix seconds of the start.
    pub started_at: f64,
    /// Seconds in which nothing worked on the run.
    pub paused: f64,
    /// Whether the usage of replies was reported, and no cost of any.
    pub(in crate::run) unpriced: bool,
    /// What the runs below it have spent that have ended.
    pub(in crate::run) below: Spent,
    /// Tasks given to other runs.
    pub(in crate::run) runs: u32,
    /// Unix seconds of the message with which an ended run continued.
    pub(in crate::run) went_on_at: Option<f64>,
    /// The turns before that.
    pub(in crate::run) turns_before: u32,
    /// What replies had cost by then.
    pub(in crate::run) usage_before: Usage,
    /// Unix seconds of the last event.
    pub(in crate::run) last_at: f64,
}

impl Spending {
    /// Whether its replies say what this limit bounds. None does before the first reply.
    pub(in crate::run) fn is_counted(&self, limit: Limit) -> bool {
        match limit {
            Limit::Tokens => self.usage.input_tokens > 0 || self.usage.output_tokens > 0,
            Limit::Cost => self.usage.cost > 0.0 || (!self.unpriced && self.is_counted(Limit::Tokens)),
            _ => true,
        }
    }

    /// Adds what a run below has spent.
    pub(super) fn add_below(&mut self, spent: Option<&Spent>) {
        if let Some(spent) = spent {
            self.below.add(spent);
        }
    }

    pub(super) fn add_usage(&mut self, usage: Option<&Usage>) {
        if let Some(usage) = usage {
            let first = !self.is_counted(Limit::Tokens) && self.usage.cost <= 0.0;
            self.unpriced = usage.unpriced && (first || self.unpriced);
            self.usage += *usage;
        }
    }

    /// What replies have cost since the user's last task.
    pub fn turn_usage(&self) -> Usage {
        self.usage.minus(&self.usage_before)
    }

    /// Counts anew for another task of the user, after so many turns.
    pub(super) fn go_on(&mut self, turn: u32, at: f64) {
        self.went_on_at = Some(at);
        self.turns_before = turn;
        self.usage_before = self.usage;
        self.paused = 0.0;
    }

    /// Unix seconds from which its wall time is counted.
    pub(in crate::run) fn timed_from(&self) -> f64 {
        self.went_on_at.unwrap_or(self.started_at) + self.paused
    }

    /// Unix seconds of the last event.
    pub fn last_at(&self) -> f64 {
        self.last_at
    }

    /// Seconds from the last event to this moment.
    pub(in crate::run) fn since_last(&self, now: f64) -> f64 {
        (now - self.last_at).max(0.0)
    }
}
