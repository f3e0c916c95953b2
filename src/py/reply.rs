//! Replies, moves and violations as Python sees them.

use super::value::to_python;
use crate::protocol::{Move, Reply, ToolCall};
use crate::reply::violation::Violation;
use crate::reply::{LineColumn, Span};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// One tool call as the model wrote it.
#[pyclass(name = "ToolCall", module = "callslip._core", frozen, get_all)]
pub(super) struct PyToolCall {
    /// The model's own name for the call (chatty).
    call_id: Option<String>,
    /// The tool's name, or the route in the ticket protocol.
    tool: String,
    /// A dict (chatty, react), or the payload as it was written (ticket).
    arguments: Py<PyAny>,
    /// Why the call is made (ticket).
    description: Option<String>,
}

impl PyToolCall {
    fn new(py: Python<'_>, call: &ToolCall) -> PyResult<Self> {
        Ok(Self {
            call_id: call.call_id.clone(),
            tool: call.tool.clone(),
            arguments: to_python(py, &call.arguments)?.unbind(),
            description: call.description.clone(),
        })
    }
}

#[pymethods]
impl PyToolCall {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let arguments = self.arguments.bind(py).repr()?;
        Ok(format!("ToolCall(tool={:?}, arguments={arguments})", self.tool))
    }
}

/// What one reply asks for.
#[pyclass(name = "Move", module = "callslip._core", frozen)]
pub(super) enum PyMove {
    /// The run is over.
    Finish { value: Py<PyAny>, success: Option<bool> },
    /// Tool calls, side by side.
    Call { calls: Vec<Py<PyToolCall>> },
    /// A task for a child run.
    Delegate { task: String },
    /// Sleep until a ticket is completed.
    Await { ticket_id: String },
    /// Put a completed ticket's result before the model.
    #[pyo3(constructor = (ticket_id, offset = 0))]
    Load { ticket_id: String, offset: usize },
}

impl PyMove {
    fn new(py: Python<'_>, moved: &Move) -> PyResult<Self> {
        Ok(match moved {
            Move::Finish { value, success, .. } => {
                Self::Finish { value: to_python(py, value)?.unbind(), success: *success }
            }
            Move::Call { calls } => Self::Call {
                calls: calls.iter().map(|call| Py::new(py, PyToolCall::new(py, call)?)).collect::<PyResult<_>>()?,
            },
            Move::Delegate { task } => Self::Delegate { task: task.clone() },
            Move::Await { ticket_id } => Self::Await { ticket_id: ticket_id.clone() },
            Move::Load { ticket_id, offset } => Self::Load { ticket_id: ticket_id.clone(), offset: *offset },
        })
    }
}

#[pymethods]
impl PyMove {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(match self {
            Self::Finish { value, success: None } => format!("Move.Finish({})", value.bind(py).repr()?),
            Self::Finish { value, success: Some(success) } => {
                let success = if *success { "True" } else { "False" };
                format!("Move.Finish({}, success={success})", value.bind(py).repr()?)
            }
            Self::Call { calls } => {
                let calls: PyResult<Vec<String>> = calls.iter().map(|call| call.get().__repr__(py)).collect();
                format!("Move.Call([{}])", calls?.join(", "))
            }
            Self::Delegate { task } => format!("Move.Delegate({task:?})"),
            Self::Await { ticket_id } => format!("Move.Await({ticket_id:?})"),
            Self::Load { ticket_id, offset: 0 } => format!("Move.Load({ticket_id:?})"),
            Self::Load { ticket_id, offset } => format!("Move.Load({ticket_id:?}, offset={offset})"),
        })
    }
}

/// A departure from the syntax that was repaired.
#[pyclass(name = "Repair", module = "callslip._core", frozen, get_all, eq)]
#[derive(PartialEq)]
pub(super) struct PyRepair {
    /// The stable name.
    code: String,
    /// Half-open range of bytes in the reply's UTF-8 text.
    span: (usize, usize),
}

#[pymethods]
impl PyRepair {
    fn __repr__(&self) -> String {
        format!("Repair(code='{}', span=({}, {}))", self.code, self.span.0, self.span.1)
    }
}

/// One breach of the protocol, with its place in the reply.
#[pyclass(name = "Violation", module = "callslip._core", frozen, get_all)]
pub(super) struct PyViolation {
    /// The stable name.
    code: String,
    /// What was expected, what came.
    message: String,
    /// Half-open range of bytes in the reply's UTF-8 text.
    span: Option<(usize, usize)>,
    /// Line and column in characters, both from 1.
    line: Option<usize>,
    /// Column in characters, from 1.
    column: Option<usize>,
    /// JSON pointer into the payload.
    pointer: Option<String>,
    /// The smallest correct form, or the schema that was expected.
    expected: Option<String>,
    /// What came instead.
    found: Option<String>,
    /// What to do.
    hint: Option<String>,
}

impl PyViolation {
    pub(super) fn new(violation: &Violation, raw: &str) -> Self {
        let place = violation.span.map(|span| LineColumn::of(raw, span.start));
        Self {
            code: violation.code_text(),
            message: violation.message.clone(),
            span: violation.span.map(pair),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            pointer: violation.pointer.clone(),
            expected: violation.expected.clone(),
            found: violation.found.clone(),
            hint: violation.hint.clone(),
        }
    }
}

#[pymethods]
impl PyViolation {
    fn __repr__(&self) -> String {
        format!("Violation(code='{}', message={:?})", self.code, self.message)
    }

    fn __str__(&self) -> &str {
        &self.message
    }

    /// What a notebook shows.
    #[pyo3(signature = (**_options))]
    fn _repr_mimebundle_<'py>(
        slf: &Bound<'py, Self>,
        _options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("callslip.look._outputs")?.call_method1("bundle_of_violation", (slf,))
    }
}

fn pair(span: Span) -> (usize, usize) {
    (span.start, span.end)
}

/// One reply, read.
#[pyclass(name = "Reply", module = "callslip._core", frozen, get_all)]
pub(super) struct PyReply {
    /// The whole text that was read.
    raw: String,
    /// The protocol's own notes: ticket thoughts, the react `thought`, the reasoning block of a chatty reply.
    thoughts: Option<String>,
    /// Reasoning in front of a react or ticket reply.
    reasoning: Option<String>,
    /// The text before a tool block (chatty).
    narration: Option<String>,
    /// What the reply asks for; `None` where it breaks the protocol.
    #[pyo3(name = "move")]
    moved: Option<Py<PyMove>>,
    /// What is wrong with it; `None` where nothing is.
    violation: Option<Py<PyViolation>>,
    /// What was repaired, in the order of the text.
    repairs: Vec<Py<PyRepair>>,
    /// Ranges of bytes that were read and dropped.
    discarded: Vec<(usize, usize)>,
}

impl PyReply {
    pub(super) fn new(py: Python<'_>, reply: Reply) -> PyResult<Self> {
        let (moved, violation) = match &reply.outcome {
            Ok(moved) => (Some(PyMove::new(py, moved)?.into_pyobject(py)?.unbind()), None),
            Err(violation) => (None, Some(Py::new(py, PyViolation::new(violation, &reply.raw))?)),
        };
        let repairs = reply
            .repairs
            .iter()
            .map(|repair| Py::new(py, PyRepair { code: repair.code.name().to_owned(), span: pair(repair.span) }));
        Ok(Self {
            moved,
            violation,
            repairs: repairs.collect::<PyResult<_>>()?,
            discarded: reply.discarded.into_iter().map(pair).collect(),
            raw: reply.raw,
            thoughts: reply.thoughts,
            reasoning: reply.reasoning,
            narration: reply.narration,
        })
    }
}

#[pymethods]
impl PyReply {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let what = match (&self.moved, &self.violation) {
            (Some(moved), _) => moved.bind(py).as_any().repr()?.to_string(),
            (None, Some(violation)) => violation.bind(py).as_any().repr()?.to_string(),
            (None, None) => String::new(),
        };
        Ok(format!("Reply({what}, repairs={})", self.repairs.len()))
    }
}
