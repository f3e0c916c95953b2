//! Folders, records and stores to test with.

use callslip::part::{Content, Part};
use callslip::protocol::{FinishReason, Message, React, Role};
use callslip::run::command::{OnLimit, OnOpenTickets};
use callslip::run::{
    Event, FailedCall, Limits, Note, Opened, Parent, Record, Setup, Spent, Start, StopReason, Usage, event,
};
use callslip::store::{Durability, MemoryStore, SqliteStore, Store};
use callslip::ticket::{Outcome, TicketId, TicketKind};
use callslip::tool::ToolSet;
use serde_json::value::RawValue;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A folder of its own, gone when it drops.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("callslip-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("runs.sqlite")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn sqlite(folder: &Folder) -> Arc<SqliteStore> {
    SqliteStore::open(folder.file(), Durability::Normal).unwrap()
}

/// Does the same with a store of each kind.
pub(crate) fn with_each(test: impl Fn(&dyn Store)) {
    test(&MemoryStore::default());
    let folder = Folder::new();
    test(&*sqlite(&folder));
    #[cfg(feature = "postgres")]
    test(&*crate::postgres::Database::new().claiming());
}

pub(crate) fn setup(prompt: &str) -> Arc<Setup> {
    Arc::new(Setup {
        instructions: None,
        examples: [].into(),
        reminder: None,
        protocol: Arc::new(React::default()),
        prompt: prompt.into(),
        tools: Arc::new(ToolSet::new(Vec::new()).unwrap()),
        limits: Limits::default(),
        on_limit: OnLimit::Answer,
        on_open_tickets: OnOpenTickets::Wait,
        delegates: false,
        call_first: false,
        early_stop: true,
        checks_answer: false,
        ends_at_call: false,
        values: None,
        least_certainty: None,
        early_start: true,
    })
}

pub(crate) static SETUP: LazyLock<Arc<Setup>> = LazyLock::new(|| setup("You are \"an agent\".\n\"setup\":null"));

pub(crate) fn start(run_id: &str, agent: &str, parent: Option<&str>) -> Start {
    Start {
        version: event::VERSION,
        run_id: run_id.to_owned(),
        agent: agent.to_owned(),
        owner: (agent != "agent").then(|| "ann \u{e9}\0".into()),
        // Of two runs that were imported with one key, the first has it.
        key: parent.is_none().then(|| "key\0 of requests".into()),
        seal_key: parent.map(|_| "00112233445566778899aabbccddeeff".into()),
        parent: parent.map(|run_id| Parent { run_id: run_id.to_owned(), ticket: TicketId(7) }),
        depth: u32::from(parent.is_some()),
        limits: parent.map(|_| Limits { turns: Some(3), ..Limits::default() }),
        instructions: parent.map(|_| {
            let instructions = r#"{"text": "\"setup\":null", "at": 0, "removed": 0, "inserted": "\"setup\":null"}"#;
            serde_json::from_str(instructions).unwrap()
        }),
        untrusted: parent.is_some(),
        messages: [Message {
            role: Role::User,
            content: "\"setup\":null".into(),
            short: None,
            parts: vec![part("U1", b"first")],
        }]
        .into(),
        traceparent: parent.map(|_| "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        task: "Say \"setup\":null and \u{1F600}".into(),
        parts: vec![part("U2", b"second")],
        setup: Arc::clone(&SETUP),
    }
}

pub(crate) fn started(run_id: &str) -> Event {
    Event::RunStarted(Box::new(start(run_id, "agent", None)))
}

pub(crate) fn started_in(run_id: &str, parent: &str) -> Event {
    Event::RunStarted(Box::new(start(run_id, "child", Some(parent))))
}

pub(crate) fn asked(turn: u32) -> Event {
    Event::ModelAsked { turn, model: Some("small-1".into()), provider: Some("openai".into()) }
}

pub(crate) fn replied(turn: u32) -> Event {
    let usage = Usage { input_tokens: 100, output_tokens: 10, cached_tokens: 1, cost: 0.25, unpriced: false };
    let text = "{\"a\": \"b\"}".into();
    let finish_reason = FinishReason::Stop;
    Event::ModelReplied {
        turn,
        text,
        streamed: false,
        finish_reason,
        usage: Some(Box::new(usage)),
        repairs: Vec::new(),
        first_at: Some(1.5),
        certainty: Some(0.75),
        model: None,
        provider: None,
    }
}

pub(crate) fn opened(ticket: u32) -> Event {
    Event::TicketOpened(Box::new(Opened {
        ticket: TicketId(ticket),
        kind: if ticket.is_multiple_of(3) { TicketKind::Task } else { TicketKind::ToolCall },
        script: false,
        turn: 1,
        call: 0,
        call_id: ticket.is_multiple_of(2).then(|| format!("call {ticket}")),
        description: format!("add({ticket})").into(),
        tool: "add".into(),
        arguments: Arc::new(serde_json::from_str(r#"{"a": 1.0, "b": "x\u0001y", "c": [1e300]}"#).unwrap()),
        needs: Vec::new(),
        detached: ticket.is_multiple_of(6),
        needs_approval: ticket.is_multiple_of(4),
        checks_approval: ticket.is_multiple_of(7),
        coerced: if ticket.is_multiple_of(5) { vec!["/a".to_owned()] } else { Vec::new() },
        external: ticket
            .is_multiple_of(2)
            .then(|| Arc::new(serde_json::from_str(r#"{"returns": {"type": "string"}, "timeout": 2.5}"#).unwrap())),
        untrusted: ticket.is_multiple_of(5),
        origins: Vec::new(),
        reason: None,
    }))
}

pub(crate) fn approved(ticket: u32) -> Event {
    let arguments = ticket.is_multiple_of(3).then(|| Arc::new(serde_json::from_str(r#"{"a": 2.0}"#).unwrap()));
    Event::Approved { ticket: TicketId(ticket), arguments, at_rest: ticket.is_multiple_of(5), by: Some("ann".into()) }
}

/// A file with a name that looks like a place in an event.
pub(crate) fn part(label: &str, data: &[u8]) -> Part {
    Part::new(label, "text/plain", Some("\"ok\":null, \"setup\":null, \"parts\":"), &Content::new(data))
}

pub(crate) fn approval_checked(ticket: u32) -> Event {
    let needs_approval = ticket.is_multiple_of(2);
    let reason = ticket.is_multiple_of(4).then(|| "large".into());
    Event::ApprovalChecked { ticket: TicketId(ticket), needs_approval, reason }
}

/// One of three keys.
pub(crate) fn answer_key(ticket: u32) -> String {
    format!("job \u{e9}\0 {}", ticket % 3)
}

pub(crate) fn pending(ticket: u32) -> Event {
    let external = Arc::new(serde_json::from_str(r#"{"returns": {"type": "integer"}}"#).unwrap());
    Event::TicketPending { ticket: TicketId(ticket), key: Some(answer_key(ticket).into()), external }
}

pub(crate) fn attempt_failed(ticket: u32, attempt: u32) -> Event {
    let wait = (!attempt.is_multiple_of(3)).then_some(1.5);
    Event::ToolAttemptFailed(Box::new(FailedCall::new(TicketId(ticket), attempt, "E: \"no\".", wait)))
}

pub(crate) fn completed(ticket: u32, outcome: Outcome) -> Event {
    let spent = ticket.is_multiple_of(3).then(|| Box::new(Spent { tickets: 2, runs: 1, ..Spent::default() }));
    let parts = ticket.is_multiple_of(2).then(|| part(&format!("T{ticket}"), b"third")).into_iter().collect();
    Event::TicketCompleted {
        ticket: TicketId(ticket),
        outcome,
        spent,
        parts,
        by: ticket.is_multiple_of(3).then(|| "ann".into()),
        untrusted: ticket % 3 == 1,
    }
}

pub(crate) fn ok(json: &str) -> Outcome {
    Outcome::Ok(RawValue::from_string(json.to_owned()).unwrap().into())
}

/// A result that is kept apart.
pub(crate) fn large(what: &str) -> String {
    format!("{{\"ok\": null, \"what\": \"{what}{}\"}}", "x".repeat(5000))
}

pub(crate) fn finished() -> Event {
    let value = Arc::new(serde_json::from_str("{\"n\": 1.5}").unwrap());
    Event::RunFinished { reason: StopReason::Finished, value, success: Some(true), error: None, limit: None }
}

pub(crate) fn resumed() -> Event {
    Event::Noted { note: Note::Resumed }
}

/// Records from this position on, each a second after the one before.
pub(crate) fn records(from: u64, events: impl IntoIterator<Item = Event>) -> Vec<Arc<Record>> {
    let numbered = (from..).zip(events);
    #[expect(clippy::cast_precision_loss, reason = "positions are small")]
    numbered.map(|(seq, event)| Arc::new(Record { seq, at: 1000.0 + seq as f64 + 0.1, event })).collect()
}

pub(crate) fn texts(records: &[Arc<Record>]) -> Vec<String> {
    records.iter().map(|record| serde_json::to_string(record).unwrap()).collect()
}

/// A whole run of one call.
pub(crate) fn whole(run_id: &str, result: &str) -> Vec<Arc<Record>> {
    let events = [started(run_id), asked(1), replied(1), opened(1), completed(1, ok(result)), asked(2), replied(2)];
    records(0, events.into_iter().chain([finished()]))
}
