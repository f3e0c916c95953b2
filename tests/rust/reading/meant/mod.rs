//! Only what was meant is executed. Each generator knows by construction what a reply may lead to: it writes a move, then
//! does something to the text, and the oracle is what the pages say of that class, not what a reader does.
//!
//! `CALLSLIP_CASES` sets the cases of each generator (2,000). `PROPTEST_RNG_SEED` sets the seed of the first; a failure
//! prints the seed of its case, which is the first if it is passed with `CALLSLIP_CASES=1`.
#![expect(clippy::string_slice, reason = "these tests cut texts where they know what stands there")]

mod beside;
mod blocks;
mod cuts;
mod dice;
mod documents;
mod doomed;
mod labelled;
mod labels;
mod lines;
mod marks;
mod moves;
mod notations;
mod outcome;
mod pieces;
mod proven;
mod references;
mod sentences;
mod splits;
mod strangers;
mod streams;
mod styles;
mod wraps;

pub(crate) use outcome::run_of;

use dice::Dice;
use moves::Meant;
use outcome::{Done, stays_doomed, streamed, whole};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The protocols by name.
const PROTOCOLS: [&str; 3] = ["react", "chatty", "ticket"];

/// What a reply may lead to.
#[derive(Debug, Clone)]
enum Wanted {
    /// Exactly these calls, or this answer.
    This(Done),
    /// One of these, or nothing.
    AtMost(Vec<Done>),
}

/// A reply that a generator made.
struct Case {
    /// What was done to the move.
    label: String,
    protocol: &'static str,
    text: String,
    wanted: Wanted,
    /// What a stream may lead to as well: it is stopped at a move that nothing but blanks and known sections precede, and
    /// never saw what follows.
    early: Vec<Done>,
}

impl Case {
    /// Nothing may be executed.
    fn never(label: impl Into<String>, protocol: &'static str, text: String) -> Self {
        Self { label: label.into(), protocol, text, wanted: Wanted::AtMost(Vec::new()), early: Vec::new() }
    }

    /// This must be executed.
    fn must(label: impl Into<String>, text: String, meant: &Meant) -> Self {
        let wanted = Wanted::This(meant.done());
        Self { label: label.into(), protocol: meant.protocol, text, wanted, early: Vec::new() }
    }

    /// If anything is executed, then this.
    fn at_most(label: impl Into<String>, text: String, meant: &Meant) -> Self {
        let wanted = Wanted::AtMost(vec![meant.done()]);
        Self { label: label.into(), protocol: meant.protocol, text, wanted, early: Vec::new() }
    }

    fn early(mut self, done: Done) -> Self {
        self.early.push(done);
        self
    }
}

/// Wrong outcomes by kind: how many, and the shortest text.
#[derive(Default)]
struct Wrong(BTreeMap<String, (usize, u64, String, String)>);

impl Wrong {
    fn add(&mut self, kind: String, seed: u64, text: &str, what: String) {
        let (count, known, shortest, told) =
            self.0.entry(kind).or_insert_with(|| (0, seed, text.to_owned(), what.clone()));
        *count += 1;
        if text.len() < shortest.len() {
            (*known, *shortest, *told) = (seed, text.to_owned(), what);
        }
    }

    fn none(&self, cases: usize) {
        let mut report = String::new();
        for (kind, (count, seed, text, what)) in &self.0 {
            let _ = write!(report, "\n{kind}: {count} of {cases} cases, e.g. seed {seed}\n  {text:?}\n  {what}");
        }
        assert!(self.0.is_empty(), "{report}");
    }
}

/// How many cases a generator makes.
fn cases() -> usize {
    std::env::var("CALLSLIP_CASES").map_or(2_000, |text| text.parse().expect("expected a number in CALLSLIP_CASES"))
}

/// The seed of the first case.
fn first_seed() -> u64 {
    std::env::var("PROPTEST_RNG_SEED").map_or(37, |text| text.parse().expect("expected a number in PROPTEST_RNG_SEED"))
}

/// Makes so many replies, reads each whole and in random chunks, and reports what was executed wrongly.
fn check(make: impl Fn(&mut Dice) -> Case) {
    let mut wrong = Wrong::default();
    let cases = cases();
    for seed in (0..cases as u64).map(|number| first_seed().wrapping_add(number)) {
        let mut dice = Dice::new(seed);
        let case = make(&mut dice);
        let kind = |how: &str| format!("{} {how}, {}", case.protocol, case.label);
        let all = whole(case.protocol, &case.text);
        if let Some(what) = case.wanted.differs(&all, &[]) {
            wrong.add(kind("whole"), seed, &case.text, what);
        }
        let stream = streamed(case.protocol, &case.text, &mut dice);
        if let Some(what) = case.wanted.differs(&stream, &case.early) {
            wrong.add(kind("streamed"), seed, &case.text, what);
        }
        if let Some(what) = stays_doomed(case.protocol, &case.text) {
            wrong.add(kind("doomed"), seed, &case.text, what);
        }
    }
    wrong.none(cases);
}

impl Wanted {
    /// What is wrong with this outcome.
    fn differs(&self, done: &Done, early: &[Done]) -> Option<String> {
        let fits = match self {
            _ if early.contains(done) => true,
            Self::This(wanted) => done == wanted,
            Self::AtMost(allowed) => !done.acts() || allowed.contains(done),
        };
        (!fits).then(|| match self {
            Self::This(wanted) => format!("expected {wanted:?}: got {done:?}"),
            Self::AtMost(allowed) if allowed.is_empty() => format!("expected a refusal: got {done:?}"),
            Self::AtMost(allowed) => format!("expected a refusal or {allowed:?}: got {done:?}"),
        })
    }
}
