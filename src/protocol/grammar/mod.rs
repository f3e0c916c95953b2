//! Grammars of what may be said now, for clients that constrain a model's decoding.
//!
//! A reply that a grammar admits is a valid move: tools, routes and ticket ids are spelled out, arguments are what their
//! schemas admit, properties have one order, and no blank is free. What the reader takes can be written: nothing has a
//! bound but by the schema, or by the [`Bounds`] of a model. Each protocol has a `grammar.rs` with the words around the
//! values, laid out as its built-in prompt shows them.

pub(in crate::protocol) mod bounds;
pub(in crate::protocol) mod chars;
mod excluded_text;
pub(in crate::protocol) mod free_text;
mod further;
pub(in crate::protocol) mod json_string;
mod merge_schemas;
mod number;
mod object;
mod pattern;
pub(in crate::protocol) mod rules;
pub(in crate::protocol) mod schema;
pub(in crate::protocol) mod sentence;
mod write;

pub use bounds::Bounds;
pub use further::Further;

use crate::tool::{AnswerType, ToolKind, ToolSet, ToolView};
use json_string::Level;
use rules::{Node, Rules};
use schema::Converter;
use serde_json::Value as Json;
use std::borrow::Cow;

/// What may be said in the coming reply.
#[derive(Debug, Clone)]
pub struct Scope<'a> {
    /// The tools on offer.
    pub tools: &'a ToolSet,
    /// Whether a call may be made.
    pub calls: bool,
    /// Whether a task may be delegated (ticket).
    pub delegates: bool,
    /// Whether the run may be finished. Where nothing else can be said, it may.
    pub finish: bool,
    /// Ids of tickets in progress, which may be awaited (ticket).
    pub in_progress: Vec<String>,
    /// Ids of completed tickets, which may be loaded or awaited (ticket).
    pub completed: Vec<String>,
    /// Bytes of the longest result, once one was cut: its parts may be asked for (ticket).
    pub longest: Option<usize>,
    /// Agents in the background, which may be waited for (chatty).
    pub agents: Vec<String>,
    /// Characters of thoughts, at most (react, ticket); a small model chooses better with none.
    pub thoughts: Option<u32>,
    /// How much may be said at one place; mostly, as much as the schemas admit.
    pub bounds: Option<Bounds>,
}

impl Scope<'_> {
    /// Characters of thoughts, at most.
    pub(in crate::protocol) fn most_thoughts(&self) -> Option<u32> {
        [self.thoughts, self.bounds.map(|bounds| bounds.thoughts)].into_iter().flatten().min()
    }
}

/// One language in the forms that inference engines take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grammar {
    /// llama.cpp's form.
    pub gbnf: String,
    /// llguidance's form.
    pub lark: String,
    /// JSON Schema, where the reply is one JSON value (react).
    pub json_schema: Option<String>,
    /// Tools whose schema could not be turned into rules: they are called with any object, which is checked then.
    pub unruled: Vec<String>,
    /// The further calls of a block, if the protocol has blocks.
    pub further: Option<Further>,
}

impl Grammar {
    pub(in crate::protocol) fn of(
        rules: &mut Rules,
        root: Node,
        bounded: bool,
        json_schema: Option<String>,
        unruled: Vec<String>,
    ) -> Self {
        let truncated = if bounded { rules.truncated(&root) } else { None };
        let mut root = Node::choice([root].into_iter().chain(truncated)).unwrap_or_else(Node::empty);
        rules.prune(&mut root);
        Self { gbnf: write::gbnf(rules, &root), lark: write::lark(rules, &root), json_schema, unruled, further: None }
    }
}

/// A typed answer: what its schema admits, or any JSON where that cannot be turned into rules. `field` is its name in the
/// protocol.
pub(in crate::protocol) fn answer(
    rules: &mut Rules,
    scope: &Scope<'_>,
    returns: &AnswerType,
    field: &str,
    unruled: &mut Vec<String>,
) -> Node {
    let root = returns.wrapped(field);
    let own = root.pointer(&format!("/properties/{field}")).unwrap_or(&Json::Null);
    let made = Converter::new(rules, Level::Plain, scope.bounds, &root).finite(own, "answer");
    made.unwrap_or_else(|| {
        unruled.push(field.to_owned());
        Converter::new(rules, Level::Plain, scope.bounds, &Json::Bool(true)).any()
    })
}

/// Tools that are called with the same arguments.
pub(in crate::protocol) struct Callable<'a> {
    /// How each is written.
    pub(in crate::protocol) names: Vec<Cow<'a, str>>,
    pub(in crate::protocol) arguments: Node,
}

impl Callable<'_> {
    /// One of the names, as a JSON string.
    pub(in crate::protocol) fn name(&self) -> Node {
        let names = self.names.iter().map(|name| Node::literal(Json::from(&**name).to_string()));
        Node::choice(names).unwrap_or_else(Node::empty)
    }
}

/// The tools that can be called, each with what its schema admits. Of more tools than a prompt has room for the schemas
/// would make a grammar of megabytes: those admit any object, and so do tools whose schema admits none; the check of the
/// arguments knows the rest. With `bodies`, what is the whole body of a request is written in place of the object, too.
pub(in crate::protocol) fn callable<'a>(
    rules: &mut Rules,
    scope: &Scope<'a>,
    level: Level,
    reference: Option<&Node>,
    unruled: &mut Vec<String>,
    bodies: bool,
    written: impl Fn(ToolView<'a>) -> Cow<'a, str>,
) -> Vec<Callable<'a>> {
    if !scope.calls {
        return Vec::new();
    }
    // Waiting has a form of its own, which names the agents that there are.
    let tools = scope.tools.shown().filter(|tool| tool.kind() != ToolKind::Wait);
    let crowded = scope.tools.is_crowded();
    let (own, mut others): (Vec<_>, Vec<_>) = tools.partition(|tool| !crowded || tool.kind().always_in_prompt());
    let mut all: Vec<Callable<'a>> = Vec::new();
    for tool in own {
        let arguments = scope.tools.get(tool.name()).and_then(|spec| {
            let converter = Converter::new(rules, level, scope.bounds, &spec.parameters);
            converter.with_reference(reference.cloned()).arguments(tool.name())
        });
        if let Some(arguments) = arguments {
            let arguments = if bodies { or_whole_body(rules, scope, tool, arguments) } else { arguments };
            all.push(Callable { names: vec![written(tool)], arguments });
        } else {
            unruled.push(tool.name().to_owned());
            others.push(tool);
        }
    }
    if !others.is_empty() {
        let arguments = Converter::new(rules, level, scope.bounds, &Json::Bool(true)).any_arguments();
        all.push(Callable { names: others.into_iter().map(written).collect(), arguments });
    }
    all
}

/// The arguments of a tool, or the body of its request where it takes nothing else.
fn or_whole_body(rules: &mut Rules, scope: &Scope<'_>, tool: ToolView<'_>, arguments: Node) -> Node {
    let Some(spec) = scope.tools.get(tool.name()) else { return arguments };
    let schemas = scope.tools.whole_body_schemas(spec);
    let bodies: Vec<Node> = schemas
        .into_iter()
        .filter_map(|schema| Converter::new(rules, Level::Plain, scope.bounds, &spec.parameters).finite(schema, "body"))
        .collect();
    Node::choice([arguments].into_iter().chain(bodies)).unwrap_or_else(Node::empty)
}
