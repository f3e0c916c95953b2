//! Dates in any usual form.

use super::calendar::{month_names, month_of};
use super::look::{Look, Scope, Spot};
use super::token::Words;

/// A date; the year or the day may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) year: Option<u32>,
    pub(crate) month: u32,
    pub(crate) day: Option<u32>,
}

impl Date {
    /// Whether what both of them say is the same.
    fn agrees(self, other: Self) -> bool {
        let same = |one: Option<u32>, other: Option<u32>| one.is_none() || other.is_none() || one == other;
        same(self.year, other.year) && self.month == other.month && same(self.day, other.day)
    }
}

/// A date in a text, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) date: Date,
    /// The last day, where several are named: "3-5 May".
    pub(crate) until: Option<Date>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Reading {
    /// Whether it may name this date.
    fn names(&self, date: Date) -> bool {
        self.date.agrees(date) || self.until.is_some_and(|until| until.agrees(date))
    }
}

/// The tokens of a text, one after the other, with what separates them.
pub(crate) struct Tape<'t> {
    text: &'t str,
    words: Words,
}

impl<'t> Tape<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, words: Words::of(text) }
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    pub(crate) fn has_digits(&self) -> bool {
        self.words.has_digits()
    }

    pub(crate) fn word(&self, at: usize) -> &str {
        self.words.word(at)
    }

    pub(crate) fn start(&self, at: usize) -> usize {
        self.words.span(at).map_or(0, |span| span.0)
    }

    pub(crate) fn end(&self, at: usize) -> usize {
        self.words.span(at).map_or(0, |span| span.1)
    }

    /// The number at a token, with at most this many digits.
    pub(crate) fn number(&self, at: usize, digits: usize) -> Option<u32> {
        let word = self.word(at);
        (word.len() <= digits && word.bytes().all(|byte| byte.is_ascii_digit())).then(|| word.parse().ok()).flatten()
    }

    /// What stands between a token and the next one.
    pub(crate) fn gap(&self, at: usize) -> &'t str {
        let end = self.words.span(at + 1).map_or(self.text.len(), |next| next.0);
        self.text.get(self.end(at)..end).unwrap_or_default()
    }

    fn year(&self, at: usize) -> Option<u32> {
        self.number(at, 4).filter(|year| self.word(at).len() == 4 && (1000..3000).contains(year))
    }

    /// The first token from `at` on that is none of these.
    pub(crate) fn skip(&self, at: usize, words: &[&str]) -> usize {
        at + usize::from(words.contains(&self.word(at)))
    }

    /// Whether the next token is near enough to go on with a date.
    fn is_near(&self, at: usize) -> bool {
        self.gap(at).chars().all(|c| matches!(c, ' ' | ',' | '.' | '-' | '\u{a0}' | '/')) && self.gap(at).len() <= 3
    }
}

const ENDINGS: [&str; 7] = ["st", "nd", "rd", "th", "er", "o", "a"];
const OF: [&str; 5] = ["of", "de", "do", "di", "the"];

/// All dates of a text. A form that can mean two dates gives both.
pub(crate) fn read(text: &str) -> Vec<Reading> {
    let tape = Tape::new(text);
    let mut found = Vec::new();
    for at in 0..if tape.has_digits() { tape.len() } else { 0 } {
        let mut put = |(year, month, day): (Option<u32>, u32, Option<u32>), last: usize| {
            if (1..=12).contains(&month) && day.is_none_or(|day| (1..=31).contains(&day)) {
                let date = Date { year, month, day };
                found.push(Reading { date, until: None, start: tape.start(at), end: tape.end(last) });
            }
        };
        compact(&tape, at, &mut put);
        numeric(&tape, at, &mut put);
        ideographic(&tape, at, &mut put);
        month_first(&tape, at, &mut put);
        day_first(&tape, at, &mut put);
        ranges(&tape, at, &mut |date, until, last| {
            let is_day = |date: Date| (1..=12).contains(&date.month) && matches!(date.day, Some(1..=31));
            if is_day(date) && is_day(until) {
                found.push(Reading { date, until: Some(until), start: tape.start(at), end: tape.end(last) });
            }
        });
    }
    found
}

/// Words between the first day and the last one.
const TO: [&str; 16] =
    ["to", "until", "till", "til", "through", "thru", "and", "or", "bis", "und", "a", "al", "au", "e", "y", "et"];

/// The token of the last day, if the words behind a first one lead to it.
fn joined(tape: &Tape<'_>, at: usize) -> Option<usize> {
    let gap = tape.gap(at).trim_start_matches('.').trim();
    let is_word = gap.is_empty() && TO.contains(&tape.word(at + 1)) && tape.gap(at + 1).trim().is_empty();
    match gap {
        "-" | "--" | "\u{2010}" | "\u{2011}" | "\u{2013}" | "\u{2014}" | "/" | "~" => Some(at + 1),
        _ => is_word.then(|| tape.skip(at + 2, &["the"])),
    }
}

/// The days of a range: "3-5 May", "May 3rd to 5th, 2026", "2026-05-03/05".
fn ranges(tape: &Tape<'_>, at: usize, put: &mut dyn FnMut(Date, Date, usize)) {
    let has_ending = |at: usize| tape.gap(at).is_empty() && ENDINGS.contains(&tape.word(at + 1));
    let with_ending = |at: usize| at + usize::from(has_ending(at));
    if let Some(day) = tape.number(at, 2)
        && let Some(last) = joined(tape, with_ending(at))
    {
        day_first(tape, last, &mut |(year, month, until), end| {
            put(Date { year, month, day: Some(day) }, Date { year, month, day: until }, end);
        });
    }
    month_first(tape, at, &mut |(year, month, day), last| {
        let Some(until) = joined(tape, last).filter(|_| day.is_some() && year.is_none()) else { return };
        let is_time = matches!(tape.word(until + 1), "am" | "pm" | "uhr") || tape.gap(until) == ":";
        let end = with_ending(until);
        let Some(last_day) = tape.number(until, 2).filter(|_| !is_time) else { return };
        let year = tape.year(end + 1).filter(|_| tape.is_near(end));
        let end = end + usize::from(year.is_some());
        put(Date { year, month, day }, Date { year, month, day: Some(last_day) }, end);
    });
    let mut iso = None;
    numeric(tape, at, &mut |date, last| iso = tape.year(at).map(|_| (date, last)));
    if let Some(((year, month, day @ Some(_)), last)) = iso
        && let Some(next) = joined(tape, last)
    {
        let from = next + usize::from(tape.year(next).is_some());
        let number = |at: usize| tape.number(at, 2).filter(|_| tape.word(at).len() == 2);
        let date = Date { year, month, day };
        match (number(from), number(from + 1).filter(|_| tape.gap(from) == "-")) {
            (Some(month), until @ Some(_)) => {
                put(date, Date { year: tape.year(next).or(year), month, day: until }, from + 1);
            }
            (until @ Some(_), None) if from == next => put(date, Date { year, month, day: until }, from),
            _ => {}
        }
    }
}

type Put<'p> = &'p mut dyn FnMut((Option<u32>, u32, Option<u32>), usize);

fn compact(tape: &Tape<'_>, at: usize, put: Put<'_>) {
    if let Some(number) = tape.number(at, 8).filter(|number| (19_000_101..=21_001_231).contains(number)) {
        put((Some(number / 10_000), number / 100 % 100, Some(number % 100)), at);
    }
}

fn numeric(tape: &Tape<'_>, at: usize, put: Put<'_>) {
    let is_joint = |gap: &str| matches!(gap, "-" | "/" | "." | ". " | "\u{2010}" | "\u{2011}" | "\u{2013}");
    if !is_joint(tape.gap(at)) || (at > 0 && is_joint(tape.gap(at - 1)) && tape.number(at - 1, 8).is_some()) {
        return;
    }
    let (Some(first), Some(second)) = (tape.number(at, 4), tape.number(at + 1, 4)) else { return };
    let third = tape.number(at + 2, 4).filter(|_| is_joint(tape.gap(at + 1)) && tape.word(at + 1).len() <= 2);
    let short = |at: usize| tape.word(at).len() <= 2;
    match third {
        Some(day) if tape.year(at).is_some() && short(at + 2) => put((Some(first), second, Some(day)), at + 2),
        Some(year) if short(at) && (tape.year(at + 2).is_some() || short(at + 2)) => {
            let year = Some(if year < 100 { 2000 + year } else { year });
            put((year, second, Some(first)), at + 2);
            put((year, first, Some(second)), at + 2);
        }
        None if tape.year(at).is_some() && is_short_month(tape, at) => put((Some(first), second, None), at + 1),
        None if tape.year(at).is_some() => {}
        None if tape.year(at + 1).is_some() && short(at) => put((Some(second), first, None), at + 1),
        None if short(at) && short(at + 1) && tape.gap(at) == "/" => {
            put((None, first, Some(second)), at + 1);
            put((None, second, Some(first)), at + 1);
        }
        None if short(at) && short(at + 1) && tape.gap(at).starts_with('.') && tape.gap(at + 1).starts_with('.') => {
            put((None, second, Some(first)), at + 1);
        }
        _ => {}
    }
}

/// Whether a year goes on as "2026-03".
fn is_short_month(tape: &Tape<'_>, at: usize) -> bool {
    tape.word(at + 1).len() == 2 && matches!(tape.gap(at), "-" | "/" | ".")
}

fn ideographic(tape: &Tape<'_>, at: usize, put: Put<'_>) {
    let year = tape.year(at).filter(|_| tape.word(at + 1) == "年");
    let from = if year.is_some() { at + 2 } else { at };
    let is_inner = at > 1 && tape.word(at - 1) == "年";
    let Some(month) = tape.number(from, 2).filter(|_| tape.word(from + 1) == "月" && (year.is_some() || !is_inner))
    else {
        return;
    };
    match tape.number(from + 2, 2) {
        Some(day) => put((year, month, Some(day)), from + 2),
        None if year.is_some() => put((year, month, None), from + 1),
        None => {}
    }
}

/// "March 4th, 2026", "March 2026".
fn month_first(tape: &Tape<'_>, at: usize, put: Put<'_>) {
    let Some(month) = month_of(tape.word(at)).filter(|_| tape.is_near(at)) else { return };
    if let Some(year) = tape.year(at + 1) {
        put((Some(year), month, None), at + 1);
        return;
    }
    let from = tape.skip(at + 1, &["the", "de", "of"]);
    if let Some(year) = tape.year(from) {
        put((Some(year), month, None), from);
    }
    let Some(day) = tape.number(from, 2) else { return };
    let mut last = from;
    if ENDINGS.contains(&tape.word(last + 1)) && tape.gap(last).is_empty() {
        last += 1;
    }
    let year = tape.year(last + 1).filter(|_| tape.is_near(last));
    put((year, month, Some(day)), last + usize::from(year.is_some()));
}

/// "4th of March 2026", "4. März".
fn day_first(tape: &Tape<'_>, at: usize, put: Put<'_>) {
    let Some(day) = tape.number(at, 2).filter(|_| tape.is_near(at)) else { return };
    let next = if tape.gap(at).is_empty() { tape.skip(at + 1, &ENDINGS) } else { at + 1 };
    let name = tape.skip(next, &OF);
    let Some(month) = month_of(tape.word(name)) else { return };
    let from = tape.skip(name + 1, &["de", "of", "del", "do"]);
    let year = tape.year(from).filter(|_| tape.is_near(name));
    put((year, month, Some(day)), if year.is_some() { from } else { name });
}

/// Bytes around a place that are read again to see what stands there.
const AROUND: usize = 24;

/// The text around a span, without torn words, and where it begins.
pub(crate) fn around(text: &str, (start, end): (usize, usize)) -> (&str, usize) {
    let mut from = start.saturating_sub(AROUND);
    while from < start && !text.is_char_boundary(from) {
        from += 1;
    }
    let is_torn = text.get(..from).and_then(|before| before.chars().next_back()).is_some_and(char::is_alphanumeric);
    if is_torn {
        let rest = text.get(from..start).unwrap_or_default();
        from += rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
    }
    let mut to = (end + AROUND).min(text.len());
    while to < text.len() && !text.is_char_boundary(to) {
        to += 1;
    }
    let after = text.get(to..).unwrap_or_default().chars();
    to += after.take(AROUND).take_while(|c| c.is_alphanumeric()).map(char::len_utf8).sum::<usize>();
    (text.get(from..to).unwrap_or_default(), from)
}

/// Whether the signs around a place show at once that it is a time or another date: a table may have hundreds of them.
fn is_other(text: &str, (start, end): (usize, usize), date: Date) -> bool {
    const JOINTS: [char; 3] = ['-', '/', '.'];
    let (Some(before), Some(slice), Some(after)) = (text.get(..start), text.get(start..end), text.get(end..)) else {
        return true;
    };
    let Some(year) = date.year.map(|year| year.to_string()) else { return slice.contains(':') };
    let is_year = |digits: &str| digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_other_year = |digits: Option<&str>| digits.is_some_and(|digits| is_year(digits) && digits != year);
    let (left, right) = (before.strip_suffix(JOINTS), after.strip_prefix(JOINTS));
    let has_day = || right.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    slice.contains(':')
        || is_other_year(left.and_then(|left| left.get(left.len().checked_sub(4)?..)))
        || is_other_year(right.and_then(|right| right.get(..4)))
        // "2026-03" in "2026-03-14"
        || (date.day.is_some() && slice.len() <= 7 && slice.starts_with(&year) && has_day())
}

impl Look<'_> {
    /// The rows in which a date may be written.
    fn rows_of_date(&self, scope: Scope, date: Date) -> Vec<String> {
        let padded = |number: u32| if number < 10 { format!("{number}|0{number}") } else { number.to_string() };
        let month = padded(date.month);
        let mut rows = Vec::new();
        if let Some(year) = date.year {
            rows.extend([format!("{year} {month}"), format!("{month} {year}"), format!("{year} 年 {month} 月")]);
        }
        if let Some(day) = date.day.map(padded) {
            rows.extend([format!("{month} {day}"), format!("{day} {month}"), format!("{month} 月 {day}")]);
        }
        if let (Some(year), Some(day)) = (date.year, date.day) {
            rows.push(format!("{year}{:02}{day:02}", date.month));
        }
        let names: Vec<&str> = month_names(date.month).split('|').filter(|name| self.has(scope, name)).collect();
        if names.is_empty() {
            return rows;
        }
        let name = names.join("|");
        if let Some(year) = date.year {
            rows.extend([format!("{name} {year}"), format!("{name} of|de {year}")]);
        }
        if let Some(number) = date.day {
            let (day, endings) = (padded(number), ENDINGS.join("|"));
            rows.extend([format!("{name} {day}"), format!("{name} the {day}")]);
            rows.extend([format!("{day} {name}"), format!("{day} of|de|di {name}")]);
            rows.extend([format!("{number} {endings} {name}"), format!("{number} {endings} of|de {name}")]);
        }
        rows
    }

    /// Where a date stands in any form.
    pub(crate) fn date(&mut self, scope: Scope, date: Date) -> Vec<Spot> {
        let mut spots = Vec::new();
        for row in self.rows_of_date(scope, date) {
            spots.extend(self.row(scope, &row, &mut |text, span| {
                if is_other(text, span, date) {
                    return None;
                }
                let (near, from) = around(text, span);
                let mut readings = read(near);
                readings.retain(|reading| from + reading.start < span.1 && from + reading.end > span.0);
                // "March 2026" is no date of its own in "5 March 2026".
                let longest = readings.iter().map(|reading| reading.end - reading.start).max()?;
                let is_it = |reading: &&Reading| reading.end - reading.start == longest && reading.names(date);
                let reading = readings.iter().find(is_it)?;
                Some((from + reading.start, from + reading.end))
            }));
        }
        if spots.is_empty() { self.in_ranges(scope, date) } else { spots }
    }

    /// Where a day is the first or the last one of several: the month stands beside the other one.
    fn in_ranges(&mut self, scope: Scope, date: Date) -> Vec<Spot> {
        let Some(month) = Some(date.month).filter(|_| date.day.is_some()) else { return Vec::new() };
        let names: Vec<&str> = month_names(month).split('|').filter(|name| self.has(scope, name)).collect();
        let digits = date.year.map(|year| format!("{year} {month}|{month:02}"));
        let mut spots = Vec::new();
        for row in Some(names.join("|")).filter(|names| !names.is_empty()).into_iter().chain(digits) {
            spots.extend(self.row(scope, &row, &mut |text, span| {
                let (near, from) = around(text, span);
                if !near.bytes().any(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                let is_here = |reading: &Reading| from + reading.start < span.1 && from + reading.end > span.0;
                let is_it = |reading: &Reading| reading.until.is_some() && reading.names(date) && is_here(reading);
                let reading = read(near).into_iter().find(is_it)?;
                Some((from + reading.start, from + reading.end))
            }));
        }
        spots
    }

    /// Where a date of the value stands; of several days, where both of them do.
    pub(crate) fn reading(&mut self, scope: Scope, reading: &Reading) -> Vec<Spot> {
        let mut spots = self.date(scope, reading.date);
        if let Some(until) = reading.until.filter(|_| !spots.is_empty()) {
            let last = self.date(scope, until);
            if last.is_empty() {
                return last;
            }
            spots.extend(last);
        }
        spots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(u32, u32, u32)> {
        let show = |date: Date| (date.year.unwrap_or(0), date.month, date.day.unwrap_or(0));
        let mut found: Vec<_> = read(text).into_iter().map(|reading| show(reading.date)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn dates_have_many_forms() {
        for text in [
            "2026-03-14",
            "14.3.2026",
            "March 14th, 2026",
            "14 March 2026",
            "am 14. März 2026",
            "2026年3月14日",
            "the 14th of March 2026",
            "14 de marzo de 2026",
            "20260314",
            "Mar 14 2026",
            "03/14/2026",
        ] {
            assert!(of(text).contains(&(2026, 3, 14)), "{text}: {:?}", of(text));
        }
        assert_eq!(of("03/04/2026"), [(2026, 3, 4), (2026, 4, 3)]);
        assert_eq!(of("3/14"), [(0, 3, 14)]);
        assert_eq!(of("March 2026"), [(2026, 3, 0)]);
        assert_eq!(of("version 12.34.56.78"), []);
        for text in
            ["3-5 May 2026", "May 3rd to 5th, 2026", "2026-05-03/05", "3.\u{2013}5. Mai 2026", "2026-05-03/2026-05-05"]
        {
            let day = |day| Date { year: Some(2026), month: 5, day: Some(day) };
            let is_both = |reading: &Reading| reading.date == day(3) && reading.until == Some(day(5));
            assert!(read(text).iter().any(is_both), "{text}: {:?}", read(text));
        }
        assert!(read("3 to 5 people in May").iter().all(|reading| reading.until.is_none()));
        assert_eq!(of("a room for 14 people"), []);
    }
}
