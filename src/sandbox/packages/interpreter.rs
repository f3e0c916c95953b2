//! What packages depend on of an interpreter: asked once, and remembered for as long as its file stays the same.

use super::cache::Cache;
use super::{is_executable, name};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// An interpreter that takes longer to say what it is, is none.
const LIMIT: Duration = Duration::from_secs(20);

/// Prints which it is and, on a second line, which file it is. No module of the environment is imported.
const QUESTION: &str = "import sys, os
i = sys.implementation
print(i.cache_tag, '.'.join(map(str, sys.version_info)), getattr(sys, 'abiflags', ''), getattr(i, '_multiarch', ''), \
sys.platform, os.uname().machine, sys.maxsize, sep=' ')
print(os.path.realpath(sys.executable))";

/// Version, ABI and platform as one text. The error is for the developer.
pub(super) async fn identity(python: &Path, cache: &Cache) -> Result<String, String> {
    let shown = python.display();
    let hint = "name the interpreter's own path, for example sys.executable";
    let real =
        fs::canonicalize(python).map_err(|cause| format!("there is no interpreter {shown} ({cause}): {hint}"))?;
    if !is_executable(&real) {
        return Err(format!("{shown} is not a program that can be started: {hint}"));
    }
    let kept = kept_in(&real, cache);
    if let Some(identity) = kept.as_ref().and_then(|kept| fs::read_to_string(kept).ok()).filter(|text| is_whole(text)) {
        return Ok(identity.trim_end().to_owned());
    }
    let answer =
        ask(python).await.map_err(|cause| format!("{shown} does not answer as a Python does: {cause}; {hint}"))?;
    let mut lines = answer.lines();
    let identity = lines.next().unwrap_or_default().to_owned();
    // A launcher script that picks an interpreter stays the same while what it picks changes: it is asked each time.
    if lines.next().map(Path::new) == Some(real.as_path())
        && let Some(kept) = kept
    {
        let _ = fs::create_dir_all(cache.interpreters());
        // Half a file is not whole, and asked for again.
        let _ = fs::write(kept, format!("{identity}\n"));
    }
    Ok(identity)
}

/// Where the answer of this very file is kept.
fn kept_in(real: &Path, cache: &Cache) -> Option<PathBuf> {
    let file = fs::metadata(real).ok()?;
    let state = format!("{}\0{}\0{}\0{}\0{}", real.display(), file.ino(), file.size(), file.mtime(), file.mtime_nsec());
    Some(cache.interpreters().join(name(&state)))
}

fn is_whole(text: &str) -> bool {
    text.ends_with('\n') && text.split_ascii_whitespace().count() >= 5
}

async fn ask(python: &Path) -> Result<String, String> {
    let mut command = Command::new(python);
    command.args(["-I", "-S", "-c", QUESTION]).env_clear().current_dir("/").stdin(Stdio::null()).kill_on_drop(true);
    let answer = tokio::time::timeout(LIMIT, command.output()).await;
    let answer = answer.map_err(|_| "it took too long".to_owned())?.map_err(|cause| cause.to_string())?;
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    if !answer.status.success() || text.lines().count() != 2 {
        return Err(format!("it ended with {}", answer.status));
    }
    Ok(text)
}
