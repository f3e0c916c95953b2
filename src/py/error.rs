//! From core errors to Python exceptions: one place, one match an error.

use crate::protocol::TemplateError;
use crate::store::StoreError;
use crate::tool::ToolSetError;
use pyo3::PyErr;
use pyo3::Python;
use pyo3::exceptions::{PyRuntimeError, PyValueError};

/// The exceptions of the package, which are Python's own.
mod exceptions {
    pyo3::import_exception!(callslip.errors, ReplayError);
    pyo3::import_exception!(callslip.errors, StoreError);
    pyo3::import_exception!(callslip.errors, TemplateError);
    pyo3::import_exception!(callslip.errors, ToolError);
    pyo3::import_exception!(callslip.errors, UsageError);
}

/// Imports what a store raises: it may have to while Python ends, when nothing can be imported any more.
pub(super) fn prepare(py: Python<'_>) {
    use pyo3::PyTypeInfo;
    exceptions::StoreError::type_object(py);
    exceptions::ReplayError::type_object(py);
    exceptions::UsageError::type_object(py);
}

/// A core error as it is raised in Python.
pub(super) fn template(error: &TemplateError) -> PyErr {
    exceptions::TemplateError::new_err(error.to_string())
}

/// A tool that can't be offered.
pub(super) fn tool_set(error: &ToolSetError) -> PyErr {
    tool(error.to_string())
}

/// The same, in words.
pub(super) fn tool(message: impl Into<String>) -> PyErr {
    exceptions::ToolError::new_err(message.into())
}

/// A run that can't be written down or read.
pub(super) fn store(error: &StoreError) -> PyErr {
    store_says(error.to_string())
}

/// The same, in words of the border's own.
pub(super) fn store_says(message: impl Into<String>) -> PyErr {
    exceptions::StoreError::new_err(message.into())
}

/// A log that does not come out again.
pub(super) fn replay(message: impl Into<String>) -> PyErr {
    exceptions::ReplayError::new_err(message.into())
}

/// A call that can't work.
pub(super) fn usage(message: impl Into<String>) -> PyErr {
    exceptions::UsageError::new_err(message.into())
}

/// A wrong value from the Python side of this package.
pub(super) fn value(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

/// Another thread panicked while it held the lock, which is a bug in this package.
pub(super) fn poisoned() -> PyErr {
    PyRuntimeError::new_err("internal error: the state of the run was left locked; please report this")
}
