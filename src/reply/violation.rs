//! Violations: replies that break the protocol. No part of such a reply is executed.

use super::{Span, span};
use crate::codes::Code;
use serde::{Deserialize, Serialize};

/// One breach of the protocol, with its place in the reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Violation {
    /// The stable name of the breach.
    pub code: Code,
    /// The code of the fault inside the text of invalid arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<Code>,
    /// The expected and the actual value: lower case, no full stop.
    pub message: String,
    /// The place in the reply; `None` if it is about the reply as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// JSON pointer into the payload, if the place is a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The smallest correct form, or the schema that was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The text that came instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// A second place that explains the first: the opening bracket, the first of two moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related: Option<Related>,
    /// The bounds of the model's grammar, where they cut the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<String>,
    /// The hint for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The calls that are refused because of where their values come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Box<RefusedCalls>>,
}

/// Calls that are refused because of where their values come from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCalls {
    /// The calls, as the guard against repetition names them.
    pub keys: Vec<String>,
    /// The values as JSON, by the JSON pointers into the arguments of their calls.
    pub values: Vec<(String, String)>,
    /// Whether the same calls are refused again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub strict: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A second place that explains a violation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Related {
    /// The place in the reply.
    pub span: Span,
    /// A note on the place, for example "opened here".
    pub label: String,
}

/// Violations are rare and large, so that errors carry a pointer.
pub(crate) type BoxedViolation = Box<Violation>;

impl Violation {
    /// A violation with only a message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            inner: None,
            message: span::visible(message.into()),
            span: None,
            pointer: None,
            expected: None,
            found: None,
            related: None,
            bounds: None,
            hint: None,
            refused: None,
        }
    }

    /// Whether it is about where values come from: what was found once is not looked for again.
    pub fn is_of_values(&self) -> bool {
        matches!(self.code, Code::UnstatedValue | Code::ExampleValue | Code::UnlikelyTool | Code::FeedbackQuoted)
    }

    /// The message as a sentence. It may end in a question.
    pub fn sentence(&self) -> String {
        sentence(&self.message)
    }

    /// The code with the one inside, as it is written everywhere: `args_invalid:truncated`.
    pub fn code_text(&self) -> String {
        match self.inner {
            Some(inner) => format!("{}:{inner}", self.code),
            None => self.code.name().to_owned(),
        }
    }

    /// Adds the code of the fault inside the arguments.
    #[must_use]
    pub fn inner(mut self, inner: Code) -> Self {
        self.inner = Some(inner);
        self
    }

    /// Adds its place in the reply.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Adds the JSON pointer of the value it is about.
    #[must_use]
    pub fn pointer(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// Adds the expected form.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// Adds the text that came instead.
    #[must_use]
    pub fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(span::visible(found.into()));
        self
    }

    /// Adds a second place.
    #[must_use]
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related = Some(Related { span, label: label.into() });
        self
    }

    /// Adds the hint for the model.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(span::visible(hint.into()));
        self
    }
}

/// A text with a full stop at its end, if that is no sentence already.
pub(crate) fn sentence(text: &str) -> String {
    let stop = if text.ends_with(['?', '!', '.']) { "" } else { "." };
    format!("{text}{stop}")
}

#[cfg(test)]
mod tests {
    use super::Violation;
    use crate::codes::Code;

    #[test]
    fn nothing_of_a_reply_is_hidden_or_moves_the_text_around_it() {
        let name = "se\u{1b}[31mar\u{202e}ch\u{7}\u{200b}\tit";
        let violation = Violation::new(Code::UnknownTool, format!("unknown tool '{name}'\nat the end"));
        assert_eq!(violation.message, "unknown tool 'se·[31mar·ch·· it'\nat the end");
        assert_eq!(violation.hint(format!("not '{name}'")).hint.as_deref(), Some("not 'se·[31mar·ch·· it'"));
    }

    #[test]
    fn a_question_is_a_sentence() {
        let sentence = |message: &str| Violation::new(Code::UnknownTool, message).sentence();
        assert_eq!(sentence("did you mean 'a'?"), "did you mean 'a'?");
        assert_eq!(sentence("unknown tool 'a'"), "unknown tool 'a'.");
        assert_eq!(sentence("unknown tool '…'"), "unknown tool '…'.");
    }
}
