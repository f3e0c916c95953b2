//! Opening and closing, and the threads.

use super::address::Address;
use super::link::{Failure, Link};
use super::shared::{Shared, lock};
use super::writer::{self, Writer};
use super::{Migration, PostgresStore, beat, listen, schema};
use crate::store::StoreError;
use crate::store::claim::Claims;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Builder;

/// Which of the threads that not every store needs were started.
#[derive(Default)]
pub(super) struct Started {
    pub(super) beating: AtomicBool,
    pub(super) listening: AtomicBool,
}

impl PostgresStore {
    /// Opens the store at this URL.
    ///
    /// # Errors
    /// `Address`; `Unreachable`; `NoSchema`, `OlderSchema`, `NewerSchema`: its tables are not those of this version.
    pub fn open(url: &str) -> Result<Arc<Self>, StoreError> {
        let address = Address::read(url)?;
        let mut reader = Link::new(address.clone())?;
        schema::check(&mut reader, address.shown()).map_err(|failure| failure.of(&address))??;
        let shared = Arc::new(Shared::new(address.clone()));
        let writer = Writer::new(Link::new(address)?);
        let for_writer = Arc::clone(&shared);
        let thread = Builder::new()
            .name("callslip-writer".into())
            .spawn(move || writer.run(&for_writer))
            .map_err(|error| no_thread(&error))?;
        Ok(Arc::new(Self {
            pid: std::process::id(),
            claims: Arc::new(Claims::default()),
            shared,
            reader: Mutex::new(Some(reader)),
            querier: Mutex::default(),
            threads: Mutex::new(vec![thread]),
            started: Started::default(),
        }))
    }

    /// Makes a database ready, or brings it to the present version; `pgmq` is the SQL of that library, for a database
    /// without it.
    ///
    /// # Errors
    /// `Address`, `Unreachable`, `NoQueue`, or the server refuses it.
    pub fn migrate(url: &str, pgmq: Option<&str>) -> Result<Migration, StoreError> {
        let address = Address::read(url)?;
        let mut link = Link::new(address.clone())?;
        let done = schema::migrate(&mut link, pgmq).map_err(|failure| failure.of(&address))?;
        let done = done.ok_or_else(|| StoreError::NoQueue { server: address.shown().to_owned() })?;
        if done.before > schema::version() {
            let server = address.shown().to_owned();
            return Err(StoreError::NewerSchema { server, found: done.before, known: schema::version() });
        }
        Ok(done)
    }

    pub(super) fn start_beating(&self) -> Result<(), StoreError> {
        if self.started.beating.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let (shared, link) = (Arc::clone(&self.shared), Link::new(self.shared.address.clone())?);
        let thread = Builder::new().name("callslip-leases".into()).spawn(move || beat::run(link, &shared));
        lock(&self.threads).push(thread.map_err(|error| no_thread(&error))?);
        Ok(())
    }

    pub(super) fn start_listening(&self) -> Result<(), StoreError> {
        if self.started.listening.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let thread = listen::thread(&self.shared).map_err(|error| no_thread(&error))?;
        lock(&self.threads).push(thread);
        Ok(())
    }

    /// Writes what is pending, and ends the threads.
    pub(super) fn shut(&self) {
        // What a worker has claimed and not opened: it gives that up.
        lock(&self.shared.reserved).clear();
        self.shared.close();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            // One that panicked has said so to the queue.
            let _ = thread.join();
        }
        if let Some(mut reader) = lock(&self.reader).take() {
            for (run_id, epoch) in self.shared.take_rest() {
                if let Err(Failure::Unreachable(_)) = writer::leave(&mut reader, &run_id, epoch) {
                    // Their leases end by themselves.
                    break;
                }
            }
            reader.close();
        }
        // One that is busy ends with its query.
        if let Some(mut querier) = self.querier.try_lock().ok().and_then(|mut querier| querier.take()) {
            querier.close();
        }
    }

    /// In a forked child: nothing of the parent's is touched.
    pub fn forked(&self) {
        // The threads are not there, and the sockets are the parent's.
        for link in [&self.reader, &self.querier] {
            if let Ok(mut link) = link.try_lock() {
                std::mem::forget(link.take());
            }
        }
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            self.shut();
        }
    }
}

fn no_thread(error: &std::io::Error) -> StoreError {
    StoreError::Failed(format!("no thread can be started: {error}"))
}
