//! Where each value of a call comes from: a search by value over the texts of a conversation.
//!
//! The texts are indexed by token, and a value is found where its tokens stand in a row, or where a rule (a date in
//! another form, a number in words, …) leads to it. Origins explain a call. They are no proof: text can be
//! paraphrased, and short values stand everywhere.
//!
//! The module knows JSON values, texts and flags, nothing of runs.

mod address;
pub mod as_map;
mod calendar;
mod clock;
mod codes;
mod composed;
mod date;
mod echo;
mod from;
mod index;
mod json;
mod leaves;
mod log;
mod look;
mod number;
mod numeral;
mod part;
mod relative;
mod run;
mod schema;
mod table;
mod text;
mod time;
mod token;
mod trace;
mod written;

pub use from::{How, Kind, Origin, Piece, Place};
pub use index::{Echo, Index, Source};
pub use relative::Clock;
pub use trace::{Judging, LEAVES, Media, Reference, trace};
