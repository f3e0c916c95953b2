//! How much work a check would be. The branches of a union are tried one by one, and those of a union inside of a union
//! once for each of the outer: a short reply could keep a validator busy for hours.

use super::types::{Schema, list, reference};
use crate::reply::Value;
use serde_json::Value as Json;

/// Schemas that are applied before a check is given up, and further ones for each value that there is.
const BASE: usize = 100_000;
const EACH: usize = 200;

/// References and combinations inside of one another; a schema that refers to itself alone has no end of them.
const DEPTH: usize = 1_000;

/// Whether checking `value` ends soon.
pub(super) fn is_affordable(schema: Schema<'_>, value: &Value) -> bool {
    let mut left = BASE.saturating_add(size(value).saturating_mul(EACH));
    apply(schema, value, DEPTH, &mut left).is_some()
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// Goes where a validator would; `None` as soon as that is too far.
fn apply(schema: Schema<'_>, value: &Value, depth: usize, left: &mut usize) -> Option<()> {
    *left = left.checked_sub(1)?;
    let depth = depth.checked_sub(1)?;
    let Some(map) = schema.node.as_object() else {
        return Some(());
    };
    if let Some(target) = reference(schema.root, schema.node) {
        apply(schema.at(target), value, depth, left)?;
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for branch in list(map, keyword) {
            apply(schema.at(branch), value, depth, left)?;
        }
    }
    for keyword in ["not", "if", "then", "else"] {
        if let Some(part) = map.get(keyword) {
            apply(schema.at(part), value, depth, left)?;
        }
    }
    match value {
        Value::Object(members) => {
            for (key, value) in members.iter() {
                let property = map.get("properties").and_then(|properties| properties.get(key));
                if let Some(schema_of) = property.or_else(|| map.get("additionalProperties")) {
                    apply(schema.at(schema_of), value, depth, left)?;
                }
                for pattern in map.get("patternProperties").and_then(Json::as_object).into_iter().flatten() {
                    apply(schema.at(pattern.1), value, depth, left)?;
                }
            }
        }
        Value::Array(items) => {
            let prefix = list(map, "prefixItems");
            for (index, item) in items.iter().enumerate() {
                if let Some(schema_of) = prefix.get(index).or_else(|| map.get("items")) {
                    apply(schema.at(schema_of), item, depth, left)?;
                }
                if let Some(contained) = map.get("contains") {
                    apply(schema.at(contained), item, depth, left)?;
                }
            }
        }
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::is_affordable;
    use crate::reply::json_text::parse;
    use crate::tool::types::Schema;
    use serde_json::json;

    #[test]
    fn what_doubles_with_each_level_is_found() {
        let branch = |tag: &str| json!({"properties": {"k": {"const": tag}, "v": {"$ref": "#/$defs/any"}}});
        let schema = json!({"$ref": "#/$defs/any", "$defs": {"any": {"anyOf": [branch("a"), branch("b")]}}});
        let nested =
            |levels: usize| parse(&format!("{}1{}", r#"{"k":"b","v":"#.repeat(levels), "}".repeat(levels))).unwrap();
        assert!(is_affordable(Schema::root(&schema), &nested(8)));
        assert!(!is_affordable(Schema::root(&schema), &nested(24)));
        let endless = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert!(!is_affordable(Schema::root(&endless), &nested(1)));
    }

    #[test]
    fn large_values_are_bearable() {
        let schema =
            json!({"items": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"items": {"type": "null"}}]}});
        let value = parse(&format!("[{}0]", "1,[null,null],".repeat(50_000))).unwrap();
        assert!(is_affordable(Schema::root(&schema), &value));
    }
}
