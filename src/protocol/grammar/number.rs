//! Numbers between limits: in digits every one of them, with an exponent those of which that is certain.

use super::bounds;
use super::chars::CharSet;
use super::rules::Node;
use serde_json::{Map, Value as Json};

/// The limits that a schema sets.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::protocol) struct Limits {
    low: Option<Limit>,
    high: Option<Limit>,
    /// Whether only whole numbers are multiples of what the schema asks for; other multiples are left to the check.
    whole: bool,
}

#[derive(Debug, Clone, Copy)]
struct Limit {
    value: f64,
    /// Whether the value itself is out.
    open: bool,
}

/// Limits past this are left to the check: up to here every integer is a float.
const EXACT: f64 = 1e15;

impl Limits {
    pub(in crate::protocol) fn of(map: &Map<String, Json>) -> Self {
        let limit = |closed: &str, open: &str, pick: fn(f64, f64) -> bool| {
            let value = |key: &str| map.get(key).and_then(Json::as_f64);
            let flagged = map.get(open).is_some_and(|flag| flag == true);
            let closed = value(closed).map(|value| Limit { value, open: flagged });
            let open = value(open).map(|value| Limit { value, open: true });
            let limit = match (closed, open) {
                (Some(closed), Some(open)) if pick(closed.value, open.value) => Some(closed),
                (closed, open) => open.or(closed),
            };
            limit.filter(|limit| limit.value.abs() <= EXACT)
        };
        let step = map.get("multipleOf").and_then(Json::as_f64).filter(|step| *step > 0.0);
        Self {
            low: limit("minimum", "exclusiveMinimum", |closed, open| closed > open),
            high: limit("maximum", "exclusiveMaximum", |closed, open| closed < open),
            whole: step.is_some_and(|step| step.fract() == 0.0),
        }
    }

    fn is_free(self) -> bool {
        self.low.is_none() && self.high.is_none()
    }

    /// The same for the numbers with the other sign.
    fn negated(self) -> Self {
        let turned = |limit: Limit| Limit { value: -limit.value, ..limit };
        Self { low: self.high.map(turned), high: self.low.map(turned), whole: self.whole }
    }
}

/// The least integer above.
fn above(value: f64) -> f64 {
    value.floor() + 1.0
}

#[expect(clippy::cast_possible_truncation, reason = "the value is whole and within the type")]
fn whole(value: f64) -> Option<i64> {
    (value.abs() < 9.3e18).then_some(value as i64)
}

/// `node` any number of times; with bounds, the number breaks off where it never ends.
fn more(node: Node, least: u32, bounded: bool) -> Node {
    if bounded { Node::bounded(node, least, bounds::DIGITS) } else { Node::repeat(node, least, None) }
}

/// The integers within; `None` if there are none.
pub(in crate::protocol) fn integer(limits: Limits, bounded: bool) -> Option<Node> {
    if limits.is_free() {
        return Some(Node::sequence([Node::optional(Node::literal("-")), any_whole(bounded)]));
    }
    let low = limits.low.and_then(|low| whole(if low.open { above(low.value) } else { low.value.ceil() }));
    let high = limits.high.and_then(|high| whole(if high.open { -above(-high.value) } else { high.value.floor() }));
    let minus = |digits: Node| Node::sequence([Node::literal("-"), digits]);
    match (low, high) {
        (Some(low), Some(high)) => between(low, high),
        (Some(low), None) => {
            Node::choice(between(low, -1).into_iter().chain([from(low.max(0).unsigned_abs(), bounded)]))
        }
        (None, Some(high)) => {
            let below = minus(from((-high).max(1).unsigned_abs(), bounded));
            Node::choice([below].into_iter().chain(between(0, high)))
        }
        (None, None) => None,
    }
}

/// The whole numbers from `low` on.
fn from(low: u64, bounded: bool) -> Node {
    let count = low.max(1).ilog10() + 1;
    let longer = Node::sequence([digit(1, 9), more(any_digit(), count, bounded)]);
    let same = natural(low, 10_u64.saturating_pow(count) - 1);
    Node::Choice(same.into_iter().chain([longer]).collect())
}

/// The numbers within; `None` if there are none.
pub(in crate::protocol) fn number(limits: Limits, bounded: bool) -> Option<Node> {
    if limits.whole {
        return integer(limits, bounded);
    }
    if limits.is_free() {
        let fraction = || Node::optional(Node::sequence([Node::literal("."), more(any_digit(), 1, bounded)]));
        let plain = Node::sequence([any_whole(bounded), fraction(), Node::optional(exponent())]);
        let large = Node::sequence([any_digit(), fraction(), large_exponent()]);
        let forms = Node::Choice(vec![plain, large, largest(bounded)]);
        return Some(Node::sequence([Node::optional(Node::literal("-")), forms]));
    }
    let positive = magnitudes(limits, bounded);
    let negative = magnitudes(limits.negated(), bounded);
    let negative = negative.map(|node| Node::sequence([Node::literal("-"), node]));
    Node::choice(positive.into_iter().chain(negative))
}

fn any_whole(bounded: bool) -> Node {
    Node::Choice(vec![Node::literal("0"), Node::sequence([digit(1, 9), more(any_digit(), 0, bounded)])])
}

/// An exponent that a number with several digits before the point can have.
fn exponent() -> Node {
    let negative = [Node::Class(CharSet::of("eE")), Node::literal("-"), Node::repeat(any_digit(), 1, Some(3))];
    let positive = [exponent_mark(), Node::repeat(any_digit(), 1, Some(2))];
    Node::Choice(vec![Node::sequence(negative), Node::sequence(positive)])
}

/// An exponent of three digits. Only with one digit before the point is it certain that there is such a float.
fn large_exponent() -> Node {
    let large = Node::sequence([digit(1, 2), any_digits(2)]);
    let last = Node::sequence([Node::literal("30"), digit(0, 7)]);
    Node::sequence([exponent_mark(), Node::Choice(vec![large, last])])
}

/// Numbers with the largest exponent: below 1.7, and the largest float. What is between them needs all its digits.
fn largest(bounded: bool) -> Node {
    let below = Node::sequence([digit(0, 6), more(any_digit(), 0, bounded)]);
    let fraction = Node::Choice(vec![below, Node::literal("7976931348623157")]);
    Node::sequence([Node::literal("1."), fraction, exponent_mark(), Node::literal("308")])
}

/// What stands before the digits of an exponent that is not negative.
fn exponent_mark() -> Node {
    Node::sequence([Node::Class(CharSet::of("eE")), Node::optional(Node::literal("+"))])
}

/// The numbers within that have no sign.
fn magnitudes(limits: Limits, bounded: bool) -> Option<Node> {
    let nought = Limit { value: 0.0, open: false };
    let low = limits.low.filter(|low| low.value >= 0.0).unwrap_or(nought);
    let scientific = scientific(low, limits.high, bounded);
    let Some(high) = limits.high else {
        let (first, fraction) = parts(low.value)?;
        let above = Node::sequence([from(first + 1, bounded), Fractions::any(bounded).after()]);
        let here = Fractions::from(&fraction, low.open, bounded).with(first);
        return Node::choice([above].into_iter().chain(here).chain(scientific));
    };
    if high.value < 0.0 || low.value > high.value {
        return None;
    }
    let ((first, from_fraction), (last, to_fraction)) = (parts(low.value)?, parts(high.value)?);
    if first == last {
        let both = Fractions::between(&from_fraction, low.open, &to_fraction, high.open, bounded);
        return Node::choice(both.with(first).into_iter().chain(scientific));
    }
    let here = Fractions::from(&from_fraction, low.open, bounded).with(first);
    let there = Fractions::to(&to_fraction, high.open, bounded).with(last);
    let middle = (last > first + 1).then(|| natural(first + 1, last - 1)).flatten();
    let middle = middle.map(|whole| Node::sequence([whole, Fractions::any(bounded).after()]));
    Node::choice(here.into_iter().chain(middle).chain(there).chain(scientific))
}

/// The numbers from `low`, which is not negative, to `high` with one digit before the point, which is not nought, and an
/// exponent: they are ordered by the exponent first.
fn scientific(low: Limit, high: Option<Limit>, bounded: bool) -> Option<Node> {
    let least = normal(low.value).unwrap_or((LEAST_POWER - 1, 1, Vec::new()));
    let most = match high {
        Some(high) => normal(high.value)?,
        None => (MOST_POWER + 1, 1, Vec::new()),
    };
    let (low_power, low_digit, low_fraction) = least;
    let (high_power, high_digit, high_fraction) = most;
    let (low_open, high_open) = (low.open, high.is_some_and(|high| high.open));
    let any =
        |from: u8, to: u8| (from <= to).then(|| Node::sequence([digit(from, to), Fractions::any(bounded).after()]));
    let power = |node: Option<Node>, from: i32, to: i32| {
        Some(Node::sequence([node?, Node::Class(CharSet::of("eE")), powers(from, to)?]))
    };
    if low_power == high_power {
        let mantissa = match low_digit.cmp(&high_digit) {
            std::cmp::Ordering::Less => {
                let least = Fractions::from(&low_fraction, low_open, bounded).with(low_digit.into());
                let most = Fractions::to(&high_fraction, high_open, bounded).with(high_digit.into());
                Node::choice(least.into_iter().chain(any(low_digit + 1, high_digit - 1)).chain(most))
            }
            std::cmp::Ordering::Equal => {
                Fractions::between(&low_fraction, low_open, &high_fraction, high_open, bounded).with(low_digit.into())
            }
            std::cmp::Ordering::Greater => None,
        };
        return power(mantissa, low_power, low_power);
    }
    let least = Fractions::from(&low_fraction, low_open, bounded).with(low_digit.into());
    let least = Node::choice(least.into_iter().chain(any(low_digit + 1, 9)));
    let most = Fractions::to(&high_fraction, high_open, bounded).with(high_digit.into());
    let most = Node::choice(most.into_iter().chain(any(1, high_digit - 1)));
    let ends = [
        power(least, low_power, low_power).filter(|_| low_power >= LEAST_POWER),
        power(any(1, 9), low_power + 1, high_power - 1),
        power(most, high_power, high_power).filter(|_| high_power <= MOST_POWER),
    ];
    Node::choice(ends.into_iter().flatten())
}

/// Exponents of floats with one digit before the point; one of 308 digits may be too large.
const LEAST_POWER: i32 = -324;
const MOST_POWER: i32 = 307;

/// The exponent, the digit before the point and those behind it; `None` of nought.
fn normal(value: f64) -> Option<(i32, u8, Vec<u8>)> {
    let text = format!("{:e}", value.abs());
    let (mantissa, power) = text.split_once('e')?;
    // The mantissa alone is no float: to read it as one would round it.
    let (whole, fraction) = digits_around_point(mantissa)?;
    let whole = u8::try_from(whole).ok().filter(|whole| (1..=9).contains(whole))?;
    Some((power.parse().ok()?, whole, fraction))
}

/// Exponents as they are written: with a sign or without, a single digit perhaps with a nought before it.
fn powers(from: i32, to: i32) -> Option<Node> {
    let some = |sign: Node, from: u32, to: u32| {
        let padded = natural(from.into(), to.min(9).into()).filter(|_| from <= to.min(9));
        let padded = padded.map(|digit| Node::sequence([Node::literal("0"), digit]));
        let digits = Node::choice(natural(from.into(), to.into()).into_iter().chain(padded))?;
        Some(Node::sequence([sign, digits]))
    };
    let negative =
        (from < 0).then(|| some(Node::literal("-"), to.min(-1).unsigned_abs(), from.unsigned_abs())).flatten();
    let least = u32::try_from(from.max(0)).ok()?;
    let positive = u32::try_from(to).ok().and_then(|to| some(Node::optional(Node::literal("+")), least, to));
    Node::choice(negative.into_iter().chain(positive))
}

/// The whole part of a number without a sign, and the digits of its fraction.
fn parts(value: f64) -> Option<(u64, Vec<u8>)> {
    digits_around_point(&value.abs().to_string())
}

fn digits_around_point(text: &str) -> Option<(u64, Vec<u8>)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    Some((whole.parse().ok()?, fraction.bytes().map(|byte| byte.wrapping_sub(b'0')).collect()))
}

/// Fractions: whether none may stand at all, and the digits that may.
struct Fractions {
    none: bool,
    digits: Option<Node>,
}

impl Fractions {
    fn any(bounded: bool) -> Self {
        Self { none: true, digits: Some(more(any_digit(), 1, bounded)) }
    }

    /// Fractions from this one on.
    fn from(fraction: &[u8], open: bool, bounded: bool) -> Self {
        let Some((&first, rest)) = fraction.split_first() else {
            if !open {
                return Self::any(bounded);
            }
            let above = [more(Node::literal("0"), 0, bounded), digit(1, 9), more(any_digit(), 0, bounded)];
            return Self { none: false, digits: Some(Node::sequence(above)) };
        };
        let above = (first < 9).then(|| Node::sequence([digit(first + 1, 9), more(any_digit(), 0, bounded)]));
        let same = Self::from(rest, open, bounded).behind(first);
        Self { none: false, digits: Node::choice(above.into_iter().chain(same)) }
    }

    /// Fractions up to this one.
    fn to(fraction: &[u8], open: bool, bounded: bool) -> Self {
        let Some((&first, rest)) = fraction.split_first() else {
            let digits = (!open).then(|| more(Node::literal("0"), 1, bounded));
            return Self { none: !open, digits };
        };
        let below = (first > 0).then(|| Node::sequence([digit(0, first - 1), more(any_digit(), 0, bounded)]));
        let same = Self::to(rest, open, bounded).behind(first);
        Self { none: true, digits: Node::choice(below.into_iter().chain(same)) }
    }

    fn between(low: &[u8], low_open: bool, high: &[u8], high_open: bool, bounded: bool) -> Self {
        match (low.split_first(), high.split_first()) {
            (None, _) if !low_open => Self::to(high, high_open, bounded),
            (None, Some((&first, rest))) => {
                // More than nothing, up to `high`.
                let middle = (first > 0).then(|| Self::from(&[], true, bounded).behind(0)).flatten();
                let between = (first > 1).then(|| Node::sequence([digit(1, first - 1), more(any_digit(), 0, bounded)]));
                let same = if first > 0 {
                    Self::to(rest, high_open, bounded).behind(first)
                } else {
                    Self::between(&[], true, rest, high_open, bounded).behind(first)
                };
                Self { none: false, digits: Node::choice(middle.into_iter().chain(between).chain(same)) }
            }
            (Some((&from, rest)), Some((&to, others))) if from == to => {
                let same = Self::between(rest, low_open, others, high_open, bounded).behind(from);
                Self { none: false, digits: same }
            }
            (Some((&from, rest)), Some((&to, others))) if from < to => {
                let low = Self::from(rest, low_open, bounded).behind(from);
                let middle =
                    (from + 1 < to).then(|| Node::sequence([digit(from + 1, to - 1), more(any_digit(), 0, bounded)]));
                let high = Self::to(others, high_open, bounded).behind(to);
                Self { none: false, digits: Node::choice(low.into_iter().chain(middle).chain(high)) }
            }
            _ => Self { none: false, digits: None },
        }
    }

    /// The digits with one more before them.
    fn behind(self, first: u8) -> Option<Node> {
        let digits = self.digits.map(|digits| if self.none { Node::optional(digits) } else { digits });
        match (digits, self.none) {
            (Some(digits), _) => Some(Node::sequence([digit(first, first), digits])),
            (None, true) => Some(digit(first, first)),
            (None, false) => None,
        }
    }

    /// What may stand after the whole part.
    fn after(self) -> Node {
        let fraction = self.digits.map(|digits| Node::sequence([Node::literal("."), digits]));
        match fraction {
            Some(fraction) if self.none => Node::optional(fraction),
            Some(fraction) => fraction,
            None => Node::empty(),
        }
    }

    fn with(self, whole: u64) -> Option<Node> {
        (self.none || self.digits.is_some()).then(|| Node::sequence([Node::literal(whole.to_string()), self.after()]))
    }
}

/// The integers from `low` to `high`, ends included.
fn between(low: i64, high: i64) -> Option<Node> {
    let mut forms = Vec::new();
    if low < 0 {
        let least = if high < 0 { high.unsigned_abs() } else { 1 };
        let negative = natural(least, low.unsigned_abs());
        forms.extend(negative.map(|digits| Node::sequence([Node::literal("-"), digits])));
    }
    if high >= 0 {
        forms.extend(natural(low.max(0).unsigned_abs(), high.unsigned_abs()));
    }
    Node::choice(forms)
}

/// The same for numbers without a sign: for each count of digits, digit by digit.
fn natural(low: u64, high: u64) -> Option<Node> {
    let mut forms = Vec::new();
    let mut low = low;
    // All numbers of the counts of digits between the ends share one form.
    let mut full: Option<(u32, u32)> = None;
    while low <= high {
        let count = low.checked_ilog10().map_or(1, |log| log + 1);
        let last = 10_u64.checked_pow(count).map_or(high, |next| (next - 1).min(high));
        let (first, end) = (digits_of(low), digits_of(last));
        if count > 1 && is_power(low) && end.iter().all(|&digit| digit == 9) {
            full = Some((full.map_or(count, |(from, _)| from), count));
        } else {
            forms.push(same_length(&first, &end));
        }
        let Some(next) = last.checked_add(1) else { break };
        low = next;
    }
    if let Some((from, to)) = full {
        let rest = Node::repeat(any_digit(), from - 1, Some(to - 1));
        forms.push(Node::sequence([digit(1, 9), rest]));
    }
    Node::choice(forms)
}

fn is_power(value: u64) -> bool {
    let digits = digits_of(value);
    digits.first() == Some(&1) && digits.iter().skip(1).all(|&digit| digit == 0)
}

fn digits_of(value: u64) -> Vec<u8> {
    value.to_string().bytes().map(|byte| byte - b'0').collect()
}

fn digit(low: u8, high: u8) -> Node {
    let character = |digit: u8| char::from(b'0' + digit.min(9));
    if low == high {
        Node::literal(character(low))
    } else {
        Node::Class(CharSet::ranges([(character(low), character(high))]))
    }
}

fn any_digit() -> Node {
    Node::Class(CharSet::digits())
}

fn any_digits(count: usize) -> Node {
    Node::times(any_digit(), u32::try_from(count).unwrap_or(u32::MAX))
}

fn same_length(low: &[u8], high: &[u8]) -> Node {
    let (Some((&first, low)), Some((&last, high))) = (low.split_first(), high.split_first()) else {
        return Node::empty();
    };
    if first == last {
        return Node::sequence([digit(first, first), same_length(low, high)]);
    }
    let (lowest, highest) = (low.iter().all(|&digit| digit == 0), high.iter().all(|&digit| digit == 9));
    let from = if lowest { first } else { first + 1 };
    let to = if highest { last + 1 } else { last };
    let mut forms = Vec::new();
    if !lowest {
        forms.push(Node::sequence([digit(first, first), same_length(low, &vec![9; low.len()])]));
    }
    if from < to {
        forms.push(Node::sequence([digit(from, to - 1), any_digits(low.len())]));
    }
    if !highest {
        forms.push(Node::sequence([digit(last, last), same_length(&vec![0; high.len()], high)]));
    }
    Node::choice(forms).unwrap_or_else(Node::empty)
}
