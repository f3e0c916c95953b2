//! The packages of a script, installed by uv into a folder that a box shows it, read-only.
//!
//! Package authors are as little trusted as the model: wheels only, so nothing of a package runs while it is
//! installed, and nothing of the folder is ever put on this machine's own path. A folder is named by what was asked
//! for; once it is there it is complete, and costs no process.

mod cache;
mod interpreter;
mod reason;
mod settings;
mod uv;

use super::{Refused, script};
use crate::hex::hex;
use cache::Cache;
use serde::Deserialize;
use settings::Settings;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;

/// An installation that takes longer is ended.
const LIMIT: Duration = Duration::from_secs(300);

/// What is to be installed, for which interpreter.
#[derive(Debug, Clone, Deserialize)]
pub struct InstallRequest {
    /// Requirements as PEP 508 writes them.
    pub dependencies: Vec<String>,
    /// The interpreter that will import them.
    pub python: PathBuf,
    /// The installer.
    pub uv: PathBuf,
    /// Where packages are kept. Default: `callslip/packages` in the user's folder of caches.
    #[serde(default)]
    pub cache: Option<PathBuf>,
    /// The index to take them from. Default: what pip and uv are told by their variables, or pip by its file.
    #[serde(default)]
    pub index: Option<String>,
}

/// Packages that are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The folder to put on the script's path.
    pub path: PathBuf,
    /// Whether it was made just now.
    pub fresh: bool,
}

/// Why there are no packages.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotInstalled {
    /// The model can do something about it.
    #[error("{0}")]
    Refused(Refused),
    /// The interpreter does not answer: the developer's business.
    #[error("{0}")]
    InterpreterMissing(String),
    /// It was cancelled.
    #[error("the installation was cancelled")]
    Cancelled,
}

impl From<Refused> for NotInstalled {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// Installs what is not there yet. `tell` is given a stage and words while it goes on: `resolve`, `download`,
/// `install`, `compile`, `done`.
///
/// # Errors
/// What was asked for is not installable, the interpreter is missing, or `cancelled` has become true.
pub async fn install(
    request: &InstallRequest,
    tell: impl FnMut(&str, &str),
    cancelled: watch::Receiver<bool>,
) -> Result<Installed, NotInstalled> {
    install_within(LIMIT, request, tell, cancelled).await
}

async fn install_within(
    limit: Duration,
    request: &InstallRequest,
    mut tell: impl FnMut(&str, &str),
    cancelled: watch::Receiver<bool>,
) -> Result<Installed, NotInstalled> {
    // They have been read before; what reaches the installer is not left to whoever calls.
    let requirements = script::normalise(&request.dependencies)?;
    let settings = Settings::of(request.index.as_deref(), &request.python);
    let root = request.cache.clone().or_else(default_cache).ok_or_else(|| {
        Refused::install("there is no home folder to keep packages in: the developer can name one as cache")
    })?;
    let cache = Cache::open(&root).map_err(|cause| no_room(&cause))?;
    let identity = interpreter::identity(&request.python, &cache).await.map_err(NotInstalled::InterpreterMissing)?;
    let path = cache.set(&key(&requirements, &identity, settings.index_shown()));
    if path.is_dir() {
        return Ok(Installed { path, fresh: false });
    }
    let cache = Arc::new(cache);
    let swept = Arc::clone(&cache);
    let (draft, at_work) = aside(move || {
        swept.sweep();
        swept.sweep_downloads();
        Ok((swept.draft()?, swept.at_work()?))
    })
    .await?;
    tell("resolve", &format!("resolving {}", requirements.join(", ")));
    let order =
        uv::Order { uv: &request.uv, python: &request.python, cache: &cache, draft: &draft, settings: &settings };
    let ended = order.run(&requirements, limit, &mut tell, cancelled).await;
    drop(at_work);
    let (set, swept) = (path.clone(), Arc::clone(&cache));
    let fresh = aside(move || match ended {
        Ok(()) => draft.publish(&set).map(Ok),
        Err(error) => {
            swept.sweep_downloads();
            Ok(Err(error))
        }
    })
    .await??;
    tell("done", "the packages are installed");
    Ok(Installed { path, fresh })
}

/// Where packages are kept unless something else is said.
pub fn default_cache() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(caches.join("callslip").join("packages"))
}

/// The name of a folder: the same for whatever would install the same.
fn key(requirements: &[String], interpreter: &str, index: Option<&str>) -> String {
    let asked = serde_json::json!([1, requirements, interpreter, index]).to_string();
    name(&asked)
}

/// The name of what is kept for a text.
fn name(text: &str) -> String {
    let mut digits = hex(&Sha256::digest(text.as_bytes()));
    digits.truncate(32);
    digits
}

/// Many files are renamed, sealed or removed beside the event loop, not on it.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, NotInstalled> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|cause| Err(std::io::Error::other(cause))).map_err(|cause| no_room(&cause))
}

/// The path is this machine's own business, so the model is not told it.
fn no_room(cause: &std::io::Error) -> NotInstalled {
    let kind = cause.kind();
    let message = format!("the packages can't be kept in the folder for them ({kind}): write the script without them");
    Refused::install(message).into()
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}
