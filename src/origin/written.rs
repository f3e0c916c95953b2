//! Numbers as they stand in a text: groups of digits with what separates them.

use super::number::Decimal;
use super::token::{digit, is_single};

/// A number that is written somewhere: its value, and where it ends.
pub(crate) struct Reading {
    pub(crate) value: Decimal,
    pub(crate) end: usize,
}

/// Digits in a written number, and what separates them from the digits before.
struct Group {
    separator: Option<char>,
    digits: String,
    start: usize,
    end: usize,
}

const SEPARATORS: [char; 8] = [',', '.', '\'', '’', '_', '\u{a0}', '\u{202f}', ' '];
/// Groups of digits in one number.
const GROUPS: usize = 12;

fn digits_at(text: &str, start: usize) -> (String, usize) {
    let rest = text.get(start..).unwrap_or_default();
    let mut end = start;
    let digits = rest.chars().map_while(|c| digit(c).inspect(|_| end += c.len_utf8())).collect();
    (digits, end)
}

/// Whether a character joins the digits before it with those behind it; a space does for three digits only.
fn joins(separator: char, next: &str) -> bool {
    SEPARATORS.contains(&separator) && (next.len() == 3 || !matches!(separator, ' ' | '\u{a0}' | '\u{202f}'))
}

/// Where the number begins that has the digits at `start`.
fn literal_start(text: &str, start: usize) -> usize {
    let mut at = start;
    for _ in 0..GROUPS {
        let before = text.get(..at).unwrap_or_default();
        let Some(separator) = before.chars().next_back() else { return at };
        let before = before.strip_suffix(separator).unwrap_or_default();
        let digits = before.trim_end_matches(|c| digit(c).is_some());
        if digits.len() == before.len() || !joins(separator, &digits_at(text, at).0) {
            return at;
        }
        at = digits.len();
    }
    at
}

fn groups(text: &str, mut start: usize) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut separator = None;
    while groups.len() < 2 * GROUPS {
        let (digits, end) = digits_at(text, start);
        if digits.is_empty() || separator.is_some_and(|separator| !joins(separator, &digits)) {
            break;
        }
        groups.push(Group { separator, digits, start, end });
        separator = text.get(end..).and_then(|rest| rest.chars().next());
        start = end + separator.map_or(0, char::len_utf8);
    }
    groups
}

/// The numbers that begin with the digits at `start`.
pub(crate) fn readings(text: &str, start: usize) -> Vec<Reading> {
    let groups = groups(text, literal_start(text, start));
    let mut found = Vec::new();
    let Some(at) = groups.iter().position(|group| group.start == start) else { return found };
    let later = groups.get(at + 1..).unwrap_or_default();
    let Some(own) = groups.get(at) else { return found };
    let dots = groups.iter().filter(|group| group.separator == Some('.')).count();
    let is_grouped = groups.iter().skip(1).all(|group| group.digits.len() == 3);
    // "15.03.2026" and "10.0.0.1" are lists, "1.234.567" is a number, and so is "1.5".
    let is_list = dots > 1 && !is_grouped;
    let next = later.first();
    if is_list || (own.separator != Some('.') && next.is_none_or(|next| next.separator != Some('.'))) {
        found.push(Reading { value: Decimal::new(&own.digits, ""), end: own.end });
    }
    if let Some(next) = next.filter(|_| !is_list && own.separator != Some('.')) {
        let commas = groups.iter().filter(|group| group.separator == Some(',')).count();
        if next.separator == Some('.') || (next.separator == Some(',') && commas == 1 && dots == 0) {
            found.push(Reading { value: Decimal::new(&own.digits, &next.digits), end: next.end });
        }
    }
    if at == 0 && own.digits.len() <= 3 {
        found.extend(grouped(own, later));
    }
    if at == 0 && own.digits.len() <= 9 && text.get(..own.start).is_some_and(|before| before.ends_with('.')) {
        // ".5" is not 5.
        found = vec![Reading { value: Decimal::new("0", &own.digits), end: own.end }];
    }
    found.into_iter().map(|reading| with_exponent(text, reading)).collect()
}

/// "1,234,567", "1.234", "12,34,567", each also with a decimal part.
fn grouped(own: &Group, later: &[Group]) -> Vec<Reading> {
    let mut found = Vec::new();
    let Some(separator) = later.first().and_then(|group| group.separator) else { return found };
    let same = later.iter().take_while(|group| group.separator == Some(separator)).count();
    let (run, rest) = later.split_at_checked(same).unwrap_or_default();
    let is_last = |at: usize| at + 1 == run.len();
    let fits = |(at, group): (usize, &Group)| match group.digits.len() {
        3 => true,
        2 => separator == ',' && !is_last(at),
        _ => false,
    };
    if !run.iter().enumerate().all(fits) {
        return found;
    }
    let whole = run.iter().fold(own.digits.clone(), |whole, group| whole + &group.digits);
    let end = run.last().map_or(own.end, |group| group.end);
    match rest.first() {
        Some(last) if rest.len() == 1 && matches!(last.separator, Some('.' | ',')) => {
            found.push(Reading { value: Decimal::new(&whole, &last.digits), end: last.end });
        }
        None => found.push(Reading { value: Decimal::new(&whole, ""), end }),
        Some(_) => {}
    }
    found
}

/// The one number in digits in a short text, and where it stands.
pub(crate) fn written(text: &str) -> Option<(Decimal, (usize, usize))> {
    let start = text.find(|c| digit(c).is_some())?;
    let reading = readings(text, start).into_iter().max_by_key(|reading| reading.end)?;
    let (before, after) = (text.get(..start)?, text.get(reading.end..)?);
    let value = Decimal { is_negative: before.trim_start() == "-", ..reading.value };
    // "RB-44" is an id.
    let is_joined = |side: &str, is_end: bool| {
        let mut near = side.chars().filter(|c| *c != ' ').take(2).collect::<Vec<_>>();
        if is_end {
            near = side.chars().rev().take(2).collect();
        }
        matches!(near.as_slice(), ['-' | '_' | '.' | '/', next] if next.is_alphabetic())
    };
    let is_number = is_free(text, start, reading.end) && !is_joined(before, true) && !is_joined(after, false);
    (is_number && value.is_short()).then_some((value, (start, reading.end)))
}

fn with_exponent(text: &str, reading: Reading) -> Reading {
    let rest = text.get(reading.end..).unwrap_or_default();
    let Some(power) = rest.strip_prefix(['e', 'E']) else { return reading };
    let unsigned = power.strip_prefix(['+', '-']).unwrap_or(power);
    let length = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let end = text.len() - unsigned.len() + length;
    match unsigned.get(..length).and_then(|digits| digits.parse::<i32>().ok()) {
        Some(size) if size < 300 => {
            let size = if power.starts_with('-') { -size } else { size };
            Reading { value: reading.value.shifted(size), end }
        }
        _ => reading,
    }
}

/// What may stand at a number without a space: units, currencies, endings of ordinals.
const BESIDE: [&str; 92] = [
    "st", "nd", "rd", "th", "am", "pm", "a", "p", "k", "m", "mn", "mio", "bn", "b", "t", "x", "km", "kg", "g", "mg",
    "ml", "l", "cl", "dl", "cm", "mm", "nm", "mi", "ft", "in", "oz", "lb", "lbs", "h", "hr", "hrs", "min", "mins", "s",
    "sec", "secs", "ms", "d", "y", "yr", "yrs", "w", "kw", "kwh", "mw", "v", "gb", "mb", "tb", "kb", "px", "pt", "hz",
    "khz", "mhz", "ghz", "c", "f", "n", "j", "pa", "mph", "kmh", "kph", "er", "e", "ers", "eme", "ste", "de", "o", "º",
    "usd", "eur", "gbp", "chf", "jpy", "inr", "cad", "aud", "cny", "krw", "brl", "mxn", "rub", "bps", "pct",
];
const BEFORE: [&str; 16] =
    ["usd", "eur", "gbp", "chf", "jpy", "inr", "cad", "aud", "cny", "krw", "brl", "mxn", "rub", "rs", "r", "x"];

/// Whether a word is the unit or currency of a number.
pub(crate) fn is_unit(word: &str) -> bool {
    BESIDE.contains(&word) || BEFORE.contains(&word)
}

/// Whether a number that stands from `start` to `end` is one, and no part of an identifier.
pub(crate) fn is_free(text: &str, start: usize, end: usize) -> bool {
    let is_letter = |c: &char| c.is_alphabetic() && !is_single(*c) && !matches!(u32::from(*c), 0xac00..=0xd7a3);
    let after: String = text.get(end..).unwrap_or_default().chars().take_while(is_letter).take(8).collect();
    let before: String = text.get(..start).unwrap_or_default().chars().rev().take_while(is_letter).take(8).collect();
    let before: String = before.chars().rev().collect();
    let fits = |word: &str, known: &[&str]| word.is_empty() || known.contains(&word.to_lowercase().as_str());
    (after.is_empty() || before.is_empty()) && fits(&after, &BESIDE) && fits(&before, &BEFORE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let show = |value: Decimal| format!("{}.{}", value.whole, value.fraction);
        let mut found: Vec<String> = readings(text, 0).into_iter().map(|reading| show(reading.value)).collect();
        found.sort();
        found.dedup();
        found
    }

    #[test]
    fn digits_have_all_readings() {
        assert_eq!(of("1,234.5"), ["1.", "1234.5"]);
        assert_eq!(of("1.234,5"), ["1234.5", "1.234"].into_iter().rev().collect::<Vec<_>>());
        assert_eq!(of("5.0"), ["5."]);
        assert_eq!(of("3,14"), ["3.", "3.14"]);
        assert_eq!(of("12,34,567"), ["12.", "1234567."]);
        assert_eq!(of("1e6"), ["1000000."]);
        assert_eq!(of("2.5e-3 m"), [".0025", "0.0025"].into_iter().skip(1).collect::<Vec<_>>());
        assert_eq!(of("15.03.2026"), ["15."]);
        assert_eq!(of("12 000 and"), ["12.", "12000."]);
    }

    #[test]
    fn numbers_in_identifiers_are_none() {
        assert!(!is_free("Q77", 1, 3) && !is_free("77abc", 0, 2) && !is_free("x1y", 1, 2));
        assert!(is_free("77km", 0, 2) && is_free("USD50", 3, 5) && is_free("5月", 0, 1) && is_free("3rd", 0, 1));
    }
}
