//! What is noted while a reply is read: repairs, or the refusal of one where the protocol is strict.

use crate::reply::{BoxedViolation, Repair, RepairCode, RepairPolicy, Span};

/// The repairs of one reply.
#[derive(Debug, Clone, Default)]
pub(crate) struct RepairNotes {
    policy: RepairPolicy,
    repairs: Vec<Repair>,
}

impl RepairNotes {
    pub(crate) fn new(policy: RepairPolicy) -> Self {
        Self { policy, repairs: Vec::new() }
    }

    pub(crate) fn note(&mut self, code: RepairCode, span: Span) -> Result<(), BoxedViolation> {
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

    /// All of them.
    pub(crate) fn all(&self) -> &[Repair] {
        &self.repairs
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
