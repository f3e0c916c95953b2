//! The keys of runs, which callers choose.

use super::row::RunRow;

/// A caller's name for a run, unique among the runs of one owner and one agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub struct RunKey {
    pub owner: Option<String>,
    pub agent: String,
    /// In the caller's words.
    pub key: String,
}

impl RunKey {
    /// The key of a run, if it has one.
    pub(super) fn of(row: &RunRow) -> Option<Self> {
        let key = row.key.clone()?;
        Some(Self { owner: row.owner.clone(), agent: row.agent.clone(), key })
    }
}
