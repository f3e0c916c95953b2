//! The one process: uv, without settings, without a shell, without this program's environment.

use super::cache::{Cache, Draft, Size};
use super::settings::Settings;
use super::{InstallRequest, NotInstalled, Refused, failure_reason, is_executable, script};
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// What is kept of a line, and of all lines.
const LINE_BYTES: usize = 4 << 10;
const KEPT_LINES: usize = 200;

/// The most progress reports of one installation.
const TOLD: usize = 300;

/// What the installer may take of memory, and of processor time to find out what is needed, and to unpack it. Descriptions
/// of packages are as little trusted as their files. It has threads for each processor, with stacks of their own.
const MEMORY: u64 = 1 << 30;
const MEMORY_PER_PROCESSOR: u64 = 8 << 20;
const RESOLVE_SECONDS: u64 = 20;
const INSTALL_SECONDS: u64 = 120;

/// How often what is installed is measured.
const PERIOD: Duration = Duration::from_millis(100);

/// How a set is made.
pub(super) struct Installer<'a> {
    pub(super) request: &'a InstallRequest,
    pub(super) cache: &'a Cache,
    pub(super) draft: &'a Draft,
    pub(super) settings: &'a Settings,
    /// What was unpacked was more than may be.
    pub(super) over: AtomicBool,
}

impl Installer<'_> {
    /// What these requirements come to.
    pub(super) async fn resolve(
        &self,
        requirements: &[String],
        limit: Duration,
        tell: &mut impl FnMut(&str, &str),
        cancelled: watch::Receiver<bool>,
    ) -> Result<Vec<String>, NotInstalled> {
        tell("resolve", &format!("resolving {}", requirements.join(", ")));
        let (wanted, found) = (self.draft.home().join("wanted.in"), self.draft.home().join("found.txt"));
        let lost = |cause: std::io::Error| Refused::install(format!("the installer was lost: {cause}"));
        std::fs::write(&wanted, requirements.join("\n")).map_err(lost)?;
        let mut command = self.command(RESOLVE_SECONDS, &["pip", "compile", "--no-header", "--no-annotate"]);
        command.arg("--output-file").arg(&found).arg("--").arg(&wanted);
        self.drive(command, limit, tell, cancelled).await?;
        let text = std::fs::read_to_string(&found).map_err(lost)?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let packages = script::normalise(&lines.map(str::to_owned).collect::<Vec<_>>())?;
        tell("resolve", &format!("they come to {}", packages.join(", ")));
        Ok(packages)
    }

    /// Fills the draft with these packages, and no others.
    pub(super) async fn install(
        &self,
        packages: &[String],
        limit: Duration,
        tell: &mut impl FnMut(&str, &str),
        cancelled: watch::Receiver<bool>,
    ) -> Result<(), NotInstalled> {
        let mut command = self.command(INSTALL_SECONDS, &["pip", "install", "--no-deps", "--compile-bytecode"]);
        command.arg("--target").arg(self.draft.target()).arg("--").args(packages);
        self.drive(command, limit, tell, cancelled).await?;
        let (target, most) = (self.draft.target(), self.most());
        let size = tokio::task::spawn_blocking(move || Size::of([target], most)).await.unwrap_or_default();
        if size.is_more_than(most) { Err(self.too_large()) } else { Ok(()) }
    }

    async fn drive(
        &self,
        mut command: Command,
        limit: Duration,
        tell: &mut impl FnMut(&str, &str),
        mut cancelled: watch::Receiver<bool>,
    ) -> Result<(), NotInstalled> {
        const TOO_LARGE_A_FILE: i32 = 25;
        const TOO_LONG: i32 = 24;
        const ABORTED: i32 = 6;
        if !is_executable(&self.request.uv) {
            let message = "packages can't be installed here, because uv is missing (the developer can install \
                           callslip[sandbox]): write the script without them";
            return Err(Refused::install(message).into());
        }
        let started = command.spawn();
        let child = started.map_err(|cause| Refused::install(format!("the installer can't be started: {cause}")))?;
        let mut group = Group(child);
        let mut lines = Lines::default();
        let ended = tokio::select! {
            ended = group.follow(&mut lines, |line| {
                if let Some((stage, words)) = progress(line) {
                    tell(stage, &self.settings.redact(words));
                }
            }) => ended,
            () = until_cancelled(&mut cancelled) => {
                group.end().await;
                return Err(NotInstalled::Cancelled);
            }
            () = self.until_too_large() => {
                group.end().await;
                return Err(self.too_large());
            }
            () = tokio::time::sleep(limit) => {
                group.end().await;
                let seconds = limit.as_secs();
                let message = format!("the packages took longer than {seconds} s to install: ask for fewer or smaller ones");
                return Err(Refused::install(message).into());
            }
        };
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) if status.signal() == Some(TOO_LARGE_A_FILE) => Err(self.too_large()),
            // It aborts where it gets no more memory.
            Ok(status) if matches!(status.signal(), Some(TOO_LONG | ABORTED)) => {
                let what = if status.signal() == Some(TOO_LONG) { "processor time" } else { "memory" };
                let message =
                    format!("the packages take too much {what} to resolve or install: ask for fewer or others");
                Err(Refused::install(message).into())
            }
            Ok(status) => {
                let reason = failure_reason::reason(&lines.kept, status.code());
                Err(Refused::install(self.settings.redact(&reason)).into())
            }
            Err(cause) => Err(Refused::install(format!("the installer was lost: {cause}")).into()),
        }
    }

    /// Until what is unpacked is more than may be.
    async fn until_too_large(&self) {
        let before = self.cache.kept();
        let most = self.most();
        loop {
            let began = Instant::now();
            let folders: Vec<_> = self.cache.kept().difference(&before).cloned().chain([self.draft.target()]).collect();
            let size = tokio::task::spawn_blocking(move || Size::of(folders, most)).await.unwrap_or_default();
            if size.is_more_than(most) {
                return;
            }
            // Where measuring takes long, it is done less often.
            tokio::time::sleep(PERIOD.max(began.elapsed())).await;
        }
    }

    fn most(&self) -> Size {
        Size { bytes: self.request.bytes, files: self.request.files }
    }

    fn too_large(&self) -> NotInstalled {
        self.over.store(true, Ordering::Relaxed);
        let Size { bytes, files } = self.most();
        let message =
            format!("the packages take more than {bytes} bytes or {files} files: ask for fewer or smaller ones");
        Refused::install(message).into()
    }

    fn command(&self, seconds: u64, words: &[&str]) -> Command {
        let home = self.draft.home();
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let memory = MEMORY + processors * MEMORY_PER_PROCESSOR;
        let mut command = match &self.request.launcher {
            Some(launcher) => {
                let mut command = Command::new(launcher);
                command.arg("--installer");
                command.args([self.request.bytes, memory, seconds].map(|amount| amount.to_string()));
                command.arg(self.cache.root()).arg(&self.request.uv);
                command
            }
            None => Command::new(&self.request.uv),
        };
        command
            .args(words)
            .args(["--no-config", "--no-build", "--no-python-downloads"])
            .args(["--color", "never", "--keyring-provider", "disabled"])
            .arg("--cache-dir")
            .arg(self.cache.downloads())
            .arg("--python")
            .arg(&self.request.python)
            .env_clear()
            .envs(self.settings.variables())
            // Without one it would look up the user's, with credentials in it.
            .env("HOME", &home)
            .env("TMPDIR", &home)
            .current_dir(&home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0);
        command
    }
}

/// Until it is cancelled; for ever where nobody can do that any more.
async fn until_cancelled(cancelled: &mut watch::Receiver<bool>) {
    if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The installer and the compilers that it starts: dead when this is dropped.
struct Group(Child);

impl Group {
    async fn follow(&mut self, lines: &mut Lines, mut heard: impl FnMut(&str)) -> std::io::Result<ExitStatus> {
        if let Some(stderr) = self.0.stderr.take() {
            lines.read(stderr, &mut heard).await?;
        }
        self.0.wait().await
    }

    /// Kills all of it and waits, so that nothing is written to the draft any more.
    async fn end(&mut self) {
        self.kill();
        let _ = self.0.wait().await;
    }

    fn kill(&self) {
        // There is no id any more once it has been waited for; until then it names nothing else.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What the installer says, as far as it is kept.
#[derive(Default)]
struct Lines {
    kept: Vec<String>,
    told: usize,
}

impl Lines {
    async fn read(&mut self, mut from: impl AsyncRead + Unpin, heard: &mut impl FnMut(&str)) -> std::io::Result<()> {
        let mut buffer = [0; 4096];
        let mut line = Vec::new();
        loop {
            let count = from.read(&mut buffer).await?;
            for byte in buffer.iter().take(count) {
                if *byte == b'\n' {
                    self.end(&mut line, heard);
                } else if line.len() < LINE_BYTES {
                    line.push(*byte);
                }
            }
            if count == 0 {
                self.end(&mut line, heard);
                return Ok(());
            }
        }
    }

    fn end(&mut self, line: &mut Vec<u8>, heard: &mut impl FnMut(&str)) {
        let text: String = String::from_utf8_lossy(line).chars().filter(|letter| !letter.is_control()).collect();
        line.clear();
        if text.trim().is_empty() {
            return;
        }
        self.told += 1;
        if self.told <= TOLD {
            heard(&text);
        }
        if self.kept.len() < KEPT_LINES {
            self.kept.push(text);
        }
    }
}

/// The stage that a line of the installer's output reports, and its words.
fn progress(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim();
    let stages = [
        ("Resolved ", "resolve"),
        ("Downloading ", "download"),
        ("Downloaded ", "download"),
        ("Prepared ", "download"),
        ("Installed ", "install"),
        ("+ ", "install"),
        ("Bytecode compiled ", "compile"),
    ];
    let (_, stage) = stages.iter().find(|(words, _)| line.starts_with(words))?;
    Some((*stage, line.strip_prefix("+ ").unwrap_or(line)))
}
