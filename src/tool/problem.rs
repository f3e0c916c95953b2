//! What is wrong with the arguments of a call, in words that a model can act on.

use super::as_written::is_refusal;
use super::coerce::join;
use super::describe::{
    any_of, named, quoted, short_type, shortened, truncate, type_words, type_words_with_article, with_article,
};
use super::nearest_names::nearest;
use super::spec::ToolSpec;
use super::types::{Schema, Types};
use crate::reply::{Code, Value, Violation};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value as Json;

/// The kind of a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProblemCode {
    /// The tool has no such argument.
    UnknownArgument,
    /// A required argument is not there.
    MissingArgument,
    /// An argument has the wrong type or value.
    InvalidArgument,
}

impl From<ProblemCode> for Code {
    fn from(code: ProblemCode) -> Self {
        match code {
            ProblemCode::UnknownArgument => Self::UnknownArgument,
            ProblemCode::MissingArgument => Self::MissingArgument,
            ProblemCode::InvalidArgument => Self::InvalidArgument,
        }
    }
}

/// One thing that is wrong with the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind of problem.
    pub code: ProblemCode,
    /// JSON pointer into the arguments; of a missing argument, where it belongs.
    pub pointer: String,
    /// What was expected and what came: lower case, no full stop.
    pub message: String,
    /// What was expected, in a few words.
    pub expected: String,
    /// What came, in a few words.
    pub found: String,
}

impl Problem {
    /// An argument with a wrong type or value.
    pub(crate) fn invalid(pointer: &str, expected: impl Into<String>, value: &Value) -> Self {
        let (expected, found) = (expected.into(), found(value));
        let subject = subject(pointer);
        Self {
            code: ProblemCode::InvalidArgument,
            pointer: pointer.to_owned(),
            message: format!("{subject} must {expected}: got {found}"),
            expected,
            found,
        }
    }

    fn missing(parent: &str, name: &str, schema: Schema<'_>) -> Self {
        let expected = schema.property(name).map_or_else(|| "any value".to_owned(), wanted);
        let (code, message) = if parent.is_empty() {
            (ProblemCode::MissingArgument, format!("missing required argument {} ({expected})", named(name)))
        } else {
            let message = format!("{} lacks the required property {} ({expected})", subject(parent), named(name));
            (ProblemCode::InvalidArgument, message)
        };
        Self { code, pointer: join(parent, name), message, expected, found: "nothing".to_owned() }
    }

    /// A name that the schema does not have, beside `names` that it has. `missing` are required names that are not given:
    /// where exactly one is missing, it is what an unlike name stands for.
    pub(crate) fn unknown(parent: &str, name: &str, names: &[&str], missing: &[&str], value: &Value) -> Self {
        let near = nearest(name, names.iter().copied(), 3);
        let near = match missing {
            [only] if near.is_empty() => vec![*only],
            _ => near,
        };
        let listed: Vec<String> =
            if near.is_empty() { names.iter().take(12) } else { near.iter().take(3) }.map(|name| named(name)).collect();
        let advice = if near.is_empty() {
            match names.len() {
                0 => "there are none".to_owned(),
                1..=12 => format!("there is {}", listed.join(", ")),
                _ => format!("there is {}, …", listed.join(", ")),
            }
        } else {
            format!("did you mean {}?", any_of(&listed))
        };
        let (code, message) = if parent.is_empty() {
            (ProblemCode::UnknownArgument, format!("unknown argument {}: {advice}", named(name)))
        } else {
            let message = format!("{} has no property {}: {advice}", subject(parent), named(name));
            (ProblemCode::InvalidArgument, message)
        };
        Self { code, pointer: join(parent, name), message, expected: any_of(&listed), found: found(value) }
    }
}

/// What is wrong with arguments of which those at the pointers `coerced` would be read as another type: nothing where
/// there are none.
pub(crate) fn misread(tool: &ToolSpec, arguments: &Value, coerced: &[String]) -> Option<Violation> {
    let schema = Schema::root(&tool.parameters);
    // What is inside of one that is text is no part of what was written.
    let problems = coerced.iter().filter_map(|pointer| {
        let value = at(arguments, pointer)?;
        Some(Problem::invalid(pointer, format!("be {}", wanted_with_article(below(schema, pointer))), value))
    });
    let problems: Vec<Problem> = problems.collect();
    let first = problems.first()?;
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    Some(
        Violation::new(first.code.into(), messages.join("; "))
            .pointer(first.pointer.clone())
            .expected(super::render::expected(tool))
            .found(first.found.clone()),
    )
}

/// What a schema wants, in a few words: `integer`, `"asc" or "desc"`, `{name: str}`.
pub(crate) fn wanted(schema: Schema<'_>) -> String {
    let resolved = schema.resolved();
    let types = resolved.types();
    if let Some(options) = resolved.node.get("enum").and_then(Json::as_array) {
        let texts: Vec<String> = options.iter().map(|option| shortened(&option.to_string())).collect();
        return choice(&texts);
    }
    if types.names().iter().any(|name| matches!(*name, "object" | "array")) && types != Types::ANY {
        return truncate(&short_type(resolved, 1), 200);
    }
    type_words(types)
}

fn choice(texts: &[String]) -> String {
    match texts.get(..12) {
        Some(first) if texts.len() > 12 => format!("{}, …", first.join(", ")),
        _ => any_of(texts),
    }
}

/// The problems that one error of the validator amounts to; `arguments` is what was checked.
pub(crate) fn problems(error: &ValidationError<'_>, arguments: &Value, schema: Schema<'_>, into: &mut Vec<Problem>) {
    explain(error, "", arguments, schema, into);
}

/// `schema` is that of the value at `from`, in which the error lies.
fn explain(error: &ValidationError<'_>, from: &str, arguments: &Value, schema: Schema<'_>, into: &mut Vec<Problem>) {
    let pointer = error.instance_path().as_str().to_owned();
    let Some(value) = at(arguments, &pointer) else {
        return;
    };
    let here = below(schema, pointer.strip_prefix(from).unwrap_or(&pointer));
    match error.kind() {
        Kind::Required { property } => {
            into.push(Problem::missing(&pointer, property.as_str().unwrap_or_default(), here));
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let names = here.property_names();
            let missing = absent(here, value);
            for name in unexpected {
                let given = value.as_object().and_then(|object| object.get(name)).unwrap_or(&Value::Null);
                into.push(Problem::unknown(&pointer, name, &names, &missing, given));
            }
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            if !explain_branch(context, &pointer, arguments, here, into) {
                into.push(Problem::invalid(&pointer, format!("be {}", wanted_with_article(here)), value));
            }
        }
        kind => into.push(Problem::invalid(&pointer, expectation(kind, here), value)),
    }
}

/// Where one branch alone is meant, its errors say more than "none of these": it is the one that takes values of this
/// type, or whose tag (`"kind": {"const": "cat"}`) the value has.
fn explain_branch(
    context: &[Vec<ValidationError<'static>>],
    pointer: &str,
    arguments: &Value,
    schema: Schema<'_>,
    into: &mut Vec<Problem>,
) -> bool {
    let value = at(arguments, pointer);
    if !matches!(value, Some(Value::Object(_) | Value::Array(_))) && context.len() > 1 {
        return false;
    }
    let typed = context.iter().enumerate().filter(|(_, errors)| {
        !errors.iter().any(|error| {
            error.instance_path().as_str().len() <= pointer.len()
                && matches!(
                    error.kind(),
                    Kind::Type { .. } | Kind::Constant { .. } | Kind::Enum { .. } | Kind::FalseSchema
                )
        })
    });
    let mut fitting: Vec<(usize, &Vec<ValidationError<'static>>)> = typed.collect();
    if fitting.len() > 1 {
        let tag = |error: &ValidationError<'_>| {
            let path = error.instance_path().as_str().to_owned();
            let property = path.strip_prefix(pointer).and_then(|rest| rest.strip_prefix('/'));
            let direct = property.is_some_and(|property| !property.contains('/'));
            let Kind::Constant { expected_value } = error.kind() else {
                return None;
            };
            direct.then(|| (path, shortened(&expected_value.to_string())))
        };
        let tags: Vec<_> = fitting.iter().map(|(_, errors)| errors.iter().find_map(tag)).collect();
        if let Some((Some((place, _)), others)) = tags.split_first()
            && others.iter().all(|other| other.as_ref().is_some_and(|(path, _)| path == place))
            && let Some(value) = at(arguments, place)
        {
            let known: Vec<String> = tags.iter().flatten().map(|(_, known)| known.clone()).collect();
            into.push(Problem::invalid(place, format!("be {}", choice(&known)), value));
            return true;
        }
        let mut untagged = tags.iter().map(Option::is_none);
        fitting.retain(|_| untagged.next().unwrap_or(false));
    }
    let [(index, errors)] = fitting.as_slice() else {
        return false;
    };
    let branch = schema.branch(*index).unwrap_or(schema);
    let before = into.len();
    for error in *errors {
        explain(error, pointer, arguments, branch, into);
    }
    into.len() > before
}

fn wanted_with_article(schema: Schema<'_>) -> String {
    let types = schema.types();
    let plain = types.names().iter().all(|name| !matches!(*name, "object" | "array"));
    if plain && schema.resolved().node.get("enum").is_none() {
        type_words_with_article(types)
    } else {
        truncate(&short_type(schema, 1), 200)
    }
}

/// What a keyword asks for, to follow "must".
fn expectation(kind: &Kind, schema: Schema<'_>) -> String {
    match kind {
        Kind::Type { kind } => format!("be {}", type_names(kind)),
        Kind::Enum { options } => {
            let texts: Vec<String> =
                options.as_array().into_iter().flatten().map(|option| shortened(&option.to_string())).collect();
            if let [only] = texts.as_slice() { format!("be {only}") } else { format!("be one of {}", choice(&texts)) }
        }
        Kind::Constant { expected_value } => {
            format!("be {}", shortened(&expected_value.to_string()))
        }
        Kind::Minimum { limit } => format!("be at least {limit}"),
        Kind::Maximum { limit } => format!("be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("have at least {}", counted(*limit, "character")),
        Kind::MaxLength { limit } => format!("have at most {}", counted(*limit, "character")),
        Kind::MinItems { limit } => format!("have at least {}", counted(*limit, "item")),
        Kind::MaxItems { limit } => format!("have at most {}", counted(*limit, "item")),
        Kind::MinProperties { limit } => format!("have at least {limit} properties"),
        Kind::MaxProperties { limit } => format!("have at most {limit} properties"),
        Kind::Pattern { pattern } => format!("match the pattern {}", truncate(pattern, 120)),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "match its pattern, which took too long to try".to_owned()
        }
        Kind::Format { format } => format!("be a valid {format}"),
        Kind::UniqueItems => "have no item twice".to_owned(),
        Kind::AdditionalItems { limit } => format!("have at most {limit} items"),
        Kind::UnevaluatedItems { .. } => "have no further items".to_owned(),
        Kind::Contains => "contain an item of the right kind".to_owned(),
        Kind::PropertyNames { .. } => "have property names of the right form".to_owned(),
        Kind::OneOfMultipleValid { .. } => {
            format!("fit only one of {}", truncate(&short_type(schema, 1), 200))
        }
        Kind::Not { schema } if is_refusal(schema) => "be an integer".to_owned(),
        Kind::Not { .. } | Kind::FalseSchema => "be something else or be left out".to_owned(),
        Kind::ContentEncoding { content_encoding } => format!("be encoded as {content_encoding}"),
        Kind::ContentMediaType { content_media_type } => format!("hold {content_media_type}"),
        _ => format!("be {}", wanted_with_article(schema)),
    }
}

fn type_names(kind: &jsonschema::error::TypeKind) -> String {
    let names: Vec<&str> = match kind {
        jsonschema::error::TypeKind::Single(single) => vec![with_article(single.as_str())],
        jsonschema::error::TypeKind::Multiple(several) => {
            several.iter().map(|single| with_article(single.as_str())).collect()
        }
    };
    any_of(&names)
}

pub(super) fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// The required names of `schema` that `value` does not have.
pub(crate) fn absent<'a>(schema: Schema<'a>, value: &Value) -> Vec<&'a str> {
    let mut names = schema.required_names();
    names.retain(|name| value.as_object().is_none_or(|object| !object.contains_key(name)));
    names
}

/// What came, in a few words: `the string "five"`, `an array of 3 items`.
pub(crate) fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => {
            format!("the {} {}", value.type_name(), shortened(number.as_str()))
        }
        Value::String(text) => format!("the string {}", quoted(text)),
        Value::Array(items) if items.is_empty() => "an empty array".to_owned(),
        Value::Array(items) => format!("an array of {}", counted(items.len() as u64, "item")),
        Value::Object(object) if object.is_empty() => "an empty object".to_owned(),
        Value::Object(object) => {
            let names: Vec<String> = object.keys().take(4).map(named).collect();
            let more = if object.len() > names.len() { ", …" } else { "" };
            format!("an object with {}{more}", names.join(", "))
        }
    }
}

/// `'filter.tags[0]'` for `/filter/tags/0`; "the arguments" for the whole.
fn subject(pointer: &str) -> String {
    let mut path = String::new();
    for step in pointer.split('/').skip(1) {
        let step = crate::json_pointer::unescape(step);
        if path.is_empty() {
            path.push_str(&step);
        } else if step.bytes().all(|byte| byte.is_ascii_digit()) && !step.is_empty() {
            path.push('[');
            path.push_str(&step);
            path.push(']');
        } else {
            path.push('.');
            path.push_str(&step);
        }
    }
    if pointer.is_empty() { "the arguments".to_owned() } else { named(&path) }
}

/// The value that `pointer` leads to.
fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    let mut value = value;
    for step in pointer.split('/').skip(1) {
        value = match value {
            Value::Object(object) => object.get(&crate::json_pointer::unescape(step))?,
            Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value)
}

/// The schema of what `pointer` leads to, as far as it can be followed; beyond that, a schema of anything.
fn below<'a>(schema: Schema<'a>, pointer: &str) -> Schema<'a> {
    const ANYTHING: &Json = &Json::Bool(true);
    let mut schema = schema;
    for step in pointer.split('/').skip(1) {
        let item = || step.parse().ok().and_then(|index| schema.item(index));
        schema = schema.property(&crate::json_pointer::unescape(step)).or_else(item).unwrap_or(schema.at(ANYTHING));
    }
    schema
}

#[cfg(test)]
mod tests {
    use crate::reply::json_text::parse;
    use crate::tool::schema::Checker;
    use serde_json::{Value as Json, json};

    fn explained(schema: &Json, arguments: &str) -> String {
        let problems = Checker::default().check(schema, &parse(arguments).unwrap()).unwrap_err();
        problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn the_tag_of_a_union_says_which_branch_is_meant() {
        let branch = |kind: &str, property: &str| {
            json!({
                "type": "object",
                "properties": {"kind": {"const": kind}, property: {"type": "integer"}},
                "required": ["kind", property],
                "additionalProperties": false,
            })
        };
        let pets = json!({
            "type": "object",
            "properties": {"pets": {"type": "array", "items": {"oneOf": [branch("cat", "lives"), branch("dog", "barks")]}}},
        });
        assert_eq!(
            explained(&pets, r#"{"pets": [{"kind": "cat", "lives": 9}, {"kind": "dog", "bark": 1}]}"#),
            "'pets[1]' lacks the required property 'barks' (integer); 'pets[1]' has no property 'bark': did you mean 'barks'?"
        );
        assert_eq!(
            explained(&pets, r#"{"pets": [{"kind": "fox", "lives": 9}]}"#),
            "'pets[0].kind' must be \"cat\" or \"dog\": got the string \"fox\""
        );
        assert_eq!(
            explained(&pets, r#"{"pets": [{"lives": "many"}]}"#),
            "'pets[0]' must be {kind: \"cat\", lives: int}|{kind: \"dog\", barks: int}: got an object with 'lives'"
        );
    }
}
