//! Processes and threads, as `/proc` shows them.

use std::fs;

/// The numbers that name entries of a folder.
pub(crate) fn numbers(folder: &str) -> impl Iterator<Item = i32> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The threads of a process. The first of them may be dead while others live.
pub(crate) fn threads(pid: i32) -> Vec<i32> {
    numbers(&format!("/proc/{pid}/task")).collect()
}

/// The threads of a process that have memory. One whose first thread has ended is found by the others; where they come
/// and go, it is asked again.
pub(crate) fn living_threads(pid: i32) -> Vec<i32> {
    const ATTEMPTS: usize = 8;
    for _ in 0..ATTEMPTS {
        let all = threads(pid);
        let living: Vec<i32> = all.iter().copied().filter(|thread| has_memory(*thread)).collect();
        if all.is_empty() || !living.is_empty() || all == [pid] {
            return living;
        }
    }
    Vec::new()
}

/// Whether a process or thread has memory. It has lost it once it is ending.
fn has_memory(thread: i32) -> bool {
    let pages = |text: String| text.split_ascii_whitespace().next()?.parse::<u64>().ok();
    fs::read_to_string(format!("/proc/{thread}/statm")).ok().and_then(pages).is_some_and(|pages| pages > 0)
}

/// A field of `status` or `smaps_rollup` that is an amount, in bytes.
pub(crate) fn amount(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes.saturating_mul(1024))
}

/// A field of `status` that is a number.
pub(crate) fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

pub(crate) struct Stat {
    pub(crate) state: u8,
    pub(crate) parent: i32,
    /// When it started, in ticks: with its number it names a process for good.
    pub(crate) start: u64,
    /// What the children took on the processor that it waited for, in ticks.
    pub(crate) waited_for: u64,
    /// The processor that it runs or ran on.
    pub(crate) processor: i32,
}

/// Of a process, or with `thread` of one of its threads.
pub(crate) fn stat(pid: i32, thread: Option<i32>) -> Option<Stat> {
    let path = match thread {
        Some(thread) => format!("/proc/{pid}/task/{thread}/stat"),
        None => format!("/proc/{pid}/stat"),
    };
    parse_stat(&fs::read_to_string(path).ok()?)
}

fn parse_stat(text: &str) -> Option<Stat> {
    // A name may hold anything, brackets too.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let at = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        start: at(19)?,
        waited_for: at(13)?.saturating_add(at(14)?),
        processor: fields.get(36)?.parse().ok()?,
    })
}

/// The children of all threads of a process; `None` where the kernel doesn't list them.
pub(crate) fn children(pid: i32) -> Option<Vec<i32>> {
    let lists = numbers(&format!("/proc/{pid}/task"))
        .map(|thread| fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")));
    let texts = lists.collect::<Result<Vec<_>, _>>().ok()?;
    Some(texts.iter().flat_map(|text| text.split_ascii_whitespace()).filter_map(|one| one.parse().ok()).collect())
}

/// Each process with its parent.
pub(crate) fn everybody() -> Vec<(i32, i32)> {
    numbers("/proc").filter_map(|pid| Some((pid, stat(pid, None)?.parent))).collect()
}

/// What two processes may have in common.
#[derive(Clone, Copy)]
pub(crate) enum Common {
    Memory = 1,
    Files = 2,
}

/// Whether two processes or threads have it in common. Where the system doesn't tell, they have not. Two that are ending
/// have nothing in common, although the system says so: neither has anything.
pub(crate) fn share(one: i32, other: i32, what: Common) -> bool {
    // SAFETY: takes plain numbers.
    let equal = unsafe { libc::syscall(libc::SYS_kcmp, one, other, what as libc::c_int, 0_usize, 0_usize) == 0 };
    equal && has_memory(one) && has_memory(other)
}

/// One thread of each table of open files in a process: threads may have tables of their own.
pub(crate) fn tables(pid: i32) -> Vec<i32> {
    let mut tables: Vec<i32> = Vec::new();
    for thread in living_threads(pid) {
        if !tables.iter().any(|other| share(*other, thread, Common::Files)) {
            tables.push(thread);
        }
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_shifts_no_field() {
        let text = "7 (a) b (c) R 3 7 7 0 -1 4194304 1 2 0 0 10 20 30 40 20 0 5 0 999 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 6 0";
        let stat = parse_stat(text).unwrap();
        assert_eq!((stat.state, stat.parent, stat.start, stat.waited_for), (b'R', 3, 999, 70));
        assert_eq!(stat.processor, 6);
    }

    #[test]
    fn amounts_are_bytes() {
        let text = "VmPTE:\t     116 kB\nRssAnon:\t    2048 kB\nThreads:\t3\n";
        assert_eq!(amount(text, "RssAnon:"), Some(2 << 20));
        assert_eq!(amount(text, "VmSwap:"), None);
        assert_eq!(number(text, "Threads:"), Some(3));
    }

    #[test]
    fn who_has_ended_shares_nothing() {
        let mut ended = [(); 2].map(|()| std::process::Command::new("true").spawn().unwrap());
        let pids = [&ended[0], &ended[1]].map(|child| i32::try_from(child.id()).unwrap());
        while pids.iter().any(|pid| stat(*pid, None).is_none_or(|stat| stat.state != b'Z')) {
            std::thread::yield_now();
        }
        assert!(!share(pids[0], pids[1], Common::Memory));
        assert!(living_threads(pids[0]).is_empty());
        for child in &mut ended {
            child.wait().unwrap();
        }
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert!(!living_threads(own).is_empty());
        assert_eq!(tables(own).len(), 1);
    }

    #[test]
    fn a_process_shares_all_with_itself() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert!(share(own, own, Common::Memory) && share(own, own, Common::Files));
        assert!(!share(own, 1, Common::Memory) || own == 1);
    }
}
