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

    /// Whether one of these texts repeats a sentence that the model was told.
    pub(super) fn is_quoted(&self, texts: &[&str]) -> bool {
        let texts: Vec<String> = texts.iter().map(|text| letters(text)).collect();
        let mut told = self.told.iter().map(|sentence| letters(sentence)).filter(|sentence| !sentence.is_empty());
        told.any(|sentence| texts.iter().any(|text| text.contains(&sentence)))
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

/// The letters and digits of a text, in small letters. A model that copies feedback changes case, quotes and line breaks.
fn letters(text: &str) -> String {
    text.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::RefusedValues;

    const TOLD: &str = r#"'day' = "Monday" and 'hours' = 8 are in no message and no result"#;
    const HINT: &str = "call again with a value from there or answer without a tool";

    fn refused() -> RefusedValues {
        RefusedValues { told: vec![TOLD.to_owned(), HINT.to_owned()], ..RefusedValues::default() }
    }

    #[test]
    fn a_sentence_is_found_however_its_case_quotes_and_blanks_are_written() {
        let changes: [fn(&str) -> String; 7] = [
            str::to_owned,
            str::to_uppercase,
            |text| text.replace('"', "'"),
            |text| text.replace(['"', '\''], ""),
            |text| text.replace(' ', "\n"),
            |text| text.replace('"', "\\\""),
            |text| format!("It is {text}. Done."),
        ];
        for sentence in [TOLD, HINT] {
            for first in changes {
                for second in changes {
                    let text = second(&first(sentence));
                    assert!(refused().is_quoted(&["", &text]), "{text}");
                }
            }
        }
    }

    #[test]
    fn other_words_about_the_same_values_are_an_answer() {
        for text in ["", "Which day?", "I don't know 'day' and 'hours'.", "It is Monday, 8 hours."] {
            assert!(!refused().is_quoted(&[text]), "{text}");
        }
        assert!(!RefusedValues::default().is_quoted(&["anything"]));
    }
}
