//! A script and its options, as Python passes them.

use super::super::wire::Bounds;
use super::launch_spec::Tools;
use serde::Deserialize;
use std::path::PathBuf;

/// A script, and how it is to be run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The script.
    pub code: String,
    /// Whether it may ask for input.
    pub interactive: bool,
    /// How it is confined.
    pub(super) profile: Choice,
    pub(super) limits: Limits,
    /// The interpreter.
    pub python: PathBuf,
    /// Folders that the interpreter needs.
    pub prefixes: Vec<PathBuf>,
    /// The launcher.
    pub launcher: PathBuf,
    /// bubblewrap, where it is installed.
    pub bwrap: Option<PathBuf>,
    /// The folder of its packages.
    pub packages: Option<PathBuf>,
    /// The folder that carries files from one script to the next.
    pub session: Option<PathBuf>,
    /// The folder with the files that it finds in `in`, and can't change.
    pub files: Option<PathBuf>,
    /// Where what it leaves in `out` is copied to.
    pub artifacts: Option<PathBuf>,
}

/// Which profile is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Choice {
    /// The stronger one of the two that the machine offers.
    Auto,
    Isolated,
    Restricted,
    Unconfined,
}

/// What a script may use.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) wall_seconds: f64,
    pub(super) cpu_seconds: u64,
    pub(super) memory_bytes: u64,
    pub(super) processes: u64,
    pub(super) files: u64,
    pub(super) kept_bytes: usize,
    pub(super) output_bytes: u64,
    pub(super) disk_bytes: u64,
    pub(super) disk_files: u64,
    pub(super) artifacts: usize,
    pub(super) artifact_bytes: u64,
    pub(super) prompts: u64,
    pub(super) idle_seconds: f64,
}

impl Limits {
    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            cpu_seconds: self.cpu_seconds,
            memory_bytes: self.memory_bytes,
            processes: self.processes,
            files: self.files,
            disk_bytes: self.disk_bytes,
            disk_files: self.disk_files,
        }
    }
}

impl Request {
    /// Whether the interpreter or the packages lie below a folder.
    pub(super) fn needs(&self, folder: &str) -> bool {
        self.prefixes.iter().chain(&self.packages).any(|path| path.starts_with(folder))
    }

    pub(super) fn tools(&self) -> Tools {
        let (launcher, bwrap) = (self.launcher.clone(), self.bwrap.clone());
        Tools { launcher, bwrap }
    }
}
