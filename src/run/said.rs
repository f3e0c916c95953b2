//! What the user has said under keys: the same again is said once, and a key is not used for something else.

use super::input::InputError;
use super::machine::{RunMachine, user_parts};
use crate::hex::hex;
use crate::part::Part;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What counts as the user's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Words {
    /// A message after the task.
    Said(Arc<str>),
    /// An answer of the model that the user has replied to.
    Answered([Arc<str>; 1]),
}

/// A message that was said under a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SaidUnderKey {
    /// How many images and files of the user there were before it: its text names its own by their numbers.
    before: u32,
    sha256: String,
}

impl SaidUnderKey {
    /// Of a message as it stands in the log.
    pub(super) fn new(text: &str, parts: &[Part], before: u32) -> Self {
        let mut digest = Sha256::new();
        digest.update(text);
        for part in parts {
            digest.update([0]);
            digest.update(&*part.sha256);
        }
        Self { before, sha256: hex(&digest.finalize()) }
    }

    fn is(&self, text: &str, parts: &[Part]) -> bool {
        let (text, parts) = user_parts(text, parts, self.before as usize);
        *self == Self::new(&text, &parts, self.before)
    }
}

impl RunMachine {
    /// Checks that a message can be said, under this key if it has one.
    ///
    /// # Errors
    /// `NotBegun`, `TakesNoMessages`, `KeyTaken`.
    pub fn check_said(&self, text: &str, parts: &[Part], key: Option<&str>) -> Result<(), InputError> {
        self.check_begun()?;
        if self.setup.protocol.runs_code() {
            return Err(InputError::TakesNoMessages(self.run_id().to_owned()));
        }
        key.map_or(Ok(false), |key| self.was_said(text, parts, key)).map(drop)
    }

    /// Checks that a message may be said under a key. Returns whether it was said already.
    ///
    /// # Errors
    /// `KeyTaken`: another one was said under it.
    pub fn was_said(&self, text: &str, parts: &[Part], key: &str) -> Result<bool, InputError> {
        match self.state().conversation.said_keys.get(key) {
            None => Ok(false),
            Some(said) if said.is(text, parts) => Ok(true),
            Some(_) => Err(InputError::KeyTaken { run_id: self.run_id().to_owned(), key: key.to_owned() }),
        }
    }
}
