//! The run machine from outside: inputs in, commands and events out, state as the fold of the events.

use callslip::protocol::{FinishReason, Protocol, React, Ticket};
use callslip::run::command::{OnLimit, OnOpenTickets};
use callslip::run::{
    Command, Event, Limits, ModelName, Phase, Record, ReplyDetails, RunMachine, RunState, Setup, StopReason, compact,
    replay,
};
use callslip::ticket::{Outcome, TicketId};
use callslip::tool::{ToolSet, ToolSpec};
use serde_json::value::RawValue;
use std::sync::Arc;

fn tools() -> Arc<ToolSet> {
    let tool: ToolSpec = serde_json::from_str(
        r#"{"name": "add", "description": "Add.", "parameters": {"type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}"#,
    )
    .unwrap();
    Arc::new(ToolSet::new(vec![tool]).unwrap())
}

fn machine(protocol: Arc<dyn Protocol>, limits: Limits) -> RunMachine {
    let tools = tools();
    let setup = Setup {
        instructions: None,
        prompt: protocol.system_prompt(&tools, false, "").unwrap().into(),
        examples: [].into(),
        reminder: None,
        protocol,
        tools,
        limits,
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
    };
    RunMachine::new("r".into(), "agent".into(), None, Arc::new(setup))
}

fn react() -> RunMachine {
    machine(Arc::new(React::default()), Limits::default())
}

fn call(a: i64, b: i64) -> String {
    format!(r#"{{"thought": "t", "action": "add", "args": "{{\"a\": {a}, \"b\": {b}}}"}}"#)
}

const FINISH: &str = r#"{"thought": "t", "action": "FINISH", "final_answer": "3", "task_successful": true}"#;

fn ok(json: &str) -> Outcome {
    Outcome::Ok(RawValue::from_string(json.to_owned()).unwrap().into())
}

/// Folds records, written and read again, into a new state and compares it with the machine's.
fn assert_is_fold(machine: &RunMachine, protocol: &dyn Protocol, records: &[Arc<Record>]) {
    let mut state = RunState::default();
    for record in records {
        let text = serde_json::to_string(record).unwrap();
        let record: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), text);
        state.apply(&record.event, record.at, protocol);
    }
    let mine = machine.state();
    assert_eq!(state.conversation.messages, mine.conversation.messages);
    assert_eq!(state.position.phase, mine.position.phase);
    assert_eq!(state.position.turn, mine.position.turn);
    assert_eq!(state.spending.usage, mine.spending.usage);
    assert_eq!(state.position.ending, mine.position.ending);
    assert_eq!(state.calls.tickets.to_json(None), mine.calls.tickets.to_json(None));
}

#[test]
fn a_run_is_the_fold_of_its_events() {
    let mut machine = react();
    let mut records = Vec::new();
    machine.start("add", 1.0);
    assert_eq!(machine.commands(1.0), [Command::AskModel { turn: 1 }]);
    machine.reply(&call(1, 2), FinishReason::Stop, None, 2.0);
    let commands = machine.commands(2.0);
    assert!(matches!(&commands[..], [Command::CallTool { ticket: TicketId(1), tool, .. }] if &**tool == "add"));
    records.extend(machine.take_records());
    assert_is_fold(&machine, &React::default(), &records);
    machine.complete_call(TicketId(1), ok("3"), 3.0);
    assert_eq!(machine.commands(3.0), [Command::AskModel { turn: 2 }]);
    machine.reply(FINISH, FinishReason::Stop, None, 4.0);
    assert_eq!(machine.commands(4.0), [Command::Finish]);
    records.extend(machine.take_records());
    assert_is_fold(&machine, &React::default(), &records);
    assert!(records.iter().enumerate().all(|(position, record)| record.seq == position as u64));
    let ending = machine.state().position.ending.as_ref().unwrap();
    assert_eq!((ending.reason, ending.success), (StopReason::Finished, Some(true)));
}

#[test]
fn each_command_is_given_once() {
    let mut machine = react();
    machine.start("add", 1.0);
    assert_eq!(machine.commands(1.0).len(), 1);
    assert_eq!(machine.commands(1.0), []);
    machine.start("again", 1.0);
    assert_eq!(machine.commands(1.0), []);
}

#[test]
fn inputs_that_come_too_late_or_twice_change_nothing() {
    let mut machine = react();
    machine.start("add", 1.0);
    machine.commands(1.0);
    machine.complete_call(TicketId(1), ok("1"), 1.0);
    machine.end_grace(1.0);
    machine.time_out(1.0);
    assert_eq!(machine.take_records().len(), 2);
    machine.reply(&call(1, 2), FinishReason::Stop, None, 2.0);
    machine.reply(FINISH, FinishReason::Stop, None, 2.0);
    machine.commands(2.0);
    machine.complete_call(TicketId(1), ok("3"), 3.0);
    machine.complete_call(TicketId(1), ok("4"), 3.0);
    assert_eq!(machine.state().calls.tickets.get(TicketId(1)).unwrap().outcome.as_ref().unwrap().text(), "3");
    machine.cancel(4.0);
    machine.cancel(4.0);
    let records = machine.take_records();
    let finished = records.iter().filter(|record| matches!(record.event, Event::RunFinished { .. })).count();
    assert_eq!(finished, 1);
}

#[test]
fn a_streamed_reply_is_the_same_as_a_whole_one() {
    let text = call(1, 2);
    let mut whole = react();
    whole.start("add", 1.0);
    whole.reply(&text, FinishReason::Stop, None, 2.0);
    let commands = whole.commands(2.0);
    for size in 1..text.len() {
        let mut streamed = react();
        streamed.start("add", 1.0);
        for chunk in text.as_bytes().chunks(size) {
            streamed.push(chunk, 2.0);
        }
        // What follows may yet belong to it: the next character tells.
        assert!(streamed.push(b"\nO", 2.0).stop);
        streamed.end_reply(FinishReason::Stop, None, 2.0);
        assert_eq!(streamed.state().conversation.messages, whole.state().conversation.messages);
        assert_eq!(streamed.commands(2.0), commands);
    }
}

#[test]
fn what_follows_the_end_of_a_streamed_move_is_cut_wherever_the_chunk_ends() {
    let text = format!("{}\nObservation: 7\n{}", call(1, 2), call(3, 4));
    for size in [1, 3, 50, 1000] {
        let mut machine = react();
        machine.start("add", 1.0);
        for chunk in text.as_bytes().chunks(size) {
            if machine.push(chunk, 2.0).stop {
                break;
            }
        }
        machine.end_reply(FinishReason::Stop, None, 2.0);
        assert_eq!(&*machine.state().conversation.messages.last().unwrap().content, call(1, 2));
        assert_eq!(machine.state().calls.tickets.len(), 1);
    }
}

#[test]
fn an_unknown_tool_stops_the_stream_as_soon_as_its_name_is_there() {
    let mut machine = react();
    machine.start("add", 1.0);
    assert!(!machine.push(br#"{"thought": "t", "action": "sub"#, 2.0).stop);
    assert!(machine.push(br#"tract", "#, 2.0).stop);
    machine.end_reply(FinishReason::Stop, None, 2.0);
    assert_eq!(machine.state().position.violations, 1);
    assert_eq!(machine.state().position.phase, Phase::Asking);
}

#[test]
fn a_background_call_lets_the_model_go_on() {
    let protocol: Arc<dyn Protocol> = Arc::new(Ticket::default());
    let mut machine = machine(Arc::clone(&protocol), Limits::default());
    machine.start("add", 1.0);
    machine.commands(1.0);
    let call = r#"<thoughts>t</thoughts><output>{"type": "CALL", "route": "/add", "payload": {"a": 1, "b": 2}, "description": "sum"}</output>"#;
    machine.reply(call, FinishReason::Stop, None, 2.0);
    let commands = machine.commands(2.0);
    assert!(matches!(&commands[..], [Command::CallTool { .. }, Command::Settle]));
    machine.end_grace(2.1);
    assert_eq!(machine.commands(2.1), [Command::AskModel { turn: 2 }]);
    assert!(machine.state().conversation.messages.last().unwrap().content.contains("IN_PROGRESS"));
    machine.complete_call(TicketId(1), ok("3"), 2.2);
    assert_eq!(machine.commands(2.2), []);
    let wait = r#"<thoughts>t</thoughts><output>{"type": "AWAIT", "ticket_id": "T1"}</output>"#;
    machine.reply(wait, FinishReason::Stop, None, 3.0);
    assert_eq!(machine.commands(3.0), [Command::AskModel { turn: 3 }]);
    let records = machine.take_records();
    assert_is_fold(&machine, &*protocol, &records);
}

#[test]
fn a_time_limit_grants_one_last_turn_that_is_bounded_too() {
    let limits = Limits { seconds: Some(10.0), ..Limits::default() };
    let mut machine = machine(Arc::new(React::default()), limits);
    machine.start("add", 100.0);
    machine.commands(100.0);
    assert_eq!(machine.deadline(), Some(110.0));
    machine.time_out(110.0);
    machine.time_out(110.0);
    assert_eq!(machine.commands(110.0), [Command::AskModel { turn: 2 }]);
    assert_eq!(machine.deadline(), Some(120.0));
    machine.time_out(120.0);
    assert_eq!(machine.commands(120.0), [Command::Finish]);
    assert_eq!(machine.state().position.ending.as_ref().unwrap().reason, StopReason::Limit);
}

fn named(model: &str, provider: &str) -> ModelName {
    ModelName { model: Some(model.into()), provider: Some(provider.into()) }
}

/// The model and the time of the first piece in each question and each reply.
fn models(records: &[Arc<Record>]) -> Vec<(Option<&str>, Option<&str>, Option<f64>)> {
    let details = records.iter().filter_map(|record| match &record.event {
        Event::ModelAsked { model, provider, .. } => Some((model.as_deref(), provider.as_deref(), None)),
        Event::ModelReplied { model, provider, first_at, .. } => {
            Some((model.as_deref(), provider.as_deref(), *first_at))
        }
        _ => None,
    });
    details.collect()
}

#[test]
fn the_log_names_models_and_times_of_first_pieces() {
    let act = r#"{"thought": "t", "action": "add", "args": {"a": 1, "b": 2}}"#;
    let finish = r#"{"thought": "t", "action": "FINISH", "final_answer": "3", "task_successful": true}"#;
    let mut machine = machine(Arc::new(React::default()), Limits::default());
    machine.use_model(named("large", "openai"));
    machine.start("add", 1.0);
    machine.commands(1.0);
    machine.push(act.as_bytes(), 2.0);
    machine.end_reply_with(ReplyDetails { first_at: Some(1.5), ..ReplyDetails::default() }, 2.0);
    machine.commands(2.0);
    // Another program resumes the run while its call is open, and yet another one while its model is asked.
    machine.use_model(ModelName::default());
    machine.complete_call(TicketId(1), ok("3"), 3.0);
    machine.commands(3.0);
    let records = machine.take_records();
    let mut machine = RunMachine::load(&records).unwrap();
    machine.use_model(named("small", "local"));
    machine.resume(4.0);
    machine.commands(4.0);
    machine.reply(finish, FinishReason::Stop, None, 5.0);
    let records = [records, machine.take_records()].concat();
    assert_eq!(
        models(&records),
        [
            (Some("large"), Some("openai"), None),
            (None, None, Some(1.5)),
            (None, None, None),
            (Some("small"), Some("local"), None),
        ]
    );
    replay(&records).unwrap();
    // A reply for a question that was compacted.
    let asked = records.len() - 4;
    let snapshot = Arc::new(compact(records.get(..asked).unwrap()).unwrap());
    let mut machine = RunMachine::load(&[snapshot]).unwrap();
    machine.use_model(named("small", "local"));
    machine.resume(4.0);
    machine.reply(finish, FinishReason::Stop, None, 5.0);
    assert_eq!(models(&machine.take_records()), [(Some("small"), Some("local"), None)]);
}

#[test]
fn a_reply_names_its_model_only_if_another_one_was_asked() {
    let finish = r#"{"thought": "t", "action": "FINISH", "final_answer": "3", "task_successful": true}"#;
    for (stated, written) in [
        (ModelName::default(), None),
        (named("large", "openai"), None),
        (named("large", "groq"), Some("large")),
        (ModelName { model: Some("reply".into()), provider: None }, Some("reply")),
    ] {
        let mut machine = machine(Arc::new(React::default()), Limits::default());
        machine.use_model(named("large", "openai"));
        machine.start("add", 1.0);
        machine.reply_with(finish, ReplyDetails { model: stated.clone(), ..ReplyDetails::default() }, 2.0);
        let records = machine.take_records();
        let provider = written.and(stated.provider.as_deref());
        assert_eq!(models(&records)[1..], [(written, provider, None)]);
        replay(&records).unwrap();
    }
}
