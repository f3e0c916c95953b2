//! From core errors to Python exceptions: the one place that names exceptions. A core error that has no variant here
//! does not cross the border, and a variant without an exception does not compile.

use crate::live::LiveError;
use crate::protocol::TemplateError;
use crate::run::{InputError, LoadError, ReplayError};
use crate::store::StoreError;
use crate::tool::ToolSetError;
use crate::tool::openapi::{DocumentError, RequestError};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::types::PyAnyMethods as _;
use pyo3::{PyErr, Python};
use std::sync::PoisonError;
use thiserror::Error;

/// The exceptions of the package, which are defined in Python.
mod exceptions {
    pyo3::import_exception!(callslip.errors, KeyTaken);
    pyo3::import_exception!(callslip.errors, NoLease);
    pyo3::import_exception!(callslip.errors, ReplayError);
    pyo3::import_exception!(callslip.errors, StoreError);
    pyo3::import_exception!(callslip.errors, DrivenElsewhere);
    pyo3::import_exception!(callslip.errors, TakenOver);
    pyo3::import_exception!(callslip.errors, TemplateError);
    pyo3::import_exception!(callslip.errors, ToolError);
    pyo3::import_exception!(callslip.errors, UsageError);
}

pub(super) type CoreResult<T> = Result<T, CoreError>;

/// Everything that can go wrong below the border, and at it.
#[derive(Debug, Error)]
pub(super) enum CoreError {
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    ToolSet(#[from] ToolSetError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("this store is in memory: only one in a file or in a database can be queried")]
    NoFile,
    #[error("this store is not shared: use TicketStore(\"postgresql://…\")")]
    NotShared,
    #[error("the log of the run came without the bytes of {0}: export the run anew from the store where it was made")]
    NoContent(String),
    #[error(transparent)]
    Live(#[from] LiveError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// JSON of the Python half of the package.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A wrong value from the Python half of the package.
    #[error("{0}")]
    Value(String),
    #[error("no memory for a value of {0} bytes")]
    Memory(usize),
    /// Another thread panicked while it held a lock, which is a bug in this package.
    #[error("internal error: the state of the run was left locked; please report this")]
    Poisoned,
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// An exception of Python code.
    #[error(transparent)]
    Python(#[from] PyErr),
}

impl<T> From<PoisonError<T>> for CoreError {
    fn from(_: PoisonError<T>) -> Self {
        Self::Poisoned
    }
}

impl From<CoreError> for PyErr {
    fn from(error: CoreError) -> Self {
        let message = error.to_string();
        match error {
            CoreError::Template(_) => exceptions::TemplateError::new_err(message),
            CoreError::ToolSet(_) | CoreError::Document(_) => exceptions::ToolError::new_err(message),
            CoreError::Live(LiveError::NoLog(_)) | CoreError::Load(_) | CoreError::Replay(_) => {
                exceptions::ReplayError::new_err(message)
            }
            CoreError::Live(LiveError::Store(StoreError::TakenOver { .. }))
            | CoreError::Store(StoreError::TakenOver { .. }) => exceptions::TakenOver::new_err(message),
            CoreError::Live(LiveError::Store(StoreError::KeyTaken { .. }))
            | CoreError::Store(StoreError::KeyTaken { .. })
            | CoreError::Input(InputError::KeyTaken { .. }) => exceptions::KeyTaken::new_err(message),
            CoreError::Live(LiveError::Store(StoreError::NoLease { .. } | StoreError::Stuck { .. }))
            | CoreError::Store(StoreError::NoLease { .. } | StoreError::Stuck { .. }) => {
                exceptions::NoLease::new_err(message)
            }
            CoreError::Live(LiveError::Store(
                StoreError::UnderWay { .. } | StoreError::Elsewhere { .. } | StoreError::NotBegun { .. },
            ))
            | CoreError::Store(
                StoreError::UnderWay { .. } | StoreError::Elsewhere { .. } | StoreError::NotBegun { .. },
            ) => exceptions::DrivenElsewhere::new_err(message),
            CoreError::Live(
                LiveError::Store(_)
                | LiveError::Unreadable { .. }
                | LiveError::NotCompacted { .. }
                | LiveError::Changed { .. }
                | LiveError::Present { .. },
            )
            | CoreError::Store(_)
            | CoreError::NoFile
            | CoreError::NotShared
            | CoreError::NoContent(_) => exceptions::StoreError::new_err(message),
            CoreError::Input(InputError::WrongArguments { each, .. }) => wrong_arguments(message, each),
            CoreError::Input(_) | CoreError::Value(_) => exceptions::UsageError::new_err(message),
            CoreError::Request(_) | CoreError::Json(_) => PyValueError::new_err(message),
            CoreError::Memory(_) => PyMemoryError::new_err(message),
            CoreError::Poisoned => PyRuntimeError::new_err(message),
            CoreError::Io(error) => error.into(),
            CoreError::Python(error) => error,
        }
    }
}

/// An error that has each problem of the arguments apart.
fn wrong_arguments(message: String, each: Vec<(String, String)>) -> PyErr {
    let error = exceptions::UsageError::new_err(message);
    Python::attach(|py| match error.value(py).setattr("problems", each) {
        Ok(()) => error,
        Err(cause) => cause,
    })
}

/// Imports what a store raises: it may have to while Python ends, when nothing can be imported any more.
pub(super) fn prepare(py: Python<'_>) {
    use pyo3::PyTypeInfo;
    exceptions::StoreError::type_object(py);
    exceptions::DrivenElsewhere::type_object(py);
    exceptions::TakenOver::type_object(py);
    exceptions::NoLease::type_object(py);
    exceptions::ReplayError::type_object(py);
    exceptions::UsageError::type_object(py);
}

/// A wrong value from the Python half of the package.
pub(super) fn value(message: impl Into<String>) -> CoreError {
    CoreError::Value(message.into())
}
