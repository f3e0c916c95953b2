//! Schemas of others that no validator takes as they are: patterns in the words of another engine, names that are
//! required twice. What is at fault in them is left out, so that the rest can be checked.

use jsonschema::Draft;
use serde_json::{Map, Value as Json, json};

/// The schema without what is at fault in it.
pub(crate) fn loosened(schema: &Json) -> Json {
    let mut schema = schema.clone();
    loosen(&mut schema);
    schema
}

fn loosen(schema: &mut Json) {
    let Some(keywords) = schema.as_object_mut() else {
        return;
    };
    keywords.retain(|keyword, value| match keyword.as_str() {
        "pattern" => value.as_str().is_some_and(is_pattern),
        "type" => value.is_string() || value.is_array(),
        "required" => value.is_array(),
        _ => true,
    });
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            ("required", Json::Array(names)) => {
                let mut seen: Vec<Json> = Vec::new();
                names.retain(|name| {
                    let kept = name.is_string() && !seen.contains(name);
                    seen.push(name.clone());
                    kept
                });
            }
            ("patternProperties", Json::Object(schemas)) => {
                schemas.retain(|pattern, _| is_pattern(pattern));
                loosen_each(schemas);
            }
            ("properties" | "$defs" | "definitions" | "dependentSchemas", Json::Object(schemas)) => {
                loosen_each(schemas);
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Json::Array(schemas)) => schemas.iter_mut().for_each(loosen),
            ("const" | "default" | "examples", _) => {}
            (_, schema) => loosen(schema),
        }
    }
}

fn loosen_each(schemas: &mut Map<String, Json>) {
    schemas.values_mut().for_each(loosen);
}

fn is_pattern(text: &str) -> bool {
    jsonschema::options().with_draft(Draft::Draft202012).build(&json!({"pattern": text})).is_ok()
}

#[cfg(test)]
mod tests {
    use super::loosened;
    use serde_json::json;

    #[test]
    fn what_is_at_fault_is_left_out() {
        let schema = json!({
            "type": "object",
            "required": ["id", "pattern", "id", 0],
            "properties": {
                "id": {"type": "string", "pattern": "^[\\w-.]+$", "minLength": 1},
                "pattern": {"type": {"type": "string"}, "pattern": "^a+$"},
                "type": {"anyOf": [{"pattern": "\\p{LD}"}, {"const": {"pattern": "["}}]},
            },
            "patternProperties": {"[": {}, "^x": {"required": "yes"}},
            "additionalProperties": {"items": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"pattern": 5}},
        });
        let expected = json!({
            "type": "object",
            "required": ["id", "pattern"],
            "properties": {
                "id": {"type": "string", "minLength": 1},
                "pattern": {"pattern": "^a+$"},
                "type": {"anyOf": [{}, {"const": {"pattern": "["}}]},
            },
            "patternProperties": {"^x": {}},
            "additionalProperties": {"items": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {}},
        });
        assert_eq!(loosened(&schema), expected);
    }
}
