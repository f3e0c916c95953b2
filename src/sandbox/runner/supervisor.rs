//! The course of one script, from its start to its result.

use super::super::event::{Artifact, Event, Isolation, Outcome, Status};
use super::super::job::{Answer, EventSender};
use super::super::wire::{Instruction, Profile, Report};
use super::artifacts::Taking;
use super::folder;
use super::launch_spec::{LaunchSpec, Program};
use super::launcher_process::LauncherProcess;
use super::marked_processes;
use super::output_stream::OutputStream;
use super::probe::{self, Unavailable, explain_silence};
use super::prompts::{Prompt, Prompts};
use super::request::Request;
use super::session_files::FolderCopy;
use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// The folder of the files that a script is given.
const INPUT: &CStr = c"in";
/// How long the launcher may take to end everything.
const GRACE: Duration = Duration::from_secs(2);
/// How long it may take until the box stands.
const START: Duration = Duration::from_secs(30);

/// Runs a script and returns the last event.
pub(super) async fn run(request: &Request, profile: Profile, events: &mut EventSender) -> Event {
    match ScriptRun::start(request, profile).await {
        Ok(mut script_run) => script_run.run(events).await.unwrap_or_else(Into::into),
        Err(missing) => missing.into(),
    }
}

struct ScriptRun<'a> {
    request: &'a Request,
    profile: Profile,
    spec: LaunchSpec,
    launcher: LauncherProcess,
    work: Option<Arc<OwnedFd>>,
    layers: Vec<String>,
    input: Input,
    output: Output,
    time: Time,
}

/// The prompts of an interactive script.
struct Input {
    prompts: Option<Prompts>,
    /// The prompt that waits for an answer: its number, and since when.
    open: Option<(u64, Instant)>,
    asked: u64,
}

struct Output {
    stdout: OutputStream,
    stderr: OutputStream,
    /// The warning that most of the limit is used up was sent.
    warned: bool,
}

/// When the script began, and when it must end.
struct Time {
    began: Option<Instant>,
    /// When it has taken too long. Put off while it waits for an answer.
    deadline: Option<Instant>,
    /// Why it is being ended, and when that must be over.
    stopped: Option<(Status, Instant)>,
    /// Its processes were killed from here.
    forced: bool,
}

/// How the launcher says that the script ended.
struct End {
    exit: Option<i32>,
    signal: Option<i32>,
    limit: Option<String>,
    cpu_ms: u64,
    max_rss: u64,
}

impl<'a> ScriptRun<'a> {
    async fn start(request: &'a Request, profile: Profile) -> Result<Self, Unavailable> {
        let at_start = |error: io::Error| Unavailable::of(profile, &error);
        let tools = request.tools();
        let users_apart = !probe::needs_no_user_namespace(&tools);
        let mut spec = LaunchSpec::new(profile, &tools, &Program::Script(request), users_apart).map_err(at_start)?;
        let mut prompts = request.interactive.then(Prompts::new).transpose().map_err(at_start)?;
        let theirs = prompts.as_mut().and_then(|prompts| prompts.theirs.take());
        let (launcher, output) = LauncherProcess::start(&mut spec, theirs.as_ref()).await.map_err(at_start)?;
        let stream = |pipe| OutputStream::new(pipe, request.limits.kept_bytes);
        Ok(Self {
            request,
            profile,
            spec,
            launcher,
            work: None,
            layers: Vec::new(),
            input: Input { prompts, open: None, asked: 0 },
            output: Output { stdout: stream(output.stdout), stderr: stream(output.stderr), warned: false },
            time: Time { began: None, deadline: Some(Instant::now() + START), stopped: None, forced: false },
        })
    }

    async fn run(&mut self, events: &mut EventSender) -> Result<Event, Unavailable> {
        let end = self.until_end(events).await?;
        self.launcher.wait_for_exit().await;
        self.drain(events).await;
        let duration = self.time.began.map_or(Duration::ZERO, |began| began.elapsed());
        let (artifacts, hints) = self.take_over().await;
        for artifact in &artifacts {
            events.send(&Event::Artifact(artifact.clone()));
        }
        let status = self.status(&end);
        let exited = matches!(status, Status::Ok | Status::Error);
        Ok(Event::Finished {
            result: Box::new(Outcome {
                status,
                exit_code: end.exit.filter(|_| exited),
                signal: end.signal.filter(|_| self.time.stopped.is_none()),
                stdout: self.output.stdout.capture.text(),
                stderr: self.output.stderr.capture.text(),
                stdout_truncated: self.output.stdout.capture.is_truncated(),
                stderr_truncated: self.output.stderr.capture.is_truncated(),
                stdout_bytes: self.output.stdout.capture.count(),
                stderr_bytes: self.output.stderr.capture.count(),
                duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
                cpu_ms: end.cpu_ms,
                max_rss: end.max_rss,
                artifacts,
                isolation: Isolation { profile: self.profile.as_str(), layers: self.layers.clone() },
                hints,
            }),
        })
    }

    /// Follows the script until it and all of its processes have ended.
    async fn until_end(&mut self, events: &mut EventSender) -> Result<End, Unavailable> {
        loop {
            let patience = match (self.time.stopped, self.input.open) {
                (Some(_), _) => None,
                (None, Some((_, since))) => Some(since + seconds(self.request.limits.idle_seconds)),
                (None, None) => self.time.deadline,
            };
            tokio::select! {
                report = self.launcher.report() => match report {
                    Ok(Some(report)) => if let Some(end) = self.handle_report(report, events).await? { return Ok(end) },
                    Ok(None) => return self.without_end().await,
                    Err(error) => return Err(Unavailable::of(self.profile, &error)),
                },
                text = self.output.stdout.next(), if self.output.stdout.open => self.publish_output(Event::Stdout { text }, events).await,
                text = self.output.stderr.next(), if self.output.stderr.open => self.publish_output(Event::Stderr { text }, events).await,
                prompt = next_prompt(&mut self.input.prompts), if self.input.open.is_none() && self.time.stopped.is_none() => match prompt {
                    Some(prompt) => self.ask(prompt, events).await,
                    None => self.input.prompts = None,
                },
                Some(answer) = events.answers.recv() => self.answer(answer).await,
                Ok(()) = events.cancelled.changed(), if self.time.stopped.is_none() => {
                    if *events.cancelled.borrow_and_update() {
                        self.stop(Status::Cancelled).await;
                    }
                }
                () = until(patience) => self.out_of_time().await?,
                () = until(self.time.stopped.map(|(_, at_most)| at_most)) => {
                    if self.profile == Profile::Isolated || self.time.forced {
                        return self.without_end().await;
                    }
                    // First its processes, then the launcher: it is the parent of those that have lost theirs.
                    self.time.forced = true;
                    self.end_marked().await;
                    self.time.stopped = self.time.stopped.map(|(status, _)| (status, Instant::now() + GRACE));
                }
            }
        }
    }

    async fn ask(&mut self, prompt: Prompt, events: &EventSender) {
        self.drain_now(events);
        self.input.asked += 1;
        if self.input.asked > self.request.limits.prompts {
            self.stop(Status::PromptLimit).await;
        } else {
            self.input.open = Some((self.input.asked, Instant::now()));
            events.send(&Event::InputRequest { id: self.input.asked, prompt: prompt.prompt, secret: prompt.secret });
        }
    }

    async fn answer(&mut self, answer: Answer) {
        if let Some((_, since)) = self.input.open.filter(|(id, _)| *id == answer.id) {
            self.input.open = None;
            self.time.deadline = self.time.deadline.map(|deadline| deadline + since.elapsed());
            if let Some(prompts) = &mut self.input.prompts {
                prompts.answer(answer.text).await;
            }
        }
    }

    /// The box did not stand in time, the script took too long, or an answer did not come.
    async fn out_of_time(&mut self) -> Result<(), Unavailable> {
        if self.time.began.is_none() {
            self.launcher.kill();
            return Err(Unavailable::new("starting", 0, "the box did not stand in time"));
        }
        let status = if self.input.open.is_some() { Status::IdleTimeout } else { Status::Timeout };
        self.stop(status).await;
        Ok(())
    }

    async fn handle_report(&mut self, report: Report, events: &EventSender) -> Result<Option<End>, Unavailable> {
        match report {
            Report::Standing => {
                let work = match self.launcher.take_descriptor() {
                    Some(descriptor) => Some(descriptor),
                    None => self.spec.folder.as_ref().and_then(|folder| folder::open(&folder.work()).ok()),
                };
                self.work = work.map(Arc::new);
            }
            Report::Ready { layers } => {
                let brought = self.bring_session().await;
                brought.map_err(|error| Unavailable::new("the session's files", 0, &error.to_string()))?;
                let brought = self.bring_files().await;
                brought.map_err(|error| Unavailable::new("the files for the script", 0, &error.to_string()))?;
                self.layers.clone_from(&layers);
                events.send(&Event::Started { profile: self.profile.as_str(), layers });
                self.launcher.instruct(Instruction::Go).await;
                let now = Instant::now();
                self.time.began = Some(now);
                self.time.deadline = now.checked_add(seconds(self.request.limits.wall_seconds));
            }
            Report::Fault { stage, errno, message } => return Err(Unavailable::new(&stage, errno, &message)),
            Report::Warning { limit } => {
                let message = format!("most of the {limit} limit is used up");
                events.send(&Event::LimitWarning { limit, message });
            }
            Report::End { exit, signal, limit, cpu_ms, max_rss } => {
                return Ok(Some(End { exit, signal, limit, cpu_ms, max_rss }));
            }
        }
        Ok(None)
    }

    /// The launcher has ended without a report of the script's end.
    async fn without_end(&mut self) -> Result<End, Unavailable> {
        self.launcher.kill();
        self.end_marked().await;
        if self.time.began.is_none() && self.time.stopped.is_none() {
            return Err(explain_silence(self.profile, &mut self.launcher, &mut self.output.stderr.pipe).await);
        }
        Ok(End { exit: None, signal: Some(9), limit: None, cpu_ms: 0, max_rss: 0 })
    }

    /// Where no namespace ends with its first process.
    async fn end_marked(&self) {
        let mark = self.spec.launch.mark;
        if self.profile != Profile::Isolated {
            // It returns nothing, and can't be cancelled.
            let _ = tokio::task::spawn_blocking(move || marked_processes::end(mark)).await;
        }
    }

    async fn stop(&mut self, status: Status) {
        if self.time.stopped.is_none() {
            self.time.stopped = Some((status, Instant::now() + GRACE));
            self.launcher.instruct(Instruction::Stop).await;
        }
    }

    async fn publish_output(&mut self, event: Event, events: &EventSender) {
        events.send(&event);
        let count = self.output.stdout.capture.count() + self.output.stderr.capture.count();
        let most = self.request.limits.output_bytes;
        if count > most {
            self.stop(Status::OutputLimit).await;
        } else if count > most / 5 * 4 && !self.output.warned {
            self.output.warned = true;
            let message = format!("{count} of {most} bytes of output are used up");
            events.send(&Event::LimitWarning { limit: "output".to_owned(), message });
        }
    }

    /// Takes what the pipes hold right now, so that it is shown before a prompt.
    fn drain_now(&mut self, events: &EventSender) {
        let (stdout, stderr) = (self.output.stdout.present(), self.output.stderr.present());
        events.send(&Event::Stdout { text: stdout });
        events.send(&Event::Stderr { text: stderr });
    }

    /// Takes the rest. All who could write are dead, but where nothing confines them.
    async fn drain(&mut self, events: &EventSender) {
        let rest = async {
            while self.output.stdout.open {
                let text = self.output.stdout.next().await;
                events.send(&Event::Stdout { text });
            }
            while self.output.stderr.open {
                let text = self.output.stderr.next().await;
                events.send(&Event::Stderr { text });
            }
        };
        // What somebody who escaped still writes is nobody's concern.
        let _ = timeout(GRACE, rest).await;
    }

    async fn bring_session(&self) -> io::Result<()> {
        let (Some(session), Some(work)) = (self.request.session.clone(), self.work.clone()) else { return Ok(()) };
        let limits = &self.request.limits;
        let copy = FolderCopy::new(limits.disk_bytes, limits.disk_files, self.spec.launch.user);
        let mut copy = copy.without(self.given());
        let copied = tokio::task::spawn_blocking(move || copy.all(&folder::open(&session)?, &work));
        copied.await.map_err(io::Error::other)?
    }

    /// The folder of the files that the script is given, if there are any. It is no part of the session's files.
    fn given(&self) -> Option<&'static CStr> {
        self.request.files.as_ref().map(|_| INPUT)
    }

    /// Copies the files that the script is given, where they can't be mounted.
    async fn bring_files(&self) -> io::Result<()> {
        let (Some(files), Some(folder)) = (self.request.files.clone(), &self.spec.folder) else { return Ok(()) };
        let target = folder.files();
        let copied = tokio::task::spawn_blocking(move || {
            FolderCopy::read_only().all(&folder::open(&files)?, &folder::open(&target)?)
        });
        copied.await.map_err(io::Error::other)?
    }

    /// Takes the artifacts and the session's files over.
    async fn take_over(&mut self) -> (Vec<Artifact>, Vec<String>) {
        // Of a script that never began, the session's files may not have been there yet.
        let Some(work) = self.work.take().filter(|_| self.time.began.is_some()) else { return Default::default() };
        let limits = self.request.limits.clone();
        let (target, session) = (self.request.artifacts.clone(), self.request.session.clone());
        let given = self.given();
        let taken = tokio::task::spawn_blocking(move || {
            let mut hints = Vec::new();
            let mut artifacts = Vec::new();
            if let Some(target) = target {
                let before = session.as_ref().and_then(|session| folder::open(session).ok());
                let mut taking = Taking::new(&target, before, limits.artifacts, limits.artifact_bytes);
                taking.take(&work);
                if taking.over > 0 {
                    hints.push(format!(
                        "{} files of out/ were not handed over: at most {} files of {} bytes together are",
                        taking.over, limits.artifacts, limits.artifact_bytes
                    ));
                }
                if let Some(error) = taking.error {
                    hints.push(format!("files of out/ could not be copied: {error}"));
                }
                artifacts = taking.taken;
            }
            if let Some(session) = session {
                let mut copy = FolderCopy::new(limits.disk_bytes, limits.disk_files, None).without(given);
                match keep_session(&mut copy, &work, &session) {
                    Ok(()) if copy.left_out > 0 => hints.push(format!(
                        "{} things in the working directory are not there in later calls: pipes, sockets, or what is \
                         too deep",
                        copy.left_out
                    )),
                    Ok(()) => {}
                    Err(error) => hints.push(format!(
                        "the files of this call are not there in later calls, which find those of the calls before: {error}"
                    )),
                }
            }
            (artifacts, hints)
        });
        taken.await.unwrap_or_default()
    }

    fn status(&self, end: &End) -> Status {
        const XCPU: i32 = 24;
        const XFSZ: i32 = 25;
        const KILL: i32 = 9;
        if let Some((status, _)) = self.time.stopped {
            return status;
        }
        let cpu_used = end.cpu_ms / 1000 >= self.request.limits.cpu_seconds;
        match (end.limit.as_deref(), end.exit, end.signal) {
            (Some("memory"), ..) => Status::MemoryLimit,
            (Some("disk"), ..) | (None, _, Some(XFSZ)) => Status::DiskLimit,
            (Some(_), ..) | (None, _, Some(XCPU)) => Status::CpuLimit,
            (None, _, Some(KILL)) if cpu_used => Status::CpuLimit,
            (None, _, Some(KILL)) => Status::Killed,
            (None, Some(0), _) => Status::Ok,
            _ => Status::Error,
        }
    }
}

/// Puts the files into a new folder, and that in the place of the old one.
fn keep_session(copy: &mut FolderCopy, work: &OwnedFd, session: &PathBuf) -> io::Result<()> {
    let fresh = tempfile::Builder::new().prefix(".session-").tempdir_in(session.parent().unwrap_or(session))?;
    copy.all(work, &folder::open(fresh.path())?)?;
    let old = tempfile::Builder::new().prefix(".session-").tempdir_in(session.parent().unwrap_or(session))?;
    std::fs::rename(session, old.path())?;
    std::fs::rename(fresh.keep(), session)
}

async fn next_prompt(prompts: &mut Option<Prompts>) -> Option<Prompt> {
    match prompts {
        Some(prompts) => prompts.next().await,
        None => std::future::pending().await,
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn seconds(count: f64) -> Duration {
    Duration::try_from_secs_f64(count).unwrap_or(Duration::MAX)
}
