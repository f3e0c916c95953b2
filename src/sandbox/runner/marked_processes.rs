//! The end of a script whose launcher can't see to it.
//!
//! Each process of a script carries a limit that limits nothing and that it can't change: by its number it is found,
//! whatever its parent is by now.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long it is tried: what is dead for the system goes when the system lets it.
const PATIENCE: Duration = Duration::from_secs(10);

/// A number that no other script has, and that no limit anywhere is.
pub(super) fn new() -> u64 {
    (1 << 40) + RandomState::new().hash_one(Instant::now()) % (1 << 60)
}

/// Kills all that carry the mark, in rounds until none is left. Waits for it.
pub(super) fn end(mark: u64) {
    let began = Instant::now();
    let mut pause = Duration::from_millis(1);
    while kill_round(mark) && began.elapsed() < PATIENCE {
        sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Returns whether there was anybody.
fn kill_round(mark: u64) -> bool {
    let mut found = false;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else {
            continue;
        };
        // Held before it is looked at: its number could become somebody else's.
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if carries(&entry.path(), mark) && is_alive(&entry.path()) {
            found = true;
            // It may be gone by now.
            let _ = pidfd_send_signal(&held, Signal::KILL);
        }
    }
    found
}

fn carries(process: &Path, mark: u64) -> bool {
    let Ok(limits) = fs::read_to_string(process.join("limits")) else { return false };
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"));
    line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok()) == Some(mark)
}

/// A dead one waits for its parent; but its first thread may be dead while others live.
fn is_alive(process: &Path) -> bool {
    let Ok(text) = fs::read_to_string(process.join("stat")) else { return false };
    let mut fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    let is_dead = fields.next().is_some_and(|state| matches!(state, "Z" | "X"));
    !is_dead || fields.nth(16).is_some_and(|threads| threads != "1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn who_carries_the_mark_is_ended_and_nobody_else() {
        let mark = new();
        let shell = |number: u64| {
            // A session of its own, and children.
            let text = format!("prlimit --rttime={number}:{number} --pid $$ && (sleep 60 & setsid sleep 60 & wait)");
            Command::new("sh").args(["-c", &text]).spawn().unwrap()
        };
        let (mut ours, mut other) = (shell(mark), shell(mark + 1));
        sleep(Duration::from_millis(300));
        end(mark);
        assert!(!kill_round(mark));
        assert!(!ours.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        end(mark + 1);
        other.wait().unwrap();
    }
}
