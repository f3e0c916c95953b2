//! What is asked for, and what comes of it.

use crate::sandbox::Refused;
use serde::Deserialize;
use std::path::PathBuf;
use thiserror::Error;

/// What is to be installed, for which interpreter.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// What they come to, as `resolve` told it: nothing else is installed then. Empty: it is found out first.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Whether it is only to be found out what would be installed.
    #[serde(default)]
    pub resolve_only: bool,
    /// What all of them may take together when they are installed. Default: 1 GiB.
    #[serde(default = "default_bytes")]
    pub bytes: u64,
    /// How many files they may have together. Default: 50,000.
    #[serde(default = "default_files")]
    pub files: u64,
    /// The launcher, which keeps the installer from writing anywhere else.
    #[serde(default)]
    pub launcher: Option<PathBuf>,
}

fn default_bytes() -> u64 {
    1 << 30
}

fn default_files() -> u64 {
    50_000
}

/// What would be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Every package with its version, those that others need among them: `name==version`.
    pub packages: Vec<String>,
    /// Where they are, where they are installed already.
    pub path: Option<PathBuf>,
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
