//! What a script may need: the packages that it declares, and their installation.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "the functions that tests share may do what tests do"
)]

mod packages;
mod scripts;
