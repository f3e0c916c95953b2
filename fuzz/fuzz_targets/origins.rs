#![no_main]

#[path = "../../tests/rust/reading/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|data: &[u8]| invariants::check("origins", data));
