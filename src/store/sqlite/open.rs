//! Opening and closing: each file has one store in a process, and one process.

use super::lock::Lock;
use super::place::{self, Marks};
use super::shared::Shared;
use super::writer::Writer;
use super::{Durability, Next, Owned, SqliteStore, files, lock, schema};
use crate::store::{Claims, Store, StoreError};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// The files that this process has open. An entry is removed when its store is gone.
static OPEN: Mutex<Vec<Entry>> = Mutex::new(Vec::new());
/// The claims on runs of each file: a driver that still works on a run when its store has failed keeps the run.
static CLAIMS: Mutex<BTreeMap<PathBuf, Weak<Claims>>> = Mutex::new(BTreeMap::new());
/// A file has left.
static LEFT: Condvar = Condvar::new();

/// How long a commit waits for another program's transaction on the file.
const BUSY: Duration = Duration::from_secs(10);
/// Statements that stay prepared.
const STATEMENTS: usize = 64;

struct Entry {
    path: PathBuf,
    file_id: Option<(u64, u64)>,
    pid: u32,
    durability: Durability,
    store: Weak<SqliteStore>,
}

fn claims(path: &Path) -> Arc<Claims> {
    let mut all = CLAIMS.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|_, claims| claims.strong_count() > 0);
    if let Some(claims) = all.get(path).and_then(Weak::upgrade) {
        return claims;
    }
    let claims = Arc::new(Claims::default());
    all.insert(path.to_owned(), Arc::downgrade(&claims));
    claims
}

/// A connection that can only read.
pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    // With its default of 2 MB, long lists read the same pages again and again.
    connection.pragma_update(None, "cache_size", -32_768)?;
    // Someone else may have made the file, so its views and triggers call no function with an effect.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

fn open_error(path: &Path, error: &rusqlite::Error) -> StoreError {
    let (path, cause) = (path.to_owned(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            StoreError::ReadOnly { path, cause: format!(" ({cause})") }
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::NoDatabase { path, cause },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let cause = "another program keeps it locked: end that program's transaction".to_owned();
            StoreError::Open { path, cause }
        }
        _ => StoreError::Open { path, cause },
    }
}

/// The mode that the file is in afterwards.
fn switch_to_wal(connection: &Connection) -> rusqlite::Result<String> {
    let mut statement = connection.prepare("PRAGMA journal_mode = WAL")?;
    let mut rows = statement.query([])?;
    // The first row already says `wal`; the work is done, and may fail, on the way to the end.
    while rows.next()?.is_some() {}
    connection.pragma_query_value(None, "journal_mode", |row| row.get(0))
}

/// Creates a new file with mode 0600, which `SQLite` copies to its side files. An existing file keeps its mode.
fn make_private(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // If this fails, SQLite reports the reason.
        let _ = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// The connection that writes, to a file that is ours and of the present version.
fn writer(path: &Path, durability: Durability) -> Result<Connection, StoreError> {
    let failed = |error: rusqlite::Error| open_error(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let is_short = files::is_short(path);
    make_private(path);
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    Marks::of(&connection).map_err(failed)?.check(path)?;
    if is_short {
        let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
        if found != "ok" {
            return Err(StoreError::Damaged { path: path.to_owned(), cause: "it was cut short".to_owned() });
        }
    }
    // The tables come first, so that the file identifies itself before it has a log.
    schema::migrate(&mut connection).map_err(failed)?;
    if switch_to_wal(&connection).map_err(failed)? != "wal" {
        let cause = "its file system can't share memory between processes: put the store on a local disk".to_owned();
        return Err(StoreError::Open { path: path.to_owned(), cause });
    }
    let full = durability == Durability::Full;
    let synchronous = if full { "FULL" } else { "NORMAL" };
    // On macOS, fsync alone leaves data in the drive's cache.
    let pragmas = format!(
        "PRAGMA synchronous = {synchronous}; PRAGMA fullfsync = {full}; PRAGMA checkpoint_fullfsync = {full}; \
         PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF"
    );
    connection.execute_batch(&pragmas).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

impl SqliteStore {
    /// Opens the store of this file, which is created if it is not there. A file that this process has open already
    /// gives the same store.
    ///
    /// # Errors
    /// Each way in which the file can't be the store of this process alone has its own.
    pub fn open(path: impl AsRef<Path>, durability: Durability) -> Result<Arc<Self>, StoreError> {
        let path = place::resolve(path.as_ref())?;
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let file_id = place::file_id(&path);
            let same = |entry: &&Entry| entry.path == path || (file_id.is_some() && entry.file_id == file_id);
            let Some(entry) = open.iter().find(same) else { break };
            if entry.pid != std::process::id() {
                return Err(StoreError::Forked { path, owner: entry.pid });
            }
            let (present, here) = (entry.durability, entry.file_id == file_id);
            let store = entry.store.upgrade();
            match store {
                Some(store) if !store.is_over() => {
                    if present == durability && here {
                        return Ok(store);
                    }
                    drop(open);
                    if !here {
                        let cause = "it was deleted or replaced while this process has it open: close that store first";
                        return Err(StoreError::Open { path, cause: cause.to_owned() });
                    }
                    let (open, asked) = (present.as_str(), durability.as_str());
                    return Err(StoreError::OtherDurability { path, open, asked });
                }
                // It is closed or has failed: a new store replaces it once the old one is gone.
                Some(store) => {
                    drop(open);
                    store.shut();
                    drop(store);
                    open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
                }
                None => open = LEFT.wait(open).unwrap_or_else(PoisonError::into_inner),
            }
        }
        place::inspect(&path)?;
        let store = Arc::new(Self::begin(&path, durability)?);
        let (file_id, pid) = (place::file_id(&path), store.pid);
        open.push(Entry { path, file_id, pid, durability, store: Arc::downgrade(&store) });
        Ok(store)
    }

    fn begin(path: &Path, durability: Durability) -> Result<Self, StoreError> {
        let mut lock = Lock::take(path)?;
        let failed = |error: rusqlite::Error| open_error(path, &error);
        let connection = writer(path, durability)?;
        lock.take_itself(path)?;
        let readers = (reader(path).map_err(failed)?, reader(path).map_err(failed)?);
        let shared = Arc::new(Shared::new(path.to_owned()));
        let writer = {
            let shared = Arc::clone(&shared);
            let run = move || Writer::new(connection, &shared.path).run(&shared);
            let thread = thread::Builder::new().name("callslip-store".to_owned()).spawn(run);
            thread.map_err(|error| place::io_error(path, &error))?
        };
        Ok(Self {
            durability,
            pid: std::process::id(),
            claims: claims(path),
            shared,
            next: Mutex::new(Next::new(readers.0)),
            reader: Mutex::new(Some(readers.1)),
            owned: Mutex::new(Some(Owned { writer, lock })),
        })
    }

    /// Whether it was closed or has failed.
    fn is_over(&self) -> bool {
        self.is_shut() || self.failed().is_some()
    }

    pub(super) fn is_shut(&self) -> bool {
        self.shared.queue.is_closed()
    }

    /// Called in a forked child, which can't use the store: only the parent keeps the lock, so that a child that
    /// outlives the parent does not keep the file locked.
    pub fn forked(&self) {
        if let Ok(mut owned) = self.owned.try_lock()
            && let Some(owned) = owned.as_mut()
        {
            owned.lock.leave();
        }
    }

    /// Ends the writer after the waiting work, then releases the file and its lock. A second caller waits.
    pub(super) fn shut(&self) {
        self.shared.queue.close();
        let mut owned = lock(&self.owned);
        let Some(Owned { writer, lock: file_lock }) = owned.take() else { return };
        let connection = writer.join();
        lock(&self.next).connection = None;
        *lock(&self.reader) = None;
        // The last to go, so that SQLite puts its log into the file and removes it.
        drop(connection);
        drop(file_lock);
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|entry| !(entry.pid == self.pid && entry.path == self.shared.path));
        drop(open);
        LEFT.notify_all();
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            self.shut();
            return;
        }
        // A forked child has no writer to wait for, and closing connections of the parent would disturb it.
        if let Ok(reader) = self.reader.get_mut() {
            std::mem::forget(reader.take());
        }
        if let Ok(next) = self.next.get_mut() {
            std::mem::forget(next.connection.take());
        }
        if let Ok(owned) = self.owned.get_mut() {
            std::mem::forget(owned.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    #[test]
    fn a_file_that_another_program_keeps_locked_says_what_to_do() {
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_LOCKED] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let told = open_error(Path::new("runs.sqlite"), &error).to_string();
            assert!(told.ends_with("end that program's transaction"), "{told}");
        }
    }
}
