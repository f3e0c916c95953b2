//! One batch of records as the parameters of one statement: a single round trip, whatever the batch has.

use super::lease::Leased;
use super::text::encode;
use crate::part::Content;
use crate::run::{Event, Record, StopReason};
use crate::store::blob::{Apart, INLINE, split};
use crate::store::projection::{self, TicketChange};
use crate::store::row::{RunRow, TicketRow};
use crate::ticket::Outcome;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Writes a batch. Says which runs were written, now or when the same batch was sent before: those that are missing are
/// held by another epoch.
pub(super) const WRITE: &str = include_str!("write.sql");

/// A run of the batch: where its log was and is, and its row. What only the beginning has is null later.
#[derive(Serialize)]
struct Run<'a> {
    id: &'a str,
    epoch: i64,
    is_new: bool,
    expected: i64,
    next: i64,
    first: i64,
    holder: Option<Arc<str>>,
    agent: Option<String>,
    owner: Option<String>,
    submit_key: Option<String>,
    protocol: Option<&'a str>,
    task: Option<String>,
    parent: Option<&'a str>,
    parent_ticket: Option<u32>,
    shape: Option<String>,
    stop_reason: Option<&'static str>,
    error: Option<String>,
    turns: u32,
    violations: u32,
    input_tokens: i64,
    output_tokens: i64,
    cached_tokens: i64,
    cost: f64,
    started_at: f64,
    updated_at: f64,
    finished_at: Option<f64>,
}

/// A new ticket.
#[derive(Serialize)]
struct NewTicket {
    run: Arc<str>,
    id: u32,
    kind: &'static str,
    tool: String,
    description: String,
    turn: u32,
    call_id: Option<String>,
    opened_at: f64,
    opened_seq: Option<i64>,
    completed_at: Option<f64>,
    completed_seq: Option<i64>,
    outcome: Option<String>,
    arguments: Option<String>,
    text: Option<String>,
    /// In hexadecimal digits.
    blob: Option<String>,
    parked: bool,
    attempts: u32,
    approval_reason: Option<String>,
    parts: Option<String>,
    awaits_result: Option<bool>,
    external: Option<String>,
    answer_key: Option<String>,
    untrusted: bool,
}

/// What a batch changes of a ticket that was there before.
#[derive(Serialize, Default)]
struct Patch {
    run: Arc<str>,
    id: u32,
    completed_at: Option<f64>,
    completed_seq: Option<i64>,
    outcome: Option<&'static str>,
    /// Whether the outcome came after the last change of `parked`.
    outcome_last: bool,
    arguments: Option<String>,
    parked: Option<bool>,
    attempts: Option<u32>,
    approval_reason: Option<String>,
    /// Whether it waits for a result now, if that comes from outside.
    is_free: Option<bool>,
    external: Option<String>,
    answer_key: Option<String>,
    untrusted: bool,
}

/// The parameters of the statement.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) runs: String,
    pub(super) event_runs: Vec<Arc<str>>,
    pub(super) seqs: Vec<i64>,
    pub(super) ats: Vec<f64>,
    pub(super) kinds: Vec<String>,
    pub(super) datas: Vec<String>,
    pub(super) event_blobs: Vec<Option<Vec<u8>>>,
    pub(super) blob_hashes: Vec<Vec<u8>>,
    pub(super) blobs: Vec<Vec<u8>>,
    pub(super) content_runs: Vec<Arc<str>>,
    pub(super) content_hashes: Vec<Vec<u8>>,
    pub(super) new_tickets: String,
    pub(super) patches: String,
    pub(super) taken: Vec<i64>,
}

/// The records of one run in a batch, in their order, with what belongs to them.
pub(super) struct Part {
    pub(super) lease: Arc<Leased>,
    pub(super) epoch: i64,
    /// Whether the database does not know the run, and where its log was before.
    pub(super) is_new: bool,
    pub(super) expected: u64,
    pub(super) records: Vec<Arc<Record>>,
    pub(super) contents: Vec<Content>,
    pub(super) taken: Vec<i64>,
    /// The row after these records.
    pub(super) row: RunRow,
}

/// What is put together on the way.
#[derive(Default)]
struct Making {
    batch: Batch,
    /// By their hash: each once, in an order that all writers have.
    blobs: BTreeMap<Vec<u8>, Vec<u8>>,
    new: Vec<NewTicket>,
    patches: Vec<Patch>,
    /// Where in these lists a ticket is.
    opened: HashMap<(Arc<str>, u32), usize>,
    changed: HashMap<(Arc<str>, u32), usize>,
}

impl Batch {
    /// The parameters for these runs.
    pub(super) fn new(parts: &[Part]) -> serde_json::Result<Self> {
        let mut making = Making::default();
        let mut runs = Vec::with_capacity(parts.len());
        for part in parts {
            runs.push(run(part));
            let id = part.lease.run_id_shared();
            let mut begins = part.is_new || part.expected == 0;
            for record in &part.records {
                making.event(&id, record)?;
                making.tickets(&id, record, begins)?;
                begins = false;
            }
            for Content { sha256, data } in &part.contents {
                let Some(hash) = unhex(sha256) else { continue };
                making.batch.content_runs.push(Arc::clone(&id));
                making.batch.content_hashes.push(hash.clone());
                making.blobs.insert(hash, data.to_vec());
            }
            making.batch.taken.extend(&part.taken);
        }
        let mut batch = making.batch;
        (batch.blob_hashes, batch.blobs) = making.blobs.into_iter().unzip();
        batch.runs = serde_json::to_string(&runs)?;
        batch.new_tickets = serde_json::to_string(&making.new)?;
        batch.patches = serde_json::to_string(&making.patches)?;
        Ok(batch)
    }
}

fn run(part: &Part) -> Run<'_> {
    let row = &part.row;
    let begins = part.is_new || part.expected == 0;
    let next = part.records.last().map_or(part.expected, |last| last.seq + 1);
    let first = if begins { part.records.first().map_or(0, |first| first.seq) } else { 0 };
    let parent = row.parent.as_ref().filter(|_| begins);
    Run {
        id: part.lease.run_id(),
        epoch: part.epoch,
        is_new: part.is_new,
        expected: part.expected.cast_signed(),
        next: next.cast_signed(),
        first: first.cast_signed(),
        holder: part.lease.holder(),
        agent: begins.then(|| encode(&row.agent).into_owned()),
        owner: row.owner.as_deref().filter(|_| begins).map(|owner| encode(owner).into_owned()),
        submit_key: row.key.as_deref().filter(|_| begins).map(|key| encode(key).into_owned()),
        protocol: begins.then_some(&row.protocol),
        task: begins.then(|| encode(&row.task).into_owned()),
        parent: parent.map(|parent| &*parent.run_id),
        parent_ticket: parent.map(|parent| parent.ticket.0),
        shape: part.records.first().filter(|_| begins).and_then(|record| shape(&record.event)),
        stop_reason: row.stop_reason.map(StopReason::name),
        error: row.error.as_deref().map(|error| encode(error).into_owned()),
        turns: row.turns,
        violations: row.violations,
        input_tokens: row.input_tokens.cast_signed(),
        output_tokens: row.output_tokens.cast_signed(),
        cached_tokens: row.cached_tokens.cast_signed(),
        cost: row.cost,
        started_at: row.started_at,
        updated_at: row.updated_at,
        finished_at: row.finished_at,
    }
}

fn shape(event: &Event) -> Option<String> {
    match event {
        Event::RunStarted(start) | Event::Compacted { start, .. } => Some(start.setup.shape()),
        _ => None,
    }
}

impl Making {
    fn event(&mut self, run: &Arc<str>, record: &Record) -> serde_json::Result<()> {
        let stored = split(&record.event)?;
        let blob = match stored.part {
            None => None,
            Some(Apart::Setup(setup)) => Some(self.put_blob(serde_json::to_string(setup)?.as_bytes())),
            Some(Apart::Result(json)) => Some(self.put_blob(json.as_bytes())),
        };
        let (kind, data) = stored.parts().unwrap_or_default();
        self.batch.event_runs.push(Arc::clone(run));
        self.batch.seqs.push(record.seq.cast_signed());
        self.batch.ats.push(record.at);
        self.batch.kinds.push(kind.to_owned());
        self.batch.datas.push(data.to_owned());
        self.batch.event_blobs.push(blob);
        Ok(())
    }

    fn put_blob(&mut self, data: &[u8]) -> Vec<u8> {
        let hash = Sha256::digest(data).to_vec();
        self.blobs.entry(hash.clone()).or_insert_with(|| data.to_vec());
        hash
    }

    fn tickets(&mut self, run: &Arc<str>, record: &Record, begins: bool) -> serde_json::Result<()> {
        match projection::tickets(run, record, begins) {
            TicketChange::None => {}
            TicketChange::Opened(row) => {
                // Its arguments stand in the event.
                let row = TicketRow { arguments: None, ..*row };
                self.open(run, NewTicket::new(run, &row, Some(record.seq)));
            }
            TicketChange::Completed { ticket, outcome, untrusted, .. } => {
                self.complete(run, ticket.0, (outcome, untrusted), record);
            }
            TicketChange::Filled { ticket, arguments, parked, is_free, untrusted } => {
                self.change(run, ticket.0, |patch| {
                    patch.untrusted |= untrusted;
                    patch.arguments = Some(arguments.clone());
                    patch.park(parked, is_free);
                });
            }
            TicketChange::Attempted { ticket, attempts } => {
                self.change(run, ticket.0, |patch| patch.attempts = Some(attempts));
            }
            TicketChange::ApprovalChecked { ticket, parked, reason } => self.change(run, ticket.0, |patch| {
                patch.park(parked, !parked);
                patch.approval_reason = reason.map(|reason| encode(reason).into_owned());
            }),
            TicketChange::Approved { ticket, arguments } => self.change(run, ticket.0, |patch| {
                patch.park(false, true);
                patch.arguments = arguments.clone().or(patch.arguments.take());
            }),
            TicketChange::Pending { ticket, key, external } => self.change(run, ticket.0, |patch| {
                (patch.is_free, patch.outcome_last) = (Some(true), false);
                patch.external = Some(external.clone());
                patch.answer_key = key.map(|key| encode(key).into_owned());
            }),
            TicketChange::All(rows) => {
                for row in rows {
                    let mut ticket = NewTicket::new(run, &row, None);
                    self.keep_texts(&mut ticket, &row)?;
                    self.open(run, ticket);
                }
            }
        }
        Ok(())
    }

    /// Puts what stood in events into the ticket itself.
    fn keep_texts(&mut self, ticket: &mut NewTicket, row: &TicketRow) -> serde_json::Result<()> {
        let (text, blob, parts) = kept_texts(row)?;
        ticket.text = text;
        ticket.blob = blob.map(|data| crate::hex::hex(&self.put_blob(data.as_bytes())));
        ticket.parts = parts;
        Ok(())
    }

    fn open(&mut self, run: &Arc<str>, ticket: NewTicket) {
        let key = (Arc::clone(run), ticket.id);
        if let std::collections::hash_map::Entry::Vacant(place) = self.opened.entry(key) {
            place.insert(self.new.len());
            self.new.push(ticket);
        }
    }

    fn complete(&mut self, run: &Arc<str>, id: u32, (outcome, untrusted): (&Outcome, bool), record: &Record) {
        self.change(run, id, |patch| {
            if patch.outcome.is_none() {
                patch.untrusted |= untrusted;
                patch.outcome = Some(outcome.word());
                patch.completed_at = Some(record.at);
                patch.completed_seq = Some(record.seq.cast_signed());
                patch.outcome_last = true;
            }
        });
    }

    /// Changes a ticket: in its row, where the batch opens it, and as it may be in the database.
    fn change(&mut self, run: &Arc<str>, id: u32, change: impl Fn(&mut Patch)) {
        let key = (Arc::clone(run), id);
        if let Some(ticket) = self.opened.get(&key).and_then(|position| self.new.get_mut(*position)) {
            let mut patch = Patch::default();
            change(&mut patch);
            ticket.apply(patch);
        }
        let position = *self.changed.entry(key).or_insert(self.patches.len());
        if position == self.patches.len() {
            self.patches.push(Patch { run: Arc::clone(run), id, ..Patch::default() });
        }
        if let Some(patch) = self.patches.get_mut(position) {
            change(patch);
        }
    }
}

impl Patch {
    fn park(&mut self, parked: bool, is_free: bool) {
        self.parked = Some(parked);
        self.is_free = Some(is_free);
        self.outcome_last = false;
    }
}

impl NewTicket {
    fn new(run: &Arc<str>, row: &TicketRow, seq: Option<u64>) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(|text| encode(text).into_owned());
        Self {
            run: Arc::clone(run),
            id: row.ticket.0,
            kind: row.kind.as_str(),
            tool: encode(&row.tool).into_owned(),
            description: encode(&row.description).into_owned(),
            turn: row.turn,
            call_id: text(&row.call_id),
            opened_at: row.opened_at,
            opened_seq: seq.map(u64::cast_signed),
            completed_at: row.completed_at,
            completed_seq: None,
            outcome: row.outcome.clone(),
            arguments: row.arguments.clone(),
            text: None,
            blob: None,
            parked: row.parked,
            attempts: row.attempts,
            approval_reason: text(&row.approval_reason),
            parts: None,
            awaits_result: row.awaits_result,
            external: row.external.clone(),
            answer_key: text(&row.answer_key),
            untrusted: row.untrusted,
        }
    }

    fn apply(&mut self, patch: Patch) {
        self.untrusted |= patch.untrusted && self.outcome.is_none();
        if let Some(outcome) = patch.outcome.filter(|_| self.outcome.is_none()) {
            self.outcome = Some(outcome.to_owned());
            self.completed_at = patch.completed_at;
            self.completed_seq = patch.completed_seq;
            self.parked = false;
            self.awaits_result = self.awaits_result.map(|_| false);
        }
        self.parked = patch.parked.unwrap_or(self.parked);
        if patch.external.is_some() {
            self.awaits_result.get_or_insert(false);
        }
        self.awaits_result = self.awaits_result.map(|awaits| patch.is_free.unwrap_or(awaits));
        self.external = patch.external.or(self.external.take());
        self.answer_key = patch.answer_key.or(self.answer_key.take());
        self.arguments = patch.arguments.or(self.arguments.take());
        self.attempts = patch.attempts.unwrap_or(self.attempts);
        self.approval_reason = patch.approval_reason.or(self.approval_reason.take());
    }
}

/// What of a ticket stands in the ticket itself once its events are gone: the text, or the large JSON that is kept
/// apart, and its parts.
pub(super) fn kept_texts(row: &TicketRow) -> serde_json::Result<(Option<String>, Option<&str>, Option<String>)> {
    let blob = row.text.as_deref().filter(|text| text.len() > INLINE && row.outcome.as_deref() == Some("ok"));
    let text = row.text.as_deref().filter(|_| blob.is_none()).map(|text| encode(text).into_owned());
    let parts = (!row.parts.is_empty()).then(|| serde_json::to_string(&row.parts)).transpose()?;
    Ok((text, blob, parts))
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    digits.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
