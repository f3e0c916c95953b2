//! Calls that were refused because of where their values come from. This is state: it survives resuming and compaction.

use super::repetition;
use crate::protocol::Violation;
use crate::reply::Value;
use crate::ticket::is_false;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Refusals in a row after which only an answer may come, under `strict`.
const MOST: u32 = 2;
/// The sentences of feedback that are remembered, the latest.
const REMEMBERED: usize = 16;

/// What was refused since the user's last words, and how the model was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RefusedValues {
    /// The calls, as the guard against repetition names them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    calls: BTreeSet<String>,
    /// Refusals under `strict` in a row.
    #[serde(default, skip_serializing_if = "is_zero")]
    in_a_row: u32,
    /// The positions of refused replies, which are shown no longer once the model has gone on.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    replies: BTreeSet<usize>,
    /// What the model was told, which is no answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    told: Vec<String>,
    /// Whether the last reply was refused.
    #[serde(default, skip_serializing_if = "is_false")]
    is_last: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl RefusedValues {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether this call was refused since the user's last words.
    pub(super) fn has(&self, tool: &str, arguments: &Value) -> bool {
        !self.calls.is_empty() && self.calls.contains(&repetition::key(tool, arguments))
    }

    /// Whether only an answer may come.
    pub(super) fn leaves_an_answer(&self) -> bool {
        self.in_a_row >= MOST
    }

    /// The sentences that the model was told.
    pub(super) fn told(&self) -> impl Iterator<Item = &str> {
        self.told.iter().map(String::as_str)
    }

    /// The message behind the last reply says more than why it was refused: both are shown for good.
    pub(super) fn keep(&mut self, reply: usize) {
        self.replies.remove(&reply);
    }

    /// The positions of the refused replies that are shown no longer. Each is shown no longer with the message behind it.
    pub(super) fn hidden(&self, last: usize) -> impl Iterator<Item = usize> + '_ {
        self.replies.iter().copied().filter(move |position| !self.is_last || position + 1 < last)
    }

    /// A reply, at this position, broke the protocol.
    pub(super) fn on_violated(&mut self, violation: &Violation, position: usize) {
        self.is_last = violation.is_of_values();
        if !self.is_last {
            return;
        }
        self.replies.insert(position);
        if let Some(refused) = &violation.refused {
            self.calls.extend(refused.keys.iter().cloned());
            self.in_a_row += u32::from(refused.strict);
        }
        self.told.extend([&violation.message].into_iter().chain(&violation.hint).cloned());
        let earlier = self.told.len().saturating_sub(REMEMBERED);
        self.told.drain(..earlier);
    }

    /// A move of the model was taken.
    pub(super) fn on_moved(&mut self) {
        self.in_a_row = 0;
        self.is_last = false;
    }

    /// A message of the user starts anew.
    pub(super) fn on_user_said(&mut self) {
        self.calls.clear();
        self.in_a_row = 0;
    }
}
