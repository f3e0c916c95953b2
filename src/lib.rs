//! The core of callslip: reads what models write, enforces the protocol, keeps the tickets and decides what a run
//! does next. It does no I/O and knows no clock; a driver performs the commands.
//!
//! Imports point down only: `py -> live -> store -> run -> protocol -> tool -> ticket -> reply -> codes -> part`.

pub mod codes;
mod hex;
mod json_pointer;
pub mod live;
pub mod origin;
pub mod part;
pub mod protocol;
#[cfg(feature = "python")]
mod py;
pub mod reply;
pub mod run;
pub mod sandbox;
mod signal;
pub mod store;
pub mod ticket;
pub mod tool;
