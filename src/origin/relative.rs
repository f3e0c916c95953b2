//! Dates in words ("tomorrow"), which mean something once the date of the run is known.

use super::calendar::{day_number, weekday, weekday_names};
use super::date::{Date, read};
use super::look::{Look, Scope, Spot};
use super::numeral::cardinals;

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

const TODAY: [&str; 12] = [
    "today",
    "tonight",
    "now",
    "currently",
    "heute",
    "hoy",
    "aujourd hui",
    "oggi",
    "hoje",
    "vandaag",
    "今 天",
    "今 日",
];
const TOMORROW: [&str; 8] = ["tomorrow", "morgen", "demain", "manana", "domani", "amanha", "明 天", "明 日"];
const YESTERDAY: [&str; 8] = ["yesterday", "gestern", "hier", "ayer", "ieri", "ontem", "昨 天", "昨 日"];
const KOREAN: [(i64, &str); 3] = [(0, "오늘"), (1, "내일"), (-1, "어제")];
/// A period that the words before it move: days at most, and what is compared.
const PERIODS: [&str; 5] = ["week", "month", "year", "weekend", "quarter"];

/// The phrases that lead from the clock to the date.
fn phrases(date: Date, clock: Clock) -> Vec<String> {
    let year = date.year.unwrap_or(clock.year);
    let today = day_number(i64::from(clock.year), clock.month, clock.day);
    let mut phrases = periods(date, year, clock);
    let Some(day) = date.day else { return phrases };
    let that = day_number(i64::from(year), date.month, day);
    let away = that - today;
    let mut put = |words: &[&str]| phrases.extend(words.iter().map(|word| (*word).to_owned()));
    match away {
        0 => put(&TODAY),
        1 => put(&TOMORROW),
        -1 => put(&YESTERDAY),
        2 => put(&["day after tomorrow", "ubermorgen", "apres demain", "pasado manana", "后 天", "明 後 日"]),
        -2 => put(&["day before yesterday", "vorgestern", "avant hier", "anteayer"]),
        _ => {}
    }
    put(&KOREAN.iter().filter(|(days, _)| *days == away).map(|(_, word)| *word).collect::<Vec<_>>());
    // "Friday" is the next or the last one, and "next Friday" may be a week later.
    if (-7..=14).contains(&away) {
        put(&weekday_names(weekday(that)).collect::<Vec<_>>());
        if weekday(that) >= 4 {
            put(&["weekend", "wochenende", "fin de semana"]);
        }
    }
    let weeks = that.div_euclid(7) - today.div_euclid(7);
    // Days are counted from a Thursday, weeks from Monday or Sunday: one more day at either end is no error.
    if away.abs() <= 7 || weeks == 0 {
        put(&["this week", "diese woche", "esta semana", "cette semaine", "this coming week"]);
    }
    if (1..=14).contains(&away) {
        put(&["next week", "coming week", "nachste woche", "proxima semana", "semaine prochaine", "下 周", "来 週"]);
    }
    if (-14..=-1).contains(&away) {
        put(&["last week", "past week", "letzte woche", "semana pasada", "semaine derniere"]);
    }
    match (date.month, day) {
        (12, 24..=26) => put(&["christmas", "weihnachten", "noel", "navidad"]),
        (12, 31) | (1, 1) => put(&["new year", "new years", "silvester", "neujahr"]),
        (10, 31) => put(&["halloween"]),
        (2, 14) => put(&["valentine", "valentines"]),
        (7, 4) => put(&["independence day"]),
        _ => {}
    }
    counted(away, &mut phrases);
    phrases
}

/// "in 3 days", "two weeks ago".
fn counted(away: i64, phrases: &mut Vec<String>) {
    for (unit, days, slack) in [("day", 1, 0), ("week", 7, 0), ("month", 30, 2), ("year", 365, 2)] {
        let count = (away.abs() + days / 2) / days;
        if count == 0 || count > 60 || (away.abs() - count * days).abs() > slack * count {
            continue;
        }
        let Ok(number) = u32::try_from(count) else { continue };
        let mut names = vec![number.to_string()];
        names.extend(cardinals(number).into_iter().take(1).map(|words| words.join(" ")));
        if count == 1 {
            names.extend(["a".to_owned(), "an".to_owned()]);
        }
        let plural = if count == 1 { "" } else { "s" };
        for name in names {
            if away > 0 {
                phrases.extend(["in", "within", "next", "coming"].map(|word| format!("{word} {name} {unit}{plural}")));
                phrases.push(format!("{name} {unit}{plural} from"));
            } else {
                phrases.push(format!("{name} {unit}{plural} ago"));
                phrases.extend(["last", "past"].map(|word| format!("{word} {name} {unit}{plural}")));
            }
        }
    }
}

/// "next month", "this year" and the like.
fn periods(date: Date, year: u32, clock: Clock) -> Vec<String> {
    let mut phrases = Vec::new();
    let months = i64::from(year) * 12 + i64::from(date.month) - i64::from(clock.year) * 12 - i64::from(clock.month);
    let years = i64::from(year) - i64::from(clock.year);
    for period in PERIODS {
        let away = match period {
            "month" => months,
            "year" => years,
            "quarter" => months.div_euclid(3),
            _ => continue,
        };
        let words: &[&str] = match away {
            0 => &["this", "current", "coming"],
            1 => &["next", "coming", "following"],
            -1 => &["last", "past", "previous"],
            _ => continue,
        };
        phrases.extend(words.iter().map(|word| format!("{word} {period}")));
    }
    phrases
}

/// Bytes behind "today is" in which its date begins.
const NEAR: usize = 40;

impl Look<'_> {
    /// The dates that the user says today is.
    pub(crate) fn stated_clocks(&mut self) -> Vec<Clock> {
        let mut clocks = Vec::new();
        self.row(Scope::User, &["today", "is"], &mut |text, span| {
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
            let tokens: Vec<&str> = phrase.split(' ').collect();
            spots.extend(self.row(Scope::User, &tokens, &mut |_, span| Some(span)));
        }
        spots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lie_where_the_clock_says() {
        let clock = Clock { year: 2026, month: 3, day: 4 };
        let of = |year, month, day| phrases(Date { year: Some(year), month, day: Some(day) }, clock);
        assert!(of(2026, 3, 5).contains(&"tomorrow".to_owned()));
        assert!(of(2026, 3, 6).contains(&"friday".to_owned()));
        assert!(of(2026, 3, 7).contains(&"in 3 days".to_owned()));
        assert!(of(2026, 3, 18).contains(&"in two weeks".to_owned()));
        assert!(of(2026, 4, 20).contains(&"next month".to_owned()));
        assert!(!of(2027, 3, 5).contains(&"tomorrow".to_owned()));
        assert!(!of(2026, 3, 6).contains(&"tomorrow".to_owned()));
    }
}
