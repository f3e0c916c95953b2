//! The grammars: what they admit is read, and the other way round.
#![expect(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the functions that tests share may do what tests do"
)]

mod bounded_answers;
#[path = "../cases.rs"]
mod cases;
#[path = "../runs/kit.rs"]
#[expect(dead_code, reason = "shared with the tests of runs")]
mod kit;
mod open_arguments;
mod replies;
mod schemas;
mod typed_answers;
mod values;
mod walk;
