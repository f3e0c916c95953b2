//! Violations: replies that break the protocol. Nothing of such a reply is executed.

use super::Span;
use super::names::names;
use serde::{Deserialize, Serialize};

names! {
    /// The stable name of a kind of violation.
    pub enum Code {
        // Reading JSON.
        /// The reply ends with something open.
        Truncated = "truncated",
        /// A quote inside a string is not escaped, or a quote is missing: where the string ends would be a guess.
        UnescapedQuote = "unescaped_quote",
        /// A value that is no number, literal or bracket has no quotes.
        UnquotedValue = "unquoted_value",
        /// Something stands where a value, a key or a separator is due.
        UnexpectedToken = "unexpected_token",
        /// A key is not followed by a colon.
        MissingColon = "missing_colon",
        /// A number is not written as one.
        InvalidNumber = "invalid_number",
        /// `NaN`, an infinity, or a number that only an infinity could hold.
        NonFiniteNumber = "non_finite_number",
        /// A number has more digits than allowed.
        NumberTooLarge = "number_too_large",
        /// A closing bracket does not fit the one that was opened, in mid-document.
        UnbalancedBrackets = "unbalanced_brackets",
        /// Backslashes in one string could be escapes or themselves.
        AmbiguousEscape = "ambiguous_escape",
        /// Half of a surrogate pair, which is no character.
        LoneSurrogate = "lone_surrogate",
        /// Dots or a comment stand for content that was left out.
        ElidedContent = "elided_content",
        /// One key stands twice with different values.
        DuplicateKey = "duplicate_key",
        /// Pieces of JSON follow the closed payload.
        ExtraData = "extra_data",
        /// A tool block holds no JSON.
        InvalidJson = "invalid_json",
        /// Arrays and objects are nested deeper than allowed.
        TooDeep = "too_deep",
        /// The reply is longer than allowed.
        TooLarge = "too_large",
        /// Another bound on the payload is exceeded.
        LimitExceeded = "limit_exceeded",
        /// A repair was possible, and the protocol is strict.
        RepairRefused = "repair_refused",

        // Tags.
        /// A reasoning block was opened and never closed: all of the reply may be rehearsal.
        UnclosedThink = "unclosed_think",
        /// An end tag without its start tag.
        OrphanCloseTag = "orphan_close_tag",
        /// A call in the tags of another protocol.
        WrongTag = "wrong_tag",
        /// A call without tags.
        UntaggedToolCall = "untagged_tool_call",
        /// A call in the fence that the reply ends with: it may be meant, or shown.
        FencedToolCall = "fenced_tool_call",
        /// The output section is missing or empty.
        NoOutput = "no_output",
        /// Nothing to show and nothing to run.
        Empty = "empty",

        // One move a reply.
        /// Two different moves in one reply.
        MultipleActions = "multiple_actions",
        /// A tool call and a final answer in one object.
        BothActionAndFinal = "both_action_and_final",
        /// A move in quotes: the literal of a program, or a text about a move.
        QuotedMove = "quoted_move",
        /// Nothing in the reply says what to do.
        NoAction = "no_action",

        // Fields.
        /// A field that the move needs is not there.
        MissingField = "missing_field",
        /// A key that this protocol or this move does not have, and that cannot be left out.
        UnknownKey = "unknown_key",
        /// A value of the wrong type.
        BadType = "bad_type",
        /// The `type` is none of the protocol's.
        UnknownType = "unknown_type",
        /// The text of the arguments is no JSON object; the reason follows after a colon.
        ArgsInvalid = "args_invalid",
        /// Two different calls with one `call_id`.
        DuplicateCallId = "duplicate_call_id",

        // Tools and their arguments.
        /// No tool has this name, or no operation this route.
        UnknownTool = "unknown_tool",
        /// A required argument is not there.
        MissingArgument = "missing_argument",
        /// The tool has no such argument.
        UnknownArgument = "unknown_argument",
        /// An argument has the wrong type or value.
        InvalidArgument = "invalid_argument",
        /// A `$call_id` refers to its own or a later call, or to no agent where one is waited for.
        BadReference = "bad_reference",
        /// Agents are waited for before the last call of the block.
        WaitNotLast = "wait_not_last",

        // Tickets.
        /// The run has no ticket with this id.
        UnknownTicket = "unknown_ticket",
        /// The ticket is still in progress.
        TicketInProgress = "ticket_in_progress",

        // Delegation.
        /// The task to delegate is the run's own.
        SelfDelegation = "self_delegation",

        // Guards.
        /// The same call failed before.
        RepeatedAfterFailure = "repeated_after_failure",
        /// The same call with the same result was made too often, or its result was not looked at yet.
        Repeated = "repeated",
        /// A call is required before an answer.
        CallRequired = "call_required",
        /// The move is not offered in this run.
        NotOffered = "not_offered",
    }
}

/// One breach of the protocol, with its place in the reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Violation {
    /// The stable name.
    pub code: Code,
    /// Why arguments are invalid: the code of what is wrong inside their text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<Code>,
    /// What was expected, what came: lower case, no full stop.
    pub message: String,
    /// Where in the reply; `None` where it is about the reply as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// JSON pointer into the payload, where the place is a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The smallest correct form, or the schema that was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What came instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// A second place that explains the first: the opening bracket, the first of two moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related: Option<Related>,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A second place that explains a violation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Related {
    /// Where in the reply.
    pub span: Span,
    /// What stands there, for example "opened here".
    pub label: String,
}

impl Violation {
    /// A violation with a message and nothing else.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            inner: None,
            message: message.into(),
            span: None,
            pointer: None,
            expected: None,
            found: None,
            related: None,
            hint: None,
        }
    }

    /// The code with the one inside, as it is written everywhere: `args_invalid:truncated`.
    pub fn code_text(&self) -> String {
        match self.inner {
            Some(inner) => format!("{}:{inner}", self.code),
            None => self.code.name().to_owned(),
        }
    }

    /// Adds the code of what is wrong inside.
    #[must_use]
    pub fn inner(mut self, inner: Code) -> Self {
        self.inner = Some(inner);
        self
    }

    /// Adds its place.
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

    /// Adds what was expected.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// Adds what came instead.
    #[must_use]
    pub fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    /// Adds a second place.
    #[must_use]
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related = Some(Related { span, label: label.into() });
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
