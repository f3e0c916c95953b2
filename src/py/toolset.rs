//! The tools of an agent.

use super::error;
use crate::reply::Value;
use crate::tool::{ToolSet, ToolSpec};
use pyo3::prelude::*;
use std::sync::Arc;

/// Tools by name, with the checks of their arguments.
#[pyclass(name = "ToolSet", module = "callslip._core", frozen)]
pub(super) struct PyToolSet {
    pub(super) tools: Arc<ToolSet>,
}

#[pymethods]
impl PyToolSet {
    /// From one JSON text a tool: `name`, `description`, `parameters`, and optionally `effect`, `readonly`, `repeatable`.
    #[new]
    fn new(specs: Vec<String>) -> PyResult<Self> {
        let specs: Result<Vec<ToolSpec>, _> = specs.into_iter().map(|spec| serde_json::from_str(&spec)).collect();
        let specs = specs.map_err(|cause| error::value(format!("expected the specification of a tool: {cause}")))?;
        let tools = ToolSet::new(specs).map_err(|cause| error::tool_set(&cause))?;
        Ok(Self { tools: Arc::new(tools) })
    }

    /// From the JSON text of an `OpenAPI` document.
    #[staticmethod]
    fn from_openapi(document: &str) -> PyResult<Self> {
        let tools = ToolSet::from_openapi(document).map_err(|cause| error::tool_set(&cause))?;
        Ok(Self { tools: Arc::new(tools) })
    }

    /// The names, in the order in which the tools were given.
    fn names(&self) -> Vec<String> {
        self.tools.names().map(str::to_owned).collect()
    }

    /// The tool's name that a route means; raises `ValueError` where it means none.
    fn resolve_route(&self, route: &str) -> PyResult<String> {
        let resolved = self.tools.resolve_route(route).map_err(|violation| error::value(violation.message))?;
        Ok(resolved.tool.name.clone())
    }

    /// Checks arguments given as JSON text. Returns them as they would reach the tool; raises `ValueError` naming all
    /// problems.
    fn check<'py>(&self, py: Python<'py>, name: &str, arguments: &str) -> PyResult<Bound<'py, PyAny>> {
        let arguments: Value = serde_json::from_str(arguments).map_err(|cause| error::value(cause.to_string()))?;
        let spec = self.tools.resolve(name).map_err(|violation| error::value(violation.message))?;
        let checked = self.tools.check(spec, &arguments).map_err(|violation| error::value(violation.message))?;
        super::value::to_python(py, &Value::Object(checked.arguments))
    }

    fn __len__(&self) -> usize {
        self.tools.len()
    }
}
