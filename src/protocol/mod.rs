//! Values to moves, and outcomes to messages: a file and a folder per protocol, and the vocabulary that they share.

mod answer;
mod arguments;
pub(crate) mod around;
mod correction;
pub mod decoder;
pub mod example;
pub mod feedback;
mod field_reader;
mod field_stream;
mod find_payload;
mod following_text;
pub mod grammar;
mod kinds;
pub mod lint;
mod message;
pub mod message_entry;
pub mod moves;
mod options;
pub mod prompt;
mod published;
mod reasoning;
mod repair_notes;
mod retraction;
pub mod snapshot;
pub mod stored_protocol;
mod surrounding_text;
pub mod text_spans;
pub(crate) mod unknown_keys;
pub mod untagged_call;
mod violations;

pub mod chatty;
pub mod native;
pub mod react;
pub mod script;
pub mod ticket;

pub use crate::codes::Code;
pub use crate::reply::violation::{self, Violation};
pub use chatty::Chatty;
pub use correction::Correction;
pub use decoder::{Decoder, Delta, FinishReason, ReadOptions, Reply, Status};
pub use example::Examples;
pub use kinds::{NamedProtocol, ProtocolKind};
pub use message::{Message, Role};
pub(crate) use message_entry::own_task;
pub use message_entry::{Answered, MessageEntry, Outcomes, Parts};
pub use moves::{Move, ToolCall};
pub use native::Native;
pub use options::ProtocolOptions;
pub use prompt::TemplateError;
pub use react::React;
pub use script::Script;
pub use snapshot::ReplySnapshot;
pub use text_spans::{ShownTexts, TextSpans};
pub use ticket::Ticket;

use crate::reply::Span;
use crate::tool::{AnswerType, Budget, Layout, ToolSet, ToolSpec};
use example::{ExampleCall, Step};
use std::borrow::Cow;
use std::sync::Arc;

/// All protocols. A new one is a line here and its `mod` above.
static PROTOCOLS: [ProtocolKind; 4] = [
    ProtocolKind::of::<Ticket>(),
    ProtocolKind::of::<Chatty>(),
    ProtocolKind::of::<React>(),
    ProtocolKind::of::<Native>(),
];

/// Protocols of runs that the runtime begins itself. Programs can't choose them.
static INTERNAL: [ProtocolKind; 1] = [ProtocolKind::of::<Script>()];

/// One way of writing moves and of reporting outcomes. The run and the border to Python ask for capabilities, never for
/// the name of a protocol.
pub trait Protocol: Send + Sync + std::fmt::Debug {
    /// The name, as `NamedProtocol` has it.
    fn name(&self) -> &'static str;

    /// The options that all protocols have.
    fn options(&self) -> &ProtocolOptions;

    /// The same protocol with other options of those that all protocols have.
    fn with_options(&self, options: ProtocolOptions) -> Arc<dyn Protocol>;

    /// The type of the answer; `None` for any answer.
    fn returns(&self) -> Option<&AnswerType> {
        self.options().returns.as_ref()
    }

    /// The same protocol for runs whose answer has this type; `None` for any answer.
    fn returning(&self, returns: Option<AnswerType>) -> Arc<dyn Protocol> {
        self.with_options(ProtocolOptions { returns, ..self.options().clone() })
    }

    /// Why the answer can't have a type with these options; `None` if it can.
    fn refuses_typed_answers(&self) -> Option<&'static str> {
        None
    }

    /// The name of the answer in its moves.
    fn answer_name(&self) -> &'static str;

    /// How tools are shown in its prompt, and how much of it they may take.
    fn interface(&self, tools: &ToolSet) -> (Layout, Budget);

    /// The system prompt with the tools and the program's own instructions rendered in; these may be empty. `delegates`
    /// is whether tasks may be given to other runs.
    ///
    /// # Errors
    /// The user's template lacks a placeholder or has an unknown one.
    fn system_prompt(&self, tools: &ToolSet, delegates: bool, instructions: &str) -> Result<String, TemplateError>;

    /// A text at the end of each task, only with the built-in prompt and its example.
    fn reminder(&self, _tools: &ToolSet) -> Option<&'static str> {
        None
    }

    /// The name of a tool in the calls of examples, or its route as the prompt shows it (ticket).
    fn example_label(&self, tools: &ToolSet, tool: &ToolSpec) -> String {
        tools.label(tool, self.routes())
    }

    /// A run of one call, from its task to its answer.
    fn example(&self, call: &ExampleCall<'_>) -> Vec<Step>;

    /// A run of one reply with two calls; `None` if a reply can have only one.
    fn pair_example(&self, _calls: &[ExampleCall<'_>; 2]) -> Option<Vec<Step>> {
        None
    }

    /// Whether a plain text is an answer, which then can't end with a call (chatty).
    fn answers_in_text(&self) -> bool {
        false
    }

    /// A decoder of one reply.
    fn decoder(&self, options: ReadOptions) -> Box<dyn Decoder>;

    /// How replies are read, except for the limits of a run.
    fn read_options(&self) -> ReadOptions {
        self.options().read
    }

    /// The next message to the model.
    fn message(&self, entries: &[MessageEntry], outcomes: Outcomes<'_>) -> String;

    /// Whether a move loads results, which then stand in messages as JSON (ticket).
    fn loads_results(&self) -> bool {
        false
    }

    /// The beginning of feedback.
    fn feedback_opening(&self) -> &'static str {
        ""
    }

    /// The smallest correct form of an answer, for feedback and for the last turn.
    fn answer_form(&self) -> Cow<'static, str>;

    /// How to answer: a model that called an unknown tool may have meant to.
    fn answer_hint(&self) -> Option<&'static str> {
        None
    }

    /// The smallest correct form of a call.
    fn call_form(&self) -> String;

    /// The move that the model meant by a refused reply, or the form of it; `None` if that is not certain.
    fn correction(&self, violation: &Violation, raw: &str) -> Option<Correction>;

    /// The tools for delegation, in protocols without a move for it. `roles` are the names of the prepared roles.
    fn delegation(&self, _roles: &[String]) -> Vec<ToolSpec> {
        Vec::new()
    }

    /// Whether a move gives a task to another run (ticket).
    fn delegates(&self) -> bool {
        false
    }

    /// Whether its tools for delegation start agents of roles (chatty).
    fn spawns_roles(&self) -> bool {
        false
    }

    /// The word that ends a run in the place of a tool name, so no tool can have it (react).
    fn reserved_tool_name(&self) -> Option<&'static str> {
        None
    }

    /// Whether a reply may say something to the user beside its calls (chatty).
    fn narrates(&self) -> bool {
        false
    }

    /// The text of a span of a reply as people should see it: a JSON string is decoded.
    fn shown<'a>(&self, reply: &'a str, span: Span) -> Cow<'a, str> {
        Cow::Borrowed(span.of(reply))
    }

    /// Whether reasoning in its tags is the thoughts of a reply, which counts as no repair in a run (chatty).
    fn reasons_in_tags(&self) -> bool {
        false
    }

    /// Whether replies have native tool calls, each with a result in the next message (native).
    fn pairs_results(&self) -> bool {
        false
    }

    /// The position of the call that contains a span (native).
    fn call_at(&self, _reply: &str, _span: Span) -> Option<usize> {
        None
    }

    /// The tool for typed answers (native).
    fn answer_tool(&self) -> Option<&'static str> {
        None
    }

    /// Whether a reply may have several calls.
    fn has_parallel_calls(&self) -> bool {
        true
    }

    /// The separator of two texts in a reply.
    fn between_texts(&self) -> &'static str {
        ""
    }

    /// The readable text and the items of a message; `None` for plain text (native).
    fn readable(&self, _message: &Message) -> Option<Readable> {
        None
    }

    /// A readable form of a reply, and the positions of `offsets` in it.
    fn shown_with_places(&self, reply: &str, offsets: &[usize]) -> (String, Vec<usize>) {
        (reply.to_owned(), offsets.to_vec())
    }

    /// The tools that a text calls in the published form of a model family, where such a text is an answer (native).
    fn published_calls(&self, _text: &str) -> Vec<String> {
        Vec::new()
    }

    /// The parts of a reply that only the model's service reads, in order (native). Events leave them out.
    fn private_parts(&self, _reply: &str) -> Vec<Span> {
        Vec::new()
    }

    /// The line around a span, for feedback.
    fn excerpt(&self, reply: &str, span: Span) -> String {
        crate::reply::span::excerpt(reply, span)
    }

    /// Whether an interpreter writes the replies. It continues when any of its calls has an outcome, it sees no messages,
    /// and one invalid call does not stop the others (script).
    fn runs_code(&self) -> bool {
        false
    }

    /// Whether each message to the model lists tickets (ticket).
    fn lists_tickets(&self) -> bool {
        false
    }

    /// Whether a call runs in the background while the model continues (ticket).
    fn background(&self) -> bool {
        false
    }

    /// Whether calls are named by routes of an `OpenAPI` document (ticket).
    fn routes(&self) -> bool {
        false
    }

    /// Whether arguments may refer to the results of other calls by `$call_id` (chatty).
    fn references(&self) -> bool {
        false
    }

    /// Whether an awaited ticket's result comes without a `LOAD_TICKET` (ticket).
    fn await_loads(&self) -> bool {
        false
    }

    /// Whether a result of this size that is available at once is shown without a `LOAD_TICKET` (ticket).
    fn inlines(&self, _bytes: usize) -> bool {
        false
    }

    /// Whether messages name the move that shows an unseen result, and equal calls are not made again (ticket).
    fn guides_to_results(&self) -> bool {
        false
    }

    /// The places of examples of replies with a move in a prompt.
    fn examples(&self, prompt: &str) -> Vec<Span>;

    /// Its own options as a JSON object, as a log has them in front of those that all protocols have.
    ///
    /// # Errors
    /// One of them can't be written as JSON.
    fn own_options(&self) -> serde_json::Result<serde_json::Value>;

    /// The replies that are valid in `scope`, as grammars that constrain a model's decoding.
    fn grammar(&self, scope: &grammar::Scope<'_>) -> grammar::Grammar;
}

/// A message in its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readable {
    /// The text that says the same to a reader.
    pub content: String,
    /// The items, a JSON object each.
    pub items: Vec<serde_json::Value>,
}

/// A placeholder for the protocol of a run that has not begun.
pub fn placeholder() -> Arc<dyn Protocol> {
    Arc::new(React::default())
}

impl dyn Protocol + '_ {
    /// The messages of an example, between the system prompt and the task.
    pub fn example_messages(&self, tools: &ToolSet) -> Arc<[Message]> {
        self.options().examples.messages(self, tools)
    }
}
