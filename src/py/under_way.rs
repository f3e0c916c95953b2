//! A run under way: its machine with its log and, where it has one, its place in a store.

use super::error;
use super::setup::Grammars;
use super::store::PyStore;
use crate::run::{Command, Machine, Record};
use crate::store::{Claim, Log, Position, Store, StoreError};
use pyo3::prelude::*;
use std::sync::Arc;

/// All of a run.
pub(super) struct Inner {
    pub(super) machine: Machine,
    pub(super) grammars: Grammars,
    pub(super) log: Log,
    pub(super) kept: Option<Kept>,
}

/// A run's place in a store.
pub(super) struct Kept {
    pub(super) store: Arc<dyn Store>,
    /// Of the last unit that was handed in.
    pub(super) position: Position,
    /// Why a unit was not taken. From then on the machine is ahead of what is written, and nothing more is.
    pub(super) failure: Option<StoreError>,
    _claim: Claim,
}

impl Kept {
    /// Claims the run.
    pub(super) fn new(store: &Arc<dyn Store>, run_id: &str) -> Result<Self, StoreError> {
        let claim = store.claim(run_id)?;
        Ok(Self { store: Arc::clone(store), position: Position::default(), failure: None, _claim: claim })
    }
}

impl Inner {
    /// What has happened is in the log before anything is done about it.
    pub(super) fn commit(&mut self, now: f64) -> PyResult<Vec<Command>> {
        let commands = self.machine.commands(now);
        let records = self.machine.take_records();
        if records.is_empty() {
            return Ok(commands);
        }
        let Some(kept) = &mut self.kept else {
            self.log.append(records).map_err(|cause| error::value(cause.to_string()))?;
            return Ok(commands);
        };
        self.log.append(records.clone()).map_err(|cause| error::value(cause.to_string()))?;
        if kept.failure.is_none() {
            match kept.store.append(self.machine.run_id(), records) {
                Ok(position) => kept.position = position,
                Err(failure) => kept.failure = Some(failure),
            }
        }
        match &kept.failure {
            Some(failure) => Err(error::store(failure)),
            None => Ok(commands),
        }
    }
}

/// The fold of a log, which nobody works on.
pub(super) fn load(run_id: &str, records: Vec<Arc<Record>>) -> PyResult<Inner> {
    let machine =
        Machine::load(&records).map_err(|cause| error::store_says(format!("run {run_id} can't be read: {cause}")))?;
    Ok(Inner { machine, grammars: Grammars::default(), log: Log::new(records), kept: None })
}

/// The fold of a log in a store, claimed to be gone on with.
pub(super) fn claim(py: Python<'_>, store: &PyStore, run_id: &str) -> PyResult<Inner> {
    let store = store.open()?;
    let claimed = py.detach(|| Ok((Kept::new(store, run_id)?, store.load(run_id)?)));
    let (kept, records) = claimed.map_err(|cause: StoreError| error::store(&cause))?;
    Ok(Inner { kept: Some(kept), ..load(run_id, records)? })
}
