//! One run: inputs from a driver in, commands out. What has happened goes into its log and, where it has one, its
//! store.

use super::command::{PyCommand, PyDelta, to_commands};
use super::decision;
use super::error::CoreResult;
use super::options;
use super::outcome::{PyOutcome, check_memory};
use super::part::{PyPart, split_all};
use super::protocol::{DETACH_BYTES, earlier_messages};
use super::reader::Chunk;
use super::reply_details::{Named, model_name, reply_details};
use super::rows::PyUsage;
use super::run_view::PyRunView;
use super::setup::{Grammars, PySetup};
use super::store::{PyStore, claim};
use crate::live::{ClaimedRun, LiveRun};
use crate::part::Content;
use crate::run::{
    FailedAttempt, FailedCall, Parent, ReplyDetails, RunMachine, Shortened, Usage, read_contents, read_log,
};
use crate::store::StoreError;
use crate::ticket::TicketId;
use pyo3::prelude::*;
use std::sync::Arc;

/// One run, which a driver works on.
#[pyclass(name = "Run", module = "callslip._core", frozen, extends = PyRunView)]
pub(super) struct PyRun;

fn new_run(run: LiveRun, grammars: Option<Grammars>) -> PyClassInitializer<PyRun> {
    PyClassInitializer::from(PyRunView::new_of(run, grammars)).add_subclass(PyRun)
}

/// A run of a store or a log, which no agent has adopted.
fn stored_run(py: Python<'_>, run: LiveRun) -> CoreResult<Py<PyRun>> {
    Ok(Py::new(py, new_run(run, None))?)
}

fn view<'a>(run: &'a Bound<'_, PyRun>) -> &'a PyRunView {
    run.as_super().get()
}

/// Passes an input to the machine, logs its events, and returns the commands that follow.
fn input(run: &Bound<'_, PyRun>, now: f64, give: impl FnOnce(&mut RunMachine)) -> CoreResult<Vec<PyCommand>> {
    let ((), commands) = view(run).lock()?.apply(now, give)?;
    to_commands(run.py(), &commands)
}

/// The same with the bytes of parts.
fn input_with(
    run: &Bound<'_, PyRun>,
    now: f64,
    contents: Vec<Content>,
    give: impl FnOnce(&mut RunMachine),
) -> CoreResult<Vec<PyCommand>> {
    let ((), commands) = view(run).lock()?.apply_with(now, contents, give)?;
    to_commands(run.py(), &commands)
}

#[pymethods]
impl PyRun {
    /// A run that has not begun. `parent` is the run and the ticket that call it, `above` the run whose limits it shares;
    /// `limits` are those of the program as JSON, `kept_limits` those of a log; `messages` have role, content and parts.
    #[new]
    #[pyo3(signature = (setup, *, run_id, agent, owner = None, key = None, seal_key = None, parent = None, above = None, store = None, limits = None, kept_limits = None, messages = None, untrusted = false))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only, and each is one option of the Python face")]
    fn new(
        py: Python<'_>,
        setup: &PySetup,
        run_id: String,
        agent: String,
        owner: Option<&str>,
        key: Option<&str>,
        seal_key: Option<&str>,
        parent: Option<(String, u32)>,
        above: Option<&PyRunView>,
        store: Option<&PyStore>,
        limits: Option<&str>,
        kept_limits: Option<&str>,
        messages: Option<Vec<(String, String, Vec<PyPart>)>>,
        untrusted: bool,
    ) -> CoreResult<PyClassInitializer<Self>> {
        let parent = parent.map(|(run_id, ticket)| Parent { run_id, ticket: TicketId(ticket) });
        let store = store.map(PyStore::open).transpose()?;
        let machine = RunMachine::new(run_id, agent, parent, Arc::clone(&setup.setup));
        let mut machine = machine.owned(owner, key).sealed(seal_key).untrusted(untrusted);
        if let Some(limits) = options::own_limits(limits, kept_limits)? {
            machine = machine.limited(limits);
        }
        let mut contents = Vec::new();
        if let Some(messages) = messages {
            for (.., parts) in &messages {
                contents.extend(split_all(py, parts)?.1);
            }
            machine = machine.after(earlier_messages(messages)?);
        }
        let mut above = above.map(PyRunView::lock).transpose()?;
        let run_above = above.as_ref().map(|above| above.machine().run_id());
        // The store is asked about a key.
        let mut run = match key {
            Some(_) => py.detach(|| LiveRun::new(machine, store, None))?,
            None => LiveRun::new(machine, store, run_above)?,
        };
        run.hold(contents);
        if let Some(above) = &mut above {
            run.join(above);
        }
        Ok(new_run(run, Some(setup.grammars.clone())))
    }

    /// Names the trace that a run begins in, before it does.
    fn trace_as(slf: &Bound<'_, Self>, traceparent: &str) -> CoreResult<()> {
        view(slf).lock()?.trace_as(traceparent);
        Ok(())
    }

    /// A run of a store, to be gone on with after `adopt`.
    #[staticmethod]
    #[pyo3(signature = (store, run_id, above = None))]
    fn open(py: Python<'_>, store: &PyStore, run_id: &str, above: Option<&PyRunView>) -> CoreResult<Py<Self>> {
        let run_above = above.map(PyRunView::id).transpose()?;
        let mut run = claim(py, store, run_id, run_above.as_deref())?;
        if let Some(above) = above {
            run.join(&mut *above.lock()?);
        }
        stored_run(py, run)
    }

    /// An agent with this setup goes on with the run, or reads its result. Raises `UsageError` if the run is to go on and
    /// may make calls that the agent does not take; then the claim is given up.
    #[pyo3(signature = (setup, *, goes_on=false))]
    fn adopt(slf: &Bound<'_, Self>, setup: &PySetup, goes_on: bool) -> CoreResult<()> {
        // A grammar offers the tools of the run.
        if view(slf).lock()?.adopt(&setup.setup, goes_on)? {
            view(slf).use_grammars(&setup.grammars);
        }
        Ok(())
    }

    /// Gives a run that has not begun its instructions, and the prompt that has them.
    fn instruct(slf: &Bound<'_, Self>, instructions: &str, prompt: &str) -> CoreResult<()> {
        view(slf).lock()?.instruct(instructions, prompt);
        Ok(())
    }

    /// A run of a store, to be read. One that waits for a worker has a task, and no events.
    #[staticmethod]
    fn load(py: Python<'_>, store: &PyStore, run_id: &str) -> CoreResult<Py<Self>> {
        let store = store.open()?;
        let run = match py.detach(|| store.load(run_id)) {
            Err(StoreError::NotBegun { agent, task, .. }) => LiveRun::queued(run_id, &agent, &task, Arc::clone(store)),
            records => LiveRun::load(run_id, records?, Arc::clone(store))?,
        };
        stored_run(py, run)
    }

    /// Adds what other processes have written to the log of a run of a shared store, which is only read. Returns how many
    /// events there were.
    fn catch_up(slf: &Bound<'_, Self>, store: &PyStore) -> CoreResult<usize> {
        let shared = store.shared()?;
        let (run_id, next) = {
            let run = view(slf).lock()?;
            (run.machine().run_id().to_owned(), run.log().next())
        };
        let records = slf.py().detach(|| shared.records_since(&run_id, next))?;
        let mut run = view(slf).lock()?;
        // Another thread may have been faster.
        let next = run.log().next();
        let fresh: Vec<_> = records.into_iter().filter(|record| record.seq >= next).collect();
        let count = fresh.len();
        if count > 0 {
            run.follow(fresh)?;
        }
        Ok(count)
    }

    /// Has the events of the next input take the place of messages of a shared store.
    fn take_messages(slf: &Bound<'_, Self>, ids: Vec<i64>) -> CoreResult<()> {
        view(slf).lock()?.take_messages(ids);
        Ok(())
    }

    /// Has the event with the outcome of this ticket take the place of a message of a shared store.
    fn take_outcome(slf: &Bound<'_, Self>, ticket: u32, id: i64) -> CoreResult<()> {
        view(slf).lock()?.take_outcome(TicketId(ticket), id);
        Ok(())
    }

    /// Places a run below others that are driven elsewhere: their number, and their limits as JSON text, the nearest first.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn join_apart(slf: &Bound<'_, Self>, depth: u32, above: Vec<String>) -> CoreResult<()> {
        view(slf).lock()?.join_apart(depth, options::all_kept_limits(&above)?);
        Ok(())
    }

    /// Reads what these runs have spent with all runs below them: the run itself, then those above it.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn refresh_spent(slf: &Bound<'_, Self>, store: &PyStore, run_ids: Vec<String>) -> CoreResult<()> {
        let shared = store.shared()?;
        let spent = slf.py().detach(|| shared.spent(&run_ids))?;
        view(slf).lock()?.spent_at_least(&spent);
        Ok(())
    }

    /// Ends a run of a store as cancelled. `above` is the run whose driver drives it too.
    #[staticmethod]
    #[pyo3(signature = (store, run_id, now, above = None))]
    fn abandon(py: Python<'_>, store: &PyStore, run_id: &str, now: f64, above: Option<&str>) -> CoreResult<()> {
        let mut run = claim(py, store, run_id, above)?;
        run.apply(now, |machine| machine.cancel(now))?;
        Ok(())
    }

    /// Replays the lines of a log. Raises `ReplayError` if an event differs.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn replay(py: Python<'_>, lines: Vec<String>) -> CoreResult<Py<Self>> {
        let (records, contents) = (read_log(&lines)?, read_contents(&lines)?);
        let run = py.detach(|| LiveRun::replay(records, contents))?;
        stored_run(py, run)
    }

    /// Resumes a run that was opened.
    fn resume(slf: &Bound<'_, Self>, now: f64) -> CoreResult<Vec<PyCommand>> {
        input(slf, now, |machine| machine.resume(now))
    }

    /// Claims a released run again. Raises `StoreError` if another driver has resumed it meanwhile.
    fn claim(slf: &Bound<'_, Self>, store: &PyStore) -> CoreResult<()> {
        let store = store.open()?;
        let run_id = view(slf).lock()?.machine().run_id().to_owned();
        let claimed = slf.py().detach(|| ClaimedRun::claim(store, &run_id, None))?;
        Ok(view(slf).lock()?.reclaim(claimed)?)
    }

    /// Adds a message of the user, with marks for its parts. Raises `UsageError` if the run has not begun.
    #[pyo3(signature = (text, now, parts = Vec::new(), key = None))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn send(
        slf: &Bound<'_, Self>,
        text: &str,
        now: f64,
        parts: Vec<PyPart>,
        key: Option<&str>,
    ) -> CoreResult<Vec<PyCommand>> {
        let (parts, contents) = split_all(slf.py(), &parts)?;
        view(slf).lock()?.machine().check_said(text, &parts, key)?;
        input_with(slf, now, contents, |machine| machine.send_with(text, &parts, key, now))
    }

    /// Approves a call, with other arguments if there are any, as JSON text. Raises `UsageError` if it does not await
    /// approval, or if its tool does not take these arguments.
    #[pyo3(signature = (ticket, now, arguments = None, by = None))]
    fn approve(
        slf: &Bound<'_, Self>,
        ticket: u32,
        now: f64,
        arguments: Option<&str>,
        by: Option<&str>,
    ) -> CoreResult<Vec<PyCommand>> {
        decision::approve(slf.as_super(), TicketId(ticket), now, arguments, by)
    }

    /// The program has decided whether a call needs approval, and why.
    #[pyo3(signature = (ticket, needs_approval, reason, now))]
    fn approval_checked(
        slf: &Bound<'_, Self>,
        ticket: u32,
        needs_approval: bool,
        reason: Option<&str>,
        now: f64,
    ) -> CoreResult<Vec<PyCommand>> {
        input(slf, now, |machine| machine.approval_checked(TicketId(ticket), needs_approval, reason, now))
    }

    /// Denies a call. Raises `UsageError` if it does not await approval.
    #[pyo3(signature = (ticket, why, now, by = None))]
    fn deny(slf: &Bound<'_, Self>, ticket: u32, why: &str, now: f64, by: Option<&str>) -> CoreResult<Vec<PyCommand>> {
        decision::deny(slf.as_super(), TicketId(ticket), why, now, by)
    }

    /// Answers a call from outside. Raises `UsageError` if it awaits no result, or one of another type.
    #[pyo3(signature = (ticket, outcome, now, by = None))]
    fn answer(
        slf: &Bound<'_, Self>,
        ticket: u32,
        outcome: &PyOutcome,
        now: f64,
        by: Option<&str>,
    ) -> CoreResult<Vec<PyCommand>> {
        decision::answer(slf.as_super(), TicketId(ticket), outcome, now, by)
    }

    /// A call has begun, and its result comes from outside: by a key, of this type, as JSON. Returns what follows.
    fn pend(slf: &Bound<'_, Self>, ticket: u32, key: Option<&str>, kind: &str, now: f64) -> CoreResult<Vec<PyCommand>> {
        decision::pend(slf.as_super(), TicketId(ticket), key, kind, now)
    }

    /// Ends a call whose result did not come from outside in time.
    fn expire(slf: &Bound<'_, Self>, ticket: u32, now: f64) -> CoreResult<Vec<PyCommand>> {
        input(slf, now, |machine| machine.expire(TicketId(ticket), now))
    }

    /// The commands are carried out again.
    fn attend(slf: &Bound<'_, Self>) -> CoreResult<()> {
        view(slf).lock()?.attend();
        Ok(())
    }

    /// Gives up the claim: another driver can resume the run.
    fn release(slf: &Bound<'_, Self>) -> CoreResult<()> {
        view(slf).lock()?.release();
        Ok(())
    }

    /// Starts the run, with marks for the parts of its task. Times here and below are Unix seconds.
    #[pyo3(signature = (task, now, parts = Vec::new()))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn start(slf: &Bound<'_, Self>, task: &str, now: f64, parts: Vec<PyPart>) -> CoreResult<Vec<PyCommand>> {
        let (parts, contents) = split_all(slf.py(), &parts)?;
        input_with(slf, now, contents, |machine| machine.start_with(task, &parts, now))
    }

    /// Takes the next part of a streamed reply to the request of a turn; in any other turn, nothing of it. Returns what is
    /// new, whether the stream may be stopped, and commands.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn push(
        slf: &Bound<'_, Self>,
        chunk: Chunk,
        turn: u32,
        now: f64,
    ) -> CoreResult<(Vec<PyDelta>, bool, Vec<PyCommand>)> {
        let bytes = chunk.bytes();
        check_memory(bytes.len())?;
        let run = view(slf);
        let give = |machine: &mut RunMachine| machine.in_turn(turn, |machine| Some(machine.push(bytes, now)));
        let push = |run: &mut LiveRun| CoreResult::Ok(run.apply(now, give)?);
        let (pushed, commands) = if bytes.len() > DETACH_BYTES {
            slf.py().detach(|| push(&mut *run.lock_detached()?))
        } else {
            push(&mut *run.lock()?)
        }?;
        let (deltas, stop) = pushed.map_or((Vec::new(), true), |pushed| (pushed.deltas, pushed.stop));
        let deltas = deltas.into_iter().map(|delta| PyDelta::new(delta, Some(turn))).collect();
        Ok((deltas, stop, to_commands(slf.py(), &commands)?))
    }

    /// Names the model that is asked from now on, and its service, as far as they are known.
    #[pyo3(signature = (model, provider))]
    fn use_model(slf: &Bound<'_, Self>, model: Option<&str>, provider: Option<&str>) -> CoreResult<()> {
        view(slf).lock()?.use_model(model_name((model, provider)));
        Ok(())
    }

    /// Ends the streamed reply of a turn, which is complete or was stopped. `first_at` is the time of its first piece; `model` names
    /// the model that wrote it and its service, where that is not the one of `use_model`.
    #[pyo3(signature = (turn, finish_reason, usage, now, *, first_at = None, model = None))]
    fn end_reply(
        slf: &Bound<'_, Self>,
        turn: u32,
        finish_reason: Option<&str>,
        usage: Option<&PyUsage>,
        now: f64,
        first_at: Option<f64>,
        model: Option<Named<'_>>,
    ) -> CoreResult<Vec<PyCommand>> {
        let details = ReplyDetails { first_at, ..reply_details(finish_reason, usage, model)? };
        input(slf, now, |machine| machine.in_turn(turn, |machine| machine.end_reply_with(details, now)))
    }

    /// Reads the whole reply to the request of a turn; in any other turn, nothing of it.
    #[pyo3(signature = (text, turn, finish_reason, usage, now, *, model = None))]
    fn reply(
        slf: &Bound<'_, Self>,
        text: &str,
        turn: u32,
        finish_reason: Option<&str>,
        usage: Option<&PyUsage>,
        now: f64,
        model: Option<Named<'_>>,
    ) -> CoreResult<Vec<PyCommand>> {
        check_memory(text.len())?;
        let details = reply_details(finish_reason, usage, model)?;
        let give = |machine: &mut RunMachine| machine.in_turn(turn, |machine| machine.reply_with(text, details, now));
        if text.len() > DETACH_BYTES {
            let run = view(slf);
            let ((), commands) = slf.py().detach(|| CoreResult::Ok(run.lock_detached()?.apply(now, give)?))?;
            return to_commands(slf.py(), &commands);
        }
        input(slf, now, give)
    }

    /// A request for the reply failed. `wait` is the number of seconds until the next one; `None` if there is none.
    #[pyo3(signature = (model, error, wait, usage, now))]
    fn attempt_failed(
        slf: &Bound<'_, Self>,
        model: String,
        error: String,
        wait: Option<f64>,
        usage: Option<&PyUsage>,
        now: f64,
    ) -> CoreResult<Vec<PyCommand>> {
        let usage = usage.copied().map(Usage::from).map(Box::new);
        input(slf, now, |machine| {
            let (turn, dropped) = (machine.state().position.turn, machine.has_streamed());
            machine.attempt_failed(FailedAttempt { turn, model, error, wait, dropped, usage }, now);
        })
    }

    /// Shows the model less: without the oldest `exchanges` and `results`, and at most `result_bytes` of a result.
    #[expect(clippy::too_many_arguments, reason = "keyword-only, and each is one fact of what is left out")]
    #[pyo3(signature = (exchanges, results, now, *, result_bytes = None, summary = None, error = None, usage = None))]
    fn shorten_history(
        slf: &Bound<'_, Self>,
        exchanges: u32,
        results: u32,
        now: f64,
        result_bytes: Option<usize>,
        summary: Option<&str>,
        error: Option<String>,
        usage: Option<&PyUsage>,
    ) -> CoreResult<Vec<PyCommand>> {
        let (usage, summary) = (usage.copied().map(Usage::from).map(Box::new), summary.map(Arc::from));
        input(slf, now, |machine| {
            let turn = machine.state().position.turn;
            machine.shorten_history(Shortened { turn, exchanges, results, summary, result_bytes, error, usage }, now);
        })
    }

    /// An attempt at a call failed, and another one follows after so many seconds.
    fn tool_attempt_failed(
        slf: &Bound<'_, Self>,
        ticket: u32,
        error: &str,
        wait: f64,
        now: f64,
    ) -> CoreResult<Vec<PyCommand>> {
        let ticket = TicketId(ticket);
        input(slf, now, |machine| {
            let attempt = machine.attempts(ticket);
            machine.tool_attempt_failed(FailedCall::new(ticket, attempt, error, Some(wait)), now);
        })
    }

    /// Completes a task with the outcome of its run.
    fn complete_task(
        slf: &Bound<'_, Self>,
        ticket: u32,
        outcome: &PyOutcome,
        run: Option<&PyRunView>,
        now: f64,
    ) -> CoreResult<Vec<PyCommand>> {
        let (parts, contents) = outcome.parts_to_core(slf.py())?;
        let outcome = outcome.to_core(slf.py())?;
        let (ticket, below) = (TicketId(ticket), run.map(PyRunView::ended).transpose()?);
        input_with(slf, now, contents, |machine| machine.complete_task_of(ticket, (outcome, &parts), below, now))
    }

    /// Completes a call.
    fn complete_call(slf: &Bound<'_, Self>, ticket: u32, outcome: &PyOutcome, now: f64) -> CoreResult<Vec<PyCommand>> {
        let (parts, contents) = outcome.parts_to_core(slf.py())?;
        let outcome = outcome.to_core(slf.py())?;
        input_with(slf, now, contents, |machine| machine.complete_call_with(TicketId(ticket), outcome, &parts, now))
    }

    /// The program accepts the answer of this turn, or says why it refuses it.
    #[pyo3(signature = (turn, refused, now))]
    fn answer_checked(slf: &Bound<'_, Self>, turn: u32, refused: Option<&str>, now: f64) -> CoreResult<Vec<PyCommand>> {
        input(slf, now, |machine| match refused {
            None => machine.accept_answer(turn, now),
            Some(why) => machine.refuse_answer(turn, why, now),
        })
    }

    /// Ends the time that calls just started have before the model is asked again (ticket).
    fn end_grace(slf: &Bound<'_, Self>, now: f64) -> CoreResult<Vec<PyCommand>> {
        input(slf, now, |machine| machine.end_grace(now))
    }

    /// Ends the run, or begins its last turn, if the deadline is reached.
    fn time_out(slf: &Bound<'_, Self>, now: f64) -> CoreResult<Vec<PyCommand>> {
        input(slf, now, |machine| machine.time_out(now))
    }

    /// Notes that nothing has worked on the run or on the runs below it since this time, in Unix seconds.
    fn pause(slf: &Bound<'_, Self>, since: f64, now: f64) -> CoreResult<Vec<PyCommand>> {
        input(slf, now, |machine| machine.pause(since, now))
    }

    /// Ends the run because the model client failed in a turn.
    fn model_failed(slf: &Bound<'_, Self>, message: &str, turn: u32, now: f64) -> CoreResult<Vec<PyCommand>> {
        input(slf, now, |machine| machine.in_turn(turn, |machine| machine.model_failed(message, now)))
    }

    /// Ends the run as cancelled.
    fn cancel(slf: &Bound<'_, Self>, now: f64) -> CoreResult<Vec<PyCommand>> {
        input(slf, now, |machine| machine.cancel(now))
    }
}
