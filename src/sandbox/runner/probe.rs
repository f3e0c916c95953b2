//! Which profiles this machine offers. It is tried, not guessed.

use super::super::wire::{Bounds, Instruction, Profile, Report};
use super::launched::Launched;
use super::place::{Place, Program, Tools};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// Of a program that does nothing.
pub(super) const BOUNDS: Bounds =
    Bounds { cpu_seconds: 5, memory_bytes: 1 << 28, processes: 16, files: 64, disk_bytes: 1 << 20, disk_files: 64 };
const PATIENCE: Duration = Duration::from_secs(10);

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
    if let (Some(isolated), Some(restricted)) = (known(Profile::Isolated, &tools), known(Profile::Restricted, &tools)) {
        return Ok(Offered { isolated: isolated.err(), restricted: restricted.err() });
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(async {
        Offered {
            isolated: missing(Profile::Isolated, &tools).await,
            restricted: missing(Profile::Restricted, &tools).await,
        }
    }))
}

/// What is missing for a profile. It is tried once in a process.
pub(super) async fn missing(profile: Profile, tools: &Tools) -> Option<Unavailable> {
    if let Some(known) = known(profile, tools) {
        return known.err();
    }
    let offered = attempt(profile, tools).await;
    tried().get_or_insert_default().insert((profile, tools.clone()), offered.clone());
    offered.err()
}

/// What came of it, where it was tried.
fn known(profile: Profile, tools: &Tools) -> Option<Result<(), Unavailable>> {
    tried().as_ref()?.get(&(profile, tools.clone())).cloned()
}

type Tried = HashMap<(Profile, Tools), Result<(), Unavailable>>;

fn tried() -> MutexGuard<'static, Option<Tried>> {
    static TRIED: Mutex<Option<Tried>> = Mutex::new(None);
    TRIED.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn attempt(profile: Profile, tools: &Tools) -> Result<(), Unavailable> {
    if profile == Profile::Isolated && tools.bwrap.is_none() {
        return Err(Unavailable::new("bubblewrap", 0, "it is not installed"));
    }
    let at_start = |error: io::Error| Unavailable::of(profile, &error);
    let mut place = Place::new(profile, tools, &Program::Nothing).map_err(at_start)?;
    let (mut launched, mut output) = Launched::start(&mut place, None).await.map_err(at_start)?;
    match tokio::time::timeout(PATIENCE, until_end(&mut launched)).await {
        Ok(Ok(Ending::Well)) => {
            launched.gone().await;
            Ok(())
        }
        Ok(Ok(Ending::Fault { stage, errno, message })) => Err(Unavailable::new(&stage, errno, &message)),
        Ok(Ok(Ending::Lost)) => Err(lost(profile, &mut launched, &mut output.stderr).await),
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
    /// The launcher told no end.
    Lost,
}

async fn until_end(launched: &mut Launched) -> io::Result<Ending> {
    while let Some(report) = launched.report().await? {
        match report {
            Report::Ready { .. } => launched.instruct(Instruction::Go).await,
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
pub(super) async fn lost(profile: Profile, launched: &mut Launched, stderr: &mut Receiver) -> Unavailable {
    launched.kill();
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
        let remedy = match stage {
            "bubblewrap" if message.contains("not installed") => {
                "install bubblewrap, or callslip with its extra: pip install 'callslip[sandbox]'"
            }
            "bubblewrap" | "the namespaces" | "the file system of the script" | "adopting processes" => {
                "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, and on Ubuntu \
                 kernel.apparmor_restrict_unprivileged_userns=0), or in a container run the scripts in another one: \
                 PythonRunner(backend=…)"
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

    /// With why the weaker profile is not offered either.
    pub(super) fn and(mut self, weaker: &Self) -> Self {
        self.message = format!("{}; nor is restricted offered, by {}: {}", self.message, weaker.stage, weaker.message);
        self
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}; {}", self.stage, self.message, self.remedy)
    }
}
