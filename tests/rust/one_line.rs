//! A fourth protocol, which only the tests have: a reply is one line of JSON, `{"tool": …, "args": {…}}` or
//! `{"answer": …}`. It shows what a protocol needs, and that nothing else knows the protocols by name.

use callslip::protocol::example::{ExampleCall, Step};
use callslip::protocol::grammar::{Grammar, Scope};
use callslip::protocol::prompt::{Placeholder, Style, render};
use callslip::protocol::{
    Code, Correction, Decoder, Delta, FinishReason, MessageEntry, Move, NamedProtocol, Outcomes, Protocol,
    ProtocolKind, ProtocolOptions, ReadOptions, Reply, Status, TemplateError, TextSpans, ToolCall, Violation,
};
use callslip::reply::{Object, Span, Value};
use callslip::ticket::Outcome;
use callslip::tool::{Budget, Layout, ToolSet};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::sync::Arc;

/// The name, also in logs.
pub(crate) const NAME: &str = "one_line";

const CALL: &str = r#"{"tool": "name", "args": {"parameter": "value"}}"#;
const ANSWER: &str = r#"{"answer": "..."}"#;

/// Adds the protocol to the list, once for each process.
pub(crate) fn register() {
    ProtocolKind::of::<OneLine>().register();
}

/// The protocol with its options.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct OneLine {
    #[serde(skip)]
    options: ProtocolOptions,
}

impl NamedProtocol for OneLine {
    const NAME: &'static str = NAME;
    const TEMPLATE: &'static str = "Reply with one line of JSON: a call or an answer.\n{{tools}}\n";

    fn with_own_options(_own: Json) -> serde_json::Result<Self> {
        Ok(Self::default())
    }
}

impl Protocol for OneLine {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn options(&self) -> &ProtocolOptions {
        &self.options
    }

    fn with_options(&self, options: ProtocolOptions) -> Arc<dyn Protocol> {
        Arc::new(Self { options })
    }

    fn answer_name(&self) -> &'static str {
        "answer"
    }

    fn interface(&self, _tools: &ToolSet) -> (Layout, Budget) {
        (Layout::List, self.options.budget)
    }

    fn system_prompt(&self, tools: &ToolSet, _delegates: bool, instructions: &str) -> Result<String, TemplateError> {
        let interface = tools.interface(Layout::List, self.options.budget);
        let tools = Placeholder { name: "tools", value: &interface, required: true };
        let template = self.options.template.as_deref().unwrap_or(Self::TEMPLATE);
        render(template, Style::DoubleBraces, &[tools], instructions)
    }

    fn example(&self, call: &ExampleCall<'_>) -> Vec<Step> {
        vec![
            Step::UserMessage(vec![MessageEntry::Task(call.task.clone())]),
            Step::Reply(format!(r#"{{"tool": {}, "args": {}}}"#, Json::from(call.tool), call.arguments)),
            Step::UserMessage(vec![MessageEntry::Result { ticket: call.ticket, times: 1 }]),
            Step::Reply(format!(r#"{{"answer": {}}}"#, Json::from(call.answer))),
        ]
    }

    fn decoder(&self, _options: ReadOptions) -> Box<dyn Decoder> {
        Box::new(LineDecoder::default())
    }

    fn message(&self, entries: &[MessageEntry], outcomes: Outcomes<'_>) -> String {
        let part = |entry: &MessageEntry| match entry {
            MessageEntry::Task(text)
            | MessageEntry::Reminder(text)
            | MessageEntry::Note(text)
            | MessageEntry::Violation(text)
            | MessageEntry::Refused { feedback: text, .. }
            | MessageEntry::LastTurn(text) => text.clone(),
            MessageEntry::Result { ticket, .. } => {
                let outcome = outcomes.tickets.get(*ticket).and_then(|ticket| ticket.outcome.as_ref());
                match outcome {
                    Some(Outcome::Ok(json)) => json.get().to_owned(),
                    Some(other) => other.text().to_owned(),
                    None => String::new(),
                }
            }
            _ => String::new(),
        };
        entries.iter().map(part).collect::<Vec<_>>().join("\n\n")
    }

    fn answer_form(&self) -> Cow<'static, str> {
        ANSWER.into()
    }

    fn call_form(&self) -> String {
        CALL.to_owned()
    }

    fn correction(&self, _violation: &Violation, _raw: &str) -> Option<Correction> {
        None
    }

    fn examples(&self, prompt: &str) -> Vec<Span> {
        let lines = prompt.lines().filter(|line| line.starts_with(r#"{"tool""#) || line.starts_with(r#"{"answer""#));
        let place = |line: &str| prompt.find(line).map(|start| Span::new(start, start + line.len()));
        lines.filter_map(place).collect()
    }

    fn own_options(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn grammar(&self, _scope: &Scope<'_>) -> Grammar {
        let schema = Some(r#"{"type": "object"}"#.to_owned());
        Grammar { json_schema: schema, ..Grammar::default() }
    }
}

/// Reads a line of JSON, to which nothing may be added.
#[derive(Default)]
struct LineDecoder {
    bytes: Vec<u8>,
    /// The end of the object.
    complete: Option<usize>,
}

impl LineDecoder {
    /// The move of a whole line, and the deltas for it.
    fn read(line: &str, start: usize) -> Option<(Move, Vec<Delta>)> {
        let value: Value = serde_json::from_str(line).ok()?;
        let object = value.as_object()?;
        let span = Span::new(start, start + line.len());
        let field = |name| object.get(name);
        match (field("tool"), field("args"), field("answer"), object.len()) {
            (Some(Value::String(tool)), Some(Value::Object(arguments)), None, 2) => {
                let arguments = Arc::new(Value::Object(Object::clone(arguments)));
                let name = tool.to_string();
                let deltas = vec![
                    Delta::Tool { call: 0, name: name.clone(), span },
                    Delta::Arguments { call: 0, text: arguments.to_json() },
                ];
                let call = ToolCall {
                    call_id: None,
                    tool: name,
                    arguments,
                    description: None,
                    span,
                    tool_span: span,
                    arguments_span: span,
                    unread: Vec::new(),
                };
                Some((Move::Call { calls: vec![call] }, deltas))
            }
            (None, None, Some(Value::String(answer)), 1) => {
                let value = Arc::new(Value::String(answer.clone()));
                let finish = Move::Finish { value, success: None, coerced: Vec::new() };
                Some((finish, vec![Delta::Answer(answer.to_string())]))
            }
            _ => None,
        }
    }
}

impl Decoder for LineDecoder {
    fn push(&mut self, chunk: &[u8], deltas: &mut Vec<Delta>) -> Status {
        self.bytes.extend_from_slice(chunk);
        let text = String::from_utf8_lossy(&self.bytes);
        if let Some(end) = self.complete {
            let blank = text.get(end..).is_some_and(|rest| rest.trim().is_empty());
            return if blank { Status::Complete(end) } else { Status::Doomed };
        }
        let line = text.trim();
        let start = text.len() - text.trim_start().len();
        if line.ends_with('}')
            && let Some((_, news)) = Self::read(line, start)
        {
            let end = start + line.len();
            self.complete = Some(end);
            deltas.extend(news);
            return Status::Complete(end);
        }
        Status::Open
    }

    fn settled(&self) -> Option<usize> {
        None
    }

    fn finish(self: Box<Self>, _reason: FinishReason) -> Reply {
        let raw = String::from_utf8_lossy(&self.bytes).into_owned();
        let read = Self::read(raw.trim(), raw.len() - raw.trim_start().len());
        let outcome = match read {
            Some((found, _)) => Ok(found),
            None => Err(Violation::new(Code::NoAction, "expected one line of JSON with 'tool' or 'answer': got none")),
        };
        let (repairs, discarded, around) = (Vec::new(), Vec::new(), Vec::new());
        let spans = TextSpans::default();
        Reply { raw, thoughts: None, reasoning: None, narration: None, spans, outcome, repairs, discarded, around }
    }
}
