//! Keeps a script's limits until it ends.

use crate::channel::Channel;
use crate::cpu::{self, Cpu};
use crate::disk::Disk;
use crate::fault::{At, Fault};
use crate::memory::Memory;
use crate::payload::{Payload, Word};
use crate::tree::{self, Tree};
use crate::wire::{Instruction, Order, Profile, Report};
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

pub(crate) struct Watch<'a> {
    channel: &'a mut Channel,
    order: &'a Order,
    payload: Payload,
    tree: Tree,
    cpu: Cpu,
    memory: Memory,
    disk: Disk,
    /// When the limits are looked at next.
    due: Instant,
    /// Its program has begun.
    began: bool,
    peak: u64,
    cpu_ms: u64,
    warned: Vec<&'static str>,
    limit: Option<&'static str>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(channel: &'a mut Channel, order: &'a Order, payload: Payload) -> Result<Self, Fault> {
        let bounds = &order.bounds;
        // What is limited by a file system of its own needs no counting, but it is in memory.
        let (in_memory, counted) = match order.profile {
            Profile::Isolated => {
                (order.writable.first().cloned().into_iter().chain([PathBuf::from("/dev/shm")]).collect(), Vec::new())
            }
            Profile::Restricted | Profile::Unconfined => (Vec::new(), order.writable.clone()),
        };
        let mut watch = Self {
            channel,
            order,
            tree: Tree::new(),
            cpu: Cpu::new(payload.pid),
            memory: Memory::new(bounds.memory_bytes, in_memory),
            disk: Disk::new(bounds.disk_bytes, bounds.disk_files, &counted),
            due: Instant::now(),
            payload,
            began: false,
            peak: 0,
            cpu_ms: 0,
            warned: Vec::new(),
            limit: None,
        };
        match watch.word() {
            Some(Word::Ready(layers)) => watch.channel.send(&Report::Ready { layers }, None)?,
            other => return Err(watch.failed(other)),
        }
        Ok(watch)
    }

    /// Lets the program begin when the runner says so, and returns when it and all that it started has ended.
    pub(crate) fn until_the_end(mut self) -> Result<(), Fault> {
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
            tree::reap_all_but(self.payload.pid);
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

    fn failed(&mut self, word: Option<Word>) -> Fault {
        self.tree.end();
        match word {
            Some(Word::Fault { stage, errno, message }) => {
                let cause =
                    if errno == 0 { std::io::Error::other(message) } else { std::io::Error::from_raw_os_error(errno) };
                Fault { stage: stage.into(), cause }
            }
            _ => Fault::new(STAGE, "the script's process ended before its program began"),
        }
    }

    fn open_gate(&mut self) -> Result<(), Fault> {
        if self.began {
            return Ok(());
        }
        if rustix::io::write(&self.payload.gate, &[1]).is_ok() {
            // The pipe closes with the program's start: what comes instead is why it didn't.
            if let Some(word) = self.word() {
                return Err(self.failed(Some(word)));
            }
        }
        self.began = true;
        Ok(())
    }

    /// Looks at the limits. Returns whether one is reached.
    fn is_over(&mut self) -> bool {
        let began = cpu::own_time(0);
        let living = self.tree.living();
        let bounds = &self.order.bounds;
        let memory = self.memory.used(&living);
        self.peak = self.peak.max(memory);
        self.cpu_ms = self.cpu.used_ms(&living);
        let disk = self.disk.used(&living);
        let period = if self.cpu.short_lived { SHORT_PERIOD_MS } else { PERIOD_MS };
        let period = Duration::from_millis(self.memory.patience_ms().clamp(SHORTEST_MS, period));
        // What it took itself, however long it had to wait for a processor.
        let took = cpu::own_time(0).zip(began).map_or(0, |(now, began)| now.saturating_sub(began));
        self.due = Instant::now() + period.max(Duration::from_nanos(took) * SHARE);
        for (name, used, most) in [
            ("memory", memory, bounds.memory_bytes),
            ("disk", disk, bounds.disk_bytes),
            ("cpu", self.cpu_ms, bounds.cpu_seconds.saturating_mul(1000)),
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

    /// Ends all processes and tells how the script ended.
    fn end(self) -> Result<(), Fault> {
        // Its own end first, where it has come: in the rounds it would be lost.
        let own = waitpid(Some(self.payload.pid), WaitOptions::NOHANG).ok().flatten();
        let own = own.or_else(|| {
            let _ = rustix::process::kill_process(self.payload.pid, rustix::process::Signal::KILL);
            waitpid(Some(self.payload.pid), WaitOptions::empty()).ok().flatten()
        });
        self.tree.end();
        let status = own.map(|(_, status)| status);
        let report = Report::End {
            exit: status.and_then(rustix::process::WaitStatus::exit_status),
            signal: status.and_then(rustix::process::WaitStatus::terminating_signal),
            limit: self.limit.map(str::to_owned),
            cpu_ms: self.cpu_ms.max(tree::ended_cpu_ms()),
            max_rss: self.peak.max(tree::largest_ended()),
        };
        self.channel.send(&report, None)
    }
}
