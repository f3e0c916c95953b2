//! One whole run as messages, shown to the model before its task: small models do as they have done.

use super::Protocol;
use super::message::{Message, Role};
use super::message_entry::{MessageEntry, Outcomes, Parts, own_task};
use crate::ticket::{Outcome, Ticket, TicketId, TicketKind, TicketList};
use crate::tool::{EXAMPLE_RESULT, Layout, PAIR_RESULTS, Sample, ToolSet, ToolSpec, spaced};
use serde_json::{Map, Value as Json};
use std::fmt::Write as _;
use std::sync::Arc;

/// The messages of an example, between the system prompt and the task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Examples {
    /// One made from the tools of the run.
    #[default]
    OwnTools,
    /// These.
    Messages(Arc<[Message]>),
}

/// One step of an example.
#[derive(Debug)]
pub enum Step {
    /// A message of the user.
    UserMessage(Vec<MessageEntry>),
    /// What it replies.
    Reply(String),
}

/// The call of an example.
#[derive(Debug)]
pub struct ExampleCall<'a> {
    /// The tool's name, or its route (ticket).
    pub tool: &'a str,
    /// The arguments as JSON, with blanks as a grammar has them.
    pub arguments: String,
    /// The tool with its arguments, where the prompt shows them so. A model that writes them down first leaves none out.
    pub signature: &'a str,
    /// What it is for.
    pub purpose: &'a str,
    /// Its ticket.
    pub ticket: TicketId,
    /// What the whole example asks for.
    pub task: String,
    /// What it answers.
    pub answer: &'a str,
}

impl Examples {
    /// The messages for a run with these tools.
    pub fn messages(&self, protocol: &dyn Protocol, tools: &ToolSet) -> Arc<[Message]> {
        match self {
            Self::Messages(messages) => Arc::clone(messages),
            Self::OwnTools => {
                tools.sample().map(|sample| example_runs(protocol, tools, &sample)).unwrap_or_default().into()
            }
        }
    }
}

/// A run of two calls in one reply, where the protocol has that, and then a run of one: a small model makes as many calls
/// as it has seen, and chooses by the task only where it has seen both.
fn example_runs(protocol: &dyn Protocol, tools: &ToolSet, sample: &Sample<'_>) -> Vec<Message> {
    let label = protocol.example_label(tools, sample.tool);
    let signature = signature(protocol, tools, sample.tool, &label);
    let purpose = purpose(sample);
    let call = |ticket: u32, answer, arguments: &Map<String, Json>, task: String| ExampleCall {
        tool: &label,
        arguments: spaced(&Json::Object(arguments.clone())),
        signature: &signature,
        purpose: &purpose,
        ticket: TicketId(ticket),
        task,
        answer,
    };
    let pair = tools.other_arguments(sample).and_then(|others| {
        let task = format!("Example: {purpose}. (1){} (2){}", listed(&sample.arguments), listed(&others));
        let [first, second] = PAIR_RESULTS;
        let calls = [call(1, first, &sample.arguments, task), call(2, second, &others, String::new())];
        let steps = protocol.pair_example(&calls)?;
        Some(messages(protocol, tools, steps, &tickets(sample.tool, &purpose, &PAIR_RESULTS)))
    });
    let task = format!("Example: {purpose}.{}", listed(&sample.arguments));
    let steps = protocol.example(&call(1, EXAMPLE_RESULT, &sample.arguments, task));
    let one = messages(protocol, tools, steps, &tickets(sample.tool, &purpose, &[EXAMPLE_RESULT]));
    pair.into_iter().flatten().chain(one).collect()
}

/// The messages of one run of an example.
fn messages(protocol: &dyn Protocol, tools: &ToolSet, steps: Vec<Step>, tickets: &TicketList) -> Vec<Message> {
    let none = TicketList::default();
    let (mut called, mut own) = (false, None);
    let of_step = |step| match step {
        Step::Reply(text) => {
            called = true;
            Message::new(Role::Assistant, text)
        }
        Step::UserMessage(mut entries) => {
            if let [MessageEntry::Task(task)] = entries.as_slice() {
                own = Some(own_task(task));
            }
            if let ([MessageEntry::Task(_)], Some(reminder)) = (entries.as_slice(), protocol.reminder(tools)) {
                entries.push(MessageEntry::Reminder(reminder.to_owned()));
            }
            let (tickets, listed): (_, &[TicketId]) = if called { (tickets, &[TicketId(1)]) } else { (&none, &[]) };
            let own_task = own.as_deref();
            let outcomes = Outcomes {
                tickets,
                result_bytes: usize::MAX,
                parts: Parts::None,
                framed: true,
                listed: Some(listed),
                own_task,
                answered: None,
            };
            Message::new(Role::User, protocol.message(&entries, outcomes))
        }
    };
    steps.into_iter().map(of_step).collect()
}

/// The tickets of calls with these results.
fn tickets(tool: &ToolSpec, purpose: &str, results: &[&str]) -> TicketList {
    let mut tickets = TicketList::default();
    for (id, result) in (1..).zip(results) {
        tickets.open(Ticket {
            id: TicketId(id),
            description: purpose.into(),
            kind: TicketKind::ToolCall,
            tool: tool.name.as_str().into(),
            arguments: None,
            role: None,
            detached: false,
            parked: false,
            attempts: 1,
            approval_reason: None,
            decision: None,
            approved_by: None,
            external: None,
            awaits_result: false,
            answer_key: None,
            answered_by: None,
            untrusted: false,
            origins: Arc::default(),
            turn: 1,
            call_id: Some(format!("call_{id}")),
            opened_at: 0.0,
            completed_at: None,
            outcome: None,
            reads: None,
            parts: Vec::new(),
        });
        if let Ok(result) = serde_json::value::to_raw_value(result) {
            tickets.complete(TicketId(id), Outcome::Ok(result.into()), &[], None, 0.0);
        }
    }
    tickets
}

/// The tool with its arguments where the prompt shows such lines; else its label alone, since a form that stands nowhere
/// is not copied but made up.
fn signature(protocol: &dyn Protocol, tools: &ToolSet, tool: &ToolSpec, label: &str) -> String {
    match protocol.interface(tools).0 {
        Layout::Lines => tools.signature(tool),
        Layout::Json | Layout::List | Layout::Operations => label.to_owned(),
    }
}

/// What the tool is for, in its own words.
fn purpose(sample: &Sample<'_>) -> String {
    let summary = sample.tool.description.trim().lines().next().unwrap_or_default().trim_end_matches(['.', ' ']);
    if summary.is_empty() { format!("Use {}", sample.tool.name) } else { summary.to_owned() }
}

/// ` City: Marlowe. Days: 47.`
fn listed(arguments: &Map<String, Json>) -> String {
    let mut text = String::new();
    for (name, value) in arguments {
        let mut name = name.replace(['_', '-'], " ");
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        // Writing into a string has no failing case.
        let _ = match value {
            Json::String(text_of) => write!(text, " {name}: {text_of}."),
            other => write!(text, " {name}: {other}."),
        };
    }
    text
}
