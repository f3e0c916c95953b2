//! What keeps a model that rambles from going on for ever, and what keeps a grammar small.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How much a model may say at one place, beyond what a schema asks for: an option of very small models, which go on
/// where they are free to. A reply in which something reaches its bound breaks off there, so that the reader refuses it
/// as cut; only thoughts and descriptions, which are not carried out, are ended instead. An answer goes on to the end of
/// its sentence, and breaks off where that is as far away as the answer is long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Characters of an answer, a returned string or a delegated task.
    pub answer: u32,
    /// Characters of a string argument, and of a key that no schema names.
    pub string: u32,
    /// Items of an array, entries of an object whose keys no schema names, and calls of a block.
    pub items: u32,
    /// Characters of thoughts, and of a ticket's description.
    pub thoughts: u32,
}

impl fmt::Display for Bounds {
    /// The bounds of what is refused where it reaches them, as the program writes them.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answer, string, items, .. } = self;
        write!(formatter, "Bounds(answer={answer}, string={string}, items={items})")
    }
}

/// Digits in a row, where there are bounds.
pub(in crate::protocol) const DIGITS: u32 = 20;

/// Depth of schemas in schemas; what is deeper may be any value.
pub(in crate::protocol) const DEPTH: usize = 64;

/// Schemas looked at for one tool; what lies past it may be any value.
pub(in crate::protocol) const WORK: usize = 5_000;

/// Rules for how many properties an object has; past it, their number is left to the check.
pub(in crate::protocol) const COUNTED: usize = 1_000;

/// Properties on which others depend; past it, what depends on them is left to the check.
pub(in crate::protocol) const TRIGGERS: usize = 3;

/// The highest count that engines take at one place; a higher one is written as a product.
pub(in crate::protocol) const COUNT: u32 = 100;

/// Counts past this are left to the check.
pub(in crate::protocol) const MOST: u32 = 200_000;

/// Calls of a block that are numbered one by one.
pub(in crate::protocol) const NUMBERED: u32 = 24;
