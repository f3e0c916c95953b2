//! What can be called: tools, the schemas of their arguments, and the checks before a call.

pub mod agents;
mod coerce;
mod describe;
mod effort;
mod interface;
mod json_text;
mod look_up;
mod loosen;
mod nearest;
pub mod openapi;
mod outline;
mod problem;
mod render;
mod sample;
pub mod schema;
pub mod set;
mod shown;
pub mod spec;
mod types;

pub use interface::{Budget, Layout};
pub use look_up::{Description, LookedUp};
pub(crate) use problem::misread;
pub use problem::{Problem, ProblemCode};
pub(crate) use render::expected;
pub use sample::Sample;
pub use schema::Checked;
pub use set::{Resolved, ToolSet, ToolSetError};
pub(crate) use shown::Shown;
pub use spec::{Effect, ToolKind, ToolSpec};
