//! What a script leaves in its folder `out`.

use super::super::event::Artifact;
use super::folder::{enter, entries, read};
use crate::hex::hex;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use sha2::{Digest, Sha256};
use std::ffi::{CStr, CString, OsStr};
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Folders in folders that are gone into.
const DEEPEST: usize = 32;

/// Copies artifacts out of a work folder.
pub(super) struct Taking<'a> {
    /// Where they are copied to.
    target: &'a Path,
    /// The files of the session before this script: what is still the same is no news.
    before: Option<OwnedFd>,
    files: usize,
    bytes: u64,
    names: Names,
    pub(super) taken: Vec<Artifact>,
    /// Files beyond what may be taken.
    pub(super) over: usize,
    /// Why files were not copied.
    pub(super) error: Option<io::Error>,
}

impl<'a> Taking<'a> {
    pub(super) fn new(target: &'a Path, before: Option<OwnedFd>, files: usize, bytes: u64) -> Self {
        Self { target, before, files, bytes, names: Names::default(), taken: Vec::new(), over: 0, error: None }
    }

    /// Takes those of a work folder, in the order of their names: ordinary files with one name.
    pub(super) fn take(&mut self, work: &OwnedFd) {
        if let Some(out) = enter(work.as_fd(), c"out") {
            self.level(out.as_fd(), &mut vec![c"out".to_owned()]);
        }
    }

    fn level(&mut self, folder: BorrowedFd<'_>, way: &mut Vec<CString>) {
        for (name, status) in entries(folder) {
            match FileType::from_raw_mode(status.st_mode) {
                FileType::RegularFile if status.st_nlink == 1 => {
                    self.file(folder, &name, u64::try_from(status.st_size).unwrap_or(u64::MAX), way);
                }
                FileType::Directory if way.len() <= DEEPEST => {
                    if let Some(inner) = enter(folder, &name) {
                        way.push(name);
                        self.level(inner.as_fd(), way);
                        way.pop();
                    }
                }
                _ => {}
            }
        }
    }

    fn file(&mut self, folder: BorrowedFd<'_>, name: &CStr, size: u64, way: &[CString]) {
        if self.is_known(folder, name, size, way) {
            return;
        }
        if self.taken.len() >= self.files || size > self.bytes {
            self.over += 1;
            return;
        }
        let path = self.names.harmless(way.get(1..).unwrap_or_default(), name);
        let file = self.target.join(&path);
        match copy(folder, name, &file, size) {
            Ok((size, sha256)) => {
                self.bytes = self.bytes.saturating_sub(size);
                let mime = mime_guess::from_path(&path).first_or_octet_stream().to_string();
                self.taken.push(Artifact { path, size, sha256, mime, file });
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// Whether the session had the very same file before.
    fn is_known(&self, folder: BorrowedFd<'_>, name: &CStr, size: u64, way: &[CString]) -> bool {
        let Some(session) = &self.before else { return false };
        let parts = way.iter().map(CString::as_c_str).chain([name]);
        let path: PathBuf = parts.map(|part| OsStr::from_bytes(part.to_bytes())).collect();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let Ok(before) = openat2(session, &path, flags, Mode::empty(), resolve) else { return false };
        let is_file = |status: &rustix::fs::Stat| FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        let same_size = |status: &rustix::fs::Stat| u64::try_from(status.st_size) == Ok(size);
        if !fstat(&before).is_ok_and(|status| is_file(&status) && same_size(&status)) {
            return false;
        }
        let now = read(folder, name).and_then(|file| hash(file, size, &mut io::sink()).ok());
        now.is_some() && hash(before, size, &mut io::sink()).ok() == now
    }
}

fn copy(folder: BorrowedFd<'_>, name: &CStr, target: &Path, size: u64) -> io::Result<(u64, String)> {
    let source = read(folder, name).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    if let Some(parent) = target.parent() {
        // Nobody else's business.
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    hash(source, size, &mut File::options().write(true).create_new(true).mode(0o600).open(target)?)
}

/// Copies a file, and returns its size and hash.
fn hash(source: OwnedFd, size: u64, target: &mut impl Write) -> io::Result<(u64, String)> {
    let mut source = File::from(source).take(size);
    let (mut hash, mut count, mut bytes) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        let read = source.read(&mut bytes)?;
        let Some(piece) = bytes.get(..read).filter(|piece| !piece.is_empty()) else { break };
        hash.update(piece);
        target.write_all(piece)?;
        count += read as u64;
    }
    Ok((count, hex(&hash.finalize())))
}

/// The names that were given, so that no file takes another one's place.
#[derive(Default)]
struct Names(std::collections::HashSet<String>);

impl Names {
    fn harmless(&mut self, way: &[CString], name: &CStr) -> String {
        let way: Vec<String> = way.iter().map(|folder| harmless(folder)).collect();
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
