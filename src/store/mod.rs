//! The log of a run, kept.

mod memory;
mod queue;
mod sync;

pub use memory::{Log, LogError};
