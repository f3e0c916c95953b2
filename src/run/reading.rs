//! The machine's reading: replies in, whole or chunk by chunk, and what may be done before one has ended.

use super::account::Spent;
use super::event::{Event, FailedAttempt, Note, Shortened, Usage};
use super::limits::Limit;
use super::machine::{RunMachine, SharedLimits};
use super::model_name::{ModelName, ReplyDetails};
use super::plan;
use super::state::Phase;
use super::stream::{Pushed, Stream};
use crate::protocol::decoder::{beside_tools, read_whole};
use crate::protocol::{Decoder, Delta, FinishReason, ReadOptions, Reply, ToolCall};
use crate::reply::violation::Violation;
use crate::reply::{Code, RepairCode};
use crate::tool::{Approval, ToolKind};

impl RunMachine {
    /// Takes the next bytes of the reply.
    pub fn push(&mut self, chunk: &[u8], now: f64) -> Pushed {
        if self.state.position.phase != Phase::Asking {
            return Pushed { deltas: Vec::new(), stop: true };
        }
        let mut stream = self.stream.take().unwrap_or_else(|| Stream::new(self.decoder()));
        let deltas = stream.push(chunk, self.setup.early_stop);
        // A native model sees its whole reply again, with a result for each call, so it is read to its end.
        if !self.setup.protocol.pairs_results() {
            stream.refused = stream.refused.take().or_else(|| deltas.iter().find_map(|delta| self.refuse(delta)));
        }
        stream.stop |= stream.refused.is_some();
        let may_start = self.setup.early_start && !self.setup.ends_at_call;
        if may_start && !stream.stop && stream.decoder.stands_first() {
            self.start_early(&deltas, stream.decoder.calls(), now);
        }
        let stop = stream.stop;
        self.stream = Some(stream);
        Pushed { deltas, stop }
    }

    /// The reply has ended, or was stopped. Everything pushed for this turn is it.
    pub fn end_reply(&mut self, finish_reason: FinishReason, usage: Option<Usage>, now: f64) {
        self.end_reply_with(ReplyDetails { finish_reason, usage, ..ReplyDetails::default() }, now);
    }

    /// Ends a reply of which more is known.
    pub fn end_reply_with(&mut self, mut details: ReplyDetails, now: f64) {
        if self.state.position.phase != Phase::Asking {
            return;
        }
        let stream = self.stream.take().unwrap_or_else(|| Stream::new(self.decoder()));
        if stream.stop {
            details.finish_reason = FinishReason::Stop;
        }
        let mut reply = stream.decoder.finish(details.finish_reason);
        if let (true, Some(at)) = (self.setup.early_stop, stream.complete.filter(|at| *at < stream.length)) {
            // The last chunk reached past the end of the move: what a stream that stopped there would have given.
            reply = self.read(reply.raw.get(..at).unwrap_or(&reply.raw), FinishReason::Stop);
        }
        if let Some(violation) = stream.refused {
            reply.outcome = Err(violation);
        }
        self.take(reply, true, details, now);
    }

    /// Takes a whole reply.
    pub fn reply(&mut self, text: &str, finish_reason: FinishReason, usage: Option<Usage>, now: f64) {
        self.reply_with(text, ReplyDetails { finish_reason, usage, ..ReplyDetails::default() }, now);
    }

    /// Takes a whole reply of which more is known.
    pub fn reply_with(&mut self, text: &str, details: ReplyDetails, now: f64) {
        if self.state.position.phase != Phase::Asking {
            return;
        }
        let reply = self.read(text, details.finish_reason);
        self.take(reply, false, details, now);
    }

    fn take(&mut self, reply: Reply, streamed: bool, details: ReplyDetails, now: f64) {
        let turn = self.state.position.turn;
        let ModelName { model, provider } = self.other_model(details.model);
        let ReplyDetails { finish_reason, usage, first_at, certainty, .. } = details;
        let certainty = certainty.or(self.given.certainty.take());
        let mut reply = beside_tools(&*self.setup.protocol, &self.offered_tools(), reply);
        let given = self.given.bounds.take().map(|bounds| bounds.to_string());
        if let Some(bounds) = details.bounds.or(given).filter(|_| finish_reason != FinishReason::Length) {
            name_bounds(&mut reply, bounds);
        }
        let Reply { raw, mut repairs, outcome, spans, .. } = reply;
        if self.setup.protocol.reasons_in_tags() {
            repairs.retain(|repair| repair.code != RepairCode::ReasoningStripped);
        }
        if let (SharedLimits::Live(account), Some(usage)) = (&self.shared_limits, usage) {
            account.spend(&Spent { usage, ..Spent::default() });
        }
        let usage = usage.map(Box::new);
        let text = raw.into();
        self.emit(
            Event::ModelReplied {
                turn,
                text,
                streamed,
                finish_reason,
                usage,
                repairs,
                first_at,
                certainty,
                model,
                provider,
            },
            now,
        );
        if let Some(limit) = self.find_uncounted(now) {
            return self.end_uncounted(limit, now);
        }
        match outcome {
            Ok(moved) => {
                self.given.certainty = certainty;
                self.apply_move(moved, spans, now);
                self.given.certainty = None;
            }
            Err(violation) => self.record_violation(violation, spans, now),
        }
    }

    /// The model that wrote a reply; nothing if it is the one that the log says was asked.
    fn other_model(&self, stated: ModelName) -> ModelName {
        let model = if stated.is_unknown() { self.model.clone() } else { stated };
        if model == self.state.position.asked_model { ModelName::default() } else { model }
    }

    /// A request for the reply failed, and another one follows or the run ends. Does nothing if calls of the reply were
    /// started: see `has_early_calls`.
    pub fn attempt_failed(&mut self, attempt: FailedAttempt, now: f64) {
        if self.state.position.phase != Phase::Asking
            || attempt.turn != self.state.position.turn
            || self.has_early_calls()
        {
            return;
        }
        self.stream = None;
        self.given.certainty = None;
        if let (SharedLimits::Live(account), Some(usage)) = (&self.shared_limits, attempt.usage.as_deref()) {
            account.spend(&Spent { usage: *usage, ..Spent::default() });
        }
        self.emit(Event::ModelAttemptFailed(Box::new(attempt)), now);
    }

    /// The model is shown less of the conversation, in this request and later ones. Does nothing if calls of the reply
    /// were started, or if it would be shown more.
    pub fn shorten_history(&mut self, shortened: Shortened, now: f64) {
        if self.state.position.phase != Phase::Asking
            || shortened.turn != self.state.position.turn
            || self.has_early_calls()
            || !self.state.conversation.can_be_shortened(&shortened)
        {
            return;
        }
        self.stream = None;
        self.given.certainty = None;
        if let (SharedLimits::Live(account), Some(usage)) = (&self.shared_limits, shortened.usage.as_deref()) {
            account.spend(&Spent { usage: *usage, ..Spent::default() });
        }
        self.emit(Event::HistoryShortened(Box::new(shortened)), now);
    }

    /// Whether calls of the reply that is still arriving were started.
    pub fn has_early_calls(&self) -> bool {
        self.state.position.phase == Phase::Asking && !self.state.calls.batch.is_empty()
    }

    /// Whether a part of the reply was read.
    pub fn has_streamed(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.length > 0)
    }

    /// Whether tokens or cost are limited, here or above.
    pub fn limits_usage(&self) -> bool {
        let shared = match &self.shared_limits {
            SharedLimits::Live(account) => account.usage_limits(),
            _ => Vec::new(),
        };
        self.setup.limits.of_usage().next().is_some() || !shared.is_empty()
    }

    /// A limit of tokens or cost, here or above, for which nothing was counted.
    pub(super) fn find_uncounted(&mut self, now: f64) -> Option<Limit> {
        // A reply of an interpreter costs nothing.
        if !self.start.ends_uncounted() || self.setup.protocol.runs_code() {
            return None;
        }
        if let Some(limit) = self.setup.limits.of_usage().find(|limit| !self.state.spending.is_counted(*limit)) {
            return Some(limit);
        }
        let found = match &self.shared_limits {
            SharedLimits::None => None,
            SharedLimits::Live(account) => {
                account.usage_limits().into_iter().find(|limit| !self.state.spending.is_counted(*limit))
            }
            // Tickets and runs are reserved at the same place.
            SharedLimits::Replayed(replayed) => {
                replayed.limits.get(&self.seq).copied().filter(|limit| matches!(limit, Limit::Tokens | Limit::Cost))
            }
        };
        if let Some(limit) = found {
            self.emit(Event::Noted { note: Note::Exhausted(limit) }, now);
        }
        found
    }

    pub(super) fn read(&self, text: &str, reason: FinishReason) -> Reply {
        read_whole(&*self.setup.protocol, self.options(), text, reason)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        self.setup.protocol.decoder(self.options())
    }

    fn options(&self) -> ReadOptions {
        ReadOptions { limits: self.setup.limits.read, ..self.setup.protocol.read_options() }
    }

    /// The violation of a reply that can no longer become valid in this run.
    fn refuse(&self, delta: &Delta) -> Option<Violation> {
        let tools = self.offered_tools();
        match delta {
            Delta::Tool { name, span, .. } => {
                tools.find(name, self.setup.protocol.routes()).err().map(|violation| violation.at(*span))
            }
            Delta::TicketId { id, span } => self.ticket(id).err().map(|violation| violation.at(*span)),
            _ => None,
        }
    }

    fn start_early(&mut self, deltas: &[Delta], calls: &[ToolCall], now: f64) {
        for delta in deltas {
            let Delta::CallReady { call: position } = delta else { continue };
            let Some(call) = calls.get(*position) else { continue };
            let tools = &self.setup.tools;
            let readonly = tools.find(&call.tool, self.setup.protocol.routes()).is_ok_and(|found| {
                let called = matches!(found.tool.kind, ToolKind::Function | ToolKind::LookUp);
                called && found.tool.starts_early(&self.state.calls.more_approval)
            });
            if !readonly || self.state.position.last_turn.is_some() {
                continue;
            }
            // The calls before it are needed to know what its references mean; they are planned with it.
            let before = calls.get(..=*position).unwrap_or_default();
            let Ok(mut planned) = plan::calls(before, &self.state.calls.batch, &self.state, &self.setup, &self.start)
            else {
                return;
            };
            // The refusal of one is that of the whole reply, which is told when it has ended.
            if self.judge(&mut planned, before, now).is_err() {
                return;
            }
            // A call that waits for one which has not started can't start early either.
            if let Some(mut call) = planned.into_iter().find(|planned| planned.call == *position) {
                call.ticket = self.state.calls.tickets.next_id();
                if call.needs.is_empty()
                    && call.approval == Approval::NotNeeded
                    && self.check_shared_limits(now, |account| account.reserve(1, 0)).is_ok()
                {
                    self.open(call, now);
                }
            }
        }
    }
}

/// Names the bounds of a model in the violation of a reply that they cut.
fn name_bounds(reply: &mut Reply, bounds: String) {
    if let Err(violation) = &mut reply.outcome
        && violation.code == Code::Truncated
    {
        violation.message.push_str("; a reply is cut where it reaches a limit of its model: ");
        violation.message.push_str(&bounds);
        violation.bounds = Some(bounds);
    }
}
