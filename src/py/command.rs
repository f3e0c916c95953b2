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
            Command::Settle => Self::Settle {},
            Command::Cancel { ticket } => Self::Cancel { ticket: ticket.0 },
            Command::Finish => Self::Finish {},
        })
    }
}

/// A new part of a reply that is still arriving. Texts only grow.
#[pyclass(name = "Delta", module = "callslip._core", frozen)]
pub(super) enum PyDelta {
    /// More of the thoughts.
    Thoughts { text: String },
    /// More of the model's reasoning: before the protocol's own reply, or beside it.
    Reasoning { text: String },
    /// More of the text before a tool block, which may yet turn out to be a direct answer (chatty).
    Text { text: String },
    /// More of the final answer.
    Answer { text: String },
    /// A call's own id is complete, or was given to it (chatty).
    CallId { call: usize, id: String },
    /// A call's tool name or route is complete.
    Tool { call: usize, name: String },
    /// More of a call's arguments, as the raw text of their JSON.
    Arguments { call: usize, text: String },
    /// A call is complete while the rest of its block is still arriving (chatty).
    CallReady { call: usize },
    /// The id of the ticket to await or load is complete.
    TicketId { id: String },
}

#[pymethods]
impl PyDelta {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shown = |text: &str| Ok::<_, PyErr>(PyString::new(py, text).repr()?.to_string());
        Ok(match self {
            Self::Thoughts { text } => format!("Delta.Thoughts(text={})", shown(text)?),
            Self::Reasoning { text } => format!("Delta.Reasoning(text={})", shown(text)?),
            Self::Text { text } => format!("Delta.Text(text={})", shown(text)?),
            Self::Answer { text } => format!("Delta.Answer(text={})", shown(text)?),
            Self::CallId { call, id } => format!("Delta.CallId(call={call}, id={})", shown(id)?),
            Self::Tool { call, name } => format!("Delta.Tool(call={call}, name={})", shown(name)?),
            Self::Arguments { call, text } => format!("Delta.Arguments(call={call}, text={})", shown(text)?),
            Self::CallReady { call } => format!("Delta.CallReady(call={call})"),
            Self::TicketId { id } => format!("Delta.TicketId(id={})", shown(id)?),
        })
    }
}

impl From<Delta> for PyDelta {
    fn from(delta: Delta) -> Self {
        match delta {
            Delta::Thoughts(text) => Self::Thoughts { text },
            Delta::Reasoning(text) => Self::Reasoning { text },
            Delta::Text(text) => Self::Text { text },
            Delta::Answer(text) | Delta::Value(text) => Self::Answer { text },
            Delta::CallId { call, id } => Self::CallId { call, id },
            Delta::Tool { call, name, .. } => Self::Tool { call, name },
            Delta::Arguments { call, text } => Self::Arguments { call, text },
            Delta::CallReady { call } => Self::CallReady { call },
            Delta::TicketId { id, .. } => Self::TicketId { id },
        }
    }
}
