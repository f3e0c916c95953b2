//! A control group for each script (cgroup v2), where this program has one of its own to divide.
//!
//! A group with processes in it can't divide memory among groups below it. So the program, with all that is in its group,
//! moves one level down, beside those of its scripts. That is done only in a group that was delegated: by systemd, which
//! marks it, or as the root of a container. Whether it can be done is tried, once in a process.

use super::super::wire::{Bounds, GROUP_FILES};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Where the program's own processes are.
const PROGRAM: &str = "callslip-program";
const SCRIPT: &str = "callslip-script-";
/// The processes that are in the group may start others meanwhile.
const ROUNDS: usize = 10;
/// How often a group is removed that could not be removed at once.
const ATTEMPTS: usize = 600;
/// Groups that a program left when it was killed. Younger ones may be about to be used.
const LEFT: Duration = Duration::from_secs(60);

/// The group of one script. Removed with all that is left in it.
pub(super) struct ControlGroup {
    path: PathBuf,
    files: [OwnedFd; GROUP_FILES.len()],
}

impl ControlGroup {
    /// With the limits of memory and of processes; `None` where there can be none.
    pub(super) fn new(bounds: &Bounds) -> Option<Self> {
        static BASE: OnceLock<Option<PathBuf>> = OnceLock::new();
        Self::below(BASE.get_or_init(find).as_deref()?, bounds).ok()
    }

    fn below(base: &Path, bounds: &Bounds) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        // Names of processes repeat in other namespaces, the time doesn't.
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("{SCRIPT}{}-{now:x}-{number}", std::process::id()));
        fs::create_dir(&path)?;
        let group = Self::limited(&path, bounds);
        if group.is_err() {
            let _ = fs::remove_dir(&path);
        }
        group
    }

    fn limited(path: &Path, bounds: &Bounds) -> io::Result<Self> {
        fs::write(path.join("memory.max"), bounds.memory_bytes.to_string())?;
        // All of a script ends, not the largest of its processes.
        fs::write(path.join("memory.oom.group"), "1")?;
        // A machine without swap has no such file, and some groups have no count of processes: it is limited otherwise too.
        let _ = fs::write(path.join("memory.swap.max"), "0");
        let _ = fs::write(path.join("pids.max"), bounds.processes.to_string());
        let [processes, memory, events] = GROUP_FILES.map(|name| path.join(name));
        let processes = File::options().write(true).open(processes)?.into();
        let files = [processes, File::open(memory)?.into(), File::open(events)?.into()];
        Ok(Self { path: path.to_owned(), files })
    }

    /// For the launcher.
    pub(super) fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.files.iter().map(AsFd::as_fd)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        if !is_left(&self.path) {
            return;
        }
        let path = std::mem::take(&mut self.path);
        let later = move || {
            for _ in 0..ATTEMPTS {
                std::thread::sleep(Duration::from_millis(100));
                if !is_left(&path) {
                    return;
                }
            }
        };
        let _ = std::thread::Builder::new().name("callslip-group".to_owned()).spawn(later);
    }
}

/// Removes it, and returns whether that must be tried again. What a lost launcher left in it is killed.
fn is_left(path: &Path) -> bool {
    let _ = fs::write(path.join("cgroup.kill"), "1");
    fs::remove_dir(path).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
}

/// The group that scripts get theirs in.
fn find() -> Option<PathBuf> {
    let own = own(&fs::read_to_string("/proc/self/cgroup").ok()?, &fs::read_to_string("/proc/self/mountinfo").ok()?)?;
    let base = if own.ends_with(PROGRAM) {
        // Another process of this program, or its parent, has done it.
        own.parent()?.to_owned()
    } else if is_delegated(&own) {
        divide(&own).ok()?;
        own
    } else {
        return None;
    };
    sweep(&base);
    Some(base)
}

/// The folder of this process's group.
fn own(groups: &str, mounts: &str) -> Option<PathBuf> {
    let group = Path::new(groups.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        let (fields, kind) = line.split_once(" - ")?;
        let mut fields = fields.split_ascii_whitespace().skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let inside = group.strip_prefix(root).ok().filter(|_| kind.starts_with("cgroup2 "))?;
        // One that lies outside of the namespace is reached by no path.
        (!inside.starts_with("..")).then(|| Path::new(point).join(inside))
    })
}

fn is_delegated(own: &Path) -> bool {
    let marked = |name: &str| rustix::fs::getxattr(own, name, &mut [0; 8][..]).is_ok_and(|length| length > 0);
    // The root of the machine has no such file, the root of a container does.
    let is_root = || own.parent().is_some_and(|parent| !parent.join("cgroup.procs").exists());
    marked("user.delegate") || marked("trusted.delegate") || (is_root() && own.join("cgroup.events").exists())
}

/// Moves all processes of a group one level down, and has it divide memory from then on.
fn divide(base: &Path) -> io::Result<()> {
    let has =
        |name: &str| fs::read_to_string(base.join(name)).map(|text| text.split_whitespace().any(|one| one == "memory"));
    if !has("cgroup.controllers")? {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let program = base.join(PROGRAM);
    if let Err(error) = fs::create_dir(&program)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    let control = base.join("cgroup.subtree_control");
    let mut divided = Err(io::ErrorKind::ResourceBusy.into());
    for _ in 0..ROUNDS {
        move_all(base, &program)?;
        divided = fs::write(&control, "+memory");
        if divided.is_ok() {
            // Not every delegation has it; processes are limited otherwise too.
            let _ = fs::write(&control, "+pids");
            return Ok(());
        }
    }
    // All is as it was.
    let _ = move_all(&program, base);
    let _ = fs::remove_dir(&program);
    divided
}

fn move_all(from: &Path, to: &Path) -> io::Result<()> {
    for process in fs::read_to_string(from.join("cgroup.procs"))?.split_whitespace() {
        // It may have ended.
        let _ = fs::write(to.join("cgroup.procs"), process);
    }
    Ok(())
}

/// Removes what programs left that were killed. In one that is used nothing is removed.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_script = entry.file_name().to_string_lossy().starts_with(SCRIPT);
        let age = entry.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|at| at.elapsed().ok());
        if is_script && age.is_some_and(|age| age > LEFT) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_where_it_is_mounted() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(own("0::/user.slice/run-1.scope\n", mounts), Some("/sys/fs/cgroup/user.slice/run-1.scope".into()));
        assert_eq!(own("0::/\n", mounts), Some("/sys/fs/cgroup/".into()));
        assert_eq!(own("0::/../other\n", mounts), None);
        // Of a container without a namespace of its own, a part is mounted.
        let part = "30 24 0:26 /docker/7 /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(own("0::/docker/7/x\n", part), Some("/sys/fs/cgroup/x".into()));
        assert_eq!(own("0::/docker/8\n", part), None);
        let old = "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        assert_eq!(own("4:memory:/x\n", old), None);
        assert_eq!(own("4:memory:/x\n0::/\n", old), None);
    }

    #[test]
    fn a_group_without_memory_to_divide_is_left_as_it_is() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join("cgroup.controllers"), "cpu pids\n").unwrap();
        assert!(divide(base.path()).is_err());
        assert!(!base.path().join(PROGRAM).exists());
        assert!(!is_delegated(base.path()));
    }
}
