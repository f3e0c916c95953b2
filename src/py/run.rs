//! One run: inputs from a driver in, commands out. What has happened goes into its log and, where it has one, its
//! store.

use super::command::{PyCommand, PyDelta};
use super::error::{self, CoreError, CoreResult};
use super::outcome::{PyOutcome, check_memory};
use super::part::{PyPart, split_all};
use super::protocol::{DETACH_BYTES, PyBounds, PyGrammar, finish_reason};
use super::reader::Chunk;
use super::rows::{PyEnding, PyMessage, PyOpenTask, PyShortened, PyTicketRow, PyUsage};
use super::setup::{Grammars, PySetup, Situation};
use super::store::PyStore;
use crate::live::{ClaimedRun, LiveRun};
use crate::part::Content;
use crate::protocol::Message;
use crate::protocol::grammar::Bounds;
use crate::reply::Value;
use crate::run::{
    Command, FailedAttempt, FailedCall, InputError, ModelName, Parent, Phase, ReplyDetails, RunMachine, Shortened,
    Usage, read_contents, read_log, resume, write_log,
};
use crate::ticket::{Ticket, TicketId};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// The machine of one run, with its log.
#[pyclass(name = "Run", module = "callslip._core", frozen)]
pub(super) struct PyRun {
    run: Mutex<LiveRun>,
    /// Those of the setup of its agent, once that is known.
    grammars: OnceLock<Grammars>,
}

impl PyRun {
    fn new_of(run: LiveRun, grammars: Option<Grammars>) -> Self {
        Self { run: Mutex::new(run), grammars: grammars.map_or_else(OnceLock::new, OnceLock::from) }
    }

    fn lock(&self) -> CoreResult<MutexGuard<'_, LiveRun>> {
        Ok(self.run.lock()?)
    }

    /// Passes an input to the machine, logs its events, and returns the commands that follow.
    fn input(&self, py: Python<'_>, now: f64, give: impl FnOnce(&mut RunMachine)) -> CoreResult<Vec<PyCommand>> {
        to_commands(py, &self.give(now, give)?)
    }

    fn give(&self, now: f64, give: impl FnOnce(&mut RunMachine)) -> CoreResult<Vec<Command>> {
        let ((), commands) = self.lock()?.apply(now, give)?;
        Ok(commands)
    }

    /// The same with the bytes of parts.
    fn input_with(
        &self,
        py: Python<'_>,
        now: f64,
        contents: Vec<Content>,
        give: impl FnOnce(&mut RunMachine),
    ) -> CoreResult<Vec<PyCommand>> {
        let ((), commands) = self.lock()?.apply_with(now, contents, give)?;
        to_commands(py, &commands)
    }
}

fn to_commands(py: Python<'_>, commands: &[Command]) -> CoreResult<Vec<PyCommand>> {
    Ok(commands.iter().map(|command| PyCommand::new(py, command)).collect::<PyResult<_>>()?)
}

#[pymethods]
impl PyRun {
    /// A run that has not begun: with its parent run and the ticket of the call there, and the run above whose limits it
    /// draws from; with its own limits as JSON text, and role and content of each message of an earlier conversation.
    #[new]
    #[pyo3(signature = (setup, *, run_id, agent, parent = None, above = None, store = None, limits = None, messages = None))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only, and each is one option of the Python face")]
    fn new(
        py: Python<'_>,
        setup: &PySetup,
        run_id: String,
        agent: String,
        parent: Option<(String, u32)>,
        above: Option<&Self>,
        store: Option<&PyStore>,
        limits: Option<&str>,
        messages: Option<Vec<(String, String, Vec<PyPart>)>>,
    ) -> CoreResult<Self> {
        let parent = parent.map(|(run_id, ticket)| Parent { run_id, ticket: TicketId(ticket) });
        let store = store.map(PyStore::open).transpose()?;
        let mut machine = RunMachine::new(run_id, agent, parent, Arc::clone(&setup.setup));
        if let Some(limits) = limits {
            machine = machine.limited(super::setup::limits(limits)?);
        }
        let mut contents = Vec::new();
        if let Some(messages) = messages {
            for (.., parts) in &messages {
                contents.extend(split_all(py, parts)?.1);
            }
            machine = machine.after(earlier_messages(messages)?);
        }
        let mut run = LiveRun::new(machine, store)?;
        run.hold(contents);
        if let Some(above) = above {
            run.join(&mut *above.lock()?);
        }
        Ok(Self::new_of(run, Some(setup.grammars.clone())))
    }

    /// A run of a store, to be gone on with after `adopt`.
    #[staticmethod]
    #[pyo3(signature = (store, run_id, above = None))]
    fn open(py: Python<'_>, store: &PyStore, run_id: &str, above: Option<&Self>) -> CoreResult<Self> {
        let mut run = claim(py, store, run_id)?;
        if let Some(above) = above {
            run.join(&mut *above.lock()?);
        }
        Ok(Self::new_of(run, None))
    }

    /// An agent with this setup goes on with the run, or reads its result. Raises `UsageError` if the run was set up with
    /// another protocol or other tools and is to go on; then the claim is given up.
    #[pyo3(signature = (setup, *, goes_on=false))]
    fn adopt(&self, setup: &PySetup, goes_on: bool) -> CoreResult<()> {
        let mut run = self.lock()?;
        if let Err(error) = run.machine().check_compatible(&setup.setup, goes_on) {
            run.release();
            return Err(error.into());
        }
        // A run is adopted once.
        let _ = self.grammars.set(setup.grammars.clone());
        Ok(())
    }

    /// Gives a run that has not begun its instructions, and the prompt that has them.
    fn instruct(&self, instructions: &str, prompt: &str) -> CoreResult<()> {
        self.lock()?.instruct(instructions, prompt);
        Ok(())
    }

    /// The program's own instructions; `None` if it has none.
    #[getter]
    fn instructions(&self) -> CoreResult<Option<String>> {
        Ok(self.lock()?.machine().setup().instructions.as_deref().map(str::to_owned))
    }

    /// Its limits, as JSON text.
    #[getter]
    fn limits(&self) -> CoreResult<String> {
        Ok(serde_json::to_string(&self.lock()?.machine().setup().limits)?)
    }

    /// How many levels of runs may be below it by its own limits; `None` for any number.
    #[getter]
    fn levels(&self) -> CoreResult<Option<u32>> {
        Ok(self.lock()?.machine().setup().limits.depth)
    }

    /// A run of a store, to be read.
    #[staticmethod]
    fn load(py: Python<'_>, store: &PyStore, run_id: &str) -> CoreResult<Self> {
        let store = store.open()?;
        let records = py.detach(|| store.load(run_id))?;
        let run = LiveRun::load(run_id, records, Arc::clone(store))?;
        Ok(Self::new_of(run, None))
    }

    /// Ends a run of a store as cancelled.
    #[staticmethod]
    fn abandon(py: Python<'_>, store: &PyStore, run_id: &str, now: f64) -> CoreResult<()> {
        let mut run = claim(py, store, run_id)?;
        run.apply(now, |machine| machine.cancel(now))?;
        Ok(())
    }

    /// Replays the lines of a log. Raises `ReplayError` if an event differs.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn replay(py: Python<'_>, lines: Vec<String>) -> CoreResult<Self> {
        let (records, contents) = (read_log(&lines)?, read_contents(&lines)?);
        let run = py.detach(|| LiveRun::replay(records, contents))?;
        Ok(Self::new_of(run, None))
    }

    /// Resumes a run that was opened.
    fn resume(&self, py: Python<'_>, now: f64) -> CoreResult<Vec<PyCommand>> {
        self.input(py, now, |machine| machine.resume(now))
    }

    /// Up to where its store must be durable before the commands are carried out; 0 without a store.
    #[getter]
    fn position(&self) -> CoreResult<u64> {
        Ok(self.lock()?.position().get())
    }

    /// Whether its store has failed: later events are not stored.
    #[getter]
    fn unwritten(&self) -> CoreResult<bool> {
        Ok(self.lock()?.has_lost_its_store())
    }

    /// Claims a released run again. Raises `StoreError` if another driver has resumed it meanwhile.
    fn claim(&self, py: Python<'_>, store: &PyStore) -> CoreResult<()> {
        let store = store.open()?;
        let run_id = self.lock()?.machine().run_id().to_owned();
        let claimed = py.detach(|| ClaimedRun::claim(store, &run_id))?;
        Ok(self.lock()?.reclaim(claimed)?)
    }

    /// Adds a message of the user, with marks for its parts. Raises `UsageError` if the run has not begun.
    #[pyo3(signature = (text, now, parts = Vec::new()))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn send(&self, py: Python<'_>, text: &str, now: f64, parts: Vec<PyPart>) -> CoreResult<Vec<PyCommand>> {
        self.lock()?.machine().check_begun()?;
        let (parts, contents) = split_all(py, &parts)?;
        self.input_with(py, now, contents, |machine| machine.send_with(text, &parts, now))
    }

    /// Approves a call, with other arguments if there are any, as JSON text. Raises `UsageError` if it does not await
    /// approval, or if its tool does not take these arguments.
    #[pyo3(signature = (ticket, now, arguments = None))]
    fn approve(&self, py: Python<'_>, ticket: u32, now: f64, arguments: Option<&str>) -> CoreResult<Vec<PyCommand>> {
        let ticket = TicketId(ticket);
        let arguments = arguments.map(serde_json::from_str::<Value>).transpose()?;
        let approve = |machine: &mut RunMachine| -> Result<(), InputError> {
            machine.check_awaits_approval(ticket)?;
            let edited = arguments.as_ref().map(|arguments| machine.check_edited(ticket, arguments)).transpose()?;
            machine.approve(ticket, edited, now);
            Ok(())
        };
        let (approved, commands) = self.lock()?.apply(now, approve)?;
        approved?;
        to_commands(py, &commands)
    }

    /// Whether the program is still to decide if a call needs approval.
    fn is_checking_approval(&self, ticket: u32) -> CoreResult<bool> {
        Ok(self.lock()?.machine().is_checking_approval(TicketId(ticket)))
    }

    /// Whether a call awaits approval.
    fn awaits_approval(&self, ticket: u32) -> CoreResult<bool> {
        Ok(self.lock()?.machine().awaits_approval(TicketId(ticket)))
    }

    /// The program has decided whether a call needs approval, and why.
    #[pyo3(signature = (ticket, needs_approval, reason, now))]
    fn approval_checked(
        &self,
        py: Python<'_>,
        ticket: u32,
        needs_approval: bool,
        reason: Option<&str>,
        now: f64,
    ) -> CoreResult<Vec<PyCommand>> {
        self.input(py, now, |machine| machine.approval_checked(TicketId(ticket), needs_approval, reason, now))
    }

    /// Denies a call. Raises `UsageError` if it does not await approval.
    fn deny(&self, py: Python<'_>, ticket: u32, why: &str, now: f64) -> CoreResult<Vec<PyCommand>> {
        let ticket = TicketId(ticket);
        let deny = |machine: &mut RunMachine| {
            machine.check_awaits_approval(ticket)?;
            machine.deny(ticket, why, now);
            Ok::<(), InputError>(())
        };
        let (denied, commands) = self.lock()?.apply(now, deny)?;
        denied?;
        to_commands(py, &commands)
    }

    /// Whether a ticket is open.
    fn is_open(&self, ticket: u32) -> CoreResult<bool> {
        let run = self.lock()?;
        Ok(run.machine().state().tickets.get(TicketId(ticket)).is_some_and(|ticket| ticket.outcome.is_none()))
    }

    /// Tasks that other runs work on.
    fn open_tasks(&self) -> CoreResult<Vec<PyOpenTask>> {
        Ok(self.lock()?.machine().open_tasks().into_iter().map(PyOpenTask::from).collect())
    }

    /// How many runs are above it.
    #[getter]
    fn depth(&self) -> CoreResult<u32> {
        Ok(self.lock()?.machine().depth())
    }

    /// The commands are carried out again.
    fn attend(&self) -> CoreResult<()> {
        self.lock()?.attend();
        Ok(())
    }

    /// Gives up the claim: another driver can resume the run.
    fn release(&self) -> CoreResult<()> {
        self.lock()?.release();
        Ok(())
    }

    /// Its id.
    #[getter]
    fn run_id(&self) -> CoreResult<String> {
        Ok(self.lock()?.machine().run_id().to_owned())
    }

    /// What the user asked for.
    #[getter]
    fn task(&self) -> CoreResult<String> {
        let run = self.lock()?;
        Ok(resume::start(run.log().records()).map(|start| start.task.to_string()).unwrap_or_default())
    }

    /// How many events its log has, those that were compacted among them.
    #[getter]
    fn event_count(&self) -> CoreResult<u64> {
        Ok(self.lock()?.log().next())
    }

    /// Starts the run, with marks for the parts of its task. Times here and below are Unix seconds.
    #[pyo3(signature = (task, now, parts = Vec::new()))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn start(&self, py: Python<'_>, task: &str, now: f64, parts: Vec<PyPart>) -> CoreResult<Vec<PyCommand>> {
        let (parts, contents) = split_all(py, &parts)?;
        self.input_with(py, now, contents, |machine| machine.start_with(task, &parts, now))
    }

    /// Takes the next part of a streamed reply. Returns what is new, whether the stream may be stopped, and commands.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn push(&self, py: Python<'_>, chunk: Chunk, now: f64) -> CoreResult<(Vec<PyDelta>, bool, Vec<PyCommand>)> {
        let bytes = chunk.bytes();
        check_memory(bytes.len())?;
        let push = || CoreResult::Ok(self.lock()?.apply(now, |machine| machine.push(bytes, now))?);
        let (pushed, commands) = if bytes.len() > DETACH_BYTES { py.detach(push) } else { push() }?;
        let deltas = pushed.deltas.into_iter().map(PyDelta::from).collect();
        Ok((deltas, pushed.stop, to_commands(py, &commands)?))
    }

    /// Names the model that is asked from now on, and its service, as far as they are known.
    #[pyo3(signature = (model, provider))]
    fn use_model(&self, model: Option<&str>, provider: Option<&str>) -> CoreResult<()> {
        self.lock()?.use_model(model_name((model, provider)));
        Ok(())
    }

    /// Ends a streamed reply, which is complete or was stopped. `first_at` is the time of its first piece; `model` names
    /// the model that wrote it and its service, where that is not the one of `use_model`.
    #[pyo3(signature = (finish_reason, usage, now, *, first_at = None, model = None))]
    fn end_reply(
        &self,
        py: Python<'_>,
        finish_reason: Option<&str>,
        usage: Option<&PyUsage>,
        now: f64,
        first_at: Option<f64>,
        model: Option<Named<'_>>,
    ) -> CoreResult<Vec<PyCommand>> {
        let details = ReplyDetails { first_at, ..reply_details(finish_reason, usage, model)? };
        self.input(py, now, |machine| machine.end_reply_with(details, now))
    }

    /// Reads a whole reply.
    #[pyo3(signature = (text, finish_reason, usage, now, *, model = None))]
    fn reply(
        &self,
        py: Python<'_>,
        text: &str,
        finish_reason: Option<&str>,
        usage: Option<&PyUsage>,
        now: f64,
        model: Option<Named<'_>>,
    ) -> CoreResult<Vec<PyCommand>> {
        check_memory(text.len())?;
        let details = reply_details(finish_reason, usage, model)?;
        let give = |machine: &mut RunMachine| machine.reply_with(text, details, now);
        if text.len() > DETACH_BYTES {
            return to_commands(py, &py.detach(|| self.give(now, give))?);
        }
        self.input(py, now, give)
    }

    /// A request for the reply failed. `wait` is the number of seconds until the next one; `None` if there is none.
    #[pyo3(signature = (model, error, wait, usage, now))]
    fn attempt_failed(
        &self,
        py: Python<'_>,
        model: String,
        error: String,
        wait: Option<f64>,
        usage: Option<&PyUsage>,
        now: f64,
    ) -> CoreResult<Vec<PyCommand>> {
        let usage = usage.copied().map(Usage::from).map(Box::new);
        self.input(py, now, |machine| {
            let (turn, dropped) = (machine.state().turn, machine.has_streamed());
            machine.attempt_failed(FailedAttempt { turn, model, error, wait, dropped, usage }, now);
        })
    }

    /// Shows the model less of the conversation. `exchanges` is the number of the oldest ones that are left out, and
    /// `results` of those that are left out or shown without results.
    #[pyo3(signature = (exchanges, results, now, *, summary = None, error = None, usage = None))]
    #[expect(clippy::too_many_arguments, reason = "the fields of one event")]
    fn shorten_history(
        &self,
        py: Python<'_>,
        exchanges: u32,
        results: u32,
        now: f64,
        summary: Option<&str>,
        error: Option<String>,
        usage: Option<&PyUsage>,
    ) -> CoreResult<Vec<PyCommand>> {
        let usage = usage.copied().map(Usage::from).map(Box::new);
        let summary = summary.map(Arc::from);
        self.input(py, now, |machine| {
            let turn = machine.state().turn;
            machine.shorten_history(Shortened { turn, exchanges, results, summary, error, usage }, now);
        })
    }

    /// What the model is shown no longer; `None` if it is shown everything.
    #[getter]
    fn shortened(&self) -> CoreResult<Option<PyShortened>> {
        Ok(self.lock()?.machine().state().shortened.as_deref().map(PyShortened::from))
    }

    /// The position of the message with the user's last words; 0 for the task.
    #[getter]
    fn said_at(&self) -> CoreResult<usize> {
        Ok(self.lock()?.machine().state().said_at)
    }

    /// Whether calls of the reply that is still arriving were started.
    #[getter]
    fn has_early_calls(&self) -> CoreResult<bool> {
        Ok(self.lock()?.machine().has_early_calls())
    }

    /// Whether tokens or cost are limited, here or above.
    #[getter]
    fn limits_usage(&self) -> CoreResult<bool> {
        Ok(self.lock()?.machine().limits_usage())
    }

    /// An attempt at a call failed, and another one follows after so many seconds.
    fn tool_attempt_failed(
        &self,
        py: Python<'_>,
        ticket: u32,
        error: &str,
        wait: f64,
        now: f64,
    ) -> CoreResult<Vec<PyCommand>> {
        let ticket = TicketId(ticket);
        self.input(py, now, |machine| {
            let attempt = machine.attempts(ticket);
            machine.tool_attempt_failed(FailedCall::new(ticket, attempt, error, Some(wait)), now);
        })
    }

    /// How many attempts at a call were made, the one that is waited for among them.
    fn attempts(&self, ticket: u32) -> CoreResult<u32> {
        Ok(self.lock()?.machine().attempts(TicketId(ticket)))
    }

    /// Completes a task with the outcome of its run.
    fn complete_task(
        &self,
        py: Python<'_>,
        ticket: u32,
        outcome: &PyOutcome,
        run: Option<&Self>,
        now: f64,
    ) -> CoreResult<Vec<PyCommand>> {
        let (parts, contents) = outcome.parts_to_core(py)?;
        let outcome = outcome.to_core(py)?;
        let spent = run.map(|run| Ok::<_, CoreError>(run.lock()?.machine().state().spent())).transpose()?;
        let ticket = TicketId(ticket);
        self.input_with(py, now, contents, |machine| machine.complete(ticket, outcome, &parts, spent, now))
    }

    /// Completes a call.
    fn complete_call(&self, py: Python<'_>, ticket: u32, outcome: &PyOutcome, now: f64) -> CoreResult<Vec<PyCommand>> {
        let (parts, contents) = outcome.parts_to_core(py)?;
        let outcome = outcome.to_core(py)?;
        let ticket = TicketId(ticket);
        self.input_with(py, now, contents, |machine| machine.complete_call_with(ticket, outcome, &parts, now))
    }

    /// Whether the answer of this turn is still to be checked.
    fn is_checking(&self, turn: u32) -> CoreResult<bool> {
        Ok(self.lock()?.machine().is_checking(turn))
    }

    /// The program accepts the answer of this turn, or says why it refuses it.
    #[pyo3(signature = (turn, refused, now))]
    fn answer_checked(&self, py: Python<'_>, turn: u32, refused: Option<&str>, now: f64) -> CoreResult<Vec<PyCommand>> {
        self.input(py, now, |machine| match refused {
            None => machine.accept_answer(turn, now),
            Some(why) => machine.refuse_answer(turn, why, now),
        })
    }

    /// Ends the time that calls just started have before the model is asked again (ticket).
    fn end_grace(&self, py: Python<'_>, now: f64) -> CoreResult<Vec<PyCommand>> {
        self.input(py, now, |machine| machine.end_grace(now))
    }

    /// Ends the run, or begins its last turn, if the deadline is reached.
    fn time_out(&self, py: Python<'_>, now: f64) -> CoreResult<Vec<PyCommand>> {
        self.input(py, now, |machine| machine.time_out(now))
    }

    /// Ends the run because the model client failed.
    fn model_failed(&self, py: Python<'_>, message: &str, now: f64) -> CoreResult<Vec<PyCommand>> {
        self.input(py, now, |machine| machine.model_failed(message, now))
    }

    /// Ends the run as cancelled.
    fn cancel(&self, py: Python<'_>, now: f64) -> CoreResult<Vec<PyCommand>> {
        self.input(py, now, |machine| machine.cancel(now))
    }

    /// Unix seconds at which `time_out` is due; `None` without a limit.
    #[getter]
    fn deadline(&self) -> CoreResult<Option<f64>> {
        Ok(self.lock()?.machine().deadline())
    }

    /// How many messages the transcript has.
    #[getter]
    fn message_count(&self) -> CoreResult<usize> {
        Ok(self.lock()?.machine().state().messages.len())
    }

    /// One message of the transcript.
    fn message(&self, py: Python<'_>, position: usize) -> CoreResult<PyMessage> {
        let run = self.lock()?;
        let message = run.machine().state().messages.get(position);
        let message = message.ok_or_else(|| error::value(format!("there is no message {position}")))?;
        Ok(PyMessage::new(py, &run, message))
    }

    /// The list of all tickets, as a message of the ticket protocol has it.
    fn ticket_list(&self) -> CoreResult<String> {
        Ok(self.lock()?.machine().state().tickets.to_json())
    }

    /// All tickets, oldest first.
    fn tickets(&self) -> CoreResult<Vec<PyTicketRow>> {
        let run = self.lock()?;
        let row = |ticket: &Ticket| PyTicketRow::of_run(&run, ticket);
        Ok(run.machine().state().tickets.iter().map(row).collect())
    }

    /// How many tickets the run has opened.
    #[getter]
    fn ticket_count(&self) -> CoreResult<usize> {
        Ok(self.lock()?.machine().state().tickets.len())
    }

    /// How the run ended; `None` until then.
    #[getter]
    fn ending(&self, py: Python<'_>) -> CoreResult<Option<PyEnding>> {
        let (ending, limit) = {
            let run = self.lock()?;
            let state = run.machine().state();
            (state.ending.clone(), state.limit)
        };
        Ok(ending.map(|ending| PyEnding::new(py, ending, limit)).transpose()?)
    }

    /// How many messages stand between the prompt and the task: those of an example, and an earlier conversation.
    #[getter]
    fn examples(&self) -> CoreResult<usize> {
        Ok(self.lock()?.machine().messages_before_task())
    }

    /// The message without the results that were loaded into it; `None` if it has none, or only very short ones.
    fn short<'py>(&self, py: Python<'py>, position: usize) -> CoreResult<Option<Bound<'py, PyString>>> {
        let run = self.lock()?;
        let short = run.machine().state().messages.get(position).and_then(|message| message.short.as_ref());
        Ok(short.map(|short| PyString::new(py, short)))
    }

    /// What its replies have cost.
    #[getter]
    fn usage(&self) -> CoreResult<PyUsage> {
        Ok(self.lock()?.machine().state().usage.into())
    }

    /// What they have cost since the user's last task.
    #[getter]
    fn turn_usage(&self) -> CoreResult<PyUsage> {
        Ok(self.lock()?.machine().state().turn_usage().into())
    }

    /// What all have cost, with those of the runs below it that have ended.
    #[getter]
    fn total_usage(&self) -> CoreResult<PyUsage> {
        Ok(self.lock()?.machine().state().spent().usage.into())
    }

    /// How often the model was asked.
    #[getter]
    fn turn(&self) -> CoreResult<u32> {
        Ok(self.lock()?.machine().state().turn)
    }

    /// How many replies broke the protocol.
    #[getter]
    fn violations(&self) -> CoreResult<u32> {
        Ok(self.lock()?.machine().state().violations_total)
    }

    /// The log from `seq` on, one JSON text an event.
    #[pyo3(signature = (seq = 0))]
    fn records<'py>(&self, py: Python<'py>, seq: usize) -> CoreResult<Bound<'py, PyList>> {
        let texts: Vec<String> = {
            let run = self.lock()?;
            let records = run.log().since(seq);
            records.iter().map(serde_json::to_string).collect::<Result<_, _>>()?
        };
        Ok(PyList::new(py, texts)?)
    }

    /// The log as lines, with the bytes of its parts.
    fn export_lines(&self, py: Python<'_>) -> CoreResult<Vec<String>> {
        // Not under the lock: a store may have to write first.
        let (records, parts) = {
            let run = self.lock()?;
            (run.log().records().to_vec(), all_parts(&run))
        };
        write_log(&records, |sha256| {
            let part = parts.iter().find(|part| *part.part().sha256 == *sha256);
            part.map_or(Ok(None), |part| part.stored_bytes(py))
        })
    }

    /// Whether any message or result has images or files.
    #[getter]
    fn has_parts(&self) -> CoreResult<bool> {
        Ok(self.lock()?.machine().state().has_parts)
    }

    /// All its images and files.
    fn parts(&self) -> CoreResult<Vec<PyPart>> {
        Ok(all_parts(&*self.lock()?))
    }

    /// The grammar of the next reply, with at most so many characters of thoughts, within the bounds of the model.
    fn grammar(&self, thoughts: Option<u32>, bounds: Option<PyBounds>) -> CoreResult<PyGrammar> {
        let (run, bounds) = (self.lock()?, bounds.map(Bounds::from));
        let situation = Situation { moves: run.machine().possible_moves(), thoughts, bounds };
        let make = |situation: &Situation| run.machine().grammar(&situation.moves, thoughts, bounds);
        let grammars = self.grammars.get_or_init(Grammars::default);
        Ok(PyGrammar { grammar: grammars.get(situation, make) })
    }

    /// Whether the run is over.
    #[getter]
    fn finished(&self) -> CoreResult<bool> {
        Ok(self.lock()?.machine().state().phase == Phase::Finished)
    }
}

/// The name of a model and of its service, as Python has them.
type Named<'a> = (Option<&'a str>, Option<&'a str>);

fn model_name((model, provider): Named<'_>) -> ModelName {
    ModelName { model: model.map(Arc::from), provider: provider.map(Arc::from) }
}

fn reply_details(reason: Option<&str>, usage: Option<&PyUsage>, model: Option<Named<'_>>) -> CoreResult<ReplyDetails> {
    let model = model.map(model_name).unwrap_or_default();
    let usage = usage.copied().map(Usage::from);
    Ok(ReplyDetails { finish_reason: finish_reason(reason)?, usage, first_at: None, model })
}

/// The messages of an earlier conversation, with marks for their parts.
fn earlier_messages(messages: Vec<(String, String, Vec<PyPart>)>) -> CoreResult<Vec<Message>> {
    let message = |(role, content, parts): (String, String, Vec<PyPart>)| {
        let message = super::protocol::message(&role, content)?;
        Ok(Message { parts: parts.iter().map(|part| part.part().clone()).collect(), ..message })
    };
    messages.into_iter().map(message).collect()
}

fn all_parts(run: &LiveRun) -> Vec<PyPart> {
    run.machine().state().parts().into_iter().map(|part| PyPart::of_run(run, part)).collect()
}

/// Claims a run of a store, to be resumed.
fn claim(py: Python<'_>, store: &PyStore, run_id: &str) -> CoreResult<LiveRun> {
    let store = store.open()?;
    let claimed = py.detach(|| ClaimedRun::claim(store, run_id))?;
    Ok(LiveRun::open(claimed)?)
}
