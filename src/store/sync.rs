//! The locks of the queue: here from std, in `tests/rust/interleavings/main.rs` from loom.

pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
