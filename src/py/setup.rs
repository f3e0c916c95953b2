//! What the runs of an agent share.

use super::error;
use super::protocol::PyProtocol;
use super::toolset::PyToolSet;
use crate::run::command::{OnLimit, OnOpenTickets};
use crate::run::{Limits, Setup};
use pyo3::prelude::*;
use std::sync::Arc;

/// What runs are set up with: made once for an agent, kept in the log of each of its runs.
#[pyclass(name = "Setup", module = "callslip._core", frozen)]
pub(super) struct PySetup {
    pub(super) setup: Arc<Setup>,
}

#[pymethods]
impl PySetup {
    /// `limits` is JSON text with the fields of `Limits`.
    #[new]
    #[pyo3(signature = (protocol, tools, *, prompt, limits, raise_on_limit, cancel_open, call_first, early_stop, early_start))]
    #[expect(
        clippy::too_many_arguments,
        clippy::fn_params_excessive_bools,
        reason = "keyword-only, and each is one option of the Python face"
    )]
    fn new(
        protocol: &PyProtocol,
        tools: &PyToolSet,
        prompt: &str,
        limits: &str,
        raise_on_limit: bool,
        cancel_open: bool,
        call_first: bool,
        early_stop: bool,
        early_start: bool,
    ) -> PyResult<Self> {
        let limits: Limits =
            serde_json::from_str(limits).map_err(|cause| error::value(format!("expected limits: {cause}")))?;
        let setup = Arc::new(Setup {
            protocol: protocol.protocol.clone(),
            prompt: prompt.into(),
            tools: tools.tools.clone(),
            limits,
            on_limit: if raise_on_limit { OnLimit::Raise } else { OnLimit::Answer },
            on_open_tickets: if cancel_open { OnOpenTickets::Cancel } else { OnOpenTickets::Wait },
            call_first,
            early_stop,
            early_start,
        });
        Ok(Self { setup })
    }
}
