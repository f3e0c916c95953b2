//! Whether an agent can continue a run that was started with other tools: each call that the tools of the run allow must
//! be valid and mean the same with those of the agent.

use super::command::Setup;
use super::snapshot::sha256;
use crate::protocol::stored_protocol;
use crate::ticket::External;
use crate::tool::{AnswerType, Approval, Effect, MoreApproval, ToolKind, ToolSet, ToolSpec, narrowed};
use serde_json::Value as Json;

/// What differs between a run and the agent that is to continue it. The run keeps its own prompt, tools and limits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// What keeps the agent from it, in words with a way out.
    pub differences: Vec<String>,
    /// The approval that the agent's tools ask for where the run asks for less.
    pub more_approval: MoreApproval,
    /// Whether both have the same tools with the same parameters.
    pub has_same_calls: bool,
    knows_types: bool,
}

impl Comparison {
    /// Compares the setup of a run, and the approval that it asks for beyond that, with the setup of an agent. `knows_types`
    /// is whether the run's tools say how they read what looks like another type.
    pub(super) fn between(kept: &Setup, more: &MoreApproval, offered: &Setup, knows_types: bool) -> Self {
        let names = (kept.protocol.name(), offered.protocol.name());
        if names.0 != names.1 {
            let difference =
                format!("the run has the protocol {}, this agent {}: use that of the run", names.0, names.1);
            return Self { differences: vec![difference], ..Self::default() };
        }
        let mut found = Self { has_same_calls: true, knows_types, ..Self::default() };
        let options = |setup: &Setup| stored_protocol::to_json(&*setup.protocol).unwrap_or_default();
        compare_options(names.0, &options(kept), &options(offered), &mut found.differences);
        compare_ends(kept.ends_at_call, offered.ends_at_call, &mut found.differences);
        compare_answers(kept.protocol.returns(), offered.protocol.returns(), &mut found.differences);
        found.compare_tools(&kept.tools, more, &offered.tools);
        found
    }

    fn compare_tools(&mut self, kept: &ToolSet, more: &MoreApproval, offered: &ToolSet) {
        // Operations of the same documents don't differ, and the schemas of a large one take long to make.
        let same_operations = kept.same_operations(offered);
        let before: Vec<&ToolSpec> = if same_operations { kept.plain().collect() } else { kept.iter().collect() };
        let own = before.into_iter().filter(|tool| !tool.kind.is_built_in());
        for tool in own {
            let Some(here) = offered.get(&tool.name) else {
                self.differences
                    .push(format!("the tool '{}' is gone: keep it until the runs that have it are over", tool.name));
                continue;
            };
            self.compare_tool(tool, tool.approval_with(more), here);
        }
        self.has_same_calls &= kept.len() == offered.len() && kept.names().eq(offered.names());
    }

    fn compare_tool(&mut self, kept: &ToolSpec, approval: Approval, offered: &ToolSpec) {
        self.has_same_calls &= kept.parameters == offered.parameters;
        let name = &kept.name;
        let mut found = Vec::new();
        if kept.kind != offered.kind {
            found.push(format!(
                "is {} now, and {} in the run: give it another name",
                kind(offered.kind),
                kind(kept.kind)
            ));
        }
        found.extend(external_differences(kept.external.as_deref(), offered.external.as_deref()));
        if kept.effect != offered.effect && !is_implied(kept, offered) {
            let (before, now) = (effect(kept.effect), effect(offered.effect));
            found.push(format!("has the effect '{now}' now, and '{before}' in the run: keep effect='{before}'"));
        }
        match (kept.reconciles, offered.reconciles) {
            (true, false) => found.push("has no reconcile now: keep it".to_owned()),
            (false, true) => {
                found.push("has a reconcile now, and none in the run: add it to a tool of another name".to_owned());
            }
            _ => {}
        }
        if offered.approval() < approval {
            found.push(format!(
                "{} now, and {} in the run: keep needs_approval",
                asks(offered.approval()),
                asks(approval)
            ));
        } else if offered.approval() > approval {
            self.more_approval.insert(name.as_str().into(), offered.approval());
        }
        let narrower = if self.knows_types && kept.reads != offered.reads {
            narrowed(&kept.marked_parameters(), &offered.marked_parameters())
        } else {
            narrowed(&kept.parameters, &offered.parameters)
        };
        if !narrower.is_empty() {
            found.push(format!("takes less: {}", narrower.join(", ")));
        }
        self.differences.extend(found.into_iter().map(|found| format!("the tool '{name}' {found}")));
    }
}

/// Whether the effect differs only because a tool that changes nothing is `pure` by default: it was `once` up to 0.2, or
/// is `readonly` since. The run keeps `once`, which repeats nothing.
fn is_implied(kept: &ToolSpec, offered: &ToolSpec) -> bool {
    offered.readonly && (kept.effect, offered.effect) == (Effect::Once, Effect::Pure)
}

fn kind(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Function => "a function",
        ToolKind::Agent => "an agent",
        ToolKind::Script => "for scripts",
        ToolKind::ScriptRun => "for scripts that call tools",
        _ => "the runtime's own",
    }
}

/// What keeps the results of one tool from being answered as those of the other are. Each ticket has its own timeout.
fn external_differences(kept: Option<&External>, offered: Option<&External>) -> Vec<String> {
    let (kept, offered) = match (kept, offered) {
        (Some(kept), Some(offered)) => (kept, offered),
        (None, None) => return Vec::new(),
        (None, Some(_)) => return vec!["is external now, and called in the run: give it another name".to_owned()],
        (Some(_), None) => return vec!["is called now, and external in the run: give it another name".to_owned()],
    };
    if kept.asks != offered.asks {
        let does = |external: &External| if external.asks { "asks" } else { "doesn't ask" };
        let (now, before) = (does(offered), does(kept));
        return vec![format!("{now} for one of its choices now, and {before} in the run: give it another name")];
    }
    let anything = Json::Bool(true);
    let narrower = narrowed(kept.returns.as_ref().unwrap_or(&anything), offered.returns.as_ref().unwrap_or(&anything));
    if narrower.is_empty() { Vec::new() } else { vec![format!("takes fewer results: {}", narrower.join(", "))] }
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Once => "once",
        Effect::Idempotent => "idempotent",
        Effect::Pure => "pure",
    }
}

fn asks(approval: Approval) -> &'static str {
    match approval {
        Approval::NotNeeded => "needs no approval",
        Approval::Checked => "lets a function decide on approval",
        Approval::Needed => "always needs approval",
    }
}

fn compare_ends(kept: bool, offered: bool, found: &mut Vec<String>) {
    let ends = |at_call: bool| if at_call { "ends at its first call" } else { "makes its calls" };
    if kept != offered {
        found.push(format!("the run {}, one of this agent {}: use the agent of the run", ends(kept), ends(offered)));
    }
}

fn compare_answers(kept: Option<&AnswerType>, offered: Option<&AnswerType>, found: &mut Vec<String>) {
    let shape = |answer: Option<&AnswerType>| answer.map_or_else(|| "no type".to_owned(), AnswerType::shape);
    let narrower = match (kept, offered) {
        (None, None) => return,
        (Some(kept), Some(offered)) => narrowed(kept.schema(), offered.schema()),
        _ => vec!["keep returns=".to_owned()],
    };
    if !narrower.is_empty() {
        found.push(format!("the run returns {}, this agent {}: {}", shape(kept), shape(offered), narrower.join(", ")));
    }
}

impl Setup {
    /// A hash of what is compared: two setups of the same shape have no differences. Two of other shapes may have none
    /// either, as a later version writes more.
    pub fn shape(&self) -> String {
        let mut options = stored_protocol::to_json(&*self.protocol).unwrap_or_default();
        drop_message_options(&mut options);
        let returns = self.protocol.returns().map(AnswerType::shape);
        let mut tools: Vec<Json> = self.tools.iter().filter(|tool| !tool.kind.is_built_in()).map(tool_shape).collect();
        tools.sort_by_key(ToString::to_string);
        let shape = serde_json::json!([self.protocol.name(), options, returns, tools]).to_string();
        // Where it is off, shapes are those of earlier versions.
        sha256([&*shape, if self.ends_at_call { "ends_at_call" } else { "" }])
    }
}

fn drop_message_options(options: &mut Json) {
    if let Json::Object(options) = options {
        options.retain(|key, _| !MESSAGE_OPTIONS.contains(&key.as_str()) && key != RETURNS);
        options.values_mut().for_each(drop_message_options);
    }
}

fn tool_shape(tool: &ToolSpec) -> Json {
    let external = tool.external.as_ref().map_or_else(String::new, |external| {
        let results = external.returns.as_ref().map(Json::to_string).unwrap_or_default();
        format!(" external {} {results}", external.asks)
    });
    let words = format!(
        "{:?} {:?} {:?} {} {} {}{external}",
        tool.kind,
        tool.approval(),
        tool.effect,
        tool.reconciles,
        tool.readonly,
        tool.repeatable
    );
    if tool.reads.is_empty() {
        return serde_json::json!([tool.name, tool.parameters, words]);
    }
    serde_json::json!([tool.name, tool.parameters, words, tool.reads])
}

/// Options of how messages are written, and the interpreter of a script. Like the prompt, the run keeps its own.
const MESSAGE_OPTIONS: [&str; 3] = ["inline_results", "lists", "engine"];

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
        _ => found.push(format!(
            "the protocol's option {name} is {kept} in the run and {offered} here: keep that of the run"
        )),
    }
}
