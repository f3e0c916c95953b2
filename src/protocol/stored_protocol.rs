//! Protocols as they are written in a log, so that replies are read and outcomes reported as in the run that wrote it.

use super::{Chatty, Protocol, React, Ticket};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// A protocol with those of its options that a run depends on once its prompt is rendered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredProtocol {
    /// The ticket protocol.
    Ticket(Ticket),
    /// The chatty protocol.
    Chatty(Chatty),
    /// The react protocol.
    React(React),
}

impl From<StoredProtocol> for Arc<dyn Protocol> {
    fn from(stored: StoredProtocol) -> Self {
        match stored {
            StoredProtocol::Ticket(protocol) => Arc::new(protocol),
            StoredProtocol::Chatty(protocol) => Arc::new(protocol),
            StoredProtocol::React(protocol) => Arc::new(protocol),
        }
    }
}

/// For serde's `with`.
pub(crate) fn serialize<S: Serializer>(protocol: &Arc<dyn Protocol>, serializer: S) -> Result<S::Ok, S::Error> {
    protocol.stored().serialize(serializer)
}

/// For serde's `with`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<dyn Protocol>, D::Error> {
    StoredProtocol::deserialize(deserializer).map(Into::into)
}
