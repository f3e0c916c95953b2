//! Stores, and the descriptor that wakes an event loop after a commit.

use super::error::{self, CoreError, CoreResult};
use super::rows::{PyRunRow, PyTicketRow};
use crate::live::{self, ClaimedRun, LiveRun};
use crate::run::{read_contents, read_log};
use crate::signal::{self, Signal, Signalled};
use crate::store::sqlite::{Marks, Object, SqlValue};
use crate::store::{
    Durability, MemoryStore, Position, PostgresStore, RunFilter, RunKey, RunStatus, SqliteStore, Store, StoreError,
    TicketFilter, Wake,
};
use crate::ticket::{Status, TicketKind};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyList, PyNone, PyString, PyTuple};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How long Ctrl-C may have to wait.
const PATIENCE: Duration = Duration::from_millis(50);

/// The logs of runs, in memory or in a file.
#[pyclass(name = "Store", module = "callslip._core", frozen, weakref)]
pub(super) struct PyStore {
    store: Arc<dyn Store>,
    /// The same, where it is a file.
    file: Option<Arc<SqliteStore>>,
    /// The same, where it is a database that processes share.
    shared: Option<Arc<PostgresStore>>,
    closed: AtomicBool,
}

/// The files that are open, with the number of their handles. Its lock is held while one is opened or closed, so that
/// no handle is opened on a store that another thread is closing.
static FILES: Mutex<Vec<(Arc<SqliteStore>, usize)>> = Mutex::new(Vec::new());

fn open_file(path: &Path, durability: Durability) -> Result<Arc<SqliteStore>, StoreError> {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let store = SqliteStore::open(path, durability)?;
    match files.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &store)) {
        Some((_, handles)) => *handles += 1,
        None => files.push((Arc::clone(&store), 1)),
    }
    Ok(store)
}

fn close_file(store: &Arc<SqliteStore>) -> Result<(), StoreError> {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(position) = files.iter().position(|(known, _)| Arc::ptr_eq(known, store)) else { return Ok(()) };
    if let Some((_, handles)) = files.get_mut(position).filter(|(_, handles)| *handles > 1) {
        *handles -= 1;
        return Ok(());
    }
    files.swap_remove(position);
    store.close()
}

impl PyStore {
    /// The store, while this handle is open: others may have the same file open.
    pub(super) fn open(&self) -> CoreResult<&Arc<dyn Store>> {
        if !self.closed.load(Ordering::Relaxed) {
            return Ok(&self.store);
        }
        // A store that failed says so, also after it was closed.
        let error = self.store.failed().map_or(StoreError::Closed, StoreError::Failed);
        Err(error.into())
    }

    /// Closes this handle, once.
    fn shut(&self) -> Result<(), StoreError> {
        if self.closed.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        if let Some(shared) = &self.shared {
            return shared.close();
        }
        self.file.as_ref().map_or(Ok(()), close_file)
    }

    /// The database that processes share, while this handle is open.
    pub(super) fn shared(&self) -> CoreResult<&Arc<PostgresStore>> {
        self.open()?;
        self.shared.as_ref().ok_or(CoreError::NotShared)
    }
}

impl Drop for PyStore {
    fn drop(&mut self) {
        // An error on the way is reported by `close`, which the program calls to see it.
        let _ = self.shut();
    }
}

#[pymethods]
impl PyStore {
    /// In memory.
    #[staticmethod]
    fn memory(py: Python<'_>) -> Self {
        error::prepare(py);
        Self { store: Arc::new(MemoryStore::default()), file: None, shared: None, closed: AtomicBool::default() }
    }

    /// In an `SQLite` file; `durability` is `full`, `normal` or `memory`.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn sqlite(py: Python<'_>, path: PathBuf, durability: &str) -> CoreResult<Self> {
        error::prepare(py);
        let durability = match durability {
            "full" => Durability::Full,
            "normal" => Durability::Normal,
            "memory" => Durability::Memory,
            other => return Err(error::value(format!("expected 'full', 'normal' or 'memory': got '{other}'"))),
        };
        let file = py.detach(|| open_file(&path, durability))?;
        Ok(Self { store: file.clone(), file: Some(file), shared: None, closed: AtomicBool::default() })
    }

    /// Checks what a file says it is, and the kinds, names and statements of what it defines: before a view of it is
    /// read, which may be another's and never end.
    #[staticmethod]
    fn check_file(
        path: &str,
        application_id: i32,
        version: i32,
        objects: Vec<(String, String, Option<String>)>,
    ) -> CoreResult<()> {
        let objects = objects.into_iter().map(|(kind, name, sql)| Object { kind, name, sql }).collect();
        Ok(Marks { application_id, version, objects }.check(Path::new(path))?)
    }

    /// In the database at this URL, which other processes use too.
    #[staticmethod]
    fn postgres(py: Python<'_>, url: &str) -> CoreResult<Self> {
        error::prepare(py);
        let shared = py.detach(|| PostgresStore::open(url))?;
        Ok(Self { store: shared.clone(), file: None, shared: Some(shared), closed: AtomicBool::default() })
    }

    /// Makes the database at this URL ready, or brings it to the present version. Returns the versions before
    /// and after, and the names of the roles that this user may not make.
    #[staticmethod]
    fn migrate(py: Python<'_>, url: &str, pgmq: Option<&str>) -> CoreResult<(i32, i32, Vec<String>)> {
        let done = py.detach(|| PostgresStore::migrate(url, pgmq))?;
        Ok((done.before, done.after, done.missing_roles))
    }

    /// The address of the database, without its password; `None` for another store.
    #[getter]
    fn address(&self) -> Option<&str> {
        self.shared.as_deref().map(PostgresStore::address)
    }

    /// The position up to which everything is durable. Raises `StoreError` once the store has failed.
    fn durable(&self) -> CoreResult<u64> {
        Ok(self.open()?.durable()?.get())
    }

    /// Waits until everything up to a position is durable. Ctrl-C is answered.
    fn wait(&self, py: Python<'_>, position: u64) -> CoreResult<()> {
        let store = self.open()?;
        while !py.detach(|| store.wait(Position::from(position), PATIENCE))? {
            py.check_signals()?;
        }
        Ok(())
    }

    /// A descriptor that becomes readable after each commit.
    fn waker(&self) -> CoreResult<PyWaker> {
        let (signal, signalled) = signal::pair()?;
        let signal = Arc::new(signal);
        let weak: Weak<Signal> = Arc::downgrade(&signal);
        self.open()?.subscribe(weak);
        Ok(PyWaker { signalled, _signal: signal })
    }

    /// Whether a run is being worked on in this process.
    fn is_claimed(&self, run_id: &str) -> CoreResult<bool> {
        Ok(self.open()?.is_claimed(run_id))
    }

    /// Whether it has a run.
    fn has(&self, py: Python<'_>, run_id: &str) -> CoreResult<bool> {
        let store = self.open()?;
        Ok(py.detach(|| store.exists(run_id))?)
    }

    /// The run that has a key, or is about to begin with it.
    fn run_with(
        &self,
        py: Python<'_>,
        owner: Option<String>,
        agent: String,
        key: String,
    ) -> CoreResult<Option<String>> {
        let store = self.open()?;
        Ok(py.detach(|| store.run_with(&RunKey { owner, agent, key }))?)
    }

    /// The run and the number of the ticket that others know by a key.
    fn ticket_with(
        &self,
        py: Python<'_>,
        owner: Option<String>,
        agent: String,
        key: String,
    ) -> CoreResult<Option<(String, u32)>> {
        let store = self.open()?;
        let found = py.detach(|| store.ticket_with(&RunKey { owner, agent, key }))?;
        Ok(found.map(|(run_id, ticket)| (run_id, ticket.0)))
    }

    /// Runs, the latest first.
    #[pyo3(signature = (*, status, agent, owner, parent, since, until, limit))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only, and each is one bound of the Python face")]
    fn runs(
        &self,
        py: Python<'_>,
        status: Option<&str>,
        agent: Option<String>,
        owner: Option<String>,
        parent: Option<String>,
        since: Option<f64>,
        until: Option<f64>,
        limit: Option<usize>,
    ) -> CoreResult<Vec<PyRunRow>> {
        let status = status.map(|word| if word == "running" { RunStatus::Running } else { RunStatus::Finished });
        let filter = RunFilter { status, agent, owner, parent, since, until, limit };
        let store = self.open()?;
        let rows = py.detach(|| store.runs(&filter))?;
        Ok(rows.into_iter().map(PyRunRow::from).collect())
    }

    /// Tickets, the latest first, with their whole results.
    #[pyo3(signature = (*, status, kind, run, owner, parent, parked, awaits_result, since, until, limit))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only, and each is one bound of the Python face")]
    fn tickets(
        &self,
        py: Python<'_>,
        status: Option<&str>,
        kind: Option<&str>,
        run: Option<String>,
        owner: Option<String>,
        parent: Option<String>,
        parked: Option<bool>,
        awaits_result: Option<bool>,
        since: Option<f64>,
        until: Option<f64>,
        limit: Option<usize>,
    ) -> CoreResult<Vec<PyTicketRow>> {
        let status = status.map(|word| if word == "COMPLETED" { Status::Completed } else { Status::InProgress });
        let known = |name| {
            TicketKind::from_name(name)
                .ok_or_else(|| error::value(format!("expected kind='tool_call' or 'task': got '{name}'")))
        };
        let kind = kind.map(known).transpose()?;
        let filter = TicketFilter { run, status, kind, owner, parent, parked, awaits_result, since, until, limit };
        let store = self.open()?;
        let rows = py.detach(|| store.tickets(&filter))?;
        Ok(rows.into_iter().map(|row| PyTicketRow::of_store(store, row)).collect())
    }

    /// Names and rows of a query.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn query<'py>(
        &self,
        py: Python<'py>,
        sql: &str,
        parameters: Vec<Bound<'py, PyAny>>,
    ) -> CoreResult<(Vec<String>, Bound<'py, PyList>)> {
        self.open()?;
        if let Some(shared) = &self.shared {
            return super::shared::query(py, shared, sql, &parameters);
        }
        let Some(file) = &self.file else {
            return Err(CoreError::NoFile);
        };
        let parameters: Vec<SqlValue> = parameters.iter().map(column).collect::<CoreResult<_>>()?;
        let table = py.detach(|| file.query(sql, &parameters))?;
        let list = PyList::empty(py);
        for row in table.rows {
            let row: Vec<Bound<'py, PyAny>> = row.into_iter().map(|column| to_python(py, column)).collect();
            list.append(PyTuple::new(py, row)?)?;
        }
        Ok((table.columns, list))
    }

    /// Imports the lines of a log. Returns the run's id.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn import_run(&self, py: Python<'_>, lines: Vec<String>) -> CoreResult<String> {
        let (records, contents) = (read_log(&lines)?, read_contents(&lines)?);
        let store = self.open()?;
        let (run_id, position) = py.detach(|| live::import(&**store, records, contents))?;
        self.wait(py, position.get())?;
        Ok(run_id)
    }

    /// Deletes runs with all that were started in their calls. Returns how many.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn delete(&self, py: Python<'_>, run_ids: Vec<String>) -> CoreResult<usize> {
        let store = self.open()?;
        Ok(py.detach(|| store.delete(&run_ids))?)
    }

    /// Deletes runs that ended before a Unix time, all but the latest of them. Returns how many.
    #[pyo3(signature = (before, keep))]
    fn prune(&self, py: Python<'_>, before: Option<f64>, keep: Option<usize>) -> CoreResult<usize> {
        let store = self.open()?;
        Ok(py.detach(|| store.prune(before, keep))?)
    }

    /// Deletes all runs of an owner, with every byte of them. Returns their ids.
    fn erase(&self, py: Python<'_>, owner: &str) -> CoreResult<Vec<String>> {
        let store = self.open()?;
        Ok(py.detach(|| store.erase(owner))?)
    }

    /// Deletes what runs that were deleted have left behind.
    fn sweep(&self, py: Python<'_>) -> CoreResult<()> {
        let store = self.open()?;
        Ok(py.detach(|| store.sweep())?)
    }

    /// Replaces the events of a run by their fold.
    fn compact(&self, py: Python<'_>, run_id: &str) -> CoreResult<()> {
        let store = self.open()?;
        Ok(py.detach(|| live::compact(&**store, run_id))?)
    }

    /// In a forked child: leaves the file to the parent.
    fn forked(&self) {
        if let Some(file) = &self.file {
            file.forked();
        }
        if let Some(shared) = &self.shared {
            shared.forked();
        }
    }

    /// Why the store has stopped, once it has.
    #[getter]
    fn failed(&self) -> Option<String> {
        self.store.failed()
    }

    /// Writes what is pending; the last handle of a file gives it up.
    fn close(&self, py: Python<'_>) -> CoreResult<()> {
        Ok(py.detach(|| self.shut())?)
    }
}

fn column(value: &Bound<'_, PyAny>) -> CoreResult<SqlValue> {
    if value.is_none() {
        return Ok(SqlValue::Null);
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(SqlValue::Integer(value.extract()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(SqlValue::Real(value.extract()?));
    }
    if value.is_instance_of::<PyBytes>() {
        return Ok(SqlValue::Blob(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(SqlValue::Text(value.extract()?));
    }
    let kind = value.get_type().name()?;
    Err(error::value(format!("expected None, a number, a string or bytes as a parameter: got {kind}")))
}

fn to_python(py: Python<'_>, column: SqlValue) -> Bound<'_, PyAny> {
    match column {
        SqlValue::Null => PyNone::get(py).to_owned().into_any(),
        SqlValue::Integer(number) => PyInt::new(py, number).into_any(),
        SqlValue::Real(number) => PyFloat::new(py, number).into_any(),
        SqlValue::Text(text) => PyString::new(py, &text).into_any(),
        SqlValue::Blob(bytes) => PyBytes::new(py, &bytes).into_any(),
    }
}

impl Wake for Signal {
    fn wake(&self) {
        self.ring();
    }
}

/// Wakes an event loop after each commit of a store. No thread of the store runs Python.
#[pyclass(name = "Waker", module = "callslip._core", frozen)]
pub(super) struct PyWaker {
    signalled: Signalled,
    /// The store holds it weakly.
    _signal: Arc<Signal>,
}

#[pymethods]
impl PyWaker {
    /// The descriptor to watch.
    fn fileno(&self) -> i64 {
        self.signalled.descriptor()
    }

    /// Takes what was signalled, so that the descriptor is quiet until the next commit.
    fn drain(&self) {
        self.signalled.drain();
    }
}

/// Claims a run of a store, to be resumed.
pub(super) fn claim(py: Python<'_>, store: &PyStore, run_id: &str, above: Option<&str>) -> CoreResult<LiveRun> {
    let store = store.open()?;
    let claimed = py.detach(|| ClaimedRun::claim(store, run_id, above))?;
    Ok(LiveRun::open(claimed)?)
}
