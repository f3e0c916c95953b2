//! What can be called: tools, the schemas of their arguments, and the checks before a call.

pub mod spec;

pub use spec::{Effect, ToolSpec};
