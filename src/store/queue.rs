//! Group commit: many threads push work, one writer takes all of it and commits it together.
//!
//! `tests/rust/interleavings/main.rs` includes this very file with loom's locks and runs through every interleaving.

use super::sync::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The reason why the queue accepts and acknowledges no more work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The writer failed, for this reason.
    Failed(Arc<str>),
    /// The queue was closed.
    Closed,
}

/// The work that waits for the writer, and the writer's position. Positions count pushed items from 1, and items are
/// acknowledged in that order.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    /// The writer waits here for work.
    work: Condvar,
    /// Everyone else waits here for the writer.
    progress: Condvar,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<(T, usize)>,
    pushed: u64,
    acknowledged: u64,
    failure: Option<Arc<str>>,
    closed: bool,
    /// Threads at `progress`: none need not be woken.
    waiters: usize,
}

impl<T> State<T> {
    fn reached(&self, position: u64) -> Result<bool, Stopped> {
        if self.acknowledged >= position {
            return Ok(true);
        }
        match &self.failure {
            Some(reason) => Err(Stopped::Failed(Arc::clone(reason))),
            None => Ok(false),
        }
    }
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let state =
            State { waiting: VecDeque::new(), pushed: 0, acknowledged: 0, failure: None, closed: false, waiters: 0 };
        Self { state: Mutex::new(state), work: Condvar::new(), progress: Condvar::new() }
    }

    /// Ignores poisoning: no code that can panic runs under this lock, so its state is always consistent.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands work in and says its position. `weight` counts against the size of a batch.
    pub(super) fn push(&self, item: T, weight: usize) -> Result<u64, Stopped> {
        let mut state = self.lock();
        if let Some(reason) = &state.failure {
            return Err(Stopped::Failed(Arc::clone(reason)));
        }
        if state.closed {
            return Err(Stopped::Closed);
        }
        state.pushed += 1;
        state.waiting.push_back((item, weight));
        let position = state.pushed;
        // The writer sleeps only while the queue is empty.
        let sleeps = state.waiting.len() == 1;
        drop(state);
        if sleeps {
            self.work.notify_one();
        }
        Ok(position)
    }

    /// For the writer: waits for work and takes the items, at least one and else at most this weight, with
    /// the position of its last item. `None` is the end: closed and empty.
    pub(super) fn take_batch(&self, most: usize) -> Option<(Vec<T>, u64)> {
        let mut state = self.lock();
        while state.waiting.is_empty() {
            if state.closed || state.failure.is_some() {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut batch = Vec::with_capacity(state.waiting.len().min(most));
        let mut taken = 0_usize;
        while let Some((_, weight)) = state.waiting.front() {
            taken = taken.saturating_add(*weight);
            if taken > most && !batch.is_empty() {
                break;
            }
            batch.extend(state.waiting.pop_front().map(|(item, _)| item));
        }
        let position = state.pushed - state.waiting.len() as u64;
        Some((batch, position))
    }

    /// For the writer: everything up to this position is done.
    pub(super) fn acknowledge(&self, position: u64) {
        let mut state = self.lock();
        state.acknowledged = state.acknowledged.max(position);
        self.wake_waiters(state);
    }

    /// Refuses further work, and never acknowledges the work that is still waiting. The first reason stays.
    pub(super) fn fail(&self, reason: &str) {
        let mut state = self.lock();
        state.failure.get_or_insert_with(|| reason.into());
        let dropped = std::mem::take(&mut state.waiting);
        self.wake_waiters(state);
        self.work.notify_all();
        // Without the lock: the end of a lease, for one, hands in work.
        drop(dropped);
    }

    /// Refuses further work; the writer ends after the waiting work.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.work.notify_all();
    }

    /// Whether it was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn wake_waiters(&self, state: MutexGuard<'_, State<T>>) {
        let waiters = state.waiters;
        drop(state);
        if waiters > 0 {
            self.progress.notify_all();
        }
    }

    /// Waits until everything up to this position is done.
    pub(super) fn wait(&self, position: u64) -> Result<(), Stopped> {
        let mut state = self.lock();
        while !state.reached(position)? {
            state.waiters += 1;
            state = self.progress.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiters -= 1;
        }
        Ok(())
    }

    /// The same, but no longer than this; says whether it is done.
    pub(super) fn wait_at_most(&self, position: u64, timeout: Duration) -> Result<bool, Stopped> {
        let Some(end) = Instant::now().checked_add(timeout) else { return self.wait(position).map(|()| true) };
        let mut state = self.lock();
        while !state.reached(position)? {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            state.waiters += 1;
            state = self.progress.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            state.waiters -= 1;
        }
        Ok(true)
    }

    /// The position of the last item that was pushed.
    pub(super) fn pushed(&self) -> u64 {
        self.lock().pushed
    }

    /// The position up to which all is done, or why not all ever will be.
    pub(super) fn acknowledged(&self) -> Result<u64, Arc<str>> {
        let state = self.lock();
        state.failure.clone().map_or(Ok(state.acknowledged), Err)
    }

    /// Why the writer failed, if it did.
    pub(super) fn failure(&self) -> Option<Arc<str>> {
        self.lock().failure.clone()
    }
}
