//! The one renderer of violations for the model: what, where, the smallest correct form, nothing executed.

use super::Protocol;
use super::correction::is_of_form;
use crate::reply::span;
use crate::reply::violation::Violation;
use std::borrow::Cow;

/// Marks that a sentence ends with.
const ENDS: [char; 5] = ['.', '?', '!', '…', ':'];
/// Quotes that may close after such a mark.
const QUOTES: [char; 8] = ['"', '\'', '”', '’', '»', '“', '‘', '`'];

/// A text with a full stop, unless it ends as a sentence does: `did you mean 'a'?`, `it says "no."`. A mark alone in
/// quotes, such as `'.'`, is a character that is spoken of.
pub(crate) fn sentence(text: &str) -> Cow<'_, str> {
    let inside = text.trim_end_matches(QUOTES);
    let before = inside.trim_end_matches(ENDS);
    let mentioned = inside.len() < text.len() && before.ends_with(QUOTES);
    if before.len() < inside.len() && !mentioned { text.into() } else { format!("{text}.").into() }
}

/// The message that a model gets after a reply that broke the protocol. `raw` is the reply.
pub fn render(protocol: &dyn Protocol, violation: &Violation, raw: &str) -> String {
    let mut text = format!("{}Your reply was not executed: ", protocol.feedback_opening());
    text.push_str(&sentence(&violation.message));
    if let Some(span) = violation.span {
        text.push('\n');
        text.push_str(&span::excerpt(raw, span));
    }
    if let Some(related) = &violation.related {
        for part in ["\n(", &related.label, ")\n", &span::excerpt(raw, related.span)] {
            text.push_str(part);
        }
    }
    let corrected = if is_of_form(violation.code) { protocol.correction(violation, raw) } else { None };
    let certain = corrected.as_ref().is_some_and(|corrected| corrected.certain);
    if let Some(expected) = corrected.as_ref().map(|corrected| &corrected.text).or(violation.expected.as_ref()) {
        text.push_str(if certain { "\nWrite it so: " } else { "\nExpected: " });
        text.push_str(expected);
    }
    if let Some(hint) = &violation.hint {
        text.push_str("\nHint: ");
        text.push_str(&sentence(hint));
    }
    text.push_str("\nNothing of it was executed. Reply again with one move.");
    text
}

#[cfg(test)]
mod tests {
    use super::{render, sentence};
    use crate::protocol::{Chatty, Protocol, React, Ticket, Violation};
    use crate::reply::Code;

    #[test]
    fn a_sentence_ends_once() {
        for text in ["so.", "did you mean 'a'?", "stop!", "and so on…", "as in:", "it says \"no.\"", "(“why?”", "“so?”"]
        {
            assert_eq!(sentence(text), text);
        }
        let ended =
            [("write it", "write it."), ("it is 'a'", "it is 'a'."), ("got '.'", "got '.'."), ("got '…'", "got '…'.")];
        for (text, expected) in ended {
            assert_eq!(sentence(text), expected);
        }
    }

    #[test]
    fn feedback_on_no_code_has_two_marks_at_an_end() {
        let protocols: [&dyn Protocol; 3] = [&React::default(), &Chatty::default(), &Ticket::default()];
        let ends = ["write it", "did you mean 'a'?", "write all of it.", "do it!", "one of these:", "left out…"];
        for code in Code::ALL {
            for (protocol, end) in protocols.into_iter().flat_map(|protocol| ends.map(|end| (protocol, end))) {
                let violation = Violation::new(*code, format!("{code}, {end}")).hint(end);
                let text = render(protocol, &violation, "x");
                let once = if end == "write it" { "write it." } else { end };
                let opening = protocol.feedback_opening();
                assert!(text.starts_with(&format!("{opening}Your reply was not executed: {code}, {once}\n")), "{text}");
                assert!(text.contains(&format!("\nHint: {once}\n")), "{text}");
            }
        }
    }
}
