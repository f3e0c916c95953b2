//! The ticket module.
