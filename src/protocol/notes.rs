//! What is noted while a reply is read: repairs, or the refusal of one where the protocol is strict.

use crate::reply::{Repair, RepairCode, RepairPolicy, Span, Violation};

/// A boxed violation: errors are rare and large.
pub(crate) type Fault = Box<Violation>;

/// The repairs of one reply.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes {
    policy: RepairPolicy,
    repairs: Vec<Repair>,
}

impl Notes {
    pub(crate) fn new(policy: RepairPolicy) -> Self {
        Self { policy, repairs: Vec::new() }
    }

    /// Notes a repair.
    pub(crate) fn note(&mut self, code: RepairCode, span: Span) -> Result<(), Fault> {
        if self.policy == RepairPolicy::Strict {
            return Err(crate::reply::json::refused(code, span));
        }
        self.repairs.push(Repair::new(code, span));
        Ok(())
    }

    /// Takes over repairs that were noted elsewhere.
    pub(crate) fn extend(&mut self, repairs: impl IntoIterator<Item = Repair>) {
        self.repairs.extend(repairs);
    }

    /// The place of the first repair of a kind.
    pub(crate) fn first(&self, code: RepairCode) -> Option<Span> {
        self.repairs.iter().filter(|repair| repair.code == code).map(|repair| repair.span).min_by_key(|span| span.start)
    }

    /// All of them, in the order of the text.
    pub(crate) fn into_sorted(mut self) -> Vec<Repair> {
        self.repairs.sort_by_key(|repair| (repair.span.start, repair.span.end));
        self.repairs
    }
}
