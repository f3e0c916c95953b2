//! What a JSON Schema says about the types of a value, without running it: `$ref`, `allOf`, `anyOf` and `oneOf` are
//! followed, so that coercions and messages look at what a schema wants and not at how it is written.

use crate::reply::{Object, Value};
use serde_json::{Map, Value as Json};
use std::cell::Cell;

/// References and combinations followed on one way down before the schema counts as "anything".
const DEPTH: usize = 32;

/// Schema objects looked at for one answer: a schema that refers to itself in several places must not multiply.
const WORK: usize = 4_096;

/// What is left of both bounds.
#[derive(Clone, Copy)]
struct Fuel<'f> {
    depth: usize,
    work: &'f Cell<usize>,
}

impl Fuel<'_> {
    fn new(work: &Cell<usize>) -> Fuel<'_> {
        work.set(WORK);
        Fuel { depth: DEPTH, work }
    }

    /// One step down, where there is fuel for it.
    fn step(self) -> Option<Self> {
        self.work.set(self.work.get().checked_sub(1)?);
        Some(Self { depth: self.depth.checked_sub(1)?, ..self })
    }
}

/// A set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    pub(crate) const INTEGER: Self = Self(4);
    /// Integers and all other numbers.
    pub(crate) const NUMBER: Self = Self(4 | 8);
    pub(crate) const STRING: Self = Self(16);
    pub(crate) const ARRAY: Self = Self(32);
    pub(crate) const OBJECT: Self = Self(64);
    pub(crate) const ANY: Self = Self(127);

    /// Whether every type of `other` is in the set.
    pub(crate) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether some type is in both sets.
    pub(super) fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The type of `value` as it is written.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.is_integer() => Self::INTEGER,
            Value::Number(_) => Self(8),
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    fn of_json(value: &Json) -> Self {
        match value {
            Json::Null => Self::NULL,
            Json::Bool(_) => Self::BOOLEAN,
            Json::Number(number) if number.is_f64() => Self(8),
            Json::Number(_) => Self::INTEGER,
            Json::String(_) => Self::STRING,
            Json::Array(_) => Self::ARRAY,
            Json::Object(_) => Self::OBJECT,
        }
    }

    pub(super) fn named(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self::ANY,
        }
    }

    /// The names of the types, in a fixed order.
    pub(crate) fn names(self) -> Vec<&'static str> {
        let number = if self.contains(Self::NUMBER) { "number" } else { "integer" };
        [
            (Self::STRING, "string"),
            (Self::INTEGER, number),
            (Self::BOOLEAN, "boolean"),
            (Self::ARRAY, "array"),
            (Self::OBJECT, "object"),
            (Self::NULL, "null"),
        ]
        .into_iter()
        .filter_map(|(kind, name)| self.contains(kind).then_some(name))
        .collect()
    }
}

/// What the references of a schema lead into.
pub(crate) trait Whole: std::fmt::Debug {
    /// The value at a JSON pointer.
    fn at(&self, pointer: &str) -> Option<&Json>;
}

impl Whole for Json {
    fn at(&self, pointer: &str) -> Option<&Json> {
        self.pointer(pointer)
    }
}

/// A schema in its document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema<'a> {
    pub(crate) root: &'a dyn Whole,
    pub(crate) node: &'a Json,
}

impl<'a> Schema<'a> {
    pub(crate) fn root(root: &'a Json) -> Self {
        Self { root, node: root }
    }

    pub(crate) fn at(self, node: &'a Json) -> Self {
        Self { root: self.root, node }
    }

    /// The schema with its `$ref`s followed; itself where there are none or they lead nowhere.
    pub(crate) fn resolved(self) -> Self {
        let mut node = self.node;
        for _ in 0..DEPTH {
            let Some(target) = reference(self.root, node) else {
                break;
            };
            node = target;
        }
        self.at(node)
    }

    /// The types that the schema admits.
    pub(crate) fn types(self) -> Types {
        self.types_within(Fuel::new(&Cell::new(0)))
    }

    fn types_within(self, fuel: Fuel<'_>) -> Types {
        let Some(fuel) = fuel.step() else {
            return Types::ANY;
        };
        let map = match self.node {
            Json::Object(map) => map,
            Json::Bool(false) => return Types(0),
            _ => return Types::ANY,
        };
        let mut types = own_types(map);
        if let Some(target) = reference(self.root, self.node) {
            types = types.and(self.at(target).types_within(fuel));
        }
        for part in list(map, "allOf") {
            types = types.and(self.at(part).types_within(fuel));
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = list(map, keyword);
            if !branches.is_empty() {
                let union = branches.iter().map(|branch| self.at(branch).types_within(fuel)).fold(Types(0), Types::or);
                types = types.and(union);
            }
        }
        types
    }

    /// The schema of the property `key`, where there is exactly one place that says it.
    pub(crate) fn property(self, key: &str) -> Option<Self> {
        self.find(Types::OBJECT, Fuel::new(&Cell::new(0)), &|map| {
            let own = map.get("properties").and_then(|properties| properties.get(key));
            own.or_else(|| map.get("additionalProperties").filter(|schema| schema.is_object()))
        })
    }

    /// The schema of the item at `index`, where there is exactly one place that says it.
    pub(crate) fn item(self, index: usize) -> Option<Self> {
        self.find(Types::ARRAY, Fuel::new(&Cell::new(0)), &|map| {
            let own = list(map, "prefixItems").get(index);
            own.or_else(|| map.get("items").filter(|schema| schema.is_object()))
        })
    }

    /// The schema of every property, where none has one of its own.
    pub(crate) fn any_property(self) -> Option<Self> {
        self.find(Types::OBJECT, Fuel::new(&Cell::new(0)), &|map| {
            map.get("additionalProperties").filter(|schema| schema.as_object().is_some_and(|schema| !schema.is_empty()))
        })
    }

    /// The schemas of items by their places, and whether more may follow; `None` where all items have the same one.
    pub(crate) fn places(self) -> Option<(Vec<Self>, bool)> {
        let holder = self.find(Types::ARRAY, Fuel::new(&Cell::new(0)), &|map| {
            let own = map.get("prefixItems").or_else(|| map.get("items").filter(|items| items.is_array()))?;
            own.as_array().filter(|items| !items.is_empty()).map(|_| own)
        })?;
        let items: Vec<Self> = holder.node.as_array()?.iter().map(|item| self.at(item)).collect();
        let most = self.find(Types::ARRAY, Fuel::new(&Cell::new(0)), &|map| map.get("maxItems"));
        let most = most.and_then(|most| most.node.as_u64()).and_then(|most| usize::try_from(most).ok());
        let rest = self.find(Types::ARRAY, Fuel::new(&Cell::new(0)), &|map| {
            if map.contains_key("prefixItems") { map.get("items") } else { map.get("additionalItems") }
        });
        let closed = rest.is_some_and(|rest| rest.node == &Json::Bool(false));
        let open = !closed && most.is_none_or(|most| most > items.len());
        Some((items, open))
    }

    fn find(
        self,
        kind: Types,
        fuel: Fuel<'_>,
        look: &dyn Fn(&'a Map<String, Json>) -> Option<&'a Json>,
    ) -> Option<Self> {
        let fuel = fuel.step()?;
        let map = self.node.as_object()?;
        if let Some(found) = look(map) {
            return Some(self.at(found));
        }
        if let Some(target) = reference(self.root, self.node)
            && let Some(found) = self.at(target).find(kind, fuel, look)
        {
            return Some(found);
        }
        for part in list(map, "allOf") {
            if let Some(found) = self.at(part).find(kind, fuel, look) {
                return Some(found);
            }
        }
        for keyword in ["anyOf", "oneOf"] {
            let mut fitting =
                list(map, keyword).iter().filter(|branch| self.at(branch).types_within(fuel).contains(kind));
            if let (Some(only), None) = (fitting.next(), fitting.next()) {
                return self.at(only).find(kind, fuel, look);
            }
        }
        None
    }

    /// The branch at `index` of its `anyOf` or `oneOf`, where it has one of the two.
    pub(crate) fn branch(self, index: usize) -> Option<Self> {
        let map = self.resolved().node.as_object()?;
        let ((branches, []) | ([], branches)) = (list(map, "anyOf"), list(map, "oneOf")) else {
            return None;
        };
        branches.get(index).map(|branch| self.at(branch))
    }

    /// The branch of its `anyOf` or `oneOf` that alone takes an object with these tags (`"kind": {"const": "cat"}`).
    pub(crate) fn tagged(self, object: &Object) -> Option<Self> {
        self.tagged_within(object, Fuel::new(&Cell::new(0)))
    }

    fn tagged_within(self, object: &Object, fuel: Fuel<'_>) -> Option<Self> {
        let fuel = fuel.step()?;
        let map = self.resolved().node.as_object()?;
        ["anyOf", "oneOf"].into_iter().find_map(|keyword| {
            let branches = list(map, keyword).iter().map(|branch| self.at(branch));
            let mut fitting = branches
                .filter(|branch| branch.types_within(fuel).contains(Types::OBJECT) && branch.admits_tags_of(object));
            let only = fitting.next().filter(|_| fitting.next().is_none())?;
            Some(only.tagged_within(object, fuel).unwrap_or(only))
        })
    }

    fn admits_tags_of(self, object: &Object) -> bool {
        let properties = self.resolved().node.get("properties").and_then(Json::as_object);
        properties.into_iter().flatten().all(|(name, property)| {
            let tag = self.at(property).resolved().node.get("const").and_then(Json::as_str);
            match (tag, object.get(name)) {
                (Some(tag), Some(value)) => value.as_str() == Some(tag),
                _ => true,
            }
        })
    }

    /// Every property name that some part of the schema speaks of, each once, in the order of the schema.
    pub(crate) fn property_names(self) -> Vec<&'a str> {
        let mut names = Vec::new();
        self.each_part(Fuel::new(&Cell::new(0)), &mut |map| {
            for name in map.get("properties").and_then(Json::as_object).into_iter().flat_map(Map::keys) {
                if !names.contains(&name.as_str()) {
                    names.push(name.as_str());
                }
            }
        });
        names
    }

    /// The names that must be there whatever else is, in the order of the schema.
    pub(crate) fn required_names(self) -> Vec<&'a str> {
        let mut names = Vec::new();
        let schema = self.resolved();
        let parts = schema.node.as_object().into_iter().flat_map(|map| list(map, "allOf"));
        for part in std::iter::once(schema.node).chain(parts) {
            let Some(map) = self.at(part).resolved().node.as_object() else {
                continue;
            };
            for name in list(map, "required").iter().filter_map(Json::as_str) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// Whether some part of the schema explicitly lets properties in that it does not name, or none names any.
    pub(crate) fn is_open(self) -> bool {
        let mut open = false;
        let mut said = false;
        self.each_part(Fuel::new(&Cell::new(0)), &mut |map| {
            said |= !list(map, "required").is_empty();
            said |= ["properties", "additionalProperties", "unevaluatedProperties"]
                .iter()
                .any(|key| map.contains_key(*key));
            open |= ["additionalProperties", "unevaluatedProperties"]
                .iter()
                .any(|key| matches!(map.get(*key), Some(Json::Bool(true) | Json::Object(_))));
            open |= map.contains_key("patternProperties");
        });
        open || (!said && self.types().contains(Types::OBJECT))
    }

    /// Calls `visit` with every schema object that speaks about the same value.
    fn each_part(self, fuel: Fuel<'_>, visit: &mut dyn FnMut(&'a Map<String, Json>)) {
        let (Some(fuel), Some(map)) = (fuel.step(), self.node.as_object()) else {
            return;
        };
        visit(map);
        if let Some(target) = reference(self.root, self.node) {
            self.at(target).each_part(fuel, visit);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for part in list(map, keyword) {
                self.at(part).each_part(fuel, visit);
            }
        }
        for keyword in ["if", "then", "else"] {
            if let Some(part) = map.get(keyword) {
                self.at(part).each_part(fuel, visit);
            }
        }
        for part in map.get("dependentSchemas").and_then(Json::as_object).into_iter().flat_map(Map::values) {
            self.at(part).each_part(fuel, visit);
        }
    }
}

/// What `type`, `enum` and `const` of one schema object say.
fn own_types(map: &Map<String, Json>) -> Types {
    let mut types = match map.get("type") {
        Some(Json::String(name)) => Types::named(name),
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).map(Types::named).fold(Types(0), Types::or),
        _ => Types::ANY,
    };
    if let Some(Json::Array(options)) = map.get("enum") {
        types = types.and(options.iter().map(Types::of_json).fold(Types(0), Types::or));
    }
    if let Some(value) = map.get("const") {
        types = types.and(Types::of_json(value));
    }
    types
}

/// The items of the array under `key`; none where there is no array.
pub(crate) fn list<'a>(map: &'a Map<String, Json>, key: &str) -> &'a [Json] {
    map.get(key).and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

/// What the `$ref` of `node` points to, inside the same document.
pub(crate) fn reference<'a>(root: &'a dyn Whole, node: &Json) -> Option<&'a Json> {
    let pointer = node.get("$ref")?.as_str()?.strip_prefix('#')?;
    root.at(pointer).or_else(|| {
        // A pointer in a URI fragment may be percent-encoded.
        pointer.contains('%').then(|| root.at(&percent_decode(pointer)))?
    })
}

/// Percent-decodes `text`; what does not decode to UTF-8 stays as it is.
pub(crate) fn percent_decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes().iter().copied();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digits = (byte == b'%').then(|| Some((hex(ahead.next()?)?, hex(ahead.next()?)?))).flatten();
        if let Some((high, low)) = digits {
            bytes.push(high << 4 | low);
            rest = ahead;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::{Schema, Types, percent_decode};
    use serde_json::json;

    fn types(schema: &serde_json::Value) -> Types {
        Schema::root(schema).types()
    }

    #[test]
    fn types_are_read_through_combinations() {
        assert_eq!(types(&json!({"type": ["string", "null"]})).names(), ["string", "null"]);
        assert_eq!(types(&json!({"anyOf": [{"type": "integer"}, {"type": "null"}]})).names(), ["integer", "null"]);
        assert_eq!(types(&json!({"anyOf": [{"type": "integer"}, {}]})), Types::ANY);
        assert_eq!(types(&json!({"allOf": [{"type": "integer"}, {"minimum": 1}]})), Types::INTEGER);
        assert_eq!(types(&json!({"enum": [1, 2]})), Types::INTEGER);
        assert_eq!(types(&json!({"const": "x"})), Types::STRING);
        assert_eq!(types(&json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "array"}}})), Types::ARRAY);
        assert_eq!(types(&json!({"$ref": "#"})), Types::ANY);
        let itself = json!({"$ref": "#"});
        assert_eq!(types(&json!({"anyOf": vec![itself; 9]})), Types::ANY);
    }

    #[test]
    fn fragments_are_decoded() {
        assert_eq!(percent_decode("/a%20b/%7Bid%7D"), "/a b/{id}");
        assert_eq!(percent_decode("100%"), "100%");
        assert_eq!(percent_decode("%zz%ff"), "%zz%ff");
    }

    #[test]
    fn names_are_gathered_from_every_part() {
        let schema = json!({
            "properties": {"a": {}},
            "allOf": [{"properties": {"b": {}}, "required": ["b"]}, {"$ref": "#/$defs/c"}],
            "$defs": {"c": {"properties": {"c": {}}}},
            "required": ["a"],
        });
        assert_eq!(Schema::root(&schema).property_names(), ["a", "b", "c"]);
        assert_eq!(Schema::root(&schema).required_names(), ["a", "b"]);
        assert!(!Schema::root(&schema).is_open());
    }
}
