//! How each event changes the state.

use super::{Ending, Offered, Phase, RunState};
use crate::codes::Code;
use crate::protocol::{Message, MessageEntry, Move, Protocol, Role, Violation, feedback, own_task};
use crate::reply::Value;
use crate::run::event::{Event, Note, Start};
use crate::run::limits::Limit;
use crate::run::model_name::ModelName;
use crate::run::opened::Opened;
use crate::run::repetition;
use crate::run::said::Words;
use crate::ticket::{Ticket, TicketId, TicketKind};
use std::sync::Arc;

impl RunState {
    /// Folds one event in. It must be the next one of the log.
    pub fn apply(&mut self, event: &Event, at: f64, protocol: &dyn Protocol) {
        self.add_pause(event, at);
        match event {
            Event::RunStarted(start) => self.on_run_started(start, at),
            Event::Compacted { start, state, .. } => {
                self.clone_from(&***state);
                self.conversation.long.parts = start.parts();
                self.calls.tickets.order_ended();
            }
            Event::ModelAsked { turn, model, provider } => {
                self.position.asked_model = ModelName { model: model.clone(), provider: provider.clone() };
                self.on_model_asked(*turn, protocol);
            }
            Event::ModelReplied { text, usage, .. } => {
                self.on_model_replied(text);
                self.spending.add_usage(usage.as_deref());
            }
            Event::ModelAttemptFailed(attempt) => self.spending.add_usage(attempt.usage.as_deref()),
            Event::HistoryShortened(shortened) => {
                self.spending.add_usage(shortened.usage.as_deref());
                self.shorten(shortened, protocol);
            }
            Event::Violated { violation, .. } => self.on_violated(violation, at, protocol),
            Event::AnswerOffered { moved, spans, .. } => {
                self.position.midway = false;
                self.position.phase = Phase::Checking;
                self.position.offered = Some(Box::new(Offered { moved: moved.clone(), spans: spans.clone() }));
            }
            Event::Moved { moved, .. } => self.on_moved(moved, protocol),
            Event::UserSaid { text, parts, key } => {
                self.conversation.note_key(key.as_deref(), text, parts);
                self.conversation.add_user_parts(parts);
                self.on_user_said(text, at);
            }
            Event::TicketOpened(opened) => self.on_ticket_opened(opened, at),
            Event::ArgumentsFilled { .. } | Event::ApprovalChecked { .. } | Event::Approved { .. } => {
                self.on_approval(event);
            }
            Event::ToolAttemptFailed(failed) => self.calls.on_attempt_failed(failed),
            Event::TicketPending { ticket, key, external } => self.calls.tickets.pend(*ticket, key.as_ref(), external),
            Event::TicketCompleted { ticket, outcome, spent, parts, by, untrusted } => {
                self.spending.add_below(spent.as_deref());
                self.calls.tickets.distrust(*ticket, *untrusted);
                if self.calls.tickets.complete(*ticket, outcome.clone(), parts, by.as_ref(), at) {
                    self.conversation.has_parts |= !parts.is_empty();
                    self.on_ticket_completed(*ticket, protocol);
                }
            }
            Event::Noted { note: Note::Exhausted(_) | Note::Paused(_) } => {}
            Event::Noted { note: Note::LastTurn(limit) } => self.on_last_turn(*limit, protocol),
            Event::Noted { note: Note::Resumed } => self.on_resumed(),
            Event::Noted { note: Note::MoreApproval(more) } => {
                self.calls.more_approval.extend(more.iter().map(|(tool, approval)| (Arc::clone(tool), *approval)));
            }
            Event::RunFinished { reason, value, success, error, limit } => {
                let ending = Ending { reason: *reason, value: value.clone(), success: *success, error: error.clone() };
                self.position.finish(ending, *limit);
                self.stop_script();
            }
        }
        self.spending.last_at = at;
    }

    fn on_model_replied(&mut self, text: &Arc<str>) {
        self.position.phase = Phase::Idle;
        self.position.midway = true;
        self.conversation.long.last = None;
        if let Some(script) = &mut self.calls.script {
            return script.end_step(text);
        }
        // Some model services refuse an assistant message without text.
        let content = if text.trim().is_empty() { Arc::from("(empty reply)") } else { Arc::clone(text) };
        self.conversation.messages.push(Message::new(Role::Assistant, content));
    }

    fn on_resumed(&mut self) {
        self.calls.unbegun.clear();
        if self.position.ending.take().is_some() {
            self.position.phase = self.position.interrupted;
            self.position.limit = self.position.last_turn;
        }
        if self.position.phase == Phase::Asking {
            // Calls that were started early belong to a reply that never came.
            self.calls.drop_early();
        }
    }

    fn on_moved(&mut self, moved: &Move, protocol: &dyn Protocol) {
        self.position.violations = 0;
        self.conversation.refused.on_moved();
        self.position.midway = false;
        self.position.offered = None;
        match moved {
            // The user has said more meanwhile: the model reads it before the run ends.
            Move::Finish { .. } if self.conversation.said => self.position.phase = Phase::Idle,
            Move::Finish { value, success, .. } => {
                self.position.answer = Some((value.clone(), *success));
                self.position.phase = Phase::Closing;
                self.stop_script();
            }
            Move::Call { calls } if self.calls.script.is_some() => self.on_script_moved(calls),
            Move::Call { calls } => {
                self.calls.called = true;
                self.conversation.note_unread_keys(calls);
                self.begin_calls(calls.len(), protocol);
            }
            Move::Delegate { .. } => self.begin_calls(1, protocol),
            Move::Await { ticket_id } => {
                let Some(ticket) = TicketId::parse(ticket_id) else { return };
                let loads = protocol.await_loads();
                self.conversation.tell_result(ticket, loads.then_some(0));
                self.position.phase = Phase::Awaiting(ticket);
            }
            Move::Load { ticket_id, offset } => {
                let Some(ticket) = TicketId::parse(ticket_id) else { return };
                self.conversation.tell_result(ticket, Some(*offset));
                self.position.phase = Phase::Idle;
            }
        }
    }

    fn begin_calls(&mut self, calls: usize, protocol: &dyn Protocol) {
        self.calls.begin_batch(calls);
        self.position.midway = self.calls.is_batch_missing();
        self.position.phase = if protocol.background() { Phase::Settling } else { Phase::Calling };
    }

    fn on_user_said(&mut self, text: &Arc<str>, at: f64) {
        self.conversation.said = true;
        if let Some((answer, _)) = &self.position.answer {
            let answer = answer.as_str().map_or_else(|| answer.to_json(), str::to_owned);
            self.conversation.words.push(Words::Answered([answer.into()]));
        }
        self.conversation.words.push(Words::Said(Arc::clone(text)));
        self.conversation.refused.on_user_said();
        self.calls.repetition.on_user_said();
        self.conversation.add_task(text);
        if self.position.ending.take().is_some() {
            // The task before it is done.
            if self.conversation.own_task.is_some() {
                self.conversation.own_task = Some(own_task(text).into());
            }
            self.spending.go_on(self.position.turn, at);
            self.position.go_on();
            if self.position.interrupted == Phase::Asking {
                // Calls that were started early belong to a reply that never came.
                self.calls.drop_early();
            }
            self.calls.batch_open = 0;
            self.position.phase = Phase::Idle;
        }
        if self.position.phase == Phase::Closing {
            self.position.phase = Phase::Idle;
        }
        if self.position.phase == Phase::Idle {
            self.position.answer = None;
        }
    }

    fn on_ticket_opened(&mut self, opened: &Opened, at: f64) {
        let Opened {
            ticket,
            kind,
            script,
            turn,
            call_id,
            description,
            tool,
            arguments,
            needs,
            detached,
            needs_approval,
            checks_approval,
            external,
            untrusted,
            origins,
            reason,
            ..
        } = opened;
        let is_task = *kind == TicketKind::Task;
        let reads = self.part_read(tool, arguments);
        let role = arguments.as_object().filter(|_| is_task).and_then(|given| given.get("role"));
        self.spending.runs += u32::from(is_task && !script);
        self.conversation.changed.insert(*ticket);
        self.calls.tickets.open(Ticket {
            id: *ticket,
            description: Arc::clone(description),
            kind: *kind,
            tool: Arc::clone(tool),
            role: role.and_then(Value::as_str).map(str::to_owned),
            detached: *detached,
            parked: *needs_approval,
            approval_reason: reason.clone(),
            decision: None,
            approved_by: None,
            external: external.clone(),
            answer_key: None,
            awaits_result: external.is_some() && needs.is_empty() && !needs_approval && !checks_approval,
            answered_by: None,
            untrusted: *untrusted,
            origins: origins.clone().into(),
            arguments: Some(Arc::clone(arguments)),
            turn: *turn,
            call_id: call_id.clone(),
            attempts: 1,
            opened_at: at,
            completed_at: None,
            outcome: None,
            reads,
            parts: Vec::new(),
        });
        self.calls.begin(opened);
        self.position.midway = self.position.midway && self.calls.is_batch_missing();
    }

    fn on_ticket_completed(&mut self, id: TicketId, protocol: &dyn Protocol) {
        self.conversation.changed.insert(id);
        let Some(mut call) = self.calls.open.remove(&id) else { return };
        if !call.needs.is_empty() && self.calls.tickets.get(id).is_some_and(|ticket| ticket.role.is_some()) {
            // Its role may have been another call's result.
            let filled = self.filled(&call);
            if let Some(role) = filled.as_object().and_then(|given| given.get("role")?.as_str()) {
                self.calls.tickets.set_role(id, role.to_owned());
            }
        }
        if self.calls.script.is_some() {
            return self.on_call_of_script_ended(id, *call);
        }
        // What a call that waited for others was made with is known only now.
        let key = call.key.take().unwrap_or_else(|| repetition::key(&call.tool, &self.filled(&call)));
        let times = self.calls.count(key, id, self.position.phase == Phase::Asking);
        self.note_edit(id, protocol);
        let detached = |id: &TicketId| self.calls.tickets.get(*id).is_some_and(|ticket| ticket.detached);
        // A call that waits for an agent has its result.
        let waited_for: Vec<TicketId> = call.needs.iter().filter(|need| detached(need)).copied().collect();
        self.conversation.loaded.extend(waited_for);
        if self.calls.tickets.get(id).is_some_and(|ticket| ticket.detached) {
            return;
        }
        let told = self.calls.batch.get(&call.position) == Some(&id);
        if times > 1 && told {
            self.calls.times.insert(id, times);
        } else if times > 1 {
            self.conversation.entries.push(MessageEntry::Result { ticket: id, times });
        }
        if told {
            self.calls.batch_open = self.calls.batch_open.saturating_sub(1);
        } else if protocol.guides_to_results() && !self.conversation.is_announced(id) {
            self.conversation.entries.push(MessageEntry::Completed(id));
        }
    }

    fn on_run_started(&mut self, start: &Start, at: f64) {
        self.spending.started_at = at;
        self.calls.repetition.per_message = start.counts_calls_per_message();
        let setup = start.own_setup();
        self.calls.script = setup.protocol.runs_code().then(Box::default);
        let conversation = &mut self.conversation;
        conversation.long.bytes = setup.limits.result_bytes;
        conversation.framed = start.frames_results();
        conversation.long.parts = start.parts();
        conversation.messages.push(Message::new(Role::System, Arc::clone(&setup.prompt)));
        conversation.messages.extend_from_slice(&setup.examples);
        conversation.messages.extend_from_slice(&start.messages);
        let earlier = start.messages.iter().map(|message| message.parts.len()).sum::<usize>();
        conversation.user_parts = u32::try_from(earlier).unwrap_or(u32::MAX);
        conversation.add_user_parts(&start.parts);
        conversation.untrusted = start.untrusted;
        conversation.reminder.clone_from(&setup.reminder);
        if start.lists_own_task() && setup.protocol.background() {
            conversation.own_task = Some(own_task(&start.task).into());
        }
        conversation.add_task(&start.task);
    }

    fn on_violated(&mut self, violation: &Violation, at: f64, protocol: &dyn Protocol) {
        if !self.position.midway && self.calls.has_waiting() {
            return self.on_call_refused(violation, at);
        }
        if violation.code == Code::Repeated {
            self.calls.repetition.refuse();
        } else {
            self.position.violations += 1;
        }
        self.position.violations_total += 1;
        if self.position.offered.take().is_some() {
            self.position.phase = Phase::Idle;
        }
        self.calls.drop_early();
        let raw = self.conversation.messages.last().map_or("", |message| &message.content);
        let feedback = feedback::render(protocol, violation, raw);
        let reply = self.conversation.messages.len().saturating_sub(1);
        self.conversation.refused.on_violated(violation, reply);
        self.conversation.entries.push(if protocol.pairs_results() {
            let call = violation.span.and_then(|span| protocol.call_at(raw, span));
            MessageEntry::Refused { feedback, call }
        } else {
            MessageEntry::Violation(feedback)
        });
    }

    fn on_last_turn(&mut self, limit: Limit, protocol: &dyn Protocol) {
        self.position.last_turn = Some(limit);
        self.position.limit = Some(limit);
        self.position.midway = false;
        // In the last turn nothing can be loaded any more: what there is must be before the model (ticket).
        self.conversation.show_unseen_results(&self.calls.tickets, protocol.background());
        let form = protocol.answer_form();
        self.conversation.entries.push(MessageEntry::LastTurn(format!(
            "The limit of this run is reached ({}): no more calls are made. Answer now from what there is, in this \
             form: {form}",
            limit.shown()
        )));
    }
}
