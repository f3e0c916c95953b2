//! The files of a script: copied in, measured, and taken over.
//!
//! Nothing in them is trusted. Links are not followed, and only ordinary files with one name are read.

use super::super::event::Artifact;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fchmod, fstat, mkdirat, openat, openat2, statat,
};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::ffi::{CStr, CString, OsStr};
use std::fmt::Write as _;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folder whose files are artifacts.
const OUT: &[u8] = b"out";
/// Folders in folders that are gone into.
const DEEPEST: usize = 32;

/// How much may be taken over.
#[derive(Clone, Copy)]
pub(super) struct Most {
    pub(super) files: usize,
    pub(super) bytes: u64,
}

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

/// Copies what the script left in `out`. Returns the files, and how many were not taken.
pub(super) fn take_artifacts(work: &OwnedFd, target: &Path, most: Most) -> (Vec<Artifact>, usize) {
    let (mut taken, mut refused, mut bytes) = (Vec::new(), 0, 0_u64);
    let Some(out) = enter(work.as_fd(), c"out") else { return (taken, refused) };
    let mut names = Names::default();
    walk(&out, &mut |folder, name, status, way| {
        let size = u64::try_from(status.st_size).unwrap_or(u64::MAX);
        if taken.len() >= most.files || bytes.saturating_add(size) > most.bytes {
            refused += 1;
            return;
        }
        let path = names.harmless(way, name);
        match copy(folder, name, &target.join(&path), size) {
            Ok((size, sha256)) => {
                bytes += size;
                let mime = mime_guess::from_path(&path).first_or_octet_stream().to_string();
                taken.push(Artifact { file: target.join(&path), path, size, sha256, mime });
            }
            Err(_) => refused += 1,
        }
    });
    (taken, refused)
}

/// Copies the files of a session into the box, or what is new of them out of it.
pub(super) fn copy_all(from: &OwnedFd, to: &OwnedFd, owner: Option<u32>) -> io::Result<()> {
    copy_level(from.as_fd(), to.as_fd(), owner, 0)
}

fn copy_level(from: BorrowedFd<'_>, to: BorrowedFd<'_>, owner: Option<u32>, depth: usize) -> io::Result<()> {
    for (name, status) in entries(from) {
        if depth == 0 && name.to_bytes() == OUT {
            continue;
        }
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory if depth < DEEPEST => {
                let Some(inner) = enter(from, &name) else { continue };
                mkdirat(to, &name, Mode::from_raw_mode(0o755))?;
                let target = openat(to, &name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
                own(&target, owner)?;
                copy_level(inner.as_fd(), target.as_fd(), owner, depth + 1)?;
            }
            FileType::RegularFile if status.st_nlink == 1 => {
                let Some(source) = read(from, &name) else { continue };
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let target = openat(to, &name, flags, Mode::from_raw_mode(0o644))?;
                own(&target, owner)?;
                if status.st_mode & 0o100 != 0 {
                    fchmod(&target, Mode::from_raw_mode(0o755))?;
                }
                let size = u64::try_from(status.st_size).unwrap_or(0);
                io::copy(&mut File::from(source).take(size), &mut File::from(target))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn own(file: &OwnedFd, owner: Option<u32>) -> io::Result<()> {
    let Some(owner) = owner else { return Ok(()) };
    let (user, group) = (rustix::fs::Uid::from_raw(owner), rustix::fs::Gid::from_raw(owner));
    Ok(rustix::fs::fchown(file, Some(user), Some(group))?)
}

/// What a folder holds, on the host, while a script works in it. It looks no further once that is too much. `None` where
/// it is too deep to be measured.
pub(super) fn measure(folder: &OwnedFd, most: Size) -> Option<Size> {
    let mut size = Size::default();
    let mut next = vec![PathBuf::from(".")];
    while let Some(path) = next.pop() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let inner = match openat2(folder, &path, flags, Mode::empty(), resolve) {
            Ok(inner) => inner,
            Err(Errno::NAMETOOLONG) => return None,
            Err(_) => continue,
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

type Visit<'a> = dyn FnMut(BorrowedFd<'_>, &CStr, &Stat, &[String]) + 'a;

/// Visits the ordinary files of a folder, in the order of their names.
fn walk(folder: &OwnedFd, visit: &mut Visit<'_>) {
    walk_level(folder.as_fd(), &mut Vec::new(), visit);
}

fn walk_level(folder: BorrowedFd<'_>, way: &mut Vec<String>, visit: &mut Visit<'_>) {
    for (name, status) in entries(folder) {
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile if status.st_nlink == 1 => visit(folder, &name, &status, way),
            FileType::Directory if way.len() < DEEPEST => {
                if let Some(inner) = enter(folder, &name) {
                    way.push(harmless(&name));
                    walk_level(inner.as_fd(), way, visit);
                    way.pop();
                }
            }
            _ => {}
        }
    }
}

fn entries(folder: BorrowedFd<'_>) -> Vec<(CString, Stat)> {
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

fn enter(folder: BorrowedFd<'_>, name: &CStr) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty()).ok()
}

/// Opens a file that is an ordinary one with one name, and still is.
fn read(folder: BorrowedFd<'_>, name: &CStr) -> Option<OwnedFd> {
    // Without waiting: what was a file when it was looked at could be a pipe.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty()).ok()?;
    let status = fstat(&file).ok()?;
    (FileType::from_raw_mode(status.st_mode) == FileType::RegularFile && status.st_nlink == 1).then_some(file)
}

fn copy(folder: BorrowedFd<'_>, name: &CStr, target: &Path, size: u64) -> io::Result<(u64, String)> {
    let source = read(folder, name).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    if let Some(parent) = target.parent() {
        // Nobody else's business.
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    let mut target = File::create_new(target)?;
    let mut source = File::from(source).take(size);
    let (mut hash, mut count, mut bytes) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        let read = source.read(&mut bytes)?;
        let Some(piece) = bytes.get(..read).filter(|piece| !piece.is_empty()) else { break };
        hash.update(piece);
        target.write_all(piece)?;
        count += read as u64;
    }
    let digits = hash.finalize().iter().fold(String::new(), |mut digits, byte| {
        // Writing to a string succeeds.
        let _ = write!(digits, "{byte:02x}");
        digits
    });
    Ok((count, digits))
}

/// The names that were given, so that no file takes another one's place.
#[derive(Default)]
struct Names(std::collections::HashSet<String>);

impl Names {
    fn harmless(&mut self, way: &[String], name: &CStr) -> String {
        let name = harmless(name);
        let path = |name: &str| way.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("/");
        let mut given = path(&name);
        let (stem, ending) =
            name.rsplit_once('.').map_or((name.as_str(), String::new()), |(stem, ending)| (stem, format!(".{ending}")));
        // Also where only the case differs, which some file systems don't see.
        for number in 2.. {
            if self.0.insert(given.to_lowercase()) {
                break;
            }
            given = path(&format!("{stem}-{number}{ending}"));
        }
        given
    }
}

/// A name that means nothing special to a shell, a terminal, a browser or another system.
fn harmless(name: &CStr) -> String {
    const LONGEST: usize = 100;
    const RESERVED: [&str; 4] = ["CON", "PRN", "AUX", "NUL"];
    let text = String::from_utf8_lossy(name.to_bytes());
    let keep =
        |one: char| one.is_alphanumeric() || matches!(one, '.' | '-' | '_' | ' ' | '(' | ')' | '+' | ',' | '=' | '@');
    let mut text: String = text.chars().map(|one| if keep(one) { one } else { '_' }).collect();
    if text.starts_with(['-', '.', ' ']) {
        text.replace_range(..1, "_");
    }
    while text.ends_with(['.', ' ']) {
        text.pop();
    }
    let stem = text.split('.').next().unwrap_or_default().to_uppercase();
    let numbered = stem.len() == 4
        && (stem.starts_with("COM") || stem.starts_with("LPT"))
        && stem.ends_with(|one: char| one.is_ascii_digit());
    if RESERVED.contains(&stem.as_str()) || numbered {
        text.insert(0, '_');
    }
    if text.len() > LONGEST {
        // The ending says what it is.
        let ending = text
            .rsplit_once('.')
            .map(|(_, ending)| format!(".{ending}"))
            .filter(|ending| ending.len() < 12)
            .unwrap_or_default();
        let mut end = LONGEST - ending.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(&ending);
    }
    if text.is_empty() { "_".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_harmless() {
        let long = "x".repeat(200) + ".png";
        let given = |name: &str| harmless(&CString::new(name).unwrap());
        for (name, expected) in [
            ("plot.png", "plot.png"),
            ("a\nb", "a_b"),
            ("-rf", "_rf"),
            ("..x", "_.x"),
            ("...", "_"),
            ("\u{202e}fdp.exe", "_fdp.exe"),
            ("a\"b", "a_b"),
            ("CON", "_CON"),
            ("com1.txt", "_com1.txt"),
            ("größe 2.csv", "größe 2.csv"),
            ("<script>", "_script_"),
            (long.as_str(), &("x".repeat(96) + ".png")),
        ] {
            assert_eq!(given(name), expected, "{name}");
        }
        assert_eq!(harmless(c"\xff\xfe"), "__");
    }

    #[test]
    fn no_file_takes_the_place_of_another() {
        let mut names = Names::default();
        assert_eq!(names.harmless(&[], c"a:b.txt"), "a_b.txt");
        assert_eq!(names.harmless(&[], c"a/b.txt"), "a_b-2.txt");
        assert_eq!(names.harmless(&[], c"A_B.txt"), "A_B-3.txt");
    }
}
