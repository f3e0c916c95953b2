//! The corrected move of a reply that was refused, in the model's own words, where it is certain what was meant. A small
//! model copies what it is shown, so that nothing stands in it that the model did not write.

use super::unknown_keys::{self, Carries};
use crate::reply::json::{JsonReader, Progress, Settings};
use crate::reply::{Code, Object, ReadLimits, RepairPolicy, Value};

/// What a model writes for the keyword of a final answer.
const ANSWERS: &[&str] = &[
    "finish",
    "finished",
    "finalanswer",
    "final",
    "answer",
    "none",
    "null",
    "",
    "end",
    "done",
    "respond",
    "response",
    "complete",
    "return",
    "noaction",
];

/// Whether an action is a word for the final answer rather than a tool.
pub(crate) fn is_answer(action: &str) -> bool {
    ANSWERS.contains(&unknown_keys::plain(action).as_str())
}

/// What a reply was to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// The move, or the form of one.
    pub text: String,
    /// Whether it is the move itself, in the model's own words.
    pub certain: bool,
}

impl Correction {
    pub(crate) fn certain(text: impl Into<String>) -> Self {
        Self { text: text.into(), certain: true }
    }

    pub(crate) fn form(text: impl Into<String>) -> Self {
        Self { text: text.into(), certain: false }
    }
}

/// Violations about the form of the move, which a corrected one shows; the others are about its tool or ticket, or it is
/// not certain that the move was meant, or which of them, or that all of it was read: a model that copies would make it.
const OF_FORM: &[Code] = &[
    Code::Truncated,
    Code::UnescapedQuote,
    Code::UnquotedValue,
    Code::UnexpectedToken,
    Code::MissingColon,
    Code::InvalidNumber,
    Code::NonFiniteNumber,
    Code::UnbalancedBrackets,
    Code::AmbiguousEscape,
    Code::ElidedContent,
    Code::DuplicateKey,
    Code::InvalidJson,
    Code::WrongTag,
    Code::UntaggedToolCall,
    Code::FencedToolCall,
    Code::BothActionAndFinal,
    Code::NoAction,
    Code::MissingField,
    Code::UnknownKey,
    Code::BadType,
    Code::UnknownType,
    Code::ArgsInvalid,
    Code::NoOutput,
    Code::OrphanCloseTag,
    Code::DuplicateCallId,
];

/// Whether a violation is about the form of the move.
pub(crate) fn is_of_form(code: Code) -> bool {
    OF_FORM.contains(&code)
}

/// The values of a broken object that can be read, by key.
pub(crate) struct Salvaged {
    fields: Vec<(String, Value)>,
    /// Whether the object was read whole.
    pub(crate) whole: bool,
}

impl Salvaged {
    /// What can be read of the first object that has one of `keys`, else of the text after each of them.
    pub(crate) fn read(raw: &str, keys: &[&str]) -> Self {
        for (at, _) in raw.match_indices('{').take(8) {
            if let Some(Value::Object(object)) = value_at(raw, at)
                && object.keys().any(|key| keys.iter().any(|own| unknown_keys::plain(own) == unknown_keys::plain(key)))
            {
                let fields = object.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect();
                return Self { fields, whole: true };
            }
        }
        let found = keys.iter().filter_map(|key| Some(((*key).to_owned(), value_of(raw, key)?)));
        Self { fields: found.collect(), whole: false }
    }

    /// The value of a key, in any case.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        let plain = unknown_keys::plain(key);
        self.fields.iter().find(|(name, _)| unknown_keys::plain(name) == plain).map(|(_, value)| value)
    }

    /// The text of a key.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// The first of several names that has a text.
    pub(crate) fn first_text(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.text(key))
    }

    /// The arguments under `key` with what stands beside them under other names; `None` where they can't be read.
    pub(crate) fn arguments(&self, key: &str, known: &[&str]) -> Option<Object> {
        let mut arguments = match self.get(key) {
            None if !self.whole => return None,
            None | Some(Value::Null) => Object::new(),
            Some(value) => match unknown_keys::decoded(value).into_owned() {
                Value::Object(object) => object,
                other if unknown_keys::is_empty(&other) => Object::new(),
                _ => return None,
            },
        };
        for (name, value) in &self.fields {
            let own = known.iter().any(|own| unknown_keys::plain(own) == unknown_keys::plain(name));
            if own || unknown_keys::is_empty(value) || unknown_keys::is_remark(name) {
                continue;
            }
            match (unknown_keys::carries(name, &Value::Null, false), unknown_keys::decoded(value).into_owned()) {
                (Carries::Arguments, Value::Object(object)) => {
                    for (name, value) in object {
                        arguments.insert(name, value);
                    }
                }
                (_, value) => arguments.insert(name.as_str(), value),
            }
        }
        Some(arguments)
    }
}

/// The object of these members, as JSON with a blank after each mark, which is how models write it.
pub(crate) fn written(members: &[(&str, Value)]) -> String {
    let members: Vec<String> =
        members.iter().map(|(key, value)| format!("{}: {}", Value::from(*key).to_json(), value.to_json())).collect();
    format!("{{{}}}", members.join(", "))
}

fn value_of(raw: &str, key: &str) -> Option<Value> {
    raw.match_indices(key).take(8).find_map(|(at, _)| {
        let before = raw.get(..at)?.chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            return None;
        }
        let rest = raw.get(at + key.len()..)?.trim_start_matches(['"', '\'', '”', ' ']);
        let rest = rest.strip_prefix(':').or_else(|| rest.strip_prefix('：'))?.trim_start();
        value_at(raw, raw.len() - rest.len())
    })
}

fn value_at(raw: &str, at: usize) -> Option<Value> {
    let mut reader = JsonReader::new(Settings::new(RepairPolicy::Default, ReadLimits::default()), at);
    if reader.run(raw, true) != Progress::Done {
        return None;
    }
    // A text that continues right after its end contained a quote.
    let after = raw.get(reader.position()..).unwrap_or("").trim_start();
    let (value, _) = reader.into_value();
    let ends = after.is_empty() || after.starts_with([',', '}', ']', '，', '\'', '"']);
    (ends || !matches!(value, Value::String(_))).then_some(value)
}
