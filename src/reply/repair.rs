//! Repairs: departures from the syntax that leave exactly one sensible reading. Each is applied and recorded.

use super::Span;
use serde::{Deserialize, Serialize};

/// What is done where a repair is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairPolicy {
    /// Every repair is a violation.
    Strict,
    /// Certain repairs are applied and recorded.
    #[default]
    Default,
}

/// The stable name of a kind of repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairCode {
    /// A fence around the payload was taken off.
    FenceStripped,
}

/// One repair that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// What was repaired.
    pub code: RepairCode,
    /// Where in the reply.
    pub span: Span,
}
