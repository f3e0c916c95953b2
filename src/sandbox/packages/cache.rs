//! The folder that packages are kept in: finished sets, and drafts that nobody sees until they are renamed.

use rustix::fs::{FlockOperation, flock};
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// A draft without an owner is left alone for as long: its owner locks it right after it has made it.
const STALE: Duration = Duration::from_secs(600);

const DRAFT: &str = ".draft-";
/// Beside a set, what it is made of.
const PACKAGES: &str = "packages";

/// What folders hold together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

impl Size {
    pub(super) fn is_more_than(self, most: Self) -> bool {
        self.bytes > most.bytes || self.files > most.files
    }

    /// It looks no further once that is too much. A file with several names counts once.
    pub(super) fn of(folders: impl IntoIterator<Item = PathBuf>, most: Self) -> Self {
        let mut size = Self::default();
        let mut seen = HashSet::new();
        let mut next: Vec<PathBuf> = folders.into_iter().collect();
        while let Some(path) = next.pop() {
            let Ok(about) = fs::symlink_metadata(&path) else { continue };
            if about.is_dir() {
                next.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            } else if seen.insert((about.dev(), about.ino())) {
                size.bytes += about.len();
                size.files += 1;
            }
            if size.is_more_than(most) {
                break;
            }
        }
        size
    }
}

/// Where packages are kept.
pub(super) struct Cache {
    root: PathBuf,
}

impl Cache {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let cache = Self { root: std::path::absolute(root)? };
        DirBuilder::new().recursive(true).mode(0o700).create(cache.sets())?;
        Ok(cache)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// What a finished set is made of.
    pub(super) fn packages(set: &Path) -> Option<Vec<String>> {
        let text = fs::read_to_string(set.with_extension(PACKAGES)).ok().filter(|_| set.is_dir())?;
        Some(text.lines().map(str::to_owned).collect())
    }

    /// What the installer's cache holds, by the folders in which it keeps packages.
    pub(super) fn kept(&self) -> BTreeSet<PathBuf> {
        let inner = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        inner(&self.downloads())
            .flat_map(|kind| if kind.is_dir() { inner(&kind).collect() } else { vec![kind] })
            .collect()
    }

    /// Removes the installer's cache, unless somebody is at work in it.
    pub(super) fn forget_downloads(&self) {
        let Ok(lock) = self.lock() else { return };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove(&self.downloads());
        }
    }

    /// The installer's own cache: on one disk with the sets, so that files are linked, not copied.
    pub(super) fn downloads(&self) -> PathBuf {
        self.root.join("uv")
    }

    pub(super) fn interpreters(&self) -> PathBuf {
        self.root.join("interpreters")
    }

    /// Says that an installer works in its cache, until this is dropped or its process ends.
    pub(super) fn at_work(&self) -> io::Result<File> {
        let lock = self.lock()?;
        flock(&lock, FlockOperation::LockShared)?;
        Ok(lock)
    }

    /// Removes what installers that were ended have left in their cache, unless one is at work.
    pub(super) fn sweep_downloads(&self) {
        let Ok(lock) = self.lock() else { return };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        let inner = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in inner(&self.downloads()) {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_half_done(&entry.file_name()) {
                remove_any(&entry.path());
            } else if is_folder {
                // Each kind of thing that it keeps has a folder of its own.
                let left = inner(&entry.path()).filter(|entry| is_half_done(&entry.file_name()));
                left.for_each(|entry| remove_any(&entry.path()));
            }
        }
    }

    fn lock(&self) -> io::Result<File> {
        File::options().create(true).truncate(false).write(true).open(self.root.join("uv.lock"))
    }

    fn sets(&self) -> PathBuf {
        self.root.join("sets")
    }

    pub(super) fn set(&self, key: &str) -> PathBuf {
        self.sets().join(key)
    }

    /// An empty folder that no other process works in.
    pub(super) fn draft(&self) -> io::Result<Draft> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let process = std::process::id();
        loop {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let folder = self.sets().join(format!("{DRAFT}{process}-{since}-{count}"));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Draft::new(folder),
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(cause),
            }
        }
    }

    /// Removes drafts whose process has ended without doing so.
    pub(super) fn sweep(&self) {
        for entry in fs::read_dir(self.sets()).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(DRAFT) && is_left(&entry.path()) {
                remove(&entry.path());
            }
        }
    }
}

/// What an installer has not finished yet has such a name.
fn is_half_done(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with(".tmp")
}

fn remove_any(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|about| about.is_dir()) {
        remove(path);
    } else {
        let _ = fs::remove_file(path);
    }
}

fn is_left(draft: &Path) -> bool {
    let Ok(folder) = File::open(draft) else { return false };
    let made = folder.metadata().and_then(|metadata| metadata.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > STALE))
        && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// A folder in the making. It is gone when this is dropped.
pub(super) struct Draft {
    folder: PathBuf,
    /// Locked as long as its process lives, however that ends.
    _owned: File,
}

impl Draft {
    fn new(folder: PathBuf) -> io::Result<Self> {
        let owned = File::open(&folder)?;
        flock(&owned, FlockOperation::NonBlockingLockExclusive)?;
        let draft = Self { folder, _owned: owned };
        fs::create_dir(draft.home())?;
        fs::create_dir(draft.target())?;
        Ok(draft)
    }

    /// The empty folder that the installer works in and takes for its home.
    pub(super) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// The folder that it fills.
    pub(super) fn target(&self) -> PathBuf {
        self.folder.join("set")
    }

    /// Makes what is filled the finished set. Returns whether it is this one: another process may have been faster.
    pub(super) fn publish(self, set: &Path, packages: &[String]) -> io::Result<bool> {
        let target = self.target();
        drop_start_up_files(&target)?;
        seal(&target)?;
        // Before the set: one that is there is known whole.
        let listed = self.folder.join(PACKAGES);
        fs::write(&listed, packages.join("\n"))?;
        fs::rename(listed, set.with_extension(PACKAGES))?;
        match fs::rename(&target, set) {
            // Only now: a folder that can't be written to can't be moved either.
            Ok(()) => fs::set_permissions(set, Permissions::from_mode(0o555)).map(|()| true),
            Err(_) if set.is_dir() => Ok(false),
            Err(cause) => Err(cause),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Takes out what an interpreter would run by itself, were the folder ever one of its site directories.
fn drop_start_up_files(target: &Path) -> io::Result<()> {
    for entry in fs::read_dir(target)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
        let is_pth = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pth"));
        if is_pth || matches!(stem, "sitecustomize" | "usercustomize" | ".lock") {
            if path.is_dir() { fs::remove_dir_all(&path)? } else { fs::remove_file(&path)? }
        }
    }
    Ok(())
}

/// Makes all of a folder readable for everyone and writable for nobody, but for the folder itself.
fn seal(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            seal(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(0o555))?;
        } else if kind.is_file() {
            let executable = entry.metadata()?.permissions().mode() & 0o111 != 0;
            fs::set_permissions(&path, Permissions::from_mode(if executable { 0o555 } else { 0o444 }))?;
        } else {
            // No wheel holds links or devices.
            fs::remove_file(&path)?;
        }
    }
    fs::set_permissions(folder, Permissions::from_mode(0o755))
}

/// Removes a folder, sealed or not. What can't be removed is left to the next sweep.
fn remove(folder: &Path) {
    unseal(folder);
    let _ = fs::remove_dir_all(folder);
}

fn unseal(folder: &Path) {
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unseal(&entry.path());
        }
    }
}
