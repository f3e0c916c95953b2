//! Checks that the database and its log are still the files that were opened: data written to an unlinked file, or
//! behind a hole in it, is lost.

use super::place::{self, beside};
use rusqlite::Connection;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The first bytes of a write-ahead log without the lowest bit, which is the byte order of its checksums.
const LOG_MAGIC: u32 = 0x377f_0682;

/// A fault of the files that loses data.
#[derive(Debug, Error)]
pub(super) enum Lost {
    #[error("the file was deleted or replaced while it was open")]
    Gone,
    #[error("the file was cut short while it was open")]
    Short,
    #[error("{0} was deleted or replaced while the file was open")]
    Beside(String),
    #[error("{0} was cut short while the file was open")]
    Cut(String),
}

impl Lost {
    /// The advice of the error message.
    pub(super) fn advice(&self) -> &'static str {
        match self {
            Self::Gone => "what was in it is gone unless it was moved: put it back",
            Self::Short => "it is damaged: restore a backup",
            Self::Beside(_) | Self::Cut(_) => "leave the files beside it alone",
        }
    }

    /// Whether the log must not be written into the file: without that, the rest may still be recoverable.
    pub(super) fn is_damage(&self) -> bool {
        matches!(self, Self::Short | Self::Cut(_))
    }
}

/// A file as it was when it was last looked at.
#[derive(Debug)]
struct Seen {
    path: PathBuf,
    id: Option<(u64, u64)>,
    length: u64,
}

impl Seen {
    fn new(path: PathBuf) -> Self {
        let mut seen = Self { path, id: None, length: 0 };
        seen.look();
        seen
    }

    fn look(&mut self) {
        if let Some((id, length)) = place::identity(&self.path) {
            (self.id, self.length) = (Some(id), length);
        }
    }

    /// Its length now; `None` if the file is missing or another one.
    fn length_now(&self) -> Option<u64> {
        let (id, length) = place::identity(&self.path)?;
        self.id.is_none_or(|seen| seen == id).then_some(length)
    }

    /// Whether it was there and is another one, or none.
    fn is_gone(&self) -> bool {
        self.id.is_some() && self.length_now().is_none()
    }

    fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The database, its log and its shared-memory file.
#[derive(Debug)]
pub(super) struct Files {
    database: Seen,
    log: Seen,
    shared: Seen,
    /// Whether the log starts over, because a checkpoint (perhaps by another program) has emptied it.
    begins_anew: bool,
}

impl Files {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            database: Seen::new(path.to_owned()),
            log: Seen::new(beside(path, "-wal")),
            shared: Seen::new(beside(path, "-shm")),
            begins_anew: false,
        }
    }

    /// Looks before a commit.
    pub(super) fn check(&mut self, connection: &Connection) -> Result<(), Lost> {
        // Only Unix identifies a file by its inode.
        if self.database.id.is_none() {
            return Ok(());
        }
        let length = self.database.length_now().ok_or(Lost::Gone)?;
        if length < self.database.length && length < pages(connection).unwrap_or(u64::MAX) {
            return Err(Lost::Short);
        }
        for beside in [&self.log, &self.shared] {
            if beside.is_gone() {
                return Err(Lost::Beside(beside.name()));
            }
        }
        let length = self.log.length_now().unwrap_or_default();
        self.begins_anew = length == 0 && self.log.length > 0;
        if length < self.log.length && !self.begins_anew {
            return Err(Lost::Cut(self.log.name()));
        }
        Ok(())
    }

    /// Looks after a commit.
    pub(super) fn note(&mut self) -> Result<(), Lost> {
        if self.begins_anew && !is_log(&self.log.path) {
            return Err(Lost::Cut(self.log.name()));
        }
        self.begins_anew = false;
        for seen in [&mut self.database, &mut self.log, &mut self.shared] {
            if seen.is_gone() {
                return Err(Lost::Beside(seen.name()));
            }
            seen.look();
        }
        Ok(())
    }
}

/// The bytes that the file is to have, as far as its log is in it.
fn pages(connection: &Connection) -> rusqlite::Result<u64> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok(number("page_count")?.cast_unsigned().saturating_mul(number("page_size")?.cast_unsigned()))
}

/// Whether a log begins as one. `SQLite` holds no locks on it, so opening and closing it is safe.
fn is_log(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && u32::from_be_bytes(magic) & !1 == LOG_MAGIC
}

/// Whether a file that no process has open is shorter than its own header says: it was cut, or a process ended while it
/// wrote the log into the file.
pub(super) fn is_short(path: &Path) -> bool {
    let mut header = [0; 100];
    let Ok(length) = fs::metadata(path).map(|metadata| metadata.len()) else { return false };
    if File::open(path).and_then(|mut file| file.read_exact(&mut header)).is_err() {
        return false;
    }
    let word = |at: usize| header.get(at..at + 4).and_then(|bytes| Some(u32::from_be_bytes(bytes.try_into().ok()?)));
    // The page count is only valid for the change that its header names.
    if word(24) != word(92) {
        return false;
    }
    let page = header.get(16..18).and_then(|bytes| Some(u16::from_be_bytes(bytes.try_into().ok()?)));
    let page = if page == Some(1) { 65_536 } else { u64::from(page.unwrap_or_default()) };
    length < u64::from(word(28).unwrap_or_default()) * page
}
