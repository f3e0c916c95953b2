//! The state that the store and its writer share.

use super::writer::Work;
use crate::store::queue::Queue;
use crate::store::{StoreError, Wake, queue};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, Weak};

pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) queue: Queue<Work>,
    subscribers: Mutex<Vec<Weak<dyn Wake>>>,
    commits: AtomicU64,
}

impl Shared {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, queue: Queue::new(), subscribers: Mutex::default(), commits: AtomicU64::new(0) }
    }

    pub(super) fn subscribe(&self, wake: Weak<dyn Wake>) {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(wake);
    }

    fn wake(&self) {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).retain(|subscriber| {
            let subscriber = subscriber.upgrade();
            subscriber.inspect(|subscriber| subscriber.wake()).is_some()
        });
    }

    /// Everything up to here is in the file.
    pub(super) fn committed(&self, position: u64) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.queue.acknowledge(position);
        self.wake();
    }

    /// The writer has failed, and commits no more.
    pub(super) fn fail(&self, reason: &str) {
        self.queue.fail(reason);
        self.wake();
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

impl From<queue::Stopped> for StoreError {
    fn from(stopped: queue::Stopped) -> Self {
        match stopped {
            queue::Stopped::Failed(reason) => Self::Failed(reason.to_string()),
            queue::Stopped::Closed => Self::Closed,
        }
    }
}
