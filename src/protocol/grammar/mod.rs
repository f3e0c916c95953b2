//! Grammars of what may be said now, for clients that constrain a model's decoding.
//!
//! A reply that a grammar admits is a valid move without repairs: tools, arguments, routes and ticket ids are spelled
//! out, properties have one order, and no blank is free. Every string and list is bounded (`bounds.rs`), so a reply ends
//! before `max_tokens` cuts it. The words around the values stand at the top of `react.rs`, `chatty.rs` and `ticket.rs`,
//! laid out as the built-in prompts show them.

mod bounds;
mod chars;
mod chatty;
mod merge;
mod number;
mod object;
mod pattern;
mod react;
mod schema;
mod text;
mod ticket;
mod tree;
mod write;

pub use chatty::chatty;
pub use react::react;
pub use ticket::ticket;

use crate::tool::{Shown, ToolKind, ToolSet};
use schema::Converter;
use serde_json::Value as Json;
use std::borrow::Cow;
use text::{First, Level};
use tree::{Node, Rules};

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
    /// Agents in the background, which may be waited for (chatty).
    pub agents: Vec<String>,
    /// Characters of thoughts (react, ticket); a small model chooses better with none.
    pub thoughts: u32,
}

/// One language in the forms that inference engines take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grammar {
    /// llama.cpp's form.
    pub gbnf: String,
    /// llguidance's form.
    pub lark: String,
    /// JSON Schema, where the reply is one JSON value (react).
    pub json_schema: Option<String>,
    /// Tokens that the longest reply of the language may take, at most.
    pub max_tokens: u32,
}

impl Grammar {
    fn of(rules: &Rules, root: &Node, json_schema: Option<String>) -> Self {
        let tokens = rules.tokens(root).saturating_add(bounds::MARGIN);
        Self {
            gbnf: write::gbnf(rules, root),
            lark: write::lark(rules, root),
            json_schema,
            max_tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
        }
    }
}

/// Tools that are called with the same arguments.
struct Callable<'a> {
    /// How each is written.
    names: Vec<Cow<'a, str>>,
    arguments: Node,
}

impl Callable<'_> {
    /// One of the names, as a JSON string.
    fn name(&self) -> Node {
        let names = self.names.iter().map(|name| Node::literal(Json::from(&**name).to_string()));
        Node::choice(names).unwrap_or_else(Node::empty)
    }
}

/// The tools that can be called, each with what its schema admits. Of more tools than a prompt has room for the schemas
/// would make a grammar of megabytes: those admit any object, and the check of the arguments knows the rest.
fn callable<'a>(
    rules: &mut Rules,
    scope: &Scope<'a>,
    level: Level,
    first: First,
    written: impl Fn(Shown<'a>) -> Cow<'a, str>,
) -> Vec<Callable<'a>> {
    if !scope.calls {
        return Vec::new();
    }
    // Waiting has a form of its own, which names the agents that there are.
    let tools = scope.tools.shown().filter(|tool| tool.kind() != ToolKind::Wait);
    let crowded = scope.tools.is_crowded();
    let (own, others): (Vec<_>, Vec<_>) = tools.partition(|tool| !crowded || tool.kind().stands_first());
    let each = own.into_iter().filter_map(|tool| {
        let spec = scope.tools.get(tool.name())?;
        let arguments = Converter::new(rules, level, first, &spec.parameters).arguments(tool.name())?;
        Some(Callable { names: vec![written(tool)], arguments })
    });
    let mut all: Vec<Callable<'a>> = each.collect();
    if !others.is_empty() {
        let arguments = Converter::new(rules, level, first, &Json::Bool(true)).any_arguments();
        all.push(Callable { names: others.into_iter().map(written).collect(), arguments });
    }
    all
}
