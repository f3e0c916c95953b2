//! The native protocol: the tool calls of the model's own interface, under the rules of the other protocols.
//!
//! A reply is an envelope: a line of JSON for each item, in the order of the service, so logs, replay and streaming
//! work as for text. Adapters give the items, and [`write::Writer`] writes them.

pub mod items;
mod read;
mod results;
pub mod write;

use super::example::{ExampleCall, Step};
use super::grammar::{Grammar, Scope};
use super::message_entry::{MessageEntry, Outcomes};
use super::{Correction, Violation};
use super::{Decoder, Message, NamedProtocol, Protocol, ProtocolOptions, ReadOptions, Readable, Role, TemplateError};
use crate::reply::Span;
use crate::reply::span::excerpt;
use crate::tool::{Budget, Layout, ToolSet, ToolSpec, agent_tools};
use items::{Items, Kind, Lines, decode, decoded};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::sync::Arc;

/// The tool for typed answers.
pub const ANSWER_TOOL: &str = "final_answer";
/// The only argument of that tool.
pub const ANSWER: &str = "answer";
/// The separator of two texts in one reply.
const BETWEEN_TEXTS: &str = "\n\n";

/// The native protocol with its options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Native {
    /// Whether a reply may have several calls.
    pub parallel: bool,
    /// The options that all protocols have.
    #[serde(skip)]
    pub options: ProtocolOptions,
}

impl Default for Native {
    fn default() -> Self {
        Self { parallel: true, options: ProtocolOptions::default() }
    }
}

impl NamedProtocol for Native {
    const NAME: &'static str = "native";
    const TEMPLATE: &'static str = "";

    fn with_own_options(own: Json) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Own {
            #[serde(default = "yes")]
            parallel: bool,
        }
        let Own { parallel } = Own::deserialize(own)?;
        Ok(Self { parallel, ..Self::default() })
    }
}

fn yes() -> bool {
    true
}

impl Protocol for Native {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn options(&self) -> &ProtocolOptions {
        &self.options
    }

    fn with_options(&self, options: ProtocolOptions) -> Arc<dyn Protocol> {
        Arc::new(Self { options, ..self.clone() })
    }

    fn answer_name(&self) -> &'static str {
        ANSWER
    }

    fn interface(&self, _tools: &ToolSet) -> (Layout, Budget) {
        // The tools stand in the request and not in the prompt.
        (Layout::Json, Budget(usize::MAX))
    }

    fn system_prompt(&self, _tools: &ToolSet, _delegates: bool, instructions: &str) -> Result<String, TemplateError> {
        Ok(instructions.trim().to_owned())
    }

    fn example(&self, _call: &ExampleCall<'_>) -> Vec<Step> {
        Vec::new()
    }

    fn answers_in_text(&self) -> bool {
        self.options.typed().is_none()
    }

    fn decoder(&self, options: ReadOptions) -> Box<dyn Decoder> {
        Box::new(read::NativeDecoder::new(self.clone(), options))
    }

    fn message(&self, entries: &[MessageEntry], outcomes: Outcomes<'_>) -> String {
        results::message(entries, outcomes)
    }

    fn answer_form(&self) -> Cow<'static, str> {
        match self.options.typed() {
            None => "the answer itself as text, without a call".into(),
            Some(returns) => format!("a call of {ANSWER_TOOL} with {{\"{ANSWER}\": {}}}", returns.shape()).into(),
        }
    }

    fn call_form(&self) -> String {
        "a call of one of the tools, whose arguments are one JSON object".to_owned()
    }

    fn correction(&self, _violation: &Violation, _raw: &str) -> Option<Correction> {
        None
    }

    fn delegation(&self, roles: &[String]) -> Vec<ToolSpec> {
        agent_tools::by_ticket(roles)
    }

    fn spawns_roles(&self) -> bool {
        true
    }

    fn reserved_tool_name(&self) -> Option<&'static str> {
        self.answer_tool()
    }

    fn narrates(&self) -> bool {
        true
    }

    fn shown<'a>(&self, reply: &'a str, span: Span) -> Cow<'a, str> {
        let text = decoded(reply, span);
        // The span of a typed answer is the span of its arguments.
        let is_arguments = reply.get(..span.start).is_some_and(|before| before.ends_with(",\"arguments\":"));
        if !is_arguments {
            return text;
        }
        let answer = serde_json::from_str::<Json>(&text).ok().and_then(|mut given| Some(given.get_mut(ANSWER)?.take()));
        match answer {
            Some(Json::String(text)) => text.into(),
            Some(other) => other.to_string().into(),
            None => text,
        }
    }

    fn pairs_results(&self) -> bool {
        true
    }

    fn call_at(&self, reply: &str, span: Span) -> Option<usize> {
        let lines = Lines::of(reply);
        lines.calls().position(|line| (line.span.start..=line.span.end).contains(&span.start))
    }

    fn answer_tool(&self) -> Option<&'static str> {
        self.options.typed().map(|_| ANSWER_TOOL)
    }

    fn has_parallel_calls(&self) -> bool {
        self.parallel
    }

    fn between_texts(&self) -> &'static str {
        BETWEEN_TEXTS
    }

    fn readable(&self, message: &Message) -> Option<Readable> {
        let items = match message.role {
            Role::System => return None,
            Role::Assistant => Items::of_reply(&message.content),
            Role::User => Items::of_message(&message.content),
        };
        let content = items.readable();
        Some(Readable { content, items: items.0 })
    }

    fn shown_with_places(&self, reply: &str, offsets: &[usize]) -> (String, Vec<usize>) {
        items::shown_with_places(reply, offsets)
    }

    fn published_calls(&self, text: &str) -> Vec<String> {
        super::chatty::Chatty::default().calls_in(text)
    }

    fn private_parts(&self, reply: &str) -> Vec<Span> {
        Lines::of(reply).lines.iter().filter_map(|line| line.data_part(reply)).collect()
    }

    /// A place inside a literal is shown in the text that it stands for.
    fn excerpt(&self, reply: &str, span: Span) -> String {
        let lines = Lines::of(reply);
        let Some(line) = lines.lines.iter().find(|line| line.span.start <= span.start && span.start <= line.span.end)
        else {
            return excerpt(reply, span);
        };
        let literals = match line.kind {
            Kind::Reasoning { text } | Kind::Text { text } => [Some(text), None],
            Kind::Call { tool, arguments, .. } => [Some(tool), Some(arguments)],
            Kind::Fault { message, raw } => [Some(message), Some(raw)],
        };
        let inside =
            literals.into_iter().flatten().find(|literal| literal.start <= span.start && span.end <= literal.end);
        let Some(literal) = inside else {
            let whole = match line.kind {
                Kind::Call { tool, arguments, .. } => {
                    format!("{}({})", decoded(reply, tool), decoded(reply, arguments))
                }
                _ => Items::of_reply(line.span.of(reply)).readable(),
            };
            return excerpt(&whole, Span::new(0, whole.len()));
        };
        let text = decoded(reply, literal);
        let opening = literal.start + 1;
        let inner = |until: usize| {
            let upto = until.clamp(opening, literal.end);
            reply.get(opening..upto).map_or(text.len(), |before| decode(before, 0).text.len()).min(text.len())
        };
        excerpt(&text, Span::new(inner(span.start), inner(span.end)))
    }

    fn examples(&self, _prompt: &str) -> Vec<Span> {
        Vec::new()
    }

    fn own_options(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    /// The model's own interface constrains its calls.
    fn grammar(&self, _scope: &Scope<'_>) -> Grammar {
        Grammar::default()
    }
}
