//! One owning process a file: a lock file beside it, held by the kernel for as long as the process lives.

use super::place;
use crate::store::StoreError;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// The right to write to a file.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// A record lock: unlike flock's it is not inherited by a forked child, so no child can keep the file from others.
#[cfg(unix)]
fn try_lock(file: &File) -> io::Result<bool> {
    use rustix::fs::{FlockOperation, fcntl_lock};
    match fcntl_lock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(std::fs::TryLockError::WouldBlock) => Ok(false),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

impl Lock {
    /// Takes the lock of this file. This process must not hold it already: it would be given it again, and lose it
    /// with the first of the two.
    pub(super) fn take(path: &Path) -> Result<Self, StoreError> {
        let lock_path = beside(path);
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&lock_path);
        let mut file = open.map_err(|error| place::io_error(&lock_path, &error))?;
        if !try_lock(&file).map_err(|error| place::io_error(&lock_path, &error))? {
            let mut owner = String::new();
            // Its owner may be writing it just now, or keep it from being read (Windows).
            let _ = file.read_to_string(&mut owner);
            let mut lines = owner.lines().map(str::to_owned);
            let mut next = || lines.next().unwrap_or_else(|| "unknown".to_owned());
            return Err(StoreError::Owned { path: path.to_owned(), pid: next(), since: next(), program: next() });
        }
        let mut lock = Self { file };
        // Only told to others: the lock itself does not depend on it.
        let _ = lock.sign();
        Ok(lock)
    }

    /// Whether another process owns the file.
    pub(super) fn owner(path: &Path) -> Option<StoreError> {
        if !beside(path).exists() {
            return None;
        }
        Self::take(path).err().filter(|error| matches!(error, StoreError::Owned { .. }))
    }

    fn sign(&mut self) -> io::Result<()> {
        let since = rusqlite::Connection::open_in_memory()
            .and_then(|clock| clock.query_row("SELECT datetime('now') || ' UTC'", [], |row| row.get::<_, String>(0)))
            .unwrap_or_default();
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(format!("{}\n{since}\n{program}\n", std::process::id()).as_bytes())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The file stays: to remove it would let two processes lock two files of one name.
        let _ = self.file.set_len(0);
    }
}
