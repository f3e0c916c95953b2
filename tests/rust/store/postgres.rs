//! Stores in a real database. `make test-rs` starts a server, and says where it is.

use crate::kit::*;
use callslip::run::{Event, Record};
use callslip::store::postgres::{Rested, Submit, Told};
use callslip::store::{
    Claim, Hold, Position, PostgresStore, RunFilter, RunKey, RunRow, Store, StoreError, TicketFilter, TicketRow, Wake,
    With,
};
use callslip::ticket::TicketId;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

/// A database of its own.
pub(crate) struct Database {
    url: String,
}

/// What the tests are told by who starts them.
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: call `make test-rs`, which starts a PostgreSQL"))
}

fn server() -> String {
    variable("CALLSLIP_TEST_POSTGRES")
}

/// A database that is ready, which others are copied from.
static TEMPLATE: LazyLock<String> = LazyLock::new(|| {
    let name = format!("template_{}", std::process::id());
    query(&server(), &format!("CREATE DATABASE {name}"));
    let pgmq = std::fs::read_to_string(variable("CALLSLIP_TEST_PGMQ")).unwrap();
    let done = PostgresStore::migrate(&at(&name), Some(&pgmq)).unwrap();
    assert!(done.before == 0 && done.after > 0 && done.missing_roles.is_empty(), "{done:?}");
    name
});

fn at(database: &str) -> String {
    let server = server();
    let (before, _) = server.rsplit_once('/').unwrap();
    format!("{before}/{database}")
}

pub(crate) fn query(url: &str, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
    });
}

impl Database {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        query(&server(), &format!("CREATE DATABASE {name} TEMPLATE {} STRATEGY file_copy", *TEMPLATE));
        Self { url: at(&name) }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn open(&self) -> Arc<PostgresStore> {
        PostgresStore::open(&self.url).unwrap()
    }

    pub(crate) fn claiming(&self) -> Arc<Claiming> {
        Arc::new(Claiming(self.open()))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let name = self.url.rsplit_once('/').unwrap().1;
        query(&server(), &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
    }
}

/// The store, with a claim for each append that has none: the others need none.
#[derive(Debug)]
pub(crate) struct Claiming(Arc<PostgresStore>);

impl Claiming {
    fn claimed<T>(
        &self,
        run_id: &str,
        act: impl FnOnce(&PostgresStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.0.claim(run_id, None) {
            Ok(_claim) => act(&self.0),
            Err(StoreError::UnderWay { .. }) => act(&self.0),
            Err(error) => Err(error),
        }
    }
}

impl Store for Claiming {
    fn claim(&self, run_id: &str, above: Option<&str>) -> Result<Claim, StoreError> {
        self.0.claim(run_id, above)
    }

    fn claim_key(&self, run_id: &str, key: &RunKey) -> Result<Claim, StoreError> {
        self.0.claim_key(run_id, key)
    }

    fn run_with(&self, key: &RunKey) -> Result<Option<String>, StoreError> {
        self.0.run_with(key)
    }

    fn ticket_with(&self, key: &RunKey) -> Result<Option<(String, TicketId)>, StoreError> {
        self.0.ticket_with(key)
    }

    fn is_claimed(&self, run_id: &str) -> bool {
        self.0.is_claimed(run_id)
    }

    fn append_with(&self, run_id: &str, records: Vec<Arc<Record>>, with: With) -> Result<Position, StoreError> {
        if records.is_empty() {
            return self.0.durable();
        }
        self.claimed(run_id, |store| {
            let position = store.append_with(run_id, records, with)?;
            assert!(store.wait(position, LONG)?);
            Ok(position)
        })
    }

    fn wait(&self, position: Position, timeout: Duration) -> Result<bool, StoreError> {
        self.0.wait(position, timeout)
    }

    fn durable(&self) -> Result<Position, StoreError> {
        self.0.durable()
    }

    fn subscribe(&self, wake: Weak<dyn Wake>) {
        self.0.subscribe(wake);
    }

    fn load(&self, run_id: &str) -> Result<Vec<Arc<Record>>, StoreError> {
        self.0.load(run_id)
    }

    fn exists(&self, run_id: &str) -> Result<bool, StoreError> {
        self.0.exists(run_id)
    }

    fn content(&self, run_id: &str, sha256: &str) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.0.content(run_id, sha256)
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        self.0.runs(filter)
    }

    fn tickets(&self, filter: &TicketFilter) -> Result<Vec<TicketRow>, StoreError> {
        self.0.tickets(filter)
    }

    fn delete(&self, run_ids: &[String]) -> Result<usize, StoreError> {
        self.0.delete(run_ids)
    }

    fn prune(&self, older_than: Option<f64>, keep: Option<usize>) -> Result<usize, StoreError> {
        self.0.prune(older_than, keep)
    }

    fn erase(&self, owner: &str) -> Result<Vec<String>, StoreError> {
        self.0.erase(owner)
    }

    fn compact(&self, run_id: &str, snapshot: Record) -> Result<(), StoreError> {
        self.claimed(run_id, |store| store.compact(run_id, snapshot))
    }

    fn failed(&self) -> Option<String> {
        self.0.failed()
    }

    fn close(&self) -> Result<(), StoreError> {
        self.0.close()
    }
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn write(store: &PostgresStore, run: &str, next: u64, events: impl IntoIterator<Item = Event>) {
    let position = store.append(run, records(next, events)).unwrap();
    assert!(store.wait(position, LONG).unwrap());
}

fn submitted(store: &PostgresStore, run: &str) -> String {
    let submit = Submit {
        run_id: run.into(),
        agent: "agent".into(),
        given: "{}".into(),
        queue: "default".into(),
        ..Submit::default()
    };
    store.submit(&submit).unwrap().unwrap()
}

fn rest(store: &PostgresStore, run: &str) -> Rested {
    store.rest(&[(run.to_owned(), None)]).unwrap()[0]
}

fn claimed(store: &PostgresStore) -> Vec<String> {
    let (claimed, _) = store.claim_runs("default", 10, &["agent".into()], &[], false).unwrap();
    claimed.into_iter().map(|claimed| claimed.run_id).collect()
}

/// The lease of a run ends before its driver lengthens it, and this store claims the run.
fn lapse(database: &Database, store: &PostgresStore, run: &str) {
    eventually("the run is claimed", || {
        query(&database.url, "UPDATE pgmq.q_callslip_default SET vt = clock_timestamp()");
        claimed(store) == [run]
    });
}

#[test]
fn a_database_without_tables_says_what_to_call() {
    let name = format!("empty_{}", std::process::id());
    query(&server(), &format!("CREATE DATABASE {name}"));
    let error = PostgresStore::open(&at(&name)).unwrap_err();
    assert!(matches!(&error, StoreError::NoSchema { .. }) && error.to_string().contains("callslip migrate"), "{error}");
    query(&server(), &format!("DROP DATABASE {name}"));
    let error = PostgresStore::open(&at("not_there")).unwrap_err();
    assert!(error.to_string().contains("not_there"), "{error}");
}

#[test]
fn a_claim_keeps_other_processes_out_until_it_is_dropped() {
    let database = Database::new();
    let (one, other) = (database.open(), database.open());
    let claim = one.claim_new("r", None).unwrap();
    write(&one, "r", 0, [started("r"), asked(1)]);
    let elsewhere = StoreError::Elsewhere { run_id: "r".into() };
    assert_eq!(other.claim("r", None).unwrap_err(), elsewhere);
    assert_eq!(other.delete(&["r".into()]).unwrap_err(), elsewhere);
    assert_eq!(claim.hold(), Hold::Sure);
    drop(claim);
    // Its store gives the lease up by itself, after that.
    let mut claim = None;
    eventually("another process may claim it", || {
        claim = other.claim("r", None).ok();
        claim.is_some()
    });
    write(&other, "r", 2, [replied(1)]);
    drop(claim);
    assert_eq!(one.load("r").unwrap().len(), 3);
}

#[test]
fn a_run_that_another_worker_has_does_not_rest() {
    let database = Database::new();
    let store = database.open();
    submitted(&store, "taken");
    assert_eq!(claimed(&store), ["taken"]);
    let _claim = store.claim("taken", None).unwrap();
    query(&database.url, "UPDATE callslip.run SET epoch = nextval('callslip.epoch')");
    assert_eq!(rest(&store, "taken"), Rested::Lost);
}

/// Each is left: one whose last events are being written, one that was claimed and not opened, and one that is still
/// driven. The lease is an hour.
#[test]
fn a_store_that_is_closed_leaves_all_its_runs_to_others_at_once() {
    let database = Database::new();
    let other = database.open();
    for round in 0..5 {
        let store = database.open();
        store.set_lease(Duration::from_secs(3_600));
        let (written, driven, reserved) = (format!("w{round}"), format!("d{round}"), format!("c{round}"));
        submitted(&other, &reserved);
        assert_eq!(claimed(&store), [reserved.as_str()]);
        let still = store.claim_new(&driven, None).unwrap();
        write(&store, &driven, 0, [started(&driven)]);
        let claim = store.claim_new(&written, None).unwrap();
        store.append(&written, records(0, [started(&written), asked(1)])).unwrap();
        drop(claim);
        store.close().unwrap();
        let mut taken = claimed(&other);
        taken.sort();
        assert_eq!(taken, [reserved, driven, written]);
        drop(still);
    }
}

#[test]
fn whoever_has_lost_a_run_writes_nothing_more_of_it() {
    let database = Database::new();
    let (one, other) = (database.open(), database.open());
    let claim = one.claim_new("r", None).unwrap();
    write(&one, "r", 0, [started("r")]);
    let same_batch = one.claim_new("s", None).unwrap();
    lapse(&database, &other, "r");
    let taken = other.claim("r", None).unwrap();
    let position = one.append("r", records(1, [asked(1)])).unwrap();
    one.append("s", records(0, [started("s")])).unwrap();
    assert!(one.wait(position, LONG).unwrap());
    let lost = StoreError::TakenOver { run_id: "r".into() };
    assert_eq!(claim.hold(), Hold::Lost(lost.clone()));
    assert_eq!(one.append("r", records(2, [asked(2)])).unwrap_err(), lost);
    write(&other, "r", 1, [resumed()]);
    assert_eq!(taken.hold(), Hold::Sure);
    eventually("the others of the batch are written", || other.load("s").is_ok_and(|log| log.len() == 1));
    assert_eq!(other.load("r").unwrap().len(), 2);
    drop(same_batch);
}

#[test]
fn a_lease_is_lengthened_for_as_long_as_it_is_held() {
    let database = Database::new();
    let (one, other) = (database.open(), database.open());
    // Longer than a busy machine keeps the thread that lengthens it waiting.
    one.set_lease(Duration::from_secs(6));
    let claim = one.claim_new("r", None).unwrap();
    write(&one, "r", 0, [started("r")]);
    std::thread::sleep(Duration::from_secs(8));
    assert_eq!(claimed(&other), [""; 0]);
    assert_eq!(claim.hold(), Hold::Sure);
    drop(claim);
    eventually("it can be claimed at once", || claimed(&other) == ["r"]);
}

#[test]
fn a_beat_lengthens_no_lease_that_is_given_up_meanwhile() {
    let database = Database::new();
    let (one, other) = (database.open(), database.open());
    let claim = one.claim_new("r", None).unwrap();
    write(&one, "r", 0, [started("r")]);
    let url = database.url.clone();
    let leaving = std::thread::spawn(move || {
        query(&url, "BEGIN; SELECT callslip.leave(id, epoch) FROM callslip.run; SELECT pg_sleep(1); COMMIT");
    });
    std::thread::sleep(Duration::from_millis(300));
    query(&database.url, "SELECT callslip.beat(array_agg(id), array_agg(epoch), 600) FROM callslip.run");
    leaving.join().unwrap();
    assert_eq!(claimed(&other), ["r"]);
    drop(claim);
}

#[test]
fn a_run_below_another_goes_with_it() {
    let database = Database::new();
    let (one, other) = (database.open(), database.open());
    let root = one.claim_new("r", None).unwrap();
    write(&one, "r", 0, [started("r")]);
    let below = one.claim_new("child", Some("r")).unwrap();
    write(&one, "child", 0, [started_in("child", "r")]);
    let error = other.claim("child", None).unwrap_err();
    assert_eq!(error, StoreError::Below { run_id: "child".into(), holder: "r".into() });
    lapse(&database, &other, "r");
    let _root_there = other.claim("r", None).unwrap();
    let position = one.append("child", records(1, [asked(1)])).unwrap();
    assert!(one.wait(position, LONG).unwrap());
    assert!(matches!(below.hold(), Hold::Lost(StoreError::TakenOver { .. })));
    let below_there = other.claim("child", Some("r")).unwrap();
    write(&other, "child", 1, [resumed()]);
    assert_eq!(other.load("child").unwrap().len(), 2);
    drop((below, below_there, root));
}

#[test]
fn a_run_rests_until_it_is_told_something() {
    let database = Database::new();
    let (one, other) = (database.open(), database.open());
    assert_eq!(submitted(&one, "r"), "r");
    assert_eq!(claimed(&other), ["r"]);
    assert_eq!(claimed(&other), [""; 0]);
    let claim = other.claim("r", None).unwrap();
    write(&other, "r", 0, [started("r"), opened(4)]);
    assert_eq!(one.tell("r", "approve", Some(1), None, None).unwrap(), Told::NotParked);
    write(&other, "r", 2, [approval_checked(4)]);
    let parked = one.tickets(&TicketFilter { parked: Some(true), ..TicketFilter::default() }).unwrap();
    assert_eq!(parked.len(), 1);
    assert_eq!(rest(&other, "r"), Rested::Rests);
    drop(claim);
    assert_eq!(claimed(&one), [""; 0]);
    assert_eq!(one.tell("r", "deny", Some(4), Some("\0 no"), Some("Ann")).unwrap(), Told::Told);
    assert_eq!(one.tell("r", "approve", Some(4), None, None).unwrap(), Told::Decided);
    assert_eq!(one.tell("nobody", "say", None, Some("?"), None).unwrap(), Told::NoRun);
    assert_eq!(claimed(&one), ["r"]);
    let claim = one.claim("r", None).unwrap();
    let waiting = one.inbox("r").unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!(
        (waiting[0].kind.as_str(), waiting[0].body.as_deref(), waiting[0].by.as_deref()),
        ("deny", Some("\0 no"), Some("Ann"))
    );
    assert_eq!(rest(&one, "r"), Rested::Told);
    let with = With { contents: Vec::new(), taken: vec![waiting[0].id] };
    let position = one.append_with("r", records(3, [resumed()]), with).unwrap();
    assert!(one.wait(position, LONG).unwrap());
    assert!(one.inbox("r").unwrap().is_empty());
    assert_eq!(rest(&one, "r"), Rested::Rests);
    drop(claim);
}

#[test]
fn the_same_key_gives_the_same_run() {
    let database = Database::new();
    let store = database.open();
    let submit = |run: &str| Submit {
        run_id: run.into(),
        agent: "agent".into(),
        given: "{}".into(),
        queue: "default".into(),
        key: Some("order-7".into()),
        ..Submit::default()
    };
    assert_eq!(store.submit(&submit("a")).unwrap().as_deref(), Some("a"));
    assert_eq!(store.submit(&submit("b")).unwrap().as_deref(), Some("a"));
    assert_eq!(claimed(&store), ["a"]);
    let full = Submit { backlog: Some(1), key: None, ..submit("c") };
    assert_eq!(store.submit(&full).unwrap(), None);
}

#[test]
fn a_run_that_nobody_here_can_drive_is_left_to_others_at_once() {
    let database = Database::new();
    let store = database.open();
    for run in ["r", "s"] {
        submitted(&store, run);
    }
    for begun_only in [false, true] {
        let (none, given_back) = store.claim_runs("default", 1, &["another".into()], &[], begun_only).unwrap();
        assert_eq!((none.len(), given_back), (0, 0));
    }
    assert_eq!(claimed(&store), ["r", "s"]);
}

#[test]
fn messages_of_runs_that_are_gone_go_too() {
    let database = Database::new();
    let store = database.open();
    submitted(&store, "r");
    query(&database.url, "DELETE FROM callslip.run");
    submitted(&store, "s");
    assert_eq!(claimed(&store), ["s"]);
    query(&database.url, "DO $$ BEGIN ASSERT (SELECT count(*) FROM pgmq.q_callslip_default) = 1; END $$");
}

#[test]
fn at_most_so_many_runs_of_a_tenant_are_driven_at_once() {
    let database = Database::new();
    let store = database.open();
    for run in 0..20 {
        let submit = Submit {
            run_id: format!("r{run}"),
            agent: "agent".into(),
            given: "{}".into(),
            queue: "default".into(),
            tenant: Some("acme".into()),
            limit: Some(3),
            ..Submit::default()
        };
        store.submit(&submit).unwrap();
    }
    submitted(&store, "of another");
    let first = claimed(&store);
    assert_eq!(first.len(), 4);
    assert!(first.contains(&"of another".to_owned()));
    assert_eq!(claimed(&store), [""; 0]);
}

#[test]
fn an_answer_that_is_lost_is_no_second_writing() {
    let database = Database::new();
    let store = database.open();
    let _claim = store.claim_new("r", None).unwrap();
    write(&store, "r", 0, [started("r")]);
    // The server ends the connection of the writer before it answers.
    query(
        &database.url,
        "CREATE SEQUENCE tries; CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF nextval('tries') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NULL; END $$; \
         CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON callslip.event DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION cut()",
    );
    write(&store, "r", 1, [asked(1), replied(1)]);
    assert_eq!(store.load("r").unwrap().len(), 3);
}
