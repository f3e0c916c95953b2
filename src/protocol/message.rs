//! The messages of a run's transcript, and those of an example before it.

use crate::part::Part;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The prompt.
    System,
    /// The user, and the runtime in the user's place.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The word that model clients know.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One message of the transcript. Messages are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who wrote it.
    pub role: Role,
    /// Its text.
    pub content: Arc<str>,
    /// Its text without the results that were loaded into it, if one of them is longer than the sentence in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<Arc<str>>,
    /// Images and files that it has beside its text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

impl Message {
    /// A message without loaded results.
    pub(crate) fn new(role: Role, content: impl Into<Arc<str>>) -> Self {
        Self { role, content: content.into(), short: None, parts: Vec::new() }
    }
}
