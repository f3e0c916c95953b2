//! The loop, as a state machine without I/O: events in the log, state as their fold, commands for a driver.

mod account;
mod answer_check;
mod apply_move;
pub mod command;
mod compatibility;
mod dispatch;
mod early_calls;
mod ending;
pub mod event;
mod input;
pub mod limits;
pub mod machine;
mod plan;
mod possible_moves;
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
pub use compatibility::differences;
pub use event::{Event, FailedAttempt, Note, Opened, Parent, Record, Shortened, Start, StopReason, Usage};
pub use input::InputError;
pub use limits::{Limit, Limits};
pub use machine::RunMachine;
pub use possible_moves::PossibleMoves;
pub use replay::{ReplayError, replay};
pub use resume::{LoadError, compact, read_log};
pub use snapshot::Snapshot;
pub use state::{Phase, RunState};
