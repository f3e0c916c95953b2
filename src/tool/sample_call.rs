//! Calls made up from a tool's schema, for an example and for tests. Their values are rare names, so that one that comes up
//! in an answer can be seen to come from there.

use super::set::ToolSet;
use super::spec::{ToolKind, ToolSpec};
use super::types::{Schema, Types, list};
use crate::reply::Value;
use serde_json::{Map, Value as Json, json};
use std::cmp::Reverse;

/// Tools that are looked at, the first ones: a large document is not read through for an example.
const TOOLS: usize = 8;

/// Levels of objects, arrays and alternatives: an example stays short.
const DEPTH: usize = 3;

/// The same where any arguments will do.
const DEPTH_OF_ANY: usize = 8;

/// Values of one argument that are tried.
const TRIED: usize = 40;

/// Names that no task asks for, one for each argument.
pub(super) const NAMES: [&str; 4] = ["Marlowe", "Quillfern", "Tolvane", "Haddick"];

/// What stands for a name in a second call. They are rare too.
pub(super) const OTHERS: [(&str, &str); 6] = [
    ("Marlowe", "Grennan"),
    ("Quillfern", "Hatherby"),
    ("Tolvane", "Ossery"),
    ("Haddick", "Pellow"),
    ("QF-4471", "QF-5102"),
    ("447 + 82", "318 + 65"),
];

/// The names of tests in place of those of examples, of the same length.
const IN_TESTS: [(&str, &str); 9] = [
    ("Marlowe", "Ashwell"),
    ("Quillfern", "Birchdale"),
    ("quillfern", "birchdale"),
    ("QUILLFERN", "BIRCHDALE"),
    ("Tolvane", "Corbeck"),
    ("Haddick", "Denholm"),
    ("marrowby", "elmstone"),
    ("QF", "BD"),
    ("6f1d3c8a", "7a2e4d9b"),
];

/// Words of an argument's name or format, and what stands for it.
pub(super) const KINDS: [(&str, &str); 12] = [
    ("email", "quillfern@example.org"),
    ("date-time", "1987-03-19T04:47:00Z"),
    ("datetime", "1987-03-19T04:47:00Z"),
    ("date", "1987-03-19"),
    ("time", "04:47"),
    ("uri", "https://example.org/quillfern"),
    ("url", "https://example.org/quillfern"),
    ("uuid", "6f1d3c8a-4b7e-4f0a-9c2d-8e5b7a9d4471"),
    ("phone", "+43 4471 8264"),
    ("path", "quillfern/marrowby.txt"),
    ("file", "marrowby.txt"),
    ("id", "QF-4471"),
];

/// Strings for patterns that no name fits.
pub(super) const SHAPES: [&str; 16] = [
    "quillfern",
    "QUILLFERN",
    "quillfern marrowby",
    "QF-4471",
    "4471",
    "QF4471",
    "447 + 82",
    "04:47",
    "04:47:00",
    "1987-03-19",
    "1987-03-19T04:47:00Z",
    "quillfern@example.org",
    "https://example.org/quillfern",
    "/quillfern",
    "QF",
    "q",
];

/// A call that was made up.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<'a> {
    /// The tool that it calls.
    pub tool: &'a ToolSpec,
    /// The required arguments.
    pub arguments: Map<String, Json>,
}

impl ToolSet {
    /// A call of one of the first tools for an example: of one without approval, that only reads and has about two arguments,
    /// where there is such a one. `None` where there is no tool of the program, or no call could be made up that passes
    /// the check as it is written.
    pub fn sample(&self) -> Option<Sample<'_>> {
        let tools = self.names().take(TOOLS).filter_map(|name| self.get(name));
        let mut ranked: Vec<_> = tools
            .filter(|tool| tool.kind == ToolKind::Function)
            .map(|tool| {
                let required = Schema::root(&tool.parameters).required_names().len();
                // After an example with one argument, small models leave out the second one of other tools.
                (tool.approval(), required == 0, Reverse(tool.readonly), required.abs_diff(2), tool)
            })
            .collect();
        ranked.sort_by_key(|(approval, bare, readonly, from_two, _)| (*approval, *bare, *readonly, *from_two));
        ranked.into_iter().find_map(|(.., tool)| Some(Sample { tool, arguments: self.made_up(tool, DEPTH)? }))
    }

    /// The arguments of a second call beside a sample: other names and numbers in place of those that are made up. `None`
    /// where nothing but the same would do.
    pub fn other_arguments(&self, sample: &Sample<'_>) -> Option<Map<String, Json>> {
        let mut arguments = sample.arguments.clone();
        for (name, value) in &sample.arguments {
            arguments.insert(name.clone(), other(value));
            if !self.passes(sample.tool, &arguments, &[]) {
                arguments.insert(name.clone(), value.clone());
            }
        }
        (arguments != sample.arguments).then_some(arguments)
    }

    /// The required arguments of a tool, with values that its schema allows. `None` where none were found. They are not
    /// those of examples, which are refused in a run.
    pub fn sample_arguments(&self, tool: &ToolSpec) -> Option<Map<String, Json>> {
        let mut arguments = self.made_up(tool, DEPTH_OF_ANY)?;
        for (name, value) in &arguments.clone() {
            arguments.insert(name.clone(), for_tests(value));
            if !self.passes(tool, &arguments, &[]) {
                arguments.insert(name.clone(), value.clone());
            }
        }
        Some(arguments)
    }

    fn made_up(&self, tool: &ToolSpec, depth: usize) -> Option<Map<String, Json>> {
        let schema = Schema::root(&tool.parameters);
        let mut arguments = object(schema, 0, depth)?;
        let names: Vec<String> = arguments.keys().cloned().collect();
        for (place, name) in names.iter().enumerate() {
            // The others are let pass meanwhile.
            let except: Vec<String> =
                names.iter().filter(|other| *other != name).map(|other| super::coerce::join("", other)).collect();
            let property = schema.property(name)?;
            let fitting = candidates(property, name, place, depth).into_iter().take(TRIED).find(|candidate| {
                arguments.insert(name.clone(), candidate.clone());
                self.passes(tool, &arguments, &except)
            })?;
            arguments.insert(name.clone(), fitting);
        }
        self.passes(tool, &arguments, &[]).then_some(arguments)
    }

    fn passes(&self, tool: &ToolSpec, arguments: &Map<String, Json>, except: &[String]) -> bool {
        let text = Json::Object(arguments.clone()).to_string();
        let Ok(arguments) = serde_json::from_str::<Value>(&text) else { return false };
        self.check_except(tool, &arguments, except).is_ok_and(|checked| checked.coerced.is_empty())
    }
}

/// A value of the same kind: the same where it was not made up.
fn other(value: &Json) -> Json {
    match value {
        Json::String(text) => {
            let found = OTHERS.iter().find(|(name, _)| name == text);
            Json::from(found.map_or(text.as_str(), |(_, other)| other))
        }
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => json!(whole.saturating_add(3)),
            (None, Some(float)) => json!(float + 1.5),
            (None, None) => value.clone(),
        },
        Json::Array(items) => items.iter().map(other).collect(),
        Json::Object(map) => map.iter().map(|(name, value)| (name.clone(), other(value))).collect(),
        Json::Bool(_) | Json::Null => value.clone(),
    }
}

/// The same with the names that tests have.
fn for_tests(value: &Json) -> Json {
    match value {
        Json::String(text) => {
            let replaced = IN_TESTS.iter().fold(text.clone(), |text, (name, other)| text.replace(name, other));
            Json::String(replaced)
        }
        Json::Array(items) => items.iter().map(for_tests).collect(),
        Json::Object(map) => map.iter().map(|(name, value)| (name.clone(), for_tests(value))).collect(),
        Json::Bool(_) | Json::Null | Json::Number(_) => value.clone(),
    }
}

/// JSON with a blank after each colon and comma, as models write it and grammars have it.
pub(crate) fn spaced(value: &Json) -> String {
    fn write(value: &Json, into: &mut String) {
        match value {
            Json::Array(items) => {
                into.push('[');
                for (at, item) in items.iter().enumerate() {
                    into.push_str(if at > 0 { ", " } else { "" });
                    write(item, into);
                }
                into.push(']');
            }
            Json::Object(map) => {
                into.push('{');
                for (at, (key, value)) in map.iter().enumerate() {
                    into.push_str(if at > 0 { ", " } else { "" });
                    into.push_str(&Json::from(key.as_str()).to_string());
                    into.push_str(": ");
                    write(value, into);
                }
                into.push('}');
            }
            other => into.push_str(&other.to_string()),
        }
    }
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// The required properties, each with the first value there is for it.
fn object(schema: Schema<'_>, place: usize, depth: usize) -> Option<Map<String, Json>> {
    let required = schema.required_names();
    let value = |(at, name): (usize, &&str)| {
        let property = schema.property(name)?;
        let first = candidates(property, name, place + at, depth).into_iter().next()?;
        Some(((*name).to_owned(), first))
    };
    required.iter().enumerate().map(value).collect()
}

/// Values for an argument: those of its schema first.
fn candidates(schema: Schema<'_>, name: &str, place: usize, depth: usize) -> Vec<Json> {
    let Some(depth) = depth.checked_sub(1) else { return Vec::new() };
    let schema = schema.resolved();
    let mut values = Vec::new();
    if let Some(map) = schema.node.as_object() {
        values.extend(map.get("example").cloned());
        values.extend(list(map, "examples").iter().cloned());
        values.extend(map.get("default").filter(|default| !default.is_null()).cloned());
        values.extend(map.get("const").cloned());
        values.extend(list(map, "enum").iter().filter(|option| !option.is_null()).cloned());
        for keyword in ["anyOf", "oneOf", "allOf"] {
            for branch in list(map, keyword) {
                values.extend(candidates(schema.at(branch), name, place, depth));
            }
        }
    }
    let types = schema.types();
    if types.contains(Types::STRING) {
        values.extend(strings(schema, name, place));
    }
    if types.contains(Types::INTEGER) {
        values.extend([47, 8].map(Json::from));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a bound beyond 64 bits gives a number that fails the check"
        )]
        values.extend(at_bounds(schema, 1.0).map(|number| json!(number as i64)));
        values.extend([1, 0, 4471].map(Json::from));
    }
    if types.contains(Types::NUMBER) {
        values.extend([0.47, 0.5].into_iter().chain(at_bounds(schema, 0.5)).map(Json::from));
    }
    if types.contains(Types::BOOLEAN) {
        values.push(json!(true));
    }
    if types.contains(Types::ARRAY) {
        let least = schema.node.get("minItems").and_then(Json::as_u64).unwrap_or(1).clamp(1, 8);
        let least = usize::try_from(least).unwrap_or(1);
        let items: Option<Vec<Json>> = (0..least)
            .map(|at| match schema.item(at) {
                Some(item) => candidates(item, name, place + at, depth).into_iter().next(),
                None => Some(json!(rare(place + at))),
            })
            .collect();
        values.extend(items.map(Json::Array));
        values.push(json!([]));
    }
    if types.contains(Types::OBJECT) {
        values.extend(object(schema, place, depth).map(Json::Object));
    }
    if types.contains(Types::NULL) {
        values.push(Json::Null);
    }
    values.retain(|value| is_within(schema, value));
    values
}

fn number(schema: Schema<'_>, key: &str) -> Option<f64> {
    schema.node.get(key).and_then(Json::as_f64)
}

/// The numbers next to each bound of a schema. `step` lies between two of them, if the schema names no other.
fn at_bounds(schema: Schema<'_>, step: f64) -> impl Iterator<Item = f64> {
    let step = number(schema, "multipleOf").filter(|step| *step > 0.0).unwrap_or(step);
    let bound = move |key| number(schema, key).map(|bound| bound / step);
    let above = ["minimum", "exclusiveMinimum"].into_iter().filter_map(bound).map(f64::ceil);
    let below = ["maximum", "exclusiveMaximum"].into_iter().filter_map(bound).map(f64::floor);
    let steps = above.flat_map(|steps| [steps, steps + 1.0]).chain(below.flat_map(|steps| [steps, steps - 1.0]));
    steps.chain([1.0]).map(move |steps| steps * step)
}

/// Whether a value is within the bounds of its schema: the values inside of objects and arrays are tried no further.
fn is_within(schema: Schema<'_>, value: &Json) -> bool {
    let within = |size: f64, least: &str, most: &str| {
        number(schema, least).is_none_or(|least| size >= least) && number(schema, most).is_none_or(|most| size <= most)
    };
    #[expect(clippy::cast_precision_loss, reason = "no value that was made up is so long")]
    match value {
        Json::Number(value) => value.as_f64().is_none_or(|value| {
            within(value, "minimum", "maximum")
                && number(schema, "exclusiveMinimum").is_none_or(|bound| value > bound)
                && number(schema, "exclusiveMaximum").is_none_or(|bound| value < bound)
        }),
        Json::String(text) => within(text.chars().count() as f64, "minLength", "maxLength"),
        Json::Array(items) => within(items.len() as f64, "minItems", "maxItems"),
        Json::Bool(_) | Json::Null | Json::Object(_) => true,
    }
}

/// Strings by format and name, then such as patterns ask for.
fn strings(schema: Schema<'_>, name: &str, place: usize) -> Vec<Json> {
    let name = name.to_lowercase();
    let words: Vec<&str> = name.split(|mark: char| !mark.is_alphanumeric()).collect();
    let format = schema.node.get("format").and_then(Json::as_str);
    let of_format = KINDS.iter().filter(|(kind, _)| Some(*kind) == format);
    let of_name = KINDS.iter().filter(|(kind, _)| words.contains(kind));
    let kinds = of_format.chain(of_name).map(|(_, value)| (*value).to_owned());
    let mut values: Vec<String> = kinds.chain([rare(place).to_owned()]).chain(SHAPES.map(str::to_owned)).collect();
    let length =
        |key: &str| schema.node.get(key).and_then(Json::as_u64).and_then(|length| usize::try_from(length).ok());
    if let Some(least) = length("minLength").filter(|least| (1..=400).contains(least)) {
        values.push(rare(place).chars().chain([' ']).cycle().take(least).collect());
    }
    if let Some(most) = length("maxLength") {
        values.push(rare(place).chars().take(most).collect());
    }
    values.into_iter().map(Json::String).collect()
}

fn rare(place: usize) -> &'static str {
    NAMES.get(place % NAMES.len()).copied().unwrap_or_default()
}
