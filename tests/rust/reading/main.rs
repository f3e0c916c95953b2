//! The reader of replies: what is read from them, and what holds of every text.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the functions that tests share may do what tests do"
)]

#[path = "../cases.rs"]
mod cases;
mod conformance;
mod corpus;
mod invariants;
mod meant;
mod native;
#[path = "../one_line.rs"]
mod one_line;
mod reply_properties;
mod seeds;
mod untagged_calls;
mod words;
