//! The memory of all processes of a script together.
//!
//! What nobody can take back counts: memory without a file, what of it was swapped out, the tables that it needs, and in
//! a namespace the files too, since they are in memory there. Programs and libraries are the system's.

use crate::procfs::{self, Common};
use rustix::fs::statfs;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

/// What one processor fills in a millisecond, at most, and what it copies of what several share.
const FILLED: u64 = 8 << 20;
const COPIED: u64 = 2 << 20;

pub(crate) struct Memory {
    most: u64,
    processors: u64,
    /// File systems in memory, which the script alone writes to.
    files: Vec<PathBuf>,
    /// When it was counted by shares, what came of it, and the sum then.
    shares: Option<(Instant, u64, u64)>,
    used: u64,
    processes: u64,
}

impl Memory {
    pub(crate) fn new(most: u64, files: Vec<PathBuf>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        Self { most, processors, files, shares: None, used: 0, processes: 1 }
    }

    /// What is used right now, in bytes, with what the kernel holds for it besides. What several share counts once where
    /// that matters: it takes longer to know.
    pub(crate) fn used(&mut self, living: &[i32], besides: u64) -> u64 {
        let files: u64 = self.files.iter().filter_map(|path| statfs(path).ok()).map(|held| taken(&held)).sum();
        let files = files.saturating_add(besides);
        let counts_shared = self.files.is_empty();
        let sum: u64 = living.iter().map(|pid| whole(*pid, counts_shared)).sum();
        self.processes = living.len() as u64;
        let room = self.most.saturating_sub(files);
        self.used = files + if sum <= room || living.len() < 2 { sum } else { self.by_shares(living, sum, room) };
        self.used
    }

    /// In how many milliseconds the limit can't be passed by much yet.
    pub(crate) fn patience_ms(&self) -> u64 {
        let room = (self.most / 10).saturating_add(self.most.saturating_sub(self.used));
        room / FILLED / self.processors.min(self.processes.max(1))
    }

    fn by_shares(&mut self, living: &[i32], sum: u64, room: u64) -> u64 {
        if let Some((at, shares, sum_then)) = self.shares {
            let copied = u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_mul(COPIED);
            let grown = shares + sum.saturating_sub(sum_then);
            if grown.saturating_add(copied.saturating_mul(self.processors)) <= room {
                return grown;
            }
        }
        let mut distinct: Vec<(i32, i32)> = Vec::new();
        for pid in living {
            // Who has lost its memory is compared by nothing: it would seem to share it with others like it.
            let Some(thread) = procfs::living_threads(*pid).first().copied() else { continue };
            if !distinct.iter().any(|(_, other)| procfs::share(*other, thread, Common::Memory)) {
                distinct.push((*pid, thread));
            }
        }
        let counts_shared = self.files.is_empty();
        let shares = distinct.iter().map(|(pid, _)| share(*pid, counts_shared)).sum();
        self.shares = Some((Instant::now(), shares, sum));
        shares
    }
}

fn taken(held: &rustix::fs::StatFs) -> u64 {
    let size = u64::try_from(held.f_bsize).unwrap_or(0);
    held.f_blocks.saturating_sub(held.f_bfree).saturating_mul(size)
}

/// All of a process, by a thread that has its memory: the first, or where that one is dead, another.
fn whole(pid: i32, counts_shared: bool) -> u64 {
    let of = |path: String| of_status(&fs::read_to_string(path).ok()?, counts_shared);
    of(format!("/proc/{pid}/status"))
        .or_else(|| {
            let mut threads = procfs::living_threads(pid).into_iter();
            threads.find_map(|thread| of(format!("/proc/{thread}/status")))
        })
        .unwrap_or(0)
}

fn of_status(text: &str, counts_shared: bool) -> Option<u64> {
    let part = |name: &str| procfs::amount(text, name).unwrap_or(0);
    let shared = if counts_shared { part("RssShmem:") } else { 0 };
    Some(procfs::amount(text, "RssAnon:")? + part("VmSwap:") + part("VmPTE:") + shared)
}

/// Its part of a process, with the tables. If that is unknown, all of it.
fn share(pid: i32, counts_shared: bool) -> u64 {
    let told = |pid: i32, thread: i32| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/smaps_rollup")).ok()?;
        let part = |name: &str| procfs::amount(&text, name).unwrap_or(0);
        let status = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).ok()?;
        let shared = if counts_shared { part("Pss_Shmem:") } else { 0 };
        Some(procfs::amount(&text, "Pss_Anon:")? + part("SwapPss:") + procfs::amount(&status, "VmPTE:")? + shared)
    };
    let mut threads = procfs::living_threads(pid).into_iter();
    threads.find_map(|thread| told(pid, thread)).unwrap_or_else(|| whole(pid, counts_shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tx\nVmPTE:\t     4 kB\nVmSwap:\t     2 kB\nRssAnon:\t    10 kB\nRssFile:\t  9000 kB\nRssShmem:\t   100 kB\n";

    #[test]
    fn libraries_are_the_system_s() {
        assert_eq!(of_status(STATUS, false), Some(16 << 10));
        assert_eq!(of_status(STATUS, true), Some(116 << 10));
        assert_eq!(of_status("Name:\tx\nState:\tZ (zombie)\n", true), None);
    }

    #[test]
    fn the_nearer_the_limit_the_shorter_the_patience() {
        let mut memory = Memory::new(1 << 30, Vec::new());
        memory.processors = 2;
        assert!(memory.patience_ms() > 100);
        (memory.used, memory.processes) = (1 << 30, 2);
        assert_eq!(memory.patience_ms(), 6);
    }

    #[test]
    fn own_memory_is_seen() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let before = whole(own, true);
        let held = vec![1_u8; 32 << 20];
        assert!(whole(own, true) > before + (30 << 20));
        assert!(share(own, true) > 30 << 20);
        drop(held);
    }
}
