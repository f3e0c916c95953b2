//! The name of a model, and what is known of a reply beside its text.

use super::event::Usage;
use crate::protocol::FinishReason;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A model and its service, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModelName {
    /// The name of the model at its service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The name of the service, as the conventions of OpenTelemetry have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
}

impl ModelName {
    /// Whether nothing is known of the model.
    pub fn is_unknown(&self) -> bool {
        self.model.is_none() && self.provider.is_none()
    }
}

/// What is known of a reply beside its text.
#[derive(Debug, Clone, Default)]
pub struct ReplyDetails {
    /// How it ended, as the client says.
    pub finish_reason: FinishReason,
    /// What it cost, where the client says so.
    pub usage: Option<Usage>,
    /// Unix seconds of its first piece, where it was streamed.
    pub first_at: Option<f64>,
    /// The bounds of its grammar, where they cut it.
    pub bounds: Option<String>,
    /// The probability of the first tool's name before the grammar, if the client reports it.
    pub certainty: Option<f64>,
    /// The model that wrote it, where that may be another one than the run's own.
    pub model: ModelName,
}
