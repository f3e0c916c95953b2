//! The tools of an agent.

use super::error::{CoreResult, value};
use super::openapi::PyDocument;
use super::options;
use super::value::to_python;
use crate::reply::Value;
use crate::tool::{AnswerType, ToolSet, ToolSpec, agent_tools};
use pyo3::prelude::*;
use std::sync::Arc;

/// A name for the field of a result, which no message has.
const RESULT: &str = "answer";

/// Tools by name, with the checks of their arguments.
#[pyclass(name = "ToolSet", module = "callslip._core", frozen)]
pub(super) struct PyToolSet {
    pub(super) tools: Arc<ToolSet>,
}

fn read_specs(specs: &[String]) -> CoreResult<Vec<ToolSpec>> {
    specs.iter().map(|spec| options::tool(spec)).collect()
}

fn to_json(said: &impl serde::Serialize) -> CoreResult<String> {
    Ok(serde_json::to_string(said)?)
}

#[pymethods]
impl PyToolSet {
    /// Takes one JSON text for each tool (`name`, `description`, `parameters`, and optionally `effect`, `readonly`,
    /// `repeatable`), and documents, in which each operation is a tool.
    #[new]
    #[pyo3(signature = (specs, documents = Vec::new()))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn new(specs: Vec<String>, documents: Vec<PyRef<'_, PyDocument>>) -> CoreResult<Self> {
        let documents = documents.iter().map(|document| Arc::clone(&document.api)).collect();
        let tools = ToolSet::with_documents(documents, read_specs(&specs)?);
        Ok(Self { tools: Arc::new(tools?) })
    }

    /// The tool by which a run gives a task to another one and gets its answer, as JSON text.
    #[staticmethod]
    fn delegate() -> CoreResult<String> {
        to_json(&agent_tools::delegate())
    }

    /// Checks that results can be checked by this JSON Schema. Raises `UsageError` with the reason if they can't.
    #[staticmethod]
    fn check_returns(schema: &str) -> CoreResult<()> {
        AnswerType::new(serde_json::from_str(schema)?).compile(RESULT).map_err(value)
    }

    /// These tools without those named, and with further ones, given as for the constructor.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn changed(&self, without: Vec<String>, further: Vec<String>) -> CoreResult<Self> {
        let tools = self.tools.without(&without).with(read_specs(&further)?);
        Ok(Self { tools: Arc::new(tools?) })
    }

    /// The tools that match a query, as JSON text; `routes` is whether they are called by routes.
    fn search(&self, py: Python<'_>, query: &str, routes: bool) -> CoreResult<String> {
        to_json(&py.detach(|| self.tools.search(query, routes)))
    }

    /// The description of one tool, as JSON text. Raises `ValueError` if no tool has this name.
    fn describe(&self, py: Python<'_>, name: &str, routes: bool) -> CoreResult<String> {
        let described = py.detach(|| self.tools.describe(name, routes));
        let described = described.map_err(|violation| match &violation.hint {
            Some(hint) => value(format!("{}: {hint}", violation.message)),
            None => value(violation.message.clone()),
        })?;
        to_json(&described)
    }

    /// The names, in the order in which the tools were given.
    fn names(&self) -> Vec<String> {
        self.tools.names().map(str::to_owned).collect()
    }

    /// The name of the tool with this route. Raises `ValueError` if there is none.
    fn resolve_route(&self, route: &str) -> CoreResult<String> {
        let resolved = self.tools.resolve_route(route).map_err(|violation| value(violation.message))?;
        Ok(resolved.tool.name.clone())
    }

    /// Checks arguments given as JSON text. Returns them as they would reach the tool; raises `ValueError` naming all
    /// problems.
    fn check<'py>(&self, py: Python<'py>, name: &str, arguments: &str) -> CoreResult<Bound<'py, PyAny>> {
        let arguments: Value = serde_json::from_str(arguments)?;
        let spec = self.tools.resolve(name).map_err(|violation| value(violation.message))?;
        let checked = self.tools.check(spec, &arguments).map_err(|violation| value(violation.message))?;
        Ok(to_python(py, &Value::Object(checked.arguments))?)
    }

    /// The required arguments of a tool with values that its schema allows, as JSON text; `None` if none were found.
    fn sample_arguments(&self, py: Python<'_>, name: &str) -> CoreResult<Option<String>> {
        let tool = self.tools.resolve(name).map_err(|violation| value(violation.message))?;
        py.detach(|| self.tools.sample_arguments(tool)).as_ref().map(to_json).transpose()
    }

    fn __len__(&self) -> usize {
        self.tools.len()
    }
}
