//! The processes of a script: found, measured and ended.

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// Everything below the launcher.
pub(crate) struct Tree {
    /// It is the first process of its namespace, in which there is nobody else.
    first: bool,
    page: u64,
    ticks: u64,
    /// Time on the processor of the living by number and start, as it was last seen, and of those that are gone.
    seen: HashMap<(i32, u64), u64>,
    gone_ms: u64,
}

/// What all processes together use right now.
#[derive(Clone, Copy, Default)]
pub(crate) struct Use {
    /// In bytes.
    pub(crate) memory: u64,
    /// What of it is shared, and no limit of the system counts.
    pub(crate) shared: u64,
    /// Bytes of files that are open and have no name. Not looked at in a namespace, whose file system is limited.
    pub(crate) unlinked: u64,
    pub(crate) cpu_ms: u64,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let (page, ticks) = (rustix::param::page_size() as u64, rustix::param::clock_ticks_per_second());
        Self { first: getpid().is_init(), page, ticks: ticks.max(1), seen: HashMap::new(), gone_ms: 0 }
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
    pub(crate) fn measure(&mut self, memory_at_most: u64) -> Use {
        let living = self.living();
        let mut used = Use { cpu_ms: self.cpu_ms(&living), ..Use::default() };
        for pid in &living {
            let (resident, shared) = self.resident(*pid).unwrap_or_default();
            used.memory += resident;
            used.shared += shared;
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
        if !self.first {
            used.unlinked = unlinked(&living);
        }
        used
    }

    /// Time on the processor of all, in milliseconds. The system adds up what those took that were waited for, and here
    /// is added up what was seen of each: a script can keep away from one of the two.
    fn cpu_ms(&mut self, living: &[i32]) -> u64 {
        let mut now = HashMap::new();
        let mut waited_for = 0;
        for pid in living {
            if let Some((start, own, children)) = self.times(*pid) {
                now.insert((*pid, start), own);
                waited_for += children;
            }
        }
        let own: u64 = now.values().sum();
        let gone = self.seen.iter().filter(|(process, _)| !now.contains_key(*process)).map(|(_, own)| own);
        self.gone_ms += gone.sum::<u64>();
        self.seen = now;
        own + (waited_for + ended_cpu_ms()).max(self.gone_ms)
    }

    /// When a process started, what it took itself and what the children took that it waited for, in milliseconds.
    fn times(&self, pid: i32) -> Option<(u64, u64, u64)> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = text.rsplit_once(')')?;
        let numbers: Vec<u64> = rest.split_ascii_whitespace().map(|one| one.parse().unwrap_or(0)).collect();
        let ms = |index: usize| Some(numbers.get(index)?.saturating_mul(1000) / self.ticks);
        Some((*numbers.get(19)?, ms(11)? + ms(12)?, ms(13)? + ms(14)?))
    }

    /// All memory of a process, and what of it others could have too.
    fn resident(&self, pid: i32) -> Option<(u64, u64)> {
        const LARGE: u64 = 4 << 30;
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        let mut pages = text.split(' ').map_while(|one| one.parse::<u64>().ok().map(|count| count * self.page));
        let (size, resident, shared) = (pages.next()?, pages.next()?, pages.next()?);
        // Of a large space that is hardly used, the tables take more than the pages.
        let tables = if size > LARGE { tables(pid).unwrap_or(0) } else { 0 };
        Some((resident + tables, shared))
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
    Some((part("Pss:")? + tables(pid).unwrap_or(0), part("Pss_Shmem:").unwrap_or(0)))
}

/// What the tables of a process's memory take.
fn tables(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmPTE:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// What the files take that are open in these processes and have no name any more.
fn unlinked(living: &[i32]) -> u64 {
    let mut found = HashMap::new();
    for pid in living {
        let folder = format!("/proc/{pid}/fd");
        for descriptor in numbers(&folder) {
            let Ok(metadata) = fs::metadata(format!("{folder}/{descriptor}")) else { continue };
            if metadata.is_file() && metadata.nlink() == 0 {
                found.insert((metadata.dev(), metadata.ino()), metadata.blocks() * 512);
            }
        }
    }
    found.values().sum()
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
