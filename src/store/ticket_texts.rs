//! The arguments and the result of a ticket, which its events have and its row does not repeat.

use super::row::TicketRow;
use crate::part::Part;
use crate::ticket::Outcome;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The texts that a store keeps in addition to the row of a ticket.
pub(super) struct TicketTexts {
    /// The position and the data of the event of its opening.
    pub(super) opened: Option<(u64, String)>,
    /// The same of its completion.
    pub(super) completed: Option<(u64, String)>,
    /// A large result, which is kept apart.
    pub(super) blob: Option<String>,
    /// Its parts, once the event of its completion was compacted.
    pub(super) parts: Option<String>,
}

#[derive(Deserialize)]
struct Opened<'a> {
    #[serde(borrow)]
    arguments: &'a RawValue,
}

#[derive(Deserialize)]
struct Completed {
    outcome: Outcome,
    #[serde(default)]
    parts: Vec<Part>,
}

impl TicketTexts {
    /// Puts them into the row.
    ///
    /// # Errors
    /// An event can't be read: its position, and the fault.
    pub(super) fn fill(self, row: &mut TicketRow) -> Result<(), (u64, String)> {
        let at = |seq: u64| move |error: serde_json::Error| (seq, error.to_string());
        // Those that were filled stand in the row itself.
        if let Some((seq, data)) = self.opened.filter(|_| row.arguments.is_none()) {
            let opened: Opened<'_> = serde_json::from_str(&data).map_err(at(seq))?;
            row.arguments = Some(opened.arguments.get().to_owned());
        }
        let completed_seq = self.completed.as_ref().map_or(0, |(seq, _)| *seq);
        row.text = self.blob.or(row.text.take());
        // A large result is stored separately, so the event is only read for its parts.
        if let Some((seq, data)) = self.completed.filter(|(_, data)| row.text.is_none() || data.contains("\"parts\":"))
        {
            let completed: Completed = serde_json::from_str(&data).map_err(at(seq))?;
            row.parts = completed.parts;
            row.text = row.text.take().or_else(|| Some(completed.outcome.text().to_owned()));
        }
        if let Some(data) = self.parts {
            row.parts = serde_json::from_str(&data).map_err(at(completed_seq))?;
        }
        Ok(())
    }
}
