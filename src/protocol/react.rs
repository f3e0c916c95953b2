//! The react protocol.

pub mod read;
