//! What the runs of an agent share.

use super::error::CoreResult;
use super::lock::lock;
use super::options;
use super::protocol::PyProtocol;
use super::toolset::PyToolSet;
use crate::protocol::grammar::{Bounds, Grammar};
use crate::run::command::{OnLimit, OnOpenTickets};
use crate::run::{Certainty, PossibleMoves, Setup};
use crate::tool::{AgentLevel, Level};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};

/// What runs are set up with: made once for an agent, kept in the log of each of its runs.
#[pyclass(name = "Setup", module = "callslip._core", frozen)]
pub(super) struct PySetup {
    pub(super) setup: Arc<Setup>,
    pub(super) grammars: Grammars,
}

/// What the grammar of the next reply depends on, beside the setup.
#[derive(PartialEq)]
pub(super) struct Situation {
    pub(super) moves: PossibleMoves,
    /// Characters of thoughts, at most.
    pub(super) thoughts: Option<u32>,
    /// The bounds of the model.
    pub(super) bounds: Option<Bounds>,
}

type Known = (Situation, Arc<Grammar>);

/// The grammars that the runs of an agent asked for last: with many tools, one takes long to make.
#[derive(Clone, Default)]
pub(super) struct Grammars {
    latest: Arc<Mutex<Vec<Known>>>,
}

impl Grammars {
    const KEPT: usize = 8;

    pub(super) fn get(
        &self,
        situation: Situation,
        make: impl FnOnce(&Situation) -> Grammar,
    ) -> CoreResult<Arc<Grammar>> {
        let mut latest = lock(&self.latest)?;
        if let Some((_, grammar)) = latest.iter().find(|(known, _)| *known == situation) {
            return Ok(Arc::clone(grammar));
        }
        let grammar = Arc::new(make(&situation));
        if latest.len() >= Self::KEPT {
            latest.remove(0);
        }
        latest.push((situation, Arc::clone(&grammar)));
        Ok(grammar)
    }
}

#[pymethods]
impl PySetup {
    /// `limits` is JSON text with the fields of `Limits`.
    #[new]
    #[pyo3(signature = (protocol, tools, *, prompt, instructions, limits, raise_on_limit, cancel_open, delegates, call_first, early_stop, early_start, checks_answer, ends_at_call, values, values_by_model, least_certainty))]
    #[expect(
        clippy::too_many_arguments,
        clippy::fn_params_excessive_bools,
        reason = "keyword-only, and each is one option of the Python face"
    )]
    fn new(
        protocol: &PyProtocol,
        tools: &PyToolSet,
        prompt: &str,
        instructions: Option<&str>,
        limits: &str,
        raise_on_limit: bool,
        cancel_open: bool,
        delegates: bool,
        call_first: bool,
        early_stop: bool,
        early_start: bool,
        checks_answer: bool,
        ends_at_call: bool,
        values: Option<&str>,
        values_by_model: bool,
        least_certainty: Option<(f64, f64)>,
    ) -> CoreResult<Self> {
        let level = values.and_then(Level::from_name);
        let limits = options::limits(limits)?;
        let setup = Arc::new(Setup {
            protocol: protocol.protocol.clone(),
            prompt: prompt.into(),
            instructions: instructions.map(Into::into),
            examples: protocol.protocol.example_messages(&tools.tools),
            reminder: protocol.protocol.reminder(&tools.tools).map(Into::into),
            tools: tools.tools.clone(),
            limits,
            on_limit: if raise_on_limit { OnLimit::Raise } else { OnLimit::Answer },
            on_open_tickets: if cancel_open { OnOpenTickets::Cancel } else { OnOpenTickets::Wait },
            delegates,
            call_first,
            checks_answer,
            early_stop,
            early_start,
            ends_at_call,
            values: level.map(|level| AgentLevel { level, by_model: values_by_model }),
            least_certainty: least_certainty.map(|(readonly, effect)| Certainty { readonly, effect }),
        });
        Ok(Self { setup, grammars: Grammars::default() })
    }
}
