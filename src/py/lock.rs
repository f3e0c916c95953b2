//! Waiting for locks. A thread that waits for one is detached from Python meanwhile: others can run, and a collector
//! that stops all threads need not wait for it.

use super::error::CoreResult;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Takes a lock, in a thread that is attached to Python. No Python object is made or dropped while it is held.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> CoreResult<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(error)) => Err(error.into()),
        Err(TryLockError::WouldBlock) => Ok(Python::attach(|py| mutex.lock_py_attached(py))?),
    }
}
