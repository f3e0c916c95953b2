//! Where no packages are installed: the boxes that scripts import them in are on Linux.

mod request;

use super::{Refused, script};
use tokio::sync::watch;

pub use request::{InstallRequest, Installed, NotInstalled, Resolved};

const MESSAGE: &str = "packages can't be installed on this system: write the script without them";

fn refused(request: &InstallRequest) -> NotInstalled {
    script::normalise(&request.dependencies).err().unwrap_or_else(|| Refused::install(MESSAGE)).into()
}

/// Refuses to install anything.
///
/// # Errors
/// Always.
pub async fn install(
    request: &InstallRequest,
    _tell: impl FnMut(&str, &str),
    _cancelled: watch::Receiver<bool>,
) -> Result<Installed, NotInstalled> {
    std::future::ready(Err(refused(request))).await
}

/// As `install`.
///
/// # Errors
/// Always.
pub async fn resolve(
    request: &InstallRequest,
    _tell: impl FnMut(&str, &str),
    _cancelled: watch::Receiver<bool>,
) -> Result<Resolved, NotInstalled> {
    std::future::ready(Err(refused(request))).await
}
