//! Where the values of calls come from, as drivers and readers of a run need it.

use super::error::CoreResult;
use super::run_view::PyRunView;
use crate::ticket::TicketId;
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

/// The origins of a call's values as JSON text of an object. They are traced now if the log does not have them.
#[pyfunction]
pub(super) fn origins_of(run: &PyRunView, ticket: u32) -> CoreResult<String> {
    let origins: serde_json::Map<String, serde_json::Value> = run
        .lock()?
        .origins(TicketId(ticket))
        .into_iter()
        .filter_map(|(pointer, origin)| Some((pointer, serde_json::to_value(origin).ok()?)))
        .collect();
    Ok(serde_json::Value::Object(origins).to_string())
}
