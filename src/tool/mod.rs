//! What can be called: tools, the schemas of their arguments, and the checks before a call.

pub mod agents;
mod coerce;
mod describe;
mod json_text;
mod nearest;
pub mod openapi;
mod outline;
mod problem;
mod render;
pub mod schema;
pub mod set;
pub mod spec;
mod types;

pub(crate) use problem::misread;
pub use problem::{Problem, ProblemCode};
pub use schema::Checked;
pub use set::{Resolved, ToolSet, ToolSetError};
pub use spec::{Effect, ToolKind, ToolSpec};
