//! Logs that earlier builds have written, with runs below runs: read, written and replayed as they stand.

use callslip::run::{RunMachine, compact, read_contents, read_log, replay, write_log};
use std::sync::Arc;

fn kept_log(version: u32, name: &str) -> Vec<String> {
    let path = format!("{}/tests/data/logs/version_{version}/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
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
        (6, "parts", 1, 13, 0),
    ] {
        let lines = kept_log(version, name);
        let (records, contents) = (read_log(&lines).unwrap(), read_contents(&lines).unwrap());
        let content = |sha256: &str| {
            let found = contents.iter().find(|content| *content.sha256 == *sha256);
            Ok::<_, serde_json::Error>(found.map(|content| Arc::clone(&content.data)))
        };
        assert_eq!(write_log(&records, content).unwrap(), lines, "{name}");
        let machine = RunMachine::load(&records).unwrap();
        let state = machine.state();
        assert_eq!(
            (state.calls.tickets.len(), state.conversation.messages.len(), state.spent().runs),
            (tickets, messages, runs),
            "{name}"
        );
        assert!(state.position.ending.is_some(), "{name}");
        assert!(replay(&records).is_ok(), "{name}");
        let snapshot = Arc::new(compact(&records).unwrap());
        assert_eq!(
            RunMachine::load(&[snapshot]).unwrap().state().conversation.messages,
            state.conversation.messages,
            "{name}"
        );
    }
}
