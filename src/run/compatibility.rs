//! What keeps a run from going on with other tools or another protocol than it was started with.

use super::command::Setup;
use super::snapshot::sha256;
use crate::tool::{AnswerType, ToolSet, ToolSpec};
use serde_json::Value as Json;

/// Every difference that matters to a resumed run, in words. Prompt and limits are not among them: the run keeps
/// its own.
pub fn differences(kept: &Setup, offered: &Setup) -> Vec<String> {
    let names = (kept.protocol.name(), offered.protocol.name());
    if names.0 != names.1 {
        return vec![format!("the run has the protocol {}, this agent {}", names.0, names.1)];
    }
    let mut found = Vec::new();
    let options = |setup: &Setup| serde_json::to_value(setup.protocol.stored()).unwrap_or_default();
    compare_options(names.0, &options(kept), &options(offered), &mut found);
    if kept.protocol.returns() != offered.protocol.returns() {
        let shape = |setup: &Setup| setup.protocol.returns().map_or_else(|| "no type".to_owned(), AnswerType::shape);
        found.push(format!("the run returns {}, this agent {}", shape(kept), shape(offered)));
    }
    compare_tools(&kept.tools, &offered.tools, &mut found);
    found
}

impl Setup {
    /// A hash of what is compared: two setups of the same shape have no differences. Two of other shapes may have none
    /// either, as a later version writes more.
    pub fn shape(&self) -> String {
        let mut options = serde_json::to_value(self.protocol.stored()).unwrap_or_default();
        drop_message_options(&mut options);
        let returns = self.protocol.returns().map(AnswerType::shape);
        let mut tools: Vec<Json> = self.tools.iter().filter(|tool| !tool.kind.is_built_in()).map(tool_shape).collect();
        tools.sort_by_key(ToString::to_string);
        sha256([serde_json::json!([self.protocol.name(), options, returns, tools]).to_string()])
    }
}

fn drop_message_options(options: &mut Json) {
    if let Json::Object(options) = options {
        options.retain(|key, _| !MESSAGE_OPTIONS.contains(&key.as_str()) && key != RETURNS);
        options.values_mut().for_each(drop_message_options);
    }
}

fn tool_shape(tool: &ToolSpec) -> Json {
    let words = format!(
        "{:?} {:?} {:?} {} {} {}",
        tool.kind,
        tool.approval(),
        tool.effect,
        tool.reconciles,
        tool.readonly,
        tool.repeatable
    );
    serde_json::json!([tool.name, tool.parameters, words])
}

/// Options of how messages are written. Like the prompt, the run keeps its own.
const MESSAGE_OPTIONS: [&str; 2] = ["inline_results", "lists"];

/// An option that is compared apart, for a message that can be read.
const RETURNS: &str = "returns";

fn compare_options(name: &str, kept: &Json, offered: &Json, found: &mut Vec<String>) {
    match (kept, offered) {
        (Json::Object(kept), Json::Object(offered)) => {
            for (key, value) in
                kept.iter().filter(|(key, _)| !MESSAGE_OPTIONS.contains(&key.as_str()) && *key != RETURNS)
            {
                compare_options(key, value, offered.get(key).unwrap_or(&Json::Null), found);
            }
        }
        _ if kept == offered => {}
        _ => found.push(format!("the protocol's option {name} is {kept} in the run and {offered} here")),
    }
}

fn compare_tools(kept: &ToolSet, offered: &ToolSet, found: &mut Vec<String>) {
    let (before, now) = (compared(kept, offered), compared(offered, kept));
    for tool in before {
        let Some(here) = offered.get(&tool.name) else {
            found.push(format!("the tool '{}' of the run is missing here", tool.name));
            continue;
        };
        let parts = changed(tool, here);
        if !parts.is_empty() {
            found.push(format!("the tool '{}' has changed ({})", tool.name, parts.join(", ")));
        }
    }
    for tool in now.into_iter().filter(|tool| kept.get(&tool.name).is_none()) {
        found.push(format!("the tool '{}' is not one of the run", tool.name));
    }
}

/// The tools that may differ: operations of the same document don't, and the schemas of a large one take long to make.
fn compared<'a>(tools: &'a ToolSet, others: &ToolSet) -> Vec<&'a ToolSpec> {
    let own = |tool: &&ToolSpec| !tool.kind.is_built_in();
    if tools.same_operations(others) { tools.plain().filter(own).collect() } else { tools.iter().filter(own).collect() }
}

/// The parts of a tool by which calls are checked and made. Its description is for the prompt, which the run has.
fn changed(kept: &ToolSpec, offered: &ToolSpec) -> Vec<&'static str> {
    let parts = [
        ("parameters", kept.parameters != offered.parameters),
        ("kind", kept.kind != offered.kind),
        ("approval", kept.approval() != offered.approval()),
        ("effect", kept.effect != offered.effect),
        ("reconcile", kept.reconciles != offered.reconciles),
        ("readonly", kept.readonly != offered.readonly),
        ("repeatable", kept.repeatable != offered.repeatable),
    ];
    parts.into_iter().filter(|(_, differs)| *differs).map(|(part, _)| part).collect()
}
