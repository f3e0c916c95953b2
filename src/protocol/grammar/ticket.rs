//! Ticket: thoughts, then one JSON object whose `type` is the move.

use super::chars::CharSet;
use super::schema::Converter;
use super::text::{First, Level, line, string};
use super::tree::{Node, Rules};
use super::{Grammar, Scope, bounds, callable};
use crate::tool::Shown;
use serde_json::Value as Json;
use std::borrow::Cow;

const THOUGHTS: &str = "<thoughts>\n";
const OUTPUT: &str = "\n</thoughts>\n<output>\n{\"type\": ";
const CALL: &str = r#""CALL", "route": "#;
const PAYLOAD: &str = r#", "payload": "#;
const DESCRIPTION: &str = r#", "description": "#;
const AWAIT: &str = r#""AWAIT", "ticket_id": "#;
const LOAD: &str = r#""LOAD_TICKET", "ticket_id": "#;
const DELEGATE: &str = r#""DELEGATE", "task": "#;
const RETURN: &str = r#""RETURN", "value": "#;
const END: &str = "}\n</output>";

/// Of a ticket reply.
pub fn ticket(scope: &Scope<'_>) -> Grammar {
    let mut rules = Rules::default();
    let calls = callable(&mut rules, scope, Level::Plain, First::Any, |tool| route(scope, tool));
    let routes = calls.into_iter().map(|tool| Node::sequence([tool.name(), Node::literal(PAYLOAD), tool.arguments]));
    let mut moves = Vec::new();
    if let Some(routes) = Node::choice(routes) {
        let description = string(&mut rules, 1, bounds::DESCRIPTION);
        moves.push(Node::sequence([Node::literal(CALL), routes, Node::literal(DESCRIPTION), description]));
    }
    if scope.calls && scope.delegates {
        let task = string(&mut rules, 1, bounds::ANSWER);
        moves.push(Node::sequence([Node::literal(DELEGATE), task]));
    }
    moves.extend(about(AWAIT, scope.in_progress.iter().chain(&scope.completed)));
    moves.extend(about(LOAD, scope.completed.iter()));
    if scope.finish || moves.is_empty() {
        let text = string(&mut rules, 1, bounds::ANSWER);
        let nothing = Json::Bool(true);
        let value = Converter::new(&mut rules, Level::Plain, First::Any, &nothing).open_or(text, bounds::OPEN_DEPTH);
        moves.push(Node::sequence([Node::literal(RETURN), value]));
    }
    let chosen = Node::choice(moves).unwrap_or_else(Node::empty);
    let thoughts = line(&mut rules, "thoughts", &CharSet::of("<"), scope.thoughts);
    let parts = [Node::literal(THOUGHTS), thoughts, Node::literal(OUTPUT), chosen, Node::literal(END)];
    Grammar::of(&rules, &Node::sequence(parts), None)
}

/// The route of a tool as the prompt shows it: a plain tool is shown as `POST /name`.
fn route<'a>(scope: &Scope<'a>, tool: Shown<'a>) -> Cow<'a, str> {
    let shown = tool.label(true);
    if matches!(tool, Shown::Operation(..)) {
        return shown;
    }
    match scope.tools.resolve_route(&shown) {
        Ok(found) if found.tool.name == tool.name() && found.path_arguments.is_empty() => shown,
        _ => tool.name().into(),
    }
}

fn about<'a>(opening: &str, ids: impl Iterator<Item = &'a String>) -> Option<Node> {
    let ids = Node::choice(ids.map(|id| Node::literal(Json::from(id.as_str()).to_string())))?;
    Some(Node::sequence([Node::literal(opening), ids]))
}
