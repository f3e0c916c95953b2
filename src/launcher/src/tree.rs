//! The processes of a script: found, measured and ended.

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};
use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

/// Everything below the launcher.
pub(crate) struct Tree {
    /// It is the first process of its namespace, in which there is nobody else.
    first: bool,
    page: u64,
    ticks: u64,
}

/// What all processes together use right now.
#[derive(Clone, Copy, Default)]
pub(crate) struct Use {
    /// In bytes.
    pub(crate) memory: u64,
    /// What of it is shared, and no limit of the system counts.
    pub(crate) shared: u64,
    pub(crate) cpu_ms: u64,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let (page, ticks) = (rustix::param::page_size() as u64, rustix::param::clock_ticks_per_second());
        Self { first: getpid().is_init(), page, ticks: ticks.max(1) }
    }

    pub(crate) fn living(&self) -> Vec<i32> {
        if self.first {
            return numbers("/proc").filter(|pid| *pid != 1).collect();
        }
        let own = getpid().as_raw_nonzero().get();
        // Where the kernel lists no children, all processes are asked for their parents.
        let parents = children(own).is_none().then(everybody);
        let mut found = Vec::new();
        let mut seen = HashSet::from([own]);
        let mut next = vec![own];
        while let Some(pid) = next.pop() {
            let below = match &parents {
                Some(parents) => parents.iter().filter(|(_, parent)| *parent == pid).map(|(pid, _)| *pid).collect(),
                None => children(pid).unwrap_or_default(),
            };
            for child in below {
                if seen.insert(child) {
                    found.push(child);
                    next.push(child);
                }
            }
        }
        found
    }

    /// What the living use, and what the ended have used. What several share counts once, where that could matter: to
    /// know it takes longer.
    pub(crate) fn measure(&self, memory_at_most: u64) -> Use {
        let living = self.living();
        let mut used = Use { cpu_ms: ended_cpu_ms(), ..Use::default() };
        for pid in &living {
            let (resident, shared) = self.resident(*pid).unwrap_or_default();
            used.memory += resident;
            used.shared += shared;
            used.cpu_ms += self.cpu_ms(*pid).unwrap_or(0);
        }
        if used.memory > memory_at_most / 5 * 4 || used.shared > memory_at_most / 5 * 2 {
            (used.memory, used.shared) = (0, 0);
            for pid in &living {
                let parts = proportional(*pid).or_else(|| self.resident(*pid));
                let (memory, shared) = parts.unwrap_or_default();
                used.memory += memory;
                used.shared += shared;
            }
        }
        used
    }

    /// All memory of a process, and what of it others could have too.
    fn resident(&self, pid: i32) -> Option<(u64, u64)> {
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        let mut pages = text.split(' ').skip(1).map_while(|one| one.parse::<u64>().ok());
        Some((pages.next()?.saturating_mul(self.page), pages.next()?.saturating_mul(self.page)))
    }

    fn cpu_ms(&self, pid: i32) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = text.rsplit_once(')')?;
        let ticks: u64 = rest.split_ascii_whitespace().skip(11).take(4).filter_map(|one| one.parse::<u64>().ok()).sum();
        Some(ticks.saturating_mul(1000) / self.ticks)
    }

    /// Kills everything in rounds until nothing is left, since what forks meanwhile escapes a round.
    pub(crate) fn end(&self) {
        let give_up = Instant::now() + Duration::from_secs(10);
        loop {
            if self.first {
                // SAFETY: takes plain numbers. The first process of a namespace reaches the script's processes alone.
                unsafe { libc::kill(-1, libc::SIGKILL) };
            } else {
                for pid in self.living().into_iter().filter_map(Pid::from_raw) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            loop {
                match wait(WaitOptions::NOHANG) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            if Instant::now() > give_up {
                return;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Takes up those that have ended, but for one.
pub(crate) fn reap_all_but(kept: Pid) {
    while let Some(pid) = ended_now().filter(|pid| *pid != kept) {
        if rustix::process::waitpid(Some(pid), WaitOptions::NOHANG).is_err() {
            return;
        }
    }
}

/// One that has ended, left as it is.
fn ended_now() -> Option<Pid> {
    // SAFETY: all fields of it are numbers.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives until the call returns; the options leave the child as it is.
    let answer = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) };
    if answer != 0 {
        return None;
    }
    // SAFETY: after a waitid that succeeded, the structure tells of a child; zero is none.
    Pid::from_raw(unsafe { info.si_pid() })
}

/// The time on the processor of all that have ended and were taken up, in milliseconds.
pub(crate) fn ended_cpu_ms() -> u64 {
    let ms = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1000 + u64::try_from(time.tv_usec).unwrap_or(0) / 1000
    };
    usage_of_ended().map_or(0, |usage| ms(usage.ru_utime) + ms(usage.ru_stime))
}

/// The most memory of one that has ended and was taken up, in bytes.
pub(crate) fn largest_ended() -> u64 {
    usage_of_ended().map_or(0, |usage| u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024)
}

fn usage_of_ended() -> Option<libc::rusage> {
    // SAFETY: all fields of it are numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives until the call returns.
    (unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) } == 0).then_some(usage)
}

/// All memory of a process, of what is shared its part; and what of it is shared and no file's.
fn proportional(pid: i32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let part = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    };
    Some((part("Pss:")?, part("Pss_Shmem:").unwrap_or(0)))
}

fn numbers(folder: &str) -> impl Iterator<Item = i32> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The children of all threads of a process; `None` where the kernel doesn't list them.
fn children(pid: i32) -> Option<Vec<i32>> {
    let lists = numbers(&format!("/proc/{pid}/task"))
        .map(|thread| fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")));
    let texts = lists.collect::<Result<Vec<_>, _>>().ok()?;
    Some(texts.iter().flat_map(|text| text.split_ascii_whitespace()).filter_map(|one| one.parse().ok()).collect())
}

/// Each process with its parent.
fn everybody() -> Vec<(i32, i32)> {
    let parent = |pid: i32| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = text.rsplit_once(')')?;
        rest.split_ascii_whitespace().nth(1)?.parse::<i32>().ok()
    };
    numbers("/proc").filter_map(|pid| Some((pid, parent(pid)?))).collect()
}
