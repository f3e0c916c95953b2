//! Ticket: thoughts, then one JSON object whose `type` is the move.

use crate::protocol::grammar::chars::CharSet;
use crate::protocol::grammar::free_text::text_before;
use crate::protocol::grammar::json_string::{Level, answer_text, string, words};
use crate::protocol::grammar::rules::{Node, Rules};
use crate::protocol::grammar::schema::Converter;
use crate::protocol::grammar::{Grammar, Scope, answer, callable};
use crate::tool::{AnswerType, ToolView};
use serde_json::Value as Json;
use std::borrow::Cow;

const THOUGHTS: &str = "<thoughts>\n";
const OUTPUT: &str = "\n</thoughts>\n<output>\n{\"type\": ";
const CALL: &str = r#""CALL", "route": "#;
const PAYLOAD: &str = r#", "payload": "#;
const DESCRIPTION: &str = r#", "description": "#;
const AWAIT: &str = r#""AWAIT", "ticket_id": "#;
const LOAD: &str = r#""LOAD_TICKET", "ticket_id": "#;
const OFFSET: &str = r#", "offset": "#;
const DELEGATE: &str = r#""DELEGATE", "task": "#;
const RETURN: &str = r#""RETURN", "value": "#;
const END: &str = "}\n</output>";

/// Of a ticket reply.
/// `names` is whether the prompt shows tools by their names alone; then both are offered.
pub fn ticket(scope: &Scope<'_>, names: bool, returns: Option<&AnswerType>) -> Grammar {
    let mut rules = Rules::default();
    let mut unruled = Vec::new();
    let mut calls = callable(&mut rules, scope, Level::Plain, None, &mut unruled, true, |tool| route(scope, tool));
    if names {
        for call in &mut calls {
            let name = |route: &Cow<'_, str>| route.strip_prefix("POST /").unwrap_or(route).to_owned().into();
            let shown: Vec<Cow<'_, str>> = call.names.iter().map(name).collect();
            let routes = std::mem::replace(&mut call.names, shown);
            // The grammar of a crowd would grow to twice its size.
            if !scope.tools.is_crowded() {
                let others: Vec<_> = routes.into_iter().filter(|route| !call.names.contains(route)).collect();
                call.names.extend(others);
            }
        }
    }
    let routes = calls.into_iter().map(|tool| Node::sequence([tool.name(), Node::literal(PAYLOAD), tool.arguments]));
    let mut moves = Vec::new();
    if let Some(routes) = Node::choice(routes) {
        let description = words(&mut rules, "description", 1, scope.bounds.map(|bounds| bounds.thoughts));
        moves.push(Node::sequence([Node::literal(CALL), routes, Node::literal(DESCRIPTION), description]));
    }
    if scope.calls && scope.delegates {
        let task = string(&mut rules, 1, scope.bounds);
        moves.push(Node::sequence([Node::literal(DELEGATE), task]));
    }
    moves.extend(about(AWAIT, scope.in_progress.iter().chain(&scope.completed)));
    moves.extend(about(LOAD, scope.completed.iter()).map(|load| match scope.longest {
        Some(bytes) => Node::sequence([load, Node::optional(offset(bytes))]),
        None => load,
    }));
    if scope.finish || moves.is_empty() {
        let value = if let Some(returns) = returns {
            answer(&mut rules, scope, returns, "value", &mut unruled)
        } else {
            let text = answer_text(&mut rules, 0, scope.bounds);
            Converter::new(&mut rules, Level::Plain, scope.bounds, &Json::Bool(true)).any_or(text)
        };
        moves.push(Node::sequence([Node::literal(RETURN), value]));
    }
    let chosen = Node::choice(moves).unwrap_or_else(Node::empty);
    let thoughts = match scope.most_thoughts() {
        // Where there is a bound, thoughts are plain enough that nothing in them can be a tag.
        Some(most) => {
            let plain = CharSet::controls().minus(&CharSet::of("\t\n")).union(&CharSet::of("<")).complement();
            let thoughts = Node::repeat(Node::Class(plain), 0, Some(most));
            rules.word("thoughts", Node::sequence([thoughts, Node::literal(OUTPUT)]))
        }
        None => text_before(&mut rules, "thoughts", &["thoughts", "output"], OUTPUT),
    };
    let root = Node::sequence([Node::literal(THOUGHTS), thoughts, chosen, Node::literal(END)]);
    Grammar::of(&mut rules, root, scope.bounds.is_some(), None, unruled)
}

/// The route of a tool as the prompt shows it: a plain tool is shown as `POST /name`.
fn route<'a>(scope: &Scope<'a>, tool: ToolView<'a>) -> Cow<'a, str> {
    let shown = tool.label(true);
    if matches!(tool, ToolView::Operation(..)) {
        return shown;
    }
    match scope.tools.resolve_route(&shown) {
        Ok(found) if found.tool.name == tool.name() && found.path_arguments.is_empty() => shown,
        _ => tool.name().into(),
    }
}

/// Where the result of a ticket goes on, with as many digits as the longest one needs.
fn offset(bytes: usize) -> Node {
    let digits = u32::try_from(bytes.to_string().len()).unwrap_or(1);
    let more = Node::repeat(Node::Class(CharSet::digits()), 0, Some(digits - 1));
    let number = Node::sequence([Node::Class(CharSet::ranges([('1', '9')])), more]);
    Node::sequence([Node::literal(OFFSET), Node::Choice(vec![Node::literal("0"), number])])
}

fn about<'a>(opening: &str, ids: impl Iterator<Item = &'a String>) -> Option<Node> {
    let ids = Node::choice(ids.map(|id| Node::literal(Json::from(id.as_str()).to_string())))?;
    Some(Node::sequence([Node::literal(opening), ids]))
}
