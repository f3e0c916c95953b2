//! The ticket protocol: `<thoughts>`, then `<output>` with one JSON object whose `type` says the move.

pub mod read;

use super::prompt::{Placeholder, Style, render};
use super::stored::Stored;
use super::telling::{Outcomes, Telling, repetition};
use super::{Decoder, Protocol, ReadOptions, TemplateError, grammar, lint};
use crate::reply::Span;
use crate::reply::tag::Tag;
use crate::ticket::{Outcome, TicketId};
use crate::tool::{Budget, Layout, ToolSet};
use serde::{Deserialize, Serialize};

const TEMPLATE: &str = include_str!("prompts/ticket.txt");
/// The line of it that says how a task is delegated.
const DELEGATE: &str = r#"
{"type": "DELEGATE", "task": "..."} opens a ticket and gives a part of the task, told in full, to another agent"#;

/// The ticket protocol with its options.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Ticket {
    /// Whether an `AWAIT` also loads the ticket's result.
    pub await_loads: bool,
    /// The user's own prompt template, in place of the built-in one.
    #[serde(skip)]
    pub template: Option<String>,
    /// How much of the prompt the tools may take.
    #[serde(skip)]
    pub budget: Budget,
    /// How replies are read.
    pub read: ReadOptions,
}

impl Protocol for Ticket {
    fn name(&self) -> &'static str {
        "ticket"
    }

    fn interface(&self) -> (Layout, Budget) {
        (Layout::Operations, self.budget)
    }

    fn system_prompt(&self, tools: &ToolSet, delegates: bool) -> Result<String, TemplateError> {
        let spec = tools.interface(Layout::Operations, self.budget);
        let mut placeholders = vec![Placeholder { name: "tool_spec", value: &spec, required: true }];
        if self.template.is_none() {
            let value = if delegates { DELEGATE } else { "" };
            placeholders.push(Placeholder { name: "delegate", value, required: true });
        }
        render(self.template.as_deref().unwrap_or(TEMPLATE), Style::DoubleBraces, &placeholders)
    }

    fn decoder(&self, options: ReadOptions) -> Box<dyn Decoder> {
        read::decoder(options)
    }

    fn read_options(&self) -> ReadOptions {
        self.read
    }

    fn message(&self, tellings: &[Telling], outcomes: Outcomes<'_>) -> String {
        let mut parts: Vec<String> = tellings.iter().filter_map(|telling| part(telling, outcomes)).collect();
        parts.push(format!("Tickets:\n{}", outcomes.tickets.to_json()));
        parts.join("\n\n")
    }

    fn answer_form(&self) -> &'static str {
        r#"<output>{"type": "RETURN", "value": "..."}</output>"#
    }

    fn call_form(&self) -> String {
        r#"<output>{"type": "CALL", "route": "...", "payload": {}, "description": "..."}</output>"#.to_owned()
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
        grammar::ticket(scope)
    }
}

fn part(telling: &Telling, outcomes: Outcomes<'_>) -> Option<String> {
    match telling {
        Telling::Task(text) | Telling::Violation(text) | Telling::LastTurn(text) => Some(text.clone()),
        Telling::Loaded(id) => Some(format!("Result of ticket {id}:\n{}", loaded(*id, outcomes)?)),
        Telling::Dropped(id) => {
            Some(format!("Result of ticket {id}: left out here to make room; LOAD_TICKET shows it again."))
        }
        // Only chatty has calls that end before their agents do.
        Telling::Spawned(_) => None,
        Telling::Awaited(id) => Some(format!("Ticket {id} is COMPLETED: LOAD_TICKET shows its result.")),
        // Results are told when they are loaded; the list below says that they are there.
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
