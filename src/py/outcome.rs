//! How a call ended, as Python reports it.

use super::error::{CoreError, CoreResult, value};
use super::part::{PyPart, split_all};
use crate::part::{Content, Part};
use crate::ticket::Outcome;
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde_json::value::RawValue;

/// Bytes from which on the memory for a value is reserved before it is copied.
const LARGE: usize = 1 << 20;
/// How often a value is copied on its way into the log, the file and the next message, at most.
const COPIES: usize = 8;

/// Raises `MemoryError` if there is no memory for a large value: Rust, once inside, would end the process.
pub(super) fn check_memory(bytes: usize) -> CoreResult<()> {
    if bytes < LARGE {
        return Ok(());
    }
    let mut reserved: Vec<u8> = Vec::new();
    reserved.try_reserve_exact(bytes.saturating_mul(COPIES)).map_err(|_| CoreError::Memory(bytes))
}

/// How a call ended. Denials and the cancellation of a call are made by the run itself.
#[pyclass(name = "Outcome", module = "callslip._core", frozen)]
pub(super) enum PyOutcome {
    /// `parts` are the images and files for which there are marks in the JSON.
    #[pyo3(constructor = (json, parts = Vec::new()))]
    Ok {
        json: Py<PyString>,
        parts: Vec<PyPart>,
    },
    /// `again` is whether the runtime may make the call again, and `wait` the seconds that were asked for before that.
    #[pyo3(constructor = (message, transient = false, *, again = None, wait = None))]
    Error {
        message: Py<PyString>,
        transient: bool,
        again: Option<bool>,
        wait: Option<f64>,
    },
    Retry {
        message: Py<PyString>,
    },
    InDoubt {
        message: Py<PyString>,
    },
    /// The run of a task was cancelled.
    Cancelled {
        message: Py<PyString>,
    },
}

#[pymethods]
impl PyOutcome {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (name, field, text) = self.parts();
        let more = if matches!(self, Self::Error { transient: true, .. }) { ", transient=True" } else { "" };
        Ok(format!("Outcome.{name}({field}={}{more})", text.bind(py).repr()?))
    }

    fn __eq__(&self, other: &Self, py: Python<'_>) -> PyResult<bool> {
        let transient = |outcome: &Self| matches!(outcome, Self::Error { transient: true, .. });
        let ((name, _, text), (other_name, _, other_text)) = (self.parts(), other.parts());
        Ok(name == other_name
            && transient(self) == transient(other)
            && text.bind(py).as_any().eq(other_text.bind(py))?)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.parts().2.bind(py).hash()
    }
}

impl PyOutcome {
    /// Its name, and the name and value of its text.
    fn parts(&self) -> (&'static str, &'static str, &Py<PyString>) {
        match self {
            Self::Ok { json, .. } => ("Ok", "json", json),
            Self::Error { message, .. } => ("Error", "message", message),
            Self::Retry { message } => ("Retry", "message", message),
            Self::InDoubt { message } => ("InDoubt", "message", message),
            Self::Cancelled { message } => ("Cancelled", "message", message),
        }
    }

    /// Images and files of the result, and their bytes.
    pub(super) fn parts_to_core(&self, py: Python<'_>) -> CoreResult<(Vec<Part>, Vec<Content>)> {
        match self {
            Self::Ok { parts, .. } => split_all(py, parts),
            _ => Ok(Default::default()),
        }
    }

    /// The same in the core. Raises `MemoryError` if there is no memory for it.
    pub(super) fn to_core(&self, py: Python<'_>) -> CoreResult<Outcome> {
        let read = |text: &Py<PyString>| {
            let text = text.bind(py).to_str()?;
            check_memory(text.len())?;
            Ok::<_, CoreError>(text.to_owned())
        };
        Ok(match self {
            Self::Ok { json, .. } => {
                let json = RawValue::from_string(read(json)?)
                    .map_err(|cause| value(format!("expected the JSON text of a result: {cause}")))?;
                Outcome::Ok(json.into())
            }
            Self::Error { message, transient, .. } => Outcome::Error { message: read(message)?, transient: *transient },
            Self::Retry { message } => Outcome::Retry { message: read(message)? },
            Self::InDoubt { message } => Outcome::InDoubt { message: read(message)? },
            Self::Cancelled { message } => Outcome::RunCancelled { message: read(message)? },
        })
    }
}
