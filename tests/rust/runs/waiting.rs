//! Nobody waits for something that nobody will do: small trees of runs in every order of what may happen to them.
//!
//! `cargo test --release --test runs waiting -- --ignored --nocapture` goes further, which takes minutes.

use crate::small_scope::explore;
use crate::small_scope::scope::{Choice, Scope};
use callslip::run::Limits;
use callslip::run::command::{OnLimit, OnOpenTickets};
use std::fmt::Write as _;

fn base(protocol: &'static str, wide: bool) -> Scope {
    Scope {
        name: "",
        protocol,
        choices: &[],
        turns: &[],
        tickets: if wide { 4 } else { 3 },
        runs: 3,
        limits: &[],
        on_limit: OnLimit::Answer,
        on_open_tickets: OnOpenTickets::Wait,
        disturbances: if wide { 2 } else { 1 },
    }
}

/// So that each of them is reached.
fn small_limits(limits: &mut Limits) {
    limits.turns = Some(2);
    limits.tickets = Some(2);
    limits.runs = Some(1);
    limits.seconds = Some(9.0);
}

fn smaller_limits(limits: &mut Limits) {
    limits.turns = Some(1);
    limits.tickets = Some(1);
    limits.seconds = Some(5.0);
}

/// A scope, and the same in which open tickets are cancelled at the end.
fn both_ends(scope: Scope, names: [&'static str; 2]) -> [Scope; 2] {
    let cancel = Scope { name: names[1], on_open_tickets: OnOpenTickets::Cancel, ..scope };
    [Scope { name: names[0], ..scope }, cancel]
}

/// A scope with small limits, and the same in which they end the run.
fn both_limits(scope: Scope) -> [Scope; 2] {
    let limits: &[fn(&mut Limits)] = &[small_limits, smaller_limits];
    let scope = Scope { name: "limits", turns: &[9, 9], limits, ..scope };
    [scope, Scope { name: "limits that end it", on_limit: OnLimit::Raise, ..scope }]
}

fn ticket(wide: bool) -> Vec<Scope> {
    use Choice::{AwaitDone, AwaitFirst, AwaitLast, Call, Delegate, Finish, Gated, Load, Violation};
    let base = base("ticket", wide);
    let children = Scope {
        choices: &[&[Delegate, AwaitFirst, AwaitLast, Finish], &[Call, Finish]],
        turns: if wide { &[4, 1] } else { &[2, 1] },
        ..base
    };
    let calls = Scope {
        choices: &[&[Call, Gated, AwaitFirst, AwaitDone, Load, Violation, Finish]],
        turns: if wide { &[3] } else { &[2] },
        ..base
    };
    let grandchild = Scope {
        name: "a grandchild",
        choices: &[&[Delegate, AwaitFirst, Finish], &[Delegate, AwaitFirst, Finish], &[Gated, Finish]],
        turns: if wide { &[2, 2, 1] } else { &[2, 1, 1] },
        ..base
    };
    let limits = Scope { choices: &[&[Delegate, Call, AwaitFirst, Finish], &[Call, Finish]], ..base };
    let mut scopes = vec![grandchild];
    scopes.extend(both_ends(children, ["children", "children, cancelled at the end"]));
    scopes.extend(both_ends(calls, ["calls", "calls, cancelled at the end"]));
    scopes.extend(both_limits(limits));
    scopes
}

fn chatty(wide: bool) -> Vec<Scope> {
    use Choice::{
        Call, Delegate, Diamond, Expert, Finish, Gated, GatedRefer, Refer, SpawnTwo, SpawnWait, UseAgent, Violation,
        Wait,
    };
    let base = base("chatty", wide);
    let references = Scope {
        name: "references",
        choices: &[&[Diamond, Refer, GatedRefer, Violation, Finish]],
        turns: &[2],
        tickets: 4,
        disturbances: if wide { 4 } else { 2 },
        ..base
    };
    let agents = Scope {
        choices: &[&[Delegate, SpawnWait, SpawnTwo, Wait, UseAgent, Finish], &[Call, Finish]],
        turns: if wide { &[3, 1] } else { &[2, 1] },
        ..base
    };
    let approvals = Scope {
        name: "a grandchild",
        choices: &[&[Expert, Delegate, Wait, Finish], &[SpawnWait, Finish], &[Gated, Finish]],
        turns: &[2, 1, 1],
        ..base
    };
    let limits = Scope { choices: &[&[Delegate, SpawnWait, Wait, Call, Finish], &[Call, Finish]], ..base };
    let mut scopes = vec![references, approvals];
    scopes.extend(both_ends(agents, ["agents", "agents, cancelled at the end"]));
    scopes.extend(both_limits(limits));
    scopes
}

fn react(wide: bool) -> Vec<Scope> {
    use Choice::{Call, Delegate, Expert, Finish, Gated, Violation};
    let base = base("react", wide);
    let tasks = Scope {
        name: "tasks",
        choices: &[&[Delegate, Call, Gated, Expert, Violation, Finish], &[Call, Delegate, Finish], &[Gated, Finish]],
        turns: if wide { &[3, 2, 1] } else { &[2, 1, 1] },
        ..base
    };
    let limits = Scope { choices: &[&[Delegate, Call, Gated, Finish], &[Call, Finish]], ..base };
    let mut scopes = vec![tasks];
    scopes.extend(both_limits(limits));
    scopes
}

fn is_of_one_run(scope: &Scope) -> bool {
    scope.choices.len() == 1
}

/// Goes through all of them. Returns what was seen, in words.
fn explored(scopes: Vec<Scope>) -> String {
    let mut text = String::new();
    let (mut states, mut transitions) = (0, 0);
    for scope in scopes {
        let name = format!("{}, {}", scope.protocol, scope.name);
        let figures = explore(scope);
        let _ = writeln!(text, "{name}: {figures}");
        states += figures.states;
        transitions += figures.transitions;
    }
    text + &format!("all: {states} states, {transitions} transitions")
}

// In two halves, because it takes longest and they can go side by side.
#[test]
fn nobody_waits_in_vain_for_runs_in_the_ticket_protocol() {
    let scopes = ticket(false).into_iter().filter(|scope| !is_of_one_run(scope)).collect();
    println!("{}", explored(scopes));
}

#[test]
fn nobody_waits_in_vain_for_calls_in_the_ticket_protocol() {
    let scopes = ticket(false).into_iter().filter(is_of_one_run).collect();
    println!("{}", explored(scopes));
}

#[test]
fn nobody_waits_in_vain_in_the_chatty_protocol() {
    println!("{}", explored(chatty(false)));
}

#[test]
fn nobody_waits_in_vain_in_the_react_protocol() {
    println!("{}", explored(react(false)));
}

#[test]
#[ignore = "it takes minutes, in release"]
fn nobody_waits_in_vain_in_a_wider_scope() {
    println!("{}", explored([ticket(true), chatty(true), react(true)].concat()));
}
