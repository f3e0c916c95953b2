//! The JSON Schema of a tool: what it says of each value, and its own texts.

use super::from::Kind;
use serde_json::Value;

/// Schemas that are followed for one value.
const MOST: usize = 32;
/// Characters before a value in which "e.g." makes it an example.
const BEFORE: usize = 60;
/// Texts of one schema that are searched.
const TEXTS: usize = 2000;

/// The schemas that apply to one value: references and alternatives are followed.
#[derive(Clone)]
pub(crate) struct Specs<'s> {
    root: &'s Value,
    all: Vec<&'s Value>,
}

impl<'s> Specs<'s> {
    pub(crate) fn new(root: &'s Value) -> Self {
        Self { root, all: Vec::new() }.with(root)
    }

    fn empty(&self) -> Self {
        Self { root: self.root, all: Vec::new() }
    }

    fn with(mut self, spec: &'s Value) -> Self {
        let mut open = vec![spec];
        while let Some(spec) = open.pop().filter(|_| self.all.len() < MOST) {
            if self.all.iter().any(|known| std::ptr::eq(*known, spec)) {
                continue;
            }
            self.all.push(spec);
            let reference = spec.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'));
            open.extend(reference.and_then(|pointer| self.root.pointer(pointer)));
            for word in ["anyOf", "oneOf", "allOf"] {
                open.extend(spec.get(word).and_then(Value::as_array).into_iter().flatten());
            }
        }
        self
    }

    /// Those of a property.
    pub(crate) fn property(&self, name: &str) -> Self {
        let of = |spec: &&'s Value| {
            let named = spec.get("properties").and_then(|properties| properties.get(name));
            named.or_else(|| spec.get("additionalProperties"))
        };
        self.all.iter().filter_map(of).fold(self.empty(), Self::with)
    }

    /// Whether the schema has a property of this name, or lists it.
    pub(crate) fn declares(&self, name: &str) -> bool {
        self.all.iter().any(|spec| {
            let listed =
                |names: &'s Value| Self { root: self.root, all: Vec::new() }.with(names).listed(&Value::from(name));
            spec.get("properties").and_then(|properties| properties.get(name)).is_some()
                || spec.get("propertyNames").and_then(listed).is_some()
        })
    }

    /// Whether the schema says that any names may be given, and has not this one.
    pub(crate) fn is_open_to(&self, name: &str) -> bool {
        let is_open = |spec: &'s Value| {
            let more = spec.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
            more || spec.get("patternProperties").is_some()
        };
        !self.declares(name) && self.all.iter().any(|spec| is_open(spec))
    }

    /// Whether a name chosen by the model is data: an entry of a table, or no plain word.
    pub(crate) fn is_data(&self, name: &str) -> bool {
        let is_table = |spec: &'s Value| {
            spec.get("additionalProperties").is_some_and(Value::is_object) || spec.get("patternProperties").is_some()
        };
        let is_word = name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.chars().all(|letter| letter.is_ascii_alphabetic() || matches!(letter, '_' | '-'));
        !is_word || self.all.iter().any(|spec| is_table(spec))
    }

    /// Those of an item.
    pub(crate) fn item(&self, at: usize) -> Self {
        let of = |spec: &&'s Value| {
            let first = spec.get("prefixItems").and_then(|items| items.get(at));
            first.or_else(|| spec.get("items"))
        };
        self.all.iter().filter_map(of).fold(self.empty(), Self::with)
    }

    /// Whether the schema itself names the value.
    pub(crate) fn listed(&self, value: &Value) -> Option<Kind> {
        let equal = |other: &Value| match (other.as_f64(), value.as_f64()) {
            (Some(other), Some(value)) => other.to_bits() == value.to_bits(),
            _ => other == value,
        };
        if self.all.iter().any(|spec| spec.get("default").is_some_and(equal)) {
            return Some(Kind::Default);
        }
        let in_list = |spec: &&Value| {
            spec.get("const").is_some_and(equal)
                || spec.get("enum").and_then(Value::as_array).is_some_and(|list| list.iter().any(equal))
        };
        self.all.iter().any(in_list).then_some(Kind::Enum)
    }
}

/// The texts of a schema: names, descriptions, and the values that it lists.
pub(crate) fn texts(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(schema, &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        _ if found.len() >= TEXTS => {}
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "description" | "title" if field.is_string() => found.extend(field.as_str().map(str::to_owned)),
                    "enum" | "const" | "default" => scalars(field, found),
                    "example" | "examples" if !field.is_object() => {
                        let mut examples = Vec::new();
                        scalars(field, &mut examples);
                        found.extend(examples.into_iter().map(|example| format!("e.g. {example}")));
                    }
                    "properties" => {
                        found.extend(field.as_object().into_iter().flatten().map(|(name, _)| name.clone()));
                        field.as_object().into_iter().flatten().for_each(|(_, field)| collect(field, found));
                    }
                    _ => collect(field, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

fn scalars(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Number(number) => found.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| scalars(item, found)),
        Value::Object(fields) => fields.values().for_each(|item| scalars(item, found)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Whether "e.g.", "such as" or the like stands before a place, in its line.
pub(crate) fn is_example(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    let line: Vec<char> = before.rsplit('\n').next().unwrap_or_default().chars().rev().take(BEFORE).collect();
    let line: String = line.into_iter().rev().collect::<String>().to_lowercase();
    ["e.g", "eg", "example", "examples", "such as", "for instance", "like"].iter().any(|word| {
        line.match_indices(word).any(|(at, word)| {
            let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            let after = line.get(at + word.len()..).unwrap_or_default();
            !is_letter(line.get(..at).unwrap_or_default().chars().next_back()) && !is_letter(after.chars().next())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_and_alternatives_are_followed() {
        let root = json!({"properties": {"unit": {"anyOf": [{"$ref": "#/$defs/unit"}, {"type": "null"}]},
            "rows": {"items": {"properties": {"n": {"default": 5}}}}}, "$defs": {"unit": {"enum": ["C", "F"]}}});
        let specs = Specs::new(&root);
        assert_eq!(specs.property("unit").listed(&json!("C")), Some(Kind::Enum));
        assert_eq!(specs.property("unit").listed(&json!("K")), None);
        assert_eq!(specs.property("rows").item(3).property("n").listed(&json!(5.0)), Some(Kind::Default));
        let endless = json!({"$ref": "#"});
        assert_eq!(Specs::new(&endless).property("x").listed(&json!(1)), None);
    }

    #[test]
    fn examples_are_told_from_other_text() {
        let text = "The city, e.g. Paris. In legs: Rome";
        assert!(is_example(text, 15));
        assert!(is_example("Such as: x", 9) && !is_example("In legs: Rome", 9) && !is_example("like\nRome", 5));
    }
}
