//! The tool that shows the next part of a result which was too long for a message: `read_result`.

use super::spec::{Effect, ToolKind, ToolSpec};
use crate::ticket::TicketId;
use serde_json::json;

/// Its name.
pub const READ_RESULT: &str = "read_result";

/// The tool. With `known`, the tickets that it reads and the bytes of their longest result, its schema admits no others.
pub(crate) fn spec(known: Option<(&[TicketId], usize)>) -> ToolSpec {
    let (of, bytes) = ("The ticket of the result, for example T1.", "The bytes of the result to skip.");
    let (ticket, offset) = match known {
        None => (
            json!({"type": "string", "description": of}),
            json!({"type": "integer", "minimum": 0, "default": 0, "description": bytes}),
        ),
        Some((tickets, longest)) => {
            let ids: Vec<String> = tickets.iter().map(TicketId::to_string).collect();
            let last = longest.saturating_sub(1);
            (json!({"enum": ids}), json!({"type": "integer", "minimum": 0, "maximum": last}))
        }
    };
    ToolSpec {
        name: READ_RESULT.to_owned(),
        description: "Show the next part of a result that was cut.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"ticket": ticket, "offset": offset},
            "required": ["ticket"],
            "additionalProperties": false,
        }),
        kind: ToolKind::ReadResult,
        effect: Effect::Pure,
        readonly: true,
        reconciles: false,
        needs_approval: false,
        checks_approval: false,
        repeatable: false,
        untrusted: false,
        queue: None,
        reads: std::collections::BTreeMap::new(),
        external: None,
        values: std::collections::BTreeMap::new(),
        asks_untrusted: false,
    }
}
