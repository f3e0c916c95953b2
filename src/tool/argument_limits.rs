//! The limits of a value in a few words: `1 to 9`, `at most 20 characters`, `pattern ^[A-Z]{3}$`.

use super::describe::{escaped, short_type};
use super::problem::counted;
use super::types::{Schema, Types};
use serde_json::{Number, Value as Json};

/// Characters of a pattern. A longer one is in the schema that `describe_tool` returns.
const PATTERN: usize = 120;

/// Whole numbers below it are written in digits alone.
const WHOLE: f64 = 1e15;

/// The limits that all of these schemas set together for values of these types; empty if a schema lists the values.
pub(super) fn limits(parts: &[Schema<'_>], types: Types) -> String {
    if parts.iter().any(|part| part.node.get("enum").or_else(|| part.node.get("const")).is_some()) {
        return String::new();
    }
    let mut said = Vec::new();
    if types.overlaps(Types::NUMBER) {
        said.extend(range(parts));
        said.extend(highest(parts, "multipleOf").map(|factor| format!("a multiple of {}", plain(factor))));
    }
    if types.overlaps(Types::STRING) {
        // Models rarely write an empty string, and most services declare this limit.
        let least = count(highest(parts, "minLength")).filter(|least| *least > 1);
        said.extend(counts(least, count(lowest(parts, "maxLength")), "character"));
        said.extend(patterns(parts));
        said.extend(formats(parts));
    }
    if types.overlaps(Types::ARRAY) {
        let least = count(highest(parts, "minItems")).filter(|least| *least > 0);
        let most = count(lowest(parts, "maxItems"));
        if !are_places(parts, least, most) {
            said.extend(counts(least, most, "item"));
        }
        said.extend(has(parts, "uniqueItems").then(|| "no item twice".to_owned()));
    }
    if types.overlaps(Types::OBJECT) {
        let least = count(highest(parts, "minProperties")).filter(|least| *least > 0);
        said.extend(counts(least, count(lowest(parts, "maxProperties")), "name"));
    }
    said.join(", ")
}

/// Whether the signature shows the number of items, with a type for each.
fn are_places(parts: &[Schema<'_>], least: Option<u64>, most: Option<u64>) -> bool {
    let places = parts.iter().find_map(|part| part.places()).map(|(items, _)| items.len() as u64);
    places.is_some() && (least == places || least.is_none()) && (most == places || most.is_none())
}

fn range(parts: &[Schema<'_>]) -> Vec<String> {
    let (least, above) = (highest(parts, "minimum"), highest(parts, "exclusiveMinimum"));
    let (most, below) = (lowest(parts, "maximum"), lowest(parts, "exclusiveMaximum"));
    let above = above.filter(|above| least.is_none_or(|least| above.as_f64() >= least.as_f64()));
    let below = below.filter(|below| most.is_none_or(|most| below.as_f64() <= most.as_f64()));
    if let (Some(least), None, Some(most), None) = (least, above, most, below) {
        let (least, most) = (plain(least), plain(most));
        return vec![if least == most { format!("exactly {least}") } else { format!("{least} to {most}") }];
    }
    let said = |words: &str, number: Option<&Number>| number.map(|number| format!("{words} {}", plain(number)));
    let low = said("more than", above).or_else(|| said("at least", least));
    let high = said("less than", below).or_else(|| said("at most", most));
    low.into_iter().chain(high).collect()
}

/// `99`, also for a limit that a document writes as `99.0`, as `FastAPI` does for integers.
fn plain(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() && value.fract() == 0.0 && value.abs() < WHOLE => format!("{value:.0}"),
        _ => number.to_string(),
    }
}

fn counts(least: Option<u64>, most: Option<u64>, noun: &str) -> Option<String> {
    Some(match (least, most) {
        (None, None) => return None,
        (Some(least), None) => format!("at least {}", counted(least, noun)),
        (None, Some(most)) => format!("at most {}", counted(most, noun)),
        (Some(least), Some(most)) if least == most => counted(most, noun),
        (Some(least), Some(most)) => format!("{least} to {}", counted(most, noun)),
    })
}

fn patterns(parts: &[Schema<'_>]) -> Vec<String> {
    let patterns = texts(parts, "pattern").into_iter().map(escaped);
    patterns
        .filter(|pattern| pattern.chars().nth(PATTERN).is_none())
        .map(|pattern| format!("pattern {pattern}"))
        .collect()
}

/// The formats except those in the signature.
fn formats(parts: &[Schema<'_>]) -> Vec<String> {
    let shown = |format: &str| parts.iter().any(|part| short_type(*part, 0).split('|').any(|one| one == format));
    let formats = texts(parts, "format").into_iter().filter(|format| !shown(format) && !NUMERIC.contains(format));
    formats.map(|format| format!("format {}", escaped(format))).collect()
}

/// Storage formats of numbers.
const NUMERIC: [&str; 4] = ["int32", "int64", "float", "double"];

/// The distinct texts under a key.
fn texts<'a>(parts: &[Schema<'a>], key: &str) -> Vec<&'a str> {
    let mut texts: Vec<&str> = Vec::new();
    for text in parts.iter().filter_map(|part| part.node.get(key)?.as_str()) {
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

fn has(parts: &[Schema<'_>], key: &str) -> bool {
    parts.iter().any(|part| part.node.get(key) == Some(&Json::Bool(true)))
}

fn numbers<'a>(parts: &[Schema<'a>], key: &str) -> impl Iterator<Item = &'a Number> {
    parts.iter().filter_map(move |part| part.node.get(key)?.as_number())
}

fn highest<'a>(parts: &[Schema<'a>], key: &str) -> Option<&'a Number> {
    numbers(parts, key).max_by(|one, other| value(one).total_cmp(&value(other)))
}

fn lowest<'a>(parts: &[Schema<'a>], key: &str) -> Option<&'a Number> {
    numbers(parts, key).min_by(|one, other| value(one).total_cmp(&value(other)))
}

fn value(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

fn count(number: Option<&Number>) -> Option<u64> {
    let number = number?;
    number.as_u64().or_else(|| number.as_f64().filter(|count| count.fract() == 0.0)?.to_string().parse().ok())
}
