//! The formats of texts in values that come from outside, as the types of programs read them: a time zone may be missing.

use super::describe::truncate;
use crate::reply::Value;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value as Json;

/// Characters of a wrong value in its message.
const SHOWN: usize = 60;

/// What is wrong with the formats of a value that has the type of the schema; `name` is that of the value.
pub(super) fn problems(schema: &Json, name: &str, value: &Value) -> Vec<String> {
    let Ok(json) = serde_json::from_str::<Json>(&value.to_json()) else { return Vec::new() };
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .with_format("date", is_date)
        .with_format("time", is_time)
        .with_format("date-time", is_date_time)
        .with_format("duration", is_duration)
        .with_format("uuid", is_uuid)
        .build(schema);
    let Ok(validator) = validator else { return Vec::new() };
    let problem = |error: jsonschema::ValidationError<'_>| {
        let place = format!("{name}{}", error.instance_path().as_str().replace('/', "."));
        let found = truncate(&error.instance().to_string(), SHOWN);
        match error.kind() {
            ValidationErrorKind::Format { format } => format!("'{place}' must be a {format}: got {found}"),
            _ => format!("'{place}' has the wrong format: got {found}"),
        }
    };
    validator.iter_errors(&json).map(problem).collect()
}

fn number(text: &str, digits: usize) -> Option<u32> {
    (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut next = |digits| parts.next().and_then(|part| number(part, digits));
    let (Some(year), Some(month), Some(day)) = (next(4), next(2), next(2)) else { return false };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    year > 0 && (1..=days).contains(&day)
}

fn is_time(text: &str) -> bool {
    let zone = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
    let (clock, zone) = text.split_at(zone);
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(clock, part)| (clock, Some(part)));
    let parts: Vec<Option<u32>> = clock.split(':').map(|part| number(part, 2)).collect();
    let is_clock = match parts[..] {
        [Some(hour), Some(minute)] => hour < 24 && minute < 60 && fraction.is_none(),
        [Some(hour), Some(minute), Some(second)] => hour < 24 && minute < 60 && second < 60,
        _ => false,
    };
    let is_fraction = fraction.is_none_or(|part| number(part, part.len()).is_some() && !part.is_empty());
    is_clock && is_fraction && is_zone(zone)
}

fn is_zone(text: &str) -> bool {
    let Some(offset) = text.strip_prefix(['+', '-']) else { return matches!(text, "" | "Z" | "z") };
    let digits = offset.replacen(':', "", 1);
    number(&digits, 4).is_some_and(|offset| offset / 100 < 24 && offset % 100 < 60)
}

fn is_date_time(text: &str) -> bool {
    text.split_once(['T', 't', ' ']).is_some_and(|(date, time)| is_date(date) && is_time(time))
}

/// As ISO 8601 writes it: `P1DT2H`, also with a sign.
fn is_duration(text: &str) -> bool {
    let Some(rest) = text.trim_start_matches(['+', '-']).strip_prefix('P') else { return false };
    let (days, clock) = rest.split_once('T').map_or((rest, None), |(days, clock)| (days, Some(clock)));
    let is_whole = |text: &str, units: &str| {
        let mut units = units.chars();
        text.split_inclusive(|character: char| character.is_ascii_alphabetic()).all(|part| {
            let amount = part.trim_end_matches(|character: char| character.is_ascii_alphabetic());
            let unit = part.strip_prefix(amount).and_then(|unit| unit.chars().next());
            let is_amount =
                amount.parse::<f64>().is_ok() && amount.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            is_amount && unit.is_some_and(|unit| units.any(|known| known == unit))
        })
    };
    let has_clock = clock.is_none_or(|clock| !clock.is_empty() && is_whole(clock, "HMS"));
    !rest.is_empty() && is_whole(days, "YMWD") && has_clock
}

fn is_uuid(text: &str) -> bool {
    let bare = text.strip_prefix("urn:uuid:").unwrap_or(text);
    let bare = bare.strip_prefix('{').and_then(|bare| bare.strip_suffix('}')).unwrap_or(bare);
    let digits = match bare.len() {
        36 => {
            let is_placed = |(position, byte): (usize, u8)| (byte == b'-') == matches!(position, 8 | 13 | 18 | 23);
            if !bare.bytes().enumerate().all(is_placed) {
                return false;
            }
            bare.replace('-', "")
        }
        _ => bare.to_owned(),
    };
    digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case = (fn(&str) -> bool, &'static [&'static str], &'static [&'static str]);

    #[test]
    fn texts_are_read_as_programs_read_them() {
        let cases: [Case; 5] = [
            (
                is_date,
                &["2024-02-29", "0001-01-01"],
                &["2023-02-29", "2024-13-01", "tomorrow", "2024-1-1", "2024-02-30T", ""],
            ),
            (
                is_time,
                &["10:00", "23:59:59.5", "10:00:00Z", "10:00+02:00", "10:00-0230"],
                &["24:00", "10", "10:00.5", "10:00:00.", "1:00", "10:00+2", "noon"],
            ),
            (
                is_date_time,
                &["2024-02-29T10:00", "2024-02-29 10:00:00+00:00"],
                &["2024-02-29", "2024-02-30T10:00", "now"],
            ),
            (is_duration, &["P1D", "PT2H30M", "P1DT0.5S", "-P3W"], &["P", "PT", "1 day", "P1", "PD", "P1H", "PT1M2H"]),
            (
                is_uuid,
                &["12345678-1234-1234-1234-123456789abc", "12345678123412341234123456789ABC"],
                &["12345678", "1234567-81234-1234-1234-123456789abc", "g2345678123412341234123456789abc"],
            ),
        ];
        for (check, right, wrong) in cases {
            assert_eq!(right.iter().filter(|text| !check(text)).collect::<Vec<_>>(), Vec::<&&str>::new());
            assert_eq!(wrong.iter().filter(|text| check(text)).collect::<Vec<_>>(), Vec::<&&str>::new());
        }
    }
}
