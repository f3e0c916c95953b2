//! Time on the processor, of all processes of a script together.
//!
//! The system adds the time of a process that ended to that of its parent only when the parent waits for it. A script
//! can keep from that, by children that nobody waits for. So a counter of the kernel's runs along in the script's process
//! and in all that descend from it. Where there may be none, those that are seen only a few times are counted as in a
//! sample: a process that is found at work is taken to have worked since the look before. What is lost between two looks by
//! one is made up for by another.

use crate::processes;
use crate::procfs;
use rustix::process::Pid;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::time::Instant;

/// Who was seen so often is known by the system's own count.
const OFTEN: u32 = 8;

pub(crate) struct Cpu {
    counter: Option<File>,
    tick_ms: u64,
    last: Instant,
    seen: HashMap<(i32, u64), Seen>,
    /// Of all that are gone, in nanoseconds.
    gone: u64,
    most_ms: u64,
    /// Threads that were at work or waited for a processor, of those that were looked at, and how many were at work:
    /// of late, in 64ths.
    runnable: u64,
    working: u64,
    /// Somebody came and went within a few looks.
    pub(crate) short_lived: bool,
}

struct Seen {
    own: u64,
    looks: u32,
    sampled: u64,
    now: bool,
}

impl Cpu {
    /// Of a process that has not begun yet.
    pub(crate) fn new(pid: Pid) -> Self {
        let tick_ms = 1000 / rustix::param::clock_ticks_per_second().clamp(1, 1000);
        Self {
            counter: counter(pid),
            tick_ms,
            last: Instant::now(),
            seen: HashMap::new(),
            gone: 0,
            most_ms: 0,
            runnable: 64,
            working: 64,
            short_lived: false,
        }
    }

    /// What all took so far, in milliseconds.
    pub(crate) fn used_ms(&mut self, living: &[i32]) -> u64 {
        if let Some(counted) = self.counter.as_mut().and_then(count) {
            return counted / 1_000_000;
        }
        let gap = u64::try_from(self.last.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last = Instant::now();
        let mut waited_for = 0;
        let mut sample = Sample::new(gap, self.runnable, self.working);
        for seen in self.seen.values_mut() {
            seen.now = false;
        }
        for pid in living {
            let Some(stat) = procfs::stat(*pid, None) else {
                // It ended since it was found, so that it was at work.
                if !self.seen.iter().any(|((seen, _), known)| seen == pid && known.looks >= OFTEN) {
                    self.gone += sample.likely;
                }
                continue;
            };
            waited_for += stat.waited_for.saturating_mul(self.tick_ms);
            let own = own_time(*pid).unwrap_or(0);
            let seen = self.seen.entry((*pid, stat.start)).or_insert(Seen { own, looks: 0, sampled: 0, now: true });
            (seen.now, seen.own) = (true, seen.own.max(own));
            seen.looks = seen.looks.saturating_add(1);
            if seen.looks <= OFTEN {
                seen.sampled = seen.sampled.saturating_add(sample.of(*pid));
            }
        }
        self.short_lived = false;
        if sample.runnable > 0 {
            self.runnable = self.runnable - self.runnable / 8 + sample.runnable * 8;
            self.working = self.working - self.working / 8 + sample.working * 8;
        }
        let (mut own, mut gone) = (0, self.gone);
        self.seen.retain(|_, seen| {
            if seen.now {
                own += seen.own;
            } else {
                // A look comes rather when somebody rests than when all are at work: a sample is too small by some.
                gone += if seen.looks < OFTEN { seen.sampled / 5 * 6 } else { seen.own };
                self.short_lived |= seen.looks < OFTEN;
            }
            seen.now
        });
        self.gone = gone;
        let ended = (waited_for + processes::ended_cpu_ms()).max(gone / 1_000_000);
        self.most_ms = self.most_ms.max(own / 1_000_000 + ended);
        self.most_ms
    }
}

/// What a process and all that will descend from it take, counted by the kernel. `None` where it may not be asked for.
fn counter(pid: Pid) -> Option<File> {
    // `PERF_TYPE_SOFTWARE`, the size of the first form of the attributes, and `PERF_COUNT_SW_TASK_CLOCK`.
    const KIND: u32 = 1;
    const SIZE: u32 = 64;
    const CLOCK: u64 = 1;
    // For those that it starts too; without what the kernel and what is below it does, which this clock counts anyway.
    const INHERITED: u64 = 1 << 1;
    const NOT_OF_KERNEL: u64 = 1 << 5 | 1 << 6;
    const CLOSED_ON_EXEC: libc::c_ulong = 1 << 3;
    #[repr(C)]
    struct Attributes {
        kind: u32,
        size: u32,
        config: u64,
        rest: [u64; 3],
        flags: u64,
        more: [u64; 2],
    }
    const {
        assert!(size_of::<Attributes>() == SIZE as usize);
    };
    let flags = INHERITED | NOT_OF_KERNEL;
    let wanted = Attributes { kind: KIND, size: SIZE, config: CLOCK, rest: [0; 3], flags, more: [0; 2] };
    let (pid, anywhere, no_group) = (pid.as_raw_nonzero().get(), -1, -1);
    // SAFETY: the structure has the size that it tells, and lives until the call returns.
    let answer =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const wanted, pid, anywhere, no_group, CLOSED_ON_EXEC) };
    let descriptor = i32::try_from(answer).ok().filter(|descriptor| *descriptor >= 0)?;
    // SAFETY: the call has just made it, and nobody else knows it.
    Some(unsafe { File::from_raw_fd(descriptor) })
}

fn count(counter: &mut File) -> Option<u64> {
    let mut bytes = [0; 8];
    counter.read_exact(&mut bytes).ok()?;
    Some(u64::from_ne_bytes(bytes))
}

/// Who is at work now is taken to have worked since the look before.
struct Sample {
    gap: u64,
    /// What of the gap somebody is likely to have worked of whom it isn't known.
    likely: u64,
    /// The processor that the look itself takes from somebody; not any more, when somebody was found for it.
    taken: Option<i32>,
    displaced: u64,
    runnable: u64,
    working: u64,
}

impl Sample {
    fn new(gap: u64, runnable: u64, working: u64) -> Self {
        // SAFETY: takes nothing and returns a number.
        let taken = Some(unsafe { libc::sched_getcpu() });
        // Whoever looks is one of them.
        let others = runnable_anywhere().unwrap_or(1).saturating_sub(1).max(1);
        let displaced = gap.saturating_mul((runnable / 64).clamp(1, others)) / others;
        let likely = gap.saturating_mul(working.min(runnable)) / runnable.max(1);
        Self { gap, likely, taken, displaced, runnable: 0, working: 0 }
    }

    fn of(&mut self, pid: i32) -> u64 {
        let mut worked = 0;
        for thread in procfs::threads(pid) {
            let Some(stat) = procfs::stat(pid, Some(thread)) else {
                worked += self.likely;
                continue;
            };
            if stat.state != b'R' {
                continue;
            }
            self.runnable += 1;
            // It came to a processor once more often than it left one. Where that is not told, it is taken for working.
            if times_scheduled(pid, thread).zip(times_descheduled(pid, thread)).is_none_or(|(came, left)| came > left) {
                self.working += 1;
                worked += self.gap;
            } else if self.taken.take_if(|taken| *taken == stat.processor).is_some() {
                self.working += 1;
                worked += self.displaced;
            }
        }
        worked
    }
}

/// How many threads of the machine are at work or wait for a processor.
fn runnable_anywhere() -> Option<u64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

fn times_scheduled(pid: i32, thread: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
    text.split_ascii_whitespace().nth(2)?.parse().ok()
}

fn times_descheduled(pid: i32, thread: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).ok()?;
    let left = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"].map(|name| procfs::number(&text, name));
    Some(left[0]? + left[1]?)
}

/// What a process took itself, with all of its threads, in nanoseconds.
pub(crate) fn own_time(pid: i32) -> Option<u64> {
    const SCHEDULED: libc::clockid_t = 2;
    let clock = (!pid).wrapping_shl(3) | SCHEDULED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives until the call returns; a clock of nobody is an error.
    let answer = unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    (answer == 0)
        .then(|| seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_that_nobody_waits_for_are_counted() {
        let mut shell = std::process::Command::new("sh");
        let mut shell = shell
            .args(["-c", "sleep 0.2; (i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done) & exit"])
            .spawn()
            .unwrap();
        let counted = counter(Pid::from_child(&shell));
        shell.wait().unwrap();
        // Where it may not be asked for, there is nothing to look at.
        let Some(mut counter) = counted else { return };
        let began = Instant::now();
        while count(&mut counter).unwrap() < 20_000_000 && began.elapsed().as_secs() < 30 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(count(&mut counter).unwrap() >= 20_000_000);
    }

    #[test]
    fn the_time_of_a_process_is_told_to_the_nanosecond() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let before = own_time(own).unwrap();
        let began = Instant::now();
        while began.elapsed().as_millis() < 20 {
            std::hint::spin_loop();
        }
        assert!(own_time(own).unwrap() > before + 1_000_000);
        assert_eq!(own_time(i32::MAX - 1), None);
    }
}
