//! Bounds that hold from the first byte of a reply.

use serde::{Deserialize, Serialize};

/// How large a reply and its JSON may be. In JSON they have the names of a run's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadLimits {
    /// Bytes of the whole reply; default 16 MiB.
    #[serde(rename = "reply_bytes")]
    pub bytes: usize,
    /// Nesting of arrays and objects; default 128, at most 1,024.
    #[serde(rename = "json_depth")]
    pub depth: usize,
    /// Digits of one number; default 1,000.
    #[serde(rename = "json_digits")]
    pub digits: usize,
    /// Values in one payload; default 4,000,000.
    #[serde(rename = "json_values")]
    pub values: usize,
    /// Bytes of one key; default 64 KiB.
    #[serde(rename = "json_key_bytes")]
    pub key_bytes: usize,
    /// Blanks in a row between two tokens; default 256 KiB.
    #[serde(rename = "json_blanks")]
    pub blanks: usize,
    /// Repairs in one payload; default 100,000.
    #[serde(rename = "json_repairs")]
    pub repairs: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            bytes: 16 << 20,
            depth: 128,
            digits: 1_000,
            values: 4_000_000,
            key_bytes: 64 << 10,
            blanks: 256 << 10,
            repairs: 100_000,
        }
    }
}

impl ReadLimits {
    /// The deepest nesting that dropping and printing a value can bear.
    pub(crate) const DEEPEST: usize = 1_024;

    /// No limits except the nesting: for text that is known to be JSON.
    pub(crate) const fn none() -> Self {
        Self {
            bytes: usize::MAX,
            depth: Self::DEEPEST,
            digits: usize::MAX,
            values: usize::MAX,
            key_bytes: usize::MAX,
            blanks: usize::MAX,
            repairs: usize::MAX,
        }
    }
}
