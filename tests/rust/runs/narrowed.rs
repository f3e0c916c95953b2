//! The rule for agents that continue older runs: if a newer schema is said to take no less than an older one, each value
//! that the older one admits is valid with the newer one.

use callslip::tool::narrowed;
use jsonschema::Validator;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value as Json, json};
use std::cell::Cell;

/// Choices that are made of random bytes: the first is taken once there are no more, so that fewer bytes mean simpler
/// cases.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, most: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or_default()) % most
    }

    fn one_in(&mut self, most: usize) -> bool {
        self.below(most) == most - 1
    }

    fn pick(&mut self, from: &[Json]) -> Json {
        from[self.below(from.len())].clone()
    }
}

fn values() -> Vec<Json> {
    vec![json!("a"), json!("b"), json!(1), json!(2), json!(1.5), json!(null), json!(true), json!(false)]
}

fn bounds(choices: &mut Choices<'_>, schema: &mut Json, keys: &[&str]) {
    for key in keys {
        if choices.one_in(3) {
            schema[key] = if choices.one_in(4) { json!(0.5) } else { json!(choices.below(6)) };
        }
    }
}

fn sizes(choices: &mut Choices<'_>, schema: &mut Json, keys: &[&str]) {
    for key in keys {
        if choices.one_in(3) {
            schema[key] = json!(choices.below(4));
        }
    }
}

fn schema(choices: &mut Choices<'_>, depth: usize) -> Json {
    match choices.below(if depth == 0 { 6 } else { 10 }) {
        0 | 1 => {
            let mut schema =
                json!({"type": choices.pick(&[json!("integer"), json!("number"), json!(["integer", "null"])])});
            bounds(choices, &mut schema, &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]);
            if choices.one_in(6) {
                schema["multipleOf"] = json!(choices.below(2) + 1);
            }
            schema
        }
        2 => {
            let mut schema = json!({"type": "string"});
            sizes(choices, &mut schema, &["minLength", "maxLength"]);
            if choices.one_in(4) {
                schema["pattern"] = choices.pick(&[json!("^a"), json!("b")]);
            }
            schema
        }
        3 => choices.pick(&[json!({"type": "boolean"}), json!({}), json!(true), json!(false), json!({"type": "null"})]),
        4 => {
            let listed: Vec<Json> = values().into_iter().filter(|_| choices.below(2) == 1).collect();
            if listed.is_empty() { json!({"const": choices.pick(&values())}) } else { json!({ "enum": listed }) }
        }
        5 => choices.pick(&[json!({"$ref": "#/$defs/one"}), json!({"$ref": "#/$defs/two"})]),
        6 => {
            let mut schema = json!({"type": "array", "items": self::schema(choices, depth - 1)});
            sizes(choices, &mut schema, &["minItems", "maxItems"]);
            if choices.one_in(4) {
                schema["uniqueItems"] = json!(choices.below(2) == 1);
            }
            schema
        }
        7 => {
            let key = if choices.one_in(3) { "oneOf" } else { "anyOf" };
            json!({ key: [self::schema(choices, depth - 1), self::schema(choices, depth - 1)] })
        }
        _ => object(choices, depth - 1),
    }
}

fn object(choices: &mut Choices<'_>, depth: usize) -> Json {
    let mut object = json!({"type": "object", "properties": {}, "required": []});
    for name in ["a", "b", "c"] {
        if choices.below(2) == 1 {
            object["properties"][name] = schema(choices, depth);
            if choices.below(2) == 1 {
                object["required"].as_array_mut().unwrap().push(json!(name));
            }
        }
    }
    match choices.below(5) {
        0..=2 => object["additionalProperties"] = json!(false),
        3 => object["additionalProperties"] = schema(choices, depth),
        _ => {}
    }
    if choices.one_in(8) {
        object["patternProperties"] = json!({"^n": {"type": "string"}});
    }
    if choices.one_in(5) {
        sizes(choices, &mut object, &["minProperties", "maxProperties"]);
    }
    object
}

fn arguments(choices: &mut Choices<'_>) -> Json {
    let mut schema = object(choices, 2);
    schema["$defs"] = json!({"one": self::schema(choices, 1), "two": object(choices, 1)});
    schema
}

/// The schemas in a schema, by pointers.
fn places(schema: &Json, at: &str, found: &mut Vec<String>) {
    if !schema.is_object() {
        return;
    }
    found.push(at.to_owned());
    for key in ["properties", "$defs"] {
        for (name, inner) in schema[key].as_object().into_iter().flatten() {
            places(inner, &format!("{at}/{key}/{name}"), found);
        }
    }
    for key in ["items", "additionalProperties"] {
        places(&schema[key], &format!("{at}/{key}"), found);
    }
    for key in ["anyOf", "oneOf"] {
        for (position, inner) in schema[key].as_array().into_iter().flatten().enumerate() {
            places(inner, &format!("{at}/{key}/{position}"), found);
        }
    }
}

fn changed(choices: &mut Choices<'_>, schema: &Json) -> Json {
    let mut schema = schema.clone();
    for _ in 0..=choices.below(3) {
        let mut pointers = Vec::new();
        places(&schema, "", &mut pointers);
        let at = &pointers[choices.below(pointers.len())];
        let place = schema.pointer_mut(at).unwrap();
        change(choices, place);
    }
    schema
}

fn change(choices: &mut Choices<'_>, place: &mut Json) {
    match choices.below(10) {
        0 => place["description"] = json!("other words"),
        1 => place["properties"]["new"] = schema(choices, 1),
        2 if place["type"] == "integer" => place["type"] = json!("number"),
        3 => {
            let keys: Vec<String> = place.as_object().unwrap().keys().cloned().collect();
            if !keys.is_empty() {
                let key = &keys[choices.below(keys.len())];
                if key != "$defs" {
                    place.as_object_mut().unwrap().remove(key);
                }
            }
        }
        4 => bounds(choices, place, &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]),
        5 => {
            sizes(
                choices,
                place,
                &["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
            );
        }
        6 if place["enum"].is_array() => place["enum"].as_array_mut().unwrap().push(choices.pick(&values())),
        7 => place["additionalProperties"] = choices.pick(&[json!(true), json!(false), json!({"type": "string"})]),
        8 => {
            let before = place.clone();
            let defs = place.as_object_mut().unwrap().remove("$defs");
            *place = json!({"anyOf": [schema(choices, 1), before]});
            place["anyOf"][1].as_object_mut().unwrap().remove("$defs");
            if let Some(defs) = defs {
                place["$defs"] = defs;
            }
        }
        _ => {
            let required = place["required"].as_array().cloned().unwrap_or_default();
            place["required"] =
                if choices.below(2) == 1 { json!(["a"]) } else { required.into_iter().skip(1).collect() };
        }
    }
    let map = place.as_object_mut().unwrap();
    // Reading an entry that isn't there has made it.
    map.retain(|_, value| !value.is_null());
}

/// A value that a schema may admit.
fn value(choices: &mut Choices<'_>, root: &Json, schema: &Json, depth: usize) -> Json {
    if depth == 0 || choices.one_in(12) {
        return choices.pick(&values());
    }
    if let Some(name) = schema["$ref"].as_str() {
        return value(choices, root, root.pointer(name.trim_start_matches('#')).unwrap(), depth - 1);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(alternatives) = schema[key].as_array() {
            let one = &alternatives[choices.below(alternatives.len())];
            return value(choices, root, one, depth - 1);
        }
    }
    if let Some(listed) = schema["enum"].as_array() {
        return choices.pick(listed);
    }
    if let Some(only) = schema.get("const") {
        return only.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let mut object = json!({});
            for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
                let is_required = schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
                if is_required || choices.below(2) == 1 {
                    object[name] = value(choices, root, inner, depth - 1);
                }
            }
            if schema["additionalProperties"] != json!(false) && choices.one_in(3) {
                object[choices.pick(&[json!("new"), json!("other")]).as_str().unwrap()] = choices.pick(&values());
            }
            object
        }
        Some("array") => {
            let count = choices.below(4);
            (0..count).map(|_| value(choices, root, &schema["items"], depth - 1)).collect()
        }
        Some("string") => json!("ab".repeat(choices.below(3))),
        Some("boolean") => json!(choices.below(2) == 1),
        Some("number") if choices.below(2) == 1 => {
            json!(f64::from(u8::try_from(choices.below(16)).unwrap()) / 2.0 - 1.0)
        }
        Some("integer" | "number") => json!(i64::try_from(choices.below(8)).unwrap() - 1),
        _ => choices.pick(&values()),
    }
}

fn validator(schema: &Json) -> Option<Validator> {
    jsonschema::draft202012::new(schema).ok()
}

#[test]
fn what_was_admitted_stays_valid_where_the_rule_says_so() {
    let cases = crate::cases::of(4_000);
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() });
    let (agreed, tried) = (Cell::new(0_u32), Cell::new(0_u64));
    let bytes = (vec(any::<u8>(), 0..160), vec(any::<u8>(), 0..30), vec(any::<u8>(), 0..600));
    let outcome = runner.run(&bytes, |(first, second, third)| {
        let kept = arguments(&mut Choices(first.iter()));
        let offered = changed(&mut Choices(second.iter()), &kept);
        if !narrowed(&kept, &offered).is_empty() {
            return Ok(());
        }
        let (Some(before), Some(now)) = (validator(&kept), validator(&offered)) else { return Ok(()) };
        agreed.set(agreed.get() + 1);
        let mut choices = Choices(third.iter());
        for _ in 0..20 {
            let value = value(&mut choices, &kept, &kept, 6);
            if before.is_valid(&value) {
                tried.set(tried.get() + 1);
                prop_assert!(now.is_valid(&value), "{kept} -> {offered} no longer takes {value}");
            }
        }
        Ok(())
    });
    outcome.unwrap();
    // The rule is not one that refuses everything.
    assert!(agreed.get() > cases / 10, "{} of {cases}", agreed.get());
    assert!(tried.get() > u64::from(cases), "{} values, {cases} cases", tried.get());
}

#[test]
fn a_schema_that_refers_to_itself_is_compared_to_its_end() {
    let list = |of: Json| {
        let node = json!({"type": "object", "additionalProperties": false, "required": ["value"],
            "properties": {"value": of, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}});
        json!({"type": "object", "properties": {"list": {"$ref": "#/$defs/node"}}, "required": ["list"],
            "additionalProperties": false, "$defs": {"node": node}})
    };
    assert_eq!(narrowed(&list(json!({"type": "integer"})), &list(json!({"type": "number"}))), Vec::<String>::new());
    let found = narrowed(&list(json!({"type": "number"})), &list(json!({"type": "integer"})));
    assert_eq!(found, ["/list/value takes no number any more: take that too"]);
    let endless =
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}});
    let other = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}, "b": true}, "$defs": {"a": {"$ref": "#/$defs/a"}}});
    assert!(!narrowed(&endless, &other).is_empty());
}
