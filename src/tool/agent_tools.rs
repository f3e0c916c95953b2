//! The tools by which a run gives tasks to other runs, where its protocol has no move for it.

use super::spec::{Effect, ToolKind, ToolSpec};
use serde_json::{Value as Json, json};

/// Those of the chatty protocol: agents in the background, of any role, `roles` being those that were prepared.
pub fn background(roles: &[String]) -> Vec<ToolSpec> {
    let ids = "The call_ids of the agents, each with a $ before it.";
    in_background(roles, ids, "It must be the last call of a block.")
}

/// Those of the native protocol, whose agents have the ids of their tickets: the ids of calls are the service's.
pub fn by_ticket(roles: &[String]) -> Vec<ToolSpec> {
    in_background(roles, "The agent_ids that spawn_agent has returned.", "It must be the last call of a reply.")
}

fn in_background(roles: &[String], ids: &str, last: &str) -> Vec<ToolSpec> {
    let mut role = "Who the agent is, for example Planner or Reviewer.".to_owned();
    if !roles.is_empty() {
        role.push_str(" Prepared roles: ");
        role.push_str(&roles.join(", "));
        role.push('.');
    }
    let spawn = json!({
        "type": "object",
        "properties": {
            "role": {"type": "string", "description": role},
            "prompt": {"type": "string", "minLength": 1, "description": "What it is to do, with all that it needs to know."},
        },
        "required": ["role", "prompt"],
        "additionalProperties": false,
    });
    let wait = json!({
        "type": "object",
        "properties": {
            "agent_ids": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "description": ids,
            },
        },
        "required": ["agent_ids"],
        "additionalProperties": false,
    });
    vec![
        spec("spawn_agent", "Start another agent, which works in the background.", spawn, ToolKind::Spawn),
        spec(
            "wait_for_agents",
            &format!("Wait until agents have ended and get their results. {last}"),
            wait,
            ToolKind::Wait,
        ),
    ]
}

/// The one of the react protocol, in which a call ends before the next reply.
pub fn delegate() -> ToolSpec {
    let task = json!({
        "type": "object",
        "properties": {
            "task": {"type": "string", "minLength": 1, "description": "The part of the task, with all that is needed to know."},
        },
        "required": ["task"],
        "additionalProperties": false,
    });
    let description = "Give a part of the task to another agent with the same tools, and get its answer.";
    spec("delegate_task", description, task, ToolKind::Delegate)
}

fn spec(name: &str, description: &str, parameters: Json, kind: ToolKind) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
        kind,
        effect: Effect::Idempotent,
        readonly: false,
        reconciles: false,
        needs_approval: false,
        checks_approval: false,
        // Waiting for the same agents once more gives the same results, and does no harm.
        repeatable: kind == ToolKind::Wait,
        untrusted: false,
        queue: None,
        reads: std::collections::BTreeMap::new(),
        external: None,
        values: std::collections::BTreeMap::new(),
        asks_untrusted: false,
    }
}
