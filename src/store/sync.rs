//! The locks that the queue is written against: here those of std, in `tests/rust/store/group_commit.rs` loom's.

pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
