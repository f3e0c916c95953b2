//! The writer of native replies, for adapters.

use super::error::CoreResult;
use super::lock::lock;
use crate::protocol::native::write::Writer;
use pyo3::prelude::*;
use std::sync::Mutex;

/// Writes one envelope. Each method returns the next piece of its text.
#[pyclass(name = "EnvelopeWriter", module = "callslip._core", frozen)]
pub(super) struct PyEnvelopeWriter {
    writer: Mutex<Writer>,
}

#[pymethods]
impl PyEnvelopeWriter {
    #[new]
    fn new() -> Self {
        Self { writer: Mutex::default() }
    }

    /// More text to the user.
    fn text(&self, text: &str) -> CoreResult<String> {
        Ok(lock(&self.writer)?.text(text))
    }

    /// More reasoning. With `data`, the JSON text of an object on one line, it has ended.
    #[pyo3(signature = (text, data = None))]
    fn reasoning(&self, text: &str, data: Option<&str>) -> CoreResult<String> {
        Ok(lock(&self.writer)?.reasoning(text, data))
    }

    /// A call, or more of it. `whole` says that it has ended.
    #[pyo3(signature = (index, id, tool, arguments, data = None, whole = false))]
    fn call(
        &self,
        index: u64,
        id: &str,
        tool: &str,
        arguments: &str,
        data: Option<&str>,
        whole: bool,
    ) -> CoreResult<String> {
        Ok(lock(&self.writer)?.call(index, id, tool, arguments, data, whole))
    }

    /// The service could not read its own model's call.
    fn fault(&self, message: &str, raw: &str) -> CoreResult<String> {
        Ok(lock(&self.writer)?.fault(message, raw))
    }

    /// The reply has ended. The last line of a truncated reply stays open.
    fn finish(&self, cut: bool) -> CoreResult<String> {
        Ok(lock(&self.writer)?.finish(cut))
    }
}
