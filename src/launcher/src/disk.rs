//! What a script's files take, where no file system of their own limits them.
//!
//! Counted are the files in its folders, and those that have no name any more but are held: open in a process, or mapped
//! into one. A look continues where the one before stopped, so that it is short however much there is.

use crate::procfs;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, statat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, OsStr};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What one look takes, about.
const BUDGET: Duration = Duration::from_millis(5);

pub(crate) struct Disk {
    bytes: u64,
    files: u64,
    folders: Vec<(PathBuf, OwnedFd)>,
    sweep: Option<Sweep>,
    due: Instant,
    /// Ways to the files that had a name once, by their numbers: what they take can be asked for when it is gone.
    pinned: HashMap<u64, OwnedFd>,
    used: u64,
}

/// One way through all folders and processes.
struct Sweep {
    began: Instant,
    folders: Vec<(usize, PathBuf)>,
    processes: Vec<i32>,
    maps: Option<(File, Vec<u8>)>,
    found: HashMap<u64, u64>,
    /// Without a name, and seen in no table of open files.
    mapped: Vec<u64>,
    names: u64,
}

impl Disk {
    /// Of what is below the folders. Those that can't be opened hold nothing.
    pub(crate) fn new(bytes: u64, files: u64, folders: &[PathBuf]) -> Self {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = folders.iter().filter_map(|folder| {
            let real = fs::canonicalize(folder).ok()?;
            Some((real, rustix::fs::open(folder, flags, Mode::empty()).ok()?))
        });
        let folders = opened.collect();
        // Each file that it knows is a descriptor.
        let held = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: held.maximum, maximum: held.maximum });
        Self { bytes, files, folders, sweep: None, due: Instant::now(), pinned: HashMap::new(), used: 0 }
    }

    /// What is used, in bytes, as the last way through everything found it. More than may be, where there are too many
    /// files, or where they can't be counted: a folder is closed, or too deep.
    pub(crate) fn used(&mut self, living: &[i32]) -> u64 {
        let began = Instant::now();
        if self.folders.is_empty() || (self.sweep.is_none() && began < self.due) {
            return self.used;
        }
        let mut sweep = self.sweep.take().unwrap_or_else(|| Sweep {
            began,
            folders: (0..self.folders.len()).map(|index| (index, PathBuf::from("."))).collect(),
            processes: living.to_vec(),
            maps: None,
            found: HashMap::new(),
            mapped: Vec::new(),
            names: 0,
        });
        loop {
            match self.step(&mut sweep) {
                Ok(true) => {}
                Ok(false) => break,
                Err(TooMuch) => {
                    self.used = u64::MAX;
                    return self.used;
                }
            }
            let so_far: u64 = sweep.found.values().sum();
            if so_far > self.bytes || sweep.names > self.files {
                self.used = u64::MAX;
                return self.used;
            }
            if began.elapsed() > BUDGET {
                self.sweep = Some(sweep);
                return self.used;
            }
        }
        self.used = self.ended(&sweep);
        // Where a way through everything takes long, it is gone less often.
        self.due = Instant::now() + sweep.began.elapsed();
        self.used
    }

    fn ended(&mut self, sweep: &Sweep) -> u64 {
        let held = sweep.mapped.iter().copied().filter(|number| !sweep.found.contains_key(number));
        let held: HashSet<u64> = held.collect();
        self.pinned.retain(|number, _| sweep.found.contains_key(number) || held.contains(number));
        // One that was never seen with a name may be as large as a file may be.
        let size = |number: &u64| {
            let status = self.pinned.get(number).and_then(|file| fstat(file).ok());
            status.map_or(self.bytes.saturating_add(1), |status| taken(&status))
        };
        sweep.found.values().copied().chain(held.iter().map(size)).fold(0, u64::saturating_add)
    }

    /// Goes a step further. Returns whether there is more.
    fn step(&mut self, sweep: &mut Sweep) -> Result<bool, TooMuch> {
        if let Some((index, path)) = sweep.folders.pop() {
            if let Some((_, folder)) = self.folders.get(index) {
                look_into(folder, index, &path, sweep, &mut self.pinned)?;
            }
            return Ok(true);
        }
        if let Some((file, rest)) = &mut sweep.maps {
            let mut bytes = [0; 16_384];
            let count = file.read(&mut bytes).unwrap_or(0);
            rest.extend(bytes.get(..count).unwrap_or_default());
            let end = whole_lines(rest);
            for line in rest.get(..end).unwrap_or_default().split(|byte| *byte == b'\n') {
                sweep.mapped.extend(self.nameless(line));
            }
            rest.drain(..end);
            if count == 0 {
                sweep.maps = None;
            }
            return Ok(true);
        }
        let Some(pid) = sweep.processes.pop() else { return Ok(false) };
        for thread in procfs::tables(pid) {
            let folder = format!("/proc/{pid}/task/{thread}/fd");
            for descriptor in procfs::numbers(&folder) {
                let Ok(metadata) = fs::metadata(format!("{folder}/{descriptor}")) else { continue };
                if metadata.is_file() && metadata.nlink() == 0 {
                    sweep.found.insert(metadata.ino(), metadata.blocks() * 512);
                }
            }
            // Once it is open, it shows the memory whoever ends.
            if sweep.maps.is_none() {
                sweep.maps = File::open(format!("/proc/{pid}/task/{thread}/maps")).ok().map(|file| (file, Vec::new()));
            }
        }
        Ok(true)
    }

    /// The number of the file that a line of `maps` tells of, where it is one of the script's without a name.
    fn nameless(&self, line: &[u8]) -> Option<u64> {
        let line = line.strip_suffix(b" (deleted)")?;
        let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
        let number = std::str::from_utf8(fields.nth(4)?).ok()?.parse().ok()?;
        let path = line.iter().position(|byte| *byte == b'/').and_then(|at| line.get(at..))?;
        let inside = |folder: &Path| Path::new(OsStr::from_bytes(path)).starts_with(folder);
        self.folders.iter().any(|(folder, _)| inside(folder)).then_some(number)
    }
}

struct TooMuch;

/// The files of one folder; those below it are looked into later.
fn look_into(
    top: &OwnedFd,
    index: usize,
    path: &Path,
    sweep: &mut Sweep,
    pinned: &mut HashMap<u64, OwnedFd>,
) -> Result<(), TooMuch> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let folder = match openat2(top, path, flags, Mode::empty(), resolve) {
        Ok(folder) => folder,
        // It was removed or moved meanwhile, or the machine has nothing left: the next look will tell.
        Err(
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::AGAIN
            | Errno::INTR
            | Errno::MFILE
            | Errno::NFILE
            | Errno::NOMEM,
        ) => return Ok(()),
        Err(_) => return Err(TooMuch),
    };
    let Ok(listed) = Dir::read_from(&folder) else { return Ok(()) };
    for entry in listed.flatten() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        sweep.names += 1;
        let Ok(status) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        sweep.found.insert(status.st_ino, taken(&status));
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => sweep.folders.push((index, path.join(OsStr::from_bytes(name.to_bytes())))),
            FileType::RegularFile if !pinned.contains_key(&status.st_ino) => pin(&folder, name, pinned),
            _ => {}
        }
    }
    Ok(())
}

fn pin(folder: &OwnedFd, name: &CStr, pinned: &mut HashMap<u64, OwnedFd>) {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // What can't be pinned is taken for the worst, should it be held without a name.
    let Ok(file) = openat(folder, name, flags, Mode::empty()) else { return };
    if let Ok(status) = fstat(&file) {
        pinned.entry(status.st_ino).or_insert(file);
    }
}

fn taken(status: &Stat) -> u64 {
    u64::try_from(status.st_blocks).unwrap_or(0) * 512
}

/// The end of the last whole line.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn filled(file: &mut File, bytes: usize) {
        file.write_all(&vec![1; bytes]).unwrap();
        file.sync_all().unwrap();
    }

    fn counted(disk: &mut Disk) -> u64 {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        disk.due = Instant::now();
        loop {
            let used = disk.used(&[own]);
            if disk.sweep.is_none() {
                return used;
            }
        }
    }

    #[test]
    fn files_count_once_with_a_name_without_one_and_mapped() {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = Disk::new(64 << 20, 100, &[folder.path().to_owned()]);
        let path = folder.path().join("one");
        let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        filled(&mut file, 1 << 20);
        let named = counted(&mut disk);
        assert!((1 << 20..2 << 20).contains(&named), "{named}");
        fs::remove_file(&path).unwrap();
        assert_eq!(counted(&mut disk), named);
        // SAFETY: a new mapping, of which nothing is read or written.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_READ,
                libc::MAP_SHARED,
                std::os::fd::AsRawFd::as_raw_fd(&file),
                0,
            )
        };
        assert_ne!(mapped, libc::MAP_FAILED);
        drop(file);
        assert_eq!(counted(&mut disk), named);
        // Of one that was never seen with a name, the worst is taken.
        disk.pinned.clear();
        assert!(counted(&mut disk) > 64 << 20);
        // SAFETY: the mapping that was made above; nothing points into it.
        unsafe { libc::munmap(mapped, 4096) };
        assert!(counted(&mut disk) < named);
    }

    #[test]
    fn too_many_files_are_too_much() {
        let folder = tempfile::tempdir().unwrap();
        for name in 0..5 {
            fs::write(folder.path().join(name.to_string()), "").unwrap();
        }
        assert_eq!(counted(&mut Disk::new(1 << 20, 5, &[folder.path().to_owned()])), 0);
        assert_eq!(counted(&mut Disk::new(1 << 20, 4, &[folder.path().to_owned()])), u64::MAX);
    }
}
