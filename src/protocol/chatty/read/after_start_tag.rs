//! What stands between a start tag and the bracket that begins its block: blanks, perhaps a fence with its word.

use crate::reply::tag::{Match, Tag};

/// What follows a start tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It has not arrived.
    Unknown,
    /// A block: a bracket, or the end tag.
    Block,
    Text,
}

/// How far the text after a start tag was read: nothing of it is looked at twice.
#[derive(Debug, Clone, Copy)]
pub(super) struct AfterStartTag {
    position: usize,
    part: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Blanks,
    Ticks,
    Word,
    MoreBlanks,
}

impl AfterStartTag {
    /// Next the start tag that ends at `position`.
    pub(super) fn new(position: usize) -> Self {
        Self { position, part: Part::Blanks }
    }

    /// What follows, given the end tag; `end` says that no more text will come.
    pub(super) fn read(&mut self, text: &str, close: &Tag, end: bool) -> Next {
        let rest = loop {
            let rest = text.get(self.position..).unwrap_or("");
            let after = match self.part {
                Part::Blanks | Part::MoreBlanks => rest.trim_start(),
                Part::Ticks => rest.trim_start_matches(['`', '~']),
                Part::Word => rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric()),
            };
            self.position += rest.len() - after.len();
            self.part = match self.part {
                _ if after.is_empty() => return Next::Unknown,
                Part::Blanks if after.starts_with(['`', '~']) => Part::Ticks,
                Part::Ticks => Part::Word,
                Part::Blanks | Part::Word => Part::MoreBlanks,
                Part::MoreBlanks => break after,
            };
        };
        match close.at(rest, end) {
            Match::Yes { .. } => Next::Block,
            Match::Partial => Next::Unknown,
            Match::No if rest.starts_with(['[', '{']) => Next::Block,
            Match::No => Next::Text,
        }
    }
}
