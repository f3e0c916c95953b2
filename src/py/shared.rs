//! The queue of a store that many processes share, and what those processes tell one another.

use super::error::{self, CoreResult};
use super::store::PyStore;
use crate::signal::{self, Signal, Signalled};
use crate::store::PostgresStore;
use crate::store::postgres::{Below, Claimed, Listen, Notice, Rested, SqlParameter, Submit, Told, Worker};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The runs of a shared store, for workers and for those who give them work.
#[pyclass(name = "SharedRuns", module = "callslip._core", frozen)]
pub(super) struct PySharedRuns {
    store: Arc<PostgresStore>,
}

/// A claimed run: its id, the epoch of the claim, its agent, with what it begins, how often it was claimed in vain,
/// whether it is over, the shape of its protocol and tools, and where it stands in its tree.
type PlainClaim = (String, i64, String, Option<String>, u32, bool, Option<String>, Option<String>);
/// A message: its number, run, kind, ticket, body, and who has decided.
type Message = (i64, String, String, Option<u32>, Option<String>, Option<String>);

#[pymethods]
impl PySharedRuns {
    #[new]
    fn new(store: &PyStore) -> CoreResult<Self> {
        Ok(Self { store: Arc::clone(store.shared()?) })
    }

    /// How long a run stays with a driver that says nothing, in seconds.
    fn set_lease(&self, seconds: f64) -> CoreResult<()> {
        let lease = Duration::try_from_secs_f64(seconds).map_err(|cause| error::value(cause.to_string()))?;
        self.store.set_lease(lease);
        Ok(())
    }

    /// How long a worker keeps a run that makes no progress, in seconds; `None` for ever.
    fn set_stuck(&self, seconds: Option<f64>) -> CoreResult<()> {
        let stuck = seconds.map(Duration::try_from_secs_f64).transpose();
        self.store.set_stuck(stuck.map_err(|cause| error::value(cause.to_string()))?);
        Ok(())
    }

    /// A tool of a run reports progress.
    fn report(&self, run_id: &str) {
        self.store.report(run_id);
    }

    /// Seconds by which the database's clock is ahead of this machine's.
    #[getter]
    fn clock_offset(&self) -> f64 {
        self.store.clock_offset()
    }

    /// Gives workers a run. Returns its id, or that of the run with the same key; `None` where the queue is too long.
    #[pyo3(signature = (*, run_id, agent, given, task, queue, tenant, owner, key, limit, delay, backlog))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only, and each is one fact of the run")]
    fn submit(
        &self,
        py: Python<'_>,
        run_id: String,
        agent: String,
        given: String,
        task: String,
        queue: String,
        tenant: Option<String>,
        owner: Option<String>,
        key: Option<String>,
        limit: Option<i32>,
        delay: f64,
        backlog: Option<i64>,
    ) -> CoreResult<Option<String>> {
        let submit = Submit { run_id, agent, given, task, queue, tenant, owner, key, limit, delay, backlog };
        Ok(py.detach(|| self.store.submit(&submit))?)
    }

    fn make_queue(&self, py: Python<'_>, queue: &str) -> CoreResult<()> {
        Ok(py.detach(|| self.store.make_queue(queue))?)
    }

    /// Leases runs of these agents, at most so many; with `begun_only` no new ones. `refused` has the agents and shapes, with
    /// a space between, of runs that this worker can't drive. Returns also how many runs were given back.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn claim(
        &self,
        py: Python<'_>,
        queue: &str,
        slots: i32,
        agents: Vec<String>,
        refused: Vec<String>,
        begun_only: bool,
    ) -> CoreResult<(Vec<PlainClaim>, usize)> {
        let (claimed, given_back) = py.detach(|| self.store.claim_runs(queue, slots, &agents, &refused, begun_only))?;
        Ok((claimed.into_iter().map(plain_claim).collect(), given_back))
    }

    /// Leases one run that nobody drives; `None` if there is none of this id.
    fn take(&self, py: Python<'_>, run_id: &str) -> CoreResult<Option<PlainClaim>> {
        Ok(py.detach(|| self.store.take_run(run_id))?.map(plain_claim))
    }

    /// Lets go of a claim. Its run is left, unless it was opened.
    fn let_go(&self, run_id: &str, epoch: i64) {
        self.store.let_go(run_id, epoch);
    }

    /// Why a run that is driven here is lost to it; none while it is not.
    fn why_lost(&self, run_id: &str) -> Option<String> {
        Some(self.store.why_lost(run_id)?.to_string())
    }

    /// Gives a claimed run back, which this worker can't drive. Others wait so many seconds before they try it.
    fn refuse(&self, py: Python<'_>, run_id: &str, epoch: i64, delay: f64) -> CoreResult<()> {
        Ok(py.detach(|| self.store.refuse(run_id, epoch, delay))?)
    }

    /// Ends the work on runs, each until it is told something or its delay is over: `rests`, `told` or `lost`.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn rest(&self, py: Python<'_>, runs: Vec<(String, Option<f64>)>) -> CoreResult<Vec<&'static str>> {
        let word = |rested| match rested {
            Rested::Rests => "rests",
            Rested::Told => "told",
            Rested::Lost => "lost",
        };
        Ok(py.detach(|| self.store.rest(&runs))?.into_iter().map(word).collect())
    }

    /// What waits for a run and for those that are driven with it, oldest first.
    fn inbox(&self, py: Python<'_>, run_id: &str) -> CoreResult<Vec<Message>> {
        let messages = py.detach(|| self.store.inbox(run_id))?;
        let plain = messages.into_iter().map(|one| (one.id, one.run_id, one.kind, one.ticket, one.body, one.by));
        Ok(plain.collect())
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn drop_messages(&self, py: Python<'_>, ids: Vec<i64>) -> CoreResult<()> {
        Ok(py.detach(|| self.store.drop_messages(&ids))?)
    }

    /// Tells a run something, wherever it is driven: `told`, `no run`, `not parked`, `decided`, `cancelled` or `over`.
    fn tell(
        &self,
        py: Python<'_>,
        run_id: &str,
        kind: &str,
        ticket: Option<u32>,
        body: Option<&str>,
        by: Option<&str>,
    ) -> CoreResult<&'static str> {
        Ok(match py.detach(|| self.store.tell(run_id, kind, ticket, body, by))? {
            Told::Told => "told",
            Told::NoRun => "no run",
            Told::NotParked => "not parked",
            Told::Decided => "decided",
            Told::Cancelled => "cancelled",
            Told::Over => "over",
        })
    }

    /// Gives workers a child run or a call, unless they have it. False: the driver of the run above drives it itself.
    #[pyo3(signature = (*, above_id, ticket, id, agent, known_as, given, above, task, queue, is_call))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only, and each is one fact of it")]
    fn submit_below(
        &self,
        py: Python<'_>,
        above_id: String,
        ticket: u32,
        id: String,
        agent: String,
        known_as: String,
        given: String,
        above: Option<String>,
        task: String,
        queue: Option<String>,
        is_call: bool,
    ) -> CoreResult<bool> {
        let below = Below { above_id, ticket, id, agent, known_as, given, above, task, queue, is_call };
        Ok(py.detach(|| self.store.submit_below(&below))?)
    }

    /// Whether workers have a child run, which the driver of the run above does not drive.
    fn is_apart(&self, py: Python<'_>, run_id: &str) -> CoreResult<bool> {
        Ok(py.detach(|| self.store.is_apart(run_id))?)
    }

    /// Ends a call that was claimed with its outcome, in JSON; `None` for one that was given up. False: it is another
    /// worker's by now.
    fn end_call(&self, py: Python<'_>, id: &str, outcome: Option<&str>) -> CoreResult<bool> {
        Ok(py.detach(|| self.store.end_call(id, outcome))?)
    }

    /// Of a run and of those around it, the ones that have something to do and are driven by nobody.
    fn due_near(&self, py: Python<'_>, run_id: &str) -> CoreResult<Vec<String>> {
        Ok(py.detach(|| self.store.due_near(run_id))?)
    }

    /// The runs that have had something to do for so many seconds and are driven by nobody, so many of each queue.
    fn due(&self, py: Python<'_>, seconds: f64, at_most: i32) -> CoreResult<Vec<String>> {
        Ok(py.detach(|| self.store.due(seconds, at_most))?)
    }

    /// For so many seconds, whoever writes to these runs tells it here.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn follow(&self, py: Python<'_>, run_ids: Vec<String>, seconds: f64) -> CoreResult<()> {
        Ok(py.detach(|| self.store.follow(&run_ids, seconds))?)
    }

    /// These runs and those that are driven with them: each with the run that holds it and the position of its next event.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn positions(&self, py: Python<'_>, run_ids: Vec<String>) -> CoreResult<Vec<(String, Option<String>, u64)>> {
        Ok(py.detach(|| self.store.positions(&run_ids))?)
    }

    /// Whether a run has more events than up to this position, or will have, because it was told something.
    fn has_more(&self, py: Python<'_>, run_id: &str, next: u64) -> CoreResult<bool> {
        Ok(py.detach(|| self.store.has_more(run_id, next))?)
    }

    /// Says that a worker is there, for people who look.
    #[pyo3(signature = (*, worker, version, agents, queues, slots, busy, taken_over, refused, cannot_drive, misfits))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only, and each is one fact of the worker")]
    fn announce(
        &self,
        py: Python<'_>,
        worker: String,
        version: String,
        agents: Vec<String>,
        queues: Vec<String>,
        slots: i32,
        busy: i32,
        taken_over: i64,
        refused: i64,
        cannot_drive: Vec<String>,
        misfits: String,
    ) -> CoreResult<()> {
        let id = worker;
        let worker =
            Worker { id, version, agents, queues, slots, busy, taken_over, refused, refuses: cannot_drive, misfits };
        Ok(py.detach(|| self.store.announce(&worker))?)
    }

    /// Takes that back.
    fn withdraw(&self, py: Python<'_>, worker: &str) -> CoreResult<()> {
        Ok(py.detach(|| self.store.withdraw(worker))?)
    }

    /// What other processes tell, from now on.
    fn notices(&self) -> CoreResult<PyNotices> {
        let (signal, signalled) = signal::pair()?;
        let mailbox = Arc::new(Mailbox { signal, notices: Mutex::default() });
        let weak: Weak<Mailbox> = Arc::downgrade(&mailbox);
        self.store.listen(weak)?;
        Ok(PyNotices { signalled, mailbox })
    }
}

fn plain_claim(run: Claimed) -> PlainClaim {
    (run.run_id, run.epoch, run.agent, run.given, run.claims, run.is_over, run.shape, run.above)
}

/// Names and rows of a query.
pub(super) fn query<'py>(
    py: Python<'py>,
    store: &Arc<PostgresStore>,
    sql: &str,
    parameters: &[Bound<'py, PyAny>],
) -> CoreResult<(Vec<String>, Bound<'py, PyList>)> {
    let parameters: Vec<SqlParameter> = parameters.iter().map(parameter).collect::<CoreResult<_>>()?;
    let table = py.detach(|| store.query_json(sql, &parameters))?;
    let loads = py.import("json")?.getattr("loads")?;
    let list = PyList::empty(py);
    for row in &table.rows {
        let row = loads.call1((row,))?;
        let columns = table.columns.iter().map(|name| row.get_item(name)).collect::<PyResult<Vec<_>>>()?;
        list.append(PyTuple::new(py, columns)?)?;
    }
    Ok((table.columns, list))
}

fn parameter(value: &Bound<'_, PyAny>) -> CoreResult<SqlParameter> {
    if value.is_none() {
        return Ok(SqlParameter::Null);
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(SqlParameter::Boolean(value.is_truthy()?));
    }
    if value.is_instance_of::<PyInt>() {
        // Of the class itself: one derived from it may write itself in another way.
        let digits = value.py().get_type::<PyInt>().call_method1("__repr__", (value,))?;
        return Ok(SqlParameter::Integer(digits.extract()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(SqlParameter::Real(value.extract::<f64>()?.to_string()));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(SqlParameter::Text(value.extract()?));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(SqlParameter::Bytes(crate::hex::hex(bytes.as_bytes())));
    }
    let kind = value.get_type().name()?;
    Err(error::value(format!("expected None, a number, a string or bytes as a parameter: got {kind}")))
}

/// Notices that were not taken yet.
struct Mailbox {
    signal: Signal,
    notices: Mutex<Vec<Notice>>,
}

impl Listen for Mailbox {
    fn notice(&self, notice: &Notice) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if !notices.contains(notice) {
            notices.push(notice.clone());
        }
        drop(notices);
        self.signal.ring();
    }
}

/// What other processes have told, for an event loop to take. No thread of the store runs Python.
#[pyclass(name = "Notices", module = "callslip._core", frozen)]
pub(super) struct PyNotices {
    signalled: Signalled,
    mailbox: Arc<Mailbox>,
}

#[pymethods]
impl PyNotices {
    /// The descriptor to watch.
    fn fileno(&self) -> i64 {
        self.signalled.descriptor()
    }

    /// All that was told since the last time: `queue`, `inbox`, `written`, `lost` or `anything`, with the name of the queue
    /// or the id of the run.
    fn take(&self) -> Vec<(&'static str, String)> {
        self.signalled.drain();
        let taken = std::mem::take(&mut *self.mailbox.notices.lock().unwrap_or_else(PoisonError::into_inner));
        taken.into_iter().map(plain).collect()
    }
}

fn plain(notice: Notice) -> (&'static str, String) {
    match notice {
        Notice::Queue(queue) => ("queue", queue),
        Notice::Inbox(run_id) => ("inbox", run_id),
        Notice::Written(run_id) => ("written", run_id),
        Notice::Lost(run_id) => ("lost", run_id),
        Notice::Anything => ("anything", String::new()),
    }
}
