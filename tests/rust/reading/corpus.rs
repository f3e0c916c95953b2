//! Corpora of replies: one JSON object a line.

use crate::invariants::{Read, Way};
use crate::meant::run_of;
use callslip::protocol::Move;
use callslip::reply::RepairPolicy;
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
    /// Whether other repairs than these may be noted.
    pub(crate) more_repairs: bool,
    /// The tools of the run that takes the reply, each with its parameters; only if they matter.
    tools: Option<Json>,
    /// The type of the answer in that run.
    returns: Option<Json>,
    /// What the model is told in that run, and what it is not.
    told: [Vec<String>; 2],
}

/// The project's own replies.
pub(crate) fn own() -> Vec<Case> {
    load("tests/data/replies.jsonl")
}

/// Replies in the styles of the models of 2026, whose outcome was written down before they were first read.
pub(crate) fn of_2026() -> Vec<Case> {
    load("tests/data/replies_2026.jsonl")
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
    if config["lenient"] == true {
        way.options.repairs = RepairPolicy::Lenient;
    }
    let expect = &row["expect"];
    let texts = |value: &Json| -> Vec<String> {
        value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let given = |key: &str| config.get(key).cloned();
    let more_repairs = expect["repairs_with"].is_array();
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
        repairs: texts(&expect[if more_repairs { "repairs_with" } else { "repairs" }]).into_iter().collect(),
        more_repairs,
        tools: given("tools"),
        returns: given("returns"),
        told: ["with", "without"].map(|key| texts(&expect["told"][key])),
    }
}

/// The reply as it was read, chunk by chunk where the case has chunks, and by a run where its tools matter.
pub(crate) fn read(case: &Case) -> Read {
    let mut read = match &case.chunks {
        Some(chunks) => case.way.read(&chunks.iter().map(String::as_bytes).collect::<Vec<_>>()),
        None => case.way.read(&[case.text.as_bytes()]),
    };
    if let Some(tools) = &case.tools {
        let (outcome, repairs, _) = run_of(case.way.protocol.name(), tools, case.returns.as_ref(), &case.text);
        (read.reply.outcome, read.reply.repairs) = (outcome, repairs);
    }
    read
}

/// What is wrong with the words that the model is told.
fn told_wrongly(case: &Case) -> Option<String> {
    let [with, without] = &case.told;
    if with.is_empty() && without.is_empty() {
        return None;
    }
    let tools = case.tools.as_ref().expect("expected the tools of the run");
    let (_, _, told) = run_of(case.way.protocol.name(), tools, case.returns.as_ref(), &case.text);
    let missing = with.iter().filter(|text| !told.contains(*text));
    let wrong = without.iter().filter(|text| told.contains(*text));
    let wrong: Vec<_> = missing.chain(wrong).collect();
    (!wrong.is_empty()).then(|| format!("expected other words, see {wrong:?}\n  got {told:?}"))
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
            (_, Move::Load { ticket_id, .. }) => {
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
        // What is held back may be refused, or be text for a person.
        let quiet = case.kind == "nothing_called" && matches!(kind.as_str(), "violation" | "direct_answer");
        let any_code = case.kind == "violation" && kind == "violation" && wanted == json!({});
        if !quiet && !any_code && (kind != case.kind || value != wanted) {
            let message = self.reply.outcome.as_ref().err().map(|violation| &violation.message);
            return Err(format!("expected {} {wanted}\n  got      {kind} {value} {message:?}", case.kind));
        }
        let noted = if case.more_repairs { repairs.is_superset(&case.repairs) } else { repairs == case.repairs };
        if !noted {
            return Err(format!("expected the repairs {:?}\n  got                  {repairs:?}", case.repairs));
        }
        told_wrongly(case).map_or(Ok(()), Err)
    }
}
