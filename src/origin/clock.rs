//! The date of a moment.

use super::relative::Clock;

const DAY: f64 = 86_400.0;
/// Days from 0000-03-01 to 1970-01-01, and of 400, 100, 4 years and one.
const EPOCH: u64 = 719_468;
const ERA: u64 = 146_097;
const CENTURY: u64 = 36_524;
const FOUR_YEARS: u64 = 1_460;
const YEAR: u64 = 365;

impl Clock {
    /// The date in UTC of a time in Unix seconds; `None` before 1970.
    ///
    /// Years begin in March here, so that the day of a leap year comes last.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float to whole days, from 0 on")]
    pub fn of_unix(seconds: f64) -> Option<Self> {
        let days = EPOCH + Some((seconds / DAY).floor()).filter(|days| (0.0..1e7).contains(days))? as u64;
        let (era, day) = (days / ERA, days % ERA);
        let year = (day - day / FOUR_YEARS + day / CENTURY - day / (ERA - 1)) / YEAR;
        let day = day - (YEAR * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let in_month = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era * 400 + year + u64::from(month <= 2);
        let part = |number: u64| u32::try_from(number).ok();
        Some(Self { year: part(year)?, month: part(month)?, day: part(in_month)? })
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0.0, (1970, 1, 1)),
            (951_782_399.0, (2000, 2, 28)),
            (951_782_400.0, (2000, 2, 29)),
            (1_709_164_800.0, (2024, 2, 29)),
            (1_767_225_599.9, (2025, 12, 31)),
            (1_796_040_000.0, (2026, 11, 30)),
            (4_107_542_400.0, (2100, 3, 1)),
        ] {
            let clock = Clock::of_unix(seconds).unwrap();
            assert_eq!((clock.year, clock.month, clock.day), date, "{seconds}");
        }
        assert_eq!((Clock::of_unix(-1.0), Clock::of_unix(f64::NAN)), (None, None));
    }
}
