//! What is told to a run at the very moment at which it rests.

use crate::kit::*;
use crate::postgres::{Database, query};
use callslip::store::postgres::{Claimed, Rested, Submit, Told};
use callslip::store::{PostgresStore, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn races() -> usize {
    std::env::var("CALLSLIP_RACES").ok().and_then(|races| races.parse().ok()).unwrap_or(1_000)
}

fn claim(store: &PostgresStore) -> Option<Claimed> {
    let (claimed, _) = store.claim_runs("default", 1, &["agent".into()], &[], false).unwrap();
    claimed.into_iter().next()
}

/// A worker: takes what the run is told, and lets it rest, until it is over.
fn work(store: &Arc<PostgresStore>, told: &AtomicBool) -> usize {
    let (mut taken, mut next) = (0, 0);
    loop {
        let Some(Claimed { run_id, epoch, .. }) = claim(store) else {
            if told.load(Ordering::SeqCst) && store.inbox("r").unwrap().is_empty() {
                return taken;
            }
            continue;
        };
        let claim = store.claim(&run_id, None).unwrap();
        store.let_go(&run_id, epoch);
        loop {
            let messages = store.inbox(&run_id).unwrap();
            let events = if next == 0 { vec![started(&run_id)] } else { vec![resumed()] };
            let ids: Vec<i64> = messages.iter().map(|message| message.id).collect();
            taken += ids.len();
            let with = callslip::store::With { contents: Vec::new(), taken: ids };
            let position = store.append_with(&run_id, records(next, events), with).unwrap();
            next += 1;
            assert!(store.wait(position, LONG).unwrap());
            match store.rest(&[(run_id.clone(), None)]).unwrap()[0] {
                Rested::Rests => break,
                Rested::Told => {}
                Rested::Lost => panic!("nobody else drives it"),
            }
        }
        drop(claim);
    }
}

#[test]
fn no_run_rests_with_something_to_do_and_none_has_two_messages() {
    let database = Database::new();
    let (worker, teller) = (database.open(), database.open());
    let submit = Submit {
        run_id: "r".into(),
        agent: "agent".into(),
        given: "{}".into(),
        queue: "default".into(),
        ..Submit::default()
    };
    teller.submit(&submit).unwrap();
    // No statement may leave a run without a message and with an inbox, or with two messages.
    query(
        database.url(),
        "CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF EXISTS (SELECT FROM callslip.run WHERE msg IS NULL AND id IN (SELECT holder FROM callslip.inbox)) \
         OR (SELECT count(*) > 1 FROM pgmq.q_callslip_default) THEN RAISE 'it rests with something to do'; END IF; \
         RETURN NULL; END $$; \
         CREATE CONSTRAINT TRIGGER look AFTER UPDATE ON callslip.run DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION look()",
    );
    let told = AtomicBool::new(false);
    let count = races();
    thread::scope(|scope| {
        let working = scope.spawn(|| work(&worker, &told));
        for _ in 0..count {
            assert_eq!(teller.tell("r", "say", None, Some("x"), None).unwrap(), Told::Told);
        }
        told.store(true, Ordering::SeqCst);
        assert_eq!(working.join().unwrap(), count);
    });
}
