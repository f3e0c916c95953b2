//! How each event changes the state.

use super::{Ending, OpenCall, Phase, RunState};
use crate::codes::Code;
use crate::part::Part;
use crate::protocol::{
    Message, MessageEntry, Move, Protocol, Role, ToolCall, Violation, feedback, own_task, unknown_keys,
};
use crate::reply::Value;
use crate::run::event::{AGAIN, Event, FRAMED, FailedCall, Note, OWN_TICKET, Opened, Start, Usage};
use crate::run::limits::Limit;
use crate::run::model_name::ModelName;
use crate::run::repetition;
use crate::run::said::SaidUnderKey;
use crate::ticket::{Ticket, TicketId, TicketKind};
use std::sync::Arc;

impl RunState {
    /// Folds one event in. It must be the next one of the log.
    pub fn apply(&mut self, event: &Event, at: f64, protocol: &dyn Protocol) {
        self.add_pause(event, at);
        match event {
            Event::RunStarted(start) => self.on_run_started(start, at),
            Event::Compacted { state, .. } => {
                self.clone_from(&***state);
                self.tickets.order_ended();
            }
            Event::ModelAsked { turn, model, provider } => {
                self.asked_model = ModelName { model: model.clone(), provider: provider.clone() };
                self.on_model_asked(*turn, protocol);
            }
            Event::ModelReplied { text, usage, .. } => {
                self.on_model_replied(text);
                self.add_usage(usage.as_deref());
            }
            Event::ModelAttemptFailed(attempt) => self.add_usage(attempt.usage.as_deref()),
            Event::HistoryShortened(shortened) => {
                self.add_usage(shortened.usage.as_deref());
                self.shortened = Some(Arc::new((**shortened).clone()));
            }
            Event::Violated { violation, .. } => self.on_violated(violation, protocol),
            Event::AnswerOffered { moved, .. } => {
                self.midway = false;
                self.phase = Phase::Checking;
                self.offered = Some(Box::new(moved.clone()));
            }
            Event::Moved { moved, .. } => self.on_moved(moved, protocol),
            Event::UserSaid { text, parts, key } => {
                self.note_key(key.as_deref(), text, parts);
                self.add_user_parts(parts);
                self.on_user_said(text, at);
            }
            Event::TicketOpened(opened) => self.on_ticket_opened(opened, at),
            Event::ArgumentsFilled { .. } | Event::ApprovalChecked { .. } | Event::Approved { .. } => {
                self.on_approval(event);
            }
            Event::ToolAttemptFailed(failed) => self.on_attempt_failed(failed),
            Event::TicketPending { ticket, key, external } => self.tickets.pend(*ticket, key.as_ref(), external),
            Event::TicketCompleted { ticket, outcome, spent, parts, by, untrusted } => {
                if let Some(spent) = spent {
                    self.below.add(spent);
                }
                self.tickets.distrust(*ticket, *untrusted);
                if self.tickets.complete(*ticket, outcome.clone(), parts, by.as_ref(), at) {
                    self.has_parts |= !parts.is_empty();
                    self.on_ticket_completed(*ticket, protocol);
                }
            }
            Event::Noted { note: Note::Exhausted(_) | Note::Paused(_) } => {}
            Event::Noted { note: Note::LastTurn(limit) } => self.on_last_turn(*limit, protocol),
            Event::Noted { note: Note::Resumed } => self.on_resumed(),
            Event::Noted { note: Note::MoreApproval(more) } => {
                self.more_approval.extend(more.iter().map(|(tool, approval)| (Arc::clone(tool), *approval)));
            }
            Event::RunFinished { reason, value, success, error, limit } => {
                let (value, error) = (value.clone(), error.clone());
                self.on_run_finished(Ending { reason: *reason, value, success: *success, error }, *limit);
            }
        }
        self.last_at = at;
    }

    fn on_run_finished(&mut self, ending: Ending, limit: Option<Limit>) {
        self.limit = limit.or(self.limit);
        self.midway = false;
        self.interrupted = self.phase;
        self.phase = Phase::Finished;
        self.ending = Some(ending);
    }

    fn on_model_replied(&mut self, text: &Arc<str>) {
        self.phase = Phase::Idle;
        self.midway = true;
        // Some model services refuse an assistant message without text.
        let content = if text.trim().is_empty() { Arc::from("(empty reply)") } else { Arc::clone(text) };
        self.messages.push(Message::new(Role::Assistant, content));
    }

    fn add_usage(&mut self, usage: Option<&Usage>) {
        if let Some(usage) = usage {
            let first = !self.is_counted(Limit::Tokens) && self.usage.cost <= 0.0;
            self.unpriced = usage.unpriced && (first || self.unpriced);
            self.usage += *usage;
        }
    }

    fn on_resumed(&mut self) {
        self.unbegun.clear();
        if self.ending.take().is_some() {
            self.phase = self.interrupted;
            self.limit = self.last_turn;
        }
        if self.phase == Phase::Asking {
            // Calls that were started early belong to a reply that never came.
            self.drop_early();
        }
    }

    fn on_moved(&mut self, moved: &Move, protocol: &dyn Protocol) {
        self.violations = 0;
        self.midway = false;
        self.offered = None;
        match moved {
            // The user has said more meanwhile: the model reads it before the run ends.
            Move::Finish { .. } if self.said => self.phase = Phase::Idle,
            Move::Finish { value, success, .. } => {
                self.answer = Some((value.clone(), *success));
                self.phase = Phase::Closing;
            }
            Move::Call { calls } => {
                self.called = true;
                self.note_unread_keys(calls);
                self.begin_calls(calls.len(), protocol);
            }
            Move::Delegate { .. } => self.begin_calls(1, protocol),
            Move::Await { ticket_id } | Move::Load { ticket_id } => {
                let Some(ticket) = TicketId::parse(ticket_id) else { return };
                let awaits = matches!(moved, Move::Await { .. });
                self.entries.push(if awaits && !protocol.await_loads() {
                    MessageEntry::Completed(ticket)
                } else {
                    self.loaded.insert(ticket);
                    MessageEntry::Loaded(ticket)
                });
                self.phase = if awaits { Phase::Awaiting(ticket) } else { Phase::Idle };
            }
        }
    }

    /// Names the keys of a reply that were ignored: they may have had a meaning for the model.
    fn note_unread_keys(&mut self, calls: &[ToolCall]) {
        let mut keys: Vec<&str> = calls.iter().flat_map(|call| &call.unread).map(String::as_str).collect();
        keys.dedup();
        if !keys.is_empty() {
            let keys = unknown_keys::listed(keys.into_iter());
            self.entries.push(MessageEntry::Note(format!(
                "Note: the {keys} of your reply was left out: a call has no such key."
            )));
        }
    }

    fn begin_calls(&mut self, calls: usize, protocol: &dyn Protocol) {
        self.repetition.left();
        self.count_early();
        self.batch_size = calls;
        self.midway = self.batch.len() < self.batch_size;
        // Calls that were started early have their tickets already.
        self.batch_open = calls - self.batch.len().min(calls)
            + self.batch.values().filter(|ticket| self.open_calls.contains_key(ticket)).count();
        self.phase = if protocol.background() { Phase::Settling } else { Phase::Calling };
    }

    fn add_task(&mut self, task: &str) {
        self.entries.push(MessageEntry::Task(task.to_owned()));
        self.entries.extend(self.reminder.as_deref().map(|reminder| MessageEntry::Reminder(reminder.to_owned())));
    }

    fn add_user_parts(&mut self, parts: &[Part]) {
        self.user_parts = self.user_parts.saturating_add(u32::try_from(parts.len()).unwrap_or(u32::MAX));
        self.said_parts.extend_from_slice(parts);
        self.has_parts |= self.user_parts > 0;
    }

    fn note_key(&mut self, key: Option<&str>, text: &str, parts: &[Part]) {
        if let Some(key) = key {
            self.said_keys.insert(key.to_owned(), SaidUnderKey::new(text, parts, self.user_parts));
        }
    }

    fn on_user_said(&mut self, text: &str, at: f64) {
        self.said = true;
        self.repetition.on_user_said();
        self.add_task(text);
        if self.ending.take().is_some() {
            // The task before it is done.
            if self.own_task.is_some() {
                self.own_task = Some(own_task(text).into());
            }
            self.went_on_at = Some(at);
            self.turns_before = self.turn;
            self.usage_before = self.usage;
            self.paused = 0.0;
            self.violations = 0;
            self.last_turn = None;
            self.limit = None;
            if self.interrupted == Phase::Asking {
                // Calls that were started early belong to a reply that never came.
                self.drop_early();
            }
            self.batch_open = 0;
            self.phase = Phase::Idle;
        }
        if self.phase == Phase::Closing {
            self.phase = Phase::Idle;
        }
        if self.phase == Phase::Idle {
            self.answer = None;
        }
    }

    fn on_ticket_opened(&mut self, opened: &Opened, at: f64) {
        let Opened {
            ticket,
            kind,
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
            ..
        } = opened;
        let is_task = *kind == TicketKind::Task;
        let role = arguments.as_object().filter(|_| is_task).and_then(|given| given.get("role"));
        self.runs += u32::from(is_task);
        self.changed.insert(*ticket);
        self.tickets.open(Ticket {
            id: *ticket,
            description: Arc::clone(description),
            kind: *kind,
            tool: Arc::clone(tool),
            role: role.and_then(Value::as_str).map(str::to_owned),
            detached: *detached,
            parked: *needs_approval,
            approval_reason: None,
            decision: None,
            approved_by: None,
            external: external.clone(),
            answer_key: None,
            awaits_result: external.is_some() && needs.is_empty() && !needs_approval && !checks_approval,
            answered_by: None,
            untrusted: *untrusted,
            arguments: Some(Arc::clone(arguments)),
            turn: *turn,
            call_id: call_id.clone(),
            attempts: 1,
            opened_at: at,
            completed_at: None,
            outcome: None,
            parts: Vec::new(),
        });
        if let Some(call_id) = call_id {
            self.call_ids.insert(call_id.clone(), *ticket);
        }
        self.on_call_opened(opened);
    }

    fn on_call_opened(&mut self, opened: &Opened) {
        let Opened { ticket, call, tool, arguments, needs, detached, checks_approval, .. } = opened;
        let key = needs.is_empty().then(|| repetition::key(tool, arguments));
        let open = OpenCall {
            tool: Arc::clone(tool),
            arguments: Arc::clone(arguments),
            filled: false,
            unchecked: *checks_approval,
            needs: needs.clone(),
            position: *call,
            key,
            failure: None,
        };
        self.open_calls.insert(*ticket, Box::new(open));
        self.batch.insert(*call, *ticket);
        if *detached {
            self.batch_open = self.batch_open.saturating_sub(1);
        }
        self.midway = self.midway && self.batch.len() < self.batch_size;
    }

    fn on_attempt_failed(&mut self, failed: &FailedCall) {
        let is_last = failed.wait.is_none();
        self.tickets.set_attempts(failed.ticket, failed.attempt.saturating_add(u32::from(!is_last)));
        if let Some(call) = self.open_calls.get_mut(&failed.ticket).filter(|_| is_last) {
            call.failure = Some(failed.error.clone());
        }
    }

    fn on_ticket_completed(&mut self, id: TicketId, protocol: &dyn Protocol) {
        self.changed.insert(id);
        let Some(mut call) = self.open_calls.remove(&id) else { return };
        if !call.needs.is_empty() && self.tickets.get(id).is_some_and(|ticket| ticket.role.is_some()) {
            // Its role may have been another call's result.
            let filled = self.filled(&call);
            if let Some(role) = filled.as_object().and_then(|given| given.get("role")?.as_str()) {
                self.tickets.set_role(id, role.to_owned());
            }
        }
        // What a call that waited for others was made with is known only now.
        let key = call.key.take().unwrap_or_else(|| repetition::key(&call.tool, &self.filled(&call)));
        let times = self.count(key, id);
        self.note_edit(id, protocol);
        let detached = |id: &TicketId| self.tickets.get(*id).is_some_and(|ticket| ticket.detached);
        // A call that waits for an agent has its result.
        let waited_for: Vec<TicketId> = call.needs.iter().filter(|need| detached(need)).copied().collect();
        self.loaded.extend(waited_for);
        if self.tickets.get(id).is_some_and(|ticket| ticket.detached) {
            return;
        }
        let told = self.batch.get(&call.position) == Some(&id);
        if times > 1 && told {
            self.times.insert(id, times);
        } else if times > 1 {
            self.entries.push(MessageEntry::Result { ticket: id, times });
        }
        if told {
            self.batch_open = self.batch_open.saturating_sub(1);
        } else if protocol.guides_to_results() && !self.is_announced(id) {
            self.entries.push(MessageEntry::Completed(id));
        }
    }

    fn on_run_started(&mut self, start: &Start, at: f64) {
        self.started_at = at;
        let setup = start.own_setup();
        self.result_bytes = setup.limits.result_bytes;
        self.repetition.per_message = start.version >= AGAIN;
        self.framed = start.version >= FRAMED;
        self.messages.push(Message::new(Role::System, Arc::clone(&setup.prompt)));
        self.messages.extend_from_slice(&setup.examples);
        self.messages.extend_from_slice(&start.messages);
        let earlier = start.messages.iter().map(|message| message.parts.len()).sum::<usize>();
        self.user_parts = u32::try_from(earlier).unwrap_or(u32::MAX);
        self.add_user_parts(&start.parts);
        self.untrusted = start.untrusted;
        self.reminder.clone_from(&setup.reminder);
        if start.version >= OWN_TICKET && setup.protocol.background() {
            self.own_task = Some(own_task(&start.task).into());
        }
        self.add_task(&start.task);
    }

    fn on_violated(&mut self, violation: &Violation, protocol: &dyn Protocol) {
        if violation.code == Code::Repeated {
            self.repetition.refuse();
        } else {
            self.violations += 1;
        }
        self.violations_total += 1;
        if self.offered.take().is_some() {
            self.phase = Phase::Idle;
        }
        self.drop_early();
        let raw = self.messages.last().map_or("", |message| &message.content);
        self.entries.push(MessageEntry::Violation(feedback::render(protocol, violation, raw)));
    }

    fn on_last_turn(&mut self, limit: Limit, protocol: &dyn Protocol) {
        self.last_turn = Some(limit);
        self.limit = Some(limit);
        self.midway = false;
        // In the last turn nothing can be loaded any more: what there is must be before the model (ticket).
        self.show_unseen_results(protocol.background());
        let form = protocol.answer_form();
        self.entries.push(MessageEntry::LastTurn(format!(
            "The limit of this run is reached ({}): no more calls are made. Answer now from what there is, in this \
             form: {form}",
            limit.shown()
        )));
    }
}
