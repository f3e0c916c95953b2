//! React: one JSON object. Its `args` are an object, in which quotes and line ends need one escape; where the reader is
//! strict, they are JSON inside a string, as the protocol has them.

use crate::protocol::grammar::json_string::{Level, answer_text, words};
use crate::protocol::grammar::rules::{Node, Rules};
use crate::protocol::grammar::{Grammar, Scope, answer, callable};
use crate::tool::AnswerType;
use serde_json::{Value as Json, json};

const THOUGHT: &str = r#"{"thought": "#;
const ACTION: &str = r#", "action": "#;
const ARGS: &str = r#", "args": "#;
const FINISH: &str = r#""FINISH", "final_answer": "#;
/// The key of the answer.
const ANSWER: &str = "final_answer";
/// Keywords that servers know.
const WHOLE: [&str; 12] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$ref",
    "$defs",
    "description",
    "title",
];
const SUCCESSFUL: &str = r#", "task_successful": "#;
const END: &str = "}";

/// Of a react reply; `strict` says that the reader repairs nothing.
pub fn react(scope: &Scope<'_>, strict: bool, returns: Option<&AnswerType>) -> Grammar {
    let mut rules = Rules::default();
    let mut unruled = Vec::new();
    let (level, quote) = if strict { (Level::Nested, "\"") } else { (Level::Plain, "") };
    let calls = callable(&mut rules, scope, level, None, &mut unruled, false, |tool| tool.name().into());
    let names: Vec<String> = calls.iter().flat_map(|tool| &tool.names).map(ToString::to_string).collect();
    let mut actions: Vec<Node> = Vec::new();
    let finish = scope.finish || calls.is_empty();
    for tool in calls {
        let quote = || Node::literal(quote);
        let parts = [tool.name(), Node::literal(ARGS), quote(), tool.arguments, quote(), Node::literal(END)];
        actions.push(Node::sequence(parts));
    }
    if finish {
        let answer = match returns {
            None => answer_text(&mut rules, 1, scope.bounds),
            Some(returns) => answer(&mut rules, scope, returns, ANSWER, &mut unruled),
        };
        let success = Node::Choice(["true", "false"].map(Node::literal).to_vec());
        let parts = [Node::literal(FINISH), answer, Node::literal(SUCCESSFUL), success, Node::literal(END)];
        actions.push(Node::sequence(parts));
    }
    let action = Node::choice(actions).unwrap_or_else(Node::empty);
    let thought = words(&mut rules, "thought", 0, scope.most_thoughts());
    let root = Node::sequence([Node::literal(THOUGHT), thought, Node::literal(ACTION), action]);
    Grammar::of(
        &mut rules,
        root,
        scope.bounds.is_some(),
        Some(json_schema(&names, finish, returns).to_string()),
        unruled,
    )
}

/// The object as far as servers take a schema: their root is one object whose properties are all there, so that what
/// belongs to another move is null, and `args` is JSON text, which the reader takes apart and checks.
fn json_schema(names: &[String], finish: bool, returns: Option<&AnswerType>) -> Json {
    let or_null = |kind: &str, there: bool, other: bool| match (there, other) {
        (true, true) => json!({"anyOf": [{"type": kind}, {"type": "null"}]}),
        (true, false) => json!({"type": kind}),
        (false, _) => json!({"type": "null"}),
    };
    let calls = !names.is_empty();
    let actions: Vec<&str> = names.iter().map(String::as_str).chain(finish.then_some("FINISH")).collect();
    let mut properties = json!({
        "thought": {"type": "string"},
        "action": {"type": "string", "enum": actions},
        "args": or_null("string", calls, finish),
        "final_answer": or_null("string", finish, calls),
        "task_successful": or_null("boolean", finish, calls),
    });
    let typed = returns.filter(|returns| finish && is_whole(returns.schema()));
    let root = typed.map(|returns| returns.wrapped(ANSWER)).unwrap_or_default();
    if let (Some(own), Some(map)) = (root.pointer("/properties/final_answer"), properties.as_object_mut()) {
        let own = if calls { json!({"anyOf": [own, {"type": "null"}]}) } else { own.clone() };
        map.insert(ANSWER.to_owned(), own);
    }
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(serde_json::Map::keys).collect();
    let mut schema =
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    if let (Some(definitions), Some(map)) = (root.get("$defs"), schema.as_object_mut()) {
        map.insert("$defs".to_owned(), definitions.clone());
    }
    schema
}

/// Whether servers take the schema of an answer as it is: each object has all its properties and no others. Else the
/// answer is JSON text, as `args` is.
fn is_whole(schema: &Json) -> bool {
    let Json::Object(map) = schema else { return false };
    let names = |key: &str| map.get(key).and_then(Json::as_object);
    let properties = names("properties");
    let required = map.get("required").and_then(Json::as_array).map_or(0, Vec::len);
    let is_object = map.get("type").is_some_and(|name| name == "object");
    let closed = map.get("additionalProperties").is_some_and(|more| more == false);
    let parts = [properties, names("$defs")];
    let branches = map.get("anyOf").and_then(Json::as_array);
    (!is_object || closed && properties.is_some_and(|properties| properties.len() == required))
        && map.keys().all(|key| WHOLE.contains(&key.as_str()))
        && map.get("items").is_none_or(is_whole)
        && branches.is_none_or(|branches| branches.iter().all(is_whole))
        && parts.into_iter().flatten().all(|parts| parts.values().all(is_whole))
}
