//! Keeps a script's limits until it ends.

use crate::channel::Channel;
use crate::control_group::ControlGroup;
use crate::cpu::{self, Cpu};
use crate::descriptors::{Descriptors, MOST_ENTRIES};
use crate::disk::Disk;
use crate::memory::Memory;
use crate::processes::{self, Processes};
use crate::script_process::{ScriptProcess, Word};
use crate::setup_error::{At, SetupError};
use crate::wire::{Instruction, LaunchRequest, Profile, Report};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{WaitOptions, waitpid};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const STAGE: &str = "watching the script";
/// How often its limits are looked at, in milliseconds; where one is near, or processes come and go quickly; at most.
const PERIOD_MS: u64 = 25;
const SHORT_PERIOD_MS: u64 = 5;
const SHORTEST_MS: u64 = 2;
/// Of the time, at most a fourth is spent on looking.
const SHARE: u32 = 3;

pub(crate) struct Supervisor<'a> {
    channel: &'a mut Channel,
    request: &'a LaunchRequest,
    payload: ScriptProcess,
    processes: Processes,
    cpu: Cpu,
    memory: Memory,
    disk: Disk,
    descriptors: Descriptors,
    /// Where there is one, the kernel keeps the limit of memory.
    group: Option<ControlGroup>,
    /// When the limits are looked at next.
    due: Instant,
    /// Its program has begun.
    began: bool,
    usage: Usage,
    warned: Vec<&'static str>,
    limit: Option<&'static str>,
}

/// The most memory, in bytes, and the processor time of the script's processes so far.
#[derive(Default)]
struct Usage {
    peak: u64,
    cpu_ms: u64,
}

impl<'a> Supervisor<'a> {
    pub(crate) fn new(
        channel: &'a mut Channel,
        request: &'a LaunchRequest,
        payload: ScriptProcess,
        group: Option<ControlGroup>,
    ) -> Result<Self, SetupError> {
        let bounds = &request.bounds;
        // What is limited by a file system of its own needs no counting, but it is in memory.
        let (in_memory, counted) = match request.profile {
            Profile::Isolated => {
                (request.writable.first().cloned().into_iter().chain([PathBuf::from("/dev/shm")]).collect(), Vec::new())
            }
            Profile::Restricted | Profile::Unconfined => (Vec::new(), request.writable.clone()),
        };
        let descriptors = Descriptors::new(std::os::fd::AsFd::as_fd(&*channel));
        let mut supervisor = Self {
            channel,
            request,
            processes: Processes::new(),
            cpu: Cpu::new(payload.pid),
            memory: Memory::new(bounds.memory_bytes, in_memory),
            disk: Disk::new(bounds.disk_bytes, bounds.disk_files, &counted),
            descriptors,
            group,
            due: Instant::now(),
            payload,
            began: false,
            usage: Usage::default(),
            warned: Vec::new(),
            limit: None,
        };
        match supervisor.word() {
            Some(Word::Ready(layers, grouped)) => {
                supervisor.group = supervisor.group.take_if(|_| grouped);
                supervisor.channel.send(&Report::Ready { layers }, None)?;
            }
            other => return Err(supervisor.fail(other)),
        }
        Ok(supervisor)
    }

    /// Lets the program begin when the runner says so, and returns when it and all that it started has ended.
    pub(crate) fn until_the_end(mut self) -> Result<(), SetupError> {
        loop {
            let mut fds = [
                PollFd::new(&self.payload.ended, PollFlags::IN),
                PollFd::from_borrowed_fd(std::os::fd::AsFd::as_fd(&*self.channel), PollFlags::IN),
            ];
            let wait =
                if self.began { self.due.saturating_duration_since(Instant::now()) } else { Duration::from_secs(1) };
            match poll(&mut fds, Timespec::try_from(wait).ok().as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno).at(STAGE),
            }
            let ended = !fds[0].revents().is_empty();
            let told = !fds[1].revents().is_empty();
            if ended {
                return self.end();
            }
            if told {
                for instruction in self.channel.instructions()? {
                    match instruction {
                        Instruction::Go => self.open_gate()?,
                        Instruction::Stop => return self.end(),
                    }
                }
            }
            processes::reap_all_but(self.payload.pid);
            if self.began && Instant::now() >= self.due && self.is_over() {
                return self.end();
            }
        }
    }

    /// What the script's process says, or `None` once its program has begun or it is gone.
    fn word(&mut self) -> Option<Word> {
        let mut line = Vec::new();
        let mut bytes = [0; 4096];
        loop {
            match rustix::io::read(&self.payload.words, &mut bytes) {
                Ok(0) => break,
                Ok(count) => line.extend(bytes.get(..count).unwrap_or_default()),
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
            if line.ends_with(b"\n") {
                break;
            }
        }
        serde_json::from_slice(&line).ok()
    }

    fn fail(&mut self, word: Option<Word>) -> SetupError {
        self.processes.end();
        match word {
            Some(Word::Fault { stage, errno, message }) => {
                let cause =
                    if errno == 0 { std::io::Error::other(message) } else { std::io::Error::from_raw_os_error(errno) };
                SetupError { stage: stage.into(), cause }
            }
            _ => SetupError::new(STAGE, "the script's process ended before its program began"),
        }
    }

    fn open_gate(&mut self) -> Result<(), SetupError> {
        if self.began {
            return Ok(());
        }
        if rustix::io::write(&self.payload.gate, &[1]).is_ok() {
            // The pipe closes with the program's start: what comes instead is why it didn't.
            if let Some(word) = self.word() {
                return Err(self.fail(Some(word)));
            }
        }
        self.began = true;
        Ok(())
    }

    /// Looks at the limits. Returns whether one is reached.
    fn is_over(&mut self) -> bool {
        let began = cpu::own_time(0);
        let living = self.processes.living();
        let bounds = &self.request.bounds;
        let held = self.descriptors.held(&living);
        let memory = match &self.group {
            _ if held.entries > MOST_ENTRIES => u64::MAX,
            // What the kernel keeps needs no counting, but for whoever is warned.
            Some(group) => group.memory().min(bounds.memory_bytes),
            None => self.memory.used(&living, held.bytes),
        };
        if memory < u64::MAX {
            self.usage.peak = self.usage.peak.max(memory);
        }
        self.usage.cpu_ms = self.cpu.used_ms(&living);
        let disk = self.disk.used(&living);
        let period = if self.cpu.short_lived { SHORT_PERIOD_MS } else { PERIOD_MS };
        let patience = if self.group.is_some() { period } else { self.memory.patience_ms() };
        let period = Duration::from_millis(patience.clamp(SHORTEST_MS, period));
        // What it took itself, however long it had to wait for a processor.
        let took = cpu::own_time(0).zip(began).map_or(0, |(now, began)| now.saturating_sub(began));
        self.due = Instant::now() + period.max(Duration::from_nanos(took) * SHARE);
        for (name, used, most) in [
            ("memory", memory, bounds.memory_bytes),
            ("disk", disk, bounds.disk_bytes),
            ("cpu", self.usage.cpu_ms, bounds.cpu_seconds.saturating_mul(1000)),
        ] {
            if used > most {
                self.limit = Some(name);
                return true;
            }
            if used > most / 5 * 4 && !self.warned.contains(&name) {
                self.warned.push(name);
                // Where the runner is gone, the next look at its socket tells.
                let _ = self.channel.send(&Report::Warning { limit: name.to_owned() }, None);
            }
        }
        false
    }

    /// Ends all processes and reports how the script ended.
    fn end(self) -> Result<(), SetupError> {
        // Its own end first, where it has come: in the rounds it would be lost.
        let own = waitpid(Some(self.payload.pid), WaitOptions::NOHANG).ok().flatten();
        let own = own.or_else(|| {
            let _ = rustix::process::kill_process(self.payload.pid, rustix::process::Signal::KILL);
            waitpid(Some(self.payload.pid), WaitOptions::empty()).ok().flatten()
        });
        self.processes.end();
        let status = own.map(|(_, status)| status);
        let killed = self.group.as_ref().is_some_and(ControlGroup::is_over);
        let report = Report::End {
            exit: status.and_then(rustix::process::WaitStatus::exit_status),
            signal: status.and_then(rustix::process::WaitStatus::terminating_signal),
            limit: self.limit.or(killed.then_some("memory")).map(str::to_owned),
            cpu_ms: self.usage.cpu_ms.max(processes::ended_cpu_ms()),
            max_rss: self.usage.peak.max(processes::largest_ended()),
        };
        self.channel.send(&report, None)
    }
}
