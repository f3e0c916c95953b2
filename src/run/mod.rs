//! The run module.
