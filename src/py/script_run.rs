//! The run of a script, for the driver of its interpreter.

use super::error::CoreResult;
use super::run_view::PyRunView;
use crate::codes::Code;
use crate::run::ScriptOutcome;
use crate::ticket::Decision;
use pyo3::prelude::*;

/// Number of the call, kind, JSON or message, time, ticket, and whether a person has changed the arguments.
type Row = (usize, &'static str, String, f64, Option<u32>, bool);

/// The outcomes of a script in the order of the log, without the first `known`.
#[pyfunction]
pub(super) fn script_outcomes(run: &PyRunView, known: usize) -> CoreResult<Vec<Row>> {
    let held = run.lock()?;
    Ok(held.machine().state().script_outcomes(known).map(|(number, outcome)| row(number, outcome)).collect())
}

/// The replies of an interpreter without the first `known`: the number of outcomes that it knew, and the SHA-256 of the
/// reply, which is empty until it has come.
#[pyfunction]
pub(super) fn script_steps(run: &PyRunView, known: usize) -> CoreResult<Vec<(usize, String)>> {
    let held = run.lock()?;
    let script = held.machine().state().calls.script.as_ref();
    let steps = script.and_then(|script| script.steps().get(known..)).unwrap_or_default();
    Ok(steps.iter().map(|step| (step.told, step.hash.clone())).collect())
}

/// The output of a script; `None` for the run of a model.
#[pyfunction]
pub(super) fn script_printed(run: &PyRunView) -> CoreResult<Option<String>> {
    let held = run.lock()?;
    Ok(held.machine().state().calls.script.as_ref().map(|script| script.printed().to_owned()))
}

/// When a run was begun, in Unix seconds.
#[pyfunction]
pub(super) fn run_began(run: &PyRunView) -> CoreResult<f64> {
    Ok(run.lock()?.machine().state().spending.started_at)
}

fn row(number: usize, outcome: ScriptOutcome<'_>) -> Row {
    match outcome {
        ScriptOutcome::Refused(refused) => {
            // The same call was denied before.
            let kind = if refused.code == Code::RepeatedAfterFailure { "denied" } else { "wrong" };
            (number, kind, refused.message.clone(), refused.at, None, false)
        }
        ScriptOutcome::Ended(ticket) => {
            let (kind, text) =
                ticket.outcome.as_ref().map_or(("error", ""), |outcome| (outcome.word(), outcome.text()));
            let at = ticket.completed_at.unwrap_or_default();
            (number, kind, text.to_owned(), at, Some(ticket.id.0), ticket.decision == Some(Decision::Edited))
        }
    }
}
