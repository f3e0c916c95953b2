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

/// Whether two processes or threads have it in common. Where the system doesn't tell, they have not.
pub(crate) fn share(one: i32, other: i32, what: Common) -> bool {
    // SAFETY: takes plain numbers.
    unsafe { libc::syscall(libc::SYS_kcmp, one, other, what as libc::c_int, 0_usize, 0_usize) == 0 }
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
    fn a_process_shares_all_with_itself() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert!(share(own, own, Common::Memory) && share(own, own, Common::Files));
        assert!(!share(own, 1, Common::Memory) || own == 1);
    }
}
