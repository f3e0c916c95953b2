//! Text to values: the push reader. It knows no protocol and does no I/O.

pub mod buffer;
pub(crate) mod doubt;
pub mod envelope;
pub mod json;
pub(crate) mod json_text;
pub mod limit;
pub mod object;
pub mod repair;
pub mod span;
pub mod tag;
pub mod value;
pub mod violation;

pub use crate::codes::{Code, RepairCode};
pub use limit::ReadLimits;
pub use object::Object;
pub use repair::{Repair, RepairPolicy};
pub use span::{LineColumn, Span};
pub use value::{Number, Value};
pub(crate) use violation::BoxedViolation;
pub use violation::{Related, Violation};
