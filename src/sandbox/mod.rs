//! Scripts that a model wrote, run apart from the program.
//!
//! Knows no run and no protocol: a script goes in, events and a result come out. Processes are driven by tokio on one
//! thread of its own, which never runs Python; a descriptor becomes readable when there is something to read.

pub mod event;
mod installation;
pub mod job;
#[cfg_attr(unix, path = "packages/mod.rs")]
#[cfg_attr(not(unix), path = "packages/unsupported.rs")]
pub mod packages;
mod refused;
#[cfg_attr(target_os = "linux", path = "runner/mod.rs")]
#[cfg_attr(not(target_os = "linux"), path = "unsupported.rs")]
mod runner;
pub mod script;
#[cfg(target_os = "linux")]
mod wire;

pub use installation::install;
pub use refused::{Refused, RefusedCode};
pub use runner::{Offered, Request, probe, run};
