//! Origins of any value in any conversation. U+001F separates the texts, and the first of them is the value.

use super::Input;
use callslip::origin::{Clock, Echo, Index, Judging, Kind, Origin, Source, trace};
use serde_json::{Map, Value as Json};
use std::sync::Arc;

const KINDS: [Kind; 6] = [Kind::Task, Kind::Result, Kind::User, Kind::Result, Kind::Instructions, Kind::Model];

pub(super) fn check(input: Input<'_>) {
    let whole = String::from_utf8_lossy(input.text);
    let (value, rest) = whole.split_once('\u{1f}').unwrap_or((&whole, ""));
    let texts: Vec<&str> = rest.split('\u{1f}').collect();
    let value = serde_json::from_str(value).unwrap_or_else(|_| Json::from(value));
    let index = indexed(
        &texts,
        |number| input.option(u8::try_from(number % 3).unwrap_or(0)),
        input.option(3).then_some(&value),
    );
    let judging = Judging { clock: Some(Clock { year: 2026, month: 3, day: 4 }), ..Judging::default() };
    let arguments = Map::from_iter([("x".to_owned(), value.clone())]);
    let schema = serde_json::json!({"properties": {"x": {"description": texts.last()}}});
    let origins = trace(&index, &arguments, &schema, &judging);
    assert!(origins == trace(&index, &arguments, &schema, &judging), "the same search gives the same");
    for (pointer, origin) in origins {
        let leaf = serde_json::json!({"x": value});
        assert!(leaf.pointer(&pointer).is_some(), "{pointer} leads to a leaf");
        check_places(&texts, &origin);
        let written = serde_json::to_string(&origin).expect("an origin has a JSON form");
        let read: Origin = serde_json::from_str(&written).expect("the JSON form of an origin is one");
        assert_eq!(read, origin, "an origin that was written and read");
    }
}

fn indexed(texts: &[&str], is_untrusted: impl Fn(usize) -> bool, made_up: Option<&Json>) -> Index {
    let mut index = Index::new();
    for (number, text) in texts.iter().enumerate() {
        let kind = KINDS[number % KINDS.len()];
        let said = made_up.filter(|_| kind == Kind::Result);
        let echo = said.map(|value| Echo { value: value.clone(), origin: None }).into_iter().collect();
        let untrusted = is_untrusted(number);
        index.add(Source { untrusted, echo, ..Source::new(kind, &number.to_string()) }, Arc::from(*text));
    }
    index
}

/// Places are at the borders of characters, and pointers lead to a leaf or key of a JSON text.
fn check_places(texts: &[&str], origin: &Origin) {
    let own = (&origin.place, origin.span, &origin.pointer);
    let others = origin.others.iter().map(|place| (&place.place, place.span, &place.pointer));
    for (place, span, pointer) in std::iter::once(own).chain(others) {
        let Some(text) = place.parse::<usize>().ok().and_then(|number| texts.get(number)) else { continue };
        if let Some((start, end)) = span {
            assert!(text.get(start..end).is_some_and(|slice| !slice.is_empty()), "{start}..{end} in {text:?}");
        }
        if let Some(pointer) = pointer {
            let json: Json = serde_json::from_str(text).expect("a text with leaves is JSON");
            assert!(json.pointer(pointer).is_some(), "{pointer} in {text}");
        }
    }
}
