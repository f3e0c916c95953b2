//! The wall time of a run: until when it may go on. Time in which nothing works on it does not count.

use super::event::{Event, Note};
use super::limits::Limit;
use super::machine::{RunMachine, SharedLimits};
use super::state::Phase;

impl RunMachine {
    /// Whether its wall time is limited.
    pub fn is_timed(&self) -> bool {
        self.setup.limits.seconds.is_some()
    }

    /// Unix seconds at which the driver calls `time_out`; `None` without a limit, and while nothing works on the run.
    pub fn deadline(&self) -> Option<f64> {
        let seconds = self.setup.limits.seconds.filter(|_| !self.state.is_waiting())?;
        // The last turn after a time limit is bounded too: by the same time once more.
        let times = if self.state.position.last_turn == Some(Limit::Seconds) { 2.0 } else { 1.0 };
        Some(self.state.spending.timed_from() + times * seconds)
    }

    /// Whether the deadline is reached. A replay takes that from its log: earlier versions counted other times.
    pub(super) fn is_out_of_time(&self, now: f64) -> bool {
        match &self.shared_limits {
            SharedLimits::Replayed(replayed) if self.seq < replayed.end => replayed.timed_out.contains(&self.seq),
            _ => self.deadline().is_some_and(|deadline| now >= deadline),
        }
    }

    /// Cancels open calls and begins the last turn or ends the run, if the deadline is reached. Several waiters can
    /// call this: before the deadline it does nothing.
    pub fn time_out(&mut self, now: f64) {
        let is_due = match &self.shared_limits {
            // It is called where the log has the events of it.
            SharedLimits::Replayed(_) => self.is_timed(),
            _ => self.is_out_of_time(now),
        };
        if !is_due || matches!(self.state.position.phase, Phase::Finished | Phase::Idle) {
            return;
        }
        // The time until now was that of others who worked for the run.
        self.attended = true;
        self.stream = None;
        self.cancel_all_but_waits(now);
        if self.state.position.phase == Phase::Closing {
            return self.close(now);
        }
        self.limit(Limit::Seconds, now);
    }

    /// Cancels all calls but those that wait for agents: their results say in the last turn how the agents ended.
    fn cancel_all_but_waits(&mut self, now: f64) {
        self.cancel_those(|machine, call| !machine.waits(call), now);
        self.settle_dependants(now);
    }

    /// Notes that nothing has worked on the run or on the runs below it since this time, of which its own log does not
    /// tell.
    pub fn pause(&mut self, since: f64, now: f64) {
        let seconds = self.state.spending.since_last(now).min(now - since);
        let note = Event::Noted { note: Note::Paused(seconds) };
        if seconds > 0.0 && self.may_pause() && !self.state.is_paused_before(&note) {
            self.emit(note, now);
        }
    }

    /// Seconds before an event in which no process worked on the run, if the event does not tell them.
    pub(super) fn untold_pause(&self, event: &Event, now: f64) -> Option<f64> {
        let is_told = self.attended || !self.may_pause() || self.state.is_paused_before(event);
        (!is_told).then(|| self.state.spending.since_last(now)).filter(|seconds| *seconds > 0.0)
    }

    fn may_pause(&self) -> bool {
        self.is_timed()
            && !self.state.conversation.messages.is_empty()
            && self.state.position.phase != Phase::Finished
            && !matches!(self.shared_limits, SharedLimits::Replayed(_))
    }
}
