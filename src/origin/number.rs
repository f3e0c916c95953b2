//! Numbers: equal by value, however they are written in digits.

use super::from::How;
use super::look::{Look, Scope, Spot};
use super::numeral;
use super::token::digit;
use super::written::{Reading, is_free, readings};
use serde_json::Number;

/// A number by its decimal digits, so that no digit is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub(crate) is_negative: bool,
    /// Without leading zeros; "0" for none.
    pub(crate) whole: String,
    /// Without trailing zeros.
    pub(crate) fraction: String,
}

/// Digits beyond which a number is not compared in other forms.
const DIGITS: usize = 60;

impl Decimal {
    pub(crate) fn new(whole: &str, fraction: &str) -> Self {
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        Self { is_negative: false, whole: whole.to_owned(), fraction: fraction.trim_end_matches('0').to_owned() }
    }

    pub(crate) fn of(number: &Number) -> Self {
        let text = match number.as_f64() {
            Some(float) if number.is_f64() => format!("{float}"),
            _ => number.to_string(),
        };
        let digits = text.trim_start_matches('-');
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        Self { is_negative: text.starts_with('-'), ..Self::new(whole, fraction) }
    }

    /// The number without its sign.
    pub(crate) fn text(&self) -> String {
        if self.fraction.is_empty() { self.whole.clone() } else { format!("{}.{}", self.whole, self.fraction) }
    }

    pub(crate) fn is_short(&self) -> bool {
        self.whole.len() + self.fraction.len() <= DIGITS
    }

    /// The number times a power of ten.
    pub(crate) fn shifted(&self, by: i32) -> Self {
        let point = i32::try_from(self.whole.len()).unwrap_or(0).saturating_add(by);
        let digits = format!("{}{}", self.whole, self.fraction);
        let length = i32::try_from(digits.len()).unwrap_or(0);
        let pad = |count: i32| "0".repeat(usize::try_from(count.clamp(0, 400)).unwrap_or(0));
        let digits = format!("{}{digits}{}", pad(-point), pad(point - length));
        let (whole, fraction) = digits.split_at(usize::try_from(point.clamp(0, 400)).unwrap_or(0).min(digits.len()));
        Self { is_negative: self.is_negative, ..Self::new(whole, fraction) }
    }

    /// The number as a whole one, if it is small enough.
    pub(crate) fn small(&self) -> Option<u32> {
        self.fraction.is_empty().then(|| self.whole.parse().ok()).flatten()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.whole == other.whole && self.fraction == other.fraction
    }
}

/// The words behind a number that make it a hundredth, or a power of ten.
const PERCENT: [&str; 11] = [
    "%",
    "％",
    "percent",
    "per cent",
    "pct",
    "prozent",
    "procent",
    "por ciento",
    "per cento",
    "pour cent",
    "por cento",
];
const SCALES: [(i32, &str); 9] = [
    (2, "hundred"),
    (3, "thousand|k|grand|mil|tausend|mille|duizend"),
    (4, "万|萬"),
    (5, "lakh|lakhs"),
    (6, "million|millions|m|mn|mio|millionen|millones|milioni|miljoen|milhoes|milhao|millon|milione"),
    (7, "crore"),
    (8, "億"),
    (9, "billion|bn|b|milliarden|milliarde"),
    (12, "trillion"),
];

/// The power of ten that a word such as "thousand" or "k" stands for.
pub(crate) fn scale(word: &str) -> Option<i32> {
    SCALES.iter().find(|(_, words)| words.split('|').any(|known| known == word)).map(|(power, _)| *power)
}

/// Where the sign or word ends that makes the number before it a hundredth.
fn percent_end(text: &str, end: usize) -> Option<usize> {
    let rest = text.get(end..)?;
    let rest = rest.trim_start_matches([' ', '-', '\u{a0}', '\u{202f}']);
    let start = text.len() - rest.len();
    let word = |word: &&str| rest.get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word));
    PERCENT.iter().find(|known| word(known)).map(|word| start + word.len())
}

/// Zeros that may stand in front of a number.
const ZEROS: usize = 5;

/// The rows in which a number may be written.
fn rows(value: &Decimal) -> Vec<String> {
    let Decimal { whole, fraction, .. } = value;
    let tail = if fraction.is_empty() { String::new() } else { format!(" {fraction}|{fraction}0") };
    // "07" and "Room 007": further zeros in front change nothing.
    let mut padded = whole.clone();
    for zeros in 1..=ZEROS {
        padded.extend(["|", &"0".repeat(zeros), whole.as_str()]);
    }
    let mut rows = vec![format!("{padded}{tail}")];
    for (size, least) in [(3, 4), (2, 6)] {
        if whole.len() >= least {
            rows.push(format!("{}{tail}", grouped(whole, size)));
        }
    }
    if whole == "0" && !fraction.is_empty() {
        rows.push(fraction.clone());
    }
    rows.extend(exponential(value));
    rows
}

/// Digits in groups: the last has three.
fn grouped(digits: &str, size: usize) -> String {
    let mut groups = String::new();
    for (at, digit) in digits.char_indices() {
        let left = digits.len() - at;
        if at > 0 && left >= 3 && (left - 3).is_multiple_of(size) {
            groups.push(' ');
        }
        groups.push(digit);
    }
    groups
}

/// "6.02e23" and its like, for large and small numbers.
fn exponential(value: &Decimal) -> Option<String> {
    let digits = format!("{}{}", value.whole, value.fraction);
    let lead = digits.len() - digits.trim_start_matches('0').len();
    let digits = digits.trim_matches('0');
    if digits.is_empty() || digits.len() > 20 || (value.whole.len() < 4 && lead < 3) {
        return None;
    }
    let power = value.whole.len().abs_diff(lead + 1);
    let (first, rest) = digits.split_at(1);
    Some(if rest.is_empty() { format!("{first} e {power}") } else { format!("{first} {rest} e {power}") })
}

/// Denominators of fractions.
const PARTS: [u32; 13] = [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 32, 64, 100];

/// Decides on a number from its text, and where it begins and ends there: where the words end that belong to it.
pub(crate) type Accepts<'c> = &'c dyn Fn(&str, usize, usize) -> Option<usize>;

impl Look<'_> {
    /// Where a number stands in digits, and `accepts` the text behind it.
    pub(crate) fn digits(&mut self, scope: Scope, value: &Decimal, accepts: Accepts<'_>) -> Vec<Spot> {
        let mut spots = Vec::new();
        for row in rows(value) {
            spots.extend(self.row(scope, &row, &mut |text, (start, _)| {
                let fits = |reading: &Reading| reading.value.is_same(value) && is_free(text, start, reading.end);
                let mut ends = readings(text, start).into_iter().filter(fits);
                ends.find_map(|reading| accepts(text, start, reading.end)).map(|end| (start, end))
            }));
        }
        spots
    }

    /// Where a number stands, and by which rule.
    pub(crate) fn number(&mut self, scope: Scope, value: &Decimal) -> Option<(Vec<Spot>, How)> {
        if !value.is_short() || self.is_blank(scope) {
            return None;
        }
        if value.is_negative {
            let unsigned = Decimal { is_negative: false, ..value.clone() };
            let (spots, how) = self.number(scope, &unsigned)?;
            let minus = |spot: &Spot| {
                let before = self.text(*spot).get(..spot.span.0).unwrap_or_default();
                let sign = before.strip_suffix(['-', '−']);
                sign.is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric()))
            };
            let with_sign: Vec<Spot> = spots.iter().filter(|spot| minus(spot)).copied().collect();
            return Some(if with_sign.is_empty() { (spots, How::Sign) } else { (with_sign, how) });
        }
        let found = |spots: Vec<Spot>, how| (!spots.is_empty()).then_some((spots, how));
        let percent = |look: &mut Self| {
            // Most numbers are no part of a hundred.
            if value.whole.len() > 2 || look.is_blank(scope) {
                return Vec::new();
            }
            look.digits(scope, &value.shifted(2), &|text, _, end| percent_end(text, end))
        };
        found(self.digits(scope, value, &|_, _, end| Some(end)), How::Number)
            .or_else(|| found(percent(self), How::Percent))
            .or_else(|| found(self.numerals(scope, value), How::Numeral))
            .or_else(|| found(self.scaled(scope, value), How::Scale))
            .or_else(|| found(self.fraction(scope, value), How::Fraction))
            .or_else(|| found(self.row(scope, numeral::months(value), &mut |_, span| Some(span)), How::Month))
            .or_else(|| found(self.row(scope, numeral::amounts(value), &mut |_, span| Some(span)), How::Numeral))
    }

    fn scaled(&mut self, scope: Scope, value: &Decimal) -> Vec<Spot> {
        let mut spots = Vec::new();
        let zeros = value.whole.len() - value.whole.trim_end_matches('0').len();
        // "1.2345 million" is usual, longer fractions are not.
        let fits =
            |power: i32| usize::try_from(power).is_ok_and(|power| zeros + 6 >= power && value.whole.len() > power);
        for (power, words) in SCALES.iter().filter(|(power, _)| value.fraction.is_empty() && fits(*power)) {
            if !words.split('|').any(|word| self.has(scope, word)) {
                continue;
            }
            let small = value.shifted(-power);
            for row in rows(&small) {
                spots.extend(self.row(scope, &format!("{row} {words}"), &mut |text, (start, end)| {
                    let found = readings(text, start).into_iter().find(|reading| reading.value.is_same(&small))?;
                    let rest = text.get(found.end..end).unwrap_or_default();
                    let gap = rest.len() - rest.trim_start_matches(|c: char| !c.is_alphanumeric()).len();
                    (is_free(text, start, found.end) && gap <= 2).then_some((start, end))
                }));
            }
        }
        spots
    }

    fn fraction(&mut self, scope: Scope, value: &Decimal) -> Vec<Spot> {
        let mut spots = Vec::new();
        if value.fraction.is_empty() || value.whole.len() > 3 {
            return spots;
        }
        let Ok(number) = format!("{}.{}", value.whole, value.fraction).parse::<f64>() else { return spots };
        for of in PARTS {
            let share = number * f64::from(of);
            if share < 1.0 || (share - share.round()).abs() > 1e-6 * share {
                continue;
            }
            let (share, of) = (format!("{share:.0}"), of.to_string());
            spots.extend(self.row(scope, &format!("{share} {of}"), &mut |text, (start, end)| {
                let slice = text.get(start..end)?;
                let is_free = |c: Option<char>| c.is_none_or(|c| c != '/' && digit(c).is_none());
                let (before, after) = (text.get(..start)?.chars().next_back(), text.get(end..)?.chars().next());
                (slice == format!("{share}/{of}") && is_free(before) && is_free(after)).then_some((start, end))
            }));
        }
        spots
    }

    fn numerals(&mut self, scope: Scope, value: &Decimal) -> Vec<Spot> {
        let rows = value.small().map(numeral::cardinals).unwrap_or_default();
        rows.iter().flat_map(|row| self.row(scope, row, &mut |_, span| Some(span))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifting_moves_the_point() {
        let show = |value: Decimal| format!("{}.{}", value.whole, value.fraction);
        assert_eq!(show(Decimal::new("0", "05").shifted(2)), "5.");
        assert_eq!(show(Decimal::new("5000", "").shifted(-3)), "5.");
        assert_eq!(show(Decimal::new("7", "5").shifted(-3)), "0.0075");
        assert_eq!(show(Decimal::new("7", "5").shifted(3)), "7500.");
    }
}
