//! Logs that earlier builds have written, with runs below runs: read, written and replayed as they stand.

#![expect(clippy::unwrap_used, reason = "the functions that tests share may panic as tests do")]

use callslip::run::{Record, RunMachine, compact, replay};
use std::sync::Arc;

fn kept_log(version: u32, name: &str) -> Vec<(String, Arc<Record>)> {
    let path = format!("{}/tests/data/logs/version_{version}/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let lines = std::fs::read_to_string(path).unwrap();
    lines.lines().map(|line| (line.to_owned(), serde_json::from_str(line).unwrap())).collect()
}

#[test]
fn kept_logs_are_read_and_written_as_they_stand() {
    for (version, name, tickets, messages, runs) in [
        (2, "delegates", 1, 11, 1),
        (2, "part", 1, 9, 0),
        (2, "agents", 3, 5, 2),
        (2, "exhausted", 5, 13, 0),
        (2, "approvals", 2, 9, 0),
        (2, "changes", 3, 17, 0),
        (3, "references", 2, 5, 0),
        (3, "inline", 2, 9, 0),
        (3, "lenient", 1, 7, 0),
        (4, "attempts", 1, 9, 0),
        (4, "conversation", 1, 11, 0),
        (4, "shortened", 8, 19, 0),
        (5, "attempts", 2, 9, 0),
        (5, "decisions", 4, 9, 0),
    ] {
        let log = kept_log(version, name);
        for (line, record) in &log {
            assert_eq!(&serde_json::to_string(record).unwrap(), line, "{name}");
        }
        let records: Vec<_> = log.into_iter().map(|(_, record)| record).collect();
        let machine = RunMachine::load(&records).unwrap();
        let state = machine.state();
        assert_eq!(
            (state.tickets.len(), state.messages.len(), state.spent().runs),
            (tickets, messages, runs),
            "{name}"
        );
        assert!(state.ending.is_some(), "{name}");
        assert!(replay(&records).is_ok(), "{name}");
        let snapshot = Arc::new(compact(&records).unwrap());
        assert_eq!(RunMachine::load(&[snapshot]).unwrap().state().messages, state.messages, "{name}");
    }
}
