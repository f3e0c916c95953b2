//! The type of a run's answer: a JSON Schema, and the check of the value against it.
//!
//! The answer is checked as the one argument of a call is, under the name of the protocol's field for it, so that the
//! messages, the coercions and the made-up example are those of tools.

use super::describe::{short_type, truncate};
use super::formats;
use super::problem::misread;
use super::render::tidy;
use super::sample_call::spaced;
use super::set::{ToolSet, ToolSetError};
use super::spec::{Effect, ToolKind, ToolSpec};
use super::types::{Schema, Types};
use crate::reply::json_text;
use crate::reply::{Code, Object, Value, Violation};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json, json};
use std::sync::{Arc, OnceLock};

/// The names that protocols have for an answer.
const FIELDS: [&str; 3] = ["final_answer", "value", "answer"];

/// What stands at the root of a schema: where references lead, and its dialect.
const OF_ROOT: [&str; 3] = ["$schema", "$defs", "definitions"];

/// Keywords that the short form of a type shows.
const SHOWN: [&str; 11] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$ref",
    "$defs",
    "default",
];

/// Levels of objects that the short form opens, and its characters.
const DEPTH: usize = 4;
const LONG: usize = 600;

/// The type of an answer. A copy shares what was compiled.
#[derive(Debug, Clone)]
pub struct AnswerType(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    schema: Json,
    /// For each of `FIELDS`, a tool with the answer as its only argument, made on first use.
    tools: [OnceLock<Option<ToolSet>>; FIELDS.len()],
}

/// An answer that passed.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedAnswer {
    /// The run's value.
    pub value: Arc<Value>,
    /// JSON pointers into it, of the values that were read as another type than they were written in.
    pub coerced: Vec<String>,
}

impl PartialEq for AnswerType {
    fn eq(&self, other: &Self) -> bool {
        self.0.schema == other.0.schema
    }
}

impl Serialize for AnswerType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.schema.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AnswerType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Json::deserialize(deserializer).map(Self::new)
    }
}

impl AnswerType {
    /// The type with this JSON Schema. Its references lead to its `$defs`.
    pub fn new(schema: Json) -> Self {
        Self(Arc::new(Inner { schema, tools: Default::default() }))
    }

    /// Its JSON Schema.
    pub fn schema(&self) -> &Json {
        &self.0.schema
    }

    /// Whether the schema can be used.
    ///
    /// # Errors
    /// Reports why it cannot.
    pub fn compile(&self, field: &str) -> Result<(), String> {
        let unusable = || "the JSON Schema of the answer is not an object".to_owned();
        self.tools(field).ok_or_else(unusable)?.compile().map_err(|error| match error {
            // The tool is a detail.
            ToolSetError::Parameters { cause, .. } => cause,
            error => error.to_string(),
        })
    }

    /// Whether it is text and nothing more, as without a type.
    pub fn is_text(&self) -> bool {
        self.0.schema.get("type").is_some_and(|name| name == "string")
            && self.0.schema.as_object().is_some_and(|map| map.keys().all(|key| key == "type" || key == "description"))
    }

    /// Whether a text may be the answer.
    pub fn admits_text(&self) -> bool {
        Schema::root(&self.0.schema).types().contains(Types::STRING)
    }

    /// Checks an answer. A text that does not fit is read as JSON text.
    ///
    /// # Errors
    /// `invalid_answer`, with every problem.
    pub fn check(&self, field: &str, value: &Arc<Value>) -> Result<CheckedAnswer, Violation> {
        let first = match self.check_as_written(field, value) {
            Ok(checked) => return Ok(checked),
            Err(violation) => violation,
        };
        let Some(inner) = value.as_str().and_then(json_text::parse) else { return Err(first) };
        let has_parts = matches!(inner, Value::Array(_) | Value::Object(_));
        match self.check_as_written(field, &Arc::new(inner)) {
            Ok(mut checked) => {
                checked.coerced.insert(0, String::new());
                Ok(checked)
            }
            Err(second) => Err(if has_parts { second } else { first }),
        }
    }

    /// What is wrong with the formats of a value that has passed: a date that is none, for example.
    pub fn format_problems(&self, field: &str, value: &Value) -> Vec<String> {
        formats::problems(&self.0.schema, field, value)
    }

    /// The same where nothing is read as another type; the answer may be its JSON text where `as_text` says so.
    ///
    /// # Errors
    /// As [`AnswerType::check`].
    pub fn check_strictly(&self, field: &str, value: &Arc<Value>, as_text: bool) -> Result<CheckedAnswer, Violation> {
        let checked = self.check(field, value)?;
        let exact = |written: &Arc<Value>| {
            let coerced = self.check_as_written(field, written)?.coerced;
            let pointers: Vec<String> = coerced.iter().map(|pointer| format!("/{field}{pointer}")).collect();
            match self.spec(field).and_then(|spec| misread(spec, &arguments(field, written), &pointers)) {
                Some(violation) => Err(self.invalid(field, violation)),
                None => Ok(()),
            }
        };
        match value
            .as_str()
            .and_then(json_text::parse)
            .filter(|_| checked.coerced.first().is_some_and(String::is_empty))
        {
            Some(inner) if as_text => exact(&Arc::new(inner))?,
            _ => exact(value)?,
        }
        Ok(checked)
    }

    /// The type in a few words, as tools are shown: `{name: str, people: int}`.
    pub fn shape(&self) -> String {
        truncate(&short_type(Schema::root(&self.0.schema), DEPTH), LONG)
    }

    /// The schema as JSON text, where it says more than the short form shows.
    pub fn details(&self) -> Option<String> {
        let long = short_type(Schema::root(&self.0.schema), DEPTH).chars().count() > LONG;
        let tidied = tidy(&self.0.schema);
        (long || says_more(&tidied)).then(|| tidied.to_string())
    }

    /// An answer that was made up, as JSON text; `None` where none could be made that fits.
    pub fn example(&self, field: &str) -> Option<String> {
        let sample = self.tools(field)?.sample()?;
        sample.arguments.get(field).map(spaced)
    }

    /// The schema of an object with the answer as its only property, for grammars: references lead to its root.
    pub fn wrapped(&self, field: &str) -> Json {
        let mut root = Map::new();
        let mut own = self.0.schema.clone();
        if let Json::Object(map) = &mut own {
            for key in OF_ROOT {
                if let Some(value) = map.remove(key) {
                    root.insert(key.to_owned(), value);
                }
            }
        }
        root.insert("type".to_owned(), json!("object"));
        root.insert("properties".to_owned(), json!({ field: own }));
        root.insert("required".to_owned(), json!([field]));
        root.insert("additionalProperties".to_owned(), json!(false));
        Json::Object(root)
    }

    fn check_as_written(&self, field: &str, value: &Arc<Value>) -> Result<CheckedAnswer, Violation> {
        let Some((tools, spec)) = self.tools(field).and_then(|tools| Some((tools, tools.get(field)?))) else {
            return Err(Violation::new(Code::InvalidAnswer, "no answer can be given: its schema cannot be used"));
        };
        let checked =
            tools.check(spec, &arguments(field, value)).map_err(|violation| self.invalid(field, violation))?;
        let prefix = format!("/{field}");
        let within = |pointer: String| pointer.strip_prefix(&prefix).map(str::to_owned).unwrap_or(pointer);
        let coerced: Vec<String> = checked.coerced.into_iter().map(within).collect();
        let value = match checked.arguments.get(field) {
            Some(changed) if !coerced.is_empty() => Arc::new(changed.clone()),
            _ => Arc::clone(value),
        };
        Ok(CheckedAnswer { value, coerced })
    }

    fn invalid(&self, field: &str, violation: Violation) -> Violation {
        let hint = format!("'{field}' is JSON of the type {}", self.shape());
        let mut violation = Violation { code: Code::InvalidAnswer, expected: None, ..violation }.hint(hint);
        violation.message = violation.message.replace("missing required argument ", "missing ");
        violation
    }

    fn spec(&self, field: &str) -> Option<&ToolSpec> {
        self.tools(field)?.get(field)
    }

    fn tools(&self, name: &str) -> Option<&ToolSet> {
        let (_, made) = FIELDS.iter().zip(&self.0.tools).find(|(field, _)| **field == name)?;
        let made = made.get_or_init(|| {
            let spec = ToolSpec {
                name: name.to_owned(),
                description: String::new(),
                parameters: self.wrapped(name),
                kind: ToolKind::Function,
                effect: Effect::Pure,
                readonly: true,
                reconciles: false,
                needs_approval: false,
                checks_approval: false,
                repeatable: false,
                untrusted: false,
                queue: None,
                reads: std::collections::BTreeMap::new(),
                external: None,
                values: std::collections::BTreeMap::new(),
                asks_untrusted: false,
            };
            ToolSet::new(vec![spec]).ok()
        });
        made.as_ref()
    }
}

fn arguments(field: &str, value: &Arc<Value>) -> Value {
    Value::Object([(field, Value::clone(value))].into_iter().collect::<Object>())
}

/// Whether a schema has keywords that the short form leaves out.
fn says_more(schema: &Json) -> bool {
    let Json::Object(map) = schema else { return false };
    map.iter().any(|(key, value)| match key.as_str() {
        "properties" | "$defs" => value.as_object().is_some_and(|named| named.values().any(says_more)),
        "anyOf" => value.as_array().is_some_and(|branches| branches.iter().any(says_more)),
        "items" => says_more(value),
        "additionalProperties" => value.is_object(),
        key => !SHOWN.contains(&key),
    })
}

#[cfg(test)]
mod tests {
    use super::AnswerType;
    use crate::reply::Value;
    use crate::reply::json_text::parse;
    use serde_json::json;
    use std::sync::Arc;

    fn city() -> AnswerType {
        AnswerType::new(json!({
            "$ref": "#/$defs/City",
            "$defs": {"City": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "people": {"type": "integer"}},
                "required": ["name", "people"],
                "additionalProperties": false,
            }},
        }))
    }

    fn check(answer: &AnswerType, text: &str) -> Result<(String, Vec<String>), String> {
        let value = Arc::new(parse(text).unwrap());
        let checked = answer.check("value", &value).map_err(|violation| violation.message)?;
        Ok((checked.value.to_json(), checked.coerced))
    }

    #[test]
    fn an_answer_is_checked_as_arguments_are() {
        let fits = r#"{"name":"Oslo","people":700000}"#;
        assert_eq!(check(&city(), fits), Ok((fits.to_owned(), vec![])));
        assert_eq!(
            check(&city(), r#"{"name":"Oslo","people":"700000"}"#),
            Ok((fits.to_owned(), vec!["/people".to_owned()]))
        );
        assert_eq!(
            check(&city(), r#"{"people":"many","mayor":1}"#),
            Err("'value' lacks the required property 'name' (string); 'value.people' must be an integer: got the string \"many\"; \
                 'value' has no property 'mayor': did you mean 'name'?"
                .to_owned())
        );
    }

    #[test]
    fn a_text_is_the_answer_if_it_fits_and_else_its_json_is() {
        let fits = r#"{"name":"Oslo","people":700000}"#;
        let quoted = Value::from(fits).to_json();
        assert_eq!(check(&city(), &quoted), Ok((fits.to_owned(), vec![String::new()])));
        let either = AnswerType::new(json!({"type": ["string", "integer"]}));
        assert_eq!(check(&either, "\"5\""), Ok(("\"5\"".to_owned(), vec![])));
        let listed = AnswerType::new(json!({"enum": ["a", 1]}));
        assert_eq!(check(&listed, "\"1\""), Ok(("1".to_owned(), vec![String::new()])));
        assert_eq!(check(&listed, "\"b\""), Err("'value' must be one of \"a\" or 1: got the string \"b\"".to_owned()));
    }

    #[test]
    fn the_short_form_and_the_example_fit() {
        assert_eq!(city().shape(), "{name: str, people: int}");
        assert_eq!(city().details(), None);
        let example = city().example("value").unwrap();
        assert_eq!(check(&city(), &example).map(|(_, coerced)| coerced), Ok(vec![]));
        let bounded = AnswerType::new(json!({"type": "integer", "minimum": 1}));
        assert_eq!(bounded.details().as_deref(), Some(r#"{"type":"integer","minimum":1}"#));
    }
}
