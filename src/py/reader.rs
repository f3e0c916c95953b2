//! Reading a reply that arrives in chunks: what is new of it, and what is there of it.

use super::command::PyDelta;
use super::error::{self, CoreError, CoreResult};
use super::growing_value::GrowingValue;
use super::lock::lock;
use super::protocol::{DETACH_BYTES, finish_reason};
use super::reply::PyReply;
use crate::protocol::decoder::beside_tools;
use crate::protocol::snapshot::{ReplySnapshot, SnapshotAnswer, SnapshotCall};
use crate::protocol::{Decoder, Protocol, ReadOptions, Status};
use crate::tool::ToolSet;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyList, PyString};
use std::sync::{Arc, Mutex};

/// The reply as far as it has come.
struct Reading {
    decoder: Option<Box<dyn Decoder>>,
    told: ReplySnapshot,
    status: Status,
    /// How many calls the list has; `None` while it is extended.
    listed: Option<usize>,
}

/// What a reader and its snapshots share.
struct Shared {
    reading: Arc<Mutex<Reading>>,
    options: ReadOptions,
    protocol: Arc<dyn Protocol>,
    /// The tools that an answer can't end with a call of.
    tools: Option<Arc<ToolSet>>,
    calls: Py<PyList>,
    answer: GrowingValue,
}

fn finished() -> CoreError {
    error::value("the reader is finished: make a new one for the next reply")
}

fn status_text(py: Python<'_>, status: Status) -> &Bound<'_, PyString> {
    match status {
        Status::Open => intern!(py, "open"),
        Status::Complete(_) => intern!(py, "complete"),
        Status::Doomed => intern!(py, "doomed"),
    }
}

/// Reads one reply that arrives in chunks.
#[pyclass(name = "Reader", module = "callslip._core", frozen)]
pub(super) struct PyReader(Arc<Shared>);

impl PyReader {
    pub(super) fn new(
        py: Python<'_>,
        protocol: Arc<dyn Protocol>,
        options: ReadOptions,
        tools: Option<Arc<ToolSet>>,
    ) -> Self {
        let reading = Reading {
            decoder: Some(protocol.decoder(options)),
            told: ReplySnapshot::default(),
            status: Status::Open,
            listed: Some(0),
        };
        Self(Arc::new(Shared {
            reading: Arc::new(Mutex::new(reading)),
            options,
            protocol,
            tools,
            calls: PyList::empty(py).unbind(),
            answer: GrowingValue::any(options),
        }))
    }
}

#[pymethods]
impl PyReader {
    /// Takes the next bytes. Returns what is new, and `open`, `complete` or `doomed`.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn push<'py>(&self, py: Python<'py>, chunk: Chunk) -> CoreResult<(Bound<'py, PyList>, &Bound<'py, PyString>)> {
        let bytes = chunk.bytes();
        let push = |reading: &mut Reading| {
            let mut deltas = Vec::new();
            let decoder = reading.decoder.as_mut().ok_or_else(finished)?;
            // A move that is whole counts as complete once nothing that may follow changes it.
            reading.status = match (decoder.push(bytes, &mut deltas), decoder.settled()) {
                (Status::Doomed, _) => Status::Doomed,
                (_, Some(at)) => Status::Complete(at),
                (_, None) => Status::Open,
            };
            for delta in &deltas {
                reading.told.add(delta);
            }
            Ok::<_, CoreError>((deltas, reading.status))
        };
        let reading = &self.0.reading;
        let (deltas, status) = if bytes.len() > DETACH_BYTES {
            py.detach(|| push(&mut *reading.lock()?))
        } else {
            push(&mut *lock(reading)?)
        }?;
        Ok((PyList::new(py, deltas.into_iter().map(|delta| PyDelta::new(delta, None)))?, status_text(py, status)))
    }

    /// What is there of the reply.
    fn snapshot(&self) -> CoreResult<PySnapshot> {
        let reading = lock(&self.0.reading)?;
        let told = &reading.told;
        let answer = match &told.answer {
            None => None,
            Some(SnapshotAnswer::Text(text)) => Some(text.len()),
            Some(SnapshotAnswer::Json(_)) => Some(0),
        };
        let texts = [told.thoughts.len(), told.reasoning.len(), told.text.len()];
        let ticket = told.ticket_id.is_some();
        Ok(PySnapshot { shared: Arc::clone(&self.0), status: reading.status, texts, answer, ticket })
    }

    /// Closes the reply and reads what is left.
    #[pyo3(signature = (finish_reason = None))]
    fn finish(&self, py: Python<'_>, finish_reason: Option<&str>) -> CoreResult<PyReply> {
        let reason = self::finish_reason(finish_reason)?;
        let decoder = lock(&self.0.reading)?.decoder.take().ok_or_else(finished)?;
        let reply = decoder.finish(reason);
        Ok(PyReply::new(
            py,
            match &self.0.tools {
                Some(tools) => beside_tools(&*self.0.protocol, tools, reply),
                None => reply,
            },
        )?)
    }
}

/// What is there of a reply that is still arriving.
#[pyclass(name = "Snapshot", module = "callslip._core", frozen)]
pub(super) struct PySnapshot {
    shared: Arc<Shared>,
    status: Status,
    /// Bytes of the thoughts, the reasoning and the text at that moment.
    texts: [usize; 3],
    /// Whether the answer had begun, and its bytes where it is text.
    answer: Option<usize>,
    /// Whether the ticket's id was there.
    ticket: bool,
}

impl PySnapshot {
    fn text_of(&self, of: impl FnOnce(&ReplySnapshot) -> &String, length: usize) -> CoreResult<String> {
        let reading = lock(&self.shared.reading)?;
        Ok(of(&reading.told).get(..length).unwrap_or_default().to_owned())
    }
}

#[pymethods]
impl PySnapshot {
    /// What was known of the reply: `open`, `complete` or `doomed`.
    #[getter]
    fn status<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        status_text(py, self.status)
    }

    /// The thoughts so far.
    #[getter]
    fn thoughts(&self) -> CoreResult<String> {
        self.text_of(|told| &told.thoughts, self.texts[0])
    }

    /// The reasoning so far, in front of a react or ticket reply.
    #[getter]
    fn reasoning(&self) -> CoreResult<String> {
        self.text_of(|told| &told.reasoning, self.texts[1])
    }

    /// The text before a tool block so far, which may yet be a direct answer (chatty).
    #[getter]
    fn text(&self) -> CoreResult<String> {
        self.text_of(|told| &told.text, self.texts[2])
    }

    /// The final answer so far; `None` before it begins.
    #[getter]
    fn answer(&self, py: Python<'_>) -> CoreResult<Option<Py<PyAny>>> {
        let Some(length) = self.answer else { return Ok(None) };
        let text = match &lock(&self.shared.reading)?.told.answer {
            Some(SnapshotAnswer::Text(text)) => Some(text.get(..length).unwrap_or_default().to_owned()),
            _ => None,
        };
        if let Some(text) = text {
            return Ok(Some(PyString::new(py, &text).into_any().unbind()));
        }
        self.shared.answer.read(py, |text| {
            if let Some(SnapshotAnswer::Json(unread)) = &mut lock(&self.shared.reading)?.told.answer {
                unread.read_to(text);
            }
            Ok(())
        })
    }

    /// The calls so far.
    #[getter]
    fn calls(&self, py: Python<'_>) -> CoreResult<Py<PyList>> {
        let Shared { reading, options, calls, .. } = &*self.shared;
        let (listed, known) = {
            let mut reading = lock(reading)?;
            let known = reading.told.calls();
            (reading.listed.take_if(|listed| *listed < known), known)
        };
        if let Some(listed) = listed {
            let extended = (listed..known).try_for_each(|call| {
                let arguments = GrowingValue::object(py, *options);
                calls.bind(py).append(PyPartialCall { reading: Arc::clone(reading), call, arguments })
            });
            lock(reading)?.listed = Some(known);
            extended?;
        }
        Ok(calls.clone_ref(py))
    }

    /// The id of the ticket to await or load (ticket).
    #[getter]
    fn ticket_id(&self) -> CoreResult<Option<String>> {
        let reading = lock(&self.shared.reading)?;
        Ok(if self.ticket { reading.told.ticket_id.clone() } else { None })
    }

    fn __repr__(&self, py: Python<'_>) -> CoreResult<String> {
        let answer = match self.answer(py)? {
            Some(answer) => format!(", answer={}", answer.bind(py).repr()?),
            None => String::new(),
        };
        let calls = self.calls(py)?;
        let calls = match calls.bind(py) {
            calls if calls.is_empty() => String::new(),
            calls => format!(", calls={}", calls.repr()?),
        };
        Ok(format!("Snapshot(status='{}'{answer}{calls})", status_text(py, self.status)))
    }
}

/// One call of a reply that is still arriving.
#[pyclass(name = "PartialCall", module = "callslip._core", frozen)]
pub(super) struct PyPartialCall {
    reading: Arc<Mutex<Reading>>,
    call: usize,
    arguments: GrowingValue,
}

impl PyPartialCall {
    fn of(&self, of: impl FnOnce(&SnapshotCall) -> &Option<String>) -> CoreResult<Option<String>> {
        Ok(lock(&self.reading)?.told.call(self.call).and_then(|call| of(call).clone()))
    }
}

#[pymethods]
impl PyPartialCall {
    /// The model's own name for the call (chatty), once it is complete.
    #[getter]
    fn call_id(&self) -> CoreResult<Option<String>> {
        self.of(|call| &call.id)
    }

    /// The tool's name or route, once it is complete.
    #[getter]
    fn tool(&self) -> CoreResult<Option<String>> {
        self.of(|call| &call.tool)
    }

    /// The arguments so far.
    #[getter]
    fn arguments(&self, py: Python<'_>) -> CoreResult<Option<Py<PyAny>>> {
        self.arguments.read(py, |text| {
            if let Some(call) = lock(&self.reading)?.told.call_mut(self.call) {
                call.arguments.read_to(text);
            }
            Ok(())
        })
    }

    fn __repr__(&self, py: Python<'_>) -> CoreResult<String> {
        let tool = match self.tool()? {
            Some(tool) => PyString::new(py, &tool).repr()?.to_string(),
            None => "None".to_owned(),
        };
        let arguments = match self.arguments(py)? {
            Some(arguments) => arguments.bind(py).repr()?.to_string(),
            None => "{}".to_owned(),
        };
        Ok(format!("PartialCall(tool={tool}, arguments={arguments})"))
    }
}

/// Text or bytes of a reply; bytes may end inside a character.
pub(super) enum Chunk {
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
}

impl<'py> FromPyObject<'_, 'py> for Chunk {
    type Error = PyErr;

    fn extract(chunk: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if chunk.is_instance_of::<PyString>() {
            return chunk.extract().map(Self::Text);
        }
        chunk.extract().map(Self::Bytes).map_err(|_| {
            let kind = chunk.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string());
            error::value(format!("expected text or bytes of a reply: got {kind}")).into()
        })
    }
}

impl Chunk {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}
