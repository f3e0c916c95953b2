//! The result of a call is no origin for a value that the model made up for the call, in any form.

use crate::origins::{PAIRS, judged, origin, task};
use callslip::origin::{Echo, Index, Judging, Kind, Origin, Source};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

/// A conversation with one call, which had this value, and its result.
fn after_call(made_up: Option<&Value>, result: &str) -> Index {
    let mut index = task("Hello there.");
    let said = |value: &Value| Echo { value: json!({ "x": value }), origin: Some(Origin::of(Kind::None)) };
    let echo = made_up.map(said).into_iter().collect();
    index.add(Source { echo, ..Source::new(Kind::Result, "T1") }, Arc::from(result));
    index
}

/// Values for the next call: the same one, and the form in the result as text and as a number.
fn next_values(made_up: &Value, quoted: &str) -> Vec<Value> {
    let number = quoted.parse::<i64>().ok().map(Value::from);
    let number = number.or_else(|| quoted.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from));
    [made_up.clone(), json!(quoted)].into_iter().chain(number).collect()
}

fn check(made_up: &Value, quoted: &str, result: &str) -> Result<(), String> {
    for value in next_values(made_up, quoted) {
        let found = origin(&after_call(Some(made_up), result), value.clone());
        if matches!(found.kind, Kind::Result | Kind::Task) {
            return Err(format!("{made_up} in the call, \"{result}\" in its result, then {value}: {found:?}"));
        }
    }
    Ok(())
}

#[test]
fn no_rule_finds_an_invented_value_in_the_result_of_its_call() {
    let mut wrong = Vec::new();
    let mut rules = std::collections::BTreeSet::new();
    for line in PAIRS.lines().filter(|line| !line.starts_with('#')) {
        let [_, value, text, rule] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let value: Value = serde_json::from_str(value).unwrap();
        let found = origin(&after_call(None, text), value.clone());
        if found.kind != Kind::Result {
            continue;
        }
        rules.insert(rule);
        let (start, end) = found.span.unwrap();
        wrong.extend(check(&value, text.get(start..end).unwrap(), text).err());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(rules.len() >= 19, "{rules:?}");
}

/// Forms of one meaning that the rules lead to each other.
fn forms() -> impl Strategy<Value = Vec<String>> {
    let listed = |rows: &'static [&'static [&'static str]]| {
        prop::sample::select(rows).prop_map(|row| row.iter().map(|form| (*form).to_owned()).collect::<Vec<_>>())
    };
    let dates = (1u32..=12, 1u32..=28).prop_map(|(month, day)| {
        let name = ["January", "February", "March", "April", "May", "June", "July", "August", "September"];
        let name = name.into_iter().chain(["October", "November", "December"]).nth(month as usize - 1).unwrap();
        vec![
            format!("2026-{month:02}-{day:02}"),
            format!("{name} {day}, 2026"),
            format!("{day} {name} 2026"),
            format!("{}. {month}. 2026", day),
            format!("the {day}th of {name}"),
            format!("2026年{month}月{day}日"),
        ]
    });
    let times = (13u32..=23, 0u32..60).prop_map(|(hour, minute)| {
        vec![format!("{hour}:{minute:02}"), format!("{}:{minute:02} pm", hour - 12), format!("{hour}h{minute:02}")]
    });
    let whole = (1u32..999).prop_map(|number| {
        vec![format!("{number}000"), format!("{number},000"), format!("{number}k"), format!("{number} thousand")]
    });
    let percent = (2u32..99).prop_map(|number| {
        vec![format!("0.{number:02}"), format!("{number} %"), format!("{number} percent"), format!("{number}.0%")]
    });
    let units = (2u32..5000).prop_map(|number| {
        vec![format!("{number} km"), format!("{number} kilometers"), format!("{number}km"), number.to_string()]
    });
    prop_oneof![
        dates,
        times,
        whole,
        percent,
        units,
        listed(&[
            &["25", "twenty-five", "twenty five"],
            &["7", "seven", "sieben"],
            &["0.5", "1/2"],
            &["0.5", "half"],
            &["12", "dozen"],
            &["3", "March"],
            &["20260314", "2026-03-14", "March 14, 2026"],
        ]),
        listed(&[
            &["France", "FR", "French"],
            &["NY", "New York"],
            &["USD", "dollars"],
            &["km", "kilometres"],
            &["celsius", "centigrade"],
        ]),
        listed(&[
            &["Wexcombe rooms", "Wexcombe room", "wexcombe-room", "WexcombeRoom"],
            &["budget of Wexcombe", "the Wexcombe budget", "Wexcombe's budget"],
            &["Wexcombe, Ibbshire", "Wexcombe"],
            &["José Wexcombe", "jose wexcombe", "JOSE WEXCOMBE"],
            &["docs/wexcombe.txt", "docs\\wexcombe.txt"],
            &["https://www.wexcombe.com/a/", "wexcombe.com/a", "http://WEXCOMBE.com/a"],
            &["ann@wexcombe.com", "Ann@Wexcombe.com", "mailto:ann@wexcombe.com"],
            &["+1 415 555 0147", "+1 (415) 555-0147"],
        ]),
    ]
}

/// A form as the argument of a call: a number if it is one. A date in digits alone is a text.
fn as_argument(form: &str, is_text: bool) -> Value {
    let number = serde_json::from_str::<Value>(form).ok();
    number.filter(|number| number.as_f64().is_some_and(|size| size < 1e7) && !is_text).unwrap_or_else(|| json!(form))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::of(600), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_invented_value_stays_without_an_origin(
        forms in forms(), one in any::<prop::sample::Index>(), other in any::<prop::sample::Index>(), is_text in any::<bool>(),
        is_json in any::<bool>(),
    ) {
        let (one, quoted): (&String, &String) = (one.get(&forms), other.get(&forms));
        let made_up = as_argument(one, is_text);
        let result = if is_json {
            json!({"error": {"found": 0, "value": quoted}}).to_string()
        } else {
            format!("Nothing was found for {quoted}, sorry.")
        };
        prop_assert_eq!(check(&made_up, quoted, &result), Ok(()));
    }

    /// Another result vouches for it all the same.
    #[test]
    fn a_result_of_another_call_vouches(forms in forms(), one in any::<prop::sample::Index>(), other in any::<prop::sample::Index>()) {
        let (one, quoted): (&String, &String) = (one.get(&forms), other.get(&forms));
        let made_up = as_argument(one, false);
        let mut index = after_call(Some(&made_up), &format!("Nothing was found for {quoted}, sorry."));
        index.add(Source::new(Kind::Result, "T2"), Arc::from(format!("There is {quoted} here.")));
        let found = judged(&index, &json!(quoted), &json!({}), &Judging::default());
        prop_assert_eq!((found.kind, &*found.place), (Kind::Result, "T2"));
    }
}

#[test]
fn what_a_result_adds_to_an_invented_value_is_its_own() {
    let of = |made_up: Value, result: &str, value: Value| origin(&after_call(Some(&made_up), result), value).kind;
    assert_eq!(of(json!(3), "Free on March 4th, 2026.", json!("2026-03-04")), Kind::Result);
    assert_eq!(of(json!(5), "5 rooms, the third has 5.5 square metres", json!(5.5)), Kind::Result);
    assert_eq!(of(json!("Wexcombe"), "Wexcombe Hall in Ibbshire", json!("Ibbshire")), Kind::Result);
    assert_eq!(
        of(json!("budget Wexcombe"), &format!("Budget {} Wexcombe", "and so on ".repeat(9)), json!("so on")),
        Kind::Result
    );
}
