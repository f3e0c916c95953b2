//! What the store, its writer and its other threads have in common.

use super::address::Address;
use super::lease::Leased;
use super::listen::Notices;
use super::writer::Work;
use crate::store::queue::{Queue, Stopped};
use crate::store::{StoreError, Wake};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct Shared {
    pub(super) address: Address,
    pub(super) queue: Queue<Work>,
    pub(super) notices: Notices,
    /// The leases of a worker's claims, until it lets go of them: a run that can't be opened must not be left before it
    /// is given back.
    pub(super) reserved: Mutex<HashMap<Arc<str>, Arc<Leased>>>,
    /// The leases of the runs that are driven here.
    leases: Mutex<HashMap<Arc<str>, Weak<Leased>>>,
    /// Runs that were left after the writer had taken its last work, with their epochs.
    left_late: Mutex<Vec<(Arc<str>, i64)>>,
    subscribers: Mutex<Vec<Weak<dyn Wake>>>,
    commits: AtomicU64,
    /// Milliseconds.
    lease: AtomicU64,
    /// Milliseconds without progress after which a run is given up; 0 for never.
    stuck: AtomicU64,
    began: Instant,
    /// Milliseconds after `began` of the last answer about all leases.
    confirmed: AtomicU64,
    /// The bits of the seconds by which the database's clock is ahead.
    clock_offset: AtomicU64,
    closed: AtomicBool,
    /// Tells the thread that listens.
    pub(super) closing: Notify,
    /// The threads that wait between their rounds.
    pause: (Mutex<()>, Condvar),
}

impl Shared {
    pub(super) fn new(address: Address) -> Self {
        Self {
            address,
            queue: Queue::new(),
            notices: Notices::default(),
            reserved: Mutex::default(),
            leases: Mutex::default(),
            left_late: Mutex::default(),
            subscribers: Mutex::default(),
            commits: AtomicU64::new(0),
            lease: AtomicU64::new(30_000),
            stuck: AtomicU64::new(0),
            began: Instant::now(),
            confirmed: AtomicU64::new(0),
            clock_offset: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            closing: Notify::new(),
            pause: (Mutex::default(), Condvar::new()),
        }
    }

    pub(super) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease.load(Ordering::Relaxed))
    }

    pub(super) fn set_lease(&self, lease: Duration) {
        self.lease.store(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
        self.pause.1.notify_all();
    }

    /// How long a worker keeps a run that makes no progress; `None` for ever.
    pub(super) fn stuck(&self) -> Option<Duration> {
        let stuck = self.stuck.load(Ordering::Relaxed);
        (stuck > 0).then(|| Duration::from_millis(stuck))
    }

    pub(super) fn set_stuck(&self, stuck: Option<Duration>) {
        let stuck = stuck.map_or(0, |stuck| u64::try_from(stuck.as_millis()).unwrap_or(u64::MAX).max(1));
        self.stuck.store(stuck, Ordering::Relaxed);
    }

    /// Milliseconds since it was opened.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// When all leases were confirmed last.
    pub(super) fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Acquire)
    }

    /// All leases of now are known to hold, as of this time.
    pub(super) fn confirm(&self, at: u64) {
        self.confirmed.fetch_max(at, Ordering::Release);
    }

    pub(super) fn clock_offset(&self) -> f64 {
        f64::from_bits(self.clock_offset.load(Ordering::Relaxed))
    }

    pub(super) fn set_clock_offset(&self, seconds: f64) {
        self.clock_offset.store(seconds.to_bits(), Ordering::Relaxed);
    }

    /// The lease of a run that is driven here.
    pub(super) fn held(&self, run_id: &str) -> Option<Arc<Leased>> {
        lock(&self.leases).get(run_id).and_then(Weak::upgrade)
    }

    /// The lease of a worker's claim that it has not let go of.
    pub(super) fn reserved(&self, run_id: &str) -> Option<Arc<Leased>> {
        lock(&self.reserved).get(run_id).cloned()
    }

    /// The lease of a run that is driven here, or that a worker has claimed.
    pub(super) fn held_or_reserved(&self, run_id: &str) -> Option<Arc<Leased>> {
        self.held(run_id).or_else(|| self.reserved(run_id))
    }

    pub(super) fn hold(&self, lease: &Arc<Leased>) {
        lock(&self.leases).insert(lease.run_id_shared(), Arc::downgrade(lease));
    }

    /// A lease has ended. Another one of the same run may have begun.
    pub(super) fn let_go(&self, lease: &Leased) {
        let mut leases = lock(&self.leases);
        if leases.get(lease.run_id()).is_some_and(|held| held.strong_count() == 0) {
            leases.remove(lease.run_id());
        }
    }

    /// Gives the lease of a run up, after what is to be written of it. Nothing waits for that.
    pub(super) fn leave(&self, run_id: &Arc<str>, epoch: i64) {
        if self.queue.push(Work::Leave { run_id: Arc::clone(run_id), epoch }, 1) == Err(Stopped::Closed) {
            lock(&self.left_late).push((Arc::clone(run_id), epoch));
        }
    }

    /// The leases that are left after the last write, with their epochs: a closed store can drive nothing.
    pub(super) fn take_rest(&self) -> Vec<(Arc<str>, i64)> {
        let held = self.roots().into_iter().filter_map(|lease| Some((lease.run_id_shared(), lease.epoch()?)));
        let mut rest: Vec<_> = held.collect();
        rest.append(&mut lock(&self.left_late));
        rest
    }

    /// All leases that are held in the database, with those of a worker's claims, and without those below others.
    pub(super) fn roots(&self) -> Vec<Arc<Leased>> {
        let reserved: Vec<_> = lock(&self.reserved).values().cloned().collect();
        let held: Vec<_> = lock(&self.leases).values().filter_map(Weak::upgrade).collect();
        // A run that is being opened is among both.
        let pointers: HashSet<_> = held.iter().map(Arc::as_ptr).collect();
        let unopened = reserved.into_iter().filter(|lease| !pointers.contains(&Arc::as_ptr(lease)));
        unopened
            .chain(held)
            .filter(|lease| lease.is_root() && lease.is_in_database() && lease.lost().is_none())
            .collect()
    }

    pub(super) fn subscribe(&self, wake: Weak<dyn Wake>) {
        lock(&self.subscribers).push(wake);
    }

    pub(super) fn wake(&self) {
        lock(&self.subscribers).retain(|subscriber| {
            let subscriber = subscriber.upgrade();
            subscriber.inspect(|subscriber| subscriber.wake()).is_some()
        });
    }

    /// Everything up to here is in the database, but for what is lost.
    pub(super) fn done(&self, position: u64) {
        self.queue.acknowledge(position);
        self.wake();
    }

    pub(super) fn count_commit(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Nothing more will be written.
    pub(super) fn fail(&self, reason: &str) {
        self.queue.fail(reason);
        self.wake();
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.queue.close();
        self.closing.notify_one();
        self.pause.1.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Waits between two rounds of a thread, or for the end of the store.
    pub(super) fn pause(&self, time: Duration) {
        let guard = lock(&self.pause.0);
        if !self.is_closed() {
            let _ = self.pause.1.wait_timeout(guard, time);
        }
    }

    /// An error of this store's database.
    pub(super) fn error(&self, failure: super::link::Failure) -> StoreError {
        failure.of(&self.address)
    }
}
