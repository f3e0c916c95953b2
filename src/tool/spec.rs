//! One tool as the model is shown it.

use super::level::Level;
use crate::ticket::{External, is_false};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a crash between a call's start and its end means for resuming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Not repeated: the model sees an in-doubt outcome.
    #[default]
    Once,
    /// Repeated with the ticket id as its key.
    Idempotent,
    /// Repeated freely.
    Pure,
}

/// What a call of a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// It is a function of the program.
    #[default]
    Function,
    /// It starts a run of an agent; the call ends when that run does.
    Agent,
    /// It starts a run of the very agent that calls.
    Delegate,
    /// It starts a run in the background and ends at once (chatty's `spawn_agent`).
    Spawn,
    /// It waits for runs in the background (chatty's `wait_for_agents`).
    Wait,
    /// It looks up the other tools, which are too many for the prompt.
    LookUp,
    /// It shows a part of another call's result. The run itself answers it.
    ReadResult,
    /// It runs a script that the model writes. The function that does is the program's.
    Script,
    /// It starts a run of a script that the model writes, which makes the calls of the script.
    ScriptRun,
}

impl ToolKind {
    /// Whether the tool is the runtime's own, and not one of the program.
    pub fn is_built_in(self) -> bool {
        matches!(self, Self::Delegate | Self::Spawn | Self::Wait | Self::LookUp | Self::ReadResult)
    }

    /// Whether it is shown whole and first, however little room there is.
    pub fn always_in_prompt(self) -> bool {
        self.is_built_in() || matches!(self, Self::Script | Self::ScriptRun)
    }

    /// Whether a call starts a run.
    pub fn starts_run(self) -> bool {
        matches!(self, Self::Agent | Self::Delegate | Self::Spawn | Self::ScriptRun)
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
    fn is_function(&self) -> bool {
        *self == Self::Function
    }
}

/// Whether a call waits for a person's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// It is made at once.
    NotNeeded,
    /// The program decides, by the final arguments.
    Checked,
    /// It waits.
    Needed,
}

/// The tools whose calls need more approval than their specification says.
pub type MoreApproval = BTreeMap<Arc<str>, Approval>;

/// One tool: its name, what it does and the schema of its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is one option, which stands by its name in the log")]
pub struct ToolSpec {
    /// Exact and case-sensitive. For an `OpenAPI` operation: `METHOD /path`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments: an object schema with `properties` and `required`.
    pub parameters: Json,
    /// How the program reads what looks like another type, by JSON pointers into `parameters`: the model isn't shown it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reads: BTreeMap<String, String>,
    /// What a call does.
    #[serde(default, skip_serializing_if = "ToolKind::is_function")]
    pub kind: ToolKind,
    /// What a crash in mid-call means.
    #[serde(default)]
    pub effect: Effect,
    /// Safe to start before the rest of its block has arrived.
    #[serde(default)]
    pub readonly: bool,
    /// Whether it can say, after a crash in mid-call, what came of the call.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reconciles: bool,
    /// Whether each call waits for a person's approval.
    #[serde(default, skip_serializing_if = "is_false")]
    pub needs_approval: bool,
    /// Whether the program decides for each call if it needs approval.
    #[serde(default, skip_serializing_if = "is_false")]
    pub checks_approval: bool,
    /// The queue whose workers make its calls, where the run has a store that others share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Polling: exempt from the repetition guard.
    #[serde(default)]
    pub repeatable: bool,
    /// Whether its results come from others, so that what stands in them may be meant to mislead the model.
    #[serde(default, skip_serializing_if = "is_false")]
    pub untrusted: bool,
    /// Set for a tool that is never called: its results come from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<Arc<External>>,
    /// How well the origins of its arguments must be known, by their names; that of the empty name is for all others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Level>,
    /// Whether a call waits for a person's approval if a value of it has no trusted origin.
    #[serde(default, skip_serializing_if = "is_false")]
    pub asks_untrusted: bool,
}

/// The keyword for `reads`, where schemas are compared.
pub(crate) const READS: &str = "x-reads";

impl ToolSpec {
    /// The schema of the arguments with how the program reads them.
    pub(crate) fn marked_parameters(&self) -> Json {
        let mut marked = self.parameters.clone();
        for (pointer, words) in &self.reads {
            if let Some(Json::Object(schema)) = marked.pointer_mut(pointer) {
                schema.insert(READS.to_owned(), words.as_str().into());
            }
        }
        marked
    }

    /// Whether its calls may start before their reply is complete, with what approval is needed beyond its own.
    pub fn starts_early(&self, more: &MoreApproval) -> bool {
        self.readonly && self.external.is_none() && self.approval_with(more) == Approval::NotNeeded
    }

    /// Whether its calls wait for a person's approval.
    pub fn approval(&self) -> Approval {
        match (self.needs_approval, self.checks_approval) {
            (true, _) => Approval::Needed,
            (_, true) => Approval::Checked,
            _ => Approval::NotNeeded,
        }
    }

    /// The same, with what is needed beyond that.
    pub fn approval_with(&self, more: &MoreApproval) -> Approval {
        more.get(&*self.name).map_or_else(|| self.approval(), |more| self.approval().max(*more))
    }
}
