//! The files that stay from one script of a session to the next.

use super::folder::{enter, entries, read};
use rustix::fs::{FileType, Mode, OFlags, fchmod, mkdirat, openat, readlinkat, symlinkat};
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Folders in folders that are gone into.
const DEEPEST: usize = 100;
/// What a file takes at least.
const BLOCK: u64 = 4096;

/// What may be copied, and what was not.
pub(super) struct FolderCopy {
    /// Bytes that may still be copied.
    bytes: u64,
    /// Files and folders that may still be copied.
    files: u64,
    /// To whom the copies belong.
    owner: Option<u32>,
    /// What is not copied at the top: the folder that each script is given anew.
    skipped: Option<&'static CStr>,
    /// Whether the copies can't be written to.
    read_only: bool,
    /// Pipes, sockets, and what is too deep.
    pub(super) left_out: u64,
}

impl FolderCopy {
    pub(super) fn new(bytes: u64, files: u64, owner: Option<u32>) -> Self {
        Self { bytes, files, owner, skipped: None, read_only: false, left_out: 0 }
    }

    /// Copies files that nobody may write to.
    pub(super) fn read_only() -> Self {
        Self { read_only: true, ..Self::new(u64::MAX, u64::MAX, None) }
    }

    /// Leaves out one entry of the folder itself.
    pub(super) fn without(self, skipped: Option<&'static CStr>) -> Self {
        Self { skipped, ..self }
    }

    /// Copies all files of a folder into an empty one. A file with several names becomes several files.
    ///
    /// # Errors
    /// There are more than may be, or there is no room.
    pub(super) fn all(&mut self, from: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
        self.level(from.as_fd(), to.as_fd(), 0)
    }

    fn level(&mut self, from: BorrowedFd<'_>, to: BorrowedFd<'_>, depth: usize) -> io::Result<()> {
        for (name, status) in entries(from) {
            if depth == 0 && self.skipped == Some(name.as_c_str()) {
                continue;
            }
            self.files = self.files.checked_sub(1).ok_or_else(too_much)?;
            match FileType::from_raw_mode(status.st_mode) {
                FileType::Directory if depth < DEEPEST => {
                    let Some(inner) = enter(from, &name) else {
                        self.left_out += 1;
                        continue;
                    };
                    mkdirat(to, &name, Mode::from_raw_mode(0o755))?;
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let target = openat(to, &name, flags, Mode::empty())?;
                    self.own(&target)?;
                    self.level(inner.as_fd(), target.as_fd(), depth + 1)?;
                }
                FileType::RegularFile => {
                    let Some(source) = read(from, &name) else {
                        self.left_out += 1;
                        continue;
                    };
                    // Holes become zeros, which take room.
                    let size = u64::try_from(status.st_size).unwrap_or(u64::MAX);
                    let room = size.checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX);
                    self.bytes = self.bytes.checked_sub(room).ok_or_else(too_much)?;
                    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                    let target = openat(to, &name, flags, Mode::from_raw_mode(0o644))?;
                    self.own(&target)?;
                    if self.read_only {
                        fchmod(&target, Mode::from_raw_mode(0o444))?;
                    } else if status.st_mode & 0o100 != 0 {
                        fchmod(&target, Mode::from_raw_mode(0o755))?;
                    }
                    io::copy(&mut File::from(source).take(size), &mut File::from(target))?;
                }
                FileType::Symlink => {
                    let path = readlinkat(from, &name, Vec::new())?;
                    // Nothing outside of the box ever follows it.
                    symlinkat(&path, to, &name)?;
                }
                _ => self.left_out += 1,
            }
        }
        Ok(())
    }

    fn own(&self, file: &OwnedFd) -> io::Result<()> {
        let Some(owner) = self.owner else { return Ok(()) };
        let (user, group) = (rustix::fs::Uid::from_raw(owner), rustix::fs::Gid::from_raw(owner));
        Ok(rustix::fs::fchown(file, Some(user), Some(group))?)
    }
}

fn too_much() -> io::Error {
    io::Error::other("they are more, or larger, than a script may write")
}
