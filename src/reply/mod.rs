//! Text to values: the push reader. It knows no protocol and does no I/O.

pub mod limit;
pub mod repair;
pub mod span;
pub mod value;

pub use limit::ReadLimits;
pub use repair::{Repair, RepairCode, RepairPolicy};
pub use span::{LineColumn, Span};
pub use value::{Number, Object, Value};
