//! A log as text: one JSON line for each event, and before it one for the bytes of each part that it is the first to
//! have.

use super::event::{Event, Record};
use super::resume::LoadError;
use crate::part::{Content, Part};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the line of a part's bytes begins with. No line of an event begins so.
const CONTENT: &str = "{\"content\":";

/// The line of a part's bytes.
#[derive(Serialize, Deserialize)]
struct ContentLine {
    content: EncodedContent,
}

#[derive(Serialize, Deserialize)]
struct EncodedContent {
    sha256: String,
    base64: String,
}

/// Reads the events of a log.
///
/// # Errors
/// `NotAnEvent`.
pub fn read_log(lines: &[String]) -> Result<Vec<Arc<Record>>, LoadError> {
    let events = lines.iter().enumerate().filter(|(_, line)| !line.starts_with(CONTENT));
    let read = |(position, line): (usize, &String)| {
        let record = serde_json::from_str(line).map(Arc::new);
        record.map_err(|cause| LoadError::NotAnEvent { line: position + 1, cause: cause.to_string() })
    };
    events.map(read).collect()
}

/// Reads the bytes of the parts of a log.
///
/// # Errors
/// `NotAnEvent`: they are not in base64, or have another hash than the line says.
pub fn read_contents(lines: &[String]) -> Result<Vec<Content>, LoadError> {
    let contents = lines.iter().enumerate().filter(|(_, line)| line.starts_with(CONTENT));
    let read = |(position, line): (usize, &String)| {
        let wrong = |cause: String| LoadError::NotAnEvent { line: position + 1, cause };
        let ContentLine { content } = serde_json::from_str(line).map_err(|cause| wrong(cause.to_string()))?;
        let data = STANDARD.decode(&content.base64).map_err(|cause| wrong(cause.to_string()))?;
        let read = Content::new(data);
        if *read.sha256 != *content.sha256 {
            return Err(wrong(format!("its bytes have the SHA-256 {}, not {}", read.sha256, content.sha256)));
        }
        Ok(read)
    };
    contents.map(read).collect()
}

/// Writes a log.
///
/// # Errors
/// That of `content`, which returns the bytes of a part by their hash; or a record has no JSON form, which none is
/// without.
pub fn write_log<E: From<serde_json::Error>>(
    records: &[Arc<Record>],
    content: impl Fn(&str) -> Result<Option<Arc<[u8]>>, E>,
) -> Result<Vec<String>, E> {
    let mut lines = Vec::with_capacity(records.len());
    let mut written = BTreeSet::new();
    for record in records {
        for part in record.event.parts() {
            if written.insert(Arc::clone(&part.sha256))
                && let Some(data) = content(&part.sha256)?
            {
                let encoded = EncodedContent { sha256: part.sha256.to_string(), base64: STANDARD.encode(&data) };
                lines.push(serde_json::to_string(&ContentLine { content: encoded })?);
            }
        }
        lines.push(serde_json::to_string(record)?);
    }
    Ok(lines)
}

impl Event {
    /// Images and files that it brings into its run.
    pub fn parts(&self) -> Vec<&Part> {
        match self {
            Self::RunStarted(start) => {
                start.messages.iter().flat_map(|message| &message.parts).chain(&start.parts).collect()
            }
            Self::UserSaid { parts, .. } | Self::TicketCompleted { parts, .. } => parts.iter().collect(),
            Self::Compacted { state, .. } => state.parts(),
            _ => Vec::new(),
        }
    }
}
