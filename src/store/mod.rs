//! The log of a run, kept.

mod memory;

pub use memory::{Log, LogError};
