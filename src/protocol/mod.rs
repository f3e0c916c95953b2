//! Values to moves, and outcomes to words: one file a protocol, over the shared vocabulary defined here.

pub mod decode;
pub mod moves;
pub mod violation;

pub mod chatty;
pub mod react;
pub mod ticket;

pub use decode::{Decoder, Delta, FinishReason, ReadOptions, Reply, Status};
pub use moves::{Move, ToolCall};
pub use violation::{Code, Violation};
