use super::notes;
use crate::tool::render::{Notes, line_entry};
use crate::tool::set::tests::tool;
use crate::tool::{Budget, Layout, ToolSet, ToolSpec};
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

/// Notes as `path | limits | description`.
#[expect(clippy::needless_pass_by_value, reason = "the tests write the schemas in place")]
fn said(properties: Json, definitions: Json) -> Vec<String> {
    let schema = json!({"type": "object", "properties": properties, "$defs": definitions});
    let tool = tool("book_trip", "Book a trip to a city.", schema);
    notes(&tool).iter().map(|note| format!("{} | {} | {}", note.path, note.limits, note.description)).collect()
}

#[test]
fn limits_are_a_few_words() {
    for (schema, expected) in [
        (json!({"type": "integer", "minimum": 1, "maximum": 9}), "1 to 9"),
        (json!({"type": "integer", "minimum": 3, "maximum": 3}), "exactly 3"),
        (json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5}), "more than 0, at most 1.5"),
        (json!({"type": "number", "minimum": 0, "exclusiveMaximum": 1}), "at least 0, less than 1"),
        (json!({"type": "number", "minimum": 2, "exclusiveMinimum": 1}), "at least 2"),
        (json!({"type": "integer", "multipleOf": 5}), "a multiple of 5"),
        (json!({"type": "integer", "minimum": 1.0, "maximum": 99.0}), "1 to 99"),
        (json!({"type": "number", "exclusiveMinimum": -2.0, "maximum": 0.5}), "more than -2, at most 0.5"),
        (json!({"type": "integer", "minimum": 3, "maximum": 3.0}), "exactly 3"),
        (json!({"type": "number", "maximum": 0.25, "multipleOf": 2.0}), "at most 0.25, a multiple of 2"),
        (json!({"type": "string", "minLength": 2, "maxLength": 20}), "2 to 20 characters"),
        (json!({"type": "string", "minLength": 3, "maxLength": 3}), "3 characters"),
        (json!({"type": "string", "minLength": 1, "maxLength": 8}), "at most 8 characters"),
        (json!({"type": "string", "pattern": "^[A-Z]{3}$"}), "pattern ^[A-Z]{3}$"),
        (json!({"type": "string", "pattern": "a\nb"}), "pattern a\\u000ab"),
        (json!({"type": "string", "format": "duration"}), "format duration"),
        (json!({"type": "array", "minItems": 1, "uniqueItems": true}), "at least 1 item, no item twice"),
        (json!({"type": "array", "items": {}, "maxItems": 5}), "at most 5 items"),
        (json!({"type": "object", "minProperties": 2}), "at least 2 names"),
        (json!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}), "at least 1"),
        (json!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}), "at least 1"),
        (
            json!({"oneOf": [{"type": "integer", "minimum": 9}, {"type": "integer", "maximum": 3}]}),
            "at least 9; or at most 3",
        ),
        (json!({"anyOf": [{"type": "integer", "minimum": 9}, {"type": "integer"}]}), "at least 9; or any"),
        (json!({"allOf": [{"type": "integer", "minimum": 1}, {"minimum": 4}]}), "at least 4"),
        (json!({"$ref": "#/$defs/Code", "maxLength": 6}), "at most 6 characters, pattern ^c"),
    ] {
        let code = json!({"Code": {"type": "string", "pattern": "^c", "maxLength": 9}});
        assert_eq!(said(json!({"x": schema}), code), [format!("x | {expected} | ")], "{schema}");
    }
}

#[test]
fn what_the_signature_says_is_not_said_again() {
    for schema in [
        json!({"type": "integer", "format": "int64"}),
        json!({"type": "string", "format": "date"}),
        json!({"anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]}),
        json!({"type": "string", "minLength": 1}),
        json!({"type": "string", "minLength": 0}),
        json!({"enum": [1, 2], "minimum": 1}),
        json!({"const": "abc", "maxLength": 3}),
        json!({"type": "array", "prefixItems": [{}, {}], "minItems": 2, "maxItems": 2}),
        json!({"type": "array", "uniqueItems": false, "minItems": 0}),
        json!({"type": "string", "pattern": "x".repeat(200)}),
        json!({"type": "boolean", "maximum": 3}),
        json!(true),
    ] {
        assert_eq!(said(json!({"x": schema}), json!({})), [""; 0], "{schema}");
    }
}

#[test]
fn a_description_is_said_if_it_adds_a_word() {
    let is_said = |name: &str, description: &str| {
        !said(json!({name: {"type": "string", "description": description}}), json!({})).is_empty()
    };
    for (name, description) in [
        ("expression", "the expression"),
        ("max_results", "Max. results"),
        ("maxResults", "The max results (string)"),
        ("city", "The city to book a trip to."),
        ("city", "Cities of trips"),
        ("city", " "),
    ] {
        assert!(!is_said(name, description), "{description}");
    }
    for (name, description) in [
        ("city", "Where to."),
        ("share", "in %"),
        ("city", "The city, in capitals."),
        ("stadt", "都市"),
        ("day", "not the day"),
        ("day", "2025"),
    ] {
        assert!(is_said(name, description), "{description}");
    }
}

#[test]
fn fields_have_paths() {
    let stop = json!({"type": "object", "description": "A halt.", "properties": {
        "city": {"type": "string", "description": "In capitals."},
        "nights": {"type": "integer", "maximum": 14},
        "next": {"$ref": "#/$defs/Stop"},
    }});
    let properties = json!({
        "stops": {"type": "array", "items": {"$ref": "#/$defs/Stop"}, "maxItems": 5},
        "home": {"anyOf": [{"$ref": "#/$defs/Stop"}, {"type": "null"}]},
        "prices": {"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}},
        "point": {"prefixItems": [{"type": "number", "maximum": 90}, {"type": "number"}]},
    });
    assert_eq!(
        said(properties, json!({"Stop": stop})),
        [
            "stops | at most 5 items | ",
            "stops[] |  | A halt.",
            "stops[].city |  | In capitals.",
            "stops[].nights | at most 14 | ",
            "home |  | A halt.",
            "home.city |  | In capitals.",
            "home.nights | at most 14 | ",
            "prices.* | more than 0 | ",
            "point[0] | at most 90 | ",
        ]
    );
}

#[test]
fn what_is_said_of_several_stands_once() {
    let code = json!({"type": "string", "pattern": "^[A-Z]{3}$"});
    let schema = json!({"type": "object", "properties": {"from": code, "to": code, "seats": {"type": "integer", "maximum": 9,
        "description": "How many."}}});
    let text = line_entry(&tool("fly", "Fly.", schema), Notes::All);
    assert_eq!(
        text,
        "fly(from?: str, to?: str, seats?: int)  # Fly.\n  from, to: pattern ^[A-Z]{3}$\n  seats (at most 9): How many."
    );
}

#[test]
fn a_schema_within_itself_ends() {
    let node = json!({"type": "object", "properties": {"next": {"anyOf": vec![json!({"$ref": "#/$defs/Node"}); 9]}}});
    assert_eq!(said(json!({"node": {"$ref": "#/$defs/Node"}}), json!({"Node": node})), [""; 0]);
    assert_eq!(said(json!({"x": {"$ref": "#/$defs/X"}}), json!({"X": {"$ref": "#/$defs/X"}})), [""; 0]);
}

#[test]
fn limits_are_left_out_before_descriptions_are() {
    let schema = json!({"type": "object", "properties": {
        "seats": {"type": "integer", "minimum": 1, "maximum": 9, "description": "How many travel."},
        "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
    }});
    let tools = ToolSet::new(vec![tool("book", "Book.", schema)]).unwrap();
    let text = |tokens| tools.interface(Layout::Lines, Budget(tokens));
    assert!(text(8_000).ends_with("\n  seats (1 to 9): How many travel.\n  code: pattern ^[A-Z]{3}$"));
    assert!(text(42).ends_with("book(seats?: int, code?: str)  # Book.\n  seats: How many travel."), "{}", text(42));
    assert!(text(32).ends_with("book(seats?: int, code?: str)  # Book."), "{}", text(32));
}

type Fact = fn(usize) -> Json;
type Around = fn(Json) -> Json;

/// Schemas that contain a number, and whether a prompt shows the number.
const FACTS: [(Fact, bool); 16] = [
    (|n| json!({"type": "integer", "minimum": n}), true),
    (|n| json!({"type": "number", "exclusiveMinimum": n}), true),
    (|n| json!({"type": "integer", "maximum": n}), true),
    (|n| json!({"type": "number", "exclusiveMaximum": n}), true),
    (|n| json!({"type": "integer", "multipleOf": n}), true),
    (|n| json!({"type": "string", "minLength": n}), true),
    (|n| json!({"type": "string", "maxLength": n}), true),
    (|n| json!({"type": "string", "pattern": format!("^x{{{n}}}$")}), true),
    (|n| json!({"type": "string", "format": format!("form-{n}")}), true),
    (|n| json!({"type": "array", "minItems": n}), true),
    (|n| json!({"type": "array", "maxItems": n, "uniqueItems": true}), true),
    (|n| json!({"type": "string", "description": format!("Sort {n}.")}), true),
    (|n| json!({"type": "string", "enum": ["a", "b"], "maxLength": n}), false),
    (|n| json!({"type": "string", "title": format!("{n}"), "description": "the string", "minLength": 1}), false),
    (|n| json!({"type": "integer", "format": "int64", "$comment": format!("{n}")}), false),
    (|n| json!({"type": "boolean", "maxLength": n}), false),
];

/// Ways to nest a schema, with the step that each adds to the path.
const AROUND: [(Around, &str); 6] = [
    (|inner| json!({"anyOf": [inner, {"type": "null"}]}), ""),
    (|inner| json!({"allOf": [inner]}), ""),
    (|inner| json!({"type": "array", "items": inner}), "[]"),
    (|inner| json!({"type": "array", "prefixItems": [{"type": "string"}, inner]}), "[1]"),
    (|inner| json!({"type": "object", "properties": {"in": inner}, "required": ["in"]}), ".in"),
    (|inner| json!({"type": "object", "additionalProperties": inner}), ".*"),
];

const NAMES: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

fn made(facts: &[(usize, Vec<usize>, bool)], with_facts: bool) -> ToolSpec {
    let (mut properties, mut definitions) = (Map::new(), Map::new());
    for (index, ((fact, around, shared), name)) in facts.iter().zip(NAMES).enumerate() {
        let mut schema = FACTS[*fact].0(1_001 + index);
        if !with_facts && let Some(map) = schema.as_object_mut() {
            map.retain(|key, _| matches!(key.as_str(), "type" | "enum"));
        }
        if *shared {
            definitions.insert(name.to_uppercase(), schema);
            schema = json!({"$ref": format!("#/$defs/{}", name.to_uppercase())});
        }
        let schema = around.iter().fold(schema, |inner, at| AROUND[*at].0(inner));
        properties.insert(name.to_owned(), schema);
    }
    let schema = json!({"type": "object", "properties": properties, "$defs": definitions});
    tool("go", "Go.", schema)
}

proptest! {
    #[test]
    fn each_fact_is_told_once_or_not_at_all(
        facts in prop::collection::vec((0..FACTS.len(), prop::collection::vec(0..AROUND.len(), 0..4), any::<bool>()), 1..=4)
    ) {
        let tools = ToolSet::new(vec![made(&facts, true)]).unwrap();
        let lines = tools.interface(Layout::Lines, Budget::default());
        let list = tools.interface(Layout::List, Budget::default());
        let routes = super::super::interface::noted_lines(&tools);
        let found = tools.search("go", false).tools.join("\n");
        for (index, ((fact, around, _), name)) in facts.iter().zip(NAMES).enumerate() {
            let number = (1_001 + index).to_string();
            let told = FACTS[*fact].1;
            for text in [&lines, &list, &routes, &found] {
                prop_assert_eq!(text.matches(&number).count(), usize::from(told), "{}\n{}", number, text);
            }
            let path = around.iter().rev().fold(name.to_owned(), |path, at| path + AROUND[*at].1);
            let line = lines.lines().any(|line| line.starts_with(&format!("  {path}: ")) && line.contains(&number));
            prop_assert_eq!(line, told, "{}\n{}", path, lines);
        }
    }

    #[test]
    fn a_schema_with_nothing_to_tell_is_a_signature(
        facts in prop::collection::vec((0..FACTS.len(), prop::collection::vec(0..AROUND.len(), 0..4), any::<bool>()), 0..=4)
    ) {
        let plain = made(&facts, false);
        let expected = format!("{}  # Go.", crate::tool::ToolView::Tool(&plain).signature(false, 3));
        prop_assert_eq!(&line_entry(&plain, Notes::All), &expected);
        // Facts change only the lines below.
        let told = line_entry(&made(&facts, true), Notes::All);
        prop_assert_eq!(told.lines().next(), Some(&*expected));
    }
}
