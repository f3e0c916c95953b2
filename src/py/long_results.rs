//! Long results, for drivers.

use super::error::CoreResult;
use super::run_view::PyRunView;
use pyo3::prelude::*;

/// Bytes that the last message of a run shows of its longest result; 0 if it can't be cut.
#[pyfunction]
pub(super) fn longest_shown(run: &PyRunView) -> CoreResult<usize> {
    let held = run.lock()?;
    let machine = held.machine();
    Ok(machine.state().longest_shown(&*machine.setup().protocol))
}

/// Whether the model of a run is offered `read_result`.
#[pyfunction]
pub(super) fn offers_read_result(run: &PyRunView) -> CoreResult<bool> {
    Ok(run.lock()?.machine().offers_read_result())
}
