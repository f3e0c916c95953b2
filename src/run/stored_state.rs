//! The stored form of a state, which replaces the folded events in a compacted log.

use super::account::Spent;
use super::event::{Shortened, Usage};
use super::limits::Limit;
use super::model_name::ModelName;
use super::refused_values::RefusedValues;
use super::repetition::Repetition;
use super::said::{SaidUnderKey, Words};
use super::state::{
    Calls, Conversation, Ending, LongResults, Offered, OpenCall, Phase, Position, RunState, ScriptState, Spending,
};
use crate::part::Part;
use crate::protocol::{Message, MessageEntry, Move, TextSpans};
use crate::reply::Value;
use crate::ticket::{TicketId, TicketList, is_false};
use crate::tool::MoreApproval;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::sync::Arc;

/// All fields of the parts of a state, in the order in which logs have them. A new field goes where it reads best; it is
/// optional, and not written where it says nothing.
#[derive(Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact, which stands by its name in the log")]
pub(super) struct StoredState {
    result_bytes: usize,
    #[serde(default, skip_serializing_if = "LongResults::is_nothing")]
    long_results: LongResults,
    #[serde(default, skip_serializing_if = "is_false")]
    framed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reminder: Option<Arc<str>>,
    messages: Vec<Message>,
    tickets: TicketList,
    usage: Usage,
    #[serde(default, skip_serializing_if = "is_false")]
    unpriced: bool,
    #[serde(default, skip_serializing_if = "Spent::is_nothing")]
    below: Spent,
    #[serde(default, skip_serializing_if = "is_zero")]
    runs: u32,
    phase: Phase,
    turn: u32,
    #[serde(default, skip_serializing_if = "ModelName::is_unknown")]
    asked_model: ModelName,
    started_at: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    went_on_at: Option<f64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    turns_before: u32,
    #[serde(default, skip_serializing_if = "is_nothing")]
    usage_before: Usage,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    more_approval: MoreApproval,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    unbegun: BTreeSet<TicketId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    script: Option<Box<ScriptState>>,
    #[serde(default, skip_serializing_if = "is_false")]
    said: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    said_keys: BTreeMap<String, SaidUnderKey>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    said_parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "is_zero")]
    user_parts: u32,
    #[serde(default, skip_serializing_if = "is_false")]
    has_parts: bool,
    #[serde(default, skip_serializing_if = "is_at_start")]
    said_at: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shortened: Option<Arc<Shortened>>,
    paused: f64,
    last_at: f64,
    interrupted: Phase,
    midway: bool,
    batch_size: usize,
    violations: u32,
    violations_total: u32,
    last_turn: Option<Limit>,
    limit: Option<Limit>,
    called: bool,
    ending: Option<Ending>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offered: Option<Box<Move>>,
    #[serde(default, skip_serializing_if = "TextSpans::is_empty")]
    offered_spans: TextSpans,
    answer: Option<(Arc<Value>, Option<bool>)>,
    open_calls: BTreeMap<TicketId, Box<OpenCall>>,
    call_ids: BTreeMap<String, TicketId>,
    repetition: Repetition,
    batch: BTreeMap<usize, TicketId>,
    batch_open: usize,
    times: BTreeMap<TicketId, u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    early: BTreeMap<TicketId, String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    unheard: BTreeSet<TicketId>,
    loaded: BTreeSet<TicketId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    own_task: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    changed: BTreeSet<TicketId>,
    #[serde(default, skip_serializing_if = "is_false")]
    untrusted: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    read_untrusted: BTreeMap<TicketId, u32>,
    /// None in states of versions that did not keep them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    words: Option<Vec<Words>>,
    #[serde(default, skip_serializing_if = "RefusedValues::is_empty")]
    refused: RefusedValues,
    #[serde(rename = "tellings")]
    entries: Vec<MessageEntry>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_at_start(position: &usize) -> bool {
    *position == 0
}

/// The move of an answer that is checked, and the spans of its texts.
fn parts_of(offered: Option<Box<Offered>>) -> (Option<Box<Move>>, TextSpans) {
    offered.map(|offered| (Some(Box::new(offered.moved)), offered.spans)).unwrap_or_default()
}

impl From<RunState> for StoredState {
    fn from(RunState { conversation, calls, spending, position }: RunState) -> Self {
        let (offered, offered_spans) = parts_of(position.offered);
        Self {
            result_bytes: conversation.long.bytes,
            long_results: conversation.long,
            framed: conversation.framed,
            reminder: conversation.reminder,
            messages: conversation.messages,
            tickets: calls.tickets,
            usage: spending.usage,
            unpriced: spending.unpriced,
            below: spending.below,
            runs: spending.runs,
            phase: position.phase,
            turn: position.turn,
            asked_model: position.asked_model,
            started_at: spending.started_at,
            went_on_at: spending.went_on_at,
            turns_before: spending.turns_before,
            usage_before: spending.usage_before,
            more_approval: calls.more_approval,
            unbegun: calls.unbegun,
            script: calls.script,
            said: conversation.said,
            said_keys: conversation.said_keys,
            said_parts: conversation.said_parts,
            user_parts: conversation.user_parts,
            has_parts: conversation.has_parts,
            said_at: conversation.said_at,
            shortened: conversation.shortened,
            paused: spending.paused,
            last_at: spending.last_at,
            interrupted: position.interrupted,
            midway: position.midway,
            batch_size: calls.batch_size,
            violations: position.violations,
            violations_total: position.violations_total,
            last_turn: position.last_turn,
            limit: position.limit,
            called: calls.called,
            ending: position.ending,
            offered,
            offered_spans,
            answer: position.answer,
            open_calls: calls.open,
            call_ids: calls.call_ids,
            repetition: calls.repetition,
            batch: calls.batch,
            batch_open: calls.batch_open,
            times: calls.times,
            early: calls.early,
            unheard: calls.unheard,
            loaded: conversation.loaded,
            own_task: conversation.own_task,
            changed: conversation.changed,
            untrusted: conversation.untrusted,
            read_untrusted: conversation.read_untrusted,
            words: (!conversation.words_lost && !conversation.words.is_empty()).then_some(conversation.words),
            refused: conversation.refused,
            entries: conversation.entries,
        }
    }
}

impl From<StoredState> for RunState {
    fn from(mut stored: StoredState) -> Self {
        let position = stored.take_position();
        let spending = stored.take_spending();
        let calls = stored.take_calls();
        Self { conversation: stored.into_conversation(), calls, spending, position }
    }
}

impl StoredState {
    fn take_position(&mut self) -> Position {
        Position {
            phase: self.phase,
            turn: self.turn,
            asked_model: take(&mut self.asked_model),
            interrupted: self.interrupted,
            midway: self.midway,
            violations: self.violations,
            violations_total: self.violations_total,
            last_turn: self.last_turn,
            limit: self.limit,
            ending: take(&mut self.ending),
            offered: take(&mut self.offered)
                .map(|moved| Box::new(Offered { moved: *moved, spans: take(&mut self.offered_spans) })),
            answer: take(&mut self.answer),
        }
    }

    fn take_spending(&mut self) -> Spending {
        Spending {
            usage: self.usage,
            unpriced: self.unpriced,
            below: self.below,
            runs: self.runs,
            usage_before: self.usage_before,
            turns_before: self.turns_before,
            started_at: self.started_at,
            went_on_at: self.went_on_at,
            paused: self.paused,
            last_at: self.last_at,
        }
    }

    fn take_calls(&mut self) -> Calls {
        Calls {
            tickets: take(&mut self.tickets),
            open: take(&mut self.open_calls),
            call_ids: take(&mut self.call_ids),
            repetition: take(&mut self.repetition),
            batch: take(&mut self.batch),
            batch_open: self.batch_open,
            batch_size: self.batch_size,
            times: take(&mut self.times),
            early: take(&mut self.early),
            unheard: take(&mut self.unheard),
            unbegun: take(&mut self.unbegun),
            script: take(&mut self.script),
            more_approval: take(&mut self.more_approval),
            called: self.called,
        }
    }

    fn into_conversation(self) -> Conversation {
        Conversation {
            messages: self.messages,
            shortened: self.shortened,
            said: self.said,
            said_keys: self.said_keys,
            said_parts: self.said_parts,
            user_parts: self.user_parts,
            has_parts: self.has_parts,
            said_at: self.said_at,
            entries: self.entries,
            loaded: self.loaded,
            changed: self.changed,
            own_task: self.own_task,
            reminder: self.reminder,
            long: LongResults { bytes: self.result_bytes, ..self.long_results },
            framed: self.framed,
            untrusted: self.untrusted,
            read_untrusted: self.read_untrusted,
            words_lost: self.words.is_none() && (self.said || self.said_at > 0),
            words: self.words.unwrap_or_default(),
            refused: self.refused,
        }
    }
}
