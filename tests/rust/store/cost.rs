//! What the file costs; `cargo test --release --test store cost -- --ignored --nocapture` says it.

use crate::kit::*;
use callslip::run::{Event, Record};
use callslip::store::{Durability, RunFilter, SqliteStore, Store, TicketFilter};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Processor seconds of this process so far, where the system tells.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat.rsplit(") ").next().unwrap().split(' ').skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// A turn's two commits: the reply and what it asks for, then what came of it.
fn turn(run: &str, number: u32, next: u64) -> [Vec<Arc<Record>>; 2] {
    let started = (number == 0).then(|| started(run));
    let reply: [Event; 2] = [replied(number), opened(number + 1)];
    let first = records(next, started.into_iter().chain(reply));
    let second = records(next + first.len() as u64, [completed(number + 1, ok("\"3 apples\"")), asked(number + 2)]);
    [first, second]
}

fn measure(runs: u32, turns: u32, durability: Durability) {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file(), durability).unwrap();
    let (begin, cpu) = (Instant::now(), processor());
    thread::scope(|scope| {
        for run in 0..runs {
            let store = &store;
            scope.spawn(move || {
                let run = format!("r{run}");
                let mut next = 0;
                for number in 0..turns {
                    for records in turn(&run, number, next) {
                        next += records.len() as u64;
                        let position = store.append(&run, records).unwrap();
                        assert!(store.wait(position, LONG).unwrap());
                    }
                }
            });
        }
    });
    store.close().unwrap();
    let (seconds, cpu) = (begin.elapsed().as_secs_f64(), processor() - cpu);
    let (turns, commits) = (f64::from(runs * turns), store.commits());
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let appends_a_sync = turns * 2.0 / commits as f64;
    println!(
        "{runs:5} runs, {durability:?}: {:8.0} turns/s, {appends_a_sync:6.1} appends a transaction, \
         {:6.1} us of processor a record",
        turns / seconds,
        cpu * 1e6 / (turns * 4.0),
    );
}

#[test]
#[ignore = "it measures"]
fn cost() {
    for durability in [Durability::Full, Durability::Normal] {
        measure(1, 2000, durability);
        measure(10, 500, durability);
        measure(100, 300, durability);
        measure(1000, 50, durability);
    }
    measure(100, 300, Durability::Memory);
}

#[test]
#[ignore = "it measures"]
fn cost_with_many_runs() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file(), Durability::Memory).unwrap();
    for part in 0..5 {
        let (begin, cpu) = (Instant::now(), processor());
        for run in 0..20_000 {
            let run = format!("r{part}-{run}");
            store.append(&run, whole(&run, "1")).unwrap();
        }
        store.load("r0-0").unwrap();
        let (seconds, cpu) = (begin.elapsed().as_secs_f64(), processor() - cpu);
        let listing = Instant::now();
        let filter = RunFilter { limit: Some(50), ..RunFilter::default() };
        assert_eq!(store.runs(&filter).unwrap().len(), 50);
        let runs = listing.elapsed();
        let listing = Instant::now();
        let filter = TicketFilter { limit: Some(50), ..TicketFilter::default() };
        assert_eq!(store.tickets(&filter).unwrap().len(), 50);
        println!(
            "{:6} runs in the file: {:6.0} a second, {:5.1} us of processor a record; 50 runs listed in {runs:?}, 50 \
             tickets in {:?}; {} bytes a run",
            (part + 1) * 20_000,
            20_000.0 / seconds,
            cpu * 1e6 / 160_000.0,
            listing.elapsed(),
            std::fs::metadata(folder.file()).unwrap().len() / ((part + 1) * 20_000),
        );
    }
    let deleting = Instant::now();
    let deleted = store.prune(None, Some(1000)).unwrap();
    println!("{deleted} runs pruned in {:?}", deleting.elapsed());
}
