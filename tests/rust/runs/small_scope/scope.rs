//! What is explored: the runs' setups, and the replies that their models may give.

use callslip::protocol::{Chatty, Protocol, React, Ticket};
use callslip::run::command::{OnLimit, OnOpenTickets};
use callslip::run::{Limits, RunState, Setup};
use callslip::tool::agent_tools::{background, delegate};
use callslip::tool::{ToolSet, ToolSpec};
use std::sync::Arc;

/// One reply that a model may give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Choice {
    /// The run's value.
    Finish,
    /// One call (in the background, where the protocol has that).
    Call,
    /// One call that waits for approval.
    Gated,
    /// A task for another run: `DELEGATE`, `delegate_task`, or an agent that is spawned.
    Delegate,
    /// A task for an agent that is a tool, and waits for approval.
    Expert,
    /// Ticket: `AWAIT` of the first ticket in progress.
    AwaitFirst,
    /// Ticket: `AWAIT` of the last ticket in progress.
    AwaitLast,
    /// Ticket: `AWAIT` of a completed ticket.
    AwaitDone,
    /// Ticket: `LOAD_TICKET` of a completed ticket.
    Load,
    /// Chatty: an agent is spawned and waited for.
    SpawnWait,
    /// Chatty: two agents are spawned, and both waited for.
    SpawnTwo,
    /// Chatty: all agents of earlier turns are waited for.
    Wait,
    /// Chatty: a call with the result of an agent of an earlier turn.
    UseAgent,
    /// Chatty: a call with the result of another.
    Refer,
    /// Chatty: a call with the results of two, which have that of a fourth.
    Diamond,
    /// Chatty: a call with the result of one that waits for approval.
    GatedRefer,
    /// Something that breaks the protocol.
    Violation,
}

/// What a tree of runs is made of, and what may happen to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope {
    pub(crate) name: &'static str,
    pub(crate) protocol: &'static str,
    /// What the models of each level may reply.
    pub(crate) choices: &'static [&'static [Choice]],
    /// The turns of each level in which they may reply anything but an answer.
    pub(crate) turns: &'static [u32],
    /// Tickets in all that the models open.
    pub(crate) tickets: usize,
    /// Runs in all.
    pub(crate) runs: usize,
    /// The limits of each level.
    pub(crate) limits: &'static [fn(&mut Limits)],
    pub(crate) on_limit: OnLimit,
    pub(crate) on_open_tickets: OnOpenTickets,
    /// Things that may happen to it on one path: the user's message, a cancellation, a time limit, a failed model,
    /// the end of the process. Each of them happens once at most.
    pub(crate) disturbances: u32,
}

impl Scope {
    /// The setup of a run with so many above it.
    pub(crate) fn setup(&self, depth: usize) -> Arc<Setup> {
        let protocol: Arc<dyn Protocol> = match self.protocol {
            "ticket" => Arc::new(Ticket::default()),
            "chatty" => Arc::new(Chatty::default()),
            _ => Arc::new(React::default()),
        };
        let mut limits = Limits::default();
        if let Some(set) = self.limits.get(depth) {
            set(&mut limits);
        }
        let delegates = depth + 1 < self.choices.len();
        let mut tools = vec![tool("call", r#", "effect": "idempotent""#), tool("gated", r#", "needs_approval": true"#)];
        match self.protocol {
            "ticket" => {}
            _ if !delegates => {}
            "chatty" => tools.extend(background(&[])),
            _ => tools.push(delegate()),
        }
        if delegates && self.protocol != "ticket" {
            tools.push(expert());
        }
        Arc::new(Setup {
            // Short: it is written into every state.
            examples: [].into(),
            reminder: None,
            instructions: None,
            prompt: "p".into(),
            protocol,
            tools: Arc::new(ToolSet::new(tools).unwrap()),
            limits,
            on_limit: self.on_limit,
            on_open_tickets: self.on_open_tickets,
            delegates: delegates && self.protocol == "ticket",
            call_first: false,
            early_stop: true,
            checks_answer: false,
            ends_at_call: false,
            values: None,
            least_certainty: None,
            early_start: false,
        })
    }

    /// The replies that the model of a run may give now, by their choices. `left` is how many tickets may still be
    /// opened in all, `runs` how many runs may.
    pub(crate) fn replies(&self, depth: usize, state: &RunState, left: usize, runs: usize) -> Vec<Choice> {
        let more = state.position.turn <= self.turns[depth] && state.position.last_turn.is_none();
        let fits = |choice: &Choice| {
            let (tickets, tasks) = needs(*choice);
            tickets <= left && tasks <= runs && (more || *choice == Choice::Finish)
        };
        let choices = self.choices[depth].iter().copied();
        choices.filter(|choice| fits(choice) && self.text(*choice, state).is_some()).collect()
    }

    /// The reply of a choice; none where it makes no sense.
    pub(crate) fn text(&self, choice: Choice, state: &RunState) -> Option<String> {
        match self.protocol {
            "ticket" => ticket(choice, state),
            "chatty" => chatty(choice, state),
            _ => react(choice, state),
        }
    }
}

/// The tickets and runs that a choice opens.
fn needs(choice: Choice) -> (usize, usize) {
    match choice {
        Choice::Call | Choice::Gated | Choice::Wait | Choice::UseAgent => (1, 0),
        Choice::Delegate | Choice::Expert => (1, 1),
        Choice::SpawnWait => (2, 1),
        Choice::SpawnTwo => (3, 2),
        Choice::Refer | Choice::GatedRefer => (2, 0),
        Choice::Diamond => (4, 0),
        _ => (0, 0),
    }
}

fn tool(name: &str, more: &str) -> ToolSpec {
    let json = format!(
        r#"{{"name": "{name}", "description": "", "parameters": {{"type": "object",
            "properties": {{"a": {{}}, "b": {{}}}}, "required": ["a"]}}{more}}}"#
    );
    serde_json::from_str(&json).unwrap()
}

fn expert() -> ToolSpec {
    let json = r#"{"name": "expert", "description": "", "kind": "agent", "effect": "idempotent", "needs_approval": true,
        "parameters": {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}}"#;
    serde_json::from_str(json).unwrap()
}

fn ticket(choice: Choice, state: &RunState) -> Option<String> {
    let next = state.calls.tickets.len() + 1;
    let with = |done: bool| state.calls.tickets.iter().filter(move |ticket| ticket.outcome.is_some() == done);
    let on = |kind: &str, ticket: &callslip::ticket::Ticket| format!(r#""{kind}", "ticket_id": "{}""#, ticket.id);
    let call = |tool| format!(r#""CALL", "route": "{tool}", "payload": {{"a": {next}}}, "description": "c""#);
    let said = match choice {
        Choice::Finish => r#""RETURN", "value": 1"#.to_owned(),
        Choice::Call => call("call"),
        Choice::Gated => call("gated"),
        Choice::Delegate => format!(r#""DELEGATE", "task": "part {next}""#),
        Choice::AwaitFirst => on("AWAIT", with(false).next()?),
        // One ticket in progress is the first.
        Choice::AwaitLast => on("AWAIT", with(false).skip(1).last()?),
        Choice::AwaitDone => on("AWAIT", with(true).next()?),
        Choice::Load => on("LOAD_TICKET", with(true).next_back()?),
        Choice::Violation => r#""AWAIT", "ticket_id": "T99""#.to_owned(),
        _ => return None,
    };
    Some(format!(r#"<thoughts>t</thoughts><output>{{"type": {said}}}</output>"#))
}

fn chatty(choice: Choice, state: &RunState) -> Option<String> {
    let turn = state.position.turn;
    let row = |id: &str, tool: &str, arguments: &str| {
        format!(r#"{{"call_id": "{id}{turn}", "tool_name": "{tool}", "arguments": {{{arguments}}}}}"#)
    };
    let call = |id, a: &str| row(id, "call", &format!(r#""a": {a}"#));
    let on = |id| format!(r#""${id}{turn}""#);
    let spawn = |id| row(id, "spawn_agent", &format!(r#""role": "R", "prompt": "part {id}{turn}""#));
    let wait = |ids: &[String]| row("wait", "wait_for_agents", &format!(r#""agent_ids": [{}]"#, ids.join(", ")));
    let agents: Vec<String> = state
        .calls
        .tickets
        .iter()
        .filter(|ticket| ticket.detached)
        .map(|ticket| format!(r#""${}""#, ticket.call_id.as_deref().unwrap_or_default()))
        .collect();
    let one = turn.to_string();
    let rows = match choice {
        Choice::Finish => return Some("The answer.".to_owned()),
        Choice::Call => vec![call("c", &one)],
        Choice::Gated => vec![row("g", "gated", &format!(r#""a": {turn}"#))],
        Choice::Delegate => vec![spawn("s")],
        Choice::Expert => vec![row("e", "expert", &format!(r#""task": "part e{turn}""#))],
        Choice::SpawnWait => vec![spawn("s"), wait(&[on("s")])],
        Choice::SpawnTwo => vec![spawn("s"), spawn("t"), wait(&[on("s"), on("t")])],
        Choice::Wait if agents.is_empty() => return None,
        Choice::Wait => vec![wait(&agents)],
        Choice::UseAgent => vec![call("u", agents.first()?)],
        Choice::Refer => vec![call("x", &one), call("y", &on("x"))],
        Choice::Diamond => vec![
            call("x", &one),
            call("y", &on("x")),
            row("z", "call", &format!(r#""a": {}, "b": 1"#, on("x"))),
            row("w", "call", &format!(r#""a": {}, "b": {}"#, on("y"), on("z"))),
        ],
        Choice::GatedRefer => vec![row("g", "gated", &format!(r#""a": {turn}"#)), call("y", &on("g"))],
        Choice::Violation => return Some("<tool>nothing</tool>".to_owned()),
        _ => return None,
    };
    Some(format!("<tool>[{}]</tool>", rows.join(", ")))
}

fn react(choice: Choice, state: &RunState) -> Option<String> {
    let next = state.calls.tickets.len() + 1;
    let act = |tool: &str, arguments: &str| {
        format!(r#"{{"thought": "t", "action": "{tool}", "args": "{{{}}}"}}"#, arguments.replace('"', r#"\""#))
    };
    Some(match choice {
        Choice::Finish => {
            r#"{"thought": "t", "action": "FINISH", "final_answer": "1", "task_successful": true}"#.to_owned()
        }
        Choice::Call => act("call", &format!(r#""a": {next}"#)),
        Choice::Gated => act("gated", &format!(r#""a": {next}"#)),
        Choice::Delegate => act("delegate_task", &format!(r#""task": "part {next}""#)),
        Choice::Expert => act("expert", &format!(r#""task": "part {next}""#)),
        Choice::Violation => "I would rather not.".to_owned(),
        _ => return None,
    })
}
