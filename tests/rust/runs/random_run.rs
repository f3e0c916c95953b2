//! Runs driven at random: each byte of the choices is one thing that happens to the run.

use crate::one_line::{self, OneLine};
use callslip::protocol::{Chatty, FinishReason, Protocol, React, Ticket};
use callslip::run::command::{OnLimit, OnOpenTickets};
use callslip::run::{
    Account, Command, FailedAttempt, FailedCall, Limits, Phase, Record, RunMachine, Setup, Shortened, Spent, Usage,
};
use callslip::ticket::{Outcome, TicketId, TicketKind};
use callslip::tool::agent_tools::{background, delegate};
use callslip::tool::{ToolSet, ToolSpec};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a run is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) protocol: u8,
    /// Bits: raise at limits, cancel open tickets, early start off, early stop off.
    pub(crate) options: u8,
    pub(crate) steps: u32,
    pub(crate) seconds: bool,
    /// Whether it draws from the account of a run above it, with others beside it.
    pub(crate) shared: bool,
}

fn tools(protocol: &str) -> ToolSet {
    let tool = |name: &str, more: &str| -> ToolSpec {
        serde_json::from_str(&format!(
            r#"{{"name": "{name}", "description": "{name}", "parameters": {{"type": "object",
                "properties": {{"a": {{}}}}, "required": ["a"]}}{more}}}"#
        ))
        .unwrap()
    };
    let tasks = match protocol {
        "react" => vec![delegate()],
        "chatty" => background(&[]),
        _ => Vec::new(),
    };
    let tools = vec![
        tool("once", ""),
        tool("gated", r#", "needs_approval": true"#),
        tool("asked", r#", "reconciles": true"#),
        tool("again", r#", "effect": "idempotent", "repeatable": true"#),
        tool("look", r#", "effect": "pure", "readonly": true, "untrusted": true"#),
        tool("script", r#", "kind": "script""#),
    ];
    ToolSet::new([tools, tasks].concat()).unwrap()
}

pub(crate) fn setup(kind: Kind) -> Arc<Setup> {
    one_line::register();
    let protocol: Arc<dyn Protocol> = match kind.protocol % 4 {
        0 => Arc::new(React::default()),
        1 => Arc::new(Chatty::default()),
        2 => Arc::new(Ticket { await_loads: kind.protocol > 127, ..Ticket::default() }),
        _ => Arc::new(OneLine::default()),
    };
    let tools = tools(protocol.name());
    let flag = |bit: u8| kind.options & (1 << bit) != 0;
    Arc::new(Setup {
        instructions: None,
        prompt: protocol.system_prompt(&tools, false, "").unwrap().into(),
        examples: [].into(),
        reminder: None,
        protocol,
        tools: Arc::new(tools),
        limits: Limits {
            turns: Some(kind.steps),
            tickets: Some(12),
            open_tickets: Some(4),
            seconds: kind.seconds.then_some(300.0),
            ..Limits::default()
        },
        on_limit: if flag(0) { OnLimit::Raise } else { OnLimit::Answer },
        on_open_tickets: if flag(1) { OnOpenTickets::Cancel } else { OnOpenTickets::Wait },
        delegates: true,
        call_first: false,
        checks_answer: false,
        ends_at_call: false,
        values: None,
        least_certainty: None,
        early_start: !flag(2),
        early_stop: !flag(3),
    })
}

/// A reply that gives tasks to other runs, or asks for what needs approval.
fn task_reply(protocol: &str, choice: u8, ticket: u32) -> String {
    let part = choice / 4;
    let spawn = |id: &str| {
        let arguments = format!(r#"{{"role": "R", "prompt": "part {part}"}}"#);
        format!(r#"{{"call_id": "{id}{part}", "tool_name": "spawn_agent", "arguments": {arguments}}}"#)
    };
    let row = |tool: &str, arguments: &str| {
        format!(r#"{{"call_id": "{tool}{ticket}", "tool_name": "{tool}", "arguments": {arguments}}}"#)
    };
    let wait = |ids: &str| row("wait_for_agents", &format!(r#"{{"agent_ids": [{ids}]}}"#));
    let text = match (protocol, choice % 4) {
        ("react", 0) => format!(r#""gated", "args": "{{"a": {part}}}""#),
        ("react", _) => format!(r#""delegate_task", "args": "{{"task": "part {part}"}}""#),
        ("chatty", 0) => {
            let used = format!(r#"{{"a": "$gated{ticket}"}}"#);
            format!("{}, {}", row("gated", &format!(r#"{{"a": {part}}}"#)), row("look", &used))
        }
        ("chatty", 1) => format!("{}, {}", spawn("s"), row("again", r#"{"a": 1}"#)),
        ("chatty", 2) => format!("{}, {}, {}", spawn("s"), spawn("t"), wait(&format!(r#""$s{part}", "$t{part}""#))),
        // Of any agent that there may be.
        ("chatty", _) if part.is_multiple_of(2) => wait(&format!(r#""s{}""#, part / 2)),
        ("chatty", _) => row("look", &format!(r#"{{"a": "$s{}"}}"#, part / 2)),
        (one_line::NAME, _) => format!(r#""gated", "args": {{"a": {part}}}"#),
        (_, 0) => format!(r#""CALL", "route": "gated", "payload": {{"a": {part}}}, "description": "g""#),
        (_, 1) => format!(r#""AWAIT", "ticket_id": "T{ticket}""#),
        (_, _) => format!(r#""DELEGATE", "task": "part {part}""#),
    };
    match protocol {
        "react" => format!(r#"{{"thought": "t", "action": {text}}}"#),
        "chatty" => format!("<tool>[{text}]</tool>"),
        one_line::NAME => format!(r#"{{"tool": {text}}}"#),
        _ => format!(r#"<thoughts>t</thoughts><output>{{"type": {text}}}</output>"#),
    }
}

/// A reply of the protocol, right or wrong.
fn reply(protocol: &str, choice: u8, ticket: u32) -> String {
    let tool = ["once", "asked", "again", "look", "script"][usize::from(choice / 16 % 5)];
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
        (one_line::NAME, 0..9) => format!(r#"{{"tool": "{tool}", "args": {{"a": {a}}}}}"#),
        (one_line::NAME, 9) => r#"{"tool": "unknown", "args": {}}"#.to_owned(),
        (one_line::NAME, 10..12) => "I would rather not.".to_owned(),
        (one_line::NAME, _) => r#"{"answer": "x"}"#.to_owned(),
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
        0 => Outcome::Error { message: format!("Error calling tool: E: {choice}."), transient: false },
        1 => Outcome::Retry { message: "again".into() },
        2 => Outcome::InDoubt { message: "unknown".into() },
        _ => Outcome::Ok(RawValue::from_string((choice / 32).to_string()).unwrap().into()),
    }
}

/// What the run of a task has spent.
fn spent(choice: u8) -> Spent {
    let usage = Usage { input_tokens: u64::from(choice), cost: f64::from(choice) / 7.0, ..Usage::default() };
    Spent { usage, tickets: u32::from(choice % 3), runs: u32::from(choice / 128) }
}

/// The account of a run above, from which others have spent already.
fn above(kind: Option<Kind>) -> Option<Arc<Account>> {
    kind.filter(|kind| kind.shared).map(|_| {
        let limits = Limits { tickets: Some(9), runs: Some(3), tokens: Some(400), ..Limits::default() };
        Account::open(None, limits, spent(4))
    })
}

/// One run with its log and what its driver was told to do.
pub(crate) struct RandomRun {
    pub(crate) machine: RunMachine,
    pub(crate) log: Vec<Arc<Record>>,
    /// Calls under way.
    pub(crate) calls: Vec<TicketId>,
    /// How often each call was told to be made, and whether again.
    pub(crate) made: Vec<(TicketId, bool)>,
    pub(crate) asked: Vec<u32>,
    pub(crate) now: f64,
    kind: Option<Kind>,
    above: Option<Arc<Account>>,
    /// What the runs of its tasks have spent so far.
    below: BTreeMap<TicketId, Spent>,
    asking: bool,
    settling: bool,
}

impl RandomRun {
    pub(crate) fn start(kind: Kind) -> Self {
        let machine = RunMachine::new("r".into(), "agent".into(), None, setup(kind));
        let mut run = Self::of(machine, Vec::new(), 1000.0, Some(kind));
        run.machine.start("work", run.now);
        run.take();
        run
    }

    /// What another process makes of the log.
    pub(crate) fn resume(log: Vec<Arc<Record>>, now: f64) -> Self {
        Self::resume_as(log, now, None)
    }

    /// The same, drawing from an account as a run of this kind does.
    pub(crate) fn resume_as(log: Vec<Arc<Record>>, now: f64, kind: Option<Kind>) -> Self {
        let mut run = Self::of(RunMachine::load(&log).unwrap(), log, now, kind);
        run.machine.resume(now);
        run.take();
        run
    }

    fn of(mut machine: RunMachine, log: Vec<Arc<Record>>, now: f64, kind: Option<Kind>) -> Self {
        let above = above(kind);
        if let Some(above) = &above {
            machine.join(1, above);
        }
        Self {
            machine,
            log,
            calls: Vec::new(),
            made: Vec::new(),
            asked: Vec::new(),
            now,
            kind,
            above,
            below: BTreeMap::new(),
            asking: false,
            settling: false,
        }
    }

    pub(crate) fn finished(&self) -> bool {
        self.machine.state().position.phase == Phase::Finished
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
                Command::CallTool { ticket, again, .. } | Command::StartRun { ticket, again, .. } => {
                    self.calls.push(ticket);
                    self.made.push((ticket, again));
                    self.spend_below(ticket, spent(1));
                }
                Command::Settle => self.settling = true,
                Command::Cancel { ticket } => self.calls.retain(|call| *call != ticket),
                _ => {}
            }
        }
    }

    /// Lets one thing happen.
    pub(crate) fn happen(&mut self, choice: u8, more: u8) {
        self.now += 1.0;
        if self.finished() {
            if choice % 32 == 19 && more < 128 {
                self.machine.send("more", self.now);
                self.take();
            }
            return;
        }
        match choice % 32 {
            0 if more < 64 => self.machine.model_failed("ConnectionError: refused", self.now),
            1 if more < 32 => self.machine.cancel(self.now),
            2 => {
                self.now += 200.0;
                self.machine.time_out(self.now);
            }
            3..6 if self.settling => {
                self.settling = false;
                self.machine.end_grace(self.now);
            }
            6 | 7 => {
                self.crash(more, 1000.0);
                return;
            }
            8..16 if !self.calls.is_empty() => self.end(usize::from(more) % self.calls.len(), more),
            16 | 17 if self.above.is_some() => self.spend_beside(more),
            18 if self.parked().is_some() => self.decide(more),
            19 if more < 64 => self.machine.send("more", self.now),
            _ if self.asking => self.answer(choice, more),
            _ if !self.calls.is_empty() => self.end(0, more),
            _ if self.settling => {
                self.settling = false;
                self.machine.end_grace(self.now);
            }
            _ if self.parked().is_some() => self.decide(more),
            _ => {}
        }
        self.take();
    }

    fn parked(&self) -> Option<TicketId> {
        self.machine.state().calls.tickets.iter().find(|ticket| ticket.parked).map(|ticket| ticket.id)
    }

    fn decide(&mut self, more: u8) {
        let Some(ticket) = self.parked() else { return };
        if more.is_multiple_of(2) {
            self.machine.approve(ticket, None, Some("ann"), self.now);
        } else {
            self.machine.complete_call(
                ticket,
                Outcome::Denied { message: "denied".into(), by: Some("ann".into()) },
                self.now,
            );
        }
    }

    /// Others spend what this run and they have together; one of them may be a run below this one.
    fn spend_beside(&mut self, more: u8) {
        let spent = spent(more / 4);
        match (&self.above, self.calls.iter().copied().find(|ticket| self.is_task(*ticket))) {
            (Some(_), Some(ticket)) => {
                self.spend_below(ticket, spent);
            }
            (Some(above), None) => above.spend(&spent),
            (None, _) => {}
        }
    }

    /// The run of a task spends something, if it is one, and its account is known.
    fn spend_below(&mut self, ticket: TicketId, spent: Spent) {
        if self.above.is_some() && self.is_task(ticket) {
            self.machine.account().spend(&spent);
            self.below.entry(ticket).or_default().add(&spent);
        }
    }

    fn is_task(&self, ticket: TicketId) -> bool {
        self.machine.state().calls.tickets.get(ticket).is_some_and(|ticket| ticket.kind == TicketKind::Task)
    }

    /// A call ends, or the run of a task.
    fn end(&mut self, position: usize, more: u8) {
        let ticket = self.calls.remove(position);
        if self.is_task(ticket) {
            self.spend_below(ticket, spent(more));
            let spent = self.below.remove(&ticket).unwrap_or_else(|| spent(more));
            self.machine.complete(ticket, outcome(more), &[], Some(spent), self.now);
        } else {
            for _ in 0..more % 3 {
                let failed =
                    FailedCall::new(ticket, self.machine.attempts(ticket), "E: no.", Some(f64::from(more) / 3.0));
                self.machine.tool_attempt_failed(failed, self.now);
                self.take();
                self.now += 0.5;
            }
            self.machine.complete_call(ticket, outcome(more), self.now);
        }
    }

    /// The process ends, and another one goes on; between them somebody may approve of a call.
    fn crash(&mut self, more: u8, pause: f64) {
        let (mut log, kind) = (std::mem::take(&mut self.log), self.kind);
        self.now += pause;
        if more.is_multiple_of(4)
            && let Some(ticket) = self.parked()
        {
            let mut kept = RunMachine::load(&log).unwrap();
            kept.approve(ticket, None, Some("ann"), self.now);
            kept.commands(self.now);
            log.extend(kept.take_records());
        }
        *self = Self::resume_as(log, self.now, kind);
    }

    /// A request for the reply fails, and another one follows.
    fn fail(&mut self, more: u8) {
        let usage = more.is_multiple_of(3).then(|| Box::new(spent(more / 8).usage));
        let attempt = FailedAttempt {
            turn: self.machine.state().position.turn,
            model: "m".into(),
            error: "ConnectionError: refused".into(),
            wait: (!more.is_multiple_of(5)).then_some(f64::from(more) / 3.0),
            dropped: self.machine.has_streamed(),
            usage,
        };
        self.machine.attempt_failed(attempt, self.now);
        self.take();
    }

    /// The model is shown less from now on; or more, which the run does not take.
    fn shorten(&mut self, more: u8) {
        let exchanges = u32::from(more) / 16;
        let shortened = Shortened {
            turn: self.machine.state().position.turn,
            exchanges,
            results: exchanges + u32::from(more % 3),
            result_bytes: more.is_multiple_of(7).then(|| usize::from(more)),
            summary: more.is_multiple_of(2).then(|| "So far.".into()),
            error: more.is_multiple_of(5).then(|| "ContextFull: too long".into()),
            usage: more.is_multiple_of(4).then(|| Box::new(spent(more / 8).usage)),
        };
        self.machine.shorten_history(shortened, self.now);
        self.take();
    }

    fn answer(&mut self, choice: u8, more: u8) {
        let protocol = self.machine.setup().protocol.name();
        let tickets = u32::try_from(self.machine.state().calls.tickets.len()).unwrap();
        let ticket = 1 + u32::from(choice) % (tickets + 1).max(1);
        let text = if choice % 4 == 3 { task_reply(protocol, more, ticket) } else { reply(protocol, more, ticket) };
        // Without usage a limit of tokens ends the run.
        let usage = (choice > 8).then_some(Usage { input_tokens: 3, output_tokens: 1, ..Usage::default() });
        let reason = match choice % 7 {
            0 => FinishReason::Length,
            1 => FinishReason::Unknown,
            _ => FinishReason::Stop,
        };
        if choice.is_multiple_of(13) {
            self.fail(more);
        }
        if choice.is_multiple_of(11) {
            self.shorten(more);
        }
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
                self.end(0, more);
                self.take();
            }
            if position == 4 && choice % 16 == 5 && !self.machine.has_early_calls() {
                self.fail(more);
                return self.answer(choice / 2, more);
            }
            if position == 5 && choice.is_multiple_of(11) && self.machine.state().position.phase == Phase::Asking {
                // The process ends in mid-reply.
                self.crash(more, 5.0);
                return;
            }
        }
        self.machine.end_reply(reason, usage, self.now);
    }
}
