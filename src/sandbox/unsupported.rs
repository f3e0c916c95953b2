//! Where there is no box: on other systems than Linux, scripts are run by a runner that the program names.

use super::event::Event;
use super::job::EventSender;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

const STAGE: &str = "the platform";
const MESSAGE: &str = "scripts can be kept apart on Linux only";
const REMEDY: &str = if cfg!(windows) {
    "use WSL, in which the program runs as on Linux"
} else {
    "run them in a container: PythonRunner(backend=CommandRunner([\"docker\", \"run\", …]))"
};

/// A script, and how it is to be run.
#[derive(Clone, Debug, Deserialize)]
pub struct Request {}

/// What is missing for each profile.
#[derive(Clone, Debug, Serialize)]
pub struct Offered {
    isolated: Missing,
    restricted: Missing,
}

#[derive(Clone, Debug, Serialize)]
struct Missing {
    stage: &'static str,
    errno: i32,
    message: &'static str,
    remedy: &'static str,
}

/// Reports that the script can't be run.
pub async fn run(_request: Request, events: EventSender) {
    events.send(&Event::Failed {
        error: "isolation_unavailable",
        stage: Some(STAGE.to_owned()),
        errno: None,
        remedy: Some(REMEDY.to_owned()),
        message: format!("{MESSAGE}; {REMEDY}"),
    });
}

/// Which profiles the machine offers: none.
///
/// # Errors
/// Never.
pub fn probe(_launcher: PathBuf, _bwrap: Option<PathBuf>) -> io::Result<Offered> {
    let missing = Missing { stage: STAGE, errno: 0, message: MESSAGE, remedy: REMEDY };
    Ok(Offered { isolated: missing.clone(), restricted: missing })
}
