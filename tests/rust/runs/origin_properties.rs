//! What holds of origins in every conversation.

use crate::origins::{index, origin, task};
use callslip::origin::{Index, Judging, Kind, Origin, Source, trace};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::Arc;

const KINDS: [Kind; 6] = [Kind::Task, Kind::User, Kind::Result, Kind::Instructions, Kind::Model, Kind::Example];

/// A text as it may stand in a conversation: words, numbers, other scripts, JSON, anything.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "([a-mA-M]{1,9}[ ,.-]){0,12}",
        "[a-m0-9 .,:/@%-]{0,40}",
        "[\u{e9}\u{fc}\u{430}-\u{44f}\u{4e00}-\u{4e20}\u{3042}-\u{30fa}a-m0-9 ]{0,20}",
        any::<String>(),
        ("[a-m\\\\\"\n\u{e9}]{0,12}", any::<i64>()).prop_map(|(text, number)| {
            json!({"a/b": [text, {"n~": number}], "x": null, &text: text.repeat(2)}).to_string()
        }),
    ]
}

fn conversations() -> impl Strategy<Value = Vec<(Kind, bool, String)>> {
    prop::collection::vec((prop::sample::select(&KINDS[..]), any::<bool>(), texts()), 0..12)
}

/// Values of letters that no conversation above has in its plain words.
fn values() -> impl Strategy<Value = String> {
    prop_oneof!["[n-z]{7,12}", "[n-z]{7,9}( |-|_)[n-z]{7,9}", "[N-Z][n-z]{7,9} [2-9]{5,7}", "[\u{434}-\u{44f}]{6,9}"]
}

fn built(conversation: &[(Kind, bool, String)]) -> Index {
    let mut index = Index::new();
    for (number, (kind, untrusted, text)) in conversation.iter().enumerate() {
        let source = Source { untrusted: *untrusted, ..Source::new(*kind, &number.to_string()) };
        index.add(source, Arc::from(text.as_str()));
    }
    index
}

fn letters(text: &str) -> String {
    text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The text that an origin's place names.
fn slice(conversation: &[(Kind, bool, String)], place: &str, span: (usize, usize)) -> Option<String> {
    conversation.get(place.parse::<usize>().ok()?)?.2.get(span.0..span.1).map(str::to_owned)
}

fn arguments() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        texts().prop_map(Value::from),
        values().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0i64..3000).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!(null)),
        Just(json!("2026-03-04T17:00:00")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-m~/]{0,5}", inner, 0..4).prop_map(|map| Value::from(Map::from_iter(map))),
        ]
    })
}

fn all(index: &Index, value: &Value) -> Vec<(String, Origin)> {
    trace(index, &Map::from_iter([("x".to_owned(), value.clone())]), &json!({}), &Judging::default())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::of(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_value_is_found_where_it_was_inserted(
        mut conversation in conversations(), value in values(), at in any::<prop::sample::Index>(), kind in 0usize..4,
    ) {
        let before = origin(&built(&conversation), value.clone());
        let text = format!("go {value} now");
        let at = at.index(conversation.len() + 1);
        conversation.insert(at, (KINDS[kind], false, text));
        let found = origin(&built(&conversation), value.clone());
        prop_assert!(found.is_stated() && !found.untrusted);
        let span = found.span.unwrap();
        prop_assert_eq!(letters(&slice(&conversation, &found.place, span).unwrap()), letters(&value));
        // Without it there was nothing, unless the words stand there by chance or another script is in use.
        conversation.remove(at);
        let has = conversation.iter().any(|(.., text)| letters(text).contains(letters(&value).get(..2).unwrap_or_default()));
        prop_assert!(before.kind == Kind::None || has || before.kind == Kind::Unknown);
    }

    #[test]
    fn a_value_that_is_removed_is_nowhere(value in "[n-z]{7,12}", words in "([a-m]{1,9} ){0,40}") {
        prop_assert_eq!(origin(&task(&words), value.clone()).kind, Kind::None);
        let found = origin(&task(&format!("{words}{value} {words}")), value.clone());
        prop_assert_eq!((found.kind, found.span), (Kind::Task, Some((words.len(), words.len() + value.len()))));
    }

    #[test]
    fn texts_may_come_in_any_pieces(conversation in conversations(), value in arguments(), size in prop::sample::select(vec![1usize, 7, 1000])) {
        let expected = all(&built(&conversation), &value);
        let mut index = Index::new();
        for (number, (kind, untrusted, text)) in conversation.iter().enumerate() {
            let source = Source { untrusted: *untrusted, ..Source::new(*kind, &number.to_string()) };
            index.add(source, Arc::from(text.as_str()));
            if number % size == 0 {
                let _ = index.bytes();
            }
        }
        prop_assert_eq!(all(&index, &value), expected);
    }

    #[test]
    fn the_order_of_kinds_does_not_matter(conversation in conversations(), value in arguments()) {
        let kinds = |index: &Index| all(index, &value).into_iter().map(|(pointer, origin)| (pointer, origin.kind, origin.untrusted)).collect::<Vec<_>>();
        let mut sorted = conversation.clone();
        sorted.sort_by_key(|(kind, ..)| std::cmp::Reverse(*kind));
        prop_assert_eq!(kinds(&built(&conversation)), kinds(&built(&sorted)));
    }

    #[test]
    fn places_are_places(conversation in conversations(), value in arguments()) {
        for (pointer, origin) in all(&built(&conversation), &value) {
            let whole = json!({"x": value});
            prop_assert!(whole.pointer(&pointer).is_some());
            let own = (origin.place.clone(), origin.span, origin.pointer.clone());
            let others = origin.others.iter().map(|place| (place.place.clone(), place.span, place.pointer.clone()));
            for (place, span, leaf) in std::iter::once(own).chain(others) {
                let Some(span) = span.filter(|_| !place.is_empty()) else { continue };
                prop_assert!(slice(&conversation, &place, span).is_some(), "{span:?}");
                if let Some(leaf) = leaf {
                    let text: Value = serde_json::from_str(&conversation[place.parse::<usize>().unwrap()].2).unwrap();
                    prop_assert!(text.pointer(&leaf).is_some(), "{leaf}");
                }
            }
            let written = serde_json::to_string(&origin).unwrap();
            prop_assert_eq!(serde_json::from_str::<Origin>(&written).unwrap(), origin);
        }
    }
}

#[test]
fn one_letter_a_million_times_stays_within_the_bound() {
    let long = "a".repeat(1_000_000);
    let spaced = "a ".repeat(500_000);
    let index = index(&[(Kind::Task, "", false, &long), (Kind::Result, "T1", true, &spaced)]);
    let values =
        ["a".repeat(50), "a ".repeat(40), format!("{}b", "a".repeat(59)), "a a b".to_owned(), "aaa".to_owned()];
    let arguments =
        values.into_iter().enumerate().map(|(at, value)| (at.to_string(), Value::from(value))).collect::<Map<_, _>>();
    let origins = trace(&index, &arguments, &json!({}), &Judging::default());
    assert_eq!(origins.len(), 5);
    assert!(origins.iter().all(|(_, origin)| origin.kind != Kind::Example));
}

#[test]
fn words_that_stand_too_often_are_unknown_and_so_is_the_rest_of_the_call() {
    let words = ["amount", "price", "amounts", "prices"];
    let rows: Vec<String> = (0..6000).map(|row| format!("the {} of page {row}", words[row % 4])).collect();
    let texts = json!(rows).to_string();
    let index = index(&[(Kind::Result, "T1", true, &texts)]);
    let mut arguments = (0..60).map(|at| (at.to_string(), json!("amount price"))).collect::<Map<_, _>>();
    arguments.insert("last".to_owned(), json!("Wexcombe"));
    let origins = trace(&index, &arguments, &json!({}), &Judging::default());
    for (pointer, origin) in origins {
        assert!(origin.kind == Kind::Unknown && origin.is_stated() && origin.untrusted, "{pointer}: {origin:?}");
    }
    assert_eq!(origin(&index, "Wexcombe").kind, Kind::None);
}
