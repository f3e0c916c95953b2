//! Protocols as they stand in a log: what is needed to read replies and to tell outcomes as in the run that wrote it.

use super::{Chatty, Protocol, React, Ticket};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// A protocol with those of its options that a run depends on once its prompt is rendered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stored {
    /// The ticket protocol.
    Ticket(Ticket),
    /// The chatty protocol.
    Chatty(Chatty),
    /// The react protocol.
    React(React),
}

impl From<Stored> for Arc<dyn Protocol> {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Ticket(protocol) => Arc::new(protocol),
            Stored::Chatty(protocol) => Arc::new(protocol),
            Stored::React(protocol) => Arc::new(protocol),
        }
    }
}

/// For serde's `with`.
pub(crate) fn serialize<S: Serializer>(protocol: &Arc<dyn Protocol>, serializer: S) -> Result<S::Ok, S::Error> {
    protocol.stored().serialize(serializer)
}

/// For serde's `with`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<dyn Protocol>, D::Error> {
    Stored::deserialize(deserializer).map(Into::into)
}
