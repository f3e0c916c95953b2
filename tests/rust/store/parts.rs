//! The bytes of images and files.

use crate::kit::*;
use callslip::part::Content;
use callslip::run::compact;
use callslip::store::sqlite::SqlValue;
use callslip::store::{SqliteStore, Store, TicketFilter};

fn append(store: &dyn Store, run_id: &str, data: &[&[u8]]) {
    let contents: Vec<_> = data.iter().map(|data| Content::new(*data)).collect();
    store.append_with(run_id, whole(run_id, "1"), contents.into()).unwrap();
}

fn bytes(store: &dyn Store, run_id: &str, data: &[u8]) -> Option<Vec<u8>> {
    store.content(run_id, &Content::new(data).sha256).unwrap().map(|data| data.to_vec())
}

fn kept(store: &SqliteStore) -> i64 {
    match store.query("SELECT count(*) FROM content", &[]).unwrap().rows[0][0] {
        SqlValue::Integer(count) => count,
        _ => panic!("no number"),
    }
}

#[test]
fn a_run_reads_its_own_bytes_and_no_others() {
    with_each(|store| {
        append(store, "r", &[b"one", b"\0\xff two"]);
        append(store, "s", &[b"one", b"three"]);
        assert_eq!(bytes(store, "r", b"\0\xff two").unwrap(), b"\0\xff two");
        assert_eq!(bytes(store, "s", b"one").unwrap(), b"one");
        assert_eq!(bytes(store, "r", b"three"), None);
        assert_eq!(bytes(store, "nobody", b"one"), None);
    });
}

#[test]
fn bytes_stay_as_long_as_a_run_has_them() {
    with_each(|store| {
        append(store, "r", &[b"one", b"two"]);
        append(store, "s", &[b"one"]);
        store.compact("r", compact(&store.load("r").unwrap()).unwrap()).unwrap();
        assert_eq!(bytes(store, "r", b"two").unwrap(), b"two");
        store.delete(&["r".to_owned()]).unwrap();
        assert_eq!((bytes(store, "r", b"two"), bytes(store, "r", b"one")), (None, None));
        assert_eq!(bytes(store, "s", b"one").unwrap(), b"one");
    });
}

#[test]
fn a_file_keeps_the_same_bytes_once_and_none_that_nobody_has() {
    let folder = Folder::new();
    let store = sqlite(&folder);
    append(&*store, "r", &[b"one", b"two"]);
    append(&*store, "s", &[b"one"]);
    assert_eq!(kept(&store), 2);
    store.close().unwrap();
    let store = sqlite(&folder);
    assert_eq!(bytes(&*store, "r", b"two").unwrap(), b"two");
    store.delete(&["r".to_owned()]).unwrap();
    assert_eq!(kept(&store), 1);
    store.prune(Some(f64::MAX), None).unwrap();
    assert_eq!(kept(&store), 0);
}

#[test]
fn tickets_say_their_parts_before_and_after_a_compaction() {
    with_each(|store| {
        let events = [started("r"), asked(1), replied(1), opened(1), completed(1, ok("1")), opened(2)];
        let result = large("a");
        store.append("r", records(0, events.into_iter().chain([completed(2, ok(&result)), finished()]))).unwrap();
        let labels = || {
            let rows = store.tickets(&TicketFilter::default()).unwrap();
            rows.iter()
                .map(|row| row.parts.iter().map(|part| part.label.to_string()).collect())
                .collect::<Vec<Vec<_>>>()
        };
        assert_eq!(labels(), [vec!["T2".to_owned()], vec![]]);
        store.compact("r", compact(&store.load("r").unwrap()).unwrap()).unwrap();
        assert_eq!(labels(), [vec!["T2".to_owned()], vec![]]);
    });
}
