//! The tools in the requests of a native run, and the choice between them.

use super::machine::RunMachine;
use crate::protocol::Readable;
use crate::protocol::native::{ANSWER, ANSWER_TOOL};
use serde::Serialize;
use serde_json::Value as Json;

/// The declaration of a tool in a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolForm {
    /// The name of the tool.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Json,
}

/// Which tools the next reply may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ToolChoice {
    /// `auto`, `required` or `none`.
    pub mode: &'static str,
    /// The one tool that is to be called.
    pub tool: Option<&'static str>,
    /// Whether there may be several calls.
    pub parallel: bool,
}

impl ToolChoice {
    /// The mode, the one tool, and whether there may be several calls.
    pub fn into_parts(self) -> (&'static str, Option<&'static str>, bool) {
        (self.mode, self.tool, self.parallel)
    }
}

impl RunMachine {
    /// The tools of every request, in the order of the agent: a prefix that is the same is not read again. Once a result
    /// was cut, `read_result` stands behind them.
    pub fn tool_forms(&self) -> Vec<ToolForm> {
        let form = |name: &str, description: &str, parameters: &Json| ToolForm {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: parameters.clone(),
        };
        let offered = self.offered_tools();
        let tools = offered.iter().map(|tool| form(&tool.name, &tool.description, &tool.parameters));
        let answer = self.setup.protocol.options().typed().map(|returns| {
            form(ANSWER_TOOL, "Give the final answer to the user. It ends the task.", &returns.wrapped(ANSWER))
        });
        tools.chain(answer).collect()
    }

    /// Which of them the next reply may call.
    pub fn tool_choice(&self) -> ToolChoice {
        let moves = self.possible_moves();
        let answer = self.setup.protocol.answer_tool();
        let (mode, tool) = match (moves.calls, moves.finish, answer) {
            (false, _, Some(answer)) => ("required", Some(answer)),
            (false, _, None) => ("none", None),
            (true, true, None) => ("auto", None),
            (true, true, Some(answer)) if self.setup.tools.is_empty() => ("required", Some(answer)),
            (true, _, _) => ("required", None),
        };
        ToolChoice { mode, tool, parallel: self.setup.protocol.has_parallel_calls() }
    }

    /// The items of a message; `None` for plain text, such as an earlier conversation.
    pub fn readable(&self, position: usize) -> Option<Readable> {
        // The prompt stands before them.
        if position <= self.messages_before_task() {
            return None;
        }
        self.setup.protocol.readable(self.state.conversation.messages.get(position)?)
    }
}
