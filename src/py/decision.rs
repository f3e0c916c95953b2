//! Decisions on calls, and results from outside: checked and taken in one step, so that the first one counts.

use super::command::{PyCommand, to_commands};
use super::error::CoreResult;
use super::options;
use super::outcome::PyOutcome;
use super::run_view::PyRunView;
use crate::reply::Value;
use crate::run::{InputError, RunMachine};
use crate::ticket::TicketId;
use pyo3::prelude::*;

/// As `Run.approve`.
pub(super) fn approve(
    run: &Bound<'_, PyRunView>,
    ticket: TicketId,
    now: f64,
    arguments: Option<&str>,
    by: Option<&str>,
) -> CoreResult<Vec<PyCommand>> {
    let arguments = arguments.map(serde_json::from_str::<Value>).transpose()?;
    let approve = |machine: &mut RunMachine| -> Result<(), InputError> {
        machine.check_awaits_approval(ticket)?;
        let edited = arguments.as_ref().map(|arguments| machine.check_edited(ticket, arguments)).transpose()?;
        machine.approve(ticket, edited, by, now);
        Ok(())
    };
    let (approved, commands) = run.get().lock()?.apply(now, approve)?;
    approved?;
    to_commands(run.py(), &commands)
}

/// As `Run.deny`.
pub(super) fn deny(
    run: &Bound<'_, PyRunView>,
    ticket: TicketId,
    why: &str,
    now: f64,
    by: Option<&str>,
) -> CoreResult<Vec<PyCommand>> {
    let deny = |machine: &mut RunMachine| {
        machine.check_awaits_approval(ticket)?;
        machine.deny(ticket, why, by, now);
        Ok::<(), InputError>(())
    };
    let (denied, commands) = run.get().lock()?.apply(now, deny)?;
    denied?;
    to_commands(run.py(), &commands)
}

/// As `Run.answer`.
pub(super) fn answer(
    run: &Bound<'_, PyRunView>,
    ticket: TicketId,
    outcome: &PyOutcome,
    now: f64,
    by: Option<&str>,
) -> CoreResult<Vec<PyCommand>> {
    let (parts, contents) = outcome.parts_to_core(run.py())?;
    let outcome = outcome.to_core(run.py())?;
    let answer = |machine: &mut RunMachine| {
        let checked = machine.check_answer(ticket, outcome)?;
        machine.answer(ticket, checked, &parts, by, now);
        Ok::<(), InputError>(())
    };
    let (answered, commands) = run.get().lock()?.apply_with(now, contents, answer)?;
    answered?;
    to_commands(run.py(), &commands)
}

/// As `Run.pend`.
pub(super) fn pend(
    run: &Bound<'_, PyRunView>,
    ticket: TicketId,
    key: Option<&str>,
    external: &str,
    now: f64,
) -> CoreResult<Vec<PyCommand>> {
    let external = options::external(external)?;
    let (_, commands) = run.get().lock()?.apply(now, |machine| machine.pend(ticket, key, external, now))?;
    to_commands(run.py(), &commands)
}
