//! Random sequences of all that can be done with a store: the file and the database behave as memory does.

use crate::kit::*;
use callslip::run::{Event, Record, compact};
use callslip::store::{Claim, MemoryStore, RunFilter, RunKey, RunStatus, SqliteStore, Store, StoreError, TicketFilter};
use callslip::ticket::{Outcome, Status, TicketKind};
use proptest::prelude::*;
use std::sync::Arc;

#[derive(Debug, Clone)]
enum Op {
    /// To this run, at its end or so far from it.
    Append {
        run: u8,
        parent: Option<u8>,
        events: Vec<u8>,
        off: u64,
    },
    Delete {
        runs: Vec<u8>,
    },
    Prune {
        older_than: Option<u8>,
        keep: Option<usize>,
    },
    /// With the snapshot of so many of its records, or one put so far behind its end.
    Compact {
        run: u8,
        records: usize,
        off: u64,
    },
    /// Claims a run, or lets go of it.
    Claim {
        run: u8,
    },
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let run = 0..5_u8;
    let off = prop_oneof![9 => Just(0), 1 => 1..3_u64];
    let events = prop::collection::vec(any::<u8>(), 1..8);
    prop_oneof![
        10 => (run.clone(), prop::option::of(run.clone()), events, off.clone())
            .prop_map(|(run, parent, events, off)| Op::Append { run, parent, events, off }),
        1 => prop::collection::vec(run.clone(), 0..3).prop_map(|runs| Op::Delete { runs }),
        1 => (prop::option::of(0..20_u8), prop::option::of(0..5_usize))
            .prop_map(|(older_than, keep)| Op::Prune { older_than, keep }),
        3 => (run.clone(), 1..20_usize, off).prop_map(|(run, records, off)| Op::Compact { run, records, off }),
        1 => run.prop_map(|run| Op::Claim { run }),
        1 => Just(Op::Reopen),
    ]
}

fn outcome(kind: u8) -> Outcome {
    let message = format!("message \"{kind}\"");
    match kind % 6 {
        0 => ok(&large(&(kind % 4).to_string())),
        1 => Outcome::Error { message, transient: false },
        2 => Outcome::Retry { message },
        3 => Outcome::InDoubt { message },
        4 => Outcome::Cancelled,
        _ => ok(&format!("[{kind}, \"\\u00e9\"]")),
    }
}

/// The event that this number stands for; `tickets` is how many the run has.
fn event(kind: u8, tickets: &mut u32) -> Event {
    match kind % 8 {
        0 | 1 => asked(u32::from(kind)),
        2 => replied(u32::from(kind)),
        3 | 4 => {
            *tickets += 1;
            opened(*tickets)
        }
        5 | 6 => completed(u32::from(kind / 8 % 8), outcome(kind / 16)),
        _ if kind >= 192 => finished(),
        _ if kind >= 160 => approved(u32::from(kind / 8 % 8)),
        _ if kind >= 128 => approval_checked(u32::from(kind / 8 % 8)),
        _ if kind >= 96 => attempt_failed(u32::from(kind / 8 % 4), u32::from(kind % 32)),
        _ if kind >= 64 => Event::UserSaid { text: "More.".into(), parts: Vec::new(), key: None },
        _ if kind >= 16 => pending(u32::from(kind / 8 % 8)),
        _ => resumed(),
    }
}

fn filters() -> Vec<RunFilter> {
    vec![
        RunFilter::default(),
        RunFilter { status: Some(RunStatus::Finished), limit: Some(2), ..RunFilter::default() },
        RunFilter { agent: Some("child".into()), parent: Some("r1".into()), ..RunFilter::default() },
        RunFilter { status: Some(RunStatus::Running), since: Some(1000.1), ..RunFilter::default() },
        RunFilter { owner: Some("ann \u{e9}\0".into()), ..RunFilter::default() },
    ]
}

fn ticket_filters() -> Vec<TicketFilter> {
    vec![
        TicketFilter::default(),
        TicketFilter { status: Some(Status::Completed), limit: Some(3), ..TicketFilter::default() },
        TicketFilter { parked: Some(true), ..TicketFilter::default() },
        TicketFilter { owner: Some("ann \u{e9}\0".into()), ..TicketFilter::default() },
        TicketFilter { kind: Some(TicketKind::Task), parked: Some(false), ..TicketFilter::default() },
        TicketFilter { parent: Some("r1".into()), until: Some(1010.0), ..TicketFilter::default() },
        TicketFilter { run: Some("r2".into()), status: Some(Status::InProgress), ..TicketFilter::default() },
    ]
}

/// A store that can be opened again.
trait Kept {
    type Opened: Store + 'static;

    fn open(&self) -> Arc<Self::Opened>;

    /// Checks what only this store has.
    fn check(&self, _: &Self::Opened) {}
}

impl Kept for Folder {
    type Opened = SqliteStore;

    fn open(&self) -> Arc<SqliteStore> {
        sqlite(self)
    }

    fn check(&self, store: &SqliteStore) {
        let stray = "SELECT count(*) FROM blob WHERE NOT EXISTS (SELECT 1 FROM event WHERE blob = blob.key) \
             AND NOT EXISTS (SELECT 1 FROM ticket WHERE blob = blob.key)";
        let stray = store.query(stray, &[]).unwrap();
        assert_eq!(stray.rows, [[callslip::store::sqlite::SqlValue::Integer(0)]]);
    }
}

#[cfg(feature = "postgres")]
impl Kept for crate::postgres::Database {
    type Opened = crate::postgres::Claiming;

    fn open(&self) -> Arc<crate::postgres::Claiming> {
        self.claiming()
    }
}

/// Both stores, and what is claimed in both.
struct Pair<K: Kept> {
    kept: K,
    memory: MemoryStore,
    file: Arc<K::Opened>,
    claims: Vec<[Claim; 2]>,
}

impl<K: Kept> Pair<K> {
    fn new(kept: K) -> Self {
        let file = kept.open();
        Self { kept, memory: MemoryStore::default(), file, claims: Vec::new() }
    }

    /// Does the same with both, and compares what they say.
    fn both<T: PartialEq + std::fmt::Debug>(&self, act: impl Fn(&dyn Store) -> Result<T, StoreError>) -> Option<T> {
        let (memory, file) = (act(&self.memory), act(&*self.file));
        // The one of several claimed runs that is named is anyone's guess.
        if let (Err(StoreError::UnderWay { .. }), Err(StoreError::UnderWay { .. })) = (&memory, &file) {
            return None;
        }
        assert_eq!(memory, file);
        memory.ok()
    }

    fn log(&self, run: &str) -> Vec<Arc<Record>> {
        self.memory.load(run).unwrap_or_default()
    }

    fn act(&mut self, op: &Op) {
        match op {
            Op::Append { run, parent, events, off } => {
                let run = format!("r{run}");
                let next = self.log(&run).last().map_or(0, |last| last.seq + 1);
                let filter = TicketFilter { run: Some(run.clone()), ..TicketFilter::default() };
                let mut tickets = u32::try_from(self.memory.tickets(&filter).unwrap().len()).unwrap();
                let start = parent.map_or_else(|| started(&run), |parent| started_in(&run, &format!("r{parent}")));
                let start = (next == 0).then_some(start);
                let events: Vec<Event> = events.iter().map(|kind| event(*kind, &mut tickets)).collect();
                let records = records(next + off, start.into_iter().chain(events));
                self.both(|store| store.append(&run, records.clone()).map(|_| ()));
            }
            Op::Delete { runs } => {
                let runs: Vec<String> = runs.iter().map(|run| format!("r{run}")).collect();
                self.both(|store| store.delete(&runs));
            }
            Op::Prune { older_than, keep } => {
                let older_than = older_than.map(|seconds| 1000.0 + f64::from(seconds));
                self.both(|store| store.prune(older_than, *keep));
            }
            Op::Compact { run, records, off } => {
                let run = format!("r{run}");
                let log = self.log(&run);
                let Ok(mut snapshot) = compact(log.get(..*records).unwrap_or(&log)) else { return };
                if *off > 0 {
                    snapshot.seq = log.last().map_or(0, |last| last.seq) + off;
                }
                self.both(|store| store.compact(&run, snapshot.clone()));
            }
            Op::Claim { run } => {
                let run = format!("r{run}");
                let claimed = self.claims.len();
                self.claims.retain(|[claim, _]| claim.run_id() != run);
                if self.claims.len() == claimed {
                    self.claims.push([self.memory.claim(&run, None).unwrap(), self.file.claim(&run, None).unwrap()]);
                }
            }
            Op::Reopen => {
                self.claims.clear();
                self.file.close().unwrap();
                self.file = self.kept.open();
            }
        }
    }

    fn assert_same(&self) {
        for run in 0..5 {
            self.both(|store| store.load(&format!("r{run}")).map(|log| texts(&log)));
        }
        for filter in filters() {
            self.both(|store| store.runs(&filter));
        }
        for filter in ticket_filters() {
            self.both(|store| store.tickets(&filter));
        }
        for (ticket, owner) in (0..3).flat_map(|ticket| [(ticket, None), (ticket, Some("ann \u{e9}\0"))]) {
            for agent in ["agent", "child"] {
                let key = answer_key(ticket);
                let key = RunKey { owner: owner.map(str::to_owned), agent: agent.to_owned(), key };
                self.both(|store| store.ticket_with(&key));
            }
        }
        self.kept.check(&self.file);
    }
}

proptest! {
    // An unoptimised `SQLite` takes its time.
    #![proptest_config(ProptestConfig { cases: crate::cases::of(25), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_file_behaves_as_memory_does(ops in prop::collection::vec(op(), 1..30)) {
        try_out(Folder::new(), &ops);
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn the_database_behaves_as_memory_does(ops in prop::collection::vec(op(), 1..30)) {
        try_out(crate::postgres::Database::new(), &ops);
    }
}

fn try_out(kept: impl Kept, ops: &[Op]) {
    let mut pair = Pair::new(kept);
    for op in ops {
        pair.act(op);
        pair.assert_same();
    }
}
