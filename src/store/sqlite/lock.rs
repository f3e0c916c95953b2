//! One owning process a file: a lock file beside it, held by the kernel for as long as the process lives.

use super::place;
use crate::store::StoreError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// The right to write to a file.
///
/// The lock is the open file's (flock), not the process's (fcntl): whoever reads the lock file here, to copy the folder
/// for example, does not release it.
#[derive(Debug)]
pub(super) struct Lock {
    file: Option<File>,
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

impl Lock {
    /// Takes the lock of this file.
    pub(super) fn take(path: &Path) -> Result<Self, StoreError> {
        let lock_path = beside(path);
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&lock_path);
        let mut file = open.map_err(|error| place::io_error(&lock_path, &error))?;
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
        // Only told to others: the lock itself does not depend on it.
        let _ = sign(&mut file);
        Ok(Self { file: Some(file) })
    }

    /// Whether another process owns the file.
    pub(super) fn owner(path: &Path) -> Option<StoreError> {
        if !beside(path).exists() {
            return None;
        }
        Self::take(path).err().filter(|error| matches!(error, StoreError::Owned { .. }))
    }

    /// In a forked child: lets go of the open file, which the parent goes on to hold.
    pub(super) fn leave(&mut self) {
        self.file = None;
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
    }
}
