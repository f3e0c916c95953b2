//! What open descriptors hold in the kernel, where no limit of the system counts it: locks of files, watches of `epoll`,
//! and what sockets keep for whoever reads them.
//!
//! A look continues where the one before stopped, so that it is short however much there is.

use crate::procfs;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// What one look takes, about.
const BUDGET: Duration = Duration::from_millis(2);
/// Locks and watches, of all processes together.
pub(crate) const MOST_ENTRIES: u64 = 32_768;
/// What a socket holds at most: larger buffers can't be had.
const SOCKET_BYTES: u64 = 256 << 10;
/// So many sockets cost nothing: few are ever full.
const FREE_SOCKETS: u64 = 128;
/// Of the description of one descriptor. One that is longer holds too many locks.
const DESCRIPTION: u64 = 4 << 20;

/// Counts it, in rounds through all processes.
pub(crate) struct Descriptors {
    /// What all sockets are mounted as.
    sockets: Option<u64>,
    processes: Vec<i32>,
    round: Round,
    held: Held,
}

/// What was found.
#[derive(Clone, Copy, Default)]
pub(crate) struct Held {
    /// Locks and watches.
    pub(crate) entries: u64,
    /// What sockets hold, at most.
    pub(crate) bytes: u64,
}

#[derive(Default)]
struct Round {
    entries: u64,
    sockets: HashSet<u64>,
}

impl Descriptors {
    /// `socket`: one of its own, by which others are known.
    pub(crate) fn new(socket: BorrowedFd<'_>) -> Self {
        let own = described(Path::new(&format!("/proc/self/fdinfo/{}", socket.as_raw_fd())));
        let (processes, round, held) = Default::default();
        Self { sockets: own.map(|own| own.mount), processes, round, held }
    }

    /// What is held, as the last round found it; at once where it is too much.
    pub(crate) fn held(&mut self, living: &[i32]) -> Held {
        let began = Instant::now();
        if self.processes.is_empty() {
            self.processes = living.to_vec();
        }
        while let Some(pid) = self.processes.pop() {
            for thread in procfs::tables(pid) {
                self.round.count(Path::new(&format!("/proc/{pid}/task/{thread}")), self.sockets);
            }
            self.held.entries = self.held.entries.max(self.round.entries);
            if began.elapsed() > BUDGET {
                break;
            }
        }
        if self.processes.is_empty() {
            let Round { entries, sockets } = std::mem::take(&mut self.round);
            let counted = (sockets.len() as u64).saturating_sub(FREE_SOCKETS);
            self.held = Held { entries, bytes: counted * SOCKET_BYTES };
        }
        self.held
    }
}

impl Round {
    /// The descriptors of one table, by what they tell of themselves: that may be read where their links may not.
    fn count(&mut self, task: &Path, sockets: Option<u64>) {
        // Each descriptor of a file tells of all locks of its process there.
        let mut locks: HashMap<u64, u64> = HashMap::new();
        for entry in fs::read_dir(task.join("fdinfo")).into_iter().flatten().flatten() {
            let Some(told) = described(&entry.path()) else { continue };
            self.entries += told.watches;
            let known = locks.entry(told.inode).or_default();
            *known = told.locks.max(*known);
            if sockets == Some(told.mount) {
                self.sockets.insert(told.inode);
            }
        }
        self.entries += locks.values().sum::<u64>();
    }
}

/// What a descriptor tells of itself.
struct Described {
    mount: u64,
    inode: u64,
    locks: u64,
    watches: u64,
}

/// `None` where it has been closed.
fn described(path: &Path) -> Option<Described> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(DESCRIPTION).read_to_end(&mut text).ok()?;
    let is_cut = text.len() as u64 == DESCRIPTION;
    let text = String::from_utf8_lossy(&text);
    let count = |name: &str| text.lines().filter(|line| line.starts_with(name)).count() as u64;
    let watches = if is_cut { MOST_ENTRIES + 1 } else { count("tfd:") };
    let number = |name: &str| procfs::number(&text, name).unwrap_or(0);
    Some(Described { mount: number("mnt_id:"), inode: number("ino:"), locks: count("lock:"), watches })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::epoll;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::os::fd::AsFd;

    fn held() -> Held {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let (socket, _) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let mut descriptors = Descriptors::new(socket.as_fd());
        loop {
            let held = descriptors.held(&[own]);
            if descriptors.processes.is_empty() {
                return held;
            }
        }
    }

    #[test]
    fn locks_watches_and_sockets_are_counted() {
        let before = held();
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &[0; 100]).unwrap();
        let again = file.try_clone().unwrap();
        for start in 0..10 {
            // SAFETY: all fields of it are numbers.
            let mut lock: libc::flock = unsafe { std::mem::zeroed() };
            (lock.l_type, lock.l_start, lock.l_len) = (i16::try_from(libc::F_WRLCK).unwrap(), start * 2, 1);
            // SAFETY: the structure lives until the call returns.
            assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) }, 0);
        }
        assert_eq!(held().entries, before.entries + 10);
        let watching = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let pairs: Vec<_> = (0..100)
            .map(|_| socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap())
            .collect();
        for (number, (one, _)) in pairs.iter().enumerate() {
            epoll::add(&watching, one, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN).unwrap();
        }
        let now = held();
        assert_eq!(now.entries, before.entries + 110);
        assert!(now.bytes >= 72 * SOCKET_BYTES);
        drop((pairs, again));
    }
}
