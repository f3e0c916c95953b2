//! What the fuzzers found worth keeping holds in every ordinary test run, and so does what is made from it at random.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests")]

mod invariants;
mod words;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use std::path::Path;

/// Inputs of a fuzz target that were kept: the named ones, and those that are packed into one file.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
    let packed = std::fs::read_to_string(folder.join(format!("{target}.jsonl"))).unwrap();
    let mut seeds: Vec<Vec<u8>> = packed.lines().map(unpacked).collect();
    let named = std::fs::read_dir(folder.join(target)).into_iter().flatten();
    let mut named: Vec<_> = named.map(|entry| entry.unwrap().path()).collect();
    named.sort();
    seeds.extend(named.iter().map(|path| std::fs::read(path).unwrap()));
    assert!(seeds.len() >= 20, "{} seeds", seeds.len());
    seeds
}

/// The bytes of a packed input: the characters of a JSON string.
fn unpacked(line: &str) -> Vec<u8> {
    let text: String = serde_json::from_str(line).unwrap();
    text.chars().map(|c| u8::try_from(c).unwrap()).collect()
}

/// An input, shown so that a failure can be read.
struct Input(Vec<u8>);

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// What is done to an input.
#[derive(Debug, Clone)]
enum Change {
    /// A word of the dictionary is put in.
    Word(Index, String),
    /// What stands between two places is taken out.
    Cut(Index, Index),
    /// What stands between two places is written twice.
    Repeat(Index, Index),
    /// From a place on it goes on as another input does.
    Splice(Index, Index, Index),
    /// One byte becomes another.
    Byte(Index, u8),
}

fn change() -> impl Strategy<Value = Change> {
    let place = any::<Index>;
    prop_oneof![
        3 => (place(), prop::sample::select(words::dictionary())).prop_map(|(at, word)| Change::Word(at, word)),
        2 => (place(), place()).prop_map(|(start, end)| Change::Cut(start, end)),
        2 => (place(), place()).prop_map(|(start, end)| Change::Repeat(start, end)),
        2 => (place(), place(), place()).prop_map(|(at, other, from)| Change::Splice(at, other, from)),
        1 => (place(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
    ]
}

fn changed(mut data: Vec<u8>, change: &Change, seeds: &[Vec<u8>]) -> Vec<u8> {
    let place = |index: &Index, data: &[u8]| index.index(data.len() + 1);
    match change {
        Change::Word(at, word) => {
            let at = place(at, &data);
            data.splice(at..at, word.bytes());
        }
        Change::Cut(one, other) => {
            let (one, other) = (place(one, &data), place(other, &data));
            data.drain(one.min(other)..one.max(other));
        }
        Change::Repeat(one, other) => {
            let (one, other) = (place(one, &data), place(other, &data));
            data.extend_from_within(one.min(other)..one.max(other));
            data.get_mut(one.max(other)..).unwrap().rotate_right(one.abs_diff(other));
        }
        Change::Splice(at, other, from) => {
            let other = other.get(seeds);
            data.truncate(place(at, &data));
            data.extend_from_slice(other.get(place(from, other)..).unwrap());
        }
        Change::Byte(at, byte) => {
            if !data.is_empty() {
                *at.get_mut(&mut data) = *byte;
            }
        }
    }
    data.truncate(1000);
    data
}

/// Every seed, and so many inputs made from them.
fn check_all(target: &str, made: u32) {
    let seeds = seeds(target);
    for data in &seeds {
        let checked = std::panic::catch_unwind(|| invariants::check(target, data));
        assert!(checked.is_ok(), "{target}: b\"{}\"", data.escape_ascii());
    }
    let mut runner =
        TestRunner::new(ProptestConfig { cases: made, failure_persistence: None, ..ProptestConfig::default() });
    let inputs = (any::<Index>(), prop::collection::vec(change(), 1..5)).prop_map(|(seed, changes)| {
        Input(changes.iter().fold(seed.get(&seeds).clone(), |data, change| changed(data, change, &seeds)))
    });
    let result = runner.run(&inputs, |Input(data)| {
        invariants::check(target, &data);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{target}: {failure}");
    }
}

#[test]
fn json() {
    check_all("json", 25_000);
}

#[test]
fn envelope() {
    check_all("envelope", 25_000);
}

#[test]
fn react() {
    check_all("react", 8000);
}

#[test]
fn chatty() {
    check_all("chatty", 8000);
}

#[test]
fn ticket() {
    check_all("ticket", 8000);
}

#[test]
fn growth() {
    check_all("growth", 150);
}
