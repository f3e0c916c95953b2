//! The ticket protocol: `<thoughts>`, then `<output>` with one JSON object whose `type` says the move.

pub mod grammar;
pub mod read;

use super::example::{ExampleCall, Step};
use super::grammar::{Grammar, Scope};
use super::message_entry::{MessageEntry, Outcomes, quote, repetition};
use super::prompt::{Placeholder, Style, render};
use super::{Code, Correction, Violation, published};
use super::{Decoder, NamedProtocol, Protocol, ProtocolOptions, ReadOptions, TemplateError, answer, lint, text_spans};
use crate::reply::Span;
use crate::reply::tag::Tag;
use crate::ticket::{Outcome, TicketId, is_false};
use crate::tool::{Budget, Layout, ToolSet, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::sync::Arc;

/// The built-in prompt.
pub const TEMPLATE: &str = include_str!("prompts/ticket.txt");
/// Its line about delegation.
const DELEGATE: &str = r#"
{"type": "DELEGATE", "task": "..."} opens a ticket and gives a part of the task, told in full, to another agent"#;

/// The key of the answer, and the passage of the built-in prompt that says that it is any JSON.
const ANSWER: &str = "value";
const PLAIN_RETURN: &str = r#"{"type": "RETURN", "value": "..."} ends the task with a value, which may be any JSON"#;

/// Bytes of JSON up to which the message about a result contains it: some 500 tokens, which cost less than another turn.
const INLINE_BYTES: usize = 2_000;

/// How much a message says about the tickets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lists {
    /// All tickets in each message: runs of the first logs continue as they began.
    #[default]
    Whole,
    /// The tickets that changed, and those in progress; the others by their ids. A call whose result was never loaded is
    /// not made again.
    Changes,
}

impl Lists {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
    fn is_whole(&self) -> bool {
        *self == Self::Whole
    }
}

/// The ticket protocol with its options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ticket {
    /// Whether an `AWAIT` also loads the ticket's result.
    pub await_loads: bool,
    /// Whether the next message contains the short result of a call that ends within the grace.
    #[serde(default, skip_serializing_if = "is_false")]
    pub inline_results: bool,
    /// How much a message says about the tickets.
    #[serde(default, skip_serializing_if = "Lists::is_whole")]
    pub lists: Lists,
    /// The options that all protocols have.
    #[serde(skip)]
    pub options: ProtocolOptions,
}

impl Default for Ticket {
    fn default() -> Self {
        Self { await_loads: false, inline_results: true, lists: Lists::Changes, options: ProtocolOptions::default() }
    }
}

impl NamedProtocol for Ticket {
    const NAME: &'static str = "ticket";
    const TEMPLATE: &'static str = TEMPLATE;

    fn with_own_options(own: Json) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Own {
            await_loads: bool,
            inline_results: bool,
        }
        let Own { await_loads, inline_results } = Own::deserialize(own)?;
        Ok(Self { await_loads, inline_results, ..Self::default() })
    }
}

impl Protocol for Ticket {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn options(&self) -> &ProtocolOptions {
        &self.options
    }

    fn with_options(&self, options: ProtocolOptions) -> Arc<dyn Protocol> {
        Arc::new(Self { options, ..self.clone() })
    }

    fn answer_name(&self) -> &'static str {
        ANSWER
    }

    fn interface(&self, tools: &ToolSet) -> (Layout, Budget) {
        (self.layout(tools), self.options.budget)
    }

    fn system_prompt(&self, tools: &ToolSet, delegates: bool, instructions: &str) -> Result<String, TemplateError> {
        let spec = tools.interface(self.layout(tools), self.options.budget);
        let delegate = if delegates { DELEGATE } else { "" };
        let placeholders = [
            Placeholder { name: "tool_spec", value: &spec, required: true },
            // A template that was made from the built-in one may have it.
            Placeholder { name: "delegate", value: delegate, required: false },
        ];
        let prompt = render(
            self.options.template.as_deref().unwrap_or(TEMPLATE),
            Style::DoubleBraces,
            &placeholders,
            instructions,
        )?;
        Ok(self.with_answer(prompt))
    }

    fn example_label(&self, tools: &ToolSet, tool: &ToolSpec) -> String {
        tools.label(tool, !self.names(tools))
    }

    fn example(&self, call: &ExampleCall<'_>) -> Vec<Step> {
        let reply = |thoughts: &str, output: &str| {
            Step::Reply(format!("<thoughts>\n{thoughts}\n</thoughts>\n<output>\n{output}\n</output>"))
        };
        let (route, purpose, id) = (quote(call.tool), quote(call.purpose), call.ticket);
        let payload = &call.arguments;
        let mut steps = vec![
            Step::UserMessage(vec![MessageEntry::Task(call.task.clone())]),
            reply(
                &format!("No ticket has this yet. I call {}.", call.signature),
                &format!(r#"{{"type": "CALL", "route": {route}, "payload": {payload}, "description": {purpose}}}"#),
            ),
        ];
        if !self.inline_results {
            steps.push(Step::UserMessage(vec![MessageEntry::Completed(id)]));
            steps.push(reply(
                &format!("{id} is completed."),
                &format!(r#"{{"type": "LOAD_TICKET", "ticket_id": "{id}"}}"#),
            ));
        }
        steps.push(Step::UserMessage(vec![MessageEntry::Loaded(id)]));
        let answer = self
            .options
            .returns
            .as_ref()
            .map_or_else(|| quote(call.answer), |returns| answer::example(returns, ANSWER));
        steps.push(reply(
            &format!("{id} has the result: {}.", call.answer),
            &format!(r#"{{"type": "RETURN", "value": {answer}}}"#),
        ));
        steps
    }

    fn decoder(&self, options: ReadOptions) -> Box<dyn Decoder> {
        published::beside(host(self.options.returns.is_none()), options, &self.options.reasoning_tags, self.own())
    }

    fn message(&self, entries: &[MessageEntry], outcomes: Outcomes<'_>) -> String {
        let mut parts: Vec<String> = entries.iter().filter_map(|entry| part(entry, outcomes)).collect();
        let tickets = outcomes.tickets;
        let rows = match outcomes.listed.filter(|_| self.lists == Lists::Changes) {
            None => tickets.to_json(outcomes.own_task),
            Some(listed) => {
                let others = tickets.ids_without(listed);
                if !others.is_empty() {
                    parts.push(format!("{others} COMPLETED"));
                }
                tickets.to_json_of(outcomes.own_task, listed)
            }
        };
        parts.push(format!("Tickets:\n{}", outcomes.on_one_line(rows.into())));
        parts.join("\n\n")
    }

    fn answer_form(&self) -> Cow<'static, str> {
        match &self.options.returns {
            None => r#"<output>{"type": "RETURN", "value": "..."}</output>"#.into(),
            Some(returns) => format!("<output>{}</output>", read::return_form(returns)).into(),
        }
    }

    fn call_form(&self) -> String {
        r#"<output>{"type": "CALL", "route": "...", "payload": {"argument": "value"}, "description": "..."}</output>"#
            .to_owned()
    }

    fn delegates(&self) -> bool {
        true
    }

    fn shown<'a>(&self, reply: &'a str, span: Span) -> Cow<'a, str> {
        let text = span.of(reply);
        // Only an answer is JSON. Few thoughts begin as a string does.
        if text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '{' | '[' | '-')) {
            return Cow::Borrowed(text);
        }
        text_spans::read_again(self, reply, span).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    fn lists_tickets(&self) -> bool {
        true
    }

    fn loads_results(&self) -> bool {
        true
    }

    fn background(&self) -> bool {
        true
    }

    fn routes(&self) -> bool {
        true
    }

    fn await_loads(&self) -> bool {
        self.await_loads
    }

    fn inlines(&self, bytes: usize) -> bool {
        self.inline_results && bytes <= INLINE_BYTES
    }

    fn guides_to_results(&self) -> bool {
        self.lists == Lists::Changes
    }

    fn correction(&self, violation: &Violation, raw: &str) -> Option<Correction> {
        let object = if violation.code == Code::WrongTag {
            let calls = published::calls(
                host(self.options.returns.is_none()),
                self.options.read,
                &self.options.reasoning_tags,
                raw,
                self.own(),
            )?;
            let call = calls.first()?;
            Correction::certain(read::written_call(&call.tool, &call.arguments))
        } else {
            read::corrected(raw, self.options.returns.as_ref())?
        };
        Some(Correction { text: format!("<output>{}</output>", object.text), ..object })
    }

    fn examples(&self, prompt: &str) -> Vec<Span> {
        let outputs = lint::sections(prompt, &Tag::new("<output>"), &Tag::new("</output>"));
        let thoughts = Tag::new("<thoughts>");
        let mut from = 0;
        outputs
            .into_iter()
            .map(|output| {
                let start = lint::last_before(prompt, from, output.start, &thoughts).unwrap_or(output.start);
                from = output.end;
                Span::new(start, output.end)
            })
            .collect()
    }

    fn own_options(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn grammar(&self, scope: &Scope<'_>) -> Grammar {
        grammar::ticket(scope, self.names(scope.tools), self.options.returns.as_ref())
    }
}

impl Ticket {
    /// Whether the prompt shows only the names of tools, without methods and paths that a model may get wrong.
    fn names(&self, tools: &ToolSet) -> bool {
        self.options.template.is_none() && !tools.has_documents()
    }

    fn layout(&self, tools: &ToolSet) -> Layout {
        if self.names(tools) { Layout::Lines } else { Layout::Operations }
    }
}

impl Ticket {
    /// Makes decoders of its own form.
    fn own(&self) -> impl Fn(ReadOptions) -> Box<dyn Decoder> + Send + 'static {
        let (reasoning, returns) = (self.options.reasoning_tags.clone(), self.options.returns.clone());
        move |options| read::decoder(options, &reasoning, returns.as_ref())
    }

    /// The prompt with the description of the answer type.
    fn with_answer(&self, prompt: String) -> String {
        let Some(returns) = &self.options.returns else { return prompt };
        let (described, example) =
            (answer::described(returns, "the `value` of RETURN"), answer::example(returns, ANSWER));
        if self.options.template.is_some() {
            return answer::appended(&prompt, &format!("{described} For example: {example}"));
        }
        let passage = format!("{{\"type\": \"RETURN\", \"value\": {example}}} ends the task; {described}");
        answer::replaced(prompt, &[(PLAIN_RETURN, passage)])
    }
}

/// How calls in published forms are read.
fn host(takes_text: bool) -> published::Host {
    published::Host {
        wanted: "an <output> section with one JSON object".into(),
        form: r#"<output>{"type": "CALL", "route": "GET /path", "payload": {"name": "value"}, "description": "why"}</output>"#.into(),
        several: false,
        described: true,
        answers: false,
        own_tag: None,
        tags: Some(("<output>", "</output>")),
        takes_text,
        says_success: false,
    }
}

fn part(entry: &MessageEntry, outcomes: Outcomes<'_>) -> Option<String> {
    match entry {
        MessageEntry::Task(text)
        | MessageEntry::Reminder(text)
        | MessageEntry::Note(text)
        | MessageEntry::Violation(text)
        | MessageEntry::Refused { feedback: text, .. }
        | MessageEntry::LastTurn(text) => Some(text.clone()),
        MessageEntry::Loaded(id) => Some(format!("Result of ticket {id}:\n{}", loaded(*id, 0, outcomes)?)),
        MessageEntry::LoadedPart { ticket: id, offset } => {
            Some(format!("Result of ticket {id}:\n{}", loaded(*id, *offset, outcomes)?))
        }
        MessageEntry::Dropped(id) => {
            Some(format!("Result of ticket {id}: left out here to make room; LOAD_TICKET {id} shows it again."))
        }
        // Only chatty has calls that end before their agents do.
        MessageEntry::Spawned(_) => None,
        MessageEntry::Completed(id) => Some(format!("{id} is COMPLETED: LOAD_TICKET {id} to see its result.")),
        // The result itself is shown when it is loaded.
        MessageEntry::Result { ticket, times } => {
            repetition(*times).map(|note| format!("Note on ticket {ticket}: {note}."))
        }
    }
}

/// A failure is loaded as `{"error": …}`, so that a result is always JSON.
fn loaded(id: TicketId, offset: usize, outcomes: Outcomes<'_>) -> Option<String> {
    let (ticket, outcome) = outcomes.get(id)?;
    Some(match outcome {
        Outcome::Ok(json) => outcomes.json(ticket, json.get(), offset).into_owned(),
        other => {
            let error = serde_json::json!({ "error": outcomes.part(ticket, other, offset) }).to_string();
            outcomes.on_one_line(error.into()).into_owned()
        }
    })
}
