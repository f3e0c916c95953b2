//! Bounds that hold from the first byte of a reply.

use serde::{Deserialize, Serialize};

/// How large a reply and its JSON may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadLimits {
    /// Bytes of the whole reply; default 4 MiB.
    pub bytes: usize,
    /// Nesting of arrays and objects; default 128.
    pub depth: usize,
    /// Digits of one number; default 1,000.
    pub digits: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { bytes: 4 << 20, depth: 128, digits: 1_000 }
    }
}
