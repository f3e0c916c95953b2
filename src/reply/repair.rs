//! Repairs: departures from the syntax that leave exactly one sensible reading. Each is applied and recorded.

use super::Span;
use crate::codes::RepairCode;
use serde::{Deserialize, Serialize};

/// The action if a repair is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairPolicy {
    /// Every repair is a violation.
    Strict,
    /// Certain repairs are applied and recorded.
    #[default]
    Default,
    /// As the default, and keys that models often write in place of the protocol's own are read as those.
    Lenient,
}

/// One repair that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// The kind of repair.
    pub code: RepairCode,
    /// Its place in the reply.
    pub span: Span,
}

impl Repair {
    /// A repair at a place.
    pub fn new(code: RepairCode, span: Span) -> Self {
        Self { code, span }
    }
}
