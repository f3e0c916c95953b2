//! The guard against repetition: what was called with which arguments, and what came of it.

use crate::reply::Value;
use crate::ticket::{Outcome, TicketId, TicketList, is_false};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Calls seen in a run, by tool and canonical arguments.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Repetition {
    seen: IndexMap<String, Seen>,
    refused: u32,
    /// Whether a message of the user starts the counts again. In logs before version 8 it does not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) per_message: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Seen {
    failed: bool,
    /// The ticket of the last such call.
    last: TicketId,
    times: u32,
}

/// Whether a call may be made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may.
    Fresh,
    /// The same call failed before.
    Failed,
    /// The same call gave the same result this many times.
    Exhausted(u32),
}

/// Refusals of exhausted calls, one after the other, that end a run.
const LAST_REFUSAL: u32 = 3;

impl Repetition {
    /// Whether a call may be made once more.
    pub(super) fn check(&self, key: &str, max_repeats: u32) -> Verdict {
        match self.seen.get(key) {
            Some(seen) if seen.failed => Verdict::Failed,
            Some(seen) if seen.times >= max_repeats => Verdict::Exhausted(seen.times),
            _ => Verdict::Fresh,
        }
    }

    /// Records how a call ended. Returns how often it has now given this result in a row.
    pub(super) fn record(&mut self, key: String, ticket: TicketId, outcome: &Outcome, tickets: &TicketList) -> u32 {
        let seen = self.seen.entry(key).or_insert(Seen { failed: false, last: ticket, times: 0 });
        let last = tickets.get(seen.last).and_then(|ticket| ticket.outcome.as_ref());
        let same = last.is_some_and(|last| last.text() == outcome.text());
        seen.failed = matches!(
            outcome,
            Outcome::Error { transient: false, .. } | Outcome::Denied { .. } | Outcome::RunCancelled { .. }
        );
        let passes = matches!(outcome, Outcome::Error { transient: true, .. });
        seen.times = if same && !passes { seen.times.saturating_add(1) } else { 1 };
        seen.last = ticket;
        seen.times
    }

    /// The ticket of the last such call that has ended.
    pub(super) fn last(&self, key: &str) -> Option<TicketId> {
        self.seen.get(key).map(|seen| seen.last)
    }

    /// Counts a refusal of an exhausted call.
    pub(super) fn refuse(&mut self) {
        self.refused += 1;
    }

    /// Whether the run ends because the model has ignored two refusals.
    pub(super) fn refused_too_often(&self) -> bool {
        self.refused >= LAST_REFUSAL
    }

    /// The user has said more: calls that failed, or gave the same result, may be what is asked for now.
    pub(super) fn on_user_said(&mut self) {
        if !self.per_message {
            return;
        }
        self.refused = 0;
        for seen in self.seen.values_mut() {
            (seen.failed, seen.times) = (false, 0);
        }
    }

    /// A call was admitted, so the model has left its loop.
    pub(super) fn left(&mut self) {
        self.refused = 0;
    }
}

/// The key of a call: equal for arguments that are equal as JSON, whatever their order and spelling.
pub(super) fn key(tool: &str, arguments: &Value) -> String {
    let mut key = String::with_capacity(tool.len() + 64);
    key.push_str(tool);
    write_canonical(arguments, &mut key);
    key
}

/// Not JSON text: each part begins with its kind and, where it may hold anything, with its length.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => {
            out.push('{');
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in entries {
                write_text(name, out);
                write_canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Number(number) => {
            out.push('#');
            write_number(number.as_str(), out);
        }
        Value::String(text) => write_text(text, out),
        Value::Null => out.push('n'),
        Value::Bool(flag) => out.push(if *flag { 't' } else { 'f' }),
    }
}

fn write_text(text: &str, out: &mut String) {
    // Writing into a string has no failing case.
    let _ = write!(out, "\"{}:", text.len());
    out.push_str(text);
}

/// `1.0` and `1` are one number; an integer beyond 64 bits keeps its digits.
fn write_number(text: &str, out: &mut String) {
    if !text.contains(['.', 'e', 'E']) {
        return out.push_str(if text == "-0" { "0" } else { text });
    }
    let _ = match text.parse::<f64>() {
        Ok(float) if float.fract() == 0.0 && float.abs() < 1e15 => write!(out, "{:.0}", float + 0.0),
        Ok(float) if float.is_finite() => write!(out, "{float:?}"),
        _ => return out.push_str(text),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticket::{Ticket, TicketKind};

    fn value(json: &str) -> Value {
        serde_json::from_str(json).unwrap()
    }

    fn ok(json: &str) -> Outcome {
        Outcome::Ok(serde_json::value::RawValue::from_string(json.to_owned()).unwrap().into())
    }

    #[test]
    fn keys_do_not_depend_on_order_or_spelling() {
        assert_eq!(key("f", &value(r#"{"a": 1.0, "b": [1e2]}"#)), key("f", &value(r#"{"b": [100], "a": 1}"#)));
        assert_ne!(key("f", &value(r#"{"a": 1}"#)), key("f", &value(r#"{"a": "1"}"#)));
        assert_ne!(
            key("f", &value(r#"{"a": 10000000000000000000001}"#)),
            key("f", &value(r#"{"a": 10000000000000000000002}"#))
        );
    }

    /// Records the outcomes of calls with one key, one ticket each. Returns how often each had given its result.
    fn record(guard: &mut Repetition, outcomes: &[Outcome]) -> Vec<u32> {
        let mut tickets = TicketList::default();
        let mut times = Vec::new();
        for outcome in outcomes {
            let id = tickets.next_id();
            tickets.open(Ticket {
                id,
                description: "".into(),
                kind: TicketKind::ToolCall,
                tool: "f".into(),
                role: None,
                detached: false,
                parked: false,
                attempts: 1,
                approval_reason: None,
                decision: None,
                approved_by: None,
                external: None,
                awaits_result: false,
                answer_key: None,
                answered_by: None,
                untrusted: false,
                origins: std::sync::Arc::default(),
                arguments: None,
                turn: 1,
                call_id: None,
                opened_at: 0.0,
                completed_at: None,
                outcome: None,
                reads: None,
                parts: Vec::new(),
            });
            tickets.complete(id, outcome.clone(), &[], None, 0.0);
            times.push(guard.record("f {}".into(), id, outcome, &tickets));
        }
        times
    }

    #[test]
    fn a_failed_call_is_not_run_again() {
        let mut guard = Repetition::default();
        record(&mut guard, &[Outcome::Error { message: "no".into(), transient: false }]);
        assert_eq!(guard.check("f {}", 3), Verdict::Failed);
        assert_eq!(guard.check("g {}", 3), Verdict::Fresh);
    }

    #[test]
    fn a_call_whose_failure_may_pass_is_made_again() {
        let mut guard = Repetition::default();
        let busy = || Outcome::Error { message: "busy".into(), transient: true };
        assert_eq!(record(&mut guard, &[busy(), busy(), busy(), busy()]), [1, 1, 1, 1]);
        assert_eq!(guard.check("f {}", 3), Verdict::Fresh);
    }

    #[test]
    fn a_call_in_doubt_may_be_made_again() {
        let mut guard = Repetition::default();
        record(&mut guard, &[Outcome::InDoubt { message: "unknown".into() }]);
        assert_eq!(guard.check("f {}", 3), Verdict::Fresh);
    }

    #[test]
    fn the_same_result_exhausts_a_call_and_another_result_renews_it() {
        let mut guard = Repetition::default();
        assert_eq!(record(&mut guard, &[ok("1"), ok("1")]), [1, 2]);
        assert_eq!(guard.check("f {}", 2), Verdict::Exhausted(2));
        let mut guard = Repetition::default();
        assert_eq!(record(&mut guard, &[ok("1"), ok("1"), ok("2")]), [1, 2, 1]);
        assert_eq!(guard.check("f {}", 2), Verdict::Fresh);
    }

    #[test]
    fn a_message_of_the_user_starts_the_counts_again() {
        for per_message in [true, false] {
            let mut guard = Repetition { per_message, ..Repetition::default() };
            record(&mut guard, &[ok("1"), ok("1")]);
            guard.refuse();
            guard.refuse();
            guard.on_user_said();
            guard.refuse();
            assert_eq!(guard.refused_too_often(), !per_message);
            assert_eq!(guard.check("f {}", 2) == Verdict::Fresh, per_message);
            assert!(guard.last("f {}").is_some());

            record(&mut guard, &[Outcome::Error { message: "no".into(), transient: false }]);
            assert_eq!(guard.check("f {}", 2), Verdict::Failed);
            guard.on_user_said();
            assert_eq!(guard.check("f {}", 2) == Verdict::Fresh, per_message);
        }
    }

    #[test]
    fn the_third_refusal_ends_the_run() {
        let mut guard = Repetition::default();
        guard.refuse();
        guard.refuse();
        assert!(!guard.refused_too_often());
        guard.refuse();
        assert!(guard.refused_too_often());
    }
}
