//! The codes of violations, of every protocol and of runs.

use super::names::names;

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
        /// A `$call_id` refers to its own or a later call, stands in a text, or names no agent where one is waited for.
        BadReference = "bad_reference",
        /// Agents are waited for before the last call of the block.
        WaitNotLast = "wait_not_last",

        /// The service of the model could not read a call that its own model wrote.
        ServiceRefusedCall = "service_refused_call",

        // Where values come from.
        /// A value of a call stands in no message and no result.
        UnstatedValue = "unstated_value",
        /// A value is that of the prompt's own example, and stands nowhere else.
        ExampleValue = "example_value",
        /// The model itself would hardly have named this tool: a grammar led it there.
        UnlikelyTool = "unlikely_tool",
        /// The answer repeats what the model was told of a refused reply.
        FeedbackQuoted = "feedback_quoted",

        // Answers.
        /// The final answer is not of the type that the run returns.
        InvalidAnswer = "invalid_answer",

        // Tickets.
        /// The run has no ticket with this id.
        UnknownTicket = "unknown_ticket",
        /// The ticket is the run's own task, whose result is what the run returns.
        OwnTicket = "own_ticket",
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
