//! From the calls of a reply to tickets: each is looked up, checked and guarded before any of them is opened.

use super::agent_names::{self, Agents};
use super::command::Setup;
use super::ends_at_call::refuse_references;
use super::event::Start;
use super::judge::Judged;
use super::limits::Limit;
use super::read_result::offered_tools;
use super::reference::{self, Names};
use super::repeated_calls::refuse_repetition;
use super::state::RunState;
use crate::codes::Code;
use crate::protocol::{ToolCall, unknown_keys};
use crate::reply::violation::Violation;
use crate::reply::{BoxedViolation, Object, RepairPolicy, Span, Value};
use crate::ticket::{TicketId, TicketKind};
use crate::tool::{Approval, Checked, ToolKind, ToolSet, ToolSpec, misread};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// JSON pointers of arguments, and the tickets of the calls whose results they are.
pub(super) type References = Vec<(String, TicketId)>;

/// A call that may be made.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) ticket: TicketId,
    pub(super) kind: TicketKind,
    /// Whether the task is a script.
    pub(super) script: bool,
    /// Its position in the reply.
    pub(super) call: usize,
    pub(super) call_id: Option<String>,
    pub(super) description: String,
    pub(super) tool: Arc<str>,
    pub(super) arguments: Arc<Value>,
    pub(super) needs: Vec<TicketId>,
    pub(super) detached: bool,
    pub(super) approval: Approval,
    /// JSON pointers of the arguments that were read as another type than they were written in.
    pub(super) coerced: Vec<String>,
    /// The arguments that are results of other calls, by their JSON pointers.
    pub(super) references: References,
    /// What is found of its values.
    pub(super) judged: Judged,
}

/// The name under which a delegated task stands (ticket).
pub(super) const DELEGATE: &str = "DELEGATE";

/// Why the calls of a reply are not made.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The reply breaks the protocol.
    Violation(BoxedViolation),
    /// A limit is reached.
    Limit(Limit),
}

impl From<Violation> for Refusal {
    fn from(violation: Violation) -> Self {
        Self::Violation(Box::new(violation))
    }
}

/// Characters of a call's arguments that stand in its ticket's description.
const DESCRIPTION_CHARACTERS: usize = 80;

/// Plans all `calls` but those at the positions of `started`, whose tickets are open already.
pub(super) fn calls(
    calls: &[ToolCall],
    started: &BTreeMap<usize, TicketId>,
    state: &RunState,
    setup: &Setup,
    start: &Start,
) -> Result<Vec<Planned>, Refusal> {
    let fresh = u32::try_from(calls.len() - started.len().min(calls.len())).unwrap_or(u32::MAX);
    limits(fresh, state, setup)?;
    let mut next = state.calls.tickets.next_id().0;
    let mut tickets = Vec::with_capacity(calls.len());
    for position in 0..calls.len() {
        tickets.push(*started.get(&position).unwrap_or(&TicketId(next)));
        next += u32::from(!started.contains_key(&position));
    }
    let offered = offered_tools(state, setup);
    let mut block = Block {
        state,
        setup,
        tools: &offered,
        start,
        names: HashMap::new(),
        agents: Vec::new(),
        later: HashMap::new(),
        ids: Names::default(),
    };
    if setup.protocol.references() {
        if start.plans_whole_values() {
            let named = || calls.iter().filter_map(|call| Some((call.tool.as_str(), call.call_id.as_deref()?)));
            block.ids = Names::new(named().map(|(_, id)| id)).of_tools(named());
        }
        block.later = calls.iter().filter_map(|call| Some((call.call_id.as_deref()?, call.tool_span))).collect();
    }
    let mut planned = Vec::with_capacity(calls.len());
    for (position, (call, ticket)) in calls.iter().zip(&tickets).enumerate() {
        if !started.contains_key(&position) {
            let last = position + 1 == calls.len();
            let call = block.plan(position, call, *ticket, last)?;
            if call.detached {
                block.agents.push(*ticket);
            }
            planned.push(call);
        }
        if let Some(call_id) = call.call_id.as_deref() {
            block.later.remove(call_id);
            block.names.insert(call_id, *ticket);
        }
    }
    let more = if setup.ends_at_call { 0 } else { runs(&planned) };
    if more > 0 && setup.limits.runs.is_some_and(|limit| state.spent().runs.saturating_add(more) > limit) {
        return Err(Refusal::Limit(Limit::Runs));
    }
    Ok(planned)
}

/// How many runs these start, without those of scripts.
pub(super) fn runs(planned: &[Planned]) -> u32 {
    let tasks = planned.iter().filter(|call| call.kind == TicketKind::Task && !call.script);
    u32::try_from(tasks.count()).unwrap_or(u32::MAX)
}

/// Plans the run of a delegated task (ticket).
pub(super) fn delegate(task: &str, own: &str, state: &RunState, setup: &Setup) -> Result<Planned, Refusal> {
    if !setup.offers_delegation() {
        let message = "expected CALL, AWAIT, LOAD_TICKET or RETURN: this run does not offer DELEGATE";
        return Err(Violation::new(Code::NotOffered, message).hint("do the task yourself with the base tools").into());
    }
    if task.trim().is_empty() {
        return Err(Violation::new(Code::MissingField, "expected the task to delegate: it is blank").into());
    }
    if is_own(task, own) {
        return Err(own_task().into());
    }
    limits(1, state, setup)?;
    if setup.limits.runs.is_some_and(|limit| state.spent().runs >= limit) {
        return Err(Refusal::Limit(Limit::Runs));
    }
    let arguments: Object = [("task", Value::from(task))].into_iter().collect();
    let arguments = Arc::new(Value::Object(arguments));
    refuse_repetition(DELEGATE, &arguments, Span::at(0), state, setup)?;
    Ok(Planned {
        ticket: state.calls.tickets.next_id(),
        kind: TicketKind::Task,
        script: false,
        call: 0,
        call_id: None,
        description: task.to_owned(),
        tool: DELEGATE.into(),
        arguments,
        needs: Vec::new(),
        detached: false,
        approval: Approval::NotNeeded,
        coerced: Vec::new(),
        references: Vec::new(),
        judged: Judged::default(),
    })
}

/// Whether a task is the run's own, but for blanks: it would be delegated without end.
fn is_own(task: &str, own: &str) -> bool {
    task.split_whitespace().eq(own.split_whitespace())
}

fn own_task() -> Violation {
    Violation::new(Code::SelfDelegation, "expected a part of the task: this is the whole task of this run")
        .hint("do it yourself, or delegate a smaller part of it")
}

/// Budgets are reserved for the whole reply before any of its calls starts.
fn limits(fresh: u32, state: &RunState, setup: &Setup) -> Result<(), Refusal> {
    // Those of a script were admitted with their reply.
    if setup.ends_at_call || state.calls.script.is_some() {
        return Ok(());
    }
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).saturating_add(fresh);
    let opened = state.spent().tickets.saturating_add(fresh);
    if setup.limits.tickets.is_some_and(|limit| opened > limit) {
        return Err(Refusal::Limit(Limit::Tickets));
    }
    if setup.limits.open_tickets.is_some_and(|limit| count(state.calls.tickets.open_count()) > limit) {
        return Err(Refusal::Limit(Limit::OpenTickets));
    }
    Ok(())
}

struct Block<'a> {
    state: &'a RunState,
    setup: &'a Setup,
    /// The tools that can be called.
    tools: &'a ToolSet,
    start: &'a Start,
    /// Calls of this block so far, by their names.
    names: HashMap<&'a str, TicketId>,
    /// Those of them that start agents in the background.
    agents: Vec<TicketId>,
    /// Calls of this block that are still to come, the one at hand among them.
    later: HashMap<&'a str, Span>,
    /// The names of all its calls; none in logs of versions that let them stand in text.
    ids: Names<'a>,
}

/// What a call uses of other calls.
struct Needs {
    /// With `$$name` read as `$name` where nothing is referred to.
    arguments: Arc<Value>,
    /// JSON pointers of the arguments that refer to other calls, and the tickets of those.
    references: References,
    tickets: Vec<TicketId>,
}

impl Block<'_> {
    fn plan(&self, position: usize, call: &ToolCall, ticket: TicketId, last: bool) -> Result<Planned, Refusal> {
        let tools = self.tools;
        let Needs { arguments, references, tickets: needs } = self.needs(call, last)?;
        let place = |violation: Violation, span| if violation.span.is_none() { violation.at(span) } else { violation };
        let found = tools.find(&call.tool, self.setup.protocol.routes());
        let found = found.map_err(|violation| place(violation, call.tool_span))?;
        let spec = found.tool;
        unread_arguments(call, spec)?;
        let (arguments, written) = if self.setup.protocol.routes() && self.start.plans_whole_values() {
            let whole = tools.with_whole_body(spec, arguments);
            let whole = whole.map_err(|violation| place(violation, call.arguments_span))?;
            (Arc::clone(&whole), whole)
        } else {
            (arguments, Arc::clone(&call.arguments))
        };
        let checked = if found.path_arguments.is_empty() && tools.admits(spec, &arguments) {
            Ok((arguments, Vec::new()))
        } else {
            let pointers: Vec<_> = references.iter().map(|(pointer, _)| pointer.clone()).collect();
            tools.check_call(&found, &arguments, &pointers).map(Checked::into_parts)
        };
        let (arguments, coerced) = checked.map_err(|violation| place(violation, call.arguments_span))?;
        if self.setup.protocol.read_options().repairs == RepairPolicy::Strict
            && let Some(violation) = misread(spec, &written, &coerced)
        {
            return Err(place(violation, call.arguments_span).into());
        }
        // What refers to other calls is looked at when they have ended.
        let approval = match needs.as_slice() {
            [] => tools
                .approval(spec, &arguments, &self.state.calls.more_approval)
                .map_err(|violation| place(violation, call.arguments_span))?,
            _ => spec.approval_with(&self.state.calls.more_approval),
        };
        let tool: Arc<str> = spec.name.as_str().into();
        let described = call.description.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let description = described.map_or_else(|| describe(&tool, &arguments), str::to_owned);
        let fills = self.fills_defaults() && needs.is_empty() && approval != Approval::NotNeeded;
        let arguments = if fills { tools.with_defaults(spec, arguments) } else { arguments };
        if needs.is_empty() && !spec.repeatable {
            refuse_repetition(&tool, &arguments, call.span, self.state, self.setup)?;
        }
        self.refuse_arguments(spec, &arguments).map_err(|violation| place(violation, call.arguments_span))?;
        Ok(Planned {
            ticket,
            kind: if spec.kind.starts_run() { TicketKind::Task } else { TicketKind::ToolCall },
            script: spec.kind == ToolKind::ScriptRun,
            call: position,
            call_id: call.call_id.clone(),
            description,
            tool,
            arguments,
            needs,
            detached: spec.kind == ToolKind::Spawn,
            approval,
            coerced,
            references,
            judged: Judged::default(),
        })
    }

    /// Refuses arguments that are valid for the tool of the runtime, but not in this run.
    fn refuse_arguments(&self, spec: &ToolSpec, arguments: &Value) -> Result<(), Violation> {
        let task = || arguments.as_object()?.get("task")?.as_str();
        match spec.kind {
            ToolKind::ReadResult => self.state.check_part(arguments),
            ToolKind::Delegate if task().is_some_and(|task| is_own(task, &self.start.task)) => Err(own_task()),
            _ => Ok(()),
        }
    }

    /// Whether calls that need approval are written down with their defaults.
    fn fills_defaults(&self) -> bool {
        self.start.fills_defaults() && !self.setup.ends_at_call
    }

    /// The tickets whose outcomes a call uses, because it refers to them or waits for them.
    fn needs(&self, call: &ToolCall, last: bool) -> Result<Needs, Violation> {
        let arguments = Arc::clone(&call.arguments);
        let waits = |spec: &&ToolSpec| spec.kind == ToolKind::Wait && !self.setup.ends_at_call;
        if let Some(spec) = self.setup.tools.get(&call.tool).filter(waits) {
            if !last {
                let (name, all) = (&spec.name, agent_names::together(self.setup.protocol.pairs_results()));
                let message = format!("expected '{name}' as the last call of its {all}: other calls follow it");
                let violation = Violation::new(Code::WaitNotLast, message).at(call.span);
                return Err(violation.hint(format!("put it at the end, or into the next {all}")));
            }
            return Ok(Needs { arguments, references: Vec::new(), tickets: self.waited_for(spec, call)? });
        }
        if !self.setup.protocol.references() {
            return Ok(Needs { arguments, references: Vec::new(), tickets: Vec::new() });
        }
        let (references, tickets) = if self.setup.ends_at_call {
            let named = |name: &str| self.later.contains_key(name) || self.names.contains_key(name);
            refuse_references(call, named, &self.ids)?;
            Default::default()
        } else {
            self.references(call)?
        };
        if tickets.is_empty() {
            // Before version 9, every text lost its first dollar of two.
            let is_call = |name: &str| {
                let known = || {
                    self.later.contains_key(name)
                        || self.names.contains_key(name)
                        || self.state.calls.call_ids.contains_key(name)
                };
                !self.start.plans_whole_values() || reference::can_be_referred_to(name) && known()
            };
            let arguments = Arc::new(reference::substitute(&arguments, &|_| None, &is_call));
            return Ok(Needs { arguments, references, tickets });
        }
        Ok(Needs { arguments, references, tickets })
    }

    /// The agents that a call waits for, each by its `call_id` with or without the `$`.
    fn waited_for(&self, spec: &ToolSpec, call: &ToolCall) -> Result<Vec<TicketId>, Violation> {
        let place = |violation: Violation| violation.at(call.arguments_span);
        let checked = self.setup.tools.check(spec, &call.arguments).map_err(place)?;
        let ids = match checked.arguments.get("agent_ids") {
            Some(Value::Array(ids)) => &**ids,
            _ => &[],
        };
        let mut agents = Vec::new();
        for (position, id) in ids.iter().enumerate() {
            let written = id.as_str().unwrap_or_default();
            let name = written.strip_prefix('$').unwrap_or(written);
            let agents_known = self.waitable();
            let Some(agent) = agents_known.find(name) else {
                let word = agents_known.word();
                let message = format!("expected the {word} of an agent that was spawned: got '{written}'");
                let known = agents_known.known();
                let hint = if known.is_empty() {
                    "there is none yet: spawn_agent comes first".to_owned()
                } else {
                    format!("there are {}", known.join(", "))
                };
                let violation = Violation::new(Code::BadReference, message).pointer(format!("/agent_ids/{position}"));
                return Err(place(violation).hint(hint));
            };
            if !agents.contains(&agent) {
                agents.push(agent);
            }
        }
        Ok(agents)
    }

    /// The agents that the reply can wait for.
    fn waitable(&self) -> Agents<'_> {
        let by_ticket = self.setup.protocol.pairs_results();
        Agents { state: self.state, names: &self.names, here: &self.agents, by_ticket }
    }

    /// Where the arguments refer to other calls, and the tickets of those calls.
    fn references(&self, call: &ToolCall) -> Result<(References, Vec<TicketId>), Violation> {
        let (mut references, mut needs) = (Vec::new(), Vec::new());
        for mention in reference::mentions(&call.arguments, !self.start.plans_whole_values()) {
            if let Some(span) = self.later.get(mention.name) {
                let own = call.call_id.as_deref() == Some(mention.name);
                let whose = if own { "itself" } else { "a later call" };
                return Err(Violation::new(
                    Code::BadReference,
                    format!("expected a reference to an earlier call: '${}' refers to {whose}", mention.name),
                )
                .at(call.arguments_span)
                .pointer(mention.pointer)
                .related(*span, "the call it refers to")
                .hint("put the call whose result is needed first; write '$$' for a literal '$'"));
            }
            let Some(ticket) = self.names.get(mention.name).or_else(|| self.state.calls.call_ids.get(mention.name))
            else {
                if self.start.plans_whole_values() && reference::is_id_of_a_call(mention.name) {
                    let message =
                        format!("expected a reference to an earlier call: there is no call '{}'", mention.name);
                    return Err(Violation::new(Code::BadReference, message)
                        .at(call.arguments_span)
                        .pointer(mention.pointer)
                        .hint("use the id of an earlier call; write '$$' for a literal '$'"));
                }
                continue;
            };
            references.push((mention.pointer, *ticket));
            if !needs.contains(ticket) {
                needs.push(*ticket);
            }
        }
        self.refuse_reference_in_text(call)?;
        Ok((references, needs))
    }

    /// Refuses text that names a call of this block: it would be sent as it is, before that call has run.
    fn refuse_reference_in_text(&self, call: &ToolCall) -> Result<(), Violation> {
        let known = |name: &str| self.state.calls.call_ids.contains_key(name);
        let Some(mention) = self.ids.inside_text(&call.arguments, known) else { return Ok(()) };
        let name = mention.name;
        let message = format!("expected '${name}' as a whole value: got it with other text, where no result is put in");
        Err(Violation::new(Code::BadReference, message).at(call.arguments_span).pointer(mention.pointer).hint(format!(
            "use '${name}' alone as the value, write the text in a later block, when the result of '{name}' is there, \
             or rename that call if no result is meant"
        )))
    }
}

/// Refuses a call beside whose arguments one more stands: leaving it out would make it another call.
fn unread_arguments(call: &ToolCall, spec: &ToolSpec) -> Result<(), Violation> {
    let Some(properties) = spec.parameters.get("properties").and_then(serde_json::Value::as_object) else {
        return Ok(());
    };
    let beside: Vec<&str> = call
        .unread
        .iter()
        .filter(|key| properties.keys().any(|name| unknown_keys::plain(name) == unknown_keys::plain(key)))
        .map(String::as_str)
        .collect();
    if beside.is_empty() {
        return Ok(());
    }
    let message = format!(
        "expected every argument of '{}' inside its arguments: got the {} beside them",
        spec.name,
        unknown_keys::listed(beside.into_iter())
    );
    Err(Violation::new(Code::UnknownKey, message).at(call.span).expected(crate::tool::expected(spec)))
}

/// A call in a few words.
pub(super) fn describe(tool: &str, arguments: &Value) -> String {
    let mut text = format!("{tool} {}", arguments.to_json());
    let start = tool.len() + 1;
    if let Some((end, _)) = text.get(start..).and_then(|json| json.char_indices().nth(DESCRIPTION_CHARACTERS)) {
        text.truncate(start + end);
        text.push('…');
    }
    text
}
