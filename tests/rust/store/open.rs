//! Which files can be opened, and by whom.

use crate::kit::*;
use callslip::store::{Durability, RunFilter, SqliteStore, Store, StoreError, TicketFilter};
use rusqlite::Connection;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

fn refused(path: impl AsRef<Path>) -> StoreError {
    SqliteStore::open(path, Durability::Full).unwrap_err()
}

/// Whether nothing but this file is in its folder, with these bytes.
fn assert_untouched(path: &Path, bytes: &[u8]) {
    assert!(fs::read(path).unwrap() == bytes);
    let beside = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(beside.collect::<Vec<_>>(), [path.file_name().unwrap()]);
}

#[test]
fn a_folder_and_a_missing_one_are_told_apart() {
    let folder = Folder::new();
    assert!(matches!(refused(folder.path()), StoreError::Folder { .. }));
    let missing = folder.path().join("no");
    assert_eq!(refused(missing.join("runs.sqlite")), StoreError::NoFolder { folder: missing });
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let folder = Folder::new();
    let bytes = b"dear diary, this is more than sixteen bytes";
    fs::write(folder.file(), bytes).unwrap();
    assert!(matches!(refused(folder.file()), StoreError::NoDatabase { .. }));
    assert_untouched(&folder.file(), bytes);
    let bytes = [&b"SQLite format 3\0"[..], &[7; 4000]].concat();
    fs::write(folder.file(), &bytes).unwrap();
    assert!(matches!(refused(folder.file()), StoreError::NoDatabase { .. }));
    assert_untouched(&folder.file(), &bytes);
}

#[test]
fn the_database_of_another_program_is_left_as_it_is() {
    for application_id in [0, 42] {
        let folder = Folder::new();
        let other = Connection::open(folder.file()).unwrap();
        other.pragma_update(None, "application_id", application_id).unwrap();
        other.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE bills (due)").unwrap();
        other.close().unwrap();
        let bytes = fs::read(folder.file()).unwrap();
        assert_eq!(refused(folder.file()), StoreError::Foreign { path: folder.file(), application_id });
        assert_untouched(&folder.file(), &bytes);
    }
}

#[test]
fn an_empty_database_becomes_a_store() {
    let folder = Folder::new();
    File::create(folder.file()).unwrap();
    sqlite(&folder).close().unwrap();
    let folder = Folder::new();
    Connection::open(folder.file()).unwrap().execute_batch("CREATE TABLE t (x); DROP TABLE t").unwrap();
    sqlite(&folder).append("r", whole("r", "1")).unwrap();
}

#[test]
fn a_newer_file_is_left_as_it_is() {
    let folder = Folder::new();
    sqlite(&folder).close().unwrap();
    fs::remove_file(folder.path().join("runs.sqlite.lock")).unwrap();
    Connection::open(folder.file()).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let bytes = fs::read(folder.file()).unwrap();
    let StoreError::Newer { found: 99, known, .. } = refused(folder.file()) else { panic!("another error") };
    assert!(known < 99);
    assert_untouched(&folder.file(), &bytes);
}

#[test]
fn a_file_made_by_version_1_opens_with_all_that_is_in_it() {
    let folder = Folder::new();
    let old = Connection::open(folder.file()).unwrap();
    old.execute_batch(include_str!("../../data/store/version_1.sql")).unwrap();
    old.close().unwrap();
    let store = sqlite(&folder);
    let log = store.load("r").unwrap();
    assert_eq!(texts(&log), include_str!("../../data/store/version_1.jsonl").lines().collect::<Vec<_>>());
    assert_eq!(store.runs(&RunFilter::default()).unwrap()[0].turns, 2);
    assert_eq!(store.tickets(&TicketFilter::default()).unwrap()[0].text, Some(large("1")));
    store.append("r", records(8, [resumed()])).unwrap();
    assert_eq!(store.load("r").unwrap().len(), 9);
}

#[test]
fn a_damaged_page_is_told_with_its_file() {
    let folder = Folder::new();
    let store = sqlite(&folder);
    for run in 0..200 {
        store.append(&format!("r{run}"), whole(&format!("r{run}"), "1")).unwrap();
    }
    store.close().unwrap();
    let mut bytes = fs::read(folder.file()).unwrap();
    bytes[4096..].fill(0x5a);
    fs::write(folder.file(), bytes).unwrap();
    let error = match SqliteStore::open(folder.file(), Durability::Full) {
        Err(error) => error,
        Ok(store) => store.load("r7").unwrap_err(),
    };
    assert!(error.to_string().contains("runs.sqlite"), "{error}");
}

#[test]
#[cfg(unix)]
fn what_is_read_only_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    sqlite(&folder).close().unwrap();
    fs::set_permissions(folder.file(), Permissions::from_mode(0o444)).unwrap();
    let read_only = |path: &Path| StoreError::ReadOnly { path: path.to_owned(), cause: String::new() };
    assert_eq!(refused(folder.file()), read_only(&folder.file()));
    fs::set_permissions(folder.file(), Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o555)).unwrap();
    let error = refused(folder.file());
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(error, read_only(folder.path()));
}

#[test]
fn one_file_is_one_store_in_a_process() {
    let folder = Folder::new();
    let store = sqlite(&folder);
    let link = folder.path().join("link.sqlite");
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.file(), &link).unwrap();
    #[cfg(not(unix))]
    let link = folder.file();
    assert!(Arc::ptr_eq(&store, &SqliteStore::open(link, Durability::Normal).unwrap()));
    let (open, asked) = ("normal", "full");
    assert_eq!(refused(folder.file()), StoreError::OtherDurability { path: folder.file(), open, asked });
    store.append("r", whole("r", "1")).unwrap();
    store.close().unwrap();
    let again = SqliteStore::open(folder.file(), Durability::Full).unwrap();
    assert!(!Arc::ptr_eq(&store, &again));
    assert_eq!(again.load("r").unwrap().len(), 8);
}

#[test]
#[cfg(unix)]
fn a_file_that_was_deleted_under_its_store_is_told() {
    let folder = Folder::new();
    let store = sqlite(&folder);
    fs::remove_file(folder.file()).unwrap();
    let error = SqliteStore::open(folder.file(), Durability::Normal).unwrap_err();
    assert!(error.to_string().contains("close that store first"), "{error}");
    File::create(folder.file()).unwrap();
    assert_eq!(SqliteStore::open(folder.file(), Durability::Normal).unwrap_err(), error);
    store.close().unwrap();
    sqlite(&folder);
}

#[test]
fn a_store_that_drops_lets_go_of_its_file() {
    let folder = Folder::new();
    for turn in 0..20 {
        let store = sqlite(&folder);
        store.append("r", records(turn, [if turn == 0 { started("r") } else { asked(1) }])).unwrap();
        std::thread::spawn(move || drop(store));
    }
    let store = sqlite(&folder);
    assert_eq!(store.load("r").unwrap().len(), 20);
    store.close().unwrap();
    assert!(!folder.path().join("runs.sqlite-wal").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_this_process_has_open_by_other_means_is_refused() {
    let folder = Folder::new();
    sqlite(&folder).close().unwrap();
    let held = File::open(folder.file()).unwrap();
    assert_eq!(refused(folder.file()), StoreError::HeldOpen { path: folder.file() });
    drop(held);
    sqlite(&folder);
}

const ROLE: &str = "CALLSLIP_TEST_ROLE";
const FILE: &str = "CALLSLIP_TEST_FILE";

/// A process of its own that plays a role, until this drops.
struct Other {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Other {
    fn new(role: &str, folder: &Folder) -> Self {
        Self::from(Command::new(std::env::current_exe().unwrap()), role, folder)
    }

    fn from(mut command: Command, role: &str, folder: &Folder) -> Self {
        command.args(["--exact", "open::what_other_processes_do", "--nocapture"]);
        command.env(ROLE, role).env(FILE, folder.file());
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    /// The next thing it says.
    fn said(&mut self) -> String {
        let mut lines = self.output.by_ref().lines().map_while(Result::ok);
        lines.find_map(|line| Some(line.split_once("said: ")?.1.to_owned())).unwrap_or_default()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.output.read_to_string(&mut String::new());
        let _ = self.process.wait();
    }
}

fn say(what: impl std::fmt::Display) {
    println!("said: {what}");
    std::io::stdout().flush().unwrap();
}

#[test]
fn what_other_processes_do() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let file = std::env::var_os(FILE).unwrap();
    match &*role {
        "open" => match SqliteStore::open(file, Durability::Full) {
            Ok(_) => say("opened"),
            Err(error) => say(error),
        },
        "own" => {
            let store = SqliteStore::open(file, Durability::Full).unwrap();
            let position = store.append("r", whole("r", &large("1"))).unwrap();
            assert!(store.wait(position, LONG).unwrap());
            say("ready");
            let _ = std::io::stdin().read_line(&mut String::new());
        }
        "read" => {
            let reader = Connection::open(file).unwrap();
            let count: i64 = reader.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
            say(count);
        }
        "fill" => {
            let store = SqliteStore::open(file, Durability::Full).unwrap();
            let (mut next, mut durable) = (0, 0);
            let error = loop {
                let event = if next == 0 { started("r") } else { completed(1, ok(&large(&next.to_string()))) };
                next += 1;
                match store.append("r", records(next - 1, [event])).and_then(|position| store.wait(position, LONG)) {
                    Ok(_) => durable = next,
                    Err(error) => break error,
                }
            };
            assert_eq!(store.failed(), Some(error.to_string()));
            assert_eq!(store.append("s", whole("s", "1")).unwrap_err(), error);
            say(format!("{durable} {error}"));
        }
        _ => panic!("no such role"),
    }
}

#[test]
fn another_process_is_told_who_owns_the_file() {
    let folder = Folder::new();
    let store = sqlite(&folder);
    let told = Other::new("open", &folder).said();
    assert!(told.contains(&format!("belongs to process {} (store-", std::process::id())), "{told}");
    assert!(told.contains(" UTC"), "{told}");
    store.append("r", whole("r", "1")).unwrap();
    store.close().unwrap();
    assert_eq!(Other::new("open", &folder).said(), "opened");
}

#[test]
fn another_process_may_read_meanwhile() {
    let folder = Folder::new();
    let store = sqlite(&folder);
    store.append("r", whole("r", "1")).unwrap();
    store.load("r").unwrap();
    assert_eq!(Other::new("read", &folder).said(), "8");
    store.append("r", records(8, [resumed()])).unwrap();
    assert_eq!(store.load("r").unwrap().len(), 9);
    assert_eq!(Other::new("read", &folder).said(), "9");
    assert!(Other::new("open", &folder).said().contains("belongs to process"));
}

#[test]
fn what_a_killed_process_made_durable_is_there_at_once() {
    let folder = Folder::new();
    let mut owner = Other::new("own", &folder);
    assert_eq!(owner.said(), "ready");
    assert!(matches!(refused(folder.file()), StoreError::Owned { pid, .. } if pid == owner.process.id().to_string()));
    owner.process.kill().unwrap();
    owner.process.wait().unwrap();
    assert_eq!(texts(&sqlite(&folder).load("r").unwrap()), texts(&whole("r", &large("1"))));
}

#[test]
#[cfg(unix)]
fn a_file_that_can_grow_no_further_stops_the_store_and_loses_nothing_durable() {
    let folder = Folder::new();
    let mut command = Command::new("sh");
    // The signal ignored, the write itself fails.
    command.args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    let told = Other::from(command, "fill", &folder).said();
    let (durable, error) = told.split_once(' ').unwrap();
    assert!(error.contains("runs.sqlite failed") && error.contains("free space"), "{error}");
    let durable: usize = durable.parse().unwrap();
    assert!(durable > 10);
    let log = sqlite(&folder).load("r").unwrap();
    assert!(log.len() >= durable);
}
