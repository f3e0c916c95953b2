//! Scripts that a model wrote, run apart from the program.
//!
//! Knows no run and no protocol: a script goes in, events and a result come out.

pub mod packages;
mod refused;
pub mod script;

pub use refused::{Refused, RefusedCode};
