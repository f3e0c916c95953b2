//! Corpora of replies: one JSON object a line.

use crate::invariants::{Read, Way};
use callslip::protocol::Move;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeSet;
use std::path::Path;

/// One reply and what is expected of it.
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) way: Way,
    pub(crate) family: String,
    pub(crate) failure_mode: String,
    pub(crate) text: String,
    pub(crate) chunks: Option<Vec<String>>,
    pub(crate) kind: String,
    pub(crate) value: Json,
    pub(crate) repairs: BTreeSet<String>,
}

/// The project's own replies.
pub(crate) fn own() -> Vec<Case> {
    load("tests/data/replies.jsonl")
}

fn load(path: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path);
    text.lines().filter(|line| !line.trim().is_empty()).map(case).collect()
}

/// Other people's replies, which `make test-shared` alone reads: it sets `CALLSLIP_SHARED` to their folder.
pub(crate) fn shared() -> Vec<Case> {
    let folder = std::env::var("CALLSLIP_SHARED").expect("expected a folder in CALLSLIP_SHARED: use make test-shared");
    load(&format!("{folder}/conformance/replies.jsonl"))
}

fn case(line: &str) -> Case {
    let row: Json = serde_json::from_str(line).expect(line);
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let config = &row["config"];
    let tag = |key: &str, default: &str| config[key].as_str().unwrap_or(default).to_owned();
    let tags = (tag("tool_tag_start", "<tool>"), tag("tool_tag_end", "</tool>"));
    let mut way = Way::new(&text("protocol"), (&tags.0, &tags.1));
    way.options.think_prefilled = config["think_prefilled"] == true;
    let expect = &row["expect"];
    Case {
        id: text("id"),
        way,
        family: text("family"),
        failure_mode: text("failure_mode"),
        text: text("text"),
        chunks: row["chunks"]
            .as_array()
            .map(|all| all.iter().map(|chunk| chunk.as_str().unwrap().to_owned()).collect()),
        kind: expect["kind"].as_str().unwrap().to_owned(),
        value: expect["value"].clone(),
        repairs: expect["repairs"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|code| code.as_str().unwrap().to_owned())
            .collect(),
    }
}

/// The reply as it was read, chunk by chunk where the case has chunks.
pub(crate) fn read(case: &Case) -> Read {
    match &case.chunks {
        Some(chunks) => case.way.read(&chunks.iter().map(String::as_bytes).collect::<Vec<_>>()),
        None => case.way.read(&[case.text.as_bytes()]),
    }
}

impl Read {
    /// What it is, and its value in the corpus's form.
    pub(crate) fn outcome(&self, protocol: &str) -> (String, Json) {
        let reply = &self.reply;
        let read = match &reply.outcome {
            Ok(read) => read,
            Err(violation) => return ("violation".to_owned(), json!({"code": violation.code_text()})),
        };
        let as_json = |value: &callslip::reply::Value| serde_json::from_str::<Json>(&value.to_json()).unwrap();
        match (protocol, read) {
            ("chatty", Move::Finish { value, .. }) => ("direct_answer".to_owned(), json!({"text": as_json(value)})),
            ("chatty", Move::Call { calls }) => {
                let calls: Vec<Json> = calls
                    .iter()
                    .map(|call| json!({"call_id": call.call_id, "tool_name": call.tool, "arguments": as_json(&call.arguments)}))
                    .collect();
                ("action".to_owned(), json!({"calls": calls}))
            }
            ("react", other) => {
                let mut fields = Map::new();
                if let Some(thought) = &reply.thoughts {
                    fields.insert("thought".to_owned(), json!(thought));
                }
                match other {
                    Move::Finish { value, success, .. } => {
                        fields.insert("final_answer".to_owned(), as_json(value));
                        fields.insert("task_successful".to_owned(), json!(success));
                        ("final".to_owned(), Json::Object(fields))
                    }
                    Move::Call { calls } => {
                        fields.insert("action".to_owned(), json!(calls[0].tool));
                        fields.insert("args".to_owned(), as_json(&calls[0].arguments));
                        ("action".to_owned(), Json::Object(fields))
                    }
                    other => panic!("{other:?}"),
                }
            }
            (_, Move::Finish { value, .. }) => ("final".to_owned(), json!({"type": "RETURN", "value": as_json(value)})),
            (_, Move::Call { calls }) => {
                let call = &calls[0];
                let value = json!({"type": "CALL", "route": call.tool, "payload": as_json(&call.arguments), "description": call.description});
                ("action".to_owned(), value)
            }
            (_, Move::Delegate { task }) => ("action".to_owned(), json!({"type": "DELEGATE", "task": task})),
            (_, Move::Await { ticket_id }) => ("action".to_owned(), json!({"type": "AWAIT", "ticket_id": ticket_id})),
            (_, Move::Load { ticket_id }) => {
                ("action".to_owned(), json!({"type": "LOAD_TICKET", "ticket_id": ticket_id}))
            }
            (_, other) => panic!("{other:?}"),
        }
    }

    pub(crate) fn compare(&self, case: &Case) -> Result<(), String> {
        let (kind, value) = self.outcome(case.way.protocol.name());
        let repairs: BTreeSet<String> = self.reply.repairs.iter().map(|repair| repair.code.name().to_owned()).collect();
        let mut wanted = case.value.clone();
        if case.kind == "violation" {
            wanted.as_object_mut().unwrap().remove("at");
        }
        if kind != case.kind || value != wanted {
            let message = self.reply.outcome.as_ref().err().map(|violation| &violation.message);
            return Err(format!("expected {} {wanted}\n  got      {kind} {value} {message:?}", case.kind));
        }
        if repairs != case.repairs {
            return Err(format!("expected the repairs {:?}\n  got                  {repairs:?}", case.repairs));
        }
        Ok(())
    }
}
