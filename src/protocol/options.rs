//! The options that all protocols have.

use super::{Examples, ReadOptions};
use crate::tool::{AnswerType, Budget};
use serde::{Deserialize, Serialize};

/// The options that all protocols have. Only those that a run depends on after its prompt is rendered are logged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProtocolOptions {
    /// The messages of an example.
    #[serde(skip)]
    pub examples: Examples,
    /// The user's own prompt template, in place of the built-in one.
    #[serde(skip)]
    pub template: Option<String>,
    /// How much of the prompt the tools may take.
    #[serde(skip)]
    pub budget: Budget,
    /// Pairs of start and end marks around reasoning, beside the marks of well-known models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasoning_tags: Vec<(String, String)>,
    /// The type of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<AnswerType>,
    /// How replies are read.
    pub read: ReadOptions,
}

impl ProtocolOptions {
    /// The type of an answer that is more than text.
    pub fn typed(&self) -> Option<&AnswerType> {
        self.returns.as_ref().filter(|returns| !returns.is_text())
    }
}
