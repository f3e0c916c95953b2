//! A program in a user namespace in which everybody is who they are.
//!
//! bubblewrap makes one with one user in it. Root's scripts are run by somebody else, who must be known there too.

use crate::setup_error::{At, SetupError};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, getpid, waitpid};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

const STAGE: &str = "the user namespace";

/// Becomes the program. Returns only why it couldn't.
pub(crate) fn exec(mut command: impl Iterator<Item = OsString>) -> SetupError {
    let Some(program) = command.next() else { return SetupError::new(STAGE, "no program was named") };
    match unshare_users() {
        Ok(()) => SetupError { stage: "bubblewrap".into(), cause: Command::new(program).args(command).exec() },
        Err(fault) => fault,
    }
}

fn unshare_users() -> Result<(), SetupError> {
    let own = getpid().as_raw_nonzero();
    let (waiting, gate) = pipe_with(PipeFlags::CLOEXEC).at(STAGE)?;
    // Who is who there can be said from outside only.
    // SAFETY: this process has one thread, so that the child may do anything that its parent may.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(SetupError::last(STAGE)),
        0 => {
            drop(gate);
            let named = match rustix::io::read(&waiting, &mut [0; 1]) {
                Ok(1) => ["uid_map", "gid_map"].iter().try_for_each(|map| {
                    let known = fs::read_to_string(format!("/proc/self/{map}"))?;
                    fs::write(format!("/proc/{own}/{map}"), same(&known))
                }),
                _ => Ok(()),
            };
            let code = named.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
            // SAFETY: ends the child at once; nothing of the parent's is to be run or flushed.
            unsafe { libc::_exit(code) }
        }
        raw => Pid::from_raw(raw).ok_or_else(|| SetupError::new(STAGE, "a process has no number"))?,
    };
    drop(waiting);
    // SAFETY: the process has one thread, and shares its file system with nobody.
    let unshared = if unsafe { libc::unshare(libc::CLONE_NEWUSER) } == 0 {
        rustix::io::write(&gate, &[1]).map(drop).at(STAGE)
    } else {
        Err(SetupError::last(STAGE))
    };
    drop(gate);
    let ended = waitpid(Some(child), WaitOptions::empty()).at(STAGE)?;
    unshared?;
    match ended.and_then(|(_, status)| status.exit_status()) {
        Some(0) => Ok(()),
        code => Err(SetupError { stage: STAGE.into(), cause: io::Error::from_raw_os_error(code.unwrap_or(libc::EIO)) }),
    }
}

/// A map of users as they are known here, each to themselves.
fn same(known: &str) -> String {
    let line = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (first, _, count) = (fields.next()?, fields.next()?, fields.next()?);
        Some(format!("{first} {first} {count}\n"))
    };
    known.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_who_is_known_stays_who_they_are() {
        assert_eq!(same("         0          0 4294967295\n"), "0 0 4294967295\n");
        assert_eq!(same("0 1000 1\n1 100000 65536\n"), "0 0 1\n1 1 65536\n");
    }
}
