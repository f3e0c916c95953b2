//! The one renderer of violations for the model: what, where, the smallest correct form, nothing executed.

use super::Protocol;
use super::correction::is_of_form;
use crate::reply::Code;
use crate::reply::violation::{Violation, sentence};

/// The message that a model gets after a reply that broke the protocol. `raw` is the reply.
pub fn render(protocol: &dyn Protocol, violation: &Violation, raw: &str) -> String {
    let mut text = format!("{}Your reply was not executed: {}", protocol.feedback_opening(), violation.sentence());
    // Where a value stands in the reply says nothing of where it is from, and small models answer with a long text.
    if violation.is_of_values() {
        text.push(' ');
        text.push_str(&sentence(&with_capital(violation.hint.as_deref().unwrap_or_default())));
        return text;
    }
    if let Some(span) = violation.span {
        text.push('\n');
        text.push_str(&protocol.excerpt(raw, span));
    }
    if let Some(related) = &violation.related {
        for part in ["\n(", &related.label, ")\n", &protocol.excerpt(raw, related.span)] {
            text.push_str(part);
        }
    }
    let corrected = if is_of_form(violation.code) { protocol.correction(violation, raw) } else { None };
    let certain = corrected.as_ref().is_some_and(|corrected| corrected.certain);
    if let Some(expected) = corrected.as_ref().map(|corrected| &corrected.text).or(violation.expected.as_ref()) {
        text.push_str(if certain { "\nWrite it so: " } else { "\nExpected: " });
        text.push_str(expected);
    }
    let answer = protocol.answer_hint().filter(|_| violation.code == Code::UnknownTool);
    let answer = answer.map(|hint| hint.replacen("to answer", "To answer", 1));
    let hints: Vec<String> = violation.hint.as_deref().into_iter().chain(answer.as_deref()).map(sentence).collect();
    if !hints.is_empty() {
        text.push_str("\nHint: ");
        text.push_str(&hints.join(" "));
    }
    text.push_str("\nNothing of it was executed. Reply again with one move.");
    text
}

fn with_capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
