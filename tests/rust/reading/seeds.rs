//! What the fuzzers found worth keeping holds in every ordinary test run, and so does what is made from it at random.

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
    seeds.extend(replies(target));
    seeds
}

/// A reply of the corpus.
#[derive(serde::Deserialize)]
struct Row {
    protocol: String,
    text: String,
}

/// The replies of the corpora in this protocol, read with the usual options.
fn replies(protocol: &str) -> Vec<Vec<u8>> {
    let corpora = [include_str!("../../data/replies.jsonl"), include_str!("../../data/replies_2026.jsonl")];
    let rows = corpora.iter().flat_map(|text| text.lines()).map(|line| serde_json::from_str::<Row>(line).unwrap());
    rows.filter(|row| row.protocol == protocol).map(|row| format!("002{}", row.text).into_bytes()).collect()
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
    Word(Place, String),
    /// What stands between two places is taken out.
    Cut(Place, Place),
    /// What stands between two places is written twice.
    Repeat(Place, Place),
    /// What stands between two places is put between brackets, quotes or marks of a fence.
    Wrap(Place, Place, [&'static str; 2]),
    /// From a place on it goes on as another input does.
    Splice(Place, Index, Index),
    /// One byte becomes another.
    Byte(Place, u8),
    /// One byte is left out.
    Drop(Place),
    /// Two neighbours change places.
    Swap(Place),
    /// A character is written as an escape of JSON.
    Escape(Place),
    /// Lines end as on Windows.
    Lines,
    /// The text stands twice, with this between.
    Twice(&'static str),
}

/// A place in an input: any, or one before or after a mark, where a reader decides.
#[derive(Debug, Clone)]
struct Place(Index, bool);

impl Place {
    fn of(&self, data: &[u8]) -> usize {
        let is_mark = |byte: &u8| b"\"'`{}[]<>,:\\\n".contains(byte);
        let marks = data.iter().enumerate().skip(HEAD).filter(|(_, byte)| self.1 && is_mark(byte));
        let places: Vec<usize> = marks.flat_map(|(at, _)| [at, at + 1]).collect();
        if places.is_empty() { self.0.index(data.len() + 1) } else { *self.0.get(&places) }
    }
}

fn place() -> impl Strategy<Value = Place> {
    (any::<Index>(), any::<bool>()).prop_map(|(index, mark)| Place(index, mark))
}

/// What an input begins with: options, and two sizes of chunks.
const HEAD: usize = 3;

/// What is put around a piece.
const WRAPPERS: [[&str; 2]; 6] =
    [["{", "}"], ["[", "]"], ["\"", "\""], ["'", "'"], ["```json\n", "\n```\n"], ["{\"a\": ", "}"]];

/// What stands between a text and its copy.
const BETWEEN: [&str; 10] = ["", "\n", ",", ", ", "}, ", "\n```, ", ", \"a", "\n\"a\": ", " {a} ", "\u{feff}, ["];

fn change() -> impl Strategy<Value = Change> {
    let index = any::<Index>;
    prop_oneof![
        4 => (place(), prop::sample::select(crate::words::dictionary())).prop_map(|(at, word)| Change::Word(at, word)),
        2 => (place(), place()).prop_map(|(start, end)| Change::Cut(start, end)),
        2 => (place(), place()).prop_map(|(start, end)| Change::Repeat(start, end)),
        1 => (place(), place(), prop::sample::select(&WRAPPERS)).prop_map(|(start, end, by)| Change::Wrap(start, end, by)),
        2 => (place(), index(), index()).prop_map(|(at, other, from)| Change::Splice(at, other, from)),
        1 => (place(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        2 => place().prop_map(Change::Drop),
        1 => place().prop_map(Change::Swap),
        1 => place().prop_map(Change::Escape),
        1 => Just(Change::Lines),
        2 => prop::sample::select(&BETWEEN).prop_map(Change::Twice),
    ]
}

fn changed(mut data: Vec<u8>, change: &Change, seeds: &[Vec<u8>]) -> Vec<u8> {
    let between = |one: &Place, other: &Place, data: &[u8]| {
        let (one, other) = (one.of(data), other.of(data));
        one.min(other)..one.max(other)
    };
    match change {
        Change::Word(at, word) => {
            let at = at.of(&data);
            data.splice(at..at, word.bytes());
        }
        Change::Cut(one, other) => {
            let range = between(one, other, &data);
            data.drain(range);
        }
        Change::Repeat(one, other) => {
            let range = between(one, other, &data);
            let (length, end) = (range.len(), range.end);
            data.extend_from_within(range);
            data.get_mut(end..).unwrap().rotate_right(length);
        }
        Change::Wrap(one, other, [before, after]) => {
            let range = between(one, other, &data);
            data.splice(range.end..range.end, after.bytes());
            data.splice(range.start..range.start, before.bytes());
        }
        Change::Splice(at, other, from) => {
            let other = other.get(seeds);
            data.truncate(at.of(&data));
            data.extend_from_slice(other.get(from.index(other.len() + 1)..).unwrap());
        }
        Change::Byte(at, byte) => {
            let at = at.of(&data);
            data.get_mut(at).into_iter().for_each(|old| *old = *byte);
        }
        Change::Drop(at) => {
            let at = at.of(&data);
            data.drain(at..data.len().min(at + 1));
        }
        Change::Swap(at) => {
            let at = at.of(&data);
            data.get_mut(at..at + 2).into_iter().for_each(<[u8]>::reverse);
        }
        Change::Escape(at) => {
            let at = at.of(&data);
            if let Some(byte) = data.get(at).copied().filter(u8::is_ascii) {
                data.splice(at..=at, format!("\\u{byte:04x}").bytes());
            }
        }
        Change::Twice(between) => {
            let text = data.get(HEAD..).unwrap_or_default().to_vec();
            data.extend_from_slice(between.as_bytes());
            data.extend_from_slice(&text);
        }
        Change::Lines => data = String::from_utf8_lossy(&data).replace('\n', "\r\n").into_bytes(),
    }
    data.truncate(1000);
    data
}

/// Every seed, and so many inputs made from them.
fn check_all(target: &str, made: u32) {
    let seeds = seeds(target);
    for data in &seeds {
        let checked = std::panic::catch_unwind(|| crate::invariants::check(target, data));
        assert!(checked.is_ok(), "{target}: b\"{}\"", data.escape_ascii());
    }
    let mut runner = runner(made);
    let inputs = (any::<Index>(), prop::collection::vec(change(), 1..5)).prop_map(|(seed, changes)| {
        Input(changes.iter().fold(seed.get(&seeds).clone(), |data, change| changed(data, change, &seeds)))
    });
    run(&mut runner, target, &inputs);
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(ProptestConfig {
        cases: crate::cases::of(cases),
        failure_persistence: None,
        ..ProptestConfig::default()
    })
}

fn run(runner: &mut TestRunner, target: &str, inputs: &impl Strategy<Value = Input>) {
    let result = runner.run(inputs, |Input(data)| {
        crate::invariants::check(target, &data);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{target}: {failure}");
    }
}

#[test]
fn json() {
    check_all("json", 12_000);
}

#[test]
fn envelope() {
    check_all("envelope", 12_000);
}

#[test]
fn react() {
    check_all("react", 4000);
}

#[test]
fn chatty() {
    check_all("chatty", 4000);
}

#[test]
fn ticket() {
    check_all("ticket", 4000);
}

#[test]
fn growth() {
    check_all("growth", 80);
}

#[test]
fn openapi() {
    check_all("openapi", 2000);
}

#[test]
fn schema() {
    check_all("schema", 2000);
}

#[test]
fn log() {
    check_all("log", 2000);
}

#[test]
fn declaration() {
    check_all("declaration", 2000);
}

#[test]
fn origins() {
    check_all("origins", 2000);
}

/// Time grows with the text where a few words of the protocols are repeated, whatever stands before and after them.
#[test]
fn growth_of_words() {
    let words = |count| {
        prop::collection::vec(prop::sample::select(crate::words::dictionary()), count).prop_map(|words| words.concat())
    };
    let options = (b'0'..=b'?').prop_map(char::from);
    let inputs = (options, words(0..4), words(1..7), words(0..3)).prop_map(|(options, head, piece, tail)| {
        Input(format!("{options}00{head}\u{1f}{piece}\u{1f}{tail}").into_bytes())
    });
    run(&mut runner(250), "growth", &inputs);
}
