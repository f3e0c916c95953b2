//! How sure a model is of the tool that it names. A grammar leads it to one of the tools that there are; the probability that it
//! gave the name by itself tells whether it would have named another one.

use super::machine::RunMachine;
use super::plan::Planned;
use super::repetition;
use crate::codes::Code;
use crate::reply::violation::{RefusedCalls, Violation};
use crate::tool::{NO_SUCH_TOOL, ToolKind};
use serde::{Deserialize, Serialize};

/// Probabilities below which a call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Certainty {
    /// Of a tool that only reads.
    pub readonly: f64,
    /// Of a tool with an effect.
    pub effect: f64,
}

impl RunMachine {
    /// Says how sure the model of the coming reply was of the first tool that it calls: a probability.
    pub fn note_certainty(&mut self, certainty: f64) {
        self.given.certainty = certainty.is_finite().then(|| (certainty.clamp(0.0, 1.0) * 100.0).round() / 100.0);
    }

    /// Refuses a reply if the model would hardly have named its first tool by itself. That call can be among the calls that were
    /// started before the reply had ended, and was looked at then.
    pub(super) fn check_certainty(&self, planned: &[Planned]) -> Result<(), Violation> {
        let first = planned.iter().find(|call| call.call == 0);
        let (Some(certainty), Some(least), Some(first)) = (self.given.certainty, self.setup.least_certainty, first)
        else {
            return Ok(());
        };
        let Some(spec) = self.setup.tools.get(&first.tool) else { return Ok(()) };
        let least = if spec.readonly { least.readonly } else { least.effect };
        if certainty >= least || spec.kind != ToolKind::Function || self.setup.ends_at_call {
            return Ok(());
        }
        let message = format!("'{}' does not seem to do what is asked", first.tool);
        let mut violation = Violation::new(Code::UnlikelyTool, message).hint(NO_SUCH_TOOL);
        let keys = planned.iter().map(|call| repetition::key(&call.tool, &call.arguments)).collect();
        violation.refused = Some(Box::new(RefusedCalls { keys, strict: true, ..RefusedCalls::default() }));
        Err(violation)
    }
}
