//! Protocols, and the reading of replies on its own.

use super::error::{self, CoreResult};
use super::part::PyPart;
use super::reader::PyReader;
use super::reply::PyReply;
use super::toolset::PyToolSet;
use crate::protocol::chatty::read::ToolTags;
use crate::protocol::decoder::{beside_tools, read_whole};
use crate::protocol::grammar::{Bounds, Grammar, Scope};
use crate::protocol::stored_protocol::StoredProtocol;

use crate::protocol::{Chatty, Examples, FinishReason, Message, Protocol, React, ReadOptions, Role, Ticket};
use crate::protocol::{chatty, lint, react, ticket};
use crate::reply::{LineColumn, RepairPolicy};
use crate::tool::{AnswerType, Budget};
use pyo3::prelude::*;
use std::sync::Arc;

/// Input from here on is read without holding the interpreter: detaching costs more for less.
pub(super) const DETACH_BYTES: usize = 16 << 10;

/// One protocol with its options.
#[pyclass(name = "Protocol", module = "callslip._core", frozen)]
pub(super) struct PyProtocol {
    pub(super) protocol: Arc<dyn Protocol>,
}

fn read_options(repairs: &str, think_prefilled: bool) -> CoreResult<ReadOptions> {
    let repairs = match repairs {
        "default" => RepairPolicy::Default,
        "strict" => RepairPolicy::Strict,
        "lenient" => RepairPolicy::Lenient,
        other => return Err(error::value(format!("expected 'default', 'strict' or 'lenient': got '{other}'"))),
    };
    Ok(ReadOptions { repairs, think_prefilled, ..ReadOptions::default() })
}

/// The argument `examples` of a protocol.
#[derive(FromPyObject)]
pub(super) enum ExamplesArgument {
    /// One made from the tools of the run, or none.
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

/// How a client says that a reply ended: `stop` or `length`.
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
    /// The react protocol.
    #[staticmethod]
    #[pyo3(signature = (*, template, examples, tool_tokens, repairs, think_prefilled, reasoning_tags))]
    fn react(
        template: Option<String>,
        examples: ExamplesArgument,
        tool_tokens: usize,
        repairs: &str,
        think_prefilled: bool,
        reasoning_tags: Vec<(String, String)>,
    ) -> CoreResult<Self> {
        let read = read_options(repairs, think_prefilled)?;
        Ok(Self {
            protocol: Arc::new(React {
                examples: self::examples(examples)?,
                template,
                budget: Budget(tool_tokens),
                reasoning_tags,
                returns: None,
                read,
            }),
        })
    }

    /// The chatty protocol.
    #[staticmethod]
    #[pyo3(signature = (*, tool_tag, template, examples, tool_tokens, repairs, think_prefilled, reasoning_tags))]
    fn chatty(
        tool_tag: (String, String),
        template: Option<String>,
        examples: ExamplesArgument,
        tool_tokens: usize,
        repairs: &str,
        think_prefilled: bool,
        reasoning_tags: Vec<(String, String)>,
    ) -> CoreResult<Self> {
        let (start, end) = tool_tag;
        if start.trim().is_empty() || end.trim().is_empty() || start == end {
            return Err(error::value(
                "expected two different tags that are not empty, for example '<tool>' and '</tool>'",
            ));
        }
        let read = read_options(repairs, think_prefilled)?;
        let examples = self::examples(examples)?;
        let (tags, budget) = (ToolTags { start, end }, Budget(tool_tokens));
        Ok(Self {
            protocol: Arc::new(Chatty { tags, examples, template, budget, reasoning_tags, read, ..Chatty::default() }),
        })
    }

    /// The ticket protocol.
    #[staticmethod]
    #[pyo3(signature = (*, await_loads, inline_results, template, examples, tool_tokens, repairs, think_prefilled, reasoning_tags))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only, and each is one option of the Python face")]
    fn ticket(
        await_loads: bool,
        inline_results: bool,
        template: Option<String>,
        examples: ExamplesArgument,
        tool_tokens: usize,
        repairs: &str,
        think_prefilled: bool,
        reasoning_tags: Vec<(String, String)>,
    ) -> CoreResult<Self> {
        let read = read_options(repairs, think_prefilled)?;
        let (examples, budget) = (self::examples(examples)?, Budget(tool_tokens));
        let ticket = Ticket {
            await_loads,
            inline_results,
            examples,
            template,
            budget,
            reasoning_tags,
            read,
            ..Ticket::default()
        };
        Ok(Self { protocol: Arc::new(ticket) })
    }

    /// The same protocol for runs whose answer has this JSON Schema; `None` for any answer. Raises `ValueError` if the
    /// schema can't be used.
    fn returning(&self, schema: Option<&str>) -> CoreResult<Self> {
        let returns = schema.map(serde_json::from_str).transpose()?.map(AnswerType::new);
        if let Some(returns) = &returns {
            returns.compile(self.protocol.answer_name()).map_err(error::value)?;
            let stored = self.protocol.stored();
            if matches!(&stored, StoredProtocol::Chatty(chatty) if chatty.tags.start.eq_ignore_ascii_case("<answer>")) {
                return Err(error::value("expected a tool_tag other than 'answer', which is the tag of typed answers"));
            }
        }
        Ok(Self { protocol: self.protocol.returning(returns) })
    }

    /// The name of the answer in moves: `final_answer`, `value` or `answer`.
    #[getter]
    fn answer_name(&self) -> &'static str {
        self.protocol.answer_name()
    }

    /// `ticket`, `chatty` or `react`.
    #[getter]
    fn name(&self) -> &'static str {
        self.protocol.name()
    }

    /// The tools as runs are offered them: with those that look up the others, where its prompt has no room for all.
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

    /// The template of the built-in prompt of `ticket`, `chatty` or `react`.
    #[staticmethod]
    fn built_in_template(name: &str) -> CoreResult<&'static str> {
        match name {
            "ticket" => Ok(ticket::TEMPLATE),
            "chatty" => Ok(chatty::TEMPLATE),
            "react" => Ok(react::TEMPLATE),
            other => Err(error::value(format!("expected 'ticket', 'chatty' or 'react': got '{other}'"))),
        }
    }

    /// Role and content of each message of the example that these tools are shown with.
    fn example_messages(&self, tools: &PyToolSet) -> Vec<(&'static str, String)> {
        let messages = self.protocol.example_messages(&tools.tools);
        messages.iter().map(|message| (message.role.as_str(), message.content.to_string())).collect()
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

    /// What may be said now, as grammars.
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
        let scope = Scope { tools, calls, delegates, finish, in_progress, completed, agents, thoughts, bounds };
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

    /// JSON Schema as JSON text, where the reply is one JSON value (react).
    #[getter]
    fn json_schema(&self) -> Option<&str> {
        self.grammar.json_schema.as_deref()
    }

    /// Tools whose schema could not be turned into rules.
    #[getter]
    fn unruled(&self) -> Vec<String> {
        self.grammar.unruled.clone()
    }
}
