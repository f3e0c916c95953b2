//! When what was appended is durable, and what a failure does.

use crate::kit::*;
use callslip::store::{Durability, SqliteStore, Store, StoreError, Wake};
use rusqlite::Connection;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Weak};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Bell(AtomicU32);

impl Wake for Bell {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn many_appends_become_few_transactions() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file(), Durability::Full).unwrap();
    let (threads, turns) = (50, 10);
    let barrier = Barrier::new(threads);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (store, barrier) = (&store, &barrier);
            scope.spawn(move || {
                let run = format!("r{thread}");
                barrier.wait();
                for turn in 0..turns {
                    let event = if turn == 0 { started(&run) } else { asked(1) };
                    let position = store.append(&run, records(turn, [event])).unwrap();
                    assert!(store.wait(position, LONG).unwrap());
                    assert!(store.durable().unwrap() >= position);
                }
            });
        }
    });
    let appends = threads as u64 * turns;
    assert!(store.commits() * 3 < appends, "{} transactions for {appends} appends", store.commits());
}

#[test]
fn those_who_wait_elsewhere_are_woken() {
    let folder = Folder::new();
    let store = sqlite(&folder);
    let bell = Arc::new(Bell::default());
    let weak: Weak<Bell> = Arc::downgrade(&bell);
    store.subscribe(weak);
    let position = store.append("r", whole("r", "1")).unwrap();
    store.wait(position, LONG).unwrap();
    store.close().unwrap();
    assert_eq!(bell.0.load(Ordering::SeqCst), 1);
}

#[test]
fn without_durability_nothing_is_waited_for_and_closing_writes_it_all() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file(), Durability::Memory).unwrap();
    for run in 0..300 {
        let run = format!("r{run}");
        let position = store.append(&run, whole(&run, "1")).unwrap();
        assert!(store.durable().unwrap() >= position);
        assert!(store.wait(position, Duration::ZERO).unwrap());
    }
    assert_eq!(store.load("r299").unwrap().len(), 8);
    store.append("last", whole("last", "1")).unwrap();
    store.close().unwrap();
    assert_eq!(sqlite(&folder).load("last").unwrap().len(), 8);
}

#[test]
fn a_failure_reaches_all_and_the_store_opens_anew() {
    let folder = Folder::new();
    let store = sqlite(&folder);
    let bell = Arc::new(Bell::default());
    let weak: Weak<Bell> = Arc::downgrade(&bell);
    store.subscribe(weak);
    let position = store.append("r", whole("r", "1")).unwrap();
    assert!(store.wait(position, LONG).unwrap());
    let fault = Connection::open(folder.file()).unwrap();
    let trigger = "CREATE TRIGGER fault BEFORE INSERT ON event BEGIN SELECT RAISE(ABORT, 'no luck'); END";
    fault.execute_batch(trigger).unwrap();
    let waiting: Vec<_> = (0..4)
        .map(|run| {
            let (store, run) = (Arc::clone(&store), format!("s{run}"));
            thread::spawn(move || store.append(&run, whole(&run, "1")).and_then(|at| store.wait(at, LONG)))
        })
        .collect();
    for waiting in waiting {
        let error = waiting.join().unwrap().unwrap_err();
        assert!(matches!(&error, StoreError::Failed(reason) if reason.contains("no luck")), "{error}");
    }
    let reason = store.failed().unwrap();
    assert!(reason.contains("runs.sqlite") && reason.contains("open the store again"), "{reason}");
    // The bell rings after those who wait in threads are told.
    let rings = Instant::now();
    while bell.0.load(Ordering::SeqCst) < 2 {
        assert!(rings.elapsed() < LONG);
        thread::yield_now();
    }
    let failed = StoreError::Failed(reason);
    assert!(store.wait(position, LONG).unwrap());
    assert_eq!(store.durable().unwrap_err(), failed);
    assert_eq!(store.append("r", records(8, [resumed()])).unwrap_err(), failed);
    assert_eq!(store.load("r").unwrap_err(), failed);
    assert_eq!(store.delete(&["r".into()]).unwrap_err(), failed);
    fault.execute_batch("DROP TRIGGER fault").unwrap();
    drop(fault);
    let again = sqlite(&folder);
    assert_eq!(store.close().unwrap_err(), failed);
    assert_eq!(texts(&again.load("r").unwrap()), texts(&whole("r", "1")));
    assert!(matches!(again.load("s0"), Err(StoreError::NoSuchRun { .. })));
    again.append("s0", whole("s0", "1")).unwrap();
}
