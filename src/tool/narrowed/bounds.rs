//! Numbers that a schema sets bounds with.

use super::{Object, shown};
use serde_json::{Number, Value as Json};
use std::cmp::Ordering;

/// The keywords that are compared here.
pub(super) const KEYS: [&str; 11] = [
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "uniqueItems",
];

/// Integers below this are exact as `f64`.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The bounds that are closer now than they were.
pub(super) fn narrowed(kept: &Object, offered: &Object, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (inclusive, exclusive, closer) in [
        ("minimum", "exclusiveMinimum", Ordering::Greater),
        ("maximum", "exclusiveMaximum", Ordering::Less),
        ("minLength", "", Ordering::Greater),
        ("minItems", "", Ordering::Greater),
        ("minProperties", "", Ordering::Greater),
        ("maxLength", "", Ordering::Less),
        ("maxItems", "", Ordering::Less),
        ("maxProperties", "", Ordering::Less),
    ] {
        for key in [inclusive, exclusive] {
            let Some(now) = offered.get(key).filter(|now| kept.get(key) != Some(now)) else { continue };
            let counts = exclusive.is_empty() && closer == Ordering::Greater;
            let is_implied = match now {
                Json::Number(now) => {
                    (counts && now.as_u64() == Some(0))
                        || implies(kept.get(inclusive), key == exclusive, false, now, closer)
                        || implies(kept.get(exclusive), key == exclusive, true, now, closer)
                }
                _ => false,
            };
            if !is_implied {
                let before = shown(kept.get(key).or_else(|| kept.get(inclusive)).or_else(|| kept.get(exclusive)));
                found.push(format!("{place} has {key} {now} now, and {before} in the run: take what it took"));
            }
        }
    }
    let unique = |of: &Object| of.get("uniqueItems") == Some(&Json::Bool(true));
    if unique(offered) && !unique(kept) {
        found.push(format!("{place} takes no item twice any more: take that too"));
    }
    found
}

/// Whether a bound of the run refuses whatever the one of today refuses.
fn implies(kept: Option<&Json>, now_excludes: bool, excludes: bool, now: &Number, closer: Ordering) -> bool {
    let Some(Json::Number(kept)) = kept else { return false };
    match order(kept, now) {
        Some(Ordering::Equal) => excludes || !now_excludes,
        Some(order) => order == closer,
        None => false,
    }
}

/// How two numbers compare; `None` where rounding could decide.
pub(super) fn order(one: &Number, other: &Number) -> Option<Ordering> {
    let whole = |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    if let (Some(one), Some(other)) = (whole(one), whole(other)) {
        return Some(one.cmp(&other));
    }
    if one == other {
        return Some(Ordering::Equal);
    }
    let (one, other) = (one.as_f64()?, other.as_f64()?);
    if one.abs() >= EXACT || other.abs() >= EXACT { None } else { one.partial_cmp(&other) }
}
