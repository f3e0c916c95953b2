//! The react protocol: one JSON object `{thought, action, args}` a reply, until `FINISH`.

pub mod grammar;
pub mod read;

use super::example::{ExampleCall, Step};
use super::grammar::{Grammar, Scope};
use super::message_entry::{MessageEntry, Outcomes, ends_line, indented, quote, repetition};
use super::prompt::{PERSONA, Placeholder, Style, render};
use super::{Code, Correction, Violation, published};
use super::{Decoder, NamedProtocol, Protocol, ProtocolOptions, ReadOptions, TemplateError, answer, lint, text_spans};
use crate::reply::{RepairPolicy, Span};
use crate::ticket::Outcome;
use crate::tool::{Budget, Layout, ToolSet, ToolSpec, agent_tools};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::sync::Arc;

/// The built-in prompt. It is short, because a small local model reads every token of it on one core.
pub const TEMPLATE: &str = include_str!("prompts/react.txt");

/// The action that ends a run.
const FINISH: &str = "FINISH";

/// The key of the answer, and the passages of the built-in prompt that say that it is text.
const ANSWER: &str = "final_answer";
const PLAIN_ANSWER: &str = r#""final_answer": "the answer""#;
const PLAIN_SUCCESS: &str = "Set `task_successful` to false and explain in `final_answer` if the task cannot be done.";
/// The second passage for a typed answer.
const SUCCESS: &str = "Set `task_successful` to false if the task cannot be done.";

/// The react protocol with its options.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct React {
    /// The options that all protocols have.
    #[serde(skip)]
    pub options: ProtocolOptions,
}

impl NamedProtocol for React {
    const NAME: &'static str = "react";
    const TEMPLATE: &'static str = TEMPLATE;

    fn with_own_options(own: Json) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Own {}
        let Own {} = Own::deserialize(own)?;
        Ok(Self::default())
    }
}

impl Protocol for React {
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
        ANSWER
    }

    fn interface(&self, _tools: &ToolSet) -> (Layout, Budget) {
        (self.layout(), self.options.budget)
    }

    fn system_prompt(&self, tools: &ToolSet, _delegates: bool, instructions: &str) -> Result<String, TemplateError> {
        let interface = tools.interface(self.layout(), self.options.budget);
        let (value, args) = if self.is_strict() {
            (r#""{\"parameter\": \"value\"}""#, "a string that holds a JSON object")
        } else {
            (r#"{"parameter": "value"}"#, "a JSON object")
        };
        let placeholders = [
            Placeholder { name: "tools", value: &interface, required: true },
            Placeholder { name: PERSONA, value: instructions, required: false },
            // A template that was made from the built-in one may have these.
            Placeholder { name: "value", value, required: false },
            Placeholder { name: "args", value: args, required: false },
        ];
        let template = self.options.template.as_deref().unwrap_or(TEMPLATE);
        Ok(self.with_answer(render(template, Style::Format, &placeholders, instructions)?))
    }

    fn example(&self, call: &ExampleCall<'_>) -> Vec<Step> {
        let name = quote(call.tool);
        let as_text = self.is_strict() || self.options.template.as_deref().is_some_and(has_text_args);
        let args = if as_text { quote(&call.arguments) } else { call.arguments.clone() };
        let (thought, answer) =
            (quote(&format!("I call {}.", call.signature)), quote(&format!("It is {}.", call.answer)));
        let answer = self.options.typed().map_or(answer, |returns| answer::example(returns, ANSWER));
        vec![
            Step::UserMessage(vec![MessageEntry::Task(call.task.clone())]),
            Step::Reply(format!(r#"{{"thought": {thought}, "action": {name}, "args": {args}}}"#)),
            Step::UserMessage(vec![MessageEntry::Result { ticket: call.ticket, times: 1 }]),
            Step::Reply(format!(
                r#"{{"thought": "The observation has the result.", "action": "FINISH", "final_answer": {answer}, "task_successful": true}}"#
            )),
        ]
    }

    fn decoder(&self, options: ReadOptions) -> Box<dyn Decoder> {
        published::beside(self.host(), options, &self.options.reasoning_tags, self.own())
    }

    fn message(&self, entries: &[MessageEntry], outcomes: Outcomes<'_>) -> String {
        let parts: Vec<String> = entries.iter().map(|entry| part(entry, outcomes)).collect();
        parts.join("\n\n")
    }

    fn feedback_opening(&self) -> &'static str {
        "Observation: "
    }

    fn answer_form(&self) -> Cow<'static, str> {
        match self.options.typed() {
            None => r#"{"thought": "...", "action": "FINISH", "final_answer": "...", "task_successful": true}"#.into(),
            Some(returns) => read::finish_form(returns).into(),
        }
    }

    fn answer_hint(&self) -> Option<&'static str> {
        Some(read::ANSWER)
    }

    fn call_form(&self) -> String {
        read::call_form(self.options.read.repairs).to_owned()
    }

    fn correction(&self, violation: &Violation, raw: &str) -> Option<Correction> {
        if violation.code == Code::WrongTag {
            let calls =
                published::calls(self.host(), self.options.read, &self.options.reasoning_tags, raw, self.own())?;
            let call = calls.first()?;
            return Some(Correction::certain(read::written_call(
                &call.tool,
                &call.arguments,
                self.options.read.repairs,
            )));
        }
        read::corrected(raw, self.options.read.repairs, self.options.typed())
    }

    fn delegation(&self, _roles: &[String]) -> Vec<ToolSpec> {
        vec![agent_tools::delegate()]
    }

    fn reserved_tool_name(&self) -> Option<&'static str> {
        Some(FINISH)
    }

    fn shown<'a>(&self, reply: &'a str, span: Span) -> Cow<'a, str> {
        let text = span.of(reply);
        match text_spans::string(text) {
            Some(says) => Cow::Owned(says),
            None => text_spans::read_again(self, reply, span).map_or(Cow::Borrowed(text), Cow::Owned),
        }
    }

    fn examples(&self, prompt: &str) -> Vec<Span> {
        lint::objects(prompt, read::MOVE_KEYS)
    }

    fn own_options(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn grammar(&self, scope: &Scope<'_>) -> Grammar {
        grammar::react(scope, self.is_strict(), self.options.typed())
    }
}

impl React {
    /// Whether repairs are refused, so `args` is text that contains an object.
    fn is_strict(&self) -> bool {
        self.options.read.repairs == RepairPolicy::Strict
    }

    /// The prompt with the description of the answer type.
    fn with_answer(&self, prompt: String) -> String {
        let Some(returns) = self.options.typed() else { return prompt };
        let (described, example) = (answer::described(returns, "`final_answer`"), answer::example(returns, ANSWER));
        if self.options.template.is_some() {
            return answer::appended(&prompt, &format!("{described} For example: {example}"));
        }
        let example = format!(r#""final_answer": {example}"#);
        answer::replaced(prompt, &[(PLAIN_ANSWER, example), (PLAIN_SUCCESS, format!("{described}\n{SUCCESS}"))])
    }

    fn layout(&self) -> Layout {
        if self.options.template.is_none() { Layout::Lines } else { Layout::List }
    }

    /// Makes decoders of its own form.
    fn own(&self) -> impl Fn(ReadOptions) -> Box<dyn Decoder> + Send + 'static {
        let (reasoning, returns) = (self.options.reasoning_tags.clone(), self.options.typed().cloned());
        move |options| read::decoder(options, &reasoning, returns.as_ref())
    }

    /// How calls in published forms are read.
    fn host(&self) -> published::Host {
        published::Host {
            wanted: "one JSON object with 'action'".into(),
            form: read::call_form(self.options.read.repairs).into(),
            several: false,
            described: false,
            answers: false,
            own_tag: None,
            tags: None,
            takes_text: self.options.returns.is_none(),
            says_success: true,
        }
    }
}

/// Whether a user's template shows `args` as text.
fn has_text_args(template: &str) -> bool {
    template
        .split("\"args\"")
        .skip(1)
        .any(|after| after.trim_start().strip_prefix(':').is_some_and(|value| value.trim_start().starts_with('"')))
}

fn part(entry: &MessageEntry, outcomes: Outcomes<'_>) -> String {
    match entry {
        MessageEntry::Task(text)
        | MessageEntry::Reminder(text)
        | MessageEntry::Note(text)
        | MessageEntry::Violation(text)
        | MessageEntry::Refused { feedback: text, .. }
        | MessageEntry::LastTurn(text) => text.clone(),
        MessageEntry::Result { ticket, times } => {
            let Some((ticket, outcome)) = outcomes.get(*ticket) else { return String::new() };
            let (shown, cut) = outcomes.shown(ticket, outcome);
            let mut text = "Observation: ".to_owned();
            text.push_str(&if outcomes.framed { indented(&shown) } else { Cow::Borrowed(&*shown) });
            let several = outcomes.framed && (cut.is_some() || shown.contains(ends_line));
            if let Some(cut) = cut {
                text.push('\n');
                text.push_str(&cut);
            }
            if matches!(outcome, Outcome::Error { transient: false, .. } | Outcome::RunCancelled { .. }) {
                text.push(if several { '\n' } else { ' ' });
                text.push_str("Check the arguments before you go on; the same call is not run a second time.");
            }
            if let Some(note) = repetition(*times) {
                text.push_str("\nNote: ");
                text.push_str(&note);
            }
            text
        }
        // React has one call at a time, whose result always follows it.
        MessageEntry::Spawned(_)
        | MessageEntry::Loaded(_)
        | MessageEntry::LoadedPart { .. }
        | MessageEntry::Dropped(_)
        | MessageEntry::Completed(_) => String::new(),
    }
}
