//! The messages between the runner and the launcher, over one stream socket.
//!
//! A message is its length in four bytes, the lowest first, and JSON. The launcher is a package of its own and takes
//! this file in, so that it stands once.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// A script of a megabyte, all of it escaped.
const LONGEST: usize = 16 << 20;

/// A message as it is sent.
pub(crate) fn framed(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let text = serde_json::to_vec(message)?;
    let mut bytes = u32::try_from(text.len()).map_err(io::Error::other)?.to_le_bytes().to_vec();
    bytes.extend(text);
    Ok(bytes)
}

/// Takes the first message out of what was received, once it is whole.
pub(crate) fn take<T: for<'a> Deserialize<'a>>(received: &mut Vec<u8>) -> io::Result<Option<T>> {
    let Some(&head) = received.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(head) as usize;
    if length > LONGEST {
        return Err(io::Error::other("a message is too long"));
    }
    let Some(text) = received.get(4..4 + length) else { return Ok(None) };
    let message = serde_json::from_slice(text)?;
    received.drain(..4 + length);
    Ok(Some(message))
}

/// How a script is confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Profile {
    /// Namespaces by bubblewrap, landlock and seccomp.
    Isolated,
    /// Landlock and seccomp.
    Restricted,
    /// Limits and the kill of the whole tree only.
    Unconfined,
}

impl Profile {
    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Isolated => "isolated",
            Self::Restricted => "restricted",
            Self::Unconfined => "unconfined",
        }
    }
}

/// The files of a control group that a launcher is handed, in this order: who is in it, its memory, what befell it.
pub(crate) const GROUP_FILES: [&str; 3] = ["cgroup.procs", "memory.stat", "memory.events"];

/// The first message to the launcher. With it come the script's stdin, where it is not `/dev/null`, and the files of its
/// control group, if it has one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LaunchRequest {
    /// How the script is confined.
    pub(crate) profile: Profile,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// The whole environment.
    pub(crate) environment: Vec<(String, String)>,
    /// The script's text, and where the launcher writes it.
    pub(crate) script: Option<(PathBuf, String)>,
    /// Where the script may write: the folder that it starts in, then others.
    pub(crate) writable: Vec<PathBuf>,
    /// What it may read and execute.
    pub(crate) readable: Vec<PathBuf>,
    /// A read-only folder that is mounted as `in`, where the script starts.
    #[serde(default)]
    pub(crate) files: Option<PathBuf>,
    /// What it may read and write, but not execute: device nodes.
    pub(crate) devices: Vec<PathBuf>,
    /// The user that it becomes, where the program is root.
    pub(crate) user: Option<u32>,
    pub(crate) bounds: Bounds,
    /// There is a control group for it.
    #[serde(default)]
    pub(crate) group: bool,
    /// What its processes are known by: a limit that limits nothing.
    pub(crate) mark: u64,
    /// The namespaces of the program, as `/proc/self/ns` shows them.
    pub(crate) namespaces: Vec<(String, String)>,
}

/// The limits that the launcher keeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bounds {
    /// Of the whole tree.
    pub(crate) cpu_seconds: u64,
    /// Of the whole tree.
    pub(crate) memory_bytes: u64,
    /// Processes and threads.
    pub(crate) processes: u64,
    /// Descriptors of one process.
    pub(crate) files: u64,
    /// Of what is written.
    pub(crate) disk_bytes: u64,
    /// Files and folders.
    pub(crate) disk_files: u64,
}

/// A later message to the launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Instruction {
    /// The script may start.
    Go,
    /// Kill everything.
    Stop,
}

/// A message from the launcher.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "lowercase")]
pub(crate) enum Report {
    /// The folder that the script starts in stands; its descriptor comes along.
    Standing,
    /// The whole box stands, with these layers, as they were measured.
    Ready {
        /// In words.
        layers: Vec<String>,
    },
    /// The box can't be built. Nothing of the script has run.
    Fault {
        /// What was being done.
        stage: String,
        /// The system's error number; 0 where there is none.
        errno: i32,
        /// In words.
        message: String,
    },
    /// Most of a limit is used up.
    Warning {
        /// `memory`, `cpu` or `disk`.
        limit: String,
    },
    /// The script has ended, and all of its processes with it.
    End {
        /// Its exit code.
        exit: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// The limit for which it was killed: `memory`, `cpu` or `disk`.
        limit: Option<String>,
        /// Time on the processor, of all its processes, in milliseconds.
        cpu_ms: u64,
        /// The most memory of all its processes together that was seen, in bytes.
        max_rss: u64,
    },
}
