//! Runs driven at random: each byte of the choices is one thing that happens to the run.

use callslip::protocol::{Chatty, FinishReason, Protocol, React, Ticket};
use callslip::run::command::{OnLimit, OnOpenTickets};
use callslip::run::{Command, Limits, Machine, Phase, Record, Setup, Usage};
use callslip::ticket::{Outcome, TicketId};
use callslip::tool::{ToolSet, ToolSpec};
use serde_json::value::RawValue;
use std::sync::Arc;

/// What a run is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) protocol: u8,
    /// Bits: raise at limits, cancel open tickets, early start off, early stop off.
    pub(crate) options: u8,
    pub(crate) steps: u32,
    pub(crate) seconds: bool,
}

fn tools() -> ToolSet {
    let tool = |name: &str, more: &str| -> ToolSpec {
        serde_json::from_str(&format!(
            r#"{{"name": "{name}", "description": "{name}", "parameters": {{"type": "object",
                "properties": {{"a": {{}}}}, "required": ["a"]}}{more}}}"#
        ))
        .unwrap()
    };
    ToolSet::new(vec![
        tool("once", ""),
        tool("asked", r#", "reconciles": true"#),
        tool("again", r#", "effect": "idempotent", "repeatable": true"#),
        tool("look", r#", "effect": "pure", "readonly": true"#),
    ])
    .unwrap()
}

pub(crate) fn setup(kind: Kind) -> Arc<Setup> {
    let protocol: Arc<dyn Protocol> = match kind.protocol % 3 {
        0 => Arc::new(React::default()),
        1 => Arc::new(Chatty::default()),
        _ => Arc::new(Ticket { await_loads: kind.protocol > 127, ..Ticket::default() }),
    };
    let tools = tools();
    let flag = |bit: u8| kind.options & (1 << bit) != 0;
    Arc::new(Setup {
        prompt: protocol.system_prompt(&tools, false).unwrap().into(),
        protocol,
        tools: Arc::new(tools),
        limits: Limits {
            steps: Some(kind.steps),
            tickets: Some(12),
            open_tickets: Some(4),
            seconds: kind.seconds.then_some(300.0),
            ..Limits::default()
        },
        on_limit: if flag(0) { OnLimit::Raise } else { OnLimit::Answer },
        on_open_tickets: if flag(1) { OnOpenTickets::Cancel } else { OnOpenTickets::Wait },
        delegates: false,
        call_first: false,
        early_start: !flag(2),
        early_stop: !flag(3),
    })
}

/// A reply of the protocol, right or wrong.
fn reply(protocol: &str, choice: u8, ticket: u32) -> String {
    let tool = ["once", "asked", "again", "look"][usize::from(choice / 16 % 4)];
    let a = choice / 64;
    match (protocol, choice % 16) {
        ("react", 0..9) => format!(r#"{{"thought": "t", "action": "{tool}", "args": "{{\"a\": {a}}}"}}"#),
        ("react", 9) => r#"{"thought": "t", "action": "unknown", "args": "{}"}"#.to_owned(),
        ("react", 10) => r#"{"thought": "t", "action": "once", "args": "{\"b\": 1}"}"#.to_owned(),
        ("react", 11 | 12) => "I would rather not.".to_owned(),
        ("react", _) => {
            r#"{"thought": "t", "action": "FINISH", "final_answer": "x", "task_successful": true}"#.to_owned()
        }
        ("chatty", 0..5) => format!(
            r#"I call. <tool>[{{"call_id": "x{choice}", "tool_name": "look", "arguments": {{"a": {a}}}}},
               {{"call_id": "y{choice}", "tool_name": "{tool}", "arguments": {{"a": 1}}}}]</tool>"#
        ),
        ("chatty", 5..9) => format!(
            r#"<tool>[{{"call_id": "p{choice}", "tool_name": "{tool}", "arguments": {{"a": {a}}}}},
               {{"call_id": "q{choice}", "tool_name": "look", "arguments": {{"a": "$p{choice}"}}}},
               {{"call_id": "r{choice}", "tool_name": "look", "arguments": {{"a": 7}}}}]</tool>"#
        ),
        ("chatty", 9) => {
            r#"<tool>[{"call_id": "a", "tool_name": "look", "arguments": {"a": 1}}, {"call_id""#.to_owned()
        }
        ("chatty", 10) => {
            r#"<tool>[{"call_id": "a", "tool_name": "unknown", "arguments": {"a": 1}}]</tool>"#.to_owned()
        }
        ("chatty", 11) => "<tool>nothing</tool>".to_owned(),
        ("chatty", _) => "The answer.".to_owned(),
        (_, choice) => {
            let output = match choice {
                0..7 => format!(
                    r#"{{"type": "CALL", "route": "/{tool}", "payload": {{"a": {a}}}, "description": "call {a}"}}"#
                ),
                7..10 => format!(r#"{{"type": "AWAIT", "ticket_id": "T{ticket}"}}"#),
                10..13 => format!(r#"{{"type": "LOAD_TICKET", "ticket_id": "T{ticket}"}}"#),
                13 => r#"{"type": "DELEGATE", "task": "t"}"#.to_owned(),
                14 => "{".to_owned(),
                _ => r#"{"type": "RETURN", "value": {"x": [1, 2.50]}}"#.to_owned(),
            };
            format!("<thoughts>t</thoughts>\n<output>{output}</output>")
        }
    }
}

fn outcome(choice: u8) -> Outcome {
    match choice % 8 {
        0 => Outcome::Error { message: format!("Error calling tool: E: {choice}.") },
        1 => Outcome::Retry { message: "again".into() },
        2 => Outcome::InDoubt { message: "unknown".into() },
        _ => Outcome::Ok(RawValue::from_string((choice / 32).to_string()).unwrap().into()),
    }
}

/// One run with its log and what its driver was told to do.
pub(crate) struct RandomRun {
    pub(crate) machine: Machine,
    pub(crate) log: Vec<Arc<Record>>,
    /// Calls under way.
    pub(crate) calls: Vec<TicketId>,
    /// How often each call was told to be made, and whether again.
    pub(crate) made: Vec<(TicketId, bool)>,
    pub(crate) asked: Vec<u32>,
    pub(crate) now: f64,
    asking: bool,
    settling: bool,
}

impl RandomRun {
    pub(crate) fn start(kind: Kind) -> Self {
        let machine = Machine::new("r".into(), "agent".into(), None, setup(kind));
        let mut run = Self::of(machine, Vec::new(), 1000.0);
        run.machine.start("work", run.now);
        run.take();
        run
    }

    /// What another process makes of the log.
    pub(crate) fn resume(log: Vec<Arc<Record>>, now: f64) -> Self {
        let mut run = Self::of(Machine::load(&log).unwrap(), log, now);
        run.machine.resumed(now);
        run.take();
        run
    }

    fn of(machine: Machine, log: Vec<Arc<Record>>, now: f64) -> Self {
        Self {
            machine,
            log,
            calls: Vec::new(),
            made: Vec::new(),
            asked: Vec::new(),
            now,
            asking: false,
            settling: false,
        }
    }

    pub(crate) fn finished(&self) -> bool {
        self.machine.state().phase == Phase::Finished
    }

    fn take(&mut self) {
        let commands = self.machine.commands(self.now);
        // A machine that was loaded from a cut log works its end out again.
        self.log.extend(self.machine.take_records());
        for command in commands {
            match command {
                Command::AskModel { turn } => {
                    self.asking = true;
                    self.asked.push(turn);
                }
                Command::CallTool { ticket, again, .. } => {
                    self.calls.push(ticket);
                    self.made.push((ticket, again));
                }
                Command::Settle => self.settling = true,
                Command::Cancel { ticket } => self.calls.retain(|call| *call != ticket),
                _ => {}
            }
        }
    }

    /// Lets one thing happen.
    pub(crate) fn happen(&mut self, choice: u8, more: u8) {
        if self.finished() {
            return;
        }
        self.now += 1.0;
        match choice % 32 {
            0 if more < 64 => self.machine.failed("ConnectionError: refused", self.now),
            1 if more < 32 => self.machine.cancel(self.now),
            2 => {
                self.now += 200.0;
                self.machine.timed_out(self.now);
            }
            3..6 if self.settling => {
                self.settling = false;
                self.machine.settled(self.now);
            }
            6 | 7 => {
                let log = std::mem::take(&mut self.log);
                *self = Self::resume(log, self.now + 1000.0);
                return;
            }
            8..18 if !self.calls.is_empty() => {
                let ticket = self.calls.remove(usize::from(more) % self.calls.len());
                self.machine.completed(ticket, outcome(more), self.now);
            }
            _ if self.asking => self.answer(choice, more),
            _ if !self.calls.is_empty() => {
                let ticket = self.calls.remove(0);
                self.machine.completed(ticket, outcome(more), self.now);
            }
            _ if self.settling => {
                self.settling = false;
                self.machine.settled(self.now);
            }
            _ => {}
        }
        self.take();
    }

    fn answer(&mut self, choice: u8, more: u8) {
        let protocol = self.machine.setup().protocol.name();
        let tickets = u32::try_from(self.machine.state().tickets.len()).unwrap();
        let text = reply(protocol, more, 1 + u32::from(choice) % (tickets + 1).max(1));
        let usage = (choice > 128).then_some(Usage { input_tokens: 3, output_tokens: 1, ..Usage::default() });
        let reason = if choice.is_multiple_of(7) { FinishReason::Length } else { FinishReason::Stop };
        self.asking = false;
        if choice.is_multiple_of(3) {
            self.machine.reply(&text, reason, usage, self.now);
            return;
        }
        let size = 1 + usize::from(choice) % 50;
        for (position, chunk) in text.as_bytes().chunks(size).enumerate() {
            let pushed = self.machine.push(chunk, self.now);
            self.take();
            if pushed.stop {
                break;
            }
            if position % 3 == 2 && !self.calls.is_empty() && choice.is_multiple_of(5) {
                // A call that was started early ends while its reply is still arriving.
                let ticket = self.calls.remove(0);
                self.machine.completed(ticket, outcome(more), self.now);
                self.take();
            }
            if position == 5 && choice.is_multiple_of(11) && self.machine.state().phase == Phase::Asking {
                // The process ends in mid-reply.
                let log = std::mem::take(&mut self.log);
                *self = Self::resume(log, self.now + 5.0);
                return;
            }
        }
        self.machine.replied(reason, usage, self.now);
    }
}
