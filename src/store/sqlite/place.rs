//! The path and the identity of a store file, and its other users. This module never changes the file.

use super::lock::Lock;
use super::schema::{self, Object};
use crate::store::StoreError;
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Identifies a file under all its names: device and inode.
pub(super) fn file_id(path: &Path) -> Option<(u64, u64)> {
    identity(path).map(|(id, _)| id)
}

/// The same with its length in bytes.
#[cfg(unix)]
pub(super) fn identity(path: &Path) -> Option<((u64, u64), u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|metadata| ((metadata.dev(), metadata.ino()), metadata.len()))
}

#[cfg(not(unix))]
pub(super) fn identity(_: &Path) -> Option<((u64, u64), u64)> {
    None
}

pub(super) fn io_error(path: &Path, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::ReadOnly { path: path.to_owned(), cause: format!(" ({error})") }
        }
        _ => StoreError::Open { path: path.to_owned(), cause: error.to_string() },
    }
}

/// The one name of the file, whether it is there yet or not.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    if path.is_dir() {
        return Err(StoreError::Folder { path: path.to_owned() });
    }
    if let Ok(whole) = path.canonicalize() {
        return Ok(whole);
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(StoreError::NoFolder { folder: folder.to_owned() });
    }
    let name = path.file_name().ok_or_else(|| StoreError::Folder { path: path.to_owned() })?;
    Ok(folder.canonicalize().map_err(|error| io_error(folder, &error))?.join(name))
}

/// Refuses files that can't be a store. Only read-only marks are checked here; `SQLite` reports every other obstacle to
/// writing.
pub(super) fn inspect(path: &Path) -> Result<(), StoreError> {
    let read_only = |path: &Path| StoreError::ReadOnly { path: path.to_owned(), cause: String::new() };
    // On Windows the read-only mark of a folder does not apply to its files.
    if cfg!(unix)
        && let Some(folder) = path.parent()
        && fs::metadata(folder).is_ok_and(|metadata| metadata.permissions().readonly())
    {
        return Err(read_only(folder));
    }
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    if metadata.permissions().readonly() {
        return Err(read_only(path));
    }
    if !metadata.is_file() {
        return Err(StoreError::Open { path: path.to_owned(), cause: "it is not a file".to_owned() });
    }
    held_open(path)?;
    if metadata.len() == 0 && length_beside(path, "-wal").is_some() {
        let cause = "it is empty, and there is a log beside it: it was cut".to_owned();
        return Err(StoreError::NoDatabase { path: path.to_owned(), cause });
    }
    if metadata.len() == 0 {
        return Ok(());
    }
    if length_beside(path, "-journal").is_some() {
        // Something ended while it wrote, perhaps while the file was made: SQLite has to roll that back before
        // anything in it can be looked at.
        return Ok(());
    }
    let mut header = Vec::with_capacity(MAGIC.len());
    let file = File::open(path).map_err(|error| io_error(path, &error))?;
    file.take(MAGIC.len() as u64).read_to_end(&mut header).map_err(|error| io_error(path, &error))?;
    if header != MAGIC {
        let cause = "its first bytes are others".to_owned();
        return Err(StoreError::NoDatabase { path: path.to_owned(), cause });
    }
    let seen = look(path).map_err(|error| StoreError::NoDatabase { path: path.to_owned(), cause: error.to_string() });
    // A file that another process is just creating can look damaged.
    seen.and_then(|seen| seen.check(path)).map_err(|error| Lock::owner(path).unwrap_or(error))
}

/// The side file with this suffix.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The length of the side file with this suffix, unless it is empty or missing.
fn length_beside(path: &Path, suffix: &str) -> Option<u64> {
    fs::metadata(beside(path, suffix)).ok().map(|metadata| metadata.len()).filter(|length| *length > 0)
}

/// The identity that a database declares.
pub struct Marks {
    /// The program that made it.
    pub application_id: i32,
    /// The version of its tables.
    pub version: i32,
    /// Its tables, views and triggers, without indexes.
    pub objects: Vec<Object>,
}

fn look(path: &Path) -> rusqlite::Result<Marks> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    // Without a log, the file alone is complete, and SQLite need not create side files.
    let immutable = if length_beside(path, "-wal").is_some() { "" } else { "&immutable=1" };
    let name: String = path.to_string_lossy().chars().map(escape).collect();
    Marks::of(&Connection::open_with_flags(format!("file:{name}?mode=ro{immutable}"), flags)?)
}

/// One character of a path in a URI.
fn escape(character: char) -> String {
    match character {
        '%' | '?' | '#' => format!("%{:02x}", u32::from(character)),
        _ => character.to_string(),
    }
}

impl Marks {
    pub(super) fn of(connection: &Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            application_id: connection.pragma_query_value(None, "application_id", |row| row.get(0))?,
            version: connection.pragma_query_value(None, "user_version", |row| row.get(0))?,
            objects: schema::objects(connection)?,
        })
    }

    /// Whether it is a store or an empty database.
    ///
    /// # Errors
    /// `Foreign`, `Newer`, or `Altered`: its tables are not the tables of a store of its version.
    pub fn check(&self, path: &Path) -> Result<(), StoreError> {
        let path = path.to_owned();
        if self.application_id != schema::APPLICATION_ID {
            let nobodys = self.application_id == 0 && self.objects.is_empty();
            let application_id = self.application_id;
            return if nobodys { Ok(()) } else { Err(StoreError::Foreign { path, application_id }) };
        }
        if self.version > schema::version() {
            return Err(StoreError::Newer { path, found: self.version, known: schema::version() });
        }
        match schema::foreign(self.version, &self.objects) {
            Ok(None) => Ok(()),
            Ok(Some(cause)) => Err(StoreError::Altered { path, cause }),
            Err(error) => Err(StoreError::Open { path, cause: error.to_string() }),
        }
    }
}

/// Refuses a file that something in this process has open: its close would drop the locks that `SQLite` holds, and so
/// would ours drop its own.
#[cfg(target_os = "linux")]
fn held_open(path: &Path) -> Result<(), StoreError> {
    let id = file_id(path);
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    if id.is_some() && open.into_iter().any(|entry| file_id(&entry.path()) == id) {
        return Err(StoreError::HeldOpen { path: path.to_owned() });
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
fn held_open(_: &Path) -> Result<(), StoreError> {
    Ok(())
}
