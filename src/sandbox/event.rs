//! The events of a job. As JSON lines, they are also the format of other runners.

use serde::Serialize;
use std::path::PathBuf;

/// One thing that happened. The last three are the last of a job.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The box stands, and the script begins.
    Started {
        /// The profile that holds.
        profile: &'static str,
        /// Its layers, as they were measured.
        layers: Vec<String>,
    },
    /// Packages are being installed.
    Deps {
        /// What is being done.
        stage: String,
        /// In words.
        message: String,
    },
    /// A piece of the output.
    Stdout {
        /// As text; bytes that are none are replaced.
        text: String,
    },
    /// A piece of the error output.
    Stderr {
        /// As text; bytes that are none are replaced.
        text: String,
    },
    /// The script waits for a line.
    InputRequest {
        /// To be answered with it; from 1 on.
        id: u64,
        /// As the script wrote it.
        prompt: String,
        /// It should not be shown, nor kept.
        secret: bool,
    },
    /// A file that the script left in its folder `out`.
    Artifact(Artifact),
    /// Most of a limit is used up.
    LimitWarning {
        /// `memory`, `cpu`, `disk`, `output` or `wall`.
        limit: String,
        /// In words.
        message: String,
    },
    /// The script has ended.
    Finished {
        /// What came of it.
        result: Box<Outcome>,
    },
    /// Packages are installed.
    #[serde(rename = "finished")]
    Installed {
        /// The folder.
        path: PathBuf,
        /// Whether anything was installed just now.
        fresh: bool,
    },
    /// It is known what would be installed.
    #[serde(rename = "finished")]
    Resolved {
        /// Each with its version.
        packages: Vec<String>,
        /// Where they are, where they are installed already.
        path: Option<PathBuf>,
    },
    /// The script was not run; a model can do something about it.
    Refused {
        /// What is wrong, as a word.
        code: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// The script could not be run; only the program's author can do something about it.
    Failed {
        /// `isolation_unavailable`, `interpreter_missing` or `runner_lost`.
        error: &'static str,
        /// What was being done.
        stage: Option<String>,
        /// The system's error number.
        errno: Option<i32>,
        /// What to do, where that is known.
        remedy: Option<String>,
        /// What is wrong and what to do.
        message: String,
    },
}

impl Event {
    /// Whether no event comes after it.
    pub fn is_last(&self) -> bool {
        matches!(
            self,
            Self::Finished { .. }
                | Self::Installed { .. }
                | Self::Resolved { .. }
                | Self::Refused { .. }
                | Self::Failed { .. }
        )
    }
}

/// A file that a script left, copied out of its box.
#[derive(Clone, Debug, Serialize)]
pub struct Artifact {
    /// Below `out`, with a name that is harmless everywhere.
    pub path: String,
    /// In bytes.
    pub size: u64,
    /// In hexadecimal digits.
    pub sha256: String,
    /// Guessed from the name.
    pub mime: String,
    /// Where it was copied to.
    pub file: PathBuf,
}

/// How a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// With the exit code 0.
    Ok,
    /// With another exit code, or by a signal of its own making.
    Error,
    /// It took too long.
    Timeout,
    /// It computed too long.
    CpuLimit,
    /// It took too much memory.
    MemoryLimit,
    /// It wrote too much output.
    OutputLimit,
    /// It wrote too much into files.
    DiskLimit,
    /// It asked too often.
    PromptLimit,
    /// Nobody answered it in time.
    IdleTimeout,
    /// It was given up.
    Cancelled,
    /// Something outside of it ended it.
    Killed,
}

/// What came of a script.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// `None` where it did not exit by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The beginning and the end of the output.
    pub stdout: String,
    /// The beginning and the end of the error output.
    pub stderr: String,
    /// Whether a part is left out.
    pub stdout_truncated: bool,
    /// Whether a part is left out.
    pub stderr_truncated: bool,
    /// How much was written.
    pub stdout_bytes: u64,
    /// How much was written.
    pub stderr_bytes: u64,
    /// From its start to its end, waiting for answers included.
    pub duration_ms: u64,
    /// On the processor, of all its processes.
    pub cpu_ms: u64,
    /// The most memory that was seen, in bytes.
    pub max_rss: u64,
    /// The files that it left.
    pub artifacts: Vec<Artifact>,
    /// What held it.
    pub isolation: Isolation,
    /// What could help to do better.
    pub hints: Vec<String>,
}

/// What held a script.
#[derive(Clone, Debug, Serialize)]
pub struct Isolation {
    /// The profile.
    pub profile: &'static str,
    /// As they were measured.
    pub layers: Vec<String>,
}
