//! The codes of violations and repairs: one closed set each, written in logs and named on every floor.

mod names;
mod repair;
mod violation;

pub use repair::RepairCode;
pub use violation::Code;
