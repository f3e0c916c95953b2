//! The loop, as a state machine without I/O: events in the log, state as their fold, commands for a driver.

mod account;
pub mod command;
mod difference;
mod dispatch;
mod early;
pub mod event;
pub mod limits;
pub mod machine;
mod plan;
mod reading;
mod reference;
mod repetition;
pub mod replay;
pub mod resume;
pub mod snapshot;
pub mod state;
mod stream;

pub use crate::protocol::{Message, Role};
pub use account::{Account, Spent};
pub use command::{Command, Setup};
pub use difference::differences;
pub use event::{Event, Note, Opened, Parent, Record, Start, StopReason, Usage};
pub use limits::{Limit, Limits};
pub use machine::Machine;
pub use replay::{ReplayError, replay};
pub use resume::{LoadError, compact};
pub use snapshot::Snapshot;
pub use state::{Phase, RunState};
