//! The ticket protocol.

pub mod read;
