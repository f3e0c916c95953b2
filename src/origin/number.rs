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
const PERCENT: [&str; 10] =
    ["%", "percent", "per cent", "pct", "prozent", "procent", "por ciento", "per cento", "pour cent", "por cento"];
const SCALES: [(&str, i32); 33] = [
    ("hundred", 2),
    ("thousand", 3),
    ("k", 3),
    ("grand", 3),
    ("million", 6),
    ("millions", 6),
    ("m", 6),
    ("mn", 6),
    ("mio", 6),
    ("mil", 3),
    ("billion", 9),
    ("bn", 9),
    ("b", 9),
    ("trillion", 12),
    ("lakh", 5),
    ("lakhs", 5),
    ("crore", 7),
    ("tausend", 3),
    ("millionen", 6),
    ("mille", 3),
    ("millones", 6),
    ("milioni", 6),
    ("duizend", 3),
    ("miljoen", 6),
    ("milliarden", 9),
    ("milliarde", 9),
    ("milhoes", 6),
    ("milhao", 6),
    ("millon", 6),
    ("milione", 6),
    ("万", 4),
    ("萬", 4),
    ("億", 8),
];

fn rest_of(text: &str, end: usize) -> String {
    let rest = text.get(end..).unwrap_or_default().chars().take(16).collect::<String>();
    rest.trim_start_matches([' ', '-', '\u{a0}', '\u{202f}']).to_lowercase()
}

fn is_percent(text: &str, end: usize) -> bool {
    let rest = rest_of(text, end);
    rest.starts_with('％') || PERCENT.iter().any(|word| rest.starts_with(word))
}

/// Tokens that a number may be written with.
fn forms(value: &Decimal) -> Vec<Vec<String>> {
    let mut forms = vec![];
    let mut with_fraction = |whole: Vec<String>| {
        if value.fraction.is_empty() {
            forms.push(whole);
        } else {
            for zero in ["", "0"] {
                forms.push([whole.clone(), vec![format!("{}{zero}", value.fraction)]].concat());
            }
        }
    };
    let digits = &value.whole;
    with_fraction(vec![digits.clone()]);
    if digits.len() == 1 {
        with_fraction(vec![format!("0{digits}")]);
    }
    for (size, least) in [(3, 4), (2, 6)] {
        if digits.len() >= least {
            let (head, last) = digits.split_at(digits.len() - 3);
            let first = head.len() % size;
            let mut parts: Vec<String> =
                head.get(..first).filter(|part| !part.is_empty()).map(str::to_owned).into_iter().collect();
            let rest = head.get(first..).unwrap_or_default();
            parts.extend((0..rest.len()).step_by(size).filter_map(|at| rest.get(at..at + size)).map(str::to_owned));
            parts.push(last.to_owned());
            with_fraction(parts);
        }
    }
    if digits == "0" && !value.fraction.is_empty() {
        forms.push(vec![value.fraction.clone()]);
    }
    forms.extend(exponential(value));
    forms
}

/// "6.02e23" and its like, for large and small numbers.
fn exponential(value: &Decimal) -> Vec<Vec<String>> {
    let digits = format!("{}{}", value.whole, value.fraction);
    let lead = digits.len() - digits.trim_start_matches('0').len();
    let digits = digits.trim_matches('0');
    if digits.is_empty() || digits.len() > 20 || (value.whole.len() < 4 && lead < 3) {
        return Vec::new();
    }
    let power = value.whole.len().abs_diff(lead + 1).to_string();
    let (first, rest) = digits.split_at(1);
    let mut forms = vec![vec![first.to_owned(), "e".to_owned(), power.clone()]];
    if !rest.is_empty() {
        forms = vec![vec![first.to_owned(), rest.to_owned(), "e".to_owned(), power]];
    }
    forms
}

/// Denominators of fractions.
const PARTS: [u32; 13] = [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 32, 64, 100];

/// Decides on a number from its text, and where it begins and ends there.
type Accepts<'c> = &'c dyn Fn(&str, usize, usize) -> bool;

impl Look<'_> {
    /// Where a number stands in digits, and `accepts` the text behind it.
    pub(crate) fn digits(&mut self, scope: Scope, value: &Decimal, accepts: Accepts<'_>) -> Vec<Spot> {
        let mut spots = Vec::new();
        for form in forms(value) {
            let tokens: Vec<&str> = form.iter().map(String::as_str).collect();
            spots.extend(self.row(scope, &tokens, &mut |text, (start, _)| {
                let fits = |reading: &Reading| {
                    reading.value.is_same(value)
                        && is_free(text, start, reading.end)
                        && accepts(text, start, reading.end)
                };
                readings(text, start).into_iter().find(fits).map(|reading| (start, reading.end))
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
            look.digits(scope, &value.shifted(2), &|text, _, end| is_percent(text, end))
        };
        found(self.digits(scope, value, &|_, _, _| true), How::Number)
            .or_else(|| found(percent(self), How::Percent))
            .or_else(|| found(self.numerals(scope, value), How::Numeral))
            .or_else(|| found(self.scaled(scope, value), How::Scale))
            .or_else(|| found(self.fraction(scope, value), How::Fraction))
            .or_else(|| found(self.words_for(scope, value, numeral::months), How::Month))
            .or_else(|| found(self.words_for(scope, value, numeral::amounts), How::Numeral))
    }

    fn scaled(&mut self, scope: Scope, value: &Decimal) -> Vec<Spot> {
        let mut spots = Vec::new();
        let zeros = value.whole.len() - value.whole.trim_end_matches('0').len();
        // "1.2345 million" is usual, longer fractions are not.
        let fits =
            |power: i32| usize::try_from(power).is_ok_and(|power| zeros + 6 >= power && value.whole.len() > power);
        for (word, power) in SCALES.iter().filter(|(_, power)| value.fraction.is_empty() && fits(*power)) {
            if !self.has(scope, word) {
                continue;
            }
            let small = value.shifted(-power);
            for form in forms(&small) {
                let tokens: Vec<&str> = form.iter().map(String::as_str).chain([*word]).collect();
                spots.extend(self.row(scope, &tokens, &mut |text, (start, end)| {
                    let found = readings(text, start).into_iter().find(|reading| reading.value.is_same(&small))?;
                    let gap = text.get(found.end..end.checked_sub(word.len())?);
                    (is_free(text, start, found.end) && gap.is_none_or(|gap| gap.len() <= 2)).then_some((start, end))
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
            spots.extend(self.row(scope, &[&share, &of], &mut |text, (start, end)| {
                let slice = text.get(start..end)?;
                let is_free = |c: Option<char>| c.is_none_or(|c| c != '/' && digit(c).is_none());
                let (before, after) = (text.get(..start)?.chars().next_back(), text.get(end..)?.chars().next());
                (slice == format!("{share}/{of}") && is_free(before) && is_free(after)).then_some((start, end))
            }));
        }
        spots
    }

    fn numerals(&mut self, scope: Scope, value: &Decimal) -> Vec<Spot> {
        let Some(number) = value.small() else { return Vec::new() };
        let mut spots = Vec::new();
        for words in numeral::cardinals(number) {
            let tokens: Vec<&str> = words.iter().map(String::as_str).collect();
            spots.extend(self.row(scope, &tokens, &mut |_, span| Some(span)));
        }
        spots
    }

    fn words_for(&mut self, scope: Scope, value: &Decimal, words: fn(&Decimal) -> Vec<&'static str>) -> Vec<Spot> {
        let mut spots = Vec::new();
        for word in words(value) {
            spots.extend(self.row(scope, &[word], &mut |_, span| Some(span)));
        }
        spots
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
