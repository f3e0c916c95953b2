//! The stores: what goes in comes out again, from memory as from the file.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the functions that tests share may do what tests do"
)]

#[path = "../cases.rs"]
mod cases;
mod commit;
mod content;
mod cost;
mod kit;
mod model;
mod open;
mod parts;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod races;
