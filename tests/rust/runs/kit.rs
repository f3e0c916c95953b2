//! What tests of the run machine share: tools of every kind, and machines with them.

use callslip::protocol::{Chatty, FinishReason, Protocol, React, Ticket};
use callslip::run::command::{OnLimit, OnOpenTickets};
use callslip::run::{Command, Limits, Record, RunMachine, Setup};
use callslip::ticket::Outcome;
use callslip::tool::agent_tools::{background, delegate};
use callslip::tool::{ToolSet, ToolSpec};
use serde_json::value::RawValue;
use std::sync::Arc;

fn tool(name: &str, more: &str) -> ToolSpec {
    let json = format!(
        r#"{{"name": "{name}", "description": "", "parameters": {{"type": "object",
            "properties": {{"a": {{}}}}, "required": ["a"]}}{more}}}"#
    );
    serde_json::from_str(&json).unwrap()
}

/// A run that has not begun, of the protocol of this name, with `call`, `look` (readonly), `gated` (which needs
/// approval), `outside`, `gated_outside` and `asks` (whose results come from outside) and all that starts other runs;
/// `expert` is an agent that needs approval.
pub(crate) fn machine(protocol: &str, limits: Limits) -> RunMachine {
    let mut tools = vec![tool("call", ""), tool("gated", r#", "needs_approval": true"#)];
    tools.push(tool("look", r#", "readonly": true"#));
    tools.push(tool("outside", r#", "external": {"returns": {"type": "integer"}, "timeout": 10.0}"#));
    tools.push(tool("gated_outside", r#", "needs_approval": true, "external": {}"#));
    let asks = r#"{"name": "asks", "description": "", "external": {"asks": true}, "parameters": {"type": "object",
        "properties": {"a": {}, "choices": {"type": "array"}, "several": {"type": "boolean"}}}}"#;
    tools.push(serde_json::from_str(asks).unwrap());
    let protocol: Arc<dyn Protocol> = match protocol {
        "ticket" => Arc::new(Ticket::default()),
        "chatty" => {
            tools.extend(background(&[]));
            Arc::new(Chatty::default())
        }
        _ => {
            tools.push(delegate());
            Arc::new(React::default())
        }
    };
    let expert = r#"{"name": "expert", "description": "", "kind": "agent", "needs_approval": true, "parameters":
        {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}}"#;
    tools.push(serde_json::from_str(expert).unwrap());
    let setup = Setup {
        prompt: "p".into(),
        instructions: None,
        examples: [].into(),
        reminder: None,
        delegates: protocol.background(),
        protocol,
        tools: Arc::new(ToolSet::new(tools).unwrap()),
        limits,
        on_limit: OnLimit::Answer,
        on_open_tickets: OnOpenTickets::Wait,
        call_first: false,
        early_stop: true,
        checks_answer: false,
        ends_at_call: false,
        values: None,
        least_certainty: None,
        early_start: true,
    };
    RunMachine::new("r".into(), "agent".into(), None, Arc::new(setup))
}

/// The same, which has begun and asks.
pub(crate) fn begun(protocol: &str, limits: Limits) -> RunMachine {
    let mut machine = machine(protocol, limits);
    machine.start("the work", 1.0);
    machine.commands(1.0);
    machine
}

/// Gives a reply in. Returns what is to be done then.
pub(crate) fn reply(machine: &mut RunMachine, text: &str) -> Vec<Command> {
    machine.reply(text, FinishReason::Stop, None, 2.0);
    machine.commands(2.0)
}

/// A reply of the ticket protocol.
pub(crate) fn output(json: &str) -> String {
    format!("<thoughts>t</thoughts><output>{json}</output>")
}

/// A tool block of calls: id, tool and arguments.
pub(crate) fn block(calls: &[(&str, &str, &str)]) -> String {
    let rows: Vec<String> = calls
        .iter()
        .map(|(id, tool, arguments)| {
            format!(r#"{{"call_id": "{id}", "tool_name": "{tool}", "arguments": {arguments}}}"#)
        })
        .collect();
    format!("<tool>[{}]</tool>", rows.join(", "))
}

/// A reply of the react protocol.
pub(crate) fn act(tool: &str, arguments: &str) -> String {
    format!(r#"{{"thought": "t", "action": "{tool}", "args": {}}}"#, serde_json::to_string(arguments).unwrap())
}

pub(crate) fn ok(json: &str) -> Outcome {
    Outcome::Ok(RawValue::from_string(json.to_owned()).unwrap().into())
}

/// What the model was told last.
pub(crate) fn told(machine: &RunMachine) -> &str {
    &machine.state().conversation.messages.last().unwrap().content
}

/// The log so far, as another process reads it.
pub(crate) fn take_log(machine: &mut RunMachine) -> Vec<Arc<Record>> {
    let read = |record: &Arc<Record>| serde_json::from_str(&serde_json::to_string(record).unwrap()).unwrap();
    machine.take_records().iter().map(|record| Arc::new(read(record))).collect()
}
