//! Numbers with a fraction that a float has no room for, as the validator sees them.
//!
//! The validator compares floats, and takes one without a fraction for an integer. Such a number is shown to it as the
//! next float on the side where it lies, which compares with the limits around it as the number itself does. Beyond 2^52
//! that float is whole as well: there the schema is changed, so that it takes the float for none, and a limit that is
//! this very float is moved.

use super::coerce::whole;
use crate::reply::{Number, Value};
use serde_json::{Map, Value as Json, json};
use std::cmp::Ordering;

/// The least float whose neighbours are whole numbers.
const WHOLE: f64 = 4_503_599_627_370_496.0;
/// Keywords whose values are data, not schemas.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// What marks the part of a schema that refuses them.
const REFUSED: &str = "callslip: no whole number as it is written";

/// Whether a part of a schema refuses numbers for what they are as written.
pub(super) fn is_refusal(schema: &Json) -> bool {
    schema.get("$comment").is_some_and(|comment| comment == REFUSED)
}

/// What stands for a number with a fraction where its float, `plain`, has none.
pub(super) fn beside(number: &Number, plain: f64) -> Option<f64> {
    if number.is_integer() || plain.fract() != 0.0 || whole(number.as_str()).is_some() {
        return None;
    }
    let (negative, text) = match number.as_str().strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number.as_str()),
    };
    let further = is_more(text, plain.abs()) != negative;
    let next = if further { plain.next_up() } else { plain.next_down() };
    Some(if next.is_finite() { next } else { plain })
}

/// Whether a number without its sign, that is not whole, is more than a whole float.
fn is_more(text: &str, float: f64) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{integer}{fraction}");
    let leading = digits.len() - digits.trim_start_matches('0').len();
    // A number between two floats is no longer than its digits: any other exponent makes it less than one.
    let Ok(exponent) = exponent.parse::<i64>() else { return float == 0.0 };
    let point = i64::try_from(integer.len()).unwrap_or(i64::MAX).saturating_add(exponent);
    let point = usize::try_from(point).unwrap_or(0).min(digits.len());
    let cut = digits.get(leading.min(point)..point).unwrap_or("");
    let other = format!("{float:.0}");
    let other = if other == "0" { "" } else { other.as_str() };
    match cut.len().cmp(&other.len()).then_with(|| cut.cmp(other)) {
        // The rest of it is a fraction.
        Ordering::Equal => true,
        order => order == Ordering::Greater,
    }
}

/// A float that stands for a number with a fraction and is whole, and whether it is more than the number.
pub(super) type WholeOne = (f64, bool);

/// The floats that stand for numbers with a fraction and are whole.
pub(super) fn whole_ones(value: &Value, into: &mut Vec<WholeOne>) {
    match value {
        Value::Number(number) => {
            let plain = number.as_str().parse::<f64>().ok().filter(|float| float.is_finite());
            let next = plain.and_then(|plain| Some((beside(number, plain)?, plain)));
            into.extend(next.filter(|(next, _)| next.abs() >= WHOLE).map(|(next, plain)| (next, next > plain)));
        }
        Value::Array(items) => items.iter().for_each(|item| whole_ones(item, into)),
        Value::Object(object) => object.iter().for_each(|(_, value)| whole_ones(value, into)),
        _ => {}
    }
}

/// The schema, which takes none of these floats for an integer, a multiple of one, or a value that it lists.
pub(super) fn without_integers(schema: &Json, floats: &[WholeOne]) -> Json {
    match schema {
        Json::Array(items) => items.iter().map(|item| without_integers(item, floats)).collect(),
        Json::Object(object) => {
            let mut changed = Map::new();
            for (key, value) in object {
                let listed = DATA.contains(&key.as_str()) && !value.is_object();
                let value = match limit(key, value, floats) {
                    Some(limit) => limit,
                    None if listed => unlike(value, floats),
                    None => without_integers(value, floats),
                };
                changed.insert(key.clone(), value);
            }
            if wants_whole(object) {
                let floats: Vec<f64> = floats.iter().map(|(float, _)| *float).collect();
                let refused = json!({"not": {"enum": floats, "$comment": REFUSED}});
                match changed.get_mut("allOf") {
                    Some(Json::Array(all)) => all.push(refused),
                    _ => drop(changed.insert("allOf".to_owned(), json!([refused]))),
                }
            }
            Json::Object(changed)
        }
        other => other.clone(),
    }
}

/// A limit that is one of these, moved to where the float compares with it as the number does.
fn limit(key: &str, value: &Json, floats: &[WholeOne]) -> Option<Json> {
    let limit = value.as_f64()?;
    let (float, above) = floats.iter().find(|(float, _)| float.total_cmp(&limit).is_eq())?;
    match key {
        "minimum" | "exclusiveMaximum" if *above => Some(Json::from(float.next_up())),
        "maximum" | "exclusiveMinimum" if !*above => Some(Json::from(float.next_down())),
        _ => None,
    }
}

/// Whether a schema takes whole numbers alone, or multiples of one.
fn wants_whole(schema: &Map<String, Json>) -> bool {
    let integers = match schema.get("type") {
        Some(Json::String(name)) => name == "integer",
        Some(Json::Array(names)) => {
            names.iter().any(|name| name == "integer") && !names.iter().any(|name| name == "number")
        }
        _ => false,
    };
    let step = schema.get("multipleOf").and_then(Json::as_f64);
    integers || step.is_some_and(|step| step != 0.0 && step.fract() == 0.0)
}

/// Listed values, with another number in place of each of these.
fn unlike(value: &Json, floats: &[WholeOne]) -> Json {
    match value {
        Json::Number(number)
            if number
                .as_f64()
                .is_some_and(|number| floats.iter().any(|(float, _)| float.total_cmp(&number).is_eq())) =>
        {
            json!(f64::MIN_POSITIVE)
        }
        Json::Array(items) => items.iter().map(|item| unlike(item, floats)).collect(),
        Json::Object(object) => {
            Json::Object(object.iter().map(|(key, value)| (key.clone(), unlike(value, floats))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use crate::reply::json_text::parse;
    use crate::tool::schema::Checker;
    use proptest::prelude::*;
    use serde_json::{Value as Json, json};

    /// Thousandths as a number is written, in one of several ways.
    fn written(thousandths: i128, way: usize) -> String {
        let sign = if thousandths < 0 { "-" } else { "" };
        let size = thousandths.abs();
        match way {
            0 => format!("{sign}{}.{:03}", size / 1000, size % 1000),
            1 => format!("{sign}{size}e-3"),
            2 => format!("{sign}{}.{:04}E-1", size / 100, size % 100 * 100),
            _ => format!("{sign}{}.{:03}00000", size / 1000, size % 1000),
        }
    }

    /// A limit that a float holds, in thousandths, near a number.
    fn limit(near: i128, offset: i128) -> (Json, i128) {
        let whole = near / 1000 + offset;
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "the float's own value counts"
        )]
        let (float, exact) = (whole as f64, whole as f64 as i128);
        (json!(float), exact * 1000)
    }

    fn admits(schema: &Json, number: &str) -> bool {
        let schema = json!({"type": "object", "properties": {"n": schema}});
        Checker::default().check(&schema, &parse(&format!(r#"{{"n": {number}}}"#)).unwrap()).is_ok()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

        /// A number compares with a limit, and is an integer or none, as its decimal digits say.
        #[test]
        fn numbers_are_compared_as_they_are_written(
            base in prop::sample::select(vec![0_i128, 1, 7, 1 << 51, 1 << 52, 1 << 53, 1 << 54, 1 << 60, 10_i128.pow(20)]),
            moved in -4_i128..5, thousandths in prop::sample::select(vec![0_i128, 1, 250, 499, 500, 501, 999]),
            negative: bool, way in 0_usize..4, offset in -3_i128..4, kind in 0_usize..8,
        ) {
            let size = (base + moved).abs() * 1000 + thousandths;
            let exact = if negative { -size } else { size };
            let number = written(exact, way);
            let (limit, at) = limit(exact, offset);
            let is_whole = exact % 1000 == 0;
            let (schema, wanted) = match kind {
                0 => (json!({"type": "integer"}), is_whole),
                1 => (json!({"type": ["integer", "null"], "minimum": limit}), is_whole && exact >= at),
                2 => (json!({"type": "number", "maximum": limit}), exact <= at),
                3 => (json!({"type": "number", "exclusiveMinimum": limit}), exact > at),
                4 => (json!({"anyOf": [{"type": "integer"}, {"type": "number", "maximum": limit}]}), is_whole || exact <= at),
                5 => (json!({"oneOf": [{"type": "integer", "minimum": limit}, {"type": "string"}]}), is_whole && exact >= at),
                6 => (json!({"enum": [limit]}), exact == at),
                _ => (json!({"allOf": [{"$ref": "#/properties/n/$defs/whole"}], "$defs": {"whole": {"type": "integer"}}}), is_whole),
            };
            // An integer that is more than a float holds is compared as its float.
            let sure = !is_whole || size <= 1000 << 53;
            // Fractions that a float holds, and those that it rounds to another fraction, are the validator's.
            prop_assert!(!sure || admits(&schema, &number) == wanted, "{number} in {schema}: expected {wanted}");
        }
    }

    #[test]
    fn other_numbers_beside_it_are_left_alone() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "share": {"type": "number", "maximum": 1}}});
        let check = |text: &str| Checker::default().check(&schema, &parse(text).unwrap());
        assert!(check(r#"{"n": 1, "share": 0.99999999999999999999}"#).is_ok());
        assert!(check(r#"{"n": 1, "share": 1.00000000000000000001}"#).is_err());
        let problems = check(r#"{"n": 4503599627370497.5}"#).unwrap_err();
        assert_eq!((problems[0].pointer.as_str(), problems[0].expected.as_str()), ("/n", "be an integer"));
    }
}
