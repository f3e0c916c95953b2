//! What is kept: records, rows, blobs.

use crate::kit::*;
use callslip::run::{Event, Record, StopReason, compact};
use callslip::store::sqlite::SqlValue;
use callslip::store::{Durability, RunFilter, RunStatus, SqliteStore, Store, StoreError, TicketFilter};
use callslip::ticket::{Outcome, Status, TicketId, TicketKind};
use std::sync::Arc;

fn count(store: &SqliteStore, table: &str) -> i64 {
    match store.query(&format!("SELECT count(*) FROM {table}"), &[]).unwrap().rows[0][0] {
        SqlValue::Integer(count) => count,
        _ => panic!("no number"),
    }
}

fn every_outcome() -> Vec<Event> {
    let mut events = vec![started("r"), asked(1), replied(1)];
    let message = || "no \"such\" city".to_owned();
    let outcomes = [
        ok("3"),
        ok(&large("a")),
        ok("{\"spaced\" : [1, 2] , \"twice\": 1, \"twice\": 1.00}"),
        Outcome::Error { message: message(), transient: false },
        Outcome::Retry { message: message() },
        Outcome::InDoubt { message: message() },
        Outcome::Cancelled,
    ];
    for (ticket, outcome) in (1..).zip(outcomes) {
        events.extend([opened(ticket), completed(ticket, outcome)]);
    }
    events.extend([opened(8), resumed(), finished()]);
    events
}

#[test]
fn records_come_back_byte_for_byte() {
    with_each(|store| {
        let appended = records(0, every_outcome());
        let (head, tail) = appended.split_at(6);
        // A database also commits that a claim ends: none ends here before its position is compared.
        let _claim = store.claim("r", None).unwrap();
        store.append("r", head.to_vec()).unwrap();
        let position = store.append("r", tail.to_vec()).unwrap();
        assert!(store.wait(position, LONG).unwrap());
        assert_eq!(store.durable().unwrap(), position);
        assert_eq!(texts(&store.load("r").unwrap()), texts(&appended));
        assert_eq!(store.load("s").unwrap_err(), StoreError::NoSuchRun { run_id: "s".into() });
    });
}

#[test]
fn records_come_back_after_the_file_is_opened_again() {
    let folder = Folder::new();
    let appended = records(0, every_outcome());
    let store = sqlite(&folder);
    store.append("r", appended.clone()).unwrap();
    store.close().unwrap();
    store.close().unwrap();
    assert_eq!(store.load("r").unwrap_err(), StoreError::Closed);
    assert_eq!(store.append("r", records(0, [asked(1)])).unwrap_err(), StoreError::Closed);
    let store = sqlite(&folder);
    assert_eq!(texts(&store.load("r").unwrap()), texts(&appended));
    let next = appended.len() as u64;
    let conflict = StoreError::Conflict { run_id: "r".into(), expected: next, got: 3 };
    assert_eq!(store.append("r", records(3, [asked(2)])).unwrap_err(), conflict);
    store.append("r", records(next, [resumed()])).unwrap();
    assert_eq!(store.load("r").unwrap().len() as u64, next + 1);
    let row = store.runs(&RunFilter::default()).unwrap().remove(0);
    assert_eq!((row.status(), row.turns, row.input_tokens, row.cost), (RunStatus::Running, 1, 100, 0.25));
}

#[test]
fn a_record_that_is_not_the_next_one_is_refused_with_all_that_came_with_it() {
    with_each(|store| {
        let conflict = |expected, got| StoreError::Conflict { run_id: "r".into(), expected, got };
        assert_eq!(store.append("r", records(1, [asked(1)])).unwrap_err(), conflict(0, 1));
        assert_eq!(store.load("r").unwrap_err(), StoreError::NoSuchRun { run_id: "r".into() });
        store.append("r", records(0, [started("r"), asked(1)])).unwrap();
        assert_eq!(store.append("r", records(0, [started("r")])).unwrap_err(), conflict(2, 0));
        let gap = records(2, [asked(2)]).into_iter().chain(records(4, [asked(3)])).collect();
        assert_eq!(store.append("r", gap).unwrap_err(), conflict(3, 4));
        assert_eq!(store.load("r").unwrap().len(), 2);
        store.append("r", Vec::new()).unwrap();
    });
}

#[test]
fn the_place_of_a_run_is_known_however_many_came_after_it() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file(), Durability::Memory).unwrap();
    for run in 0..10_050 {
        let run = format!("r{run}");
        store.append(&run, records(0, [started(&run)])).unwrap();
    }
    store.append("r0", records(1, [asked(1)])).unwrap();
    let conflict = StoreError::Conflict { run_id: "r1".into(), expected: 1, got: 0 };
    assert_eq!(store.append("r1", records(0, [started("r1")])).unwrap_err(), conflict);
    assert_eq!(store.load("r0").unwrap().len(), 2);
}

#[test]
fn a_record_that_was_tampered_with_is_named() {
    let folder = Folder::new();
    let store = sqlite(&folder);
    store.append("r", whole("r", "1")).unwrap();
    store.append("s", whole("s", "1")).unwrap();
    store.load("r").unwrap();
    let tamper = rusqlite::Connection::open(folder.file()).unwrap();
    for change in ["data = '{}'", "kind = 'danced'", "data = data || '}'"] {
        tamper.execute(&format!("UPDATE event SET {change} WHERE run = 1 AND seq = 2"), []).unwrap();
        let error = store.load("r").unwrap_err();
        assert!(matches!(&error, StoreError::Unreadable { run_id, seq: 2, .. } if run_id == "r"), "{error}");
    }
    assert_eq!(store.load("s").unwrap().len(), 8);
}

#[test]
fn one_driver_a_run() {
    with_each(|store| {
        let claim = store.claim("r", None).unwrap();
        assert_eq!(claim.run_id(), "r");
        assert_eq!(store.claim("r", None).unwrap_err(), StoreError::UnderWay { run_id: "r".into() });
        let _other = store.claim("s", None).unwrap();
        drop(claim);
        store.claim("r", None).unwrap();
    });
}

#[test]
fn runs_and_tickets_are_listed_newest_first() {
    with_each(|store| {
        store.append("a", whole("a", "1")).unwrap();
        store.append("b", records(0, [started_in("b", "a"), asked(1), replied(1), opened(1)])).unwrap();
        store.append("c", records(100, []).into_iter().chain(records(0, [started("c")])).collect()).unwrap();
        let ids = |filter: RunFilter| -> Vec<String> {
            store.runs(&filter).unwrap().into_iter().map(|row| row.run_id).collect()
        };
        assert_eq!(ids(RunFilter::default()), ["c", "b", "a"]);
        assert_eq!(ids(RunFilter { limit: Some(2), ..RunFilter::default() }), ["c", "b"]);
        assert_eq!(ids(RunFilter { status: Some(RunStatus::Finished), ..RunFilter::default() }), ["a"]);
        assert_eq!(ids(RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() }), ["c", "b"]);
        assert_eq!(ids(RunFilter { agent: Some("child".into()), ..RunFilter::default() }), ["b"]);
        assert_eq!(ids(RunFilter { parent: Some("a".into()), ..RunFilter::default() }), ["b"]);
        assert_eq!(ids(RunFilter { since: Some(1000.1), until: Some(1000.2), ..RunFilter::default() }).len(), 3);
        assert_eq!(ids(RunFilter { until: Some(1000.1), ..RunFilter::default() }).len(), 0);

        let row = store.runs(&RunFilter::default()).unwrap().pop().unwrap();
        assert_eq!((&*row.agent, &*row.protocol, row.parent), ("agent", "react", None));
        assert_eq!(row.task, "Say \"setup\":null and \u{1F600}");
        assert_eq!((row.turns, row.input_tokens, row.output_tokens, row.cost), (2, 200, 20, 0.5));
        assert_eq!(row.cached_tokens, 2);
        assert_eq!((row.stop_reason, row.error), (Some(StopReason::Finished), None));
        assert_eq!((row.started_at, row.updated_at, row.finished_at), (1000.1, 1007.1, Some(1007.1)));

        let tickets = |filter: TicketFilter| -> Vec<(String, TicketId)> {
            store.tickets(&filter).unwrap().into_iter().map(|row| (row.run_id, row.ticket)).collect()
        };
        let (a, b) = (("a".to_owned(), TicketId(1)), ("b".to_owned(), TicketId(1)));
        assert_eq!(tickets(TicketFilter::default()), [&b, &a].map(Clone::clone));
        assert_eq!(
            tickets(TicketFilter { run: Some("a".into()), ..TicketFilter::default() }),
            std::slice::from_ref(&a)
        );
        assert_eq!(
            tickets(TicketFilter { parent: Some("a".into()), ..TicketFilter::default() }),
            std::slice::from_ref(&b)
        );
        assert_eq!(tickets(TicketFilter { status: Some(Status::Completed), ..TicketFilter::default() }), [a]);
        assert_eq!(tickets(TicketFilter { status: Some(Status::InProgress), ..TicketFilter::default() }), [b]);
        assert_eq!(tickets(TicketFilter { kind: Some(TicketKind::ToolCall), ..TicketFilter::default() }).len(), 2);
        assert_eq!(tickets(TicketFilter { since: Some(1004.0), ..TicketFilter::default() }).len(), 0);
        assert_eq!(tickets(TicketFilter { limit: Some(1), ..TicketFilter::default() }).len(), 1);
    });
}

#[test]
fn tickets_are_listed_with_whole_results() {
    with_each(|store| {
        store.append("r", records(0, every_outcome())).unwrap();
        let rows = store.tickets(&TicketFilter::default()).unwrap();
        let outcomes: Vec<_> = rows.iter().rev().map(|row| row.outcome.as_deref().unwrap_or("none")).collect();
        assert_eq!(outcomes, ["ok", "ok", "ok", "error", "retry", "in_doubt", "cancelled", "none"]);
        assert_eq!(rows[6].text, Some(large("a")));
        assert_eq!(rows[5].text.as_deref(), Some("{\"spaced\" : [1, 2] , \"twice\": 1, \"twice\": 1.00}"));
        assert_eq!(rows[4].text.as_deref(), Some("no \"such\" city"));
        assert_eq!(rows[4].arguments.as_deref(), Some(r#"{"a":1.0,"b":"x\u0001y","c":[1e300]}"#));
        assert_eq!(rows[4].call_id.as_deref(), Some("call 4"));
    });
}

#[test]
fn plain_sql_sees_the_same_in_the_views() {
    let folder = Folder::new();
    let store = sqlite(&folder);
    store.append("r", records(0, every_outcome())).unwrap();
    let rows = store.runs(&RunFilter::default()).unwrap();
    let table = store.query("SELECT * FROM runs WHERE run_id = ?", &[SqlValue::Text("r".into())]).unwrap();
    assert_eq!(table.columns[..5], ["run_id", "agent", "protocol", "task", "parent_run"]);
    assert_eq!(table.rows[0][3], SqlValue::Text(rows[0].task.clone()));
    let table = store.query("SELECT result, error FROM tickets ORDER BY opened_at DESC", &[]).unwrap();
    for (row, ticket) in table.rows.iter().zip(store.tickets(&TicketFilter::default()).unwrap()) {
        let text =
            row.iter().find_map(|value| if let SqlValue::Text(text) = value { Some(text.clone()) } else { None });
        let plain = |text: String| if ticket.outcome.as_deref() == Some("ok") { text.replace(' ', "") } else { text };
        assert_eq!(text.map(plain), ticket.text.clone().map(plain));
    }
    let events = store.query("SELECT json_set('{}', '$.' || kind, json(data)) FROM events ORDER BY seq", &[]).unwrap();
    for (row, record) in events.rows.iter().zip(store.load("r").unwrap()) {
        let SqlValue::Text(text) = &row[0] else { panic!("no text") };
        let event: Event = serde_json::from_str(text).unwrap();
        let plain = |event: &Event| serde_json::to_string(event).unwrap().replace(' ', "");
        assert_eq!(plain(&event), plain(&record.event));
    }
    for wrong in ["DELETE FROM event", "SELEC", "SELECT ?", "ATTACH 'x.sqlite' AS x"] {
        assert!(matches!(store.query(wrong, &[]), Err(StoreError::Query(_))), "{wrong}");
    }
}

#[test]
fn setups_and_large_results_are_kept_once_and_go_with_the_last_that_uses_them() {
    let folder = Folder::new();
    let store = sqlite(&folder);
    for run in ["a", "b", "c"] {
        store.append(run, whole(run, &large(if run == "c" { "c" } else { "ab" }))).unwrap();
    }
    let small = whole("d", "\"small\"");
    store.append("d", small).unwrap();
    assert_eq!(count(&store, "blob"), 3);
    assert_eq!(store.delete(&["a".into()]).unwrap(), 1);
    assert_eq!(count(&store, "blob"), 3);
    assert_eq!(store.delete(&["b".into(), "c".into(), "x".into()]).unwrap(), 2);
    assert_eq!(count(&store, "blob"), 1);
    // The setup's blob goes and comes again, so that what the writer remembers of it must go too.
    assert_eq!(store.delete(&["d".into()]).unwrap(), 1);
    for table in ["blob", "event", "ticket", "run"] {
        assert_eq!(count(&store, table), 0, "{table}");
    }
    store.append("e", whole("e", "1")).unwrap();
    assert_eq!(texts(&store.load("e").unwrap()), texts(&whole("e", "1")));
}

#[test]
fn runs_go_with_all_that_was_started_in_them() {
    with_each(|store| {
        store.append("a", whole("a", "1")).unwrap();
        store.append("b", records(0, [started_in("b", "a")])).unwrap();
        store.append("c", records(0, [started_in("c", "b")])).unwrap();
        store.append("d", whole("d", "1")).unwrap();
        let claim = store.claim("c", None).unwrap();
        assert_eq!(store.delete(&["a".into()]).unwrap_err(), StoreError::UnderWay { run_id: "c".into() });
        assert_eq!(store.runs(&RunFilter::default()).unwrap().len(), 4);
        drop(claim);
        assert_eq!(store.delete(&["a".into(), "b".into()]).unwrap(), 3);
        assert_eq!(store.runs(&RunFilter::default()).unwrap().len(), 1);
        store.append("a", whole("a", "2")).unwrap();
        assert_eq!(texts(&store.load("a").unwrap()), texts(&whole("a", "2")));
    });
}

#[test]
fn finished_trees_are_pruned_by_age_and_number() {
    with_each(|store| {
        for run in ["a", "b", "c"] {
            store.append(run, whole(run, "1")).unwrap();
        }
        store.append("child", records(0, [started_in("child", "a")])).unwrap();
        store.append("open", records(0, [started("open")])).unwrap();
        assert_eq!(store.prune(None, None).unwrap(), 0);
        assert_eq!(store.prune(Some(1007.1), None).unwrap(), 0);
        assert_eq!(store.prune(Some(1008.0), Some(4)).unwrap(), 0);
        let claim = store.claim("child", None).unwrap();
        assert_eq!(store.prune(None, Some(3)).unwrap(), 0);
        drop(claim);
        assert_eq!(store.prune(None, Some(3)).unwrap(), 2);
        assert_eq!(store.prune(Some(1008.0), Some(0)).unwrap(), 2);
        let left = store.runs(&RunFilter::default()).unwrap();
        assert_eq!(left.iter().map(|row| &*row.run_id).collect::<Vec<_>>(), ["open"]);
    });
}

#[test]
fn a_snapshot_takes_the_place_of_what_came_before_it() {
    with_each(|store| {
        let mut events = every_outcome();
        events.truncate(12);
        let before = records(0, events);
        store.append("r", before.clone()).unwrap();
        let listed = store.tickets(&TicketFilter::default()).unwrap();
        let runs = store.runs(&RunFilter::default()).unwrap();
        let snapshot = compact(&before[..9]).unwrap();
        assert_eq!(store.compact("x", snapshot.clone()).unwrap_err(), StoreError::NoSuchRun { run_id: "x".into() });
        let early = Record { seq: 12, ..snapshot.clone() };
        let conflict = |expected, got| StoreError::Conflict { run_id: "r".into(), expected, got };
        assert_eq!(store.compact("r", early).unwrap_err(), conflict(11, 12));
        for _ in 0..2 {
            store.compact("r", snapshot.clone()).unwrap();
            let kept: Vec<Arc<Record>> =
                [Arc::new(snapshot.clone())].into_iter().chain(before[9..].iter().cloned()).collect();
            assert_eq!(texts(&store.load("r").unwrap()), texts(&kept));
            assert_eq!(store.tickets(&TicketFilter::default()).unwrap(), listed);
            assert_eq!(store.runs(&RunFilter::default()).unwrap(), runs);
        }
        let older = Record { seq: 7, ..snapshot.clone() };
        assert_eq!(store.compact("r", older).unwrap_err(), conflict(8, 7));
        store.append("r", records(12, [completed(5, ok("5"))])).unwrap();
        let all = store.load("r").unwrap();
        store.compact("r", compact(&all).unwrap()).unwrap();
        assert_eq!(store.load("r").unwrap().len(), 1);
        assert_eq!(store.tickets(&TicketFilter::default()).unwrap()[1..], listed[1..]);
    });
}

#[test]
fn a_log_that_begins_with_a_snapshot_can_be_taken_in() {
    let snapshot = Arc::new(compact(&records(0, every_outcome())).unwrap());
    with_each(|store| {
        store.append("r", vec![Arc::clone(&snapshot)]).unwrap();
        store.append("r", records(snapshot.seq + 1, [resumed()])).unwrap();
        assert_eq!(texts(&store.load("r").unwrap()[..1]), texts(std::slice::from_ref(&snapshot)));
        let tickets = store.tickets(&TicketFilter::default()).unwrap();
        assert_eq!(tickets.len(), 8);
        assert_eq!(tickets[6].text, Some(large("a")));
        let row = store.runs(&RunFilter::default()).unwrap().remove(0);
        assert_eq!((row.input_tokens, row.status(), row.started_at), (100, RunStatus::Running, 1000.1));
        assert_eq!(row.task, "Say \"setup\":null and \u{1F600}");
    });
}

#[test]
fn tickets_say_how_often_their_calls_were_tried() {
    with_each(|store| {
        let mut events =
            vec![started("r"), asked(1), replied(1), opened(1), attempt_failed(1, 1), attempt_failed(1, 2)];
        events.extend([attempt_failed(1, 3), completed(1, ok("1")), opened(2), attempt_failed(2, 1)]);
        let appended = records(0, events);
        store.append("r", appended).unwrap();
        let attempts = || -> Vec<u32> {
            let rows = store.tickets(&TicketFilter::default()).unwrap();
            rows.iter().rev().map(|row| row.attempts).collect()
        };
        assert_eq!(attempts(), [3, 2]);
        store.append("r", records(10, [opened(3)])).unwrap();
        assert_eq!(attempts(), [3, 2, 1]);
    });
}
