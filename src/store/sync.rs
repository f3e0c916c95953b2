//! The locks that the queue is written against: here those of std, in `tests/rust/interleavings/main.rs` loom's.

pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
