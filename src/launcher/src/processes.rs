//! The processes of a script: found, taken up and ended.

use crate::procfs;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};
use std::collections::HashSet;
use std::time::Duration;

/// Everything below the launcher.
pub(crate) struct Processes {
    /// It is the first process of its namespace, in which there is nobody else.
    first: bool,
}

impl Processes {
    pub(crate) fn new() -> Self {
        Self { first: getpid().is_init() }
    }

    pub(crate) fn living(&self) -> Vec<i32> {
        if self.first {
            return procfs::numbers("/proc").filter(|pid| *pid != 1).collect();
        }
        let own = getpid().as_raw_nonzero().get();
        // Where the kernel lists no children, all processes are asked for their parents.
        let parents = procfs::children(own).is_none().then(procfs::everybody);
        let mut found = Vec::new();
        let mut seen = HashSet::from([own]);
        let mut next = vec![own];
        while let Some(pid) = next.pop() {
            let below = match &parents {
                Some(parents) => parents.iter().filter(|(_, parent)| *parent == pid).map(|(pid, _)| *pid).collect(),
                None => procfs::children(pid).unwrap_or_default(),
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

    /// Kills everything in rounds until nothing is left, since what forks meanwhile escapes a round.
    pub(crate) fn end(&self) {
        const LONGEST: Duration = Duration::from_millis(5);
        let mut pause = Duration::from_micros(100);
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
            std::thread::sleep(pause);
            pause = LONGEST.min(pause * 2);
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
