//! Whatever the schema of a tool: arguments that the grammar admits are arguments that the check admits.

use crate::walk::{Random, is_refused, matcher, tool, walk_to};
use callslip::protocol::grammar::{Bounds, Scope};
use callslip::protocol::{Chatty, Code, Protocol, React, chatty, react};
use callslip::tool::ToolSet;
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

/// Some of these keywords, each by its own chance.
fn keywords(parts: Vec<(&'static str, BoxedStrategy<Json>)>) -> BoxedStrategy<Map<String, Json>> {
    let each: Vec<BoxedStrategy<Option<(String, Json)>>> = parts
        .into_iter()
        .map(|(name, values)| proptest::option::of(values.prop_map(move |value| (name.to_owned(), value))).boxed())
        .collect();
    each.prop_map(|chosen| chosen.into_iter().flatten().collect()).boxed()
}

fn with_type(name: &'static str, keywords: BoxedStrategy<Map<String, Json>>) -> BoxedStrategy<Json> {
    let typed = move |mut map: Map<String, Json>| {
        map.insert("type".to_owned(), Json::from(name));
        Json::Object(map)
    };
    keywords.prop_map(typed).boxed()
}

fn numbers(from: f64, to: f64) -> BoxedStrategy<Json> {
    let scaled = (0..=1_000_u32).prop_map(move |part| {
        let value = from + (to - from) * f64::from(part) / 1_000.0;
        json!((value * 100.0).round() / 100.0)
    });
    scaled.boxed()
}

fn integer() -> BoxedStrategy<Json> {
    let keywords = keywords(vec![
        ("minimum", (-2_000..50_i64).prop_map(Json::from).boxed()),
        ("maximum", (40..70_000_i64).prop_map(Json::from).boxed()),
        ("exclusiveMinimum", numbers(-20.0, 30.0)),
        ("exclusiveMaximum", numbers(60.0, 90.0)),
    ]);
    with_type("integer", keywords)
}

fn number() -> BoxedStrategy<Json> {
    let keywords = keywords(vec![
        ("minimum", numbers(-30.0, 1.0)),
        ("maximum", numbers(1.05, 40.0)),
        ("exclusiveMinimum", numbers(-2.0, 1.0)),
        ("exclusiveMaximum", numbers(1.05, 3.0)),
    ]);
    with_type("number", keywords)
}

/// A regular expression of the part that is translated.
fn regex() -> BoxedStrategy<String> {
    let atom = prop_oneof![
        Just("a"),
        Just("é"),
        Just("\\."),
        Just("/"),
        Just("-"),
        Just("\""),
        Just("[a-f]"),
        Just("[^a-y]"),
        Just("\\d"),
        Just("\\w"),
        Just("\\s"),
        Just("\\S"),
        Just("\\W"),
        Just("\\D"),
        Just("."),
        Just("[\\w.-]"),
        Just("[^\\s\"]"),
        Just("[^\\w]"),
    ]
    .prop_map(str::to_owned);
    let inner = atom.prop_recursive(3, 12, 4, |inner| {
        let count = prop_oneof![Just("*"), Just("+"), Just("?"), Just("{2}"), Just("{1,3}"), Just("{2,}")];
        prop_oneof![
            (inner.clone(), count).prop_map(|(one, count)| format!("(?:{one}){count}")),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner, 2..4).prop_map(|parts| format!("({})", parts.join("|"))),
        ]
    });
    (any::<bool>(), inner, any::<bool>())
        .prop_map(|(start, inner, end)| {
            format!("{}{inner}{}", if start { "^" } else { "" }, if end { "$" } else { "" })
        })
        .boxed()
}

fn string() -> BoxedStrategy<Json> {
    let lengths = keywords(vec![
        ("minLength", (0..12_u32).prop_map(Json::from).boxed()),
        ("maxLength", (12..300_u32).prop_map(Json::from).boxed()),
        ("format", prop_oneof![Just("date"), Just("uuid"), Just("no such")].prop_map(Json::from).boxed()),
    ]);
    // A format alone may say how long a text is: the lengths are another test's.
    let plain = lengths.prop_map(|mut map| {
        if map.len() > 1 {
            map.remove("format");
        }
        map
    });
    prop_oneof![
        with_type("string", plain.boxed()),
        regex().prop_map(|pattern| json!({"type": "string", "pattern": pattern})),
        (0..9_u32).prop_map(
            // Lengths are kept beside a pattern of one kind of character; beside others they are left to the check.
            |min| json!({"type": "string", "pattern": "^[a-z]*$", "minLength": min, "maxLength": min + 3})
        ),
    ]
    .boxed()
}

fn value() -> BoxedStrategy<Json> {
    prop_oneof![
        Just(json!("a \"quoted\" \\ text\nof two lines")),
        Just(json!("é🎉")),
        Just(json!(-1.5)),
        Just(json!(12)),
        Just(json!(null)),
        Just(json!(true)),
        Just(json!({"a": [1, {"b": "c"}], "d": {}})),
    ]
    .boxed()
}

fn schema() -> BoxedStrategy<Json> {
    let leaf = prop_oneof![
        3 => string(),
        2 => integer(),
        2 => number(),
        1 => Just(json!({"type": "boolean"})),
        1 => Just(json!({"type": ["null", "integer"]})),
        1 => value().prop_map(|value| json!({"const": value})),
        1 => prop::collection::vec(value(), 1..4).prop_map(|values| json!({"enum": values})),
        1 => Just(json!({"$ref": "#/$defs/Node"})),
    ];
    let nested = leaf.prop_recursive(3, 16, 4, |inner| {
        let array = (inner.clone(), 0..3_u32, 0..4_u32)
            .prop_map(|(items, min, more)| json!({"type": "array", "items": items, "minItems": min, "maxItems": min + more}));
        let tuple = (prop::collection::vec(inner.clone(), 1..4), inner.clone(), 0..6_u32)
            .prop_map(|(first, rest, min)| json!({"type": "array", "prefixItems": first, "items": rest, "minItems": min}));
        let map = (inner.clone(), 0..2_u32)
            .prop_map(|(values, min)| json!({"type": "object", "additionalProperties": values, "minProperties": min, "maxProperties": 1}));
        let either = (string(), integer(), object(inner.clone(), "")).prop_map(|(one, two, three)| json!({"oneOf": [one, two, three]}));
        prop_oneof![
            array,
            tuple,
            map,
            either,
            object(inner.clone(), ""),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|branches| json!({"anyOf": branches})),
            (inner.clone(), any::<bool>()).prop_map(|(one, twice)| {
                let all = if twice { vec![one.clone(), one] } else { vec![one] };
                json!({"description": "joined", "allOf": all})
            }),
            (object(inner.clone(), ""), object(inner, "other ")).prop_map(|(mut one, mut two)| {
                // Two closed objects would each refuse the other's properties.
                for part in [&mut one, &mut two] {
                    part.as_object_mut().unwrap().remove("additionalProperties");
                    part.as_object_mut().unwrap().remove("maxProperties");
                }
                json!({"allOf": [one, two]})
            }),
        ]
    });
    nested.boxed()
}

/// An object schema whose properties begin with `mark`.
fn object(inner: BoxedStrategy<Json>, mark: &'static str) -> BoxedStrategy<Json> {
    (prop::collection::vec((inner, any::<bool>()), 0..5), 0..8_u32, any::<bool>())
        .prop_map(move |(properties, form, closed)| {
            let name = |at: usize| format!("{mark}{} {at}\"é", ["a", "b.c", "$d", "e_f", "G-h"][at % 5]);
            let required: Vec<String> =
                properties.iter().enumerate().filter(|(_, (_, needed))| *needed).map(|(at, _)| name(at)).collect();
            let count = properties.len();
            let properties: Map<String, Json> =
                properties.into_iter().enumerate().map(|(at, (schema, _))| (name(at), schema)).collect();
            let mut schema = json!({"type": "object", "properties": properties, "required": required});
            if closed {
                schema["additionalProperties"] = json!(false);
            }
            match form {
                0 if count > 0 => schema["minProperties"] = json!((required.len() + 1).min(count)),
                1 => schema["maxProperties"] = json!(required.len() + 1),
                2 if count > 1 => schema["dependentRequired"] = json!({(name(0)): [name(1)]}),
                _ => {}
            }
            schema
        })
        .boxed()
}

fn arguments() -> BoxedStrategy<Json> {
    object(schema(), "")
        .prop_map(|mut schema| {
            schema["$defs"] = json!({"Node": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "maxLength": 4},
                    "left": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                    "rest": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                },
                "required": ["name"],
            }});
            schema
        })
        .boxed()
}

/// Bytes after which a walk is given up: a pattern may ask for one certain character before a text may end.
const PATIENCE: usize = 3_000;

/// Checks that calls under the grammar of the schema are right, or broken off at a bound.
fn check(schema: &Json, seed: u64, bounds: Option<Bounds>) {
    let tools = ToolSet::new(vec![tool("one", schema.clone())]).unwrap();
    let scope = Scope {
        tools: &tools,
        calls: true,
        delegates: false,
        finish: false,
        in_progress: Vec::new(),
        completed: Vec::new(),
        longest: None,
        agents: Vec::new(),
        thoughts: Some(160),
        bounds,
    };
    let mut random = Random::new(seed);
    let react = React::default();
    let chatty = Chatty::default();
    for (protocol, grammar) in [
        (&react as &dyn Protocol, react::grammar::react(&scope, false, None)),
        (&chatty as &dyn Protocol, chatty::grammar::chatty(&scope, &chatty.tags, None)),
    ] {
        assert!(grammar.unruled.is_empty(), "{schema}");
        let matcher = matcher(&grammar.lark);
        for _ in 0..3 {
            let Some(text) = walk_to(&matcher, &mut random, PATIENCE) else { continue };
            // That a key stands twice in an open object no grammar can forbid; a bound cuts replies off.
            let codes: &[Code] =
                if bounds.is_some() { &[Code::DuplicateKey, Code::Truncated] } else { &[Code::DuplicateKey] };
            is_refused(protocol, &tools, &text, codes);
        }
    }
}

const SMALL: Bounds = Bounds { answer: 30, string: 12, items: 3, thoughts: 20 };

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::of(64), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arguments_are_valid(schema in arguments(), seed in 1..1_000_000_u64, bounded in any::<bool>()) {
        check(&schema, seed, bounded.then_some(SMALL));
    }

    #[test]
    fn texts_match_their_pattern(pattern in regex(), seed in 1..1_000_000_u64, bounded in any::<bool>()) {
        let schema = json!({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}, "required": ["x"]});
        check(&schema, seed, bounded.then_some(SMALL));
    }
}
