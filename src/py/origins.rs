//! Where the values of calls come from, as drivers and readers of a run need it.

use super::error::CoreResult;
use super::run_view::PyRunView;
use crate::ticket::Ticket;
use pyo3::prelude::*;

/// The positions of refused replies that the model of a run is shown no longer, with the message behind each.
#[pyfunction]
pub(super) fn hidden_replies(run: &PyRunView) -> CoreResult<Vec<usize>> {
    Ok(run.lock()?.machine().state().conversation.hidden_replies())
}

/// Says whether the driver of a run has somebody to ask for approval.
#[pyfunction]
pub(super) fn set_can_ask(run: &PyRunView, can_ask: bool) -> CoreResult<()> {
    run.lock()?.set_can_ask(can_ask);
    Ok(())
}

/// The origins of a ticket as the JSON text of an object; `None` without any.
pub(super) fn to_json(ticket: &Ticket) -> Option<String> {
    let origins: serde_json::Map<String, serde_json::Value> = ticket
        .origins
        .iter()
        .filter_map(|(pointer, origin)| Some((pointer.clone(), serde_json::to_value(origin).ok()?)))
        .collect();
    (!origins.is_empty()).then(|| serde_json::Value::Object(origins).to_string())
}
