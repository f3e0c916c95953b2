//! What the fuzzers found worth keeping holds in every ordinary test run.

#![expect(clippy::unwrap_used, reason = "tests")]

mod invariants;

use std::path::Path;

fn read_all(target: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(seeds.len() >= 20, "{} seeds", seeds.len());
    for seed in seeds {
        let data = std::fs::read(&seed).unwrap();
        let checked = std::panic::catch_unwind(|| invariants::check(target, &data));
        assert!(checked.is_ok(), "{}", seed.display());
    }
}

#[test]
fn json() {
    read_all("json");
}

#[test]
fn envelope() {
    read_all("envelope");
}

#[test]
fn react() {
    read_all("react");
}

#[test]
fn chatty() {
    read_all("chatty");
}

#[test]
fn ticket() {
    read_all("ticket");
}

#[test]
fn growth() {
    read_all("growth");
}
