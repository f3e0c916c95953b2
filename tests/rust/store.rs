//! The stores: what goes in comes out again, from memory as from the file.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "the functions that tests share may do what tests do"
)]

#[path = "store/commit.rs"]
mod commit;
#[path = "store/content.rs"]
mod content;
#[path = "store/cost.rs"]
mod cost;
#[path = "store/kit.rs"]
mod kit;
#[path = "store/model.rs"]
mod model;
#[path = "store/open.rs"]
mod open;
#[path = "store/parts.rs"]
mod parts;
#[cfg(feature = "postgres")]
#[path = "store/postgres.rs"]
mod postgres;
#[cfg(feature = "postgres")]
#[path = "store/races.rs"]
mod races;
