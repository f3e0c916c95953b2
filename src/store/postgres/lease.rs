//! The lease of one run: its epoch, where its log is, and whether it is lost.

use super::shared::{Shared, lock};
use crate::store::StoreError;
use crate::store::claim::{Hold, Lease};
use crate::store::row::RunRow;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

/// Where the log of a run is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The database does not know the run.
    pub(super) is_new: bool,
    pub(super) first: u64,
    pub(super) next: u64,
}

/// A run that is driven here.
pub(super) struct Leased {
    run_id: Arc<str>,
    /// The writer draws it for a new run.
    epoch: OnceLock<i64>,
    /// The lease that covers it, because its driver drives both.
    above: Option<Arc<Leased>>,
    place: Mutex<Place>,
    /// What its events add up to, once the writer knows.
    pub(super) row: Mutex<Option<RunRow>>,
    /// The position of the next event in the database, as far as the writer is.
    written_next: AtomicU64,
    in_database: AtomicBool,
    lost: OnceLock<StoreError>,
    /// Milliseconds after the opening of the store.
    claimed_at: u64,
    /// Whether a worker has claimed it, which gives it up once it makes no progress.
    of_worker: AtomicBool,
    /// Milliseconds after the opening of the store of the last event, or report of a tool.
    progress_at: AtomicU64,
    shared: Weak<Shared>,
}

impl fmt::Debug for Leased {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Leased");
        shown.field("run_id", &self.run_id).field("epoch", &self.epoch.get()).finish_non_exhaustive()
    }
}

impl Leased {
    /// That of a run that is new.
    pub(super) fn new(shared: &Arc<Shared>, run_id: &str, above: Option<Arc<Self>>) -> Arc<Self> {
        let place = Place { is_new: true, first: 0, next: 0 };
        Self::of(shared, run_id, None, place, above)
    }

    /// That of a run of the database, with the epoch of the claim and the bounds of its log.
    pub(super) fn held(
        shared: &Arc<Shared>,
        run_id: &str,
        epoch: i64,
        first: i64,
        next: i64,
        above: Option<Arc<Self>>,
    ) -> Arc<Self> {
        let place = Place { is_new: false, first: first.cast_unsigned(), next: next.cast_unsigned() };
        Self::of(shared, run_id, Some(epoch), place, above)
    }

    fn of(shared: &Arc<Shared>, run_id: &str, epoch: Option<i64>, place: Place, above: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self {
            run_id: run_id.into(),
            epoch: epoch.map_or_else(OnceLock::new, OnceLock::from),
            above,
            place: Mutex::new(place),
            row: Mutex::default(),
            written_next: AtomicU64::new(place.next),
            in_database: AtomicBool::new(epoch.is_some()),
            lost: OnceLock::new(),
            claimed_at: shared.now(),
            of_worker: AtomicBool::new(false),
            progress_at: AtomicU64::new(shared.now()),
            shared: Arc::downgrade(shared),
        })
    }

    pub(super) fn run_id(&self) -> &str {
        &self.run_id
    }

    pub(super) fn run_id_shared(&self) -> Arc<str> {
        Arc::clone(&self.run_id)
    }

    pub(super) fn epoch(&self) -> Option<i64> {
        self.epoch.get().copied()
    }

    /// The epoch of its writes: that of the lease above it, or one that is drawn now.
    pub(super) fn epoch_or<E>(&self, draw: impl FnOnce() -> Result<i64, E>) -> Result<i64, E> {
        if let Some(epoch) = self.epoch() {
            return Ok(epoch);
        }
        let drawn = match &self.above {
            Some(above) => above.epoch_or(draw)?,
            None => draw()?,
        };
        Ok(*self.epoch.get_or_init(|| drawn))
    }

    /// The lease that covers it: itself, or the one of the run whose driver drives it.
    pub(super) fn root(self: &Arc<Self>) -> Arc<Self> {
        self.above.as_ref().map_or_else(|| Arc::clone(self), Self::root)
    }

    /// The run whose claim covers it; `None` for itself.
    pub(super) fn holder(&self) -> Option<Arc<str>> {
        self.above.as_ref().map(|above| above.holder().unwrap_or_else(|| above.run_id_shared()))
    }

    pub(super) fn is_root(&self) -> bool {
        self.above.is_none()
    }

    pub(super) fn is_in_database(&self) -> bool {
        self.in_database.load(Ordering::Acquire)
    }

    /// Its log is in the database up to this position.
    pub(super) fn written(&self, next: u64) {
        self.written_next.store(next, Ordering::Release);
        self.in_database.store(true, Ordering::Release);
    }

    pub(super) fn written_next(&self) -> u64 {
        self.written_next.load(Ordering::Acquire)
    }

    pub(super) fn place(&self) -> MutexGuard<'_, Place> {
        lock(&self.place)
    }

    /// Milliseconds since the database said last that it is held.
    pub(super) fn unconfirmed_for(&self, shared: &Shared) -> u64 {
        shared.now().saturating_sub(shared.confirmed().max(self.claimed_at))
    }

    /// It is a worker's: it is given up once it makes no progress.
    pub(super) fn of_worker(self: Arc<Self>) -> Arc<Self> {
        self.of_worker.store(true, Ordering::Relaxed);
        self
    }

    /// The run, or one that is driven with it, makes progress.
    pub(super) fn progress(&self) {
        let Some(shared) = self.shared.upgrade() else { return };
        self.progress_at.fetch_max(shared.now(), Ordering::Relaxed);
        if let Some(above) = &self.above {
            above.progress();
        }
    }

    /// Whether it has made no progress for so long, and a worker has it.
    pub(super) fn is_stuck(&self, shared: &Shared, after: Duration) -> bool {
        let idle = shared.now().saturating_sub(self.progress_at.load(Ordering::Relaxed));
        self.of_worker.load(Ordering::Relaxed) && u128::from(idle) >= after.as_millis()
    }

    /// Nothing more of the run is written here. The first reason stays.
    pub(super) fn lose(&self, reason: StoreError) {
        let _ = self.lost.set(reason);
    }

    /// Why, where it is lost.
    pub(super) fn lost(&self) -> Option<StoreError> {
        let own = self.lost.get().cloned();
        own.or_else(|| Some(self.above.as_ref()?.lost()?.of_run(&self.run_id)))
    }
}

impl Lease for Leased {
    fn hold(&self) -> Hold {
        if let Some(lost) = self.lost() {
            return Hold::Lost(lost);
        }
        let Some(shared) = self.shared.upgrade() else { return Hold::Sure };
        let two_thirds = u64::try_from(shared.lease().as_millis()).unwrap_or(u64::MAX) / 3 * 2;
        if self.unconfirmed_for(&shared) > two_thirds { Hold::Unconfirmed } else { Hold::Sure }
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        shared.let_go(self);
        if let (true, true, None, Some(epoch)) = (self.is_root(), self.is_in_database(), self.lost(), self.epoch()) {
            shared.leave(&self.run_id, epoch);
        }
    }
}
