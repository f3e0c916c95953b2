//! The script's own process, from its birth to the moment its program begins.

use crate::control_group::ControlGroup;
use crate::setup_error::{At, SetupError};
use crate::wire::{Bounds, LaunchRequest, Profile};
use crate::{landlock_rules, mounts, privilege, seccomp};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, pidfd_open, set_parent_process_death_signal, setrlimit, setsid,
};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const STAGE: &str = "the script's process";
/// Signals that wait, and timers of `timer_create`.
const SIGNALS: u64 = 256;

/// A message from the script's process before its program begins.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// The layers that hold, and whether its control group does.
    Ready(Vec<String>, bool),
    Fault {
        stage: String,
        errno: i32,
        message: String,
    },
}

pub(crate) struct ScriptProcess {
    pub(crate) pid: Pid,
    /// Readable when it has ended.
    pub(crate) ended: OwnedFd,
    /// Its words. At its end once the program has begun, or couldn't.
    pub(crate) words: OwnedFd,
    /// A byte here lets the program begin.
    pub(crate) gate: OwnedFd,
}

impl ScriptProcess {
    /// Forks. The child builds the rest of the sandbox around itself, reports it, and waits at the gate.
    pub(crate) fn start(
        request: &LaunchRequest,
        stdin: Option<OwnedFd>,
        group: Option<&ControlGroup>,
    ) -> Result<Self, SetupError> {
        let (words, telling) = pipe_with(PipeFlags::CLOEXEC).at(STAGE)?;
        let (waiting, gate) = pipe_with(PipeFlags::CLOEXEC).at(STAGE)?;
        // What is slow and no part of the box, the parent does: the child counts as the script's.
        let processes = processes_at_most(request);
        // SAFETY: this process has one thread, so that the child may do anything that its parent may.
        match unsafe { libc::fork() } {
            -1 => Err(SetupError::last(STAGE)),
            0 => {
                drop((words, gate));
                // Before it has any memory of its own. Where it may not, the launcher counts.
                let grouped = group.is_some_and(ControlGroup::enter);
                let fault = match become_payload(request, stdin, &Held { processes, grouped }, &telling, &waiting) {
                    Ok(never) => match never {},
                    Err(fault) => fault,
                };
                let errno = fault.cause.raw_os_error().unwrap_or(0);
                tell(
                    &telling,
                    &Word::Fault { stage: fault.stage.into_owned(), errno, message: fault.cause.to_string() },
                );
                // SAFETY: ends the child at once; nothing of the parent's is to be run or flushed.
                unsafe { libc::_exit(125) }
            }
            raw => {
                let pid = Pid::from_raw(raw).ok_or_else(|| SetupError::new(STAGE, "it has no number"))?;
                let ended = pidfd_open(pid, PidfdFlags::empty()).at(STAGE)?;
                Ok(Self { pid, ended, words, gate })
            }
        }
    }
}

fn tell(telling: &OwnedFd, word: &Word) {
    if let Ok(mut line) = serde_json::to_vec(word) {
        line.push(b'\n');
        // Short enough for the pipe; where nobody reads, there is nobody to be told.
        let _ = rustix::io::write(telling, &line);
    }
}

/// How its amounts are limited.
struct Held {
    processes: u64,
    grouped: bool,
}

enum Never {}

fn become_payload(
    request: &LaunchRequest,
    stdin: Option<OwnedFd>,
    held: &Held,
    telling: &OwnedFd,
    waiting: &OwnedFd,
) -> Result<Never, SetupError> {
    setsid().at(STAGE)?;
    privilege::wake_at_once(false);
    let stdin = match stdin {
        Some(given) => given,
        None => open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).at("opening /dev/null")?,
    };
    rustix::stdio::dup2_stdin(stdin).at(STAGE)?;
    if let Some(folder) = request.writable.first() {
        rustix::process::chdir(folder).at("entering the script's folder")?;
    }
    limit(&request.bounds, held.processes, request.mark)?;
    // Where the machine runs out of memory, it is the script's that is wanted back. Where that can't be said, it isn't.
    let _ = fs::write("/proc/self/oom_score_adj", "800");
    privilege::drop_all(request)?;
    // After the change of the user, which undoes it. Where the launcher is gone already, the gate is closed.
    set_parent_process_death_signal(Some(Signal::KILL)).at(STAGE)?;
    let mut layers = match request.profile {
        Profile::Unconfined => Vec::new(),
        Profile::Isolated | Profile::Restricted => {
            let version = landlock_rules::confine(request)?;
            seccomp::apply(request)?;
            measured(request, version)?
        }
    };
    layers.push(if held.grouped { "memory limit by cgroup" } else { "memory limit by polling" }.to_owned());
    tell(telling, &Word::Ready(layers, held.grouped));
    loop {
        match rustix::io::read(waiting, &mut [0; 1]) {
            Ok(1) => break,
            Err(Errno::INTR) => {}
            _ => return Err(SetupError::new(STAGE, "it was never let go")),
        }
    }
    let Some((program, arguments)) = request.command.split_first() else {
        return Err(SetupError::new(STAGE, "no program was named"));
    };
    let environment = request.environment.iter().map(|(name, value)| (name, value));
    let cause = Command::new(program).args(arguments).env_clear().envs(environment).exec();
    Err(SetupError { stage: "starting the interpreter".into(), cause })
}

fn limit(bounds: &Bounds, processes: u64, mark: u64) -> Result<(), SetupError> {
    let same = |amount| (amount, amount);
    for (resource, (soft, hard)) in [
        (Resource::Core, same(0)),
        (Resource::Cpu, (bounds.cpu_seconds, bounds.cpu_seconds.saturating_add(1))),
        (Resource::Data, same(bounds.memory_bytes)),
        // Interpreters reserve much more than they use; but the tables of what is reserved take memory too.
        (Resource::As, same(bounds.memory_bytes.saturating_mul(64))),
        (Resource::Fsize, same(bounds.disk_bytes)),
        (Resource::Nofile, same(bounds.files)),
        (Resource::Nproc, same(processes)),
        (Resource::Memlock, same(0)),
        (Resource::Msgqueue, same(0)),
        // Signals that wait and timers are counted for the user, in all processes together.
        (Resource::Sigpending, same(SIGNALS)),
        // It limits nothing here: the script's processes are known by it, whatever becomes of the launcher.
        (Resource::Rttime, same(mark)),
    ] {
        let held = rustix::process::getrlimit(resource);
        // What is limited more already stays so.
        let at_most = |amount: u64, held: Option<u64>| Some(held.map_or(amount, |held| held.min(amount)));
        let limit = Rlimit { current: at_most(soft, held.maximum), maximum: at_most(hard, held.maximum) };
        setrlimit(resource, limit).at("setting limits")?;
    }
    Ok(())
}

/// The system counts all processes of a user. In a user namespace, or as a user of its own, the script starts at none;
/// else it gets as many on top of those that are there.
fn processes_at_most(request: &LaunchRequest) -> u64 {
    let own = request.bounds.processes;
    if request.user.is_some() || mounts::apart(request, "user") {
        // The launcher is one of them.
        return own.saturating_add(u64::from(request.user.is_none()));
    }
    own.saturating_add(threads_of(rustix::process::getuid().as_raw()))
}

fn threads_of(user: u32) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit())))
        .filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.uid() == user))
        .map(|entry| fs::metadata(entry.path().join("task")).map_or(1, |task| task.nlink().saturating_sub(2)))
        .sum()
}

/// The layers that hold now, as the system reports them. A missing one is an error.
fn measured(request: &LaunchRequest, landlock: i32) -> Result<Vec<String>, SetupError> {
    const STAGE: &str = "measuring the box";
    let mut layers = Vec::new();
    if request.profile == Profile::Isolated {
        let spaces = [
            ("user", "user namespace"),
            ("mnt", "mount namespace"),
            ("pid", "pid namespace"),
            ("net", "network namespace"),
            ("ipc", "ipc namespace"),
            ("uts", "uts namespace"),
            ("cgroup", "cgroup namespace"),
        ];
        layers.extend(
            spaces.iter().filter(|(kind, _)| mounts::apart(request, kind)).map(|(_, words)| (*words).to_owned()),
        );
    }
    layers.push(format!("landlock {landlock}"));
    let mode = rustix::thread::secure_computing_mode().at(STAGE)?;
    if mode != rustix::thread::SecureComputingMode::Filter {
        return Err(SetupError::new(STAGE, "no filter of system calls holds"));
    }
    layers.push("seccomp".to_owned());
    if !rustix::thread::no_new_privs().at(STAGE)? {
        return Err(SetupError::new(STAGE, "privileges could be gained"));
    }
    layers.push("no new privileges".to_owned());
    if !privilege::has_none() {
        return Err(SetupError::new(STAGE, "capabilities are left"));
    }
    layers.push("no capabilities".to_owned());
    if let Some(user) = request.user {
        if rustix::process::getuid().as_raw() != user {
            return Err(SetupError::new(STAGE, "it is still the same user"));
        }
        layers.push("another user".to_owned());
    }
    if Path::new(".").metadata().is_err() {
        return Err(SetupError { stage: STAGE.into(), cause: io::Error::last_os_error() });
    }
    Ok(layers)
}
