//! A folded state as it stands in a log.

use super::state::RunState;
use super::stored_state::StoredState;
use crate::hex::hex;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::ops::Deref;

/// A state with the very text that it is written as, so that later versions, whose states have more to say, write it
/// and check it as it was.
#[derive(Debug, Clone)]
pub struct Snapshot {
    text: Box<RawValue>,
    state: RunState,
}

impl Snapshot {
    /// The state as this version writes it.
    ///
    /// # Errors
    /// It has no JSON form, which no state of a run is without.
    pub fn new(state: RunState) -> serde_json::Result<Self> {
        let stored = StoredState::from(state);
        Ok(Self { text: serde_json::value::to_raw_value(&stored)?, state: stored.into() })
    }

    /// SHA-256 of its text.
    pub fn sum(&self) -> String {
        sha256([self.text.get()])
    }
}

impl Deref for Snapshot {
    type Target = RunState;

    fn deref(&self) -> &RunState {
        &self.state
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let stored: StoredState = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { text, state: stored.into() })
    }
}

/// The hash of these texts, one after the other, in hexadecimal digits.
pub(super) fn sha256(texts: impl IntoIterator<Item: AsRef<str>>) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update(text.as_ref());
    }
    hex(&hasher.finalize())
}
