//! What can be called: tools, the schemas of their arguments, and the checks before a call.

pub mod agent_tools;
mod answer_type;
mod as_written;
mod coerce;
pub(crate) mod describe;
mod flat_schema;
mod formats;
mod interface;
mod look_up;
mod loosen;
mod narrowed;
mod nearest_names;
pub mod openapi;
mod problem;
mod render;
mod sample_call;
pub mod schema;
pub mod set;
pub mod spec;
mod tool_view;
mod types;
mod validation_cost;

pub use answer_type::{AnswerType, CheckedAnswer};
pub use interface::{Budget, Layout};
pub use look_up::{Description, LookedUp};
pub use narrowed::narrowed;
pub(crate) use problem::misread;
pub use problem::{Problem, ProblemCode};
pub(crate) use render::expected;
pub use sample_call::Sample;
pub(crate) use sample_call::spaced;
pub use schema::Checked;
pub use set::{Resolved, ToolSet, ToolSetError};
pub use spec::{Approval, Effect, MoreApproval, ToolKind, ToolSpec};
pub(crate) use tool_view::ToolView;
