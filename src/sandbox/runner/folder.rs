//! The files of a script: looked into and measured.
//!
//! Nothing in them is trusted: links are not followed, and only ordinary files are read.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, statat};
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a folder holds.
#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// Opens a folder of the host.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// What a folder holds, on the host, while a script works in it. It looks no further once that is too much. `None` where
/// it can't be measured: it is too deep, or closed.
pub(super) fn measure(folder: &OwnedFd, most: Size) -> Option<Size> {
    let mut size = Size::default();
    let mut next = vec![PathBuf::from(".")];
    while let Some(path) = next.pop() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let inner = match openat2(folder, &path, flags, Mode::empty(), resolve) {
            Ok(inner) => inner,
            // It was removed meanwhile.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            Err(_) => return None,
        };
        let Ok(listed) = Dir::read_from(&inner) else { continue };
        for entry in listed.flatten() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            size.files += 1;
            if size.files > most.files || size.bytes > most.bytes {
                return Some(size);
            }
            let Ok(status) = statat(&inner, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            size.bytes += u64::try_from(status.st_blocks).unwrap_or(0) * 512;
            if FileType::from_raw_mode(status.st_mode) == FileType::Directory {
                next.push(path.join(OsStr::from_bytes(name.to_bytes())));
            }
        }
    }
    Some(size)
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
