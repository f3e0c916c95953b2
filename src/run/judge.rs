//! Whether a call may be made with these values: each is traced to where it comes from, before its ticket is opened.

use super::machine::{RunMachine, SharedLimits};
use super::plan::Planned;
use super::repetition;
use super::texts_above::place_in_words;
use super::traced_texts::{Origins, arguments_of};
use super::untrusted::inherits_untrusted;
use crate::codes::Code;
use crate::json_pointer::unescape;
use crate::origin::{Kind, Origin};
use crate::protocol::{Move, ToolCall};
use crate::reply::Value;
use crate::reply::violation::{RefusedCalls, Violation};
use crate::ticket::{Ticket, TicketId};
use crate::tool::{Approval, Level, ToolKind, ToolSpec, made_up_in};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes of a value in what the model is told.
const SHOWN: usize = 80;

/// What is found of the values of a call.
#[derive(Debug, Clone, Default)]
pub(super) struct Judged {
    /// Where they come from, as far as somebody asks.
    pub(super) origins: Origins,
    /// Why the call needs approval, where they are the reason.
    pub(super) reason: Option<Arc<str>>,
}

/// A value without an origin.
struct Unstated {
    pointer: String,
    value: Json,
    level: Level,
    is_example: bool,
    /// Whether the call can do without it.
    is_optional: bool,
}

impl RunMachine {
    /// Traces the values of calls that are to be opened, and refuses the reply where one has no origin and needs it.
    ///
    /// # Errors
    /// The violation: `unstated_value` or `example_value`.
    pub(super) fn judge(&mut self, planned: &mut [Planned], calls: &[ToolCall], now: f64) -> Result<(), Violation> {
        if let SharedLimits::Replayed(replayed) = &self.shared_limits {
            if let Some(refused) = replayed.refused.get(&self.seq) {
                return Err(refused.clone());
            }
            for call in planned {
                if let Some(verdict) = replayed.verdicts.get(&call.ticket) {
                    call.judged.origins.clone_from(&verdict.judged.origins);
                    call.approval = call.approval.max(verdict.approval);
                    call.judged.reason.clone_from(&verdict.judged.reason);
                }
            }
            return Ok(());
        }
        if self.state.conversation.refused.leaves_an_answer() {
            return Err(only_an_answer());
        }
        self.check_certainty(planned)?;
        let (mut refused, mut unstated) = (RefusedCalls::default(), Vec::new());
        let mut place = None;
        let tools = Arc::clone(&self.setup.tools);
        let has_read = self.state.conversation.untrusted;
        let untrusted = planned.iter().filter(|call| {
            let spec = tools.get(&call.tool);
            spec.is_some_and(|spec| spec.untrusted)
                || (has_read && inherits_untrusted(call.kind, spec))
                || self.shows_untrusted_part(&call.tool, &call.arguments)
        });
        let opening = untrusted.map(|call| call.ticket).collect();
        for call in planned {
            let found = self.judge_call(call, &opening, now);
            if found.is_empty() {
                continue;
            }
            refused.keys.push(repetition::key(&call.tool, &call.arguments));
            refused.strict |= found.iter().any(|value| value.level >= Level::Strict || value.is_example);
            place = place.or_else(|| calls.get(call.call).map(|call| call.arguments_span));
            unstated.extend(found);
        }
        if unstated.is_empty() {
            return Ok(());
        }
        // Whoever makes the calls may have asked for one.
        refused.strict &= !self.setup.ends_at_call;
        refused.values = unstated.iter().map(|one| (one.pointer.clone(), one.value.to_string())).collect();
        let mut violation = told(&unstated);
        violation.span = place;
        violation.pointer = unstated.first().map(|one| one.pointer.clone());
        violation.refused = Some(Box::new(refused));
        Err(violation)
    }

    /// Says whether its driver has somebody to ask for approval.
    pub fn set_can_ask(&mut self, can_ask: bool) {
        self.can_ask = can_ask;
    }

    /// The untrusted results that were in front of the model when it wrote this call. `T0` stands for what its run began
    /// with.
    pub fn influences(&self, ticket: &Ticket) -> Vec<TicketId> {
        let begun = self.start.untrusted.then_some(TicketId::OWN);
        let read = self.state.conversation.read_untrusted.iter();
        begun.into_iter().chain(read.filter(|(_, turn)| **turn <= ticket.turn).map(|(id, _)| *id)).collect()
    }

    /// The values for which a call is refused. Decides whether it needs approval for one that is not refused.
    fn judge_call(&mut self, call: &mut Planned, opening: &BTreeSet<TicketId>, now: f64) -> Vec<Unstated> {
        let tools = Arc::clone(&self.setup.tools);
        let Some(spec) = tools.get(&call.tool) else { return Vec::new() };
        let is_function = matches!(spec.kind, ToolKind::Function);
        // Calls that others make are judged by others.
        let is_judged = is_function && !self.setup.ends_at_call && spec.has_level(self.setup.values);
        let has_example = is_function && self.has_example_value(&call.arguments);
        if !is_judged && !has_example && !spec.asks_untrusted && call.approval == Approval::NotNeeded {
            return Vec::new();
        }
        let origins = self.trace_call(call, spec, opening, now);
        let arguments = Json::Object(arguments_of(&call.arguments).unwrap_or_default());
        let mut found = Vec::new();
        let mut reasons = Vec::new();
        for (pointer, origin) in &origins {
            let value = arguments.pointer(pointer).cloned().unwrap_or_default();
            let name = argument_of(pointer);
            let level = if is_judged { spec.level(&name, self.setup.values) } else { Level::Any };
            let is_example = has_example && value.as_str().is_some_and(|text| self.repeats_example(text, origin, now));
            if is_example || (matches!(level, Level::Stated | Level::Strict) && !origin.is_stated()) {
                let is_optional = is_optional(spec, &name);
                found.push(Unstated { pointer: pointer.clone(), value, level, is_example, is_optional });
            } else if (level == Level::Trusted || spec.asks_untrusted) && !is_trusted(origin) {
                reasons.push(reason(pointer, origin));
            }
        }
        let is_again = !found.is_empty()
            && found.iter().all(|value| value.level == Level::Stated && !value.is_example)
            && self.state.conversation.refused.has(&call.tool, &call.arguments);
        if is_again && (spec.readonly || self.can_ask) {
            if !spec.readonly {
                reasons.extend(found.iter().map(|value| format!("{} is in no message and no result", named(value))));
            }
            found.clear();
        }
        if found.is_empty() && !reasons.is_empty() {
            call.approval = Approval::Needed;
            call.judged.reason = Some(reasons.join("; ").into());
        }
        call.judged.origins = origins;
        found
    }

    /// Whether an argument has a value of the prompt's own example.
    fn has_example_value(&self, arguments: &Value) -> bool {
        if self.setup.examples.is_empty() {
            return false;
        }
        match arguments {
            Value::String(text) => made_up_in(text).into_iter().any(|found| self.is_example_value(found)),
            Value::Array(items) => items.iter().any(|item| self.has_example_value(item)),
            Value::Object(fields) => fields.iter().any(|(_, value)| self.has_example_value(value)),
            _ => false,
        }
    }

    /// Whether a text is a value of the example, or has one in it, that stands nowhere else.
    fn repeats_example(&mut self, text: &str, origin: &Origin, now: f64) -> bool {
        let mut found = made_up_in(text);
        found.retain(|found| self.is_example_value(found));
        let is_whole = found.iter().any(|found| found.eq_ignore_ascii_case(text.trim()));
        if is_whole && origin.is_stated() && origin.kind != Kind::Composed {
            return false;
        }
        found.into_iter().any(|found| !self.is_stated_text(found, now))
    }

    fn is_example_value(&self, made_up: &str) -> bool {
        self.setup.examples.iter().any(|message| message.content.contains(made_up))
    }

    /// Refuses an answer that repeats what the model was told of a refused reply, or a value of the example.
    ///
    /// # Errors
    /// The violation: `feedback_quoted` or `example_value`.
    pub(super) fn judge_answer(&mut self, moved: &Move, now: f64) -> Result<(), Violation> {
        let Move::Finish { value, .. } = moved else { return Ok(()) };
        if let SharedLimits::Replayed(replayed) = &self.shared_limits {
            return replayed.refused.get(&self.seq).map_or(Ok(()), |refused| Err(refused.clone()));
        }
        // There is no other turn in which it could be mended.
        if self.state.position.last_turn.is_some() {
            return Ok(());
        }
        let mut texts = Vec::new();
        texts_of(value, &mut texts);
        if self.state.conversation.refused.is_quoted(&texts) {
            let message = "expected an answer in your own words: got the text of a refusal";
            let violation = Violation::new(Code::FeedbackQuoted, message);
            return Err(violation.hint("answer the user; if you cannot do it without a tool, say so"));
        }
        if self.setup.examples.is_empty() {
            return Ok(());
        }
        let found = texts.iter().flat_map(|text| made_up_in(text));
        let found: Vec<&str> = found.filter(|text| self.is_example_value(text)).collect();
        let Some(example) = found.into_iter().find(|text| !self.is_stated_text(text, now)) else { return Ok(()) };
        let message =
            format!("expected an answer from this conversation: '{example}' is of the example before the task");
        Err(Violation::new(Code::ExampleValue, message).hint("answer from the task and from the results of your calls"))
    }
}

/// The texts of an answer.
fn texts_of<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts_of(item, texts)),
        Value::Object(fields) => fields.iter().for_each(|(_, value)| texts_of(value, texts)),
        _ => {}
    }
}

/// Whether a trusted text vouches for a value, or a short one may be anywhere.
fn is_trusted(origin: &Origin) -> bool {
    origin.is_stated() && (origin.weak || !origin.untrusted)
}

fn reason(pointer: &str, origin: &Origin) -> String {
    let name = named_pointer(pointer);
    match origin.kind {
        Kind::Model | Kind::Example | Kind::None => format!("{name} is in no message and no result"),
        Kind::Result | Kind::Reference => {
            format!("{name} comes only from {}, which is untrusted", place_in_words(&origin.place))
        }
        Kind::Composed => format!("{name} has parts that come only from untrusted results"),
        _ => format!("it is not known where {name} comes from"),
    }
}

/// The argument of the first level that a pointer leads into.
pub(super) fn argument_of(pointer: &str) -> String {
    let first = pointer.strip_prefix('/').unwrap_or(pointer).split('/').next().unwrap_or_default();
    unescape(first)
}

fn is_optional(spec: &ToolSpec, argument: &str) -> bool {
    let required = spec.parameters.get("required").and_then(Json::as_array);
    !required.is_some_and(|names| names.iter().any(|name| name == argument))
}

/// The last names of a pointer, as people write them: `rows[2].mail`.
fn named_pointer(pointer: &str) -> String {
    let mut name = String::new();
    for part in pointer.split('/').skip(1) {
        let part = unescape(part);
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            name.extend(["[", &part, "]"]);
        } else {
            name.push_str(if name.is_empty() { "" } else { "." });
            name.push_str(&part);
        }
    }
    format!("'{name}'")
}

fn named(value: &Unstated) -> String {
    let mut json = value.value.to_string();
    if json.len() > SHOWN {
        let end = (0..=SHOWN).rev().find(|end| json.is_char_boundary(*end)).unwrap_or_default();
        json.truncate(end);
        json.push('…');
    }
    format!("{} = {json}", named_pointer(&value.pointer))
}

/// What the model is told of values without an origin: of all of them at once.
fn told(unstated: &[Unstated]) -> Violation {
    let by_kind: BTreeMap<bool, Vec<String>> = unstated.iter().fold(BTreeMap::new(), |mut kinds, value| {
        kinds.entry(value.is_example).or_insert_with(Vec::new).push(named(value));
        kinds
    });
    let says = |(is_example, names): (&bool, &Vec<String>)| {
        let (verb, from) = if names.len() == 1 { ("is", "a value") } else { ("are", "values") };
        let names = names.join(" and ");
        if *is_example {
            format!("{names} {verb} {from} of the example before the task")
        } else {
            format!("{names} {verb} in no message and no result")
        }
    };
    let message: Vec<String> = by_kind.iter().map(says).collect();
    let code = if by_kind.contains_key(&false) { Code::UnstatedValue } else { Code::ExampleValue };
    let leave = if unstated.iter().all(|value| value.is_optional) { ", leave it out," } else { "," };
    // A small model copies what it reads: without an honest sentence, it answers as if the call had been made.
    let mut unknown: Vec<String> = unstated.iter().map(|value| named_pointer(&value.pointer)).collect();
    unknown.dedup();
    let unknown = unknown.join(" and ");
    let hint = format!(
        "nothing was done. Call again with a value from there{leave} or answer: I did nothing, because I do not know {unknown}"
    );
    Violation::new(code, message.join("; ")).hint(hint)
}

/// The violation of a call where two in a row were refused.
fn only_an_answer() -> Violation {
    let message = "expected an answer: two calls in a row were refused";
    let violation = Violation::new(Code::UnstatedValue, message);
    violation.hint("answer without a tool; if you cannot do it without one, say so")
}
