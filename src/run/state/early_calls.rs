//! Calls that were started while their reply was still arriving: they count once the reply stands. Of one that is lost
//! or refused the message says that nothing was executed, so that nothing of it may be held against the next reply.

use super::Calls;
use crate::ticket::TicketId;

impl Calls {
    /// Counts how a call ended, for the guard against repetition. Returns how often it has now given this result in a
    /// row; 0 where that is not known yet, because the reply is still `arriving`, or does not count.
    pub(super) fn count(&mut self, key: String, id: TicketId, arriving: bool) -> u32 {
        if self.unheard.contains(&id) {
            return 0;
        }
        if arriving && self.batch.values().any(|early| *early == id) {
            self.early.insert(id, key);
            return 0;
        }
        let Some(outcome) = self.tickets.get(id).and_then(|ticket| ticket.outcome.as_ref()) else { return 0 };
        self.repetition.record(key, id, outcome, &self.tickets)
    }

    /// Counts the calls of the reply that have ended before it had: the next message names them.
    pub(super) fn count_early(&mut self) {
        for (id, key) in std::mem::take(&mut self.early) {
            let Some(outcome) = self.tickets.get(id).and_then(|ticket| ticket.outcome.as_ref()) else { continue };
            let times = self.repetition.record(key, id, outcome, &self.tickets);
            if times > 1 {
                self.times.insert(id, times);
            }
        }
    }

    /// Drops the calls that were started for a reply which is lost or refused.
    pub(super) fn drop_early(&mut self) {
        self.early.clear();
        self.batch_open = 0;
        for id in std::mem::take(&mut self.batch).into_values() {
            self.unheard.insert(id);
            let Some(name) = self.tickets.get(id).and_then(|ticket| ticket.call_id.clone()) else { continue };
            if self.call_ids.get(&name) != Some(&id) {
                continue;
            }
            // Its name is free again, for what had it before.
            let mut earlier = self.tickets.iter().rev().filter(|ticket| !self.unheard.contains(&ticket.id));
            match earlier.find(|ticket| ticket.call_id.as_deref() == Some(&*name)).map(|ticket| ticket.id) {
                Some(earlier) => drop(self.call_ids.insert(name, earlier)),
                None => drop(self.call_ids.remove(&name)),
            }
        }
    }
}
