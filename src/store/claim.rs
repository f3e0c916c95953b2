//! Each run has one driver: the claims here ensure it in this process, leases of the store in all others.

use super::{RunKey, StoreError};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The runs that are being driven.
#[derive(Debug, Default)]
pub(super) struct Claims {
    runs: Mutex<HashSet<Arc<str>>>,
    /// The keys of new ones, which their stores may not have yet.
    keys: Mutex<HashMap<RunKey, Arc<str>>>,
}

/// How well a claim holds beyond this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// No other driver works on the run.
    Sure,
    /// It was not confirmed for a while: new work waits until it is.
    Unconfirmed,
    /// It is lost, for this reason: no further events of the run are written.
    Lost(StoreError),
}

/// Excludes drivers in other processes as long as it lives.
pub(super) trait Lease: fmt::Debug + Send + Sync {
    /// How well it holds.
    fn hold(&self) -> Hold;
}

/// The right to drive one run; released when it drops.
#[derive(Debug)]
pub struct Claim {
    claims: Arc<Claims>,
    run_id: Arc<str>,
    key: Option<RunKey>,
    lease: Option<Arc<dyn Lease>>,
}

impl Claims {
    fn lock(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn claim(self: &Arc<Self>, run_id: &str) -> Result<Claim, StoreError> {
        let run_id: Arc<str> = run_id.into();
        if !self.lock().insert(Arc::clone(&run_id)) {
            return Err(StoreError::UnderWay { run_id: run_id.to_string() });
        }
        Ok(Claim { claims: Arc::clone(self), run_id, key: None, lease: None })
    }

    /// The same, with a key that no other run of these has.
    pub(super) fn claim_key(self: &Arc<Self>, run_id: &str, key: &RunKey) -> Result<Claim, StoreError> {
        let mut claim = self.claim(run_id)?;
        match self.keys().entry(key.clone()) {
            Entry::Occupied(other) => return Err(StoreError::KeyTaken { run_id: other.get().to_string() }),
            Entry::Vacant(place) => place.insert(Arc::clone(&claim.run_id)),
        };
        claim.key = Some(key.clone());
        Ok(claim)
    }

    /// The run of these that has a key.
    pub(super) fn run_with(&self, key: &RunKey) -> Option<String> {
        self.keys().get(key).map(ToString::to_string)
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<RunKey, Arc<str>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has(&self, run_id: &str) -> bool {
        self.lock().contains(run_id)
    }

    /// Claims all runs, or returns the first one that is already claimed.
    pub(super) fn claim_all<'a>(
        self: &Arc<Self>,
        run_ids: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Claim>, StoreError> {
        run_ids.into_iter().map(|run_id| self.claim(run_id)).collect()
    }
}

impl Claim {
    /// The id of the claimed run.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// How well it holds.
    pub fn hold(&self) -> Hold {
        self.lease.as_ref().map_or(Hold::Sure, |lease| lease.hold())
    }

    /// The claim, kept in other processes by this too.
    #[cfg(feature = "postgres")]
    pub(super) fn leased(mut self, lease: Arc<dyn Lease>) -> Self {
        self.lease = Some(lease);
        self
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.claims.keys().remove(key);
        }
        self.claims.lock().remove(&self.run_id);
    }
}
