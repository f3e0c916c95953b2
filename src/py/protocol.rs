//! Protocols, and the reading of single replies.

use super::error::{self, CoreResult};
use super::part::PyPart;
use super::reader::PyReader;
use super::reply::PyReply;
use super::toolset::PyToolSet;
use crate::protocol::decoder::{beside_tools, read_whole};
use crate::protocol::grammar::{Bounds, Grammar, Scope};
use crate::protocol::{
    Examples, FinishReason, Message, Protocol, ProtocolKind, ProtocolOptions, ReadOptions, Role, lint, stored_protocol,
};
use crate::reply::{LineColumn, RepairPolicy};
use crate::tool::{AnswerType, Budget};
use pyo3::prelude::*;
use std::sync::Arc;

/// Input from this size on is read without holding the interpreter; for less, detaching costs more.
pub(super) const DETACH_BYTES: usize = 16 << 10;

/// One protocol with its options.
#[pyclass(name = "Protocol", module = "callslip._core", frozen)]
pub(super) struct PyProtocol {
    pub(super) protocol: Arc<dyn Protocol>,
}

/// The options that all protocols have.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct PyProtocolOptions {
    template: Option<String>,
    examples: ExamplesArgument,
    tool_tokens: usize,
    repairs: String,
    think_prefilled: bool,
    reasoning_tags: Vec<(String, String)>,
}

impl TryFrom<PyProtocolOptions> for ProtocolOptions {
    type Error = error::CoreError;

    fn try_from(given: PyProtocolOptions) -> CoreResult<Self> {
        let PyProtocolOptions { template, examples, tool_tokens, repairs, think_prefilled, reasoning_tags } = given;
        let repairs = match &*repairs {
            "default" => RepairPolicy::Default,
            "strict" => RepairPolicy::Strict,
            "lenient" => RepairPolicy::Lenient,
            other => return Err(error::value(format!("expected 'default', 'strict' or 'lenient': got '{other}'"))),
        };
        Ok(Self {
            examples: self::examples(examples)?,
            template,
            budget: Budget(tool_tokens),
            reasoning_tags,
            returns: None,
            read: ReadOptions { repairs, think_prefilled, ..ReadOptions::default() },
        })
    }
}

/// The entry of a protocol in the list.
fn kind(name: &str) -> CoreResult<&'static ProtocolKind> {
    ProtocolKind::find(name).ok_or_else(|| error::value(format!("expected {}: got '{name}'", ProtocolKind::names())))
}

/// The argument `examples` of a protocol.
#[derive(FromPyObject)]
pub(super) enum ExamplesArgument {
    /// Whether an example is made from the tools of the run.
    OwnTools(bool),
    /// Role and content of each message.
    Messages(Vec<(String, String)>),
}

fn examples(given: ExamplesArgument) -> CoreResult<Examples> {
    let messages = match given {
        ExamplesArgument::OwnTools(true) => return Ok(Examples::OwnTools),
        ExamplesArgument::OwnTools(false) => Vec::new(),
        ExamplesArgument::Messages(messages) => messages,
    };
    Ok(Examples::Messages(self::messages(messages)?.into()))
}

/// Messages from role and content of each.
pub(super) fn messages(messages: Vec<(String, String)>) -> CoreResult<Vec<Message>> {
    messages.into_iter().map(|(role, content)| message(&role, content)).collect()
}

/// The messages of an earlier conversation, with marks for their parts.
pub(super) fn earlier_messages(messages: Vec<(String, String, Vec<PyPart>)>) -> CoreResult<Vec<Message>> {
    let message = |(role, content, parts): (String, String, Vec<PyPart>)| {
        let message = message(&role, content)?;
        Ok(Message { parts: parts.iter().map(|part| part.part().clone()).collect(), ..message })
    };
    messages.into_iter().map(message).collect()
}

/// A message from its role and its content.
pub(super) fn message(role: &str, content: String) -> CoreResult<Message> {
    match role {
        "user" => Ok(Message::new(Role::User, content)),
        "assistant" => Ok(Message::new(Role::Assistant, content)),
        other => Err(error::value(format!("expected the role 'user' or 'assistant': got '{other}'"))),
    }
}

/// The finish reason of a client: `stop`, `length` or `unknown`.
pub(super) fn finish_reason(text: Option<&str>) -> CoreResult<FinishReason> {
    match text {
        None | Some("stop") => Ok(FinishReason::Stop),
        Some("length") => Ok(FinishReason::Length),
        Some("unknown") => Ok(FinishReason::Unknown),
        Some(other) => Err(error::value(format!("expected the finish reason 'stop' or 'length': got '{other}'"))),
    }
}

#[pymethods]
impl PyProtocol {
    /// The protocol of this name. `options` has the options that all protocols have, `own` is JSON text with the others.
    /// Raises `ValueError` if an option is not valid.
    #[new]
    fn new(name: &str, options: PyProtocolOptions, own: &str) -> CoreResult<Self> {
        let made = kind(name)?.make(serde_json::from_str(own)?, options.try_into()?);
        Ok(Self { protocol: made.map_err(|cause| error::value(cause.to_string()))? })
    }

    /// The protocol of a log: JSON text with its name and its options.
    #[staticmethod]
    fn stored(text: &str) -> CoreResult<Self> {
        Ok(Self { protocol: stored_protocol::deserialize(&mut serde_json::Deserializer::from_str(text))? })
    }

    /// The names of all protocols.
    #[staticmethod]
    fn names() -> Vec<&'static str> {
        ProtocolKind::all().map(|kind| kind.name).collect()
    }

    /// The same protocol for runs whose answer has this JSON Schema; `None` for any answer. Raises `ValueError` if the
    /// schema can't be used.
    fn returning(&self, schema: Option<&str>) -> CoreResult<Self> {
        let returns = schema.map(serde_json::from_str).transpose()?.map(AnswerType::new);
        if let Some(returns) = &returns {
            returns.compile(self.protocol.answer_name()).map_err(error::value)?;
            if let Some(reason) = self.protocol.refuses_typed_answers() {
                return Err(error::value(reason));
            }
        }
        Ok(Self { protocol: self.protocol.returning(returns) })
    }

    /// The name of the answer in moves: `final_answer`, `value` or `answer`.
    #[getter]
    fn answer_name(&self) -> &'static str {
        self.protocol.answer_name()
    }

    /// The name, one of `names`.
    #[getter]
    fn name(&self) -> &'static str {
        self.protocol.name()
    }

    /// Whether a move gives a task to another run.
    #[getter]
    fn delegates(&self) -> bool {
        self.protocol.delegates()
    }

    /// Whether its tools for delegation start agents of roles.
    #[getter]
    fn spawns_roles(&self) -> bool {
        self.protocol.spawns_roles()
    }

    /// Whether calls are named by routes of an `OpenAPI` document.
    #[getter]
    fn routes(&self) -> bool {
        self.protocol.routes()
    }

    /// Whether plain text is an answer.
    #[getter]
    fn answers_in_text(&self) -> bool {
        self.protocol.answers_in_text()
    }

    /// Whether a reply may say something to the user beside its calls.
    #[getter]
    fn narrates(&self) -> bool {
        self.protocol.narrates()
    }

    /// Whether each message to the model lists tickets.
    #[getter]
    fn lists_tickets(&self) -> bool {
        self.protocol.lists_tickets()
    }

    /// Whether replies have native tool calls.
    #[getter]
    fn takes_calls(&self) -> bool {
        self.protocol.pairs_results()
    }

    /// Whether an interpreter writes the replies.
    #[getter]
    fn runs_code(&self) -> bool {
        self.protocol.runs_code()
    }

    /// The word that no tool can have as its name; `None` if there is none.
    #[getter]
    fn reserved_tool_name(&self) -> Option<&'static str> {
        self.protocol.reserved_tool_name()
    }

    /// The tools by which a run gives tasks to other runs, as JSON texts. `roles` are the prepared ones.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn delegation(&self, roles: Vec<String>) -> CoreResult<Vec<String>> {
        let written: Result<_, serde_json::Error> =
            self.protocol.delegation(&roles).iter().map(serde_json::to_string).collect();
        Ok(written?)
    }

    /// The tools that runs are offered: with look-up tools, if the prompt has no room for all.
    fn offered(&self, py: Python<'_>, tools: &PyToolSet) -> CoreResult<PyToolSet> {
        let (layout, budget) = self.protocol.interface(&tools.tools);
        let more = py.detach(|| tools.tools.with_look_up(layout, budget));
        let more = more?;
        Ok(PyToolSet { tools: more.map_or_else(|| Arc::clone(&tools.tools), Arc::new) })
    }

    /// The system prompt with the tools and the instructions rendered in, and with `DELEGATE` where tasks may be given to
    /// other runs (ticket). Raises `TemplateError`.
    fn system_prompt(&self, tools: &PyToolSet, delegates: bool, instructions: &str) -> CoreResult<String> {
        Ok(self.protocol.system_prompt(&tools.tools, delegates, instructions)?)
    }

    /// The template of the built-in prompt of the protocol of this name.
    #[staticmethod]
    fn built_in_template(name: &str) -> CoreResult<&'static str> {
        Ok(kind(name)?.template)
    }

    /// Role and content of each message of the example that these tools are shown with.
    fn example_messages(&self, tools: &PyToolSet) -> Vec<(&'static str, String)> {
        let messages = self.protocol.example_messages(&tools.tools);
        messages.iter().map(|message| (message.role.as_str(), message.content.to_string())).collect()
    }

    /// The readable text of a message.
    fn readable(&self, role: &str, content: &str) -> CoreResult<String> {
        let message = message(role, content.to_owned())?;
        Ok(self.protocol.readable(&message).map_or_else(|| content.to_owned(), |readable| readable.content))
    }

    /// A readable form of a reply, and the positions of `offsets` in it.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn shown_reply(name: &str, text: &str, offsets: Vec<usize>) -> CoreResult<(String, Vec<usize>)> {
        let protocol = kind(name)?.make(serde_json::Value::Object(serde_json::Map::new()), ProtocolOptions::default());
        // Protocols that need options of their own have replies of plain text.
        Ok(protocol
            .map_or_else(|_| (text.to_owned(), offsets.clone()), |protocol| protocol.shown_with_places(text, &offsets)))
    }

    /// Reads one whole reply.
    #[pyo3(signature = (text, finish_reason = None, limits = None, tools = None))]
    fn parse(
        &self,
        py: Python<'_>,
        text: &str,
        finish_reason: Option<&str>,
        limits: Option<&str>,
        tools: Option<&PyToolSet>,
    ) -> CoreResult<PyReply> {
        let reason = self::finish_reason(finish_reason)?;
        let options = self.options(limits)?;
        let tools = tools.map(|tools| &*tools.tools);
        let read = || {
            let reply = read_whole(&*self.protocol, options, text, reason);
            match tools {
                Some(tools) => beside_tools(&*self.protocol, tools, reply),
                None => reply,
            }
        };
        let reply = if text.len() > DETACH_BYTES { py.detach(read) } else { read() };
        Ok(PyReply::new(py, reply)?)
    }

    /// A reader of one reply that arrives in chunks.
    #[pyo3(signature = (limits = None, tools = None))]
    fn reader(&self, py: Python<'_>, limits: Option<&str>, tools: Option<&PyToolSet>) -> CoreResult<PyReader> {
        let tools = tools.map(|tools| Arc::clone(&tools.tools));
        Ok(PyReader::new(py, Arc::clone(&self.protocol), self.options(limits)?, tools))
    }

    /// Every example of a reply in a prompt.
    fn examples(&self, py: Python<'_>, prompt: &str) -> CoreResult<Vec<PyPromptExample>> {
        let read = |example: lint::Example| {
            let line = LineColumn::of(prompt, example.span.start).line;
            let reply = Py::new(py, PyReply::new(py, example.reply)?)?;
            Ok(PyPromptExample { line, text: example.span.of(prompt).to_owned(), reply })
        };
        lint::examples(&*self.protocol, prompt).into_iter().map(read).collect()
    }

    /// The replies that are valid now, as grammars.
    #[pyo3(signature = (tools, *, calls, delegates, finish, in_progress, completed, agents, thoughts, bounds))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only, and each is one option of the Python face")]
    fn grammar(
        &self,
        tools: &PyToolSet,
        calls: bool,
        delegates: bool,
        finish: bool,
        in_progress: Vec<String>,
        completed: Vec<String>,
        agents: Vec<String>,
        thoughts: Option<u32>,
        bounds: Option<PyBounds>,
    ) -> PyGrammar {
        let bounds = bounds.map(Into::into);
        let tools = &tools.tools;
        let longest = None;
        let scope =
            Scope { tools, calls, delegates, finish, in_progress, completed, longest, agents, thoughts, bounds };
        PyGrammar { grammar: Arc::new(self.protocol.grammar(&scope)) }
    }
}

impl PyProtocol {
    /// How replies are read, within the limits that are given as JSON text.
    fn options(&self, limits: Option<&str>) -> CoreResult<ReadOptions> {
        let options = self.protocol.read_options();
        match limits.map(serde_json::from_str) {
            None => Ok(options),
            Some(Ok(limits)) => Ok(ReadOptions { limits, ..options }),
            Some(Err(cause)) => Err(cause.into()),
        }
    }
}

/// An example of a reply in a prompt.
#[pyclass(name = "PromptExample", module = "callslip._core", frozen, get_all)]
pub(super) struct PyPromptExample {
    line: usize,
    text: String,
    reply: Py<PyReply>,
}

/// The bounds of a model: any object with these attributes.
#[derive(FromPyObject)]
pub(super) struct PyBounds {
    answer: u32,
    string: u32,
    items: u32,
    thoughts: u32,
}

impl From<PyBounds> for Bounds {
    fn from(bounds: PyBounds) -> Self {
        let PyBounds { answer, string, items, thoughts } = bounds;
        Self { answer, string, items, thoughts }
    }
}

/// One language in the forms that inference engines take.
#[pyclass(name = "Grammar", module = "callslip._core", frozen)]
pub(super) struct PyGrammar {
    pub(super) grammar: Arc<Grammar>,
}

#[pymethods]
impl PyGrammar {
    /// llama.cpp's form.
    #[getter]
    fn gbnf(&self) -> &str {
        &self.grammar.gbnf
    }

    /// llguidance's form.
    #[getter]
    fn lark(&self) -> &str {
        &self.grammar.lark
    }

    /// JSON Schema as JSON text, if the reply is one JSON value (react).
    #[getter]
    fn json_schema(&self) -> Option<&str> {
        self.grammar.json_schema.as_deref()
    }

    /// llama.cpp's form of the rest of a block behind a whole call: at least one more call, and its end. `None` if no call may
    /// follow.
    fn further(&self, written: &str) -> Option<String> {
        self.grammar.further.as_ref()?.gbnf_behind(written, &self.grammar.gbnf)
    }

    /// The place of the first tool's name in a reply, in UTF-8 bytes. `None` without a block, or if the name is not complete.
    fn first_name(&self, written: &str) -> Option<(usize, usize)> {
        self.grammar.further.as_ref()?.first_name(written)
    }

    /// Whether the protocol has blocks of several calls.
    #[getter]
    fn has_blocks(&self) -> bool {
        self.grammar.further.is_some()
    }

    /// The names of tools whose schema could not be turned into rules.
    #[getter]
    fn unruled(&self) -> Vec<String> {
        self.grammar.unruled.clone()
    }
}
