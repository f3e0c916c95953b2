//! The ticket protocol: `<thoughts>`, then `<output>` with one JSON object whose `type` says the move.

pub mod read;

use super::example::{ExampleCall, Examples, Step};
use super::prompt::{Placeholder, Style, render};
use super::stored::Stored;
use super::telling::{Outcomes, Telling, quote, repetition};
use super::{Code, Correction, Violation, correction, published};
use super::{Decoder, Message, Protocol, ReadOptions, TemplateError, grammar, lint};
use crate::reply::Span;
use crate::reply::tag::Tag;
use crate::ticket::{Outcome, TicketId, is_false};
use crate::tool::{Budget, Layout, ToolSet, ToolSpec};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const TEMPLATE: &str = include_str!("prompts/ticket.txt");
/// The line of it that says how a task is delegated.
const DELEGATE: &str = r#"
{"type": "DELEGATE", "task": "..."} opens a ticket and gives a part of the task, told in full, to another agent"#;

/// Bytes of JSON up to which a result stands in the message that says it is there: some 500 tokens, which is less than
/// another turn takes.
const INLINE_BYTES: usize = 2_000;

/// How much of the tickets a message tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lists {
    /// All tickets in each message, as the first logs have it: their runs go on as they began.
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
    /// Whether a short result of a call that ends within the grace stands in the next message.
    #[serde(default, skip_serializing_if = "is_false")]
    pub inline_results: bool,
    /// How much of the tickets a message tells.
    #[serde(default, skip_serializing_if = "Lists::is_whole")]
    pub lists: Lists,
    /// The messages of an example.
    #[serde(skip)]
    pub examples: Examples,
    /// The user's own prompt template, in place of the built-in one.
    #[serde(skip)]
    pub template: Option<String>,
    /// How much of the prompt the tools may take.
    #[serde(skip)]
    pub budget: Budget,
    /// Marks between which reasoning stands, beside those that are known: pairs of start and end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasoning_tags: Vec<(String, String)>,
    /// How replies are read.
    pub read: ReadOptions,
}

impl Default for Ticket {
    fn default() -> Self {
        Self {
            await_loads: false,
            inline_results: true,
            lists: Lists::Changes,
            examples: Examples::default(),
            template: None,
            budget: Budget::default(),
            reasoning_tags: Vec::new(),
            read: ReadOptions::default(),
        }
    }
}

impl Protocol for Ticket {
    fn name(&self) -> &'static str {
        "ticket"
    }

    fn interface(&self, tools: &ToolSet) -> (Layout, Budget) {
        (self.layout(tools), self.budget)
    }

    fn system_prompt(&self, tools: &ToolSet, delegates: bool) -> Result<String, TemplateError> {
        let spec = tools.interface(self.layout(tools), self.budget);
        let mut placeholders = vec![Placeholder { name: "tool_spec", value: &spec, required: true }];
        if self.template.is_none() {
            let value = if delegates { DELEGATE } else { "" };
            placeholders.push(Placeholder { name: "delegate", value, required: true });
        }
        render(self.template.as_deref().unwrap_or(TEMPLATE), Style::DoubleBraces, &placeholders)
    }

    fn example_messages(&self, tools: &ToolSet) -> Arc<[Message]> {
        self.examples.messages(self, tools)
    }

    fn example_label(&self, tools: &ToolSet, tool: &ToolSpec) -> String {
        tools.label(tool, !self.names(tools))
    }

    fn example(&self, call: &ExampleCall<'_>) -> Vec<Step> {
        let reply = |thoughts: &str, output: &str| {
            Step::Reply(format!("<thoughts>\n{thoughts}\n</thoughts>\n<output>\n{output}\n</output>"))
        };
        let (route, purpose, id) = (quote(call.tool), quote(call.purpose), call.ticket);
        let payload = call.arguments;
        let mut steps = vec![
            Step::Told(vec![Telling::Task(call.task.to_owned())]),
            reply(
                &format!("No ticket has this yet. I call {}.", call.signature),
                &format!(r#"{{"type": "CALL", "route": {route}, "payload": {payload}, "description": {purpose}}}"#),
            ),
        ];
        if !self.inline_results {
            steps.push(Step::Told(vec![Telling::Completed(id)]));
            steps.push(reply(
                &format!("{id} is completed."),
                &format!(r#"{{"type": "LOAD_TICKET", "ticket_id": "{id}"}}"#),
            ));
        }
        steps.push(Step::Told(vec![Telling::Loaded(id)]));
        let answer = quote(call.answer);
        steps.push(reply(
            &format!("{id} has the result: {}.", call.answer),
            &format!(r#"{{"type": "RETURN", "value": {answer}}}"#),
        ));
        steps
    }

    fn decoder(&self, options: ReadOptions) -> Box<dyn Decoder> {
        published::beside(host(), options, &self.reasoning_tags, self.own())
    }

    fn read_options(&self) -> ReadOptions {
        self.read
    }

    fn message(&self, tellings: &[Telling], outcomes: Outcomes<'_>) -> String {
        let mut parts: Vec<String> = tellings.iter().filter_map(|telling| part(telling, outcomes)).collect();
        let tickets = outcomes.tickets;
        let rows = match outcomes.listed.filter(|_| self.lists == Lists::Changes) {
            None => tickets.to_json(),
            Some(listed) => {
                let others = tickets.ids_without(listed);
                if !others.is_empty() {
                    parts.push(format!("{others} COMPLETED"));
                }
                tickets.to_json_of(listed)
            }
        };
        parts.push(format!("Tickets:\n{rows}"));
        parts.join("\n\n")
    }

    fn answer_form(&self) -> &'static str {
        r#"<output>{"type": "RETURN", "value": "..."}</output>"#
    }

    fn call_form(&self) -> String {
        r#"<output>{"type": "CALL", "route": "...", "payload": {"argument": "value"}, "description": "..."}</output>"#
            .to_owned()
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
        let object = match correction::first_move(violation, raw) {
            Some(first) => Correction::certain(first),
            None if violation.code == Code::WrongTag => {
                let calls = published::calls(host(), self.read, &self.reasoning_tags, raw, self.own())?;
                let call = calls.first()?;
                Correction::certain(read::written_call(&call.tool, &call.arguments))
            }
            None => read::corrected(raw)?,
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

    fn stored(&self) -> Stored {
        Stored::Ticket(self.clone())
    }

    fn grammar(&self, scope: &grammar::Scope<'_>) -> grammar::Grammar {
        grammar::ticket(scope, self.names(scope.tools))
    }
}

impl Ticket {
    /// Whether the prompt shows tools by their names alone: no method and no path that a model may get wrong.
    fn names(&self, tools: &ToolSet) -> bool {
        self.template.is_none() && !tools.has_documents()
    }

    fn layout(&self, tools: &ToolSet) -> Layout {
        if self.names(tools) { Layout::Lines } else { Layout::Operations }
    }
}

impl Ticket {
    /// Makes decoders of its own form.
    fn own(&self) -> impl Fn(ReadOptions) -> Box<dyn Decoder> + Send + 'static {
        let reasoning = self.reasoning_tags.clone();
        move |options| read::decoder(options, &reasoning)
    }
}

/// What calls in published forms are read as.
fn host() -> published::Host {
    published::Host {
        wanted: "an <output> section with one JSON object".to_owned(),
        form: r#"<output>{"type": "CALL", "route": "GET /path", "payload": {"name": "value"}, "description": "why"}</output>"#.to_owned(),
        several: false,
        described: true,
        answers: false,
        own_tag: None,
        tags: Some(("<output>", "</output>")),
    }
}

fn part(telling: &Telling, outcomes: Outcomes<'_>) -> Option<String> {
    match telling {
        Telling::Task(text)
        | Telling::Reminder(text)
        | Telling::Note(text)
        | Telling::Violation(text)
        | Telling::LastTurn(text) => Some(text.clone()),
        Telling::Loaded(id) => Some(format!("Result of ticket {id}:\n{}", loaded(*id, outcomes)?)),
        Telling::Dropped(id) => {
            Some(format!("Result of ticket {id}: left out here to make room; LOAD_TICKET {id} shows it again."))
        }
        // Only chatty has calls that end before their agents do.
        Telling::Spawned(_) => None,
        Telling::Completed(id) => Some(format!("{id} is COMPLETED: LOAD_TICKET {id} to see its result.")),
        // The result itself is told when it is loaded.
        Telling::Result { ticket, times } => repetition(*times).map(|note| format!("Note on ticket {ticket}: {note}.")),
    }
}

/// A failure is loaded as `{"error": …}`, so that a result is always JSON.
fn loaded(id: TicketId, outcomes: Outcomes<'_>) -> Option<String> {
    let (ticket, outcome) = outcomes.get(id)?;
    Some(match outcome {
        Outcome::Ok(json) => outcomes.json(ticket, json.get()).into_owned(),
        other => serde_json::json!({ "error": outcomes.text(ticket, other) }).to_string(),
    })
}
