//! The chatty protocol: a direct answer, or one tool block with calls that run side by side.

pub mod grammar;
pub mod read;
pub(super) mod typed;

use super::example::{ExampleCall, Examples, Step};
use super::grammar::{Grammar, Scope};
use super::message_entry::{MessageEntry, Outcomes, REPETITION, ends_line, quote, repetition};
use super::prompt::{self, Placeholder, Style, render};
use super::{Code, Correction, Violation, published};
use super::{Decoder, NamedProtocol, Protocol, ProtocolOptions, ReadOptions, TemplateError, answer, lint};
use crate::reply::Span;
use crate::reply::tag::Tag;
use crate::ticket::{Outcome, Ticket, TicketId};
use crate::tool::{AnswerType, Budget, Layout, ToolKind, ToolSet, ToolSpec, agent_tools};
use read::ToolTags;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

/// The built-in prompt.
pub const TEMPLATE: &str = include_str!("prompts/chatty.txt");
/// Its section about agents, if agents can be started.
const AGENTS: &str = include_str!("prompts/chatty_agents.txt");
/// Its section about scripts, if scripts can be run.
const SCRIPTS: &str = include_str!("prompts/chatty_scripts.txt");

/// The passages of the built-in prompt that say that an answer is plain text, and before which its type is described.
const PLAIN_ANSWER: &str = "; then answer in plain text.";
const BEFORE_TOOLS: &str = "\nTools:\n";

/// Small models answer questions from what they believe they know, unless the question itself says otherwise.
const REMINDER: &str = "Call a tool first if one of them can give the answer.";

/// How results are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Results {
    /// As a JSON array of objects: runs of the first logs continue as they began.
    #[default]
    Json,
    /// A line for each call, which can't be taken for a call.
    Lines,
}

impl Results {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
    fn is_json(&self) -> bool {
        *self == Self::Json
    }
}

/// The chatty protocol with its options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chatty {
    /// The tags around a tool block.
    pub tags: ToolTags,
    /// How results are reported.
    #[serde(default, skip_serializing_if = "Results::is_json")]
    pub results: Results,
    /// The options that all protocols have.
    #[serde(skip)]
    pub options: ProtocolOptions,
}

impl Default for Chatty {
    fn default() -> Self {
        let tags = ToolTags { start: "<tool>".to_owned(), end: "</tool>".to_owned() };
        Self { tags, results: Results::Lines, options: ProtocolOptions::default() }
    }
}

impl NamedProtocol for Chatty {
    const NAME: &'static str = "chatty";
    const TEMPLATE: &'static str = TEMPLATE;

    fn with_own_options(own: Json) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Own {
            tool_tag: (String, String),
        }
        let Own { tool_tag: (start, end) } = Own::deserialize(own)?;
        if start.trim().is_empty() || end.trim().is_empty() || start == end {
            return Err(serde_json::Error::custom(
                "expected two different tags that are not empty, for example '<tool>' and '</tool>'",
            ));
        }
        Ok(Self { tags: ToolTags { start, end }, ..Self::default() })
    }
}

impl Protocol for Chatty {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn options(&self) -> &ProtocolOptions {
        &self.options
    }

    fn with_options(&self, options: ProtocolOptions) -> Arc<dyn Protocol> {
        Arc::new(Self { options, ..self.clone() })
    }

    fn refuses_typed_answers(&self) -> Option<&'static str> {
        let same = self.tags.start.eq_ignore_ascii_case(typed::START);
        same.then_some("expected a tool_tag other than 'answer', which is the tag of typed answers")
    }

    fn answer_name(&self) -> &'static str {
        typed::ANSWER
    }

    fn interface(&self, _tools: &ToolSet) -> (Layout, Budget) {
        (self.layout(), self.options.budget)
    }

    fn system_prompt(&self, tools: &ToolSet, _delegates: bool, instructions: &str) -> Result<String, TemplateError> {
        let template = self.options.template.as_deref().unwrap_or(TEMPLATE);
        if let Some((written, at)) = lint::other_tag(template, (&self.tags.start, &self.tags.end)) {
            return Err(TemplateError::OtherTag {
                written: written.to_owned(),
                line: prompt::line_of(template, at),
                own: format!("{} and {}", self.tags.start, self.tags.end),
            });
        }
        let tagged = |section: &str| {
            section.replace("{TOOL_TAG_START}", &self.tags.start).replace("{TOOL_TAG_END}", &self.tags.end)
        };
        let of_kind = |kind| tools.plain().find(|tool| tool.kind == kind);
        let scripts = of_kind(ToolKind::Script).map(|tool| tagged(SCRIPTS).replace("{NAME}", &tool.name));
        let agents = of_kind(ToolKind::Spawn).map(|_| tagged(AGENTS));
        let (scripts, agents) = (scripts.unwrap_or_default(), agents.unwrap_or_default());
        let interface = tools.interface(self.layout(), self.options.budget);
        let placeholders = [
            Placeholder {
                name: "TOOL_TAG_START",
                value: &self.tags.start,
                required: !template.contains(&self.tags.start),
            },
            Placeholder { name: "TOOL_TAG_END", value: &self.tags.end, required: !template.contains(&self.tags.end) },
            Placeholder { name: "AVAILABLE_TOOLS_INTERFACE", value: &interface, required: true },
            // A template that was made from the built-in one may have these.
            Placeholder { name: "SCRIPTS", value: &scripts, required: false },
            Placeholder { name: "AGENTS", value: &agents, required: false },
        ];
        Ok(self.with_answer(render(template, Style::Capitals, &placeholders, instructions)?))
    }

    fn reminder(&self, tools: &ToolSet) -> Option<&'static str> {
        // Its own example has it too; messages of the user's have it where they want it.
        let own = !matches!(self.options.examples, Examples::Messages(_));
        (own && self.options.template.is_none() && tools.sample().is_some()).then_some(REMINDER)
    }

    fn example(&self, call: &ExampleCall<'_>) -> Vec<Step> {
        self.example_of(std::slice::from_ref(call))
    }

    fn pair_example(&self, calls: &[ExampleCall<'_>; 2]) -> Option<Vec<Step>> {
        Some(self.example_of(calls))
    }

    fn answers_in_text(&self) -> bool {
        self.options.typed().is_none()
    }

    fn decoder(&self, options: ReadOptions) -> Box<dyn Decoder> {
        published::beside(self.host(), options, &self.options.reasoning_tags, self.own())
    }

    fn message(&self, entries: &[MessageEntry], outcomes: Outcomes<'_>) -> String {
        let mut parts = Vec::new();
        let mut results = Vec::new();
        for entry in entries {
            match entry {
                MessageEntry::Task(text)
                | MessageEntry::Reminder(text)
                | MessageEntry::Note(text)
                | MessageEntry::Violation(text)
                | MessageEntry::Refused { feedback: text, .. }
                | MessageEntry::LastTurn(text) => parts.push(text.clone()),
                MessageEntry::Result { ticket, times } => results.extend(self.result(*ticket, *times, outcomes)),
                MessageEntry::Spawned(ticket) => results.extend(self.spawned(*ticket, outcomes)),
                // Chatty has no such moves: results come with the block that asked for them.
                MessageEntry::Loaded(_)
                | MessageEntry::LoadedPart { .. }
                | MessageEntry::Dropped(_)
                | MessageEntry::Completed(_) => {}
            }
        }
        if !results.is_empty() {
            let results = match self.results {
                Results::Json => format!("[{}]", results.join(",\n ")),
                Results::Lines => results.join("\n"),
            };
            parts.insert(0, format!("TOOL_EXECUTION_RESULT\n{results}"));
        }
        parts.join("\n\n")
    }

    fn answer_form(&self) -> Cow<'static, str> {
        match self.options.typed() {
            None => "the answer itself as plain text, without tags".into(),
            Some(returns) => typed::form(returns).into(),
        }
    }

    fn call_form(&self) -> String {
        format!(
            r#"{}[{{"call_id": "call_1", "tool_name": "tool_name", "arguments": {{"name": "value"}}}}]{}"#,
            self.tags.start, self.tags.end
        )
    }

    fn correction(&self, violation: &Violation, raw: &str) -> Option<Correction> {
        if violation.code == Code::WrongTag {
            let own = self.own();
            if let Some(calls) =
                published::calls(self.host(), self.options.read, &self.options.reasoning_tags, raw, own)
            {
                let calls = (1_usize..).zip(&calls).map(|(number, call)| {
                    read::written_call(&format!("call_{number}"), &call.tool, call.arguments.clone())
                });
                let calls: Vec<String> = calls.collect();
                return Some(Correction::certain(format!(
                    "{}[{}]{}",
                    self.tags.start,
                    calls.join(", "),
                    self.tags.end
                )));
            }
        }
        if let Some(returns) = self.options.typed().filter(|_| raw.contains(typed::START)) {
            // An answer, whatever its keys are called.
            return Some(Correction::form(typed::form(returns)));
        }
        let call = read::corrected(violation, raw)?;
        Some(Correction::certain(format!("{}[{call}]{}", self.tags.start, self.tags.end)))
    }

    fn delegation(&self, roles: &[String]) -> Vec<ToolSpec> {
        agent_tools::background(roles)
    }

    fn spawns_roles(&self) -> bool {
        true
    }

    fn narrates(&self) -> bool {
        true
    }

    fn reasons_in_tags(&self) -> bool {
        true
    }

    fn references(&self) -> bool {
        true
    }

    fn examples(&self, prompt: &str) -> Vec<Span> {
        lint::sections(prompt, &Tag::new(&*self.tags.start), &Tag::new(&*self.tags.end))
    }

    fn own_options(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn grammar(&self, scope: &Scope<'_>) -> Grammar {
        grammar::chatty(scope, &self.tags, self.options.typed())
    }
}

impl Chatty {
    /// Makes decoders of its own form.
    fn own(&self) -> impl Fn(ReadOptions) -> Box<dyn Decoder> + Send + 'static {
        let (tags, reasoning) = (self.tags.clone(), self.options.reasoning_tags.clone());
        let returns = self.options.typed().cloned();
        move |options| {
            let plain = read::decoder(options, &tags, &reasoning);
            match &returns {
                None => plain,
                Some(returns) => typed::decoder(plain, options, &tags, &reasoning, returns),
            }
        }
    }

    /// The tools that a text calls in the published form of a model family.
    pub(super) fn calls_in(&self, text: &str) -> Vec<String> {
        let options = self.options.read;
        let calls = published::calls(self.host(), options, &self.options.reasoning_tags, text, self.own());
        calls.into_iter().flatten().map(|call| call.tool).collect()
    }

    /// A run of these calls in one block.
    fn example_of(&self, calls: &[ExampleCall<'_>]) -> Vec<Step> {
        let mut task = String::new();
        let mut block = Vec::new();
        let mut results = Vec::new();
        let mut answers = Vec::new();
        for (number, call) in (1..).zip(calls) {
            task.push_str(&call.task);
            let (name, arguments) = (quote(call.tool), &call.arguments);
            block.push(format!(r#"{{"call_id": "call_{number}", "tool_name": {name}, "arguments": {arguments}}}"#));
            results.push(MessageEntry::Result { ticket: call.ticket, times: 1 });
            answers.push(call.answer);
        }
        vec![
            Step::UserMessage(vec![MessageEntry::Task(task)]),
            Step::Reply(format!("{}\n[{}]\n{}", self.tags.start, block.join(", "), self.tags.end)),
            Step::UserMessage(results),
            Step::Reply(self.options.typed().map_or_else(|| sentence(&answers), example_block)),
        ]
    }

    /// The prompt with the description of the answer type.
    fn with_answer(&self, prompt: String) -> String {
        let Some(returns) = self.options.typed() else { return prompt };
        let passage = format!(
            "To answer, end the reply with the answer as JSON between {} and {}. {}\nFor example:\n{}",
            typed::START,
            typed::END,
            answer::described(returns, "The answer"),
            example_block(returns)
        );
        if self.options.template.is_some() {
            return answer::appended(&prompt, &passage);
        }
        let passages =
            [(PLAIN_ANSWER, "; then answer.".to_owned()), (BEFORE_TOOLS, format!("\n{passage}\n{BEFORE_TOOLS}"))];
        answer::replaced(prompt, &passages)
    }

    /// How calls in published forms are read.
    fn host(&self) -> published::Host {
        published::Host {
            wanted: format!("a tool block in {}", self.tags.start).into(),
            form: self.call_form().into(),
            several: true,
            described: false,
            answers: self.options.typed().is_none(),
            own_tag: Some(self.tags.start.clone()),
            tags: None,
            takes_text: false,
            says_success: false,
        }
    }

    fn layout(&self) -> Layout {
        if self.options.template.is_none() { Layout::Lines } else { Layout::Json }
    }

    /// The immediate result of a call that starts an agent: the id to wait for.
    fn spawned(&self, id: TicketId, outcomes: Outcomes<'_>) -> Option<String> {
        let ticket = outcomes.tickets.get(id)?;
        let call_id = quote(ticket.call_id.as_deref().unwrap_or_default());
        let result = format!(r#"{{"agent_id": {call_id}, "status": "IN_PROGRESS"}}"#);
        Some(match self.results {
            Results::Json => {
                format!(
                    r#"{{"call_id": {call_id}, "tool_name": {}, "status": "ok", "result": {result}}}"#,
                    quote(&ticket.tool)
                )
            }
            Results::Lines => line(ticket, &result),
        })
    }

    fn result(&self, id: TicketId, times: u32, outcomes: Outcomes<'_>) -> Option<String> {
        let (ticket, outcome) = outcomes.get(id)?;
        Some(match self.results {
            Results::Json => row(ticket, outcome, times, outcomes),
            Results::Lines => {
                let text = outcomes.text(ticket, outcome);
                let text =
                    if outcomes.framed && looks_like_frame(&text) { as_json(&text).into() } else { on_one_line(text) };
                let mut text = match outcome {
                    Outcome::Ok(_) => text.into_owned(),
                    _ => format!("error: {text}"),
                };
                if let Some(note) = repetition(times) {
                    // Writing into a string has no failing case.
                    let _ = write!(text, " (note: {note})");
                }
                line(ticket, &text)
            }
        })
    }
}

/// An answer that was made up, in its block.
fn example_block(returns: &AnswerType) -> String {
    format!("{}{}{}", typed::START, answer::example(returns, typed::ANSWER), typed::END)
}

/// `forecast (call_1): 4 degrees`.
fn line(ticket: &Ticket, text: &str) -> String {
    let call_id = ticket.call_id.as_deref().unwrap_or_default();
    format!("{} ({}): {text}", ticket.tool, on_one_line(call_id.into()))
}

/// Text with line breaks as a JSON string: what a tool returns must not look like another call's result.
fn on_one_line(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains(|mark: char| mark.is_control() || ends_line(mark)) {
        return as_json(&text).into();
    }
    text
}

/// Text as a JSON string without anything that ends a line.
fn as_json(text: &str) -> String {
    quote(text).replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029").replace('\u{85}', "\\u0085")
}

/// Whether text on one line could be taken for text that is written as JSON, or for a note beside a result.
fn looks_like_frame(text: &str) -> bool {
    (text.starts_with('"') && serde_json::from_str::<String>(text).is_ok())
        || text.contains(&format!("(note: {REPETITION}"))
}

/// A result as one object of an array.
fn row(ticket: &Ticket, outcome: &Outcome, times: u32, outcomes: Outcomes<'_>) -> String {
    let call_id = ticket.call_id.as_deref().unwrap_or_default();
    let mut row = format!(r#"{{"call_id": {}, "tool_name": {}, "#, quote(call_id), quote(&ticket.tool));
    // Writing into a string has no failing case.
    let _ = match outcome {
        Outcome::Ok(json) => write!(row, r#""status": "ok", "result": {}"#, outcomes.json(ticket, json.get(), 0)),
        other => {
            let text = quote(&outcomes.text(ticket, other));
            write!(row, r#""status": "error", "error": {}"#, outcomes.on_one_line(text.into()))
        }
    };
    if let Some(note) = repetition(times) {
        let _ = write!(row, r#", "note": {}"#, quote(&note));
    }
    row.push('}');
    row
}

/// An answer with these results, as a sentence: after examples with the bare result, a small model answered tasks that
/// need a call.
fn sentence(results: &[&str]) -> String {
    match results {
        [result] => format!("The result is {result}."),
        results => format!("The results are {}.", results.join(" and ")),
    }
}
