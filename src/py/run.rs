//! One run: inputs from a driver in, commands out. What has happened goes into its log and, where it has one, its
//! store.

use super::command::{PyCommand, PyDelta};
use super::error;
use super::protocol::{DETACH_BYTES, PyBounds, PyGrammar, finish_reason};
use super::reader::Chunk;
use super::setup::{Grammars, PySetup};
use super::store::{PyStore, PyTicketRow, read_log, status_word};
use super::under_way::{Inner, Kept, claim, load};
use super::value::to_python;
use crate::protocol::grammar::{Bounds, Scope};
use crate::run::resume;
use crate::run::{Command, Machine, Parent, Phase, Usage, differences, replay};
use crate::store::{Log, StoreError};
use crate::ticket::{Outcome, Status, TicketId};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex, MutexGuard};

/// The machine of one run, with its log.
#[pyclass(name = "Run", module = "callslip._core", frozen)]
pub(super) struct PyRun {
    inner: Mutex<Inner>,
}

impl PyRun {
    fn lock(&self) -> PyResult<MutexGuard<'_, Inner>> {
        self.inner.lock().map_err(|_| error::poisoned())
    }

    /// Gives an input to the machine, puts its events into the log, and returns what is to be done next.
    fn input(&self, py: Python<'_>, now: f64, give: impl FnOnce(&mut Machine)) -> PyResult<Vec<PyCommand>> {
        to_commands(py, &self.give(now, give)?)
    }

    /// Puts a run that is about to begin or to go on below this one.
    fn adopt(&self, below: &mut Machine) -> PyResult<()> {
        let mut inner = self.lock()?;
        let account = inner.machine.account();
        below.join(inner.machine.depth().saturating_add(1), &account);
        Ok(())
    }

    fn check_parked(&self, ticket: TicketId) -> PyResult<()> {
        let inner = self.lock()?;
        if inner.machine.awaits_approval(ticket) {
            return Ok(());
        }
        let parked: Vec<String> = inner
            .machine
            .state()
            .tickets
            .iter()
            .filter(|ticket| inner.machine.awaits_approval(ticket.id))
            .map(|ticket| ticket.id.to_string())
            .collect();
        let there = if parked.is_empty() { "none does".to_owned() } else { format!("{} do", parked.join(", ")) };
        Err(error::usage(format!("ticket {ticket} does not wait for approval: {there}")))
    }

    fn give(&self, now: f64, give: impl FnOnce(&mut Machine)) -> PyResult<Vec<Command>> {
        let mut inner = self.lock()?;
        give(&mut inner.machine);
        inner.commit(now)
    }
}

fn to_commands(py: Python<'_>, commands: &[Command]) -> PyResult<Vec<PyCommand>> {
    commands.iter().map(|command| PyCommand::new(py, command)).collect()
}

#[pymethods]
impl PyRun {
    /// A run that has not begun. `parent` is the run and the ticket in whose call it is started; `above` is the run whose
    /// limits it draws from.
    #[new]
    #[pyo3(signature = (setup, *, run_id, agent, parent = None, above = None, store = None))]
    fn new(
        setup: &PySetup,
        run_id: String,
        agent: String,
        parent: Option<(String, u32)>,
        above: Option<&Self>,
        store: Option<&PyStore>,
    ) -> PyResult<Self> {
        let parent = parent.map(|(run_id, ticket)| Parent { run_id, ticket: TicketId(ticket) });
        let store = store.map(PyStore::open).transpose()?;
        let kept = store.map(|store| Kept::new(store, &run_id)).transpose();
        let kept = kept.map_err(|cause| error::store(&cause))?;
        let mut machine = Machine::new(run_id, agent, parent, Arc::clone(&setup.setup));
        if let Some(above) = above {
            above.adopt(&mut machine)?;
        }
        Ok(Self { inner: Mutex::new(Inner { machine, grammars: setup.grammars.clone(), log: Log::default(), kept }) })
    }

    /// A run of a store, to be gone on with. Raises `UsageError` where it was set up with another protocol or other
    /// tools.
    #[staticmethod]
    #[pyo3(signature = (store, run_id, setup, above = None))]
    fn resume(py: Python<'_>, store: &PyStore, run_id: &str, setup: &PySetup, above: Option<&Self>) -> PyResult<Self> {
        let mut inner = claim(py, store, run_id)?;
        check_setup(&inner.machine, setup)?;
        inner.grammars = setup.grammars.clone();
        if let Some(above) = above {
            above.adopt(&mut inner.machine)?;
        }
        Ok(Self { inner: Mutex::new(inner) })
    }

    /// A run of a store, to be looked at.
    #[staticmethod]
    fn load(py: Python<'_>, store: &PyStore, run_id: &str) -> PyResult<Self> {
        let store = store.open()?;
        let records = py.detach(|| store.load(run_id)).map_err(|cause| error::store(&cause))?;
        Ok(Self { inner: Mutex::new(load(run_id, records)?) })
    }

    /// Ends a run of a store as cancelled.
    #[staticmethod]
    fn abandon(py: Python<'_>, store: &PyStore, run_id: &str, now: f64) -> PyResult<()> {
        let mut inner = claim(py, store, run_id)?;
        inner.machine.cancel(now);
        inner.commit(now).map(drop)
    }

    /// Drives a machine with what the lines of a log record. Raises `ReplayError` where another event comes out.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn replay(py: Python<'_>, lines: Vec<String>) -> PyResult<Self> {
        let records = read_log(&lines)?;
        let machine = py.detach(|| replay(&records)).map_err(|cause| error::replay(cause.to_string()))?;
        let inner = Inner { machine, grammars: Grammars::default(), log: Log::new(records), kept: None };
        Ok(Self { inner: Mutex::new(inner) })
    }

    /// Goes on with a run that was loaded.
    fn resumed(&self, py: Python<'_>, now: f64) -> PyResult<Vec<PyCommand>> {
        self.input(py, now, |machine| machine.resumed(now))
    }

    /// Up to where its store must be durable before the commands are carried out; 0 without a store.
    #[getter]
    fn position(&self) -> PyResult<u64> {
        Ok(self.lock()?.kept.as_ref().map_or(0, |kept| kept.position.get()))
    }

    /// Whether its store has failed it. What is told of the run after that is not written down.
    #[getter]
    fn unwritten(&self) -> PyResult<bool> {
        let failed = |kept: &Kept| kept.failure.is_some() || kept.store.failed().is_some();
        Ok(self.lock()?.kept.as_ref().is_some_and(failed))
    }

    /// Takes up a run of a store once more, which nobody has gone on with meanwhile.
    fn claim(&self, py: Python<'_>, store: &PyStore) -> PyResult<()> {
        let store = store.open()?;
        let (run_id, next) = {
            let inner = self.lock()?;
            (inner.machine.run_id().to_owned(), inner.log.next())
        };
        let claimed = py.detach(|| Ok((Kept::new(store, &run_id)?, store.load(&run_id)?)));
        let (kept, records) = claimed.map_err(|cause: StoreError| error::store(&cause))?;
        if records.last().map_or(0, |last| last.seq + 1) != next {
            return Err(error::store_says(format!(
                "run {run_id} has gone on elsewhere meanwhile: take it from the store anew"
            )));
        }
        self.lock()?.kept = Some(kept);
        Ok(())
    }

    /// The user says more. Raises `UsageError` where the run has not begun.
    fn send(&self, py: Python<'_>, text: &str, now: f64) -> PyResult<Vec<PyCommand>> {
        if self.lock()?.machine.state().messages.is_empty() {
            return Err(error::usage("the run has not begun yet: its task is its first message".to_owned()));
        }
        self.input(py, now, |machine| machine.send(text, now))
    }

    /// A person approves of a call. Raises `UsageError` where it does not wait for that.
    fn approve(&self, py: Python<'_>, ticket: u32, now: f64) -> PyResult<Vec<PyCommand>> {
        self.check_parked(TicketId(ticket))?;
        self.input(py, now, |machine| machine.approve(TicketId(ticket), now))
    }

    /// A person refuses a call. Raises `UsageError` where it does not wait for that.
    fn deny(&self, py: Python<'_>, ticket: u32, why: &str, now: f64) -> PyResult<Vec<PyCommand>> {
        self.check_parked(TicketId(ticket))?;
        let message = {
            let inner = self.lock()?;
            let tool = inner.machine.state().tickets.get(TicketId(ticket)).map(|ticket| Arc::clone(&ticket.tool));
            let reason = if why.trim().is_empty() { String::new() } else { format!(": {}", why.trim()) };
            format!("The call of '{}' was denied{reason}", tool.unwrap_or_default())
        };
        self.input(py, now, |machine| machine.completed(TicketId(ticket), Outcome::Denied { message }, now))
    }

    /// Whether a ticket is open.
    fn is_open(&self, ticket: u32) -> PyResult<bool> {
        let inner = self.lock()?;
        Ok(inner.machine.state().tickets.get(TicketId(ticket)).is_some_and(|ticket| ticket.outcome.is_none()))
    }

    /// Tasks that other runs work on: ticket, tool, role.
    fn open_tasks(&self) -> PyResult<Vec<(u32, String, Option<String>)>> {
        let tasks = self.lock()?.machine.open_tasks();
        Ok(tasks.into_iter().map(|(ticket, tool, role)| (ticket.0, tool.to_string(), role)).collect())
    }

    /// Raises `UsageError` where the run was set up with another protocol or other tools.
    fn check(&self, setup: &PySetup) -> PyResult<()> {
        let inner = self.lock()?;
        check_setup(&inner.machine, setup)
    }

    /// How many runs are above it.
    #[getter]
    fn depth(&self) -> PyResult<u32> {
        Ok(self.lock()?.machine.depth())
    }

    /// Says that its commands are carried out once more.
    fn attend(&self) -> PyResult<()> {
        self.lock()?.machine.attend();
        Ok(())
    }

    /// Leaves the run to whoever resumes it.
    fn release(&self) -> PyResult<()> {
        let mut inner = self.lock()?;
        inner.machine.leave();
        inner.kept = None;
        Ok(())
    }

    /// Its id.
    #[getter]
    fn run_id(&self) -> PyResult<String> {
        Ok(self.lock()?.machine.run_id().to_owned())
    }

    /// What the user asked for.
    #[getter]
    fn task(&self) -> PyResult<String> {
        let inner = self.lock()?;
        Ok(resume::start(inner.log.records()).map(|start| start.task.to_string()).unwrap_or_default())
    }

    /// How many events its log has, those that were compacted among them.
    #[getter]
    fn event_count(&self) -> PyResult<u64> {
        Ok(self.lock()?.log.next())
    }

    /// Begins the run. Times here and below are Unix seconds.
    fn start(&self, py: Python<'_>, task: &str, now: f64) -> PyResult<Vec<PyCommand>> {
        self.input(py, now, |machine| machine.start(task, now))
    }

    /// Takes the next part of a streamed reply. Returns what is new, whether the stream may be stopped, and commands.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn push(&self, py: Python<'_>, chunk: Chunk, now: f64) -> PyResult<(Vec<PyDelta>, bool, Vec<PyCommand>)> {
        let bytes = chunk.bytes();
        room_for(bytes.len())?;
        let push = || {
            let mut inner = self.lock()?;
            let pushed = inner.machine.push(bytes, now);
            Ok::<_, PyErr>((pushed, inner.commit(now)?))
        };
        let (pushed, commands) = if bytes.len() > DETACH_BYTES { py.detach(push) } else { push() }?;
        let deltas = pushed.deltas.into_iter().map(PyDelta::from).collect();
        Ok((deltas, pushed.stop, to_commands(py, &commands)?))
    }

    /// The streamed reply has ended, or was stopped.
    #[pyo3(signature = (finish_reason, usage, now))]
    fn replied(
        &self,
        py: Python<'_>,
        finish_reason: Option<&str>,
        usage: Option<(u64, u64, u64, f64)>,
        now: f64,
    ) -> PyResult<Vec<PyCommand>> {
        let reason = self::finish_reason(finish_reason)?;
        self.input(py, now, |machine| machine.replied(reason, usage.map(read_usage), now))
    }

    /// A whole reply.
    #[pyo3(signature = (text, finish_reason, usage, now))]
    fn reply(
        &self,
        py: Python<'_>,
        text: &str,
        finish_reason: Option<&str>,
        usage: Option<(u64, u64, u64, f64)>,
        now: f64,
    ) -> PyResult<Vec<PyCommand>> {
        room_for(text.len())?;
        let reason = self::finish_reason(finish_reason)?;
        let give = |machine: &mut Machine| machine.reply(text, reason, usage.map(read_usage), now);
        if text.len() > DETACH_BYTES {
            return to_commands(py, &py.detach(|| self.give(now, give))?);
        }
        self.input(py, now, give)
    }

    /// The run of a task has ended. `kind` and `text` as for `completed`.
    fn run_ended(
        &self,
        py: Python<'_>,
        ticket: u32,
        kind: &str,
        text: &str,
        run: Option<&Self>,
        now: f64,
    ) -> PyResult<Vec<PyCommand>> {
        room_for(text.len())?;
        let spent = run.map(|run| Ok::<_, PyErr>(run.lock()?.machine.state().spent())).transpose()?;
        let outcome = outcome(kind, text.to_owned())?;
        self.input(py, now, |machine| machine.run_ended(TicketId(ticket), outcome, spent, now))
    }

    /// A call has ended: `kind` is `ok` (with the JSON text of the result), `error`, `retry` or `in_doubt` (with
    /// the message).
    fn completed(&self, py: Python<'_>, ticket: u32, kind: &str, text: &str, now: f64) -> PyResult<Vec<PyCommand>> {
        room_for(text.len())?;
        let outcome = outcome(kind, text.to_owned())?;
        self.input(py, now, |machine| machine.completed(TicketId(ticket), outcome, now))
    }

    /// The grace for calls just started is over.
    fn settled(&self, py: Python<'_>, now: f64) -> PyResult<Vec<PyCommand>> {
        self.input(py, now, |machine| machine.settled(now))
    }

    /// The deadline is reached.
    fn timed_out(&self, py: Python<'_>, now: f64) -> PyResult<Vec<PyCommand>> {
        self.input(py, now, |machine| machine.timed_out(now))
    }

    /// The model client failed.
    fn failed(&self, py: Python<'_>, message: &str, now: f64) -> PyResult<Vec<PyCommand>> {
        self.input(py, now, |machine| machine.failed(message, now))
    }

    /// The run is to end now.
    fn cancel(&self, py: Python<'_>, now: f64) -> PyResult<Vec<PyCommand>> {
        self.input(py, now, |machine| machine.cancel(now))
    }

    /// Unix seconds at which `timed_out` is due; `None` without a limit.
    #[getter]
    fn deadline(&self) -> PyResult<Option<f64>> {
        Ok(self.lock()?.machine.deadline())
    }

    /// How many messages the transcript has.
    #[getter]
    fn message_count(&self) -> PyResult<usize> {
        Ok(self.lock()?.machine.state().messages.len())
    }

    /// Role and content of one message.
    fn message<'py>(&self, py: Python<'py>, position: usize) -> PyResult<(&'static str, Bound<'py, PyString>)> {
        let message = self.lock()?.machine.state().messages.get(position).cloned();
        let message = message.ok_or_else(|| error::value(format!("there is no message {position}")))?;
        Ok((message.role.as_str(), PyString::new(py, &message.content)))
    }

    /// The list of all tickets, as a message of the ticket protocol has it.
    fn ticket_list(&self) -> PyResult<String> {
        Ok(self.lock()?.machine.state().tickets.to_json())
    }

    /// All tickets, as the rows that the stub describes.
    fn tickets(&self) -> PyResult<Vec<PyTicketRow>> {
        let inner = self.lock()?;
        let run_id = inner.machine.run_id();
        Ok(inner
            .machine
            .state()
            .tickets
            .iter()
            .map(|ticket| {
                let outcome =
                    ticket.outcome.as_ref().map(|outcome| (outcome.word().to_owned(), outcome.text().to_owned()));
                (
                    run_id.to_owned(),
                    ticket.id.to_string(),
                    ticket.kind.as_str(),
                    ticket.description.to_string(),
                    status_word(ticket.status()),
                    ticket.tool.to_string(),
                    ticket.call_id.clone(),
                    inner.machine.awaits_approval(ticket.id),
                    outcome,
                    ticket.opened_at,
                    ticket.completed_at,
                    ticket.arguments.as_ref().map(|arguments| arguments.to_json()),
                )
            })
            .collect())
    }

    /// How the run ended: reason, value, success, error, limit; `None` while it goes on.
    #[getter]
    #[expect(clippy::type_complexity, reason = "one tuple, taken apart at once by the Python face")]
    fn ending<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(&'static str, Bound<'py, PyAny>, Option<bool>, Option<String>, Option<&'static str>)>> {
        let (ending, limit) = {
            let inner = self.lock()?;
            let state = inner.machine.state();
            (state.ending.clone(), state.limit)
        };
        let Some(ending) = ending else { return Ok(None) };
        let value = to_python(py, &ending.value)?;
        Ok(Some((ending.reason.name(), value, ending.success, ending.error, limit.map(crate::run::Limit::name))))
    }

    /// How many messages of an example stand between the prompt and the task.
    #[getter]
    fn examples(&self) -> PyResult<usize> {
        Ok(self.lock()?.machine.setup().examples.len())
    }

    /// The message without the results that were loaded into it; `None` where there are none.
    fn short<'py>(&self, py: Python<'py>, position: usize) -> PyResult<Option<Bound<'py, PyString>>> {
        let inner = self.lock()?;
        let short = inner.machine.state().messages.get(position).and_then(|message| message.short.as_ref());
        Ok(short.map(|short| PyString::new(py, short)))
    }

    /// The same as `usage`, with what the runs below it have spent that have ended; and the tickets and runs in all.
    #[getter]
    fn spent(&self) -> PyResult<(u64, u64, u64, f64, u32, u32)> {
        let spent = self.lock()?.machine.state().spent();
        let Usage { input_tokens, output_tokens, cached_tokens, cost } = spent.usage;
        Ok((input_tokens, output_tokens, cached_tokens, cost, spent.tickets, spent.runs))
    }

    /// Input, output and cached tokens, and the cost.
    #[getter]
    fn usage(&self) -> PyResult<(u64, u64, u64, f64)> {
        let usage = self.lock()?.machine.state().usage;
        Ok((usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost))
    }

    /// Turns of the model, violations in all.
    #[getter]
    fn counts(&self) -> PyResult<(u32, u32)> {
        let inner = self.lock()?;
        let state = inner.machine.state();
        Ok((state.turn, state.violations_total))
    }

    /// The log from `seq` on, one JSON text an event.
    #[pyo3(signature = (seq = 0))]
    fn records<'py>(&self, py: Python<'py>, seq: usize) -> PyResult<Bound<'py, PyList>> {
        let texts: Vec<String> = {
            let inner = self.lock()?;
            let records = inner.log.since(seq);
            records
                .iter()
                .map(serde_json::to_string)
                .collect::<Result<_, _>>()
                .map_err(|cause| error::value(cause.to_string()))?
        };
        PyList::new(py, texts)
    }

    /// What may be said in the coming reply, with at most so many characters of thoughts, within the bounds of the model.
    fn grammar(&self, thoughts: Option<u32>, bounds: Option<PyBounds>) -> PyResult<PyGrammar> {
        let bounds = bounds.map(Bounds::from);
        let inner = self.lock()?;
        let (state, setup) = (inner.machine.state(), inner.machine.setup());
        let calls = state.last_turn.is_none();
        let called = !setup.call_first || state.called || !calls;
        // An answer before any result was read would be made up: a call is to come first so that there is one.
        let finish = called && (!setup.call_first || !calls || !setup.protocol.background() || state.has_read());
        let ids = |status: Status| {
            // Other protocols have no moves that name a ticket.
            let named = calls && setup.protocol.background();
            let tickets = state.tickets.iter().filter(move |ticket| named && ticket.status() == status);
            tickets.map(|ticket| ticket.id.to_string()).collect()
        };
        let mut agents: Vec<String> = Vec::new();
        for agent in state.tickets.iter().filter(|ticket| calls && ticket.detached).filter_map(|t| t.call_id.clone()) {
            if !agents.contains(&agent) {
                agents.push(agent);
            }
        }
        let situation = (calls, finish, ids(Status::InProgress), ids(Status::Completed), agents, thoughts, bounds);
        let grammar =
            inner.grammars.get(situation, |(calls, finish, in_progress, completed, agents, thoughts, bounds)| {
                setup.protocol.grammar(&Scope {
                    tools: &setup.tools,
                    calls: *calls,
                    // A first move that must be a call is no task for others.
                    delegates: setup.delegates && (*finish || !in_progress.is_empty() || !completed.is_empty()),
                    finish: *finish,
                    in_progress: in_progress.clone(),
                    completed: completed.clone(),
                    agents: agents.clone(),
                    thoughts: *thoughts,
                    bounds: *bounds,
                })
            });
        Ok(PyGrammar { grammar })
    }

    /// Whether the run is over.
    #[getter]
    fn finished(&self) -> PyResult<bool> {
        Ok(self.lock()?.machine.state().phase == Phase::Finished)
    }
}

fn check_setup(machine: &Machine, setup: &PySetup) -> PyResult<()> {
    let differences = differences(machine.setup(), &setup.setup);
    if !machine.state().resumable() || differences.is_empty() {
        return Ok(());
    }
    Err(error::usage(format!(
        "run {} can't go on with this agent: {}. Resume it with an agent as it was, or start a new run",
        machine.run_id(),
        differences.join("; ")
    )))
}

/// Bytes from which on it is asked whether there is memory for a value.
const LARGE: usize = 1 << 20;
/// How often a value is copied on its way into the log, the file and the next message, at most.
const COPIES: usize = 8;

/// Raises `MemoryError` where there is no memory for a large value: Rust, once inside, would end the process.
fn room_for(bytes: usize) -> PyResult<()> {
    if bytes < LARGE {
        return Ok(());
    }
    let mut room: Vec<u8> = Vec::new();
    room.try_reserve_exact(bytes.saturating_mul(COPIES))
        .map_err(|_| PyMemoryError::new_err(format!("no memory for a value of {bytes} bytes")))
}

fn outcome(kind: &str, text: String) -> PyResult<Outcome> {
    Ok(match kind {
        "ok" => {
            let json = RawValue::from_string(text)
                .map_err(|cause| error::value(format!("expected the JSON text of a result: {cause}")))?;
            Outcome::Ok(json.into())
        }
        "error" | "transient" => Outcome::Error { message: text, transient: kind == "transient" },
        "retry" => Outcome::Retry { message: text },
        "in_doubt" => Outcome::InDoubt { message: text },
        other => {
            return Err(error::value(format!(
                "expected 'ok', 'error', 'transient', 'retry' or 'in_doubt': got '{other}'"
            )));
        }
    })
}

fn read_usage((input_tokens, output_tokens, cached_tokens, cost): (u64, u64, u64, f64)) -> Usage {
    // JSON has no other numbers.
    let cost = if cost.is_finite() { cost } else { 0.0 };
    Usage { input_tokens, output_tokens, cached_tokens, cost }
}
