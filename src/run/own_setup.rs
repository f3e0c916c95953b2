//! What one run is set up with that other runs of its agent are not: it stands beside the setup, which they share in a
//! store.

use super::command::Setup;
use super::event::Start;
use super::machine::{RunMachine, user_parts};
use crate::part::Part;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The instructions of one run, which a function of the program has given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instructions {
    /// Their text.
    pub text: Arc<str>,
    /// The byte of the setup's prompt at which they stand.
    at: usize,
    /// How many bytes of that prompt they replace.
    removed: usize,
    /// What stands there: the text, and the lines around it.
    inserted: Arc<str>,
}

impl Instructions {
    /// The instructions that make one prompt of another.
    pub(super) fn between(text: &str, without: &str, with: &str) -> Self {
        let same = |(one, other): &(char, char)| one == other;
        let length =
            |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize { pairs.map(|(one, _)| one.len_utf8()).sum() };
        let at = length(&mut without.chars().zip(with.chars()).take_while(same));
        let (removed, inserted) = (without.get(at..).unwrap_or_default(), with.get(at..).unwrap_or_default());
        let tail = length(&mut removed.chars().rev().zip(inserted.chars().rev()).take_while(same));
        let inserted = inserted.get(..inserted.len() - tail).unwrap_or_default();
        Self { text: text.into(), at, removed: removed.len() - tail, inserted: inserted.into() }
    }

    /// The prompt with them.
    fn prompt(&self, without: &str) -> String {
        let after = self.at.saturating_add(self.removed);
        let (head, tail) = (without.get(..self.at), without.get(after..));
        format!("{}{}{}", head.unwrap_or_default(), self.inserted, tail.unwrap_or_default())
    }
}

impl Start {
    /// What the run was set up with, its own instructions and limits among it.
    pub fn own_setup(&self) -> Arc<Setup> {
        if self.limits.is_none() && self.instructions.is_none() {
            return Arc::clone(&self.setup);
        }
        let mut own = Setup::clone(&self.setup);
        if let Some(limits) = &self.limits {
            own.limits.clone_from(limits);
        }
        if let Some(instructions) = &self.instructions {
            own.prompt = instructions.prompt(&own.prompt).into();
            own.instructions = Some(Arc::clone(&instructions.text));
        }
        Arc::new(own)
    }
}

impl RunMachine {
    /// Gives a run that has not begun its owner, and the key of its caller.
    #[must_use]
    pub fn owned(mut self, owner: Option<&str>, key: Option<&str>) -> Self {
        (self.start.owner, self.start.key) = (owner.map(Arc::from), key.map(Arc::from));
        self
    }

    /// Whether this is what the user asks for in it. The parts of a run that another process is to begin are not known.
    pub fn has_task(&self, text: &str, parts: &[Part]) -> bool {
        if self.state.conversation.messages.is_empty() {
            return *self.start.task == *text;
        }
        let count = self.start.messages.iter().map(|message| message.parts.len()).sum();
        let (text, parts) = user_parts(text, parts, count);
        *self.start.task == *text && self.start.parts == parts
    }

    /// Gives a run the texts of the run above it, and one that has not begun its owner, and what that run has read
    /// untrusted.
    pub fn inherit(&mut self, above: &mut Self) {
        self.read_above(above);
        if self.state.conversation.messages.is_empty() {
            self.start.owner.clone_from(&above.start.owner);
            let call = self.start.parent.as_ref().map(|parent| parent.ticket);
            self.start.untrusted |= call.is_some_and(|call| above.begins_untrusted(call));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(without: &str, with: &str) {
        assert_eq!(Instructions::between("x", without, with).prompt(without), with, "{without:?} to {with:?}");
    }

    #[test]
    fn a_prompt_is_made_of_another_and_what_differs() {
        for prompts in [
            ("tools\n", "tools\n\nBe brief.\n"),
            ("A  B tools C", "A Be brief. B tools C"),
            ("A  B  C", "A x B x C"),
            ("a\u{e9}b", "a\u{e8}\u{e9}b"),
            ("aa", "aaa"),
            ("abab", "ab"),
            ("", "x"),
            ("x", ""),
            ("same", "same"),
        ] {
            check(prompts.0, prompts.1);
            check(prompts.1, prompts.0);
        }
    }

    #[test]
    fn places_that_a_prompt_does_not_have_are_no_panic() {
        let instructions = Instructions { text: "x".into(), at: 3, removed: usize::MAX, inserted: "x".into() };
        assert_eq!(instructions.prompt("\u{e9}\u{e9}"), "x");
    }
}
