//! Dates in words ("tomorrow"), which mean something once the date of the run is known.

use super::calendar::{day_number, weekday, weekday_names};
use super::date::{Date, read};
use super::look::{Look, Scope, Spot};
use super::numeral::cardinals;
use std::borrow::Cow;

/// The date of the run, in the user's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The year, such as 2026.
    pub year: u32,
    /// The month from 1 to 12.
    pub month: u32,
    /// The day from 1 to 31.
    pub day: u32,
}

/// Words for a day so many days from today.
const DAYS: [(i64, &[&str]); 5] = [
    (-2, &["day before yesterday", "vorgestern|anteayer", "avant hier"]),
    (-1, &["yesterday|gestern|hier|ayer|ieri|ontem", "昨 天|日", KOREAN_YESTERDAY]),
    (0, &["today|tonight|now|currently|heute|hoy|oggi|hoje|vandaag", "aujourd hui", "今 天|日", KOREAN_TODAY]),
    (1, &["tomorrow|morgen|demain|manana|domani|amanha", "明 天|日", KOREAN_TOMORROW]),
    (2, &["day after tomorrow", "ubermorgen", "apres demain", "pasado manana", "后 天", "明 後 日"]),
];
// In the letters that Korean syllables are folded to.
const KOREAN_TODAY: &str = "\u{110b}\u{1169}\u{1102}\u{1173}\u{11af}";
const KOREAN_TOMORROW: &str = "\u{1102}\u{1162}\u{110b}\u{1175}\u{11af}";
const KOREAN_YESTERDAY: &str = "\u{110b}\u{1165}\u{110c}\u{1166}";
const THIS_WEEK: [&str; 5] = ["this week", "diese woche", "esta semana", "cette semaine", "this coming week"];
const NEXT_WEEK: [&str; 6] =
    ["next|coming week", "nachste woche", "proxima semana", "semaine prochaine", "下 周", "来 週"];
const LAST_WEEK: [&str; 4] = ["last|past week", "letzte woche", "semana pasada", "semaine derniere"];

/// The rows of words that lead from the clock to the date.
fn phrases(date: Date, clock: Clock) -> Vec<Cow<'static, str>> {
    let year = date.year.unwrap_or(clock.year);
    let today = day_number(i64::from(clock.year), clock.month, clock.day);
    let mut phrases = periods(date, year, clock);
    let Some(day) = date.day else { return phrases };
    let that = day_number(i64::from(year), date.month, day);
    let away = that - today;
    let mut put = |rows: &[&'static str]| phrases.extend(rows.iter().copied().map(Cow::from));
    DAYS.iter().filter(|(days, _)| *days == away).for_each(|(_, rows)| put(rows));
    // "Friday" is the next or the last one, and "next Friday" may be a week later.
    if (-7..=14).contains(&away) {
        put(&[weekday_names(weekday(that))]);
        if weekday(that) >= 4 {
            put(&["weekend|wochenende", "fin de semana"]);
        }
    }
    let weeks = that.div_euclid(7) - today.div_euclid(7);
    // Days are counted from a Thursday, weeks from Monday or Sunday: one more day at either end is no error.
    if away.abs() <= 7 || weeks == 0 {
        put(&THIS_WEEK);
    }
    if (1..=14).contains(&away) {
        put(&NEXT_WEEK);
    }
    if (-14..=-1).contains(&away) {
        put(&LAST_WEEK);
    }
    match (date.month, day) {
        (12, 24..=26) => put(&["christmas|weihnachten|noel|navidad"]),
        (12, 31) | (1, 1) => put(&["new year|years", "silvester|neujahr"]),
        (10, 31) => put(&["halloween"]),
        (2, 14) => put(&["valentine|valentines"]),
        (7, 4) => put(&["independence day"]),
        _ => {}
    }
    phrases.extend(counted(away).into_iter().map(Cow::from));
    phrases
}

/// "in 3 days", "two weeks ago".
fn counted(away: i64) -> Vec<String> {
    let mut phrases = Vec::new();
    for (unit, days, slack) in [("day", 1, 0), ("week", 7, 0), ("month", 30, 2), ("year", 365, 2)] {
        let count = (away.abs() + days / 2) / days;
        if count == 0 || count > 60 || (away.abs() - count * days).abs() > slack * count {
            continue;
        }
        let Ok(number) = u32::try_from(count) else { continue };
        let unit = if count == 1 { unit.to_owned() } else { format!("{unit}s") };
        let article = if count == 1 { "|a|an" } else { "" };
        let word = cardinals(number).into_iter().next().unwrap_or_default();
        // "twenty one" are two words.
        let names =
            if word.contains(' ') { vec![number.to_string(), word] } else { vec![format!("{number}|{word}{article}")] };
        for name in names {
            if away > 0 {
                phrases.extend([format!("in|within|next|coming {name} {unit}"), format!("{name} {unit} from")]);
            } else {
                phrases.extend([format!("{name} {unit} ago"), format!("last|past {name} {unit}")]);
            }
        }
    }
    phrases
}

/// "next month", "this year" and the like.
fn periods(date: Date, year: u32, clock: Clock) -> Vec<Cow<'static, str>> {
    let months = i64::from(year) * 12 + i64::from(date.month) - i64::from(clock.year) * 12 - i64::from(clock.month);
    let years = i64::from(year) - i64::from(clock.year);
    let mut phrases = Vec::new();
    for (period, away) in [("month", months), ("year", years), ("quarter", months.div_euclid(3))] {
        let words = match away {
            0 => "this|current|coming",
            1 => "next|coming|following",
            -1 => "last|past|previous",
            _ => continue,
        };
        phrases.push(format!("{words} {period}").into());
    }
    phrases
}

/// Bytes behind "today is" in which its date begins.
const NEAR: usize = 40;

impl Look<'_> {
    /// The dates that the user says today is.
    pub(crate) fn stated_clocks(&mut self) -> Vec<Clock> {
        let mut clocks = Vec::new();
        self.row(Scope::User, "today is", &mut |text, span| {
            let rest = text.get(span.1..)?;
            let date = read(rest).into_iter().find(|reading| reading.start < NEAR)?.date;
            clocks.push(Clock { year: date.year?, month: date.month, day: date.day? });
            Some(span)
        });
        clocks
    }

    /// Where the user's words lead from the clock to this date.
    pub(crate) fn relative(&mut self, date: Date, clock: Clock) -> Vec<Spot> {
        let mut spots = Vec::new();
        for phrase in phrases(date, clock) {
            spots.extend(self.row(Scope::User, &phrase, &mut |_, span| Some(span)));
        }
        spots
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::is_row;
    use super::*;

    #[test]
    fn words_lie_where_the_clock_says() {
        let clock = Clock { year: 2026, month: 3, day: 4 };
        let leads = |text: &str, year, month, day| {
            phrases(Date { year: Some(year), month, day: Some(day) }, clock).iter().any(|row| is_row(text, row))
        };
        assert!(leads("tomorrow", 2026, 3, 5) && leads("내일", 2026, 3, 5) && leads("明日", 2026, 3, 5));
        assert!(leads("friday", 2026, 3, 6));
        assert!(leads("in 3 days", 2026, 3, 7));
        assert!(leads("in two weeks", 2026, 3, 18) && leads("within 14 days", 2026, 3, 18));
        assert!(leads("twenty-one days ago", 2026, 2, 11) && leads("a week ago", 2026, 2, 25));
        assert!(leads("next month", 2026, 4, 20));
        assert!(!leads("tomorrow", 2027, 3, 5));
        assert!(!leads("tomorrow", 2026, 3, 6));
    }
}
