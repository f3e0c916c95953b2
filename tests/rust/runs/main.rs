//! The machine of a run: what it asks for, what it writes down, and that its log leads to the same again.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "the functions that tests share may do what tests do"
)]

mod attempts;
#[path = "../cases.rs"]
mod cases;
mod conversation;
mod ends_at_call;
mod kept_logs;
mod kit;
mod live_run;
mod machine;
mod narrowed;
mod old_replies;
#[path = "../one_line.rs"]
mod one_line;
mod origin_addresses;
mod origin_echoes;
mod origin_properties;
mod origins;
mod outside;
mod parts;
mod random_run;
mod resume;
mod script;
mod script_random;
// It takes a minute, and is the same with the border.
#[cfg(not(feature = "python"))]
mod small_scope;
mod stored_states;
mod tasks;
mod untrusted;
#[cfg(not(feature = "python"))]
mod waiting;
mod wall_time;
