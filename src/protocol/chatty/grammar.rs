//! Chatty: a direct answer, or one tool block, perhaps with narration before it.
//!
//! A reply that turns into a call without tags is led into a block: the reader would refuse the call where it stands.

use super::read::ToolTags;
use super::typed;
use crate::protocol::grammar::bounds::{self, Bounds};
use crate::protocol::grammar::chars::CharSet;
use crate::protocol::grammar::free_text;
use crate::protocol::grammar::json_string::Level;
use crate::protocol::grammar::rules::{Node, Rules};
use crate::protocol::grammar::sentence::SentenceEnd;
use crate::protocol::grammar::{Callable, Further, Grammar, Scope, answer, callable};
use crate::tool::{AnswerType, ToolKind};
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
pub fn chatty(scope: &Scope<'_>, tags: &ToolTags, returns: Option<&AnswerType>) -> Grammar {
    let mut rules = Rules::default();
    let mut unruled = Vec::new();
    let first = callable(&mut rules, scope, Level::Plain, None, &mut unruled, false, |tool| tool.name().into());
    // The result of a call before it can stand for any argument.
    let any = Node::sequence([
        Node::literal("\"$call_"),
        Node::repeat(Node::Class(CharSet::digits()), 1, Some(3)),
        Node::literal("\""),
    ]);
    let reference = rules.word("reference", any);
    let later =
        callable(&mut rules, scope, Level::Plain, Some(&reference), &mut Vec::new(), false, |tool| tool.name().into());
    let mut forms = Vec::new();
    let mut further = None;
    let wait = wait(scope);
    if scope.finish || (first.is_empty() && wait.is_none()) {
        forms.push(match (returns, scope.bounds) {
            (Some(returns), _) => {
                let answer = answer(&mut rules, scope, returns, typed::ANSWER, &mut unruled);
                Node::sequence([Node::literal(typed::START), answer, Node::literal(typed::END)])
            }
            (None, None) => free_text::answer(&mut rules, &tags.start, &tags.end),
            (None, Some(bounds)) => short_answer(&mut rules, tags, bounds),
        });
    }
    if !first.is_empty() || wait.is_some() {
        let [open, _] = BLOCK;
        let open = format!("{}{open}", tags.start);
        // One word, whatever marks the tag is made of: an answer may begin with the first of them.
        let mut starts = vec![rules.word("block", Node::literal(open.as_str()))];
        if scope.finish && scope.bounds.is_none() {
            starts.extend(free_text::before_block(&mut rules, (&tags.start, &tags.end), &open));
        }
        let start = Node::choice(starts).unwrap_or_else(Node::empty);
        // The call that waits for agents is the last of its block.
        let can_go_on = wait.is_none();
        let (calls, more) = calls(&mut rules, scope, first, later, wait, tags);
        forms.push(Node::sequence([start, calls]));
        further = can_go_on.then_some((open, more));
    }
    let root = Node::choice(forms).unwrap_or_else(Node::empty);
    let grammar = Grammar::of(&mut rules, root, scope.bounds.is_some(), None, unruled);
    let further = further.map(|(open, more)| Further::new(&rules, open, TOOL_NAME, &more));
    Grammar { further, ..grammar }
}

/// The call that waits for agents, from its name on. It is the last one of its block.
fn wait(scope: &Scope<'_>) -> Option<Node> {
    let tool = scope.tools.plain().find(|tool| tool.kind == ToolKind::Wait && scope.calls)?;
    let name = Node::literal(Json::from(tool.name.as_str()).to_string());
    let agents =
        || Node::choice(scope.agents.iter().map(|agent| Node::literal(Json::from(format!("${agent}")).to_string())));
    let (first, more) = (agents()?, Node::sequence([Node::literal(BETWEEN), agents()?]));
    let most = u32::try_from(scope.agents.len()).unwrap_or(u32::MAX).saturating_sub(1);
    let ids = [Node::literal(AGENT_IDS), first, Node::repeat(more, 0, Some(most)), Node::literal("]}")];
    Some(Node::sequence([name, Node::literal(ARGUMENTS), Node::sequence(ids), Node::literal(END)]))
}

/// The calls of a block and its end; and the rests of a block by the number of calls before them, with one more call.
fn calls(
    rules: &mut Rules,
    scope: &Scope<'_>,
    first: Vec<Callable<'_>>,
    later: Vec<Callable<'_>>,
    wait: Option<Node>,
    tags: &ToolTags,
) -> (Node, Vec<Node>) {
    let mut call = |tools: Vec<Callable<'_>>, hint: &str| {
        let calls = tools.into_iter().map(|tool| {
            let parts = [tool.name(), Node::literal(ARGUMENTS), tool.arguments, Node::literal(END)];
            Node::sequence(parts)
        });
        Node::choice(calls).map(|call| rules.rule(hint, call))
    };
    let (first, later) = (call(first, "call"), call(later, "later-call"));
    let wait = wait.map(|wait| rules.rule("wait", wait));
    let [_, close] = BLOCK;
    let close = format!("{close}{}", tags.end);
    // Models write a line a call as well, as JSON in code is. With one form only, the other's token is taken from them,
    // and the next likely one ends the array.
    let lines = Node::sequence([Node::literal("\n"), Node::repeat(Node::Class(CharSet::of(" ")), 0, Some(2))]);
    let blank = Node::choice([Node::literal(" "), lines]).unwrap_or_else(Node::empty);
    let between = rules.rule("between", Node::sequence([Node::literal(","), blank]));
    let numbered = scope.bounds.map_or(bounds::NUMBERED, |bounds| bounds.items.max(1));
    // The id of a call is its place: a second one alike would be another call's. Past those that are numbered here, ids
    // have more digits.
    let mut more = match scope.bounds {
        Some(_) => None,
        None => later.clone().map(|call| {
            let digits = Node::repeat(Node::Class(CharSet::digits()), 1, Some(2));
            let number = [Node::Class(CharSet::ranges([('1', '9')])), Node::Class(CharSet::digits()), digits];
            let id = [between.clone(), Node::literal(format!(r#"{CALL_ID}"call_"#))].into_iter().chain(number);
            let one = Node::sequence(id.chain([Node::literal(format!(r#""{TOOL_NAME}"#)), call]));
            rules.rule("more-calls", Node::any_number(one))
        }),
    };
    let mut further = Vec::new();
    for at in (1..=numbered).rev() {
        let between = if at > 1 { between.clone() } else { Node::empty() };
        let id = Node::sequence([between, Node::literal(format!(r#"{CALL_ID}"call_{at}"{TOOL_NAME}"#))]);
        let call = if at > 1 { later.clone() } else { first.clone() };
        let next = more.take().unwrap_or_else(Node::empty);
        let call = call.map(|call| Node::sequence([call, next]));
        let Some(one) = Node::choice(call.into_iter().chain(wait.clone())) else { continue };
        let one = Node::sequence([id, one]);
        more = Some(if at > 1 {
            let full = at == numbered && scope.bounds.is_some();
            let one = if full {
                Node::bounded(one, 0, 1)
            } else {
                let one = rules.rule("further-calls", one);
                further.push(Node::sequence([one.clone(), Node::literal(close.as_str())]));
                Node::optional(one)
            };
            rules.rule("calls", one)
        } else {
            one
        });
    }
    further.reverse();
    (Node::sequence([more.unwrap_or_else(Node::empty), Node::literal(close)]), further)
}

/// A plain answer of bounded length, without what begins a tag, a control token or JSON. A longer one ends with its
/// sentence. Where that is as far away as the answer is long, it breaks off behind an opening tag, so that it is no answer.
fn short_answer(rules: &mut Rules, tags: &ToolTags, bounds: Bounds) -> Node {
    let mut without = CharSet::of("<{}");
    for tag in [&tags.start, &tags.end] {
        // One mark of a tag is enough to keep the whole tag out.
        let mark = tag.chars().find(|character| !character.is_alphanumeric() && !character.is_whitespace());
        without =
            without.union(&CharSet::of(&mark.or_else(|| tag.chars().next()).map(String::from).unwrap_or_default()));
    }
    let any = free_text::characters().minus(&without);
    // Control tokens such as `[INST]` and foreign tags such as `[TOOL_CALLS]` begin like this, lists do not.
    let names = CharSet::ranges([('A', 'Z'), ('a', 'z')]).union(&CharSet::of("[/"));
    let bracket = Node::sequence([Node::literal("["), Node::Class(any.minus(&names))]);
    let plain = Node::Class(any.minus(&CharSet::of("[")));
    let bracket = any.contains('[').then_some(bracket);
    let rest = SentenceEnd::new(&any.minus(&CharSet::of("[")), bracket.clone());
    let one = Node::choice([plain].into_iter().chain(bracket)).unwrap_or_else(Node::empty);
    let first = Node::Class(any.minus(&CharSet::blanks()).minus(&CharSet::of("[`~")));
    let most = bounds.answer.max(2) - 1;
    let short = rules.word("answer", Node::sequence([first.clone(), Node::repeat(one.clone(), 0, Some(most - 1))]));
    let long = Node::sequence([first, Node::times(one, most)]);
    let ended = [long.clone(), Node::repeat(rest.piece.clone(), 0, Some(most)), rest.end];
    let cut = [long, Node::times(rest.piece, most + 1), Node::literal(tags.start.as_str())];
    let ended = rules.word("ended-answer", Node::sequence(ended));
    Node::Choice(vec![short, ended, rules.word("long-answer", Node::sequence(cut))])
}
