//! What a driver knows of a reply beside its text.

use super::error::CoreResult;
use super::protocol::finish_reason;
use super::rows::PyUsage;
use super::run_view::PyRunView;
use crate::run::{ModelName, ReplyDetails, Usage};
use pyo3::prelude::*;
use std::sync::Arc;

/// The name of a model and of its service, as Python has them.
pub(super) type Named<'a> = (Option<&'a str>, Option<&'a str>);

pub(super) fn model_name((model, provider): Named<'_>) -> ModelName {
    ModelName { model: model.map(Arc::from), provider: provider.map(Arc::from) }
}

pub(super) fn reply_details(
    reason: Option<&str>,
    usage: Option<&PyUsage>,
    model: Option<Named<'_>>,
) -> CoreResult<ReplyDetails> {
    let model = model.map(model_name).unwrap_or_default();
    let usage = usage.copied().map(Usage::from);
    Ok(ReplyDetails {
        finish_reason: finish_reason(reason)?,
        usage,
        first_at: None,
        bounds: None,
        certainty: None,
        model,
    })
}

/// Says how sure the model of the coming reply was of the first tool that it calls, as a probability from 0 to 1.
#[pyfunction]
pub(super) fn note_certainty(run: &PyRunView, certainty: f64) -> CoreResult<()> {
    run.lock()?.note_certainty(certainty);
    Ok(())
}
