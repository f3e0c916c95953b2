//! Images and files, with the way to their bytes.

use super::error::{CoreError, CoreResult};
use super::outcome::check_memory;
use crate::live::LiveRun;
use crate::part::{Content, MARK, Part, media_type};
use crate::store::Store;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// An image or a file: one that was just made, or one of a run.
#[pyclass(name = "Part", module = "callslip._core", frozen, from_py_object)]
#[derive(Clone)]
pub(super) struct PyPart {
    part: Part,
    data: Option<Arc<[u8]>>,
    /// The run that has it, in the store that has its bytes.
    source: Option<(Arc<dyn Store>, Arc<str>)>,
}

impl PyPart {
    /// A part of a run.
    pub(super) fn of_run(run: &LiveRun, part: &Part) -> Self {
        let (data, source) = (run.content(&part.sha256), run.source());
        let run_id: Arc<str> = run.machine().run_id().into();
        Self { part: part.clone(), data, source: source.map(|store| (store, run_id)) }
    }

    /// A part of a run of a store.
    pub(super) fn of_store(store: &Arc<dyn Store>, run_id: &str, part: Part) -> Self {
        Self { part, data: None, source: Some((Arc::clone(store), run_id.into())) }
    }

    /// The part for the core, and its bytes.
    pub(super) fn split(&self, py: Python<'_>) -> CoreResult<(Part, Content)> {
        let data = self.bytes(py)?;
        Ok((self.part.clone(), Content { sha256: Arc::clone(&self.part.sha256), data }))
    }

    pub(super) fn part(&self) -> &Part {
        &self.part
    }

    fn bytes(&self, py: Python<'_>) -> CoreResult<Arc<[u8]>> {
        self.stored_bytes(py)?.ok_or_else(|| CoreError::NoContent(self.part.line()))
    }

    /// Its bytes; `None` if its log came without them.
    pub(super) fn stored_bytes(&self, py: Python<'_>) -> CoreResult<Option<Arc<[u8]>>> {
        Ok(match (&self.data, &self.source) {
            (Some(data), _) => Some(Arc::clone(data)),
            (None, Some((store, run_id))) => py.detach(|| store.content(run_id, &self.part.sha256))?,
            (None, None) => None,
        })
    }
}

/// The parts of an input, and their bytes.
pub(super) fn split_all(py: Python<'_>, parts: &[PyPart]) -> CoreResult<(Vec<Part>, Vec<Content>)> {
    let both: Vec<(Part, Content)> = parts.iter().map(|part| part.split(py)).collect::<CoreResult<_>>()?;
    Ok(both.into_iter().unzip())
}

#[pymethods]
impl PyPart {
    /// A part that has no label yet.
    #[new]
    fn new(py: Python<'_>, data: &Bound<'_, PyBytes>, media_type: &str, name: Option<&str>) -> CoreResult<Self> {
        let bytes = data.as_bytes();
        check_memory(bytes.len())?;
        let content = py.detach(|| Content::new(bytes));
        let part = Part::new("", media_type, name, &content);
        Ok(Self { part, data: Some(content.data), source: None })
    }

    /// The media type of a file, by its first bytes or its name; `None` if they do not say it.
    #[staticmethod]
    fn guess_type(data: &Bound<'_, PyBytes>, name: Option<&str>) -> Option<String> {
        media_type(data.as_bytes(), name)
    }

    /// The same part, still to be placed: `mark` stands for it in a text, and begins with `MARK`.
    fn marked(&self, mark: &str) -> Self {
        Self { part: Part { label: mark.into(), ..self.part.clone() }, ..self.clone() }
    }

    /// What a mark begins with.
    #[classattr]
    const MARK: &'static str = MARK;

    /// Its bytes. Raises `StoreError` if its log came without them.
    fn data<'py>(&self, py: Python<'py>) -> CoreResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.bytes(py)?))
    }

    /// Its name in its run; its mark, or nothing, as long as it has none.
    #[getter]
    fn label(&self) -> &str {
        &self.part.label
    }

    /// Whether it came from the user of its run, and not with a result.
    #[getter]
    fn is_of_user(&self) -> bool {
        self.part.is_of_user()
    }

    /// `image/png` and the like.
    #[getter]
    fn media_type(&self) -> &str {
        &self.part.media_type
    }

    /// The name of its file.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.part.name.as_deref()
    }

    /// How many bytes it has.
    #[getter]
    fn size(&self) -> u64 {
        self.part.bytes
    }

    /// Pixels of an image; `None` if they can't be read.
    #[getter]
    fn width(&self) -> Option<u32> {
        self.part.width
    }

    /// Pixels of an image; `None` if they can't be read.
    #[getter]
    fn height(&self) -> Option<u32> {
        self.part.height
    }

    /// SHA-256 of its bytes, in hexadecimal digits.
    #[getter]
    fn sha256(&self) -> &str {
        &self.part.sha256
    }

    /// The line that tells it to a model.
    #[getter]
    fn line(&self) -> String {
        self.part.line()
    }
}
