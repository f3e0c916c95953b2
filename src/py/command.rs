//! Commands and deltas as Python sees them.

use super::error::CoreResult;
use super::value::to_python;
use crate::protocol::Delta;
use crate::run::Command;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// One thing for a driver to do.
#[pyclass(name = "Command", module = "callslip._core", frozen)]
pub(super) enum PyCommand {
    /// Ask the model for a reply.
    AskModel { turn: u32 },
    /// Call a tool with keyword arguments.
    CallTool { ticket: u32, tool: String, arguments: Py<PyAny>, again: bool },
    /// Start the run of a task, or resume it.
    StartRun { ticket: u32, tool: String, role: Option<String>, task: String, again: bool },
    /// Wait a moment for the calls just started.
    Settle {},
    /// Check the final answer.
    CheckAnswer { turn: u32, value: Py<PyAny> },
    /// Decide whether a call needs approval.
    CheckApproval { ticket: u32, tool: String, arguments: Py<PyAny> },
    /// Ask for a person's approval, if there is somebody to ask.
    AskApproval { ticket: u32 },
    /// Ask for a result from outside, and end the ticket at that time without one.
    AskResult { ticket: u32, until: Option<f64> },
    /// Stop working on a ticket.
    Cancel { ticket: u32 },
    /// The run is over.
    Finish {},
}

pub(super) fn to_commands(py: Python<'_>, commands: &[Command]) -> CoreResult<Vec<PyCommand>> {
    Ok(commands.iter().map(|command| PyCommand::new(py, command)).collect::<PyResult<_>>()?)
}

impl PyCommand {
    fn new(py: Python<'_>, command: &Command) -> PyResult<Self> {
        Ok(match command {
            Command::AskModel { turn } => Self::AskModel { turn: *turn },
            Command::CallTool { ticket, tool, arguments, again } => Self::CallTool {
                ticket: ticket.0,
                tool: tool.to_string(),
                arguments: to_python(py, arguments)?.unbind(),
                again: *again,
            },
            Command::StartRun { ticket, tool, role, task, again } => Self::StartRun {
                ticket: ticket.0,
                tool: tool.to_string(),
                role: role.clone(),
                task: task.clone(),
                again: *again,
            },
            Command::CheckAnswer { turn, value } => {
                Self::CheckAnswer { turn: *turn, value: to_python(py, value)?.unbind() }
            }
            Command::CheckApproval { ticket, tool, arguments } => Self::CheckApproval {
                ticket: ticket.0,
                tool: tool.to_string(),
                arguments: to_python(py, arguments)?.unbind(),
            },
            Command::AskApproval { ticket } => Self::AskApproval { ticket: ticket.0 },
            Command::AskResult { ticket, until } => Self::AskResult { ticket: ticket.0, until: *until },
            Command::Settle => Self::Settle {},
            Command::Cancel { ticket } => Self::Cancel { ticket: ticket.0 },
            Command::Finish => Self::Finish {},
        })
    }
}

/// A new part of a reply that is still arriving. Texts only grow. `turn` is that of a run, without one there is none.
#[pyclass(name = "Delta", module = "callslip._core", frozen)]
pub(super) enum PyDelta {
    /// More of the thoughts.
    #[pyo3(constructor = (text, turn = None))]
    Thoughts { text: String, turn: Option<u32> },
    /// More of the model's reasoning: before the protocol's own reply, or beside it.
    #[pyo3(constructor = (text, turn = None))]
    Reasoning { text: String, turn: Option<u32> },
    /// More of the text before a tool block, which may yet turn out to be a direct answer (chatty).
    #[pyo3(constructor = (text, turn = None))]
    Text { text: String, turn: Option<u32> },
    /// More of the final answer.
    #[pyo3(constructor = (text, turn = None))]
    Answer { text: String, turn: Option<u32> },
    /// A call's own id is complete, or was given to it (chatty).
    #[pyo3(constructor = (call, id, turn = None))]
    CallId { call: usize, id: String, turn: Option<u32> },
    /// A call's tool name or route is complete.
    #[pyo3(constructor = (call, name, turn = None))]
    Tool { call: usize, name: String, turn: Option<u32> },
    /// More of a call's arguments, as the raw text of their JSON.
    #[pyo3(constructor = (call, text, turn = None))]
    Arguments { call: usize, text: String, turn: Option<u32> },
    /// A call is complete while the rest of its block is still arriving (chatty).
    #[pyo3(constructor = (call, turn = None))]
    CallReady { call: usize, turn: Option<u32> },
    /// The id of the ticket to await or load is complete.
    #[pyo3(constructor = (id, turn = None))]
    TicketId { id: String, turn: Option<u32> },
}

#[pymethods]
impl PyDelta {
    /// The turn of its reply in its run; `None` if the reply is of no run.
    #[getter]
    fn turn(&self) -> Option<u32> {
        match self {
            Self::Thoughts { turn, .. }
            | Self::Reasoning { turn, .. }
            | Self::Text { turn, .. }
            | Self::Answer { turn, .. }
            | Self::CallId { turn, .. }
            | Self::Tool { turn, .. }
            | Self::Arguments { turn, .. }
            | Self::CallReady { turn, .. }
            | Self::TicketId { turn, .. } => *turn,
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shown = |text: &str| Ok::<_, PyErr>(PyString::new(py, text).repr()?.to_string());
        let (shown, turn) = match self {
            Self::Thoughts { text, turn } => (format!("Delta.Thoughts(text={}", shown(text)?), turn),
            Self::Reasoning { text, turn } => (format!("Delta.Reasoning(text={}", shown(text)?), turn),
            Self::Text { text, turn } => (format!("Delta.Text(text={}", shown(text)?), turn),
            Self::Answer { text, turn } => (format!("Delta.Answer(text={}", shown(text)?), turn),
            Self::CallId { call, id, turn } => (format!("Delta.CallId(call={call}, id={}", shown(id)?), turn),
            Self::Tool { call, name, turn } => (format!("Delta.Tool(call={call}, name={}", shown(name)?), turn),
            Self::Arguments { call, text, turn } => {
                (format!("Delta.Arguments(call={call}, text={}", shown(text)?), turn)
            }
            Self::CallReady { call, turn } => (format!("Delta.CallReady(call={call}"), turn),
            Self::TicketId { id, turn } => (format!("Delta.TicketId(id={}", shown(id)?), turn),
        };
        Ok(turn.map_or_else(|| format!("{shown})"), |turn| format!("{shown}, turn={turn})")))
    }
}

impl PyDelta {
    /// A delta of the reply of this turn; of none outside of a run.
    pub(super) fn new(delta: Delta, turn: Option<u32>) -> Self {
        match delta {
            Delta::Thoughts(text) => Self::Thoughts { text, turn },
            Delta::Reasoning(text) => Self::Reasoning { text, turn },
            Delta::Text(text) => Self::Text { text, turn },
            Delta::Answer(text) | Delta::Value(text) => Self::Answer { text, turn },
            Delta::CallId { call, id } => Self::CallId { call, id, turn },
            Delta::Tool { call, name, .. } => Self::Tool { call, name, turn },
            Delta::Arguments { call, text } => Self::Arguments { call, text, turn },
            Delta::CallReady { call } => Self::CallReady { call, turn },
            Delta::TicketId { id, .. } => Self::TicketId { id, turn },
        }
    }
}
