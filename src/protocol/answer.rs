//! Answers of a type: how a protocol reads them, and what its prompt says of them.

use super::ReadOptions;
use crate::reply::json::Field;
use crate::reply::{BoxedViolation, RepairPolicy};
use crate::tool::{AnswerType, CheckedAnswer};

/// The answer in a field. `at` is what JSON pointers begin with; JSON text is a form of its own where `as_text` says so.
pub(crate) fn read(
    returns: &AnswerType,
    key: &'static str,
    field: &Field,
    at: &str,
    options: &ReadOptions,
    as_text: bool,
) -> Result<CheckedAnswer, BoxedViolation> {
    let checked = match options.repairs {
        RepairPolicy::Strict => returns.check_strictly(key, &field.value, as_text),
        RepairPolicy::Default | RepairPolicy::Lenient => returns.check(key, &field.value),
    };
    checked.map_err(|violation| {
        let pointer = violation.pointer.as_ref().map(|pointer| format!("{at}{pointer}"));
        let mut violation = violation.at(field.span);
        violation.pointer = pointer;
        Box::new(violation)
    })
}

/// Whether the text of an answer is published as JSON: the type admits no text, so that it can only be JSON text.
pub(crate) fn publishes_json(returns: Option<&AnswerType>) -> bool {
    returns.is_some_and(|returns| !returns.admits_text())
}

/// What a prompt says of the type: a sentence with the short form, and the schema where that says more.
pub(crate) fn described(returns: &AnswerType, name: &str) -> String {
    let sentence = format!("{name} is JSON of the type {}.", returns.shape());
    match returns.details() {
        Some(schema) => format!("{sentence} Its JSON Schema: {schema}"),
        None => sentence,
    }
}

/// A built-in prompt with these passages replaced, each where it stands first.
pub(crate) fn replaced(prompt: String, passages: &[(&str, String)]) -> String {
    passages.iter().fold(prompt, |prompt, (passage, with)| prompt.replacen(passage, with, 1))
}

/// A prompt from a user's template, with a passage after it.
pub(crate) fn appended(prompt: &str, passage: &str) -> String {
    format!("{}\n\n{passage}\n", prompt.trim_end())
}

/// An answer for an example, as JSON text.
pub(crate) fn example(returns: &AnswerType, key: &'static str) -> String {
    returns.example(key).unwrap_or_else(|| "\"...\"".to_owned())
}
