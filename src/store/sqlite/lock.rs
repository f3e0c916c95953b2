//! Each file has one owning process: a lock file next to it, which the kernel holds as long as the process lives.

use super::place;
use crate::store::StoreError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// The right to write to a file.
///
/// The lock is the open file's (flock), not the process's (fcntl): a process that reads the lock file here, to copy the folder
/// for example, does not release it.
#[derive(Debug)]
pub(super) struct Lock {
    file: Option<File>,
    /// The file itself, which may have other names: hard links, other mounts. It stays open until `SQLite` has closed
    /// it, since closing it would release the locks that `SQLite` holds.
    itself: Option<File>,
}

impl Lock {
    /// Takes the lock of this file.
    pub(super) fn take(path: &Path) -> Result<Self, StoreError> {
        let lock_path = place::beside(path, ".lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&lock_path).map_err(|error| place::io_error(&lock_path, &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(place::io_error(&lock_path, &error)),
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                // Its owner may be writing it just now.
                let _ = file.read_to_string(&mut owner);
                let mut lines = owner.lines().map(str::to_owned);
                let mut next = || lines.next().unwrap_or_else(|| "unknown".to_owned());
                return Err(StoreError::Owned { path: path.to_owned(), pid: next(), since: next(), program: next() });
            }
        }
        // Only for error messages of other processes: the lock itself does not depend on it.
        let _ = sign(&mut file);
        let mut lock = Self { file: Some(file), itself: None };
        if path.exists() {
            lock.take_itself(path)?;
        }
        Ok(lock)
    }

    /// Takes the file itself, which is there by now. On Linux this lock does not affect `SQLite`; on other systems it
    /// would conflict with the lock of `SQLite`.
    pub(super) fn take_itself(&mut self, path: &Path) -> Result<(), StoreError> {
        if self.itself.is_some() || !cfg!(target_os = "linux") {
            return Ok(());
        }
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| place::io_error(path, &error))?;
        match file.try_lock() {
            Ok(()) => self.itself = Some(file),
            Err(TryLockError::Error(error)) => return Err(place::io_error(path, &error)),
            Err(TryLockError::WouldBlock) => return Err(StoreError::OwnedByAnotherName { path: path.to_owned() }),
        }
        Ok(())
    }

    /// Whether another process owns the file.
    pub(super) fn owner(path: &Path) -> Option<StoreError> {
        if !place::beside(path, ".lock").exists() {
            return None;
        }
        Self::take(path).err().filter(|error| matches!(error, StoreError::Owned { .. }))
    }

    /// In a forked child: lets go of the open file, which the parent still holds.
    pub(super) fn leave(&mut self) {
        self.file = None;
        self.itself = None;
    }
}

fn sign(file: &mut File) -> io::Result<()> {
    let since = rusqlite::Connection::open_in_memory()
        .and_then(|clock| clock.query_row("SELECT datetime('now') || ' UTC'", [], |row| row.get::<_, String>(0)))
        .unwrap_or_default();
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(format!("{}\n{since}\n{program}\n", std::process::id()).as_bytes())
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The file stays: to remove it would let two processes lock two files of one name.
        let _ = self.file.as_ref().map(|file| file.set_len(0));
        // Let go of by name: a child that is being started holds the same open files for a moment.
        for file in [&self.itself, &self.file].into_iter().flatten() {
            let _ = file.unlock();
        }
    }
}
