//! One driver a run, within this process. Other processes are kept out by the lock of the file.

use super::StoreError;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The runs that are being driven.
#[derive(Debug, Default)]
pub(super) struct Claims {
    runs: Mutex<HashSet<Arc<str>>>,
}

/// The right to drive one run; released when it drops.
#[derive(Debug)]
pub struct Claim {
    claims: Arc<Claims>,
    run_id: Arc<str>,
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
        Ok(Claim { claims: Arc::clone(self), run_id })
    }

    pub(super) fn has(&self, run_id: &str) -> bool {
        self.lock().contains(run_id)
    }

    /// All of them, or the first that is under way.
    pub(super) fn claim_all<'a>(
        self: &Arc<Self>,
        run_ids: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Claim>, StoreError> {
        run_ids.into_iter().map(|run_id| self.claim(run_id)).collect()
    }
}

impl Claim {
    /// The run.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.lock().remove(&self.run_id);
    }
}
