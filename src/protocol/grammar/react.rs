//! React: one JSON object. Its `args` are an object, in which quotes and line ends need one escape; where the reader is
//! strict, they are JSON inside a string, as the protocol has them.

use super::text::{Level, string, words};
use super::tree::{Node, Rules};
use super::{Grammar, Scope, callable};
use serde_json::{Value as Json, json};

const THOUGHT: &str = r#"{"thought": "#;
const ACTION: &str = r#", "action": "#;
const ARGS: &str = r#", "args": "#;
const FINISH: &str = r#""FINISH", "final_answer": "#;
const SUCCESSFUL: &str = r#", "task_successful": "#;
const END: &str = "}";

/// Of a react reply; `strict` says that the reader repairs nothing.
pub fn react(scope: &Scope<'_>, strict: bool) -> Grammar {
    let mut rules = Rules::default();
    let mut unruled = Vec::new();
    let (level, quote) = if strict { (Level::Nested, "\"") } else { (Level::Plain, "") };
    let calls = callable(&mut rules, scope, level, None, &mut unruled, |tool| tool.name().into());
    let names: Vec<String> = calls.iter().flat_map(|tool| &tool.names).map(ToString::to_string).collect();
    let mut actions: Vec<Node> = Vec::new();
    let finish = scope.finish || calls.is_empty();
    for tool in calls {
        let quote = || Node::literal(quote);
        let parts = [tool.name(), Node::literal(ARGS), quote(), tool.arguments, quote(), Node::literal(END)];
        actions.push(Node::sequence(parts));
    }
    if finish {
        let answer = string(&mut rules, 1, scope.bounds);
        let success = Node::Choice(["true", "false"].map(Node::literal).to_vec());
        let parts = [Node::literal(FINISH), answer, Node::literal(SUCCESSFUL), success, Node::literal(END)];
        actions.push(Node::sequence(parts));
    }
    let action = Node::choice(actions).unwrap_or_else(Node::empty);
    let thought = words(&mut rules, "thought", 0, scope.most_thoughts());
    let root = Node::sequence([Node::literal(THOUGHT), thought, Node::literal(ACTION), action]);
    Grammar::of(&mut rules, root, scope.bounds.is_some(), Some(json_schema(&names, finish).to_string()), unruled)
}

/// The object as far as servers take a schema: their root is one object whose properties are all there, so that what
/// belongs to another move is null, and `args` is JSON text, which the reader takes apart and checks.
fn json_schema(names: &[String], finish: bool) -> Json {
    let or_null = |kind: &str, there: bool, other: bool| match (there, other) {
        (true, true) => json!({"type": [kind, "null"]}),
        (true, false) => json!({"type": kind}),
        (false, _) => json!({"type": "null"}),
    };
    let calls = !names.is_empty();
    let actions: Vec<&str> = names.iter().map(String::as_str).chain(finish.then_some("FINISH")).collect();
    let properties = json!({
        "thought": {"type": "string"},
        "action": {"type": "string", "enum": actions},
        "args": or_null("string", calls, finish),
        "final_answer": or_null("string", finish, calls),
        "task_successful": or_null("boolean", finish, calls),
    });
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(serde_json::Map::keys).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
