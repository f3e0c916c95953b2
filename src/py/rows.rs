//! What the border returns as data: frozen classes with named fields, whose meaning the stub says.

use super::error::{self, CoreResult};
use super::part::PyPart;
use super::value::{items_to_python, to_python};
use crate::live::LiveRun;
use crate::protocol::{Message, Readable};
use crate::run::state::Ending;
use crate::run::{Limit, Shortened, StopReason, Usage};
use crate::store::{RunRow, Store, TicketRow};
use crate::ticket::{Status, Ticket, TicketId};
use crate::tool::openapi::Request;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use std::sync::Arc;

/// What replies cost.
#[pyclass(name = "Usage", module = "callslip._core", frozen, get_all)]
#[derive(Clone, Copy)]
pub(super) struct PyUsage {
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
    cost: f64,
    /// Whether a cost is reported.
    priced: bool,
}

#[pymethods]
impl PyUsage {
    #[new]
    fn new(input_tokens: u64, output_tokens: u64, cached_tokens: u64, cost: Option<f64>) -> Self {
        Self { input_tokens, output_tokens, cached_tokens, cost: cost.unwrap_or_default(), priced: cost.is_some() }
    }
}

impl From<Usage> for PyUsage {
    fn from(usage: Usage) -> Self {
        let Usage { input_tokens, output_tokens, cached_tokens, cost, unpriced } = usage;
        Self { input_tokens, output_tokens, cached_tokens, cost, priced: !unpriced }
    }
}

impl From<PyUsage> for Usage {
    fn from(usage: PyUsage) -> Self {
        let PyUsage { input_tokens, output_tokens, cached_tokens, cost, priced } = usage;
        // JSON has no other numbers.
        let cost = if cost.is_finite() { cost } else { 0.0 };
        Self { input_tokens, output_tokens, cached_tokens, cost, unpriced: !priced }
    }
}

/// One ticket of a run.
#[pyclass(name = "TicketRow", module = "callslip._core", frozen, get_all)]
pub(super) struct PyTicketRow {
    run_id: String,
    id: String,
    kind: &'static str,
    description: String,
    status: &'static str,
    tool: String,
    call_id: Option<String>,
    parked: bool,
    attempts: u32,
    outcome: Option<String>,
    text: Option<String>,
    turn: u32,
    opened_at: f64,
    completed_at: Option<f64>,
    arguments: Option<String>,
    approval_reason: Option<String>,
    awaits_result: bool,
    answers: Option<String>,
    untrusted: bool,
    seal: Option<String>,
    parts: Vec<PyPart>,
    /// Ids of untrusted results.
    influenced: Vec<String>,
}

fn status_word(status: Status) -> &'static str {
    match status {
        Status::InProgress => "IN_PROGRESS",
        Status::Completed => "COMPLETED",
    }
}

impl PyTicketRow {
    pub(super) fn of_store(store: &Arc<dyn Store>, row: TicketRow) -> Self {
        let answers = row.answers();
        let part = |part| PyPart::of_store(store, &row.run_id, part);
        let parts = row.parts.iter().cloned().map(part).collect();
        Self {
            status: status_word(row.status()),
            id: row.ticket.to_string(),
            kind: row.kind.as_str(),
            run_id: row.run_id,
            description: row.description,
            tool: row.tool,
            call_id: row.call_id,
            parked: row.parked,
            attempts: row.attempts,
            approval_reason: row.approval_reason,
            awaits_result: row.awaits_result.unwrap_or_default(),
            answers: answers.map(|answers| answers.to_string()),
            untrusted: row.untrusted,
            outcome: row.outcome,
            text: row.text,
            turn: row.turn,
            opened_at: row.opened_at,
            completed_at: row.completed_at,
            arguments: row.arguments,
            // Its key is in the log of the run.
            seal: None,
            parts,
            influenced: Vec::new(),
        }
    }
}

impl PyTicketRow {
    pub(super) fn of_run(run: &LiveRun, ticket: &Ticket) -> Self {
        let outcome = ticket.outcome.as_ref();
        Self {
            run_id: run.machine().run_id().to_owned(),
            id: ticket.id.to_string(),
            kind: ticket.kind.as_str(),
            description: ticket.description.to_string(),
            status: status_word(ticket.status()),
            tool: ticket.tool.to_string(),
            call_id: ticket.call_id.clone(),
            parked: run.machine().awaits_approval(ticket.id),
            attempts: ticket.attempts,
            approval_reason: ticket.approval_reason.as_deref().map(str::to_owned),
            awaits_result: ticket.awaits_result,
            answers: ticket.answers().map(|answers| answers.to_string()),
            untrusted: ticket.untrusted,
            outcome: outcome.map(|outcome| outcome.word().to_owned()),
            text: outcome.map(|outcome| outcome.text().to_owned()),
            turn: ticket.turn,
            opened_at: ticket.opened_at,
            completed_at: ticket.completed_at,
            arguments: ticket.arguments.as_ref().map(|arguments| arguments.to_json()),
            seal: run.machine().awaits_approval(ticket.id).then(|| run.machine().seal(ticket.id)).flatten(),
            parts: ticket.parts.iter().map(|part| PyPart::of_run(run, part)).collect(),
            influenced: run.machine().influences(ticket).iter().map(ToString::to_string).collect(),
        }
    }
}

/// One run of a store.
#[pyclass(name = "RunRow", module = "callslip._core", frozen, get_all)]
pub(super) struct PyRunRow {
    run_id: String,
    agent: String,
    owner: Option<String>,
    key: Option<String>,
    protocol: Option<String>,
    task: String,
    parent_run: Option<String>,
    parent_ticket: Option<String>,
    status: &'static str,
    stop_reason: Option<&'static str>,
    error: Option<String>,
    turns: u32,
    violations: u32,
    usage: PyUsage,
    started_at: f64,
    updated_at: f64,
    finished_at: Option<f64>,
}

impl From<RunRow> for PyRunRow {
    fn from(row: RunRow) -> Self {
        let (input_tokens, output_tokens, cached_tokens) = (row.input_tokens, row.output_tokens, row.cached_tokens);
        let status = row.status().as_str();
        let (parent_run, parent_ticket) = row.parent.map(|parent| (parent.run_id, parent.ticket.to_string())).unzip();
        Self {
            run_id: row.run_id,
            agent: row.agent,
            owner: row.owner,
            key: row.key,
            protocol: Some(row.protocol).filter(|name| !name.is_empty()),
            task: row.task,
            parent_run,
            parent_ticket,
            status,
            stop_reason: row.stop_reason.map(StopReason::name),
            error: row.error,
            turns: row.turns,
            violations: row.violations,
            usage: PyUsage { input_tokens, output_tokens, cached_tokens, cost: row.cost, priced: true },
            started_at: row.started_at,
            updated_at: row.updated_at,
            finished_at: row.finished_at,
        }
    }
}

/// How a run ended.
#[pyclass(name = "Ending", module = "callslip._core", frozen, get_all)]
pub(super) struct PyEnding {
    reason: &'static str,
    value: Py<PyAny>,
    success: Option<bool>,
    error: Option<String>,
    limit: Option<&'static str>,
    /// Whether the value is the calls at which the run has ended.
    at_calls: bool,
}

impl PyEnding {
    pub(super) fn new(py: Python<'_>, ending: Ending, limit: Option<Limit>, at_calls: bool) -> PyResult<Self> {
        let value = to_python(py, &ending.value)?.unbind();
        let Ending { reason, success, error, .. } = ending;
        Ok(Self { reason: reason.name(), value, success, error, limit: limit.map(Limit::name), at_calls })
    }
}

/// What the model is shown no longer.
#[pyclass(name = "Shortened", module = "callslip._core", frozen, get_all)]
pub(super) struct PyShortened {
    exchanges: u32,
    results: u32,
    summary: Option<String>,
}

impl From<&Shortened> for PyShortened {
    fn from(shortened: &Shortened) -> Self {
        let summary = shortened.summary.as_deref().map(str::to_owned);
        Self { exchanges: shortened.exchanges, results: shortened.results, summary }
    }
}

/// A task that another run works on.
#[pyclass(name = "OpenTask", module = "callslip._core", frozen, get_all)]
pub(super) struct PyOpenTask {
    ticket: u32,
    tool: String,
    role: Option<String>,
}

impl From<(TicketId, Arc<str>, Option<String>)> for PyOpenTask {
    fn from((ticket, tool, role): (TicketId, Arc<str>, Option<String>)) -> Self {
        Self { ticket: ticket.0, tool: tool.to_string(), role }
    }
}

/// One message of a transcript.
#[pyclass(name = "Message", module = "callslip._core", frozen, get_all)]
pub(super) struct PyMessage {
    role: &'static str,
    content: Py<PyString>,
    parts: Vec<PyPart>,
    /// The items; `None` for plain text (native).
    items: Option<Py<PyList>>,
}

/// A message, read while its run is locked.
pub(super) struct MessageOfRun {
    message: Message,
    parts: Vec<PyPart>,
    readable: Option<Readable>,
}

impl MessageOfRun {
    pub(super) fn of(run: &LiveRun, position: usize) -> CoreResult<Self> {
        let message = run.machine().state().conversation.messages.get(position);
        let message = message.ok_or_else(|| error::value(format!("there is no message {position}")))?.clone();
        let parts = message.parts.iter().map(|part| PyPart::of_run(run, part)).collect();
        Ok(Self { message, parts, readable: run.machine().readable(position) })
    }

    pub(super) fn into_row(self, py: Python<'_>) -> PyResult<PyMessage> {
        let Self { message, parts, readable } = self;
        let content = readable.as_ref().map_or(&*message.content, |readable| &*readable.content);
        let content = PyString::new(py, content).unbind();
        let items = readable.map(|readable| items_to_python(py, &readable.items)).transpose()?;
        Ok(PyMessage { role: message.role.as_str(), content, parts, items })
    }
}

/// The request that calls an operation.
#[pyclass(name = "HttpRequest", module = "callslip._core", frozen, get_all)]
pub(super) struct PyHttpRequest {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Py<PyBytes>,
}

impl PyHttpRequest {
    pub(super) fn new(py: Python<'_>, request: Request) -> Self {
        let Request { method, url, headers, body } = request;
        Self { method, url, headers, body: PyBytes::new(py, &body).unbind() }
    }
}
