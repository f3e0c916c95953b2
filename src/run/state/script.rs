//! The calls of a script and the outcomes that its interpreter knows: enough to give another interpreter the same.

use super::{OpenCall, Phase, RunState};
use crate::codes::Code;
use crate::protocol::{ToolCall, Violation, script};
use crate::run::repetition;
use crate::run::snapshot::sha256;
use crate::ticket::{Outcome, Ticket, TicketId, is_false};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The calls of a script and their outcomes, all of them in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptState {
    /// The state of each call, by its number.
    calls: Vec<Asked>,
    /// The calls that are not made yet, which have the last numbers.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(in crate::run) waiting: VecDeque<WaitingCall>,
    /// The numbers of the calls that have an outcome, in the order of the log.
    outcomes: Vec<usize>,
    /// The replies of the interpreter, one for each turn.
    steps: Vec<ScriptStep>,
    /// The output of the script.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    printed: String,
    /// Whether it is not known if a call was made.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(in crate::run) in_doubt: bool,
}

/// One reply of the interpreter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptStep {
    /// The number of outcomes that the interpreter knew when it replied.
    pub told: usize,
    /// SHA-256 of the reply in hexadecimal digits; empty before it has come.
    pub hash: String,
}

/// The state of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Asked {
    Waiting,
    Made(TicketId),
    Refused(RefusedCall),
}

/// A call that was not made, because it is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefusedCall {
    /// The code of its violation.
    pub code: Code,
    /// The message of the violation, with its hint.
    pub message: String,
    /// The time of the refusal, in Unix seconds.
    pub at: f64,
}

/// A call that is not made yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct WaitingCall {
    /// The turn of its reply.
    pub(in crate::run) turn: u32,
    pub(in crate::run) call: ToolCall,
}

/// An outcome for the interpreter.
#[derive(Debug, Clone, Copy)]
pub enum ScriptOutcome<'a> {
    /// The call was made, and its ticket has an outcome.
    Ended(&'a Ticket),
    /// The call was not made.
    Refused(&'a RefusedCall),
}

impl ScriptState {
    /// How many calls the script has asked for.
    pub fn asked(&self) -> usize {
        self.calls.len()
    }

    /// The replies so far, with the one that is due.
    pub fn steps(&self) -> &[ScriptStep] {
        &self.steps
    }

    /// The output of the script so far.
    pub fn printed(&self) -> &str {
        &self.printed
    }

    /// The number of the first call that is not made yet.
    pub(in crate::run) fn next_number(&self) -> usize {
        self.calls.len().saturating_sub(self.waiting.len())
    }

    /// Whether there is an outcome that the interpreter does not know.
    pub(in crate::run) fn has_news(&self) -> bool {
        self.steps.last().map_or(0, |step| step.told) < self.outcomes.len()
    }

    pub(super) fn ask(&mut self, turn: u32, calls: &[ToolCall]) {
        self.calls.extend(calls.iter().map(|_| Asked::Waiting));
        self.waiting.extend(calls.iter().map(|call| WaitingCall { turn, call: call.clone() }));
    }

    fn end_next(&mut self, end: Asked) -> usize {
        let number = self.next_number();
        self.waiting.pop_front();
        if let Some(call) = self.calls.get_mut(number) {
            *call = end;
        }
        number
    }

    pub(super) fn open(&mut self, ticket: TicketId) {
        self.end_next(Asked::Made(ticket));
    }

    pub(super) fn refuse(&mut self, violation: &Violation, at: f64) {
        let refused = RefusedCall { code: violation.code, message: violation.sentence(), at };
        let number = self.end_next(Asked::Refused(refused));
        self.outcomes.push(number);
    }

    pub(super) fn complete(&mut self, number: usize, outcome: Option<&Outcome>) {
        self.outcomes.push(number);
        self.in_doubt |= matches!(outcome, Some(Outcome::InDoubt { .. }));
    }

    /// Drops the calls that were not made, because the script has ended.
    pub(super) fn stop(&mut self) {
        self.waiting.clear();
    }

    pub(super) fn begin_step(&mut self) {
        self.steps.push(ScriptStep { told: self.outcomes.len(), hash: String::new() });
    }

    pub(super) fn end_step(&mut self, reply: &str) {
        self.printed.push_str(&script::printed(reply));
        if let Some(step) = self.steps.last_mut() {
            step.hash = sha256([reply]);
        }
    }
}

impl RunState {
    /// The outcomes of a script without the first, which are `known`: each with the number of its call, from 0.
    pub fn script_outcomes(&self, known: usize) -> impl Iterator<Item = (usize, ScriptOutcome<'_>)> {
        let progress = self.calls.script.as_deref();
        let outcomes = progress.and_then(|script| script.outcomes.get(known..)).unwrap_or_default();
        outcomes.iter().filter_map(move |number| {
            let outcome = match progress?.calls.get(*number)? {
                Asked::Made(ticket) => ScriptOutcome::Ended(self.calls.tickets.get(*ticket)?),
                Asked::Refused(refused) => ScriptOutcome::Refused(refused),
                Asked::Waiting => return None,
            };
            Some((*number, outcome))
        })
    }

    /// How many calls something works on: those that await somebody outside are not among them.
    pub(in crate::run) fn calls_in_progress(&self) -> usize {
        self.calls.open.iter().filter(|(ticket, call)| self.calls.is_under_way(**ticket, call)).count()
    }

    /// Begins a step: the interpreter receives all outcomes that it does not know.
    pub(super) fn on_interpreter_asked(&mut self, turn: u32) {
        let known = self.calls.script.as_ref().and_then(|script| script.steps.last()).map_or(0, |step| step.told);
        let told = self.script_outcomes(known);
        let untrusted = told.filter_map(|(_, outcome)| match outcome {
            ScriptOutcome::Ended(ticket) if ticket.tells_untrusted() => Some(ticket.id),
            _ => None,
        });
        for id in untrusted.collect::<Vec<_>>() {
            self.conversation.untrusted = true;
            self.conversation.read_untrusted.entry(id).or_insert(turn);
        }
        if let Some(script) = &mut self.calls.script {
            script.begin_step();
        }
        self.conversation.entries.clear();
        self.conversation.changed.clear();
        self.position.midway = false;
        self.position.turn = turn;
        self.position.phase = Phase::Asking;
    }

    pub(super) fn on_script_moved(&mut self, calls: &[ToolCall]) {
        self.calls.called = true;
        if let Some(script) = &mut self.calls.script {
            script.ask(self.position.turn, calls);
        }
        self.position.phase = Phase::Calling;
        self.note_news();
    }

    /// A call of the script is wrong, and is not made.
    pub(super) fn on_call_refused(&mut self, violation: &Violation, at: f64) {
        self.position.violations_total += 1;
        if let Some(script) = &mut self.calls.script {
            script.refuse(violation, at);
        }
        self.note_news();
    }

    pub(super) fn on_call_of_script_ended(&mut self, id: TicketId, call: OpenCall) {
        let outcome = self.calls.tickets.get(id).and_then(|ticket| ticket.outcome.as_ref());
        if let Some(script) = &mut self.calls.script {
            script.complete(call.position, outcome);
        }
        // A loop may repeat a call, unless a person has denied it.
        if let Some(outcome @ Outcome::Denied { .. }) = outcome {
            let key = call.key.unwrap_or_else(|| repetition::key(&call.tool, &call.arguments));
            self.calls.repetition.record(key, id, outcome, &self.calls.tickets);
        }
        self.note_news();
    }

    pub(super) fn stop_script(&mut self) {
        if let Some(script) = &mut self.calls.script {
            script.stop();
        }
    }

    /// A moment later there may be more outcomes for the interpreter.
    fn note_news(&mut self) {
        if self.position.phase == Phase::Calling && self.calls.script.as_ref().is_some_and(|script| script.has_news()) {
            self.position.phase = Phase::Settling;
        }
    }
}
