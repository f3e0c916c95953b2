//! The packages of a script, installed by uv into a folder that a box shows it, read-only.
//!
//! Package authors are as little trusted as the model: wheels only, so nothing of a package runs while it is
//! installed, and nothing of the folder is ever put on this machine's own path. A folder is named by what was asked
//! for; once it is there it is complete, and costs no process.

mod cache;
mod failure_reason;
mod interpreter;
mod request;
mod settings;
mod uv;

use super::{Refused, script};
use crate::hex::hex;
use cache::{Cache, Draft};
use settings::Settings;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

pub use request::{InstallRequest, Installed, NotInstalled, Resolved};

/// An installation that takes longer is ended.
const LIMIT: Duration = Duration::from_secs(300);
/// Finding out what is needed takes seconds, unless a package needs a great many others.
const RESOLVE_LIMIT: Duration = Duration::from_secs(60);

/// Installs what is not there yet. `tell` is called with a stage and a text in the meantime: `resolve`, `download`,
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

/// Finds out what would be installed: no package is downloaded whole. `tell` as in `install`.
///
/// # Errors
/// As `install`.
pub async fn resolve(
    request: &InstallRequest,
    mut tell: impl FnMut(&str, &str),
    cancelled: watch::Receiver<bool>,
) -> Result<Resolved, NotInstalled> {
    let set = PackageSet::of(request).await?;
    if let Some(packages) = Cache::packages(&set.path) {
        return Ok(Resolved { packages, path: Some(set.path) });
    }
    let (draft, at_work) = set.begin().await?;
    let packages = set.installer(request, &draft).resolve(&set.requirements, RESOLVE_LIMIT, &mut tell, cancelled).await;
    drop(at_work);
    aside(move || {
        drop(draft);
        Ok(())
    })
    .await?;
    Ok(Resolved { packages: packages?, path: None })
}

async fn install_within(
    limit: Duration,
    request: &InstallRequest,
    mut tell: impl FnMut(&str, &str),
    cancelled: watch::Receiver<bool>,
) -> Result<Installed, NotInstalled> {
    let set = PackageSet::of(request).await?;
    if set.path.is_dir() {
        return Ok(Installed { path: set.path, fresh: false });
    }
    let (draft, at_work) = set.begin().await?;
    let installer = set.installer(request, &draft);
    let ended = async {
        let packages = if request.packages.is_empty() {
            installer.resolve(&set.requirements, limit.min(RESOLVE_LIMIT), &mut tell, cancelled.clone()).await?
        } else {
            script::normalise(&request.packages)?
        };
        installer.install(&packages, limit, &mut tell, cancelled).await.map(|()| packages)
    };
    let ended = ended.await;
    let is_over = installer.over.load(Ordering::Relaxed);
    drop(at_work);
    let (path, swept) = (set.path.clone(), Arc::clone(&set.cache));
    let fresh = aside(move || match ended {
        Ok(packages) => draft.publish(&path, &packages).map(Ok),
        Err(error) => {
            swept.sweep_downloads();
            if is_over {
                swept.forget_downloads();
            }
            Ok(Err(error))
        }
    })
    .await??;
    tell("done", "the packages are installed");
    Ok(Installed { path: set.path, fresh })
}

/// Where a set is kept, and what it is made of.
struct PackageSet {
    requirements: Vec<String>,
    settings: Settings,
    cache: Arc<Cache>,
    path: PathBuf,
}

impl PackageSet {
    async fn of(request: &InstallRequest) -> Result<Self, NotInstalled> {
        // Checked here too, whatever the caller has checked: only these lines reach the installer.
        let requirements = script::normalise(&request.dependencies)?;
        let settings = Settings::of(request.index.as_deref(), &request.python);
        let root = request.cache.clone().or_else(default_cache).ok_or_else(|| {
            Refused::install("there is no home folder to keep packages in: the developer can name one as cache")
        })?;
        let cache = Cache::open(&root).map_err(|cause| no_room(&cause))?;
        let identity =
            interpreter::identity(&request.python, &cache).await.map_err(NotInstalled::InterpreterMissing)?;
        let path = cache.set(&key(&requirements, &identity, settings.index_shown()));
        Ok(Self { requirements, settings, cache: Arc::new(cache), path })
    }

    /// A draft, and the word that somebody works in the installer's cache.
    async fn begin(&self) -> Result<(Draft, File), NotInstalled> {
        let swept = Arc::clone(&self.cache);
        aside(move || {
            swept.sweep();
            swept.sweep_downloads();
            Ok((swept.draft()?, swept.at_work()?))
        })
        .await
    }

    fn installer<'a>(&'a self, request: &'a InstallRequest, draft: &'a Draft) -> uv::Installer<'a> {
        uv::Installer { request, cache: &self.cache, draft, settings: &self.settings, over: AtomicBool::new(false) }
    }
}

/// Where packages are kept unless something else is said.
pub fn default_cache() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(caches.join("callslip").join("packages"))
}

/// The name of a folder: the same for whatever would install the same.
fn key(requirements: &[String], interpreter: &str, index: Option<&str>) -> String {
    let asked = serde_json::json!([2, requirements, interpreter, index]).to_string();
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
