//! Scripts in their box: jobs whose events Python takes.

use super::error::CoreResult;
use super::options;
use crate::sandbox::job::{Answer, Job};
use crate::sandbox::packages::InstallRequest;
use crate::sandbox::{Request, install, probe as try_profiles, run};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::Duration;

/// A job in the background. No thread of it runs Python.
#[pyclass(name = "ScriptJob", module = "callslip._core", frozen)]
pub(super) struct PyScriptJob(Job);

#[pymethods]
impl PyScriptJob {
    /// Starts a script.
    #[staticmethod]
    fn run(request: &str) -> CoreResult<Self> {
        let request: Request = options::read("the request of a script", request)?;
        Ok(Self(Job::start(move |events| run(request, events))?))
    }

    /// Starts the installation of packages.
    #[staticmethod]
    fn install(request: &str) -> CoreResult<Self> {
        let request: InstallRequest = options::read("the request of an installation", request)?;
        Ok(Self(Job::start(move |events| install(request, events))?))
    }

    /// The descriptor to watch: readable while there are events.
    fn fileno(&self) -> i64 {
        self.0.descriptor()
    }

    /// Takes the events that have come, as JSON. Never waits.
    fn news(&self) -> Vec<String> {
        self.0.news()
    }

    /// Waits for events, at most so many seconds.
    fn wait(&self, py: Python<'_>, seconds: f64) {
        let at_most = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        py.detach(|| self.0.wait(at_most));
    }

    /// Answers a request for input; `None` is the end of the input.
    fn answer(&self, id: u64, text: Option<String>) {
        self.0.answer(Answer { id, text });
    }

    /// Gives it up. Its last event tells when it has ended.
    fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether the last event was taken.
    #[getter]
    fn over(&self) -> bool {
        self.0.is_over()
    }
}

/// Which profiles the machine offers, as JSON; each is tried once in a process.
#[pyfunction]
pub(super) fn probe(py: Python<'_>, launcher: PathBuf, bwrap: Option<PathBuf>) -> CoreResult<String> {
    let offered = py.detach(|| try_profiles(launcher, bwrap))?;
    Ok(serde_json::to_string(&offered)?)
}
