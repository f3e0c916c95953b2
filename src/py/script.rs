//! What a script declares, and what its errors mean, as JSON texts.

use super::error::CoreResult;
use crate::sandbox::script::{self, Script};
use crate::sandbox::{Refused, RefusedCode};
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde_json::json;

/// Reads what a model gave as code. With `python_version`, the Python that it asks for is compared with it.
#[pyfunction]
#[pyo3(signature = (code, python_version = None))]
pub(super) fn read_script(
    py: Python<'_>,
    code: &Bound<'_, PyString>,
    python_version: Option<&str>,
) -> CoreResult<String> {
    let read = match code.to_str() {
        Ok(code) => py.detach(|| {
            let script = Script::read(code)?;
            python_version.map_or(Ok(()), |version| script.check_python(version))?;
            Ok(script)
        }),
        Err(_) => Err(Refused::new(
            RefusedCode::BadCode,
            "expected text: got half of a surrogate pair: write the character itself",
        )),
    };
    let said = match read {
        Ok(script) => serde_json::to_string(&script),
        Err(refused) => serde_json::to_string(&json!({"refused": refused})),
    };
    Ok(said?)
}

/// What the end of a script's stderr means for the script's author. `interactive` is whether its questions were answered,
/// `network` whether it had one.
#[pyfunction]
#[pyo3(signature = (code, stderr, *, interactive, network))]
pub(super) fn script_hints(py: Python<'_>, code: &str, stderr: &str, interactive: bool, network: bool) -> Vec<String> {
    let hints = || Script::read(code).map(|script| script::hints(stderr, &script, interactive, network));
    py.detach(hints).unwrap_or_default()
}
