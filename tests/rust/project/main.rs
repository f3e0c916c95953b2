//! The project itself: its floors, and the pages that are written from its code.
#![expect(clippy::unwrap_used, reason = "the functions that tests share may do what tests do")]

mod codes;
mod fields;
mod floors;
