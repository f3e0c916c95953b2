//! How well the origin of an argument's value must be known before its call runs.

use super::spec::{Effect, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// What is asked of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing.
    Any,
    /// It has an origin. Without one its call is refused once.
    Stated,
    /// It has an origin other than an example in the schema. Without one its call never runs.
    Strict,
    /// It has a trusted origin. Without one its call never runs without approval.
    Trusted,
}

impl Level {
    /// The level of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "any" => Some(Self::Any),
            "stated" => Some(Self::Stated),
            "strict" => Some(Self::Strict),
            "trusted" => Some(Self::Trusted),
            _ => None,
        }
    }
}

/// The level of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLevel {
    /// What is asked of the values of its calls.
    pub level: Level,
    /// Whether it comes from the model. Then tools without an effect are exempt.
    #[serde(default, skip_serializing_if = "crate::ticket::is_false")]
    pub by_model: bool,
}

/// The keyword of a parameter's schema that has its level.
pub const LEVEL: &str = "x-callslip-values";

/// The key of `ToolSpec::values` for all arguments that have no own level.
pub const ALL: &str = "";

impl ToolSpec {
    /// Takes the levels out of the schemas of its arguments, whose readers are models. `values` of the tool itself hold.
    ///
    /// # Errors
    /// The argument and what it has instead of a level.
    pub fn take_levels(&mut self) -> Result<(), (String, Json)> {
        let properties = self.parameters.get_mut("properties").and_then(Json::as_object_mut);
        for (argument, schema) in properties.into_iter().flatten() {
            let Some(mark) = schema.as_object_mut().and_then(|schema| schema.shift_remove(LEVEL)) else { continue };
            let Some(level) = mark.as_str().and_then(Level::from_name) else { return Err((argument.clone(), mark)) };
            self.values.entry(argument.clone()).or_insert(level);
        }
        Ok(())
    }

    /// The level of an argument: its own, that of the tool, or that of the agent.
    pub fn level(&self, argument: &str, agent: Option<AgentLevel>) -> Level {
        let own = self.values.get(argument).or_else(|| self.values.get(ALL)).copied();
        own.unwrap_or_else(|| self.common_level(agent))
    }

    /// Whether anything is asked of any argument.
    pub fn has_level(&self, agent: Option<AgentLevel>) -> bool {
        self.values.values().any(|level| *level != Level::Any) || self.common_level(agent) != Level::Any
    }

    fn common_level(&self, agent: Option<AgentLevel>) -> Level {
        match agent {
            Some(AgentLevel { by_model: true, .. }) if self.effect == Effect::Pure => Level::Any,
            Some(agent) => agent.level,
            None => Level::Any,
        }
    }
}
