//! Months, weekdays and the days between them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The names of the months in English, German, French, Spanish, Italian, Portuguese and Dutch, folded.
const MONTHS: [&str; 12] = [
    "january|jan|januar|janner|janvier|janv|enero|ene|gennaio|gen|janeiro|januari",
    "february|feb|februar|fevrier|fevr|febrero|febbraio|fevereiro|fev|februari",
    "march|mar|marz|mars|marzo|marco|maart|mrt",
    "april|apr|avril|avr|abril|abr|aprile",
    "may|mai|mayo|maggio|mag|maio|mei",
    "june|jun|juni|juin|junio|giugno|giu|junho",
    "july|jul|juli|juillet|juil|julio|luglio|lug|julho",
    "august|aug|aout|agosto|ago|augustus",
    "september|sep|sept|septembre|septiembre|settembre|set|setembro",
    "october|oct|oktober|okt|octobre|octubre|ottobre|ott|outubro|out",
    "november|nov|novembre|noviembre|novembro",
    "december|dec|dezember|dez|decembre|diciembre|dic|dicembre|dezembro",
];

/// The names of the weekdays from Monday on, in the same languages.
const WEEKDAYS: [&str; 7] = [
    "monday|mon|montag|lundi|lunes|lunedi|segunda|maandag",
    "tuesday|tue|tues|dienstag|mardi|martes|martedi|terca|dinsdag",
    "wednesday|wed|mittwoch|mercredi|miercoles|mercoledi|quarta|woensdag",
    "thursday|thu|thur|thurs|donnerstag|jeudi|jueves|giovedi|quinta|donderdag",
    "friday|fri|freitag|vendredi|viernes|venerdi|sexta|vrijdag",
    "saturday|sat|samstag|sonnabend|samedi|sabado|sabato|zaterdag",
    "sunday|sun|sonntag|dimanche|domingo|domenica|zondag",
];

/// The numbers of months or weekdays by their names.
fn numbered(names: &'static [&str]) -> BTreeMap<&'static str, u32> {
    names.iter().zip(0..).flat_map(|(names, number)| names.split('|').map(move |name| (name, number))).collect()
}

static MONTH_NAMES: LazyLock<BTreeMap<&str, u32>> = LazyLock::new(|| numbered(&MONTHS));
static WEEKDAY_NAMES: LazyLock<BTreeMap<&str, u32>> = LazyLock::new(|| numbered(&WEEKDAYS));

/// The names of a month by its number, as alternatives.
pub(crate) fn month_names(month: u32) -> &'static str {
    (month as usize).checked_sub(1).and_then(|at| MONTHS.get(at)).copied().unwrap_or_default()
}

/// The number of a month by its folded name.
pub(crate) fn month_of(name: &str) -> Option<u32> {
    MONTH_NAMES.get(name).map(|month| month + 1)
}

/// The names of a weekday, Monday being 0, as alternatives.
pub(crate) fn weekday_names(weekday: i64) -> &'static str {
    usize::try_from(weekday).ok().and_then(|at| WEEKDAYS.get(at)).copied().unwrap_or_default()
}

pub(crate) fn is_weekday(name: &str) -> bool {
    WEEKDAY_NAMES.contains_key(name)
}

/// A day of the Gregorian calendar as a number; 1970-01-01 is 0.
pub(crate) fn day_number(year: i64, month: u32, day: u32) -> i64 {
    let (month, day) = (i64::from(month), i64::from(day));
    // Years begin in March, so that the leap day is their last.
    let year = if month <= 2 { year - 1 } else { year };
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year.div_euclid(400) * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The weekday of a day by its number, Monday being 0.
pub(crate) fn weekday(day: i64) -> i64 {
    (day + 3).rem_euclid(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted() {
        assert_eq!(day_number(1970, 1, 1), 0);
        assert_eq!(day_number(2000, 3, 1) - day_number(2000, 2, 28), 2);
        assert_eq!(day_number(2026, 3, 4), 20_516);
        // 2026-03-04 is a Wednesday.
        assert_eq!(weekday(day_number(2026, 3, 4)), 2);
    }
}
