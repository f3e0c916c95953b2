//! Times of day.

use super::date::{Tape, around};
use super::look::{Look, Scope, Spot};
use super::numeral::{cardinals, spoken};
use super::token::Words;
use std::fmt::Write as _;

/// A time of day in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) hour: u32,
    pub(crate) minute: u32,
    /// Whether it can't be twelve hours later or earlier.
    is_certain: bool,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Reading {
    fn agrees(self, other: Self) -> bool {
        let same =
            self.hour == other.hour || (!(self.is_certain && other.is_certain) && self.hour % 12 == other.hour % 12);
        same && self.minute == other.minute
    }
}

const NOON: [&str; 6] = ["noon", "midday", "mittag", "midi", "mediodia", "mezzogiorno"];
const MIDNIGHT: [&str; 5] = ["midnight", "mitternacht", "minuit", "medianoche", "mezzanotte"];
const HOURS: [&str; 8] = ["uhr", "h", "heures", "horas", "ore", "uur", "点", "時"];
const LATE: [&str; 4] = ["afternoon", "evening", "night", "tonight"];

/// All times of a text.
pub(crate) fn read(text: &str) -> Vec<Reading> {
    let tape = Tape::new(text);
    let mut found = Vec::new();
    for at in 0..tape.len() {
        let (start, word) = (tape.start(at), tape.word(at));
        if NOON.contains(&word) || MIDNIGHT.contains(&word) {
            let hour = if NOON.contains(&word) { 12 } else { 0 };
            found.push(Reading { hour, minute: 0, is_certain: true, start, end: tape.end(at) });
        }
        let is_inner = at > 0 && tape.gap(at - 1) == ":" && tape.number(at - 1, 2).is_some();
        if let Some(hour) = tape.number(at, 2).filter(|hour| *hour < 25 && !is_inner) {
            found.extend(clock(&tape, at, hour));
        }
        found.extend(in_words(&tape, at));
    }
    found
}

/// The minutes behind an hour, if there are any, and the last token.
fn minutes(tape: &Tape<'_>, at: usize) -> (Option<u32>, usize) {
    let minute = |at: usize| tape.number(at, 2).filter(|minute| *minute < 60 && tape.word(at).len() == 2);
    let mut found = (None, at);
    if matches!(tape.gap(at), ":" | "." | "\u{ff1a}") {
        found = (minute(at + 1), at + 1);
    } else if tape.gap(at).is_empty() && matches!(tape.word(at + 1), "h" | "点" | "時") {
        found = (minute(at + 2), at + 2);
    }
    match found {
        (Some(minute), last) if tape.gap(last) == ":" && tape.number(last + 1, 2).is_some() => (Some(minute), last + 1),
        (None, _) => (None, at),
        found => found,
    }
}

/// Which half of the day the words behind a time say, and the last of these words.
fn half(tape: &Tape<'_>, last: usize) -> Option<(bool, usize)> {
    if tape.gap(last).trim().len() > usize::from(tape.gap(last).starts_with(',')) {
        return None;
    }
    let (next, then) = (tape.word(last + 1), tape.word(last + 2));
    match next {
        "am" | "pm" => Some((next == "pm", last + 1)),
        "a" | "p" if then == "m" && tape.gap(last + 1) == "." => Some((next == "p", last + 2)),
        "in" if then == "the" && LATE.contains(&tape.word(last + 3)) => Some((true, last + 3)),
        "in" if then == "the" && tape.word(last + 3) == "morning" => Some((false, last + 3)),
        "at" if then == "night" => Some((true, last + 2)),
        _ if LATE.contains(&next) => Some((true, last + 1)),
        _ => None,
    }
}

fn clock(tape: &Tape<'_>, at: usize, hour: u32) -> Option<Reading> {
    let (minute, mut last) = minutes(tape, at);
    let is_dotted = minute.is_some() && tape.gap(at) == ".";
    let mut is_named = minute.is_some() && !is_dotted;
    let from = if HOURS.contains(&tape.word(last + 1)) || tape.word(last + 1) == "o" && tape.word(last + 2) == "clock" {
        is_named = true;
        last + if tape.word(last + 1) == "o" { 2 } else { 1 }
    } else {
        last
    };
    let half = half(tape, from).filter(|_| hour <= 12 || minute.is_some());
    if half.is_none() && !is_named {
        return None;
    }
    last = half.map_or(from, |(_, last)| last);
    let (hour, is_certain) = match half {
        Some((true, _)) if hour < 12 => (hour + 12, true),
        Some((false, _)) if hour == 12 => (0, true),
        Some(_) => (hour, true),
        None => (hour % 24, hour > 12 || tape.word(at).starts_with('0') || hour == 24),
    };
    Some(Reading { hour, minute: minute.unwrap_or(0), is_certain, start: tape.start(at), end: tape.end(last) })
}

const PAST: [&str; 2] = ["past", "after"];
const BEFORE: [&str; 4] = ["to", "before", "till", "til"];

/// A number below 60 in words or digits that is no part of a longer one, and its last token.
fn small(tape: &Tape<'_>, at: usize) -> Option<(u32, usize)> {
    let is_beside = |at: usize| matches!(tape.gap(at), " " | "-" | "\u{a0}");
    let of_words = |first: usize, last: usize| {
        let words = (first..=last).map(|at| tape.word(at)).collect::<Vec<_>>().join(" ");
        spoken(&Words::of(&words)).and_then(|number| number.small()).filter(|number| *number < 60)
    };
    if let Some(number) = tape.number(at, 2) {
        return Some((number, at));
    }
    let single = of_words(at, at)?;
    // "five" in "twenty five" is no number of its own.
    let is_inner = at > 0 && is_beside(at - 1) && of_words(at - 1, at).is_some_and(|both| both > 20 && single < 10);
    let both =
        Some(at + 1).filter(|_| single >= 20 && is_beside(at)).and_then(|last| Some((of_words(at, last)?, last)));
    (!is_inner).then(|| both.filter(|(number, _)| number % 10 > 0).unwrap_or((single, at)))
}

/// "half past five", "ten minutes to 6", "five thirty", "five o'clock": an hour of twelve, as people say it.
fn in_words(tape: &Tape<'_>, at: usize) -> Option<Reading> {
    let hour = |at: usize| small(tape, at).filter(|(hour, _)| (1..=12).contains(hour));
    let is_spaced = |at: usize| tape.gap(at).trim().is_empty();
    let share = match tape.word(at) {
        "half" | "halb" => Some((30, at)),
        "quarter" => Some((15, at)),
        _ => small(tape, at),
    };
    let counted = share.filter(|(minute, last)| *minute < 60 && is_spaced(*last)).and_then(|(minute, last)| {
        let joint = tape.skip(last + 1, &["minutes", "minute"]);
        let (hour, end) = hour(joint + 1)?;
        let is_past = PAST.contains(&tape.word(joint));
        // "5 to 6" are two numbers.
        let is_before = BEFORE.contains(&tape.word(joint)) && (tape.number(at, 2).is_none() || joint > last + 1);
        (is_past || is_before).then_some(if is_past { (hour, minute, end) } else { (hour + 11, 60 - minute, end) })
    });
    let said = counted.or_else(|| {
        if tape.word(at) == "halb" {
            let is_next = |hour: &u32| {
                cardinals(*hour).iter().any(|names| names.split('|').any(|name| name == tape.word(at + 1)))
            };
            return (1..=12).find(is_next).map(|hour| (hour + 11, 30, at + 1));
        }
        // In digits, "5 30" is no time; and "six" in "ten to six" is that of the whole.
        let is_counted = || {
            let joint = at.checked_sub(1).map(|joint| tape.word(joint)).unwrap_or_default();
            let share = at.checked_sub(2).map(|share| tape.word(share)).unwrap_or_default();
            (PAST.contains(&joint) || BEFORE.contains(&joint))
                && (matches!(share, "half" | "quarter" | "minutes") || spoken(&Words::of(share)).is_some())
        };
        let (hour, last) = hour(at).filter(|_| tape.number(at, 2).is_none() && !is_counted())?;
        if tape.word(last + 1) == "o" && tape.word(last + 2) == "clock" {
            return Some((hour, 0, last + 2));
        }
        let from = tape.skip(last + 1, &["oh", "o"]);
        let minutes = small(tape, from).filter(|(minute, _)| {
            is_spaced(last) && tape.number(from, 2).is_none() && (*minute >= 10 || from > last + 1)
        });
        let has_half = || half(tape, last).map(|_| (hour, 0, last));
        minutes.map(|(minute, end)| (hour, minute, end)).or_else(has_half)
    });
    let (hour, minute, last) = said?;
    let (hour, minute) = if minute == 60 { (hour + 1, 0) } else { (hour, minute) };
    let half = half(tape, last);
    let hour = hour % 12 + if half.is_some_and(|(is_late, _)| is_late) { 12 } else { 0 };
    let end = tape.end(half.map_or(last, |(_, last)| last));
    Some(Reading { hour, minute, is_certain: half.is_some(), start: tape.start(at), end })
}

/// The rows of words that a time may begin with, as people say it: "half past five".
fn rows_in_words(time: Reading) -> Vec<String> {
    let named = |hour: u32| {
        let hour = (hour + 11) % 12 + 1;
        format!("{hour}|{}", cardinals(hour).join("|"))
    };
    let (hour, next) = (named(time.hour), named(time.hour + 1));
    let word = |number: u32| cardinals(number).into_iter().next().unwrap_or_default();
    let (past, before) = (PAST.join("|"), BEFORE.join("|"));
    let mut rows = vec![format!("{hour} o clock")];
    let mut put = |share: &str, joint: &str, hour: &str| {
        rows.extend([format!("{share} {joint} {hour}"), format!("{share} minutes {joint} {hour}")]);
    };
    match time.minute {
        15 => put("quarter", &past, &hour),
        45 => put("quarter", &before, &next),
        30 => put("half", &past, &hour),
        _ => {}
    }
    if time.minute > 0 {
        for share in [time.minute.to_string(), word(time.minute)] {
            put(&share, &past, &hour);
        }
        for share in [(60 - time.minute).to_string(), word(60 - time.minute)] {
            put(&share, &before, &next);
        }
        let zero = if time.minute < 10 { "oh|o " } else { "" };
        rows.push(format!("{hour} {zero}{}", word(time.minute)));
    }
    if time.minute == 30 {
        rows.push(format!("halb {next}"));
    }
    let halves = format!("am|pm|a|p|in|at|{}", LATE.join("|"));
    rows.extend((time.minute == 0).then(|| format!("{hour} {halves}")));
    rows
}

/// The rows that a time may begin with.
fn rows(time: Reading) -> Vec<String> {
    let twelve = if time.hour.is_multiple_of(12) { 12 } else { time.hour % 12 };
    let (hour, minute) = (time.hour, time.minute);
    let mut hours = format!("{hour}|{hour:02}|{twelve}|{twelve:02}");
    if !time.is_certain {
        // Writing into a string has no failing case.
        let _ = write!(hours, "|{}", twelve + 12);
    }
    let mut rows = rows_in_words(time);
    rows.extend([format!("{hours} {minute:02}"), format!("{hours} h|点|時 {minute:02}")]);
    if minute == 0 {
        rows.push(format!("{hours} am|pm|a|p|o|in|at|{}|{}", HOURS.join("|"), LATE.join("|")));
        if hour.is_multiple_of(12) {
            rows.push(format!("{}|{}", NOON.join("|"), MIDNIGHT.join("|")));
        }
    }
    rows
}

impl Look<'_> {
    /// Where a time of day stands in any form.
    pub(crate) fn time(&mut self, scope: Scope, time: Reading) -> Vec<Spot> {
        let mut spots = Vec::new();
        for row in rows(time) {
            spots.extend(self.row(scope, &row, &mut |text, span| {
                let (near, from) = around(text, span);
                let is_here = |reading: &Reading| from + reading.start == span.0 && reading.agrees(time);
                let reading = read(near).into_iter().find(is_here)?;
                Some((from + reading.start, from + reading.end))
            }));
        }
        spots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(u32, u32)> {
        read(text).into_iter().map(|reading| (reading.hour, reading.minute)).collect()
    }

    #[test]
    fn times_have_many_forms() {
        for text in ["5 pm", "5pm", "17:00", "5 p.m.", "5:00 PM", "17 Uhr", "17h00", "5 in the afternoon", "17:00:30"] {
            assert_eq!(of(text), [(17, 0)], "{text}");
        }
        assert_eq!(of("at noon or 9:30"), [(12, 0), (9, 30)]);
        assert_eq!(of("12 am"), [(0, 0)]);
        assert_eq!(of("5 people and 3.50 euros"), []);
        for (text, time) in [
            ("half past five", (5, 30)),
            ("a quarter to six in the evening", (17, 45)),
            ("twenty-five past 5", (5, 25)),
            ("ten minutes before twelve", (11, 50)),
            ("five thirty pm", (17, 30)),
            ("nine oh five", (9, 5)),
            ("five o'clock", (5, 0)),
            ("halb sechs", (5, 30)),
            ("seven in the morning", (7, 0)),
            ("half past twelve", (0, 30)),
        ] {
            assert_eq!(of(text), [time], "{text}");
        }
        assert_eq!(of("half of twenty five rooms, five people, 5 to 6"), []);
    }
}
