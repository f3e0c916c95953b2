//! What a reply leads to: read whole by a decoder, or in chunks by a run, which stops streams early.

use super::dice::Dice;
use super::moves::{ARGUMENTS, TOOLS};
use crate::invariants::Way;
use callslip::protocol::{Chatty, FinishReason, Move, Protocol, React, Reply, Status, Ticket};
use callslip::reply::{Repair, Value, Violation};
use callslip::run::command::{OnLimit, OnOpenTickets};
use callslip::run::{Event, Limits, RunMachine, Setup};
use callslip::tool::{AnswerType, ToolSet, ToolSpec};
use serde_json::{Value as Json, json};
use std::sync::{Arc, LazyLock};

/// What was done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Done {
    /// The reply was refused, with this code.
    Refused(String),
    /// These calls are made: tools and arguments.
    Calls(Vec<(String, Json)>),
    /// The run ends with this.
    Answer(Json),
    /// A direct answer in the chatty protocol: text for a person.
    Text(String),
    /// Another move.
    Other(String),
}

impl Done {
    /// Whether something is executed.
    pub(super) fn acts(&self) -> bool {
        matches!(self, Self::Calls(_) | Self::Answer(_) | Self::Other(_))
    }

    /// Whether it is the same, whatever a refusal says.
    pub(super) fn same(&self, other: &Self) -> bool {
        self == other || matches!((self, other), (Self::Refused(_), Self::Refused(_)))
    }

    fn of(protocol: &str, outcome: &Result<Move, Violation>) -> Self {
        match outcome {
            Err(violation) => Self::Refused(violation.code_text()),
            Ok(Move::Call { calls }) => {
                Self::Calls(calls.iter().map(|call| (call.tool.clone(), as_json(&call.arguments))).collect())
            }
            Ok(Move::Finish { value, .. }) if protocol == "chatty" => {
                Self::Text(value.as_str().unwrap_or_default().to_owned())
            }
            Ok(Move::Finish { value, .. }) => Self::Answer(as_json(value)),
            Ok(other) => Self::Other(format!("{other:?}")),
        }
    }
}

fn as_json(value: &Value) -> Json {
    serde_json::from_str(&value.to_json()).unwrap()
}

/// The whole reply, as a decoder reads it.
pub(super) fn parsed(protocol: &str, text: &str) -> Done {
    Done::of(protocol, &reply(protocol, text).outcome)
}

pub(super) fn reply(protocol: &str, text: &str) -> Reply {
    Way::plain(protocol).read(&[text.as_bytes()]).reply
}

/// The whole reply, as a run takes it.
pub(super) fn whole(protocol: &str, text: &str) -> Done {
    let mut machine = begun(protocol);
    machine.reply(text, FinishReason::Stop, None, 2.0);
    taken(protocol, &mut machine)
}

/// The reply that the token limit has cut, as a run takes it.
pub(super) fn cut(protocol: &str, text: &str) -> Done {
    let mut machine = begun(protocol);
    machine.reply(text, FinishReason::Length, None, 2.0);
    taken(protocol, &mut machine)
}

/// The reply in random chunks, as a run takes it.
pub(super) fn streamed(protocol: &str, text: &str, dice: &mut Dice) -> Done {
    let mut machine = begun(protocol);
    let size = [1, 3, 7, 30, 200][dice.below(5)];
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let (chunk, more) = rest.split_at(rest.len().min(1 + dice.below(size)));
        rest = more;
        if machine.push(chunk, 2.0).stop {
            break;
        }
    }
    machine.end_reply(FinishReason::Stop, None, 2.0);
    taken(protocol, &mut machine)
}

/// Whether a run starts a call of the reply before it has ended, where its tools only read.
pub(super) fn starts_early(text: &str, dice: &mut Dice) -> bool {
    static READING: LazyLock<Arc<Setup>> = LazyLock::new(|| {
        let mut tools = tools();
        for tool in &mut tools {
            tool.readonly = true;
        }
        setup(protocol("chatty"), tools)
    });
    let mut machine = started(Arc::clone(&READING));
    let size = 1 + dice.below(20);
    text.as_bytes().chunks(size).any(|chunk| {
        machine.push(chunk, 2.0);
        machine.has_early_calls()
    })
}

/// What a decoder says that is doomed is refused in the end.
pub(super) fn stays_doomed(protocol: &str, text: &str) -> Option<String> {
    let way = Way::plain(protocol);
    let mut decoder = way.protocol.decoder(way.options);
    let mut deltas = Vec::new();
    let mut doomed = None;
    for (at, byte) in text.as_bytes().chunks(1).enumerate() {
        match (decoder.push(byte, &mut deltas), doomed) {
            (Status::Doomed, None) => doomed = Some(at),
            (Status::Doomed, _) | (_, None) => {}
            (other, Some(before)) => return Some(format!("doomed at {before}, then {other:?} at {at}")),
        }
    }
    let outcome = decoder.finish(FinishReason::Stop).outcome;
    doomed.filter(|_| outcome.is_ok()).map(|at| format!("doomed at {at}, then {:?}", Done::of(protocol, &outcome)))
}

/// Tools that take anything, also under other names than those of their parameters.
fn tools() -> Vec<ToolSpec> {
    let properties: serde_json::Map<String, Json> =
        ARGUMENTS.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": true});
    let tool = |name: &&str| json!({"name": name, "description": "", "parameters": schema});
    TOOLS.iter().map(|name| serde_json::from_value(tool(name)).unwrap()).collect()
}

fn protocol(name: &str) -> Arc<dyn Protocol> {
    match name {
        "ticket" => Arc::new(Ticket::default()),
        "chatty" => Arc::new(Chatty::default()),
        _ => Arc::new(React::default()),
    }
}

fn setup(protocol: Arc<dyn Protocol>, tools: Vec<ToolSpec>) -> Arc<Setup> {
    Arc::new(Setup {
        prompt: "p".into(),
        instructions: None,
        examples: [].into(),
        reminder: None,
        delegates: protocol.background(),
        protocol,
        tools: Arc::new(ToolSet::new(tools).unwrap()),
        limits: Limits::default(),
        on_limit: OnLimit::Answer,
        on_open_tickets: OnOpenTickets::Wait,
        call_first: false,
        early_stop: true,
        checks_answer: false,
        ends_at_call: false,
        values: None,
        least_certainty: None,
        early_start: true,
    })
}

static SETUPS: LazyLock<[(&str, Arc<Setup>); 3]> =
    LazyLock::new(|| super::PROTOCOLS.map(|name| (name, setup(protocol(name), tools()))));

/// A run that asks.
fn begun(protocol: &str) -> RunMachine {
    let setup = &SETUPS.iter().find(|(name, _)| *name == protocol).unwrap().1;
    started(Arc::clone(setup))
}

fn started(setup: Arc<Setup>) -> RunMachine {
    let mut machine = RunMachine::new("r".into(), "agent".into(), None, setup);
    machine.start("the work", 1.0);
    machine.commands(1.0);
    machine.take_records();
    machine
}

/// What the run did with the reply.
fn taken(protocol: &str, machine: &mut RunMachine) -> Done {
    Done::of(protocol, &outcome(machine).0)
}

fn outcome(machine: &mut RunMachine) -> (Result<Move, Violation>, Vec<Repair>) {
    let (mut found, mut noted) = (None, Vec::new());
    for record in machine.take_records() {
        match &record.event {
            Event::ModelReplied { repairs, .. } => noted.clone_from(repairs),
            Event::Moved { moved, .. } | Event::AnswerOffered { moved, .. } => found = Some(Ok(moved.clone())),
            Event::Violated { violation, .. } => found = Some(Err((**violation).clone())),
            _ => {}
        }
    }
    (found.expect("a move or a violation"), noted)
}

/// What a run with these tools, each with its parameters (`name?` for one that may be left out), does with a reply, and
/// what the model is told.
pub(crate) fn run_of(
    name: &str,
    tools: &Json,
    returns: Option<&Json>,
    text: &str,
) -> (Result<Move, Violation>, Vec<Repair>, String) {
    let spec = |(name, parameters): (&String, &Json)| {
        let parameters: Vec<&str> = parameters.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let properties: serde_json::Map<String, Json> =
            parameters.iter().map(|name| (name.trim_end_matches('?').to_owned(), json!({}))).collect();
        let required: Vec<&&str> = parameters.iter().filter(|name| !name.ends_with('?')).collect();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        serde_json::from_value(json!({"name": name, "description": "", "parameters": schema})).unwrap()
    };
    let tools = tools.as_object().unwrap().iter().map(spec).collect();
    let protocol = match returns {
        Some(schema) => protocol(name).returning(Some(AnswerType::new(schema.clone()))),
        None => protocol(name),
    };
    let mut machine = started(setup(protocol, tools));
    machine.reply(text, FinishReason::Stop, None, 2.0);
    machine.commands(2.0);
    let told = machine.state().conversation.messages.last().map(|message| message.content.to_string());
    let (outcome, repairs) = outcome(&mut machine);
    (outcome, repairs, told.unwrap_or_default())
}
