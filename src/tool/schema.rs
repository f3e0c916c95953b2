//! The check of a call's arguments against its tool's schema: every problem at once, lossless coercions recorded.

use super::as_written::{beside, whole_ones, without_integers};
use super::coerce::{coerce, within};
use super::flat_schema::FlatSchema;
use super::loosen::loosened;
use super::problem::{Problem, absent, problems};
use super::types::Schema;
use super::validation_cost::is_affordable;
use crate::reply::json_text;
use crate::reply::{Number, Object, Value};
use jsonschema::{Draft, Validator};
use serde_json::Value as Json;
use std::sync::{Arc, OnceLock};

/// Problems of one call that are reported; a model that gets more wrong starts over anyway.
const REPORTED: usize = 16;

/// Arguments that passed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Checked {
    /// What the tool is called with.
    pub arguments: Object,
    /// JSON pointers of the arguments that were read as another type than they were written in.
    pub coerced: Vec<String>,
}

impl Checked {
    /// The arguments as a value, and the pointers of those that were coerced.
    pub fn into_parts(self) -> (Arc<Value>, Vec<String>) {
        (Arc::new(Value::Object(self.arguments)), self.coerced)
    }
}

/// A schema that is compiled when it is first used.
#[derive(Debug, Default)]
pub struct Checker {
    compiled: OnceLock<Result<Validator, String>>,
    loosened: OnceLock<Option<Validator>>,
    outline: OnceLock<Option<FlatSchema>>,
}

impl Checker {
    /// Compiles `schema`, JSON Schema draft 2020-12 unless it names another in `$schema`.
    ///
    /// # Errors
    /// Reports why the schema is invalid.
    pub fn compile(&self, schema: &Json) -> Result<&Validator, &str> {
        self.compiled.get_or_init(|| build(schema)).as_ref().map_err(String::as_str)
    }

    /// The same; the usable part of an invalid schema is kept.
    ///
    /// # Errors
    /// Says why nothing can.
    pub fn compile_loosely(&self, schema: &Json) -> Result<&Validator, &str> {
        self.compile(schema)
            .or_else(|cause| self.loosened.get_or_init(|| build(&loosened(schema)).ok()).as_ref().ok_or(cause))
    }

    /// Checks `arguments`, an object, a string that holds one, or null or nothing for an empty one.
    ///
    /// # Errors
    /// Every problem of the call: unknown names first, then missing ones, then wrong values in the order of the schema.
    pub fn check(&self, schema: &Json, arguments: &Value) -> Result<Checked, Vec<Problem>> {
        self.check_except(schema, arguments, &[])
    }

    /// Whether arguments pass as they are, as far as that is quickly found out.
    pub fn admits(&self, schema: &Json, arguments: &Value) -> bool {
        let (outline, Value::Object(arguments)) = (self.outline.get_or_init(|| FlatSchema::of(schema)), arguments)
        else {
            return false;
        };
        outline.as_ref().is_some_and(|outline| outline.admits(arguments))
    }

    /// The same, but what stands at the JSON pointers `except` is let through: it is replaced later.
    ///
    /// # Errors
    /// As [`Checker::check`].
    pub fn check_except(&self, schema: &Json, arguments: &Value, except: &[String]) -> Result<Checked, Vec<Problem>> {
        if let (Some(outline), Value::Object(arguments)) =
            (self.outline.get_or_init(|| FlatSchema::of(schema)), arguments)
            && outline.admits(arguments)
        {
            return Ok(Checked { arguments: arguments.clone(), coerced: Vec::new() });
        }
        let arguments = as_object(arguments).ok_or_else(|| vec![Problem::invalid("", "be an object", arguments)])?;
        let root = Schema::root(schema);
        let (arguments, coerced) = coerce(&Value::Object(arguments), root);
        let mut found = unknown(root, &arguments);
        if !is_affordable(root, &arguments) {
            return Err(vec![Problem {
                code: super::ProblemCode::InvalidArgument,
                pointer: String::new(),
                message: "the arguments take too long to check: what the schema allows doubles with each level of them"
                    .to_owned(),
                expected: "arguments of fewer levels".to_owned(),
                found: "arguments nested too deep for their unions".to_owned(),
            }]);
        }
        let exact = exact(schema, &arguments);
        match exact.as_ref().map_or_else(|| self.compile_loosely(schema), Ok) {
            Ok(validator) => {
                let plain = plain(&arguments);
                if !validator.is_valid(&plain) {
                    for error in validator.iter_errors(&plain) {
                        problems(&error, &arguments, root, &mut found);
                        if found.len() > REPORTED {
                            break;
                        }
                    }
                }
            }
            Err(cause) => found.push(Problem {
                code: super::ProblemCode::InvalidArgument,
                pointer: String::new(),
                message: format!("the tool cannot be called, its schema is at fault: {cause}"),
                expected: "another tool".to_owned(),
                found: "a schema that cannot be used".to_owned(),
            }),
        }
        found.retain(|problem| !concerns(problem, except));
        if found.is_empty()
            && let Value::Object(arguments) = arguments
        {
            return Ok(Checked { arguments, coerced });
        }
        found.sort_by_key(|problem| problem.code);
        let mut kept: Vec<Problem> = Vec::with_capacity(found.len());
        for problem in found {
            if !kept.iter().any(|other| other.pointer == problem.pointer && other.code == problem.code) {
                kept.push(problem);
            }
        }
        Err(kept)
    }
}

/// Whether a problem is about a value at one of `pointers`, inside it, or about a whole that holds it.
fn concerns(problem: &Problem, pointers: &[String]) -> bool {
    problem.code == super::ProblemCode::InvalidArgument
        && pointers.iter().any(|pointer| within(pointer, &problem.pointer) || within(&problem.pointer, pointer))
}

/// The schema for arguments with a number whose fraction no float holds.
fn exact(schema: &Json, arguments: &Value) -> Option<Validator> {
    let mut floats = Vec::new();
    whole_ones(arguments, &mut floats);
    if floats.is_empty() {
        return None;
    }
    let built = |schema: &Json| build(&without_integers(schema, &floats)).ok();
    built(schema).or_else(|| built(&loosened(schema)))
}

fn build(schema: &Json) -> Result<Validator, String> {
    jsonschema::options()
        .with_draft(draft(schema))
        .should_validate_formats(false)
        .build(schema)
        .map_err(|error| super::describe::truncate(&error.to_string(), 300))
}

fn draft(schema: &Json) -> Draft {
    match schema.get("$schema").and_then(Json::as_str) {
        Some(uri) if uri.contains("draft-04") => Draft::Draft4,
        Some(uri) if uri.contains("draft-06") => Draft::Draft6,
        Some(uri) if uri.contains("draft-07") => Draft::Draft7,
        Some(uri) if uri.contains("2019-09") => Draft::Draft201909,
        _ => Draft::Draft202012,
    }
}

fn as_object(arguments: &Value) -> Option<Object> {
    match arguments {
        Value::Object(object) => Some(object.clone()),
        Value::Null => Some(Object::new()),
        Value::String(text) if text.trim().is_empty() => Some(Object::new()),
        Value::String(text) => match json_text::parse(text)? {
            Value::Object(object) => Some(object),
            Value::Null => Some(Object::new()),
            _ => None,
        },
        _ => None,
    }
}

/// Arguments that no part of the schema names: refused unless the schema lets them in explicitly.
fn unknown(schema: Schema<'_>, arguments: &Value) -> Vec<Problem> {
    let Some(object) = arguments.as_object() else {
        return Vec::new();
    };
    if object.is_empty() || schema.is_open() {
        return Vec::new();
    }
    let mut names = schema.property_names();
    // What is required without being described is known all the same.
    let required = schema.required_names().into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>();
    names.extend(required);
    let missing = absent(schema, arguments);
    object
        .iter()
        .filter(|(name, _)| !names.contains(name))
        .take(REPORTED)
        .map(|(name, value)| Problem::unknown("", name, &names, &missing, value))
        .collect()
}

/// The arguments as the validator takes them. Numbers beyond 64 bits become floats here, and only here: what the tool
/// gets keeps every digit.
fn plain(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Number(number) => plain_number(number),
        Value::String(text) => Json::String(text.to_string()),
        Value::Array(items) => Json::Array(items.iter().map(plain).collect()),
        Value::Object(object) => {
            Json::Object(object.iter().map(|(key, value)| (key.to_owned(), plain(value))).collect())
        }
    }
}

fn plain_number(number: &Number) -> Json {
    let text = number.as_str();
    let plain = serde_json::from_str(text).unwrap_or_else(|_| {
        // Larger than any float: only its sign and its being a number still matter to a schema.
        Json::from(if text.starts_with('-') { f64::MIN } else { f64::MAX })
    });
    plain.as_f64().and_then(|float| beside(number, float)).map_or(plain, Json::from)
}

#[cfg(test)]
mod tests {
    use super::Checker;
    use crate::reply::Value;
    use crate::reply::json_text::parse;
    use serde_json::Value as Json;

    #[test]
    fn the_corpus_of_arguments_is_judged_right() {
        let corpus = include_str!("../../tests/data/arguments.jsonl");
        for line in corpus.lines() {
            let case: Json = serde_json::from_str(line).unwrap();
            let name = case["name"].as_str().unwrap();
            let arguments = parse(case["arguments"].as_str().unwrap()).unwrap();
            let checked = Checker::default().check(&case["schema"], &arguments);
            assert_eq!(checked.is_ok(), case["valid"].as_bool().unwrap(), "{name}: {checked:?}");
            let Ok(checked) = checked else { continue };
            let coerced: Vec<&str> =
                case["coerced"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
            assert_eq!(checked.coerced, coerced, "{name}");
            let expected = case["result"].as_str().map_or(arguments, |text| parse(text).unwrap());
            assert_eq!(Value::Object(checked.arguments), expected, "{name}");
        }
    }

    #[test]
    fn no_arguments_are_written_in_several_ways() {
        let schema = serde_json::json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        for arguments in [Value::Null, Value::from(""), Value::from("{}"), Value::from("null")] {
            assert!(Checker::default().check(&schema, &arguments).unwrap().arguments.is_empty());
        }
        let checked = Checker::default().check(&schema, &Value::from(r#"{"a": 1}"#)).unwrap();
        assert_eq!(Value::Object(checked.arguments).to_json(), r#"{"a":1}"#);
    }

    #[test]
    fn numbers_beyond_floats_are_numbers() {
        let schema = serde_json::json!({"type": "object", "properties": {"a": {"type": "integer", "maximum": 10}}});
        let digits = "9".repeat(400);
        let problems =
            Checker::default().check(&schema, &parse(&format!(r#"{{"a": {digits}}}"#)).unwrap()).unwrap_err();
        assert_eq!(problems[0].expected, "be at most 10");
    }
}
