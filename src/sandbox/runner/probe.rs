//! Which profiles this machine offers. It is tried, not guessed.

use super::super::job;
use super::super::wire::{Bounds, Instruction, Profile, Report};
use super::launch_spec::{LaunchSpec, Program, Tools};
use super::launcher_process::LauncherProcess;
use super::script_user;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// Of a program that does nothing.
pub(super) const BOUNDS: Bounds =
    Bounds { cpu_seconds: 5, memory_bytes: 1 << 28, processes: 16, files: 64, disk_bytes: 1 << 20, disk_files: 64 };
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a failure is believed.
const KEPT: Duration = Duration::from_secs(30);
/// When one that may pass is tried again.
const RETRIES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];

/// What is missing for each profile; `None` where it is offered.
#[derive(Clone, Debug, Serialize)]
pub struct Offered {
    pub(super) isolated: Option<Unavailable>,
    pub(super) restricted: Option<Unavailable>,
}

/// Why a profile is not offered.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Unavailable {
    pub(super) stage: String,
    pub(super) errno: i32,
    message: String,
    pub(super) remedy: String,
}

/// Which profiles the machine offers. Waits for it, in this thread.
///
/// # Errors
/// The system has no descriptor left.
pub fn probe(launcher: PathBuf, bwrap: Option<PathBuf>) -> io::Result<Offered> {
    let tools = Tools { launcher, bwrap };
    if let (Some(isolated), Some(restricted)) = (cached(Profile::Isolated, &tools), cached(Profile::Restricted, &tools))
    {
        return Ok(Offered { isolated: isolated.err(), restricted: restricted.err() });
    }
    let runtime = job::runtime()?;
    Ok(runtime.block_on(async {
        Offered {
            isolated: missing(Profile::Isolated, &tools).await,
            restricted: missing(Profile::Restricted, &tools).await,
        }
    }))
}

/// What is missing for a profile. It is tried once in a process, or again when what was in the way may have passed.
pub(super) async fn missing(profile: Profile, tools: &Tools) -> Option<Unavailable> {
    if let Some(known) = cached(profile, tools) {
        return known.err();
    }
    let mut offered = attempt(profile, tools).await;
    for pause in RETRIES {
        if !offered.as_ref().is_err_and(Unavailable::may_pass) {
            break;
        }
        tokio::time::sleep(pause).await;
        offered = attempt(profile, tools).await;
    }
    if !offered.as_ref().is_err_and(Unavailable::may_pass) {
        cache().get_or_insert_default().insert((profile, tools.clone()), (Instant::now(), offered.clone()));
    }
    offered.err()
}

/// What came of it, where it was tried and still holds.
fn cached(profile: Profile, tools: &Tools) -> Option<Result<Standing, Unavailable>> {
    let tried = cache();
    let (at, came) = tried.as_ref()?.get(&(profile, tools.clone()))?;
    (came.is_ok() || at.elapsed() < KEPT).then(|| came.clone())
}

/// Whether root's box stands only without a user namespace.
pub(super) fn needs_no_user_namespace(tools: &Tools) -> bool {
    matches!(cached(Profile::Isolated, tools), Some(Ok(Standing::WithoutUsers)))
}

/// How a box stands.
#[derive(Clone, Copy, Debug)]
enum Standing {
    Whole,
    /// The sandbox of root, without a user namespace, because this machine has none.
    WithoutUsers,
}

type Cache = HashMap<(Profile, Tools), (Instant, Result<Standing, Unavailable>)>;

fn cache() -> MutexGuard<'static, Option<Cache>> {
    static CACHE: Mutex<Option<Cache>> = Mutex::new(None);
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn attempt(profile: Profile, tools: &Tools) -> Result<Standing, Unavailable> {
    if profile == Profile::Isolated && tools.bwrap.is_none() {
        return Err(Unavailable::new("bubblewrap", 0, "it is not installed"));
    }
    match attempt_as(profile, tools, true).await {
        Ok(()) => Ok(Standing::Whole),
        Err(missing) if profile == Profile::Isolated && script_user::may_mount() && !missing.may_pass() => {
            attempt_as(profile, tools, false).await.map(|()| Standing::WithoutUsers).map_err(|_| missing)
        }
        Err(missing) => Err(missing),
    }
}

async fn attempt_as(profile: Profile, tools: &Tools, users_apart: bool) -> Result<(), Unavailable> {
    let at_start = |error: io::Error| Unavailable::of(profile, &error);
    let mut spec = LaunchSpec::new(profile, tools, &Program::Nothing, users_apart).map_err(at_start)?;
    let (mut launcher, mut output) = LauncherProcess::start(&mut spec, None).await.map_err(at_start)?;
    match tokio::time::timeout(PATIENCE, until_end(&mut launcher)).await {
        Ok(Ok(Ending::Well)) => {
            launcher.wait_for_exit().await;
            Ok(())
        }
        Ok(Ok(Ending::Fault { stage, errno, message })) => Err(Unavailable::new(&stage, errno, &message)),
        Ok(Ok(Ending::Lost)) => Err(explain_silence(profile, &mut launcher, &mut output.stderr).await),
        Ok(Err(error)) => Err(at_start(error)),
        Err(_) => Err(Unavailable::new("starting", 0, "the box did not stand within 10 s")),
    }
}

enum Ending {
    Well,
    Fault {
        stage: String,
        errno: i32,
        message: String,
    },
    /// The launcher reported no end.
    Lost,
}

async fn until_end(launcher: &mut LauncherProcess) -> io::Result<Ending> {
    while let Some(report) = launcher.report().await? {
        match report {
            Report::Ready { .. } => launcher.instruct(Instruction::Go).await,
            Report::Fault { stage, errno, message } => return Ok(Ending::Fault { stage, errno, message }),
            Report::End { exit: Some(0), .. } => return Ok(Ending::Well),
            Report::End { exit, signal, .. } => {
                let message = format!("a program that does nothing ended with exit code {exit:?}, signal {signal:?}");
                return Ok(Ending::Fault { stage: "running a program".to_owned(), errno: 0, message });
            }
            Report::Standing | Report::Warning { .. } => {}
        }
    }
    Ok(Ending::Lost)
}

/// Why the launcher ended, or never began, without a report: bubblewrap says it on its error output.
pub(super) async fn explain_silence(
    profile: Profile,
    launcher: &mut LauncherProcess,
    stderr: &mut Receiver,
) -> Unavailable {
    launcher.kill();
    let mut said = String::new();
    let mut reading = stderr.take(4096);
    // What is no text is not shown.
    let _ = tokio::time::timeout(Duration::from_secs(1), reading.read_to_string(&mut said)).await;
    let said = said.trim().trim_start_matches("bwrap: ");
    let stage = if profile == Profile::Isolated { "bubblewrap" } else { "the launcher" };
    Unavailable::new(stage, 0, if said.is_empty() { "it ended without a word" } else { said })
}

impl Unavailable {
    pub(super) fn new(stage: &str, errno: i32, message: &str) -> Self {
        // bubblewrap says it in words.
        let errno = if errno == 0 {
            PASSING.iter().find(|(_, words)| message.contains(words)).map_or(0, |(errno, _)| *errno)
        } else {
            errno
        };
        let remedy = match stage {
            _ if passes(errno) => {
                "try again when the program or the machine has files, memory or processes to spare (ulimit -a)"
            }
            "bubblewrap" if message.contains("not installed") => {
                "install bubblewrap, or callslip with its extra: pip install 'callslip[sandbox]'"
            }
            "bubblewrap" if message.to_ascii_lowercase().contains("unknown option") => {
                "use bubblewrap 0.8 or newer, or install callslip with its extra: pip install 'callslip[sandbox]'"
            }
            "bubblewrap"
            | "the user namespace"
            | "the namespaces"
            | "the file system of the script"
            | "adopting processes" => {
                "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, and on Ubuntu \
                 kernel.apparmor_restrict_unprivileged_userns=0 or its package bubblewrap), or in a container run the \
                 scripts in another one: PythonRunner(backend=…)"
            }
            "landlock" => {
                "use a kernel with landlock switched on (the boot option lsm=…,landlock), for profile=\"restricted\" \
                 6.12 or newer"
            }
            "starting the interpreter" => {
                "check the path of the interpreter, and that other users may enter its folders"
            }
            _ => "see the documentation of the sandbox, or run the scripts elsewhere: PythonRunner(backend=…)",
        };
        let (stage, message, remedy) = (stage.to_owned(), message.to_owned(), remedy.to_owned());
        Self { stage, errno, message, remedy }
    }

    pub(super) fn of(profile: Profile, error: &io::Error) -> Self {
        let stage = if profile == Profile::Isolated { "bubblewrap" } else { "the launcher" };
        Self::new(stage, error.raw_os_error().unwrap_or(0), &error.to_string())
    }

    /// Whether the machine was short of something that it will have again.
    pub(super) fn may_pass(&self) -> bool {
        passes(self.errno)
    }

    /// With why the weaker profile is not offered either.
    pub(super) fn and(mut self, weaker: &Self) -> Self {
        self.message = format!("{}; nor is restricted offered, by {}: {}", self.message, weaker.stage, weaker.message);
        self
    }
}

/// `EAGAIN`, `ENOMEM`, `ENFILE` and `EMFILE`.
const PASSING: [(i32, &str); 4] = [
    (11, "Resource temporarily unavailable"),
    (12, "Cannot allocate memory"),
    (23, "Too many open files in system"),
    (24, "Too many open files"),
];

fn passes(errno: i32) -> bool {
    PASSING.iter().any(|(passing, _)| *passing == errno)
}

impl fmt::Display for Unavailable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}; {}", self.stage, self.message, self.remedy)
    }
}
