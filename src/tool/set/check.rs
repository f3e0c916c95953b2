//! The check of a call before it is made.

use super::{Resolved, ToolSet};
use crate::reply::{Code, Object, Value, Violation};
use crate::tool::describe::named;
use crate::tool::problem::Problem;
use crate::tool::schema::{Checked, Checker};
use crate::tool::spec::{Approval, MoreApproval, ToolSpec};
use crate::tool::{coerce, openapi, render};
use serde::Deserialize as _;
use serde_json::Value as Json;
use std::sync::Arc;

/// Characters of the problems of one call that its violation spells out. Hostile names are long and many.
const PROBLEMS: usize = 1_200;

impl ToolSet {
    /// Checks arguments against their tool's schema: an object, a string that holds one, or null for none.
    ///
    /// # Errors
    /// One violation that names every problem; `expected` is the schema of this tool alone.
    pub fn check(&self, tool: &ToolSpec, arguments: &Value) -> Result<Checked, Violation> {
        self.check_except(tool, arguments, &[])
    }

    /// Whether arguments are right as they are, as far as that is quickly found out.
    pub fn admits(&self, tool: &ToolSpec, arguments: &Value) -> bool {
        self.entries.get(&tool.name).is_some_and(|entry| entry.checker.admits(&tool.parameters, arguments))
    }

    /// The same, but values at the JSON pointers `except` are let through whatever they are: references to the results
    /// of other calls, which are not there yet.
    ///
    /// # Errors
    /// As [`ToolSet::check`].
    pub fn check_except(&self, tool: &ToolSpec, arguments: &Value, except: &[String]) -> Result<Checked, Violation> {
        match self.entries.get(&tool.name) {
            Some(entry) => entry.checker.check_except(&tool.parameters, arguments, except),
            None => Checker::default().check_except(&tool.parameters, arguments, except),
        }
        .map_err(|problems| violation(tool, &problems))
    }

    /// Checks arguments together with what the route says; `except` as for [`ToolSet::check_except`].
    ///
    /// # Errors
    /// As [`ToolSet::check`]; and where route and arguments contradict each other.
    pub fn check_call(
        &self,
        resolved: &Resolved<'_>,
        arguments: &Value,
        except: &[String],
    ) -> Result<Checked, Violation> {
        if resolved.path_arguments.is_empty() {
            return self.check_except(resolved.tool, arguments, except);
        }
        let merged = openapi::merge(&resolved.path_arguments, arguments)
            .map_err(|problems| violation(resolved.tool, &problems))?;
        let mut checked = self.check_except(resolved.tool, &merged, except)?;
        // A value in a route has no type of its own: reading it as its parameter's is no repair.
        let places: Vec<String> = resolved.path_arguments.keys().map(|name| coerce::join("", name)).collect();
        checked.coerced.retain(|pointer| !places.iter().any(|place| coerce::within(place, pointer)));
        Ok(checked)
    }

    /// What is wrong with arguments: for each problem a JSON pointer, and the words for it.
    pub fn problems(&self, tool: &ToolSpec, arguments: &Value) -> Vec<(String, String)> {
        let checked = match self.entries.get(&tool.name) {
            Some(entry) => entry.checker.check(&tool.parameters, arguments),
            None => Checker::default().check(&tool.parameters, arguments),
        };
        let found = checked.err().unwrap_or_default();
        found.into_iter().map(|problem| (problem.pointer, problem.message)).collect()
    }

    /// Arguments, which were checked, with the defaults of the parameters that they leave out: those that the schema
    /// tells and takes. Those of an operation are the server's, and are not sent.
    pub fn with_defaults(&self, tool: &ToolSpec, arguments: Arc<Value>) -> Arc<Value> {
        let (Some(own), Some(Json::Object(parameters))) =
            (arguments.as_object(), tool.parameters.get("properties").filter(|_| self.operation(&tool.name).is_none()))
        else {
            return arguments;
        };
        let mut filled = own.clone();
        for (name, schema) in parameters.iter().filter(|(name, _)| !own.contains_key(name)) {
            let default = schema.get("default").and_then(|default| Value::deserialize(default).ok());
            let Some(default) = default else { continue };
            let mut more = filled.clone();
            more.insert(name.as_str(), default);
            if self.takes(tool, &more) {
                filled = more;
            }
        }
        if filled.len() == own.len() { arguments } else { Arc::new(Value::Object(filled)) }
    }

    fn takes(&self, tool: &ToolSpec, arguments: &Object) -> bool {
        let arguments = Value::Object(arguments.clone());
        self.admits(tool, &arguments) || self.check(tool, &arguments).is_ok_and(|checked| checked.coerced.is_empty())
    }

    /// Whether a call with these arguments, which were checked, waits for a person's approval: that of the tool, or of
    /// another operation that its path may be taken for, and what is needed beyond that.
    ///
    /// # Errors
    /// `not_offered` where that other operation is not offered.
    pub fn approval(&self, tool: &ToolSpec, arguments: &Value, more: &MoreApproval) -> Result<Approval, Violation> {
        let (Some((catalogue, operation)), Some(arguments)) = (self.operation(&tool.name), arguments.as_object())
        else {
            return Ok(tool.approval_with(more));
        };
        let mut approval = tool.approval_with(more);
        for reached in catalogue.reached(&operation.name, arguments) {
            let Some(other) = self.get(reached.name).filter(|_| reached.offered) else {
                let message = format!(
                    "expected another value in the path: with this one {} is {}, which is not offered",
                    named(&tool.name),
                    named(reached.name)
                );
                return Err(Violation::new(Code::NotOffered, message));
            };
            // The other's check is made for arguments of its own.
            if other.approval_with(more) != Approval::NotNeeded {
                approval = Approval::Needed;
            }
        }
        Ok(approval)
    }
}

/// One violation for all problems of a call; there is at least one.
fn violation(tool: &ToolSpec, problems: &[Problem]) -> Violation {
    let expected = render::expected(tool);
    let Some(first) = problems.first() else {
        return Violation::new(Code::InvalidArgument, "the arguments are wrong").expected(expected);
    };
    let mut room = PROBLEMS;
    let fits = |problem: &&Problem| {
        let fits = room > 0;
        room = room.saturating_sub(problem.message.chars().count());
        fits
    };
    let mut messages: Vec<&str> = problems.iter().take_while(fits).map(|problem| problem.message.as_str()).collect();
    if messages.len() < problems.len() {
        messages.push("and more");
    }
    Violation::new(first.code.into(), messages.join("; "))
        .pointer(first.pointer.clone())
        .expected(expected)
        .found(first.found.clone())
}
