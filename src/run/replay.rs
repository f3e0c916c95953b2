//! A log driven through the machine once more: the replies and outcomes that it records must give the same events. Of
//! replies in older logs it is the moves and violations that are taken.

use super::event::{Event, FailedAttempt, FailedCall, Note, Record, Shortened, StopReason};
use super::judge::Judged;
use super::limits::Limit;
use super::machine::{ReplayedLimits, RunMachine, SharedLimits, Verdict};
use super::model_name::{ModelName, ReplyDetails};
use super::outside::Told;
use super::resume::{self, LoadError};
use super::state::Phase;
use crate::ticket::External;
use crate::tool::{Approval, MoreApproval};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use thiserror::Error;

/// Why a log can't be replayed.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub enum ReplayError {
    /// It is not the log of a run.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its first events are folded into one.
    #[error("the log was compacted: it can be read and resumed, but what it was made from is gone")]
    Compacted,
    /// Another event follows than the one recorded.
    #[error("event {seq} differs: the log has {recorded}, the replay gives {replayed}")]
    Differs {
        seq: u64,
        /// The event of the log, as JSON.
        recorded: String,
        /// The event of the replay, as JSON, or `nothing`.
        replayed: String,
    },
}

/// Drives a new machine with the replies and outcomes of a log, and compares every event. The log may end anywhere.
///
/// # Errors
/// It is not the log of a run, it was compacted, or an event differs.
pub fn replay(records: &[Arc<Record>]) -> Result<RunMachine, ReplayError> {
    let start = resume::start(records)?.clone();
    let Some(first) = records.first().filter(|first| matches!(first.event, Event::RunStarted(_))) else {
        return Err(ReplayError::Compacted);
    };
    // A log with gaps is no log, rather than one that differs.
    RunMachine::fold(records)?;
    let (task, parts) = (Arc::clone(&start.task), start.parts.clone());
    let mut machine = RunMachine::of(start);
    machine.shared_limits = replayed_limits(records);
    machine.start_with(&task, &parts, first.at);
    let mut done = compare(&mut machine, first.at, records)?;
    while let Some(rest) = records.get(done..).filter(|rest| !rest.is_empty()) {
        done += step(&mut machine, rest)?;
    }
    Ok(machine)
}

/// The shared limits that were reached, by the events of the log.
pub(super) fn replayed_limits(records: &[Arc<Record>]) -> SharedLimits {
    let mut replayed = ReplayedLimits::default();
    for record in records {
        match &record.event {
            Event::ModelAsked { model, provider, .. } => {
                let asked = ModelName { model: model.clone(), provider: provider.clone() };
                if !asked.is_unknown() {
                    replayed.models.insert(record.seq, asked);
                }
            }
            Event::Noted { note: Note::Exhausted(limit) } => drop(replayed.limits.insert(record.seq, *limit)),
            Event::Violated { violation, .. } if violation.is_of_values() => {
                replayed.refused.insert(record.seq, (**violation).clone());
            }
            Event::TicketOpened(opened) if opened.reason.is_some() || !opened.origins.is_empty() => {
                let asked = if opened.reason.is_some() { Approval::Needed } else { Approval::NotNeeded };
                let judged = Judged { origins: opened.origins.clone(), reason: opened.reason.clone() };
                let verdict = Verdict { judged, approval: asked };
                replayed.verdicts.insert(opened.ticket, verdict);
            }
            Event::ArgumentsFilled { .. } => drop(replayed.filled.insert(record.seq)),
            Event::TicketCompleted { outcome, spent: Some(spent), .. } if outcome.is_cancelled() => {
                replayed.spent.insert(record.seq, **spent);
            }
            _ => {}
        }
    }
    replayed.timed_out = timed_out(records);
    replayed.end = records.last().map_or(0, |last| last.seq.saturating_add(1));
    SharedLimits::Replayed(replayed)
}

/// The positions at which the wall time was over: of the events that say so, and of the calls that were cancelled right
/// before them.
fn timed_out(records: &[Arc<Record>]) -> BTreeSet<u64> {
    let mut positions = BTreeSet::new();
    let mut is_over = false;
    for record in records.iter().rev() {
        is_over = match &record.event {
            Event::Noted { note: Note::LastTurn(Limit::Seconds) }
            | Event::RunFinished { limit: Some(Limit::Seconds), .. } => true,
            Event::TicketCompleted { outcome, .. } if outcome.is_cancelled() => is_over,
            _ => false,
        };
        if is_over {
            positions.insert(record.seq);
        }
    }
    positions
}

/// What an agent that continues the run here asks for beyond the run's own approval: the second record has it.
fn more_approval(records: &[Arc<Record>]) -> MoreApproval {
    match records.get(1).map(|record| &record.event) {
        Some(Event::Noted { note: Note::MoreApproval(more) }) => more.clone(),
        _ => MoreApproval::new(),
    }
}

/// Passes the machine the input that these records begin with. Returns how many of them follow from it.
pub(super) fn step(machine: &mut RunMachine, records: &[Arc<Record>]) -> Result<usize, ReplayError> {
    let Some(first) = records.first() else { return Ok(0) };
    let at = first.at;
    machine.more_approval = more_approval(records);
    match &first.event {
        Event::ModelReplied { .. } if machine.trusts_log() => machine.take_recorded(records, at),
        Event::ModelReplied { .. } => reply(machine, records, at),
        Event::HistoryShortened(shortened) => machine.shorten_history(Shortened::clone(shortened), at),
        Event::ModelAttemptFailed(attempt) => machine.attempt_failed(FailedAttempt::clone(attempt), at),
        Event::TicketOpened(_) | Event::Noted { note: Note::Exhausted(_) }
            if machine.state().position.phase == Phase::Asking && machine.trusts_log() =>
        {
            machine.emit(first.event.clone(), at);
        }
        Event::TicketOpened(_) => open_early(machine, records, at),
        Event::Noted { note: Note::Exhausted(_) } if machine.state().position.phase == Phase::Asking => {
            open_early(machine, records, at);
        }
        Event::TicketPending { ticket, key, external } => {
            machine.pend(*ticket, key.as_deref(), External::clone(external), at);
        }
        Event::ToolAttemptFailed(failed) => machine.tool_attempt_failed(FailedCall::clone(failed), at),
        Event::TicketCompleted { ticket, outcome, spent, parts, by, untrusted } if !outcome.is_cancelled() => {
            let told = Told { spent: spent.as_deref().copied(), by: by.clone(), untrusted: *untrusted };
            machine.complete_by(*ticket, (outcome.clone(), parts), told, at);
        }
        Event::ApprovalChecked { ticket, needs_approval, reason } => {
            machine.approval_checked(*ticket, *needs_approval, reason.as_deref(), at);
        }
        Event::Approved { ticket, arguments, at_rest, by } => {
            machine.attended = !at_rest;
            machine.approve(*ticket, arguments.clone(), by.as_deref(), at);
        }
        Event::Moved { turn, .. } if machine.state().position.phase == Phase::Checking => {
            machine.accept_answer(*turn, at);
        }
        Event::Violated { turn, violation, spans } if machine.is_checking(*turn) && machine.trusts_log() => {
            machine.record_violation((**violation).clone(), spans.clone(), at);
        }
        Event::Violated { turn, violation, .. } if machine.state().position.phase == Phase::Checking => {
            machine.refuse_answer(*turn, &violation.message, at);
        }
        Event::UserSaid { text, parts, key } => machine.send_with(text, parts, key.as_deref(), at),
        Event::Noted { note: Note::Resumed } => machine.resume(at),
        Event::Noted { note: Note::Paused(_) } => machine.emit(first.event.clone(), at),
        _ => match cause(machine, records) {
            Cause::Failed(error) => machine.model_failed(error, at),
            Cause::Cancelled => machine.cancel(at),
            Cause::TimedOut => machine.time_out(at),
            Cause::Settled => machine.end_grace(at),
        },
    }
    compare(machine, at, records)
}

/// Passes the machine a reply as it arrived: whole, or in a stream.
fn reply(machine: &mut RunMachine, records: &[Arc<Record>], at: f64) {
    let Some((first, rest)) = records.split_first() else { return };
    let Event::ModelReplied { text, streamed, finish_reason, usage, first_at, certainty, model, provider, .. } =
        &first.event
    else {
        return;
    };
    let bounds = match rest.first().map(|record| &record.event) {
        Some(Event::Violated { violation, .. }) => violation.bounds.clone(),
        _ => None,
    };
    let details = ReplyDetails {
        finish_reason: *finish_reason,
        usage: usage.as_deref().copied(),
        first_at: *first_at,
        certainty: *certainty,
        bounds,
        model: ModelName { model: model.clone(), provider: provider.clone() },
    };
    if *streamed {
        machine.push(unread(machine, text), at);
        machine.end_reply_with(details, at);
    } else {
        machine.reply_with(text, details, at);
    }
}

/// What is left of a reply of which a part was pushed already, to start calls early.
fn unread<'a>(machine: &RunMachine, text: &'a str) -> &'a [u8] {
    let pushed = machine.stream.as_ref().map_or(0, |stream| stream.length);
    text.as_bytes().get(pushed..).unwrap_or_default()
}

/// A call that started before its reply had ended: the reply is pushed until that happens.
fn open_early(machine: &mut RunMachine, records: &[Arc<Record>], at: f64) {
    let reply = records.iter().find_map(|record| match &record.event {
        Event::ModelReplied { text, .. } => Some(Some(text)),
        Event::Noted { note: Note::Exhausted(_) } => None,
        Event::Noted { .. } | Event::RunFinished { .. } => Some(None),
        _ => None,
    });
    if let Some(text) = reply.flatten() {
        for byte in unread(machine, text).to_vec() {
            machine.push(&[byte], at);
            if machine.has_fresh() {
                return;
            }
        }
    } else if let Some(first) = records.first() {
        // The reply never came: there is nothing that the call could be worked out from.
        machine.emit(first.event.clone(), at);
    }
}

/// An input that the first event alone does not show.
enum Cause<'a> {
    Failed(&'a str),
    Cancelled,
    TimedOut,
    Settled,
}

fn cause<'a>(machine: &RunMachine, records: &'a [Arc<Record>]) -> Cause<'a> {
    let is_cancelled = |record: &&Arc<Record>| matches!(&record.event, Event::TicketCompleted { outcome, .. } if outcome.is_cancelled());
    let cancelled = records.iter().take_while(is_cancelled).count();
    let settling = machine.state().position.phase == Phase::Settling;
    let mut rest = records.iter().skip(cancelled).map(|record| &record.event);
    match rest.find(|event| !matches!(event, Event::Noted { note: Note::Exhausted(_) })) {
        Some(Event::RunFinished { reason: StopReason::ModelError, error, .. }) => {
            Cause::Failed(error.as_deref().unwrap_or_default())
        }
        Some(Event::RunFinished { limit: Some(Limit::Seconds), .. }) => Cause::TimedOut,
        // The end of the grace leaves open calls open, a deadline does not.
        Some(Event::Noted { note: Note::LastTurn(Limit::Seconds) }) if cancelled > 0 || !settling => Cause::TimedOut,
        // Or the log ends here.
        None | Some(Event::RunFinished { reason: StopReason::Cancelled, .. }) => Cause::Cancelled,
        _ if settling => Cause::Settled,
        _ => Cause::TimedOut,
    }
}

/// Removes the places of narration, thoughts and answer from a replayed event if the log is older than they are.
fn said_as_recorded<'a>(recorded: &Record, replayed: &'a Record) -> Cow<'a, Record> {
    let says = |event: &Event| event.spans().is_some_and(|spans| !spans.is_empty());
    if says(&recorded.event) || !says(&replayed.event) {
        return Cow::Borrowed(replayed);
    }
    let mut replayed = replayed.clone();
    replayed.event.forget_spans();
    Cow::Owned(replayed)
}

/// Compares what the machine has just written with the records. Returns how many of them it has written; what it wrote
/// beyond the end of the log is left to be taken.
fn compare(machine: &mut RunMachine, at: f64, records: &[Arc<Record>]) -> Result<usize, ReplayError> {
    machine.commands(at);
    let json = |record: &Record| serde_json::to_string(record).unwrap_or_default();
    let mut written = machine.take_records();
    for (recorded, replayed) in records.iter().zip(&written) {
        let texts = (json(recorded), json(&said_as_recorded(recorded, replayed)));
        if texts.0 != texts.1 {
            return Err(ReplayError::Differs { seq: recorded.seq, recorded: texts.0, replayed: texts.1 });
        }
    }
    match records.first() {
        Some(first) if written.is_empty() => {
            Err(ReplayError::Differs { seq: first.seq, recorded: json(first), replayed: "nothing".to_owned() })
        }
        _ => {
            let known = written.len().min(records.len());
            machine.put_back(written.split_off(known));
            Ok(known)
        }
    }
}
