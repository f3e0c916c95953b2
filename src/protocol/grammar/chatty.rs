//! Chatty: a direct answer, or one tool block.

use super::chars::CharSet;
use super::text::{First, Level};
use super::tree::{Node, Rules};
use super::{Callable, Grammar, Scope, bounds, callable};
use crate::protocol::chatty::read::ToolTags;
use crate::tool::ToolKind;
use serde_json::Value as Json;

/// Between the opening tag and the array, and between the array and the closing tag.
const BLOCK: [&str; 2] = ["\n[", "]\n"];
const CALL_ID: &str = r#"{"call_id": "#;
const TOOL_NAME: &str = r#", "tool_name": "#;
const ARGUMENTS: &str = r#", "arguments": "#;
const AGENT_IDS: &str = r#"{"agent_ids": ["#;
const END: &str = "}";
const BETWEEN: &str = ", ";

/// Of a chatty reply.
pub fn chatty(scope: &Scope<'_>, tags: &ToolTags) -> Grammar {
    let mut rules = Rules::default();
    // `$call_1` as a whole argument would stand for another call's result.
    let calls = callable(&mut rules, scope, Level::Plain, First::NoReference, |tool| tool.name().into());
    let mut forms = Vec::new();
    let wait = wait(scope);
    if scope.finish || (calls.is_empty() && wait.is_none()) {
        forms.push(answer(&mut rules, tags));
    }
    if !calls.is_empty() || wait.is_some() {
        forms.push(block(&mut rules, calls, wait, tags));
    }
    let root = Node::choice(forms).unwrap_or_else(Node::empty);
    Grammar::of(&rules, &root, None)
}

/// The call that waits for agents, from its name on. It is the last one of its block.
fn wait(scope: &Scope<'_>) -> Option<Node> {
    let tool = scope.tools.plain().find(|tool| tool.kind == ToolKind::Wait && scope.calls)?;
    let name = Node::literal(Json::from(tool.name.as_str()).to_string());
    let agents =
        || Node::choice(scope.agents.iter().map(|agent| Node::literal(Json::from(format!("${agent}")).to_string())));
    let (first, more) = (agents()?, Node::sequence([Node::literal(BETWEEN), agents()?]));
    let most = u32::try_from(scope.agents.len()).unwrap_or(u32::MAX).saturating_sub(1);
    let ids = [Node::literal(AGENT_IDS), first, Node::repeat(more, 0, most), Node::literal("]}")];
    Some(Node::sequence([name, Node::literal(ARGUMENTS), Node::sequence(ids), Node::literal(END)]))
}

fn block(rules: &mut Rules, calls: Vec<Callable<'_>>, wait: Option<Node>, tags: &ToolTags) -> Node {
    let calls = calls.into_iter().map(|tool| {
        let parts = [tool.name(), Node::literal(ARGUMENTS), tool.arguments, Node::literal(END)];
        Node::sequence(parts)
    });
    let call = Node::choice(calls).map(|call| rules.rule("call", call));
    let wait = wait.map(|wait| rules.rule("wait", wait));
    // The id of a call is its place: a second one alike would be another call's.
    let mut more = Node::empty();
    for at in (1..=bounds::CALLS).rev() {
        let between = Node::literal(if at > 1 { BETWEEN } else { "" });
        let id = Node::literal(format!(r#"{CALL_ID}"call_{at}"{TOOL_NAME}"#));
        let call = call.clone().map(|call| Node::sequence([call, more]));
        let one = Node::choice(call.into_iter().chain(wait.clone())).unwrap_or_else(Node::empty);
        let one = Node::sequence([between, id, one]);
        more = if at > 1 { Node::optional(one) } else { one };
    }
    let [open, close] = BLOCK;
    let start = Node::literal(format!("{}{open}", tags.start));
    Node::sequence([start, more, Node::literal(format!("{close}{}", tags.end))])
}

/// Plain text that nothing but an answer can be: without what begins a tag, a control token or a JSON object.
fn answer(rules: &mut Rules, tags: &ToolTags) -> Node {
    let mut without = CharSet::controls().minus(&CharSet::of("\n")).union(&CharSet::of("<{}"));
    for tag in [&tags.start, &tags.end] {
        // One mark of a tag is enough to keep the whole tag out.
        let mark = tag.chars().find(|character| !character.is_alphanumeric() && !character.is_whitespace());
        without =
            without.union(&CharSet::of(&mark.or_else(|| tag.chars().next()).map(String::from).unwrap_or_default()));
    }
    let any = without.complement();
    // Control tokens such as `[INST]` and foreign tags such as `[TOOL_CALLS]` begin like this, lists do not.
    let names = CharSet::ranges([('A', 'Z'), ('a', 'z')]).union(&CharSet::of("[/"));
    let bracket = Node::sequence([Node::literal("["), Node::Class(any.minus(&names))]);
    let with_bracket = |set: CharSet| {
        let plain = Node::Class(set.minus(&CharSet::of("[")));
        let bracket = any.contains('[').then(|| bracket.clone());
        Node::choice([plain].into_iter().chain(bracket)).unwrap_or_else(Node::empty)
    };
    let first = with_bracket(any.minus(&CharSet::blanks()));
    let rest = Node::repeat(with_bracket(any.clone()), 0, bounds::ANSWER - 1);
    rules.word("answer", Node::sequence([first, rest]))
}
