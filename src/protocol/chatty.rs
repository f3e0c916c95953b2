//! The chatty protocol.

pub mod read;
