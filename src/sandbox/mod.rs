//! Scripts that a model wrote, run apart from the program.
//!
//! Knows no run and no protocol: a script goes in, events and a result come out. Processes are driven by tokio on one
//! thread of its own, which never runs Python; whoever waits is told through a descriptor.

pub mod event;
pub mod job;
mod refused;
mod runner;
pub mod script;
mod wire;

pub use refused::{Refused, RefusedCode};
pub use runner::{Offered, Request, probe, run};
