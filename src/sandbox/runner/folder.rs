//! The files of a script, looked into.
//!
//! Nothing in them is trusted: links are not followed, and only ordinary files are read.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// Opens a folder of the host.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// What a folder holds, in the order of the names.
pub(super) fn entries(folder: BorrowedFd<'_>) -> Vec<(CString, Stat)> {
    let Ok(listed) = Dir::read_from(folder) else { return Vec::new() };
    let status = |name: CString| Some((statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?, name));
    let mut found: Vec<(CString, Stat)> = listed
        .flatten()
        .map(|entry| entry.file_name().to_owned())
        .filter(|name| !matches!(name.to_bytes(), b"." | b".."))
        .filter_map(|name| status(name).map(|(status, name)| (name, status)))
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

/// Opens a folder in a folder.
pub(super) fn enter(folder: BorrowedFd<'_>, name: &CStr) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty()).ok()
}

/// Opens a file that is an ordinary one, and still is.
pub(super) fn read(folder: BorrowedFd<'_>, name: &CStr) -> Option<OwnedFd> {
    // Without waiting: what was a file when it was looked at could be a pipe.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty()).ok()?;
    let status = fstat(&file).ok()?;
    (FileType::from_raw_mode(status.st_mode) == FileType::RegularFile).then_some(file)
}
