//! The errors of a store, each with a way out.

use std::path::PathBuf;
use thiserror::Error;

/// Why a store could not be opened, read or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub enum StoreError {
    /// The run is being driven.
    #[error("run {run_id} is in progress in this process: wait for its end, or call run.cancel()")]
    UnderWay { run_id: String },
    /// Another run has the key.
    #[error("run {run_id} has this key already: call store.run({run_id:?}), or use another key")]
    KeyTaken { run_id: String },
    /// A record that is not the next one.
    #[error(
        "expected event {expected} of run {run_id}: got {got}: another driver has written to this run since it was loaded; load it again"
    )]
    Conflict {
        run_id: String,
        expected: u64,
        /// The position of the record.
        got: u64,
    },
    /// There is no such run.
    #[error("there is no run {run_id} in this store: it was never written here, or it was deleted")]
    NoSuchRun { run_id: String },
    /// The run has no log yet.
    #[error(
        "run {run_id} waits for a worker, which begins it: call fleet.result('{run_id}'), or fleet.work() in a process with its agent"
    )]
    NotBegun { run_id: String, agent: String, task: String },
    /// Writing failed, and the store has stopped.
    #[error("{0}")]
    Failed(String),
    /// The store was closed.
    #[error("this store is closed: open it again to use it")]
    Closed,
    /// Another process owns the file.
    #[error("{path} belongs to process {pid} ({program}), which has had it open since {since}: one process writes to a store at a time. Stop that process (and what it forked, if it has ended) or use another file; reading beside it is possible with any SQLite client", path = .path.display())]
    Owned {
        path: PathBuf,
        /// The process that has it open.
        pid: String,
        /// Since when, as UTC date and time.
        since: String,
        /// The name of its program.
        program: String,
    },
    /// Another process owns the file by another of its names.
    #[error("{path} is open in another process under another name (a hard link, or a second mount): one process writes to a store at a time. Stop that process, or use another file", path = .path.display())]
    OwnedByAnotherName { path: PathBuf },
    /// This process has the file open by other means.
    #[error("{path} is already open in this process outside callslip, for example by Python's sqlite3: closing that would drop this store's locks. Close it first, and use store.query for queries", path = .path.display())]
    HeldOpen { path: PathBuf },
    /// The store was opened before a fork.
    #[error("{path} was opened by process {owner}, before this process ({pid}) was forked from it: a store does not survive a fork. Open a store of its own in the child, on another file, or start the child by spawning", path = .path.display(), pid = std::process::id())]
    Forked {
        path: PathBuf,
        /// The process that opened it.
        owner: u32,
    },
    /// The store of a database was opened before a fork.
    #[error("the store at {server} was opened by process {owner}, before this process ({pid}) was forked from it: a store does not survive a fork. Open a store of its own in the child", pid = std::process::id())]
    ForkedShared {
        server: String,
        /// The process that opened it.
        owner: u32,
    },
    /// The file is open with another durability.
    #[error("{path} is open in this process with durability \"{open}\": close that store before it is opened with \"{asked}\"", path = .path.display())]
    OtherDurability {
        path: PathBuf,
        /// The durability of the open store.
        open: &'static str,
        /// The durability that the second opener requested.
        asked: &'static str,
    },
    /// The folder is not there.
    #[error("there is no folder {folder}: create it, then open the store again", folder = .folder.display())]
    NoFolder { folder: PathBuf },
    /// The path names a folder.
    #[error("{path} is a folder: name a file in it, for example {example}", path = .path.display(), example = .path.join("runs.sqlite").display())]
    Folder { path: PathBuf },
    /// The file is not a database.
    #[error("{path} is not an SQLite database, or it is damaged: {cause}. Nothing in it was changed; choose another file, or restore a backup", path = .path.display())]
    NoDatabase {
        path: PathBuf,
        /// The message of `SQLite`.
        cause: String,
    },
    /// The file is the database of another program.
    #[error("{path} is the SQLite database of another program (application_id {application_id}, with tables in it). Nothing in it was changed; choose another file", path = .path.display())]
    Foreign {
        path: PathBuf,
        /// The id in the file's header.
        application_id: i32,
    },
    /// The file says that it is ours, and defines something else.
    #[error("{path} is marked as a store of callslip, but {cause}: another program has made or changed it. Nothing in it was changed; choose another file, or restore a backup", path = .path.display())]
    Altered {
        path: PathBuf,
        /// The first difference from a store.
        cause: String,
    },
    /// The file was written by a later version.
    #[error("{path} has schema version {found}, this callslip knows up to {known}: it was written by a newer callslip. Nothing in it was changed; update callslip", path = .path.display())]
    Newer {
        path: PathBuf,
        found: i32,
        /// The last one known.
        known: i32,
    },
    /// The file or its folder can't be written to.
    #[error("{path} can't be written to{cause}: make it writable for this user, or choose another place for the store", path = .path.display())]
    ReadOnly {
        /// The file or folder.
        path: PathBuf,
        /// The system's message in brackets.
        cause: String,
    },
    /// The file can't be opened.
    #[error("{path} can't be opened: {cause}", path = .path.display())]
    Open {
        path: PathBuf,
        /// The message of the system or of `SQLite`.
        cause: String,
    },
    /// The file can't be read.
    #[error("{path} can't be read: {cause}. Check the disk, and that nothing else has changed the file", path = .path.display())]
    Read {
        path: PathBuf,
        /// The message of the system or of `SQLite`.
        cause: String,
    },
    /// Deleted data is left in the file.
    #[error("the runs are deleted, but {path} may still have bytes of them: {cause}. End the other programs that read it, and see that the disk has room for a second copy of it; then call store.erase again", path = .path.display())]
    Unscrubbed {
        path: PathBuf,
        /// The reason why it could not be rewritten.
        cause: String,
    },
    /// The file is damaged.
    #[error("{path} seems to be damaged: {cause}. Open it again; where that does not help, restore a backup, or save what can be read with `sqlite3 {path} .recover`", path = .path.display())]
    Damaged {
        path: PathBuf,
        /// The message of `SQLite`.
        cause: String,
    },
    /// A record differs from the record that was written.
    #[error(
        "event {seq} of run {run_id} can't be read: {cause}. It was changed by other means, or written by a newer callslip"
    )]
    Unreadable {
        run_id: String,
        seq: u64,
        /// The fault that was found in it.
        cause: String,
    },
    /// A driver in another process works on the run.
    #[error(
        "run {run_id} is in progress in another process: call approve, deny, send or cancel on store.run({run_id:?}), which reach it there, or wait for its end"
    )]
    Elsewhere { run_id: String },
    /// The run is driven with another one.
    #[error("run {run_id} is driven with run {holder}, in whose call it was started: resume that one")]
    Below { run_id: String, holder: String },
    /// The run was submitted for later.
    #[error(
        "run {run_id} was submitted with at=, and its time has not come: a worker begins it then. Call cancel() on it if it is not to begin"
    )]
    NotYet { run_id: String },
    /// Another worker has the run now.
    #[error(
        "run {run_id} was taken over by another worker, and nothing more of it is written here: its driver leaves it. Call store.run({run_id:?}) to read it"
    )]
    TakenOver { run_id: String },
    /// The database was away for too long.
    #[error(
        "the database did not answer for longer than the lease of run {run_id} ({seconds} s), so that another worker may have the run: its driver leaves it. Use a longer lease if the database is often away"
    )]
    NoLease {
        run_id: String,
        /// Seconds of the lease.
        seconds: u64,
    },
    /// The run has made no progress for too long.
    #[error(
        "run {run_id} wrote no event and no tool of it reported progress for {seconds} s, so that another worker may have it: its driver leaves it. Call context.progress(…) in long tools, or pass a longer Fleet(stuck=…)"
    )]
    Stuck {
        run_id: String,
        /// Seconds that it had.
        seconds: u64,
    },
    /// It is no address of a database.
    #[error("expected the URL of a database, as postgresql://user@host/database: got one that can't be used ({cause})")]
    Address {
        /// The reason why it can't be used.
        cause: String,
    },
    /// There is no connection to the server.
    #[error("{server} can't be reached: {cause}. Check that it runs, and that this machine and user may connect to it")]
    Unreachable {
        server: String,
        /// The message of the system or of the driver.
        cause: String,
    },
    /// The server refuses a statement.
    #[error("{server} refused a statement: {cause}")]
    Statement {
        server: String,
        /// The message of the server.
        cause: String,
    },
    /// The database was not made ready.
    #[error("{server} has no tables of callslip, or those of an older version: call `callslip migrate` with its URL")]
    NoSchema { server: String },
    /// The database has no queue.
    #[error(
        "{server} has no pgmq, the queue: install it there as an extension, or use `pip install \"callslip[postgres]\"` here, which brings its SQL"
    )]
    NoQueue { server: String },
    /// The tables have an earlier version.
    #[error("{server} has schema version {found}, this callslip needs {needed}: call `callslip migrate` with its URL")]
    OlderSchema {
        server: String,
        found: i32,
        /// The one of this version.
        needed: i32,
    },
    /// The tables have a later version.
    #[error("{server} has schema version {found}, this callslip knows up to {known}: update callslip here")]
    NewerSchema {
        server: String,
        found: i32,
        /// The last one known.
        known: i32,
    },
    /// A query is wrong.
    #[error("the query can't be run: {0}")]
    Query(String),
}

#[cfg(feature = "postgres")]
impl StoreError {
    /// The same, of the run below the one that it names.
    pub(super) fn of_run(self, run_id: &str) -> Self {
        let run_id = run_id.to_owned();
        match self {
            Self::TakenOver { .. } => Self::TakenOver { run_id },
            Self::NoLease { seconds, .. } => Self::NoLease { run_id, seconds },
            Self::Stuck { seconds, .. } => Self::Stuck { run_id, seconds },
            other => other,
        }
    }
}
