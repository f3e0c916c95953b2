//! The control group of a script, where the runner has made one: the kernel itself keeps its limits.

use crate::wire::GROUP_FILES;
use rustix::io::pread;
use std::os::fd::OwnedFd;

/// Its files, as the runner has opened them: only so may a process of another namespace use them.
pub(crate) struct ControlGroup {
    processes: OwnedFd,
    memory: OwnedFd,
    events: OwnedFd,
}

impl ControlGroup {
    /// Takes its files from the end of what came with the order.
    pub(crate) fn take(descriptors: &mut Vec<OwnedFd>) -> Option<Self> {
        let first = descriptors.len().checked_sub(GROUP_FILES.len())?;
        let [processes, memory, events] = <[OwnedFd; 3]>::try_from(descriptors.split_off(first)).ok()?;
        Some(Self { processes, memory, events })
    }

    /// Moves this process into it. Returns whether that could be done.
    pub(crate) fn enter(&self) -> bool {
        rustix::io::write(&self.processes, b"0").is_ok()
    }

    /// What is used and can't be taken back, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let text = text(&self.memory);
        ["anon ", "shmem ", "kernel "].iter().filter_map(|name| number(&text, name)).sum()
    }

    /// Whether the kernel has killed it for its memory.
    pub(crate) fn is_over(&self) -> bool {
        number(&text(&self.events), "oom_kill ").is_some_and(|count| count > 0)
    }
}

fn text(file: &OwnedFd) -> String {
    let mut bytes = vec![0; 16_384];
    // A group that is gone holds nothing.
    let count = pread(file, &mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()).into_owned()
}

fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(text: &str) -> OwnedFd {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.into()
    }

    #[test]
    fn its_files_are_the_last_ones() {
        let stat = "anon 4096\nfile 900000\nkernel 8192\nshmem 100\nanon_thp 7\n";
        let mut descriptors = vec![file("stdin"), file(""), file(stat), file("oom 3\noom_kill 2\n")];
        let group = ControlGroup::take(&mut descriptors).unwrap();
        assert_eq!(descriptors.len(), 1);
        assert_eq!(group.memory(), 4096 + 8192 + 100);
        assert!(group.is_over() && group.enter());
        assert!(ControlGroup::take(&mut descriptors).is_none());
        assert_eq!(descriptors.len(), 1);
    }
}
