//! How many cases the generators try: `make seeds N=…` says so in `CALLSLIP_CASES`.

/// What `CALLSLIP_CASES` is where nobody says it, and every test has the number of cases that its source names.
const USUAL: u64 = 2000;

/// The number of cases of a test that tries this many where nobody asks for more, in proportion.
pub(crate) fn of(usual: u32) -> u32 {
    let cases = std::env::var("CALLSLIP_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(USUAL);
    u32::try_from(u64::from(usual).saturating_mul(cases).div_ceil(USUAL)).unwrap_or(u32::MAX).max(1)
}
