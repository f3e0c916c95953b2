//! Numbers between limits.

use super::bounds;
use super::chars::CharSet;
use super::tree::Node;
use serde_json::{Map, Value as Json};

/// The limits that a schema sets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    low: Option<Limit>,
    high: Option<Limit>,
    step: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Limit {
    value: f64,
    /// Whether the value itself is out.
    open: bool,
}

/// Up to here every integer is a float.
const EXACT: f64 = 1e15;

impl Limits {
    pub(super) fn of(map: &Map<String, Json>) -> Self {
        let limit = |closed: &str, open: &str, pick: fn(f64, f64) -> bool| {
            let value = |key: &str| map.get(key).and_then(Json::as_f64);
            let flagged = map.get(open).is_some_and(|flag| flag == true);
            let closed = value(closed).map(|value| Limit { value, open: flagged });
            let open = value(open).map(|value| Limit { value, open: true });
            match (closed, open) {
                (Some(closed), Some(open)) if pick(closed.value, open.value) => Some(closed),
                (closed, open) => open.or(closed),
            }
        };
        Self {
            low: limit("minimum", "exclusiveMinimum", |closed, open| closed > open),
            high: limit("maximum", "exclusiveMaximum", |closed, open| closed < open),
            step: map.get("multipleOf").and_then(Json::as_f64).filter(|step| *step > 0.0),
        }
    }

    fn admits(self, value: f64) -> bool {
        self.low.is_none_or(|low| value > low.value || (!low.open && value >= low.value))
            && self.high.is_none_or(|high| value < high.value || (!high.open && value <= high.value))
    }

    /// The least and the greatest integer within; `None` where there is none.
    fn integers(self) -> Option<(i64, i64)> {
        let largest = 10_i64.pow(bounds::DIGITS) - 1;
        let low = self.low.map(|low| if low.open { above(low.value) } else { low.value.ceil() });
        let high = self.high.map(|high| if high.open { -above(-high.value) } else { high.value.floor() });
        let (low, high) = match (low, high) {
            (None, None) => (-largest, largest),
            (Some(low), None) => (whole(low)?, largest.max(whole(low)?.saturating_add(largest))),
            (None, Some(high)) => ((-largest).min(whole(high)?.saturating_sub(largest)), whole(high)?),
            (Some(low), Some(high)) => (whole(low.max(-9.2e18))?, whole(high.min(9.2e18))?),
        };
        (low <= high).then_some((low, high))
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

/// The integers within; `None` where there is none.
pub(super) fn integer(limits: Limits) -> Option<Node> {
    let (low, high) = limits.integers()?;
    match limits.step {
        // Every integer is a multiple of one part of it.
        Some(step) if (1.0 / step).fract() != 0.0 => multiples(limits, step),
        _ => between(low, high),
    }
}

/// The numbers within; `None` where none is found.
pub(super) fn number(limits: Limits) -> Option<Node> {
    if let Some(step) = limits.step {
        return if (1.0 / step).fract() == 0.0 { integer(limits) } else { multiples(limits, step) };
    }
    let mut forms = Vec::new();
    if let Some((low, high)) = limits.integers() {
        forms.extend(between(low, high));
    }
    forms.extend(fractions(limits));
    Node::choice(forms).or_else(|| decimals(limits))
}

/// Numbers with a fraction, for each whole part with which every fraction is within.
fn fractions(limits: Limits) -> Vec<Node> {
    let low = limits.low.map_or(-EXACT, |low| low.value.max(-EXACT));
    let high = limits.high.map_or(EXACT, |high| high.value.min(EXACT));
    // At an open limit the fraction must not vanish.
    let digits = |open: bool| {
        let digit = || Node::Class(CharSet::digits());
        if !open {
            return Node::repeat(digit(), 1, bounds::DECIMALS);
        }
        Node::sequence([Node::repeat(digit(), 0, bounds::DECIMALS - 1), Node::Class(CharSet::ranges([('1', '9')]))])
    };
    let mut forms = Vec::new();
    let mut push = |sign: &str, first: f64, last: f64, open: bool| {
        let whole = whole(first.max(0.0)).zip(whole(last)).and_then(|(first, last)| between(first, last));
        forms.extend(whole.map(|whole| Node::sequence([Node::literal(sign), whole, Node::literal("."), digits(open)])));
    };
    push("", low.ceil(), high.floor() - 1.0, limits.low.is_some_and(|limit| limit.open));
    push("-", (-high).ceil(), (-low).floor() - 1.0, limits.high.is_some_and(|limit| limit.open));
    forms
}

/// A few numbers within narrow limits, one by one.
fn decimals(limits: Limits) -> Option<Node> {
    let (low, high) = (limits.low?.value, limits.high?.value);
    let most = u32::try_from(bounds::LISTED).ok()?;
    (1..=12).find_map(|places| {
        let scale = 10_f64.powi(places);
        let first = (low * scale).ceil();
        let places = usize::try_from(places).ok()?;
        let texts = (0..most).map(|step| format!("{:.places$}", (first + f64::from(step)) / scale));
        let within = texts.filter(|text| {
            let value: Result<f64, _> = text.parse();
            value.is_ok_and(|value| value <= high && limits.admits(value))
        });
        Node::choice(within.map(Node::literal))
    })
}

/// The multiples that are nearest to nought, one by one.
fn multiples(limits: Limits, step: f64) -> Option<Node> {
    let start = match (limits.low, limits.high) {
        (Some(low), _) if low.value > 0.0 => (low.value / step).floor(),
        (_, Some(high)) if high.value < 0.0 => (high.value / step).ceil(),
        _ => 0.0,
    };
    let most = u32::try_from(bounds::LISTED).ok()?;
    let mut texts = Vec::new();
    for away in 0..most * 2 {
        for factor in [start + f64::from(away), start - f64::from(away)] {
            let value = factor * step;
            // What rounding has touched is no sure multiple.
            let sure = step.fract() == 0.0 && value.abs() < EXACT;
            if sure && limits.admits(value) && texts.len() < bounds::LISTED {
                texts.extend(whole(value).map(|value| value.to_string()));
            }
        }
    }
    Node::choice(texts.into_iter().map(Node::literal))
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
        let rest = Node::repeat(Node::Class(CharSet::digits()), from - 1, to - 1);
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

fn any_digits(count: usize) -> Node {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    Node::repeat(Node::Class(CharSet::digits()), count, count)
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
