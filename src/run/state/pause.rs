//! The time in which nothing works on a run: it does not count towards its wall time.

use super::{Phase, RunState};
use crate::run::event::{Event, Note};

impl RunState {
    /// Whether nothing works on the run: each open call awaits a decision or a result from outside, or such a call.
    pub fn is_waiting(&self) -> bool {
        matches!(self.position.phase, Phase::Calling | Phase::Awaiting(_) | Phase::Closing)
            && !self.position.midway
            && self.calls.open.keys().any(|ticket| self.calls.awaits_decision(*ticket))
            && !self.calls.open.iter().any(|(ticket, call)| self.calls.is_under_way(*ticket, call))
    }

    /// Whether the time before this event is known not to count, because of the event or of what was before it.
    pub(crate) fn is_paused_before(&self, event: &Event) -> bool {
        matches!(event, Event::Noted { note: Note::Resumed } | Event::Approved { at_rest: true, .. })
            || self.is_waiting()
    }

    /// Adds the time before an event to that which does not count, if nothing worked on the run in it.
    pub(super) fn add_pause(&mut self, event: &Event, at: f64) {
        if let Event::Noted { note: Note::Paused(seconds) } = event {
            self.spending.paused += seconds.max(0.0).min(self.spending.since_last(at));
        } else if self.is_paused_before(event) {
            self.spending.paused += self.spending.since_last(at);
        }
    }
}
