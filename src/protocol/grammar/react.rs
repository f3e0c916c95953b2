//! React: one JSON object, whose `args` are JSON inside a string.

use super::text::{First, Level, string};
use super::tree::{Node, Rules};
use super::{Grammar, Scope, bounds, callable, write};
use serde_json::{Value as Json, json};

const THOUGHT: &str = r#"{"thought": "#;
const ACTION: &str = r#", "action": "#;
const ARGS: &str = r#", "args": ""#;
const ARGS_END: &str = r#""}"#;
const FINISH: &str = r#""FINISH", "final_answer": "#;
const SUCCESSFUL: &str = r#", "task_successful": "#;
const END: &str = "}";

/// Of a react reply.
pub fn react(scope: &Scope<'_>) -> Grammar {
    let mut rules = Rules::default();
    let calls = callable(&mut rules, scope, Level::Nested, First::Any, |tool| tool.name().into());
    let mut actions: Vec<Node> = Vec::new();
    let finish = scope.finish || calls.is_empty();
    for tool in calls {
        let parts = [tool.name(), Node::literal(ARGS), tool.arguments, Node::literal(ARGS_END)];
        actions.push(Node::sequence(parts));
    }
    if finish {
        let answer = string(&mut rules, 1, bounds::ANSWER);
        let success = Node::choice(["true", "false"].map(Node::literal)).unwrap_or_else(Node::empty);
        let parts = [Node::literal(FINISH), answer, Node::literal(SUCCESSFUL), success, Node::literal(END)];
        actions.push(Node::sequence(parts));
    }
    let action = Node::choice(actions).unwrap_or_else(Node::empty);
    let thought = string(&mut rules, 0, scope.thoughts);
    let root = Node::sequence([Node::literal(THOUGHT), thought, Node::literal(ACTION), action]);
    Grammar::of(&rules, &root, Some(json_schema(scope, finish).to_string()))
}

/// The same as far as JSON Schema can say it: the text of `args` by a pattern, where that is not too long.
fn json_schema(scope: &Scope<'_>, finish: bool) -> Json {
    let mut rules = Rules::default();
    let text = |least: u32, most: u32| json!({"type": "string", "minLength": least, "maxLength": most});
    let object = |properties: Json| {
        let names: Vec<String> = properties.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect();
        json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
    };
    let mut moves = Vec::new();
    for tool in callable(&mut rules, scope, Level::Plain, First::Any, |tool| tool.name().into()) {
        let args = match write::pattern(&rules, &tool.arguments, bounds::PATTERN) {
            Some(pattern) => json!({"type": "string", "pattern": format!("^(?:{pattern})$")}),
            None => json!({"type": "string"}),
        };
        let action = match tool.names.as_slice() {
            [name] => json!({"const": name}),
            names => json!({"enum": names}),
        };
        moves.push(object(json!({"thought": text(0, scope.thoughts), "action": action, "args": args})));
    }
    if finish {
        moves.push(object(json!({
            "thought": text(0, scope.thoughts),
            "action": {"const": "FINISH"},
            "final_answer": text(1, bounds::ANSWER),
            "task_successful": {"type": "boolean"},
        })));
    }
    json!({"anyOf": moves})
}
