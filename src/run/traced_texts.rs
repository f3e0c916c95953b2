//! The texts of a run in which the values of its calls are looked up. They are read from its state, when a call is first
//! judged, so shortening, compaction and resuming change nothing.

use super::machine::RunMachine;
use super::opened::Opened;
use super::plan::{Planned, References};
use super::reference;
use super::texts_above::result_text;
use crate::origin::{Clock, Echo, Index, Judging, Kind, Media, Origin, Reference, Source, trace};
use crate::reply::Value;
use crate::ticket::{Ticket, TicketId};
use crate::tool::{Level, ToolKind, ToolSpec};
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Origins by the JSON pointers of the arguments.
pub type Origins = Vec<(String, Origin)>;

/// The index of a run, and what it has of the run.
#[derive(Debug, Default)]
pub(super) struct TracedTexts {
    /// In a box, since most runs have none.
    index: Option<Box<Index>>,
    words: usize,
    results: BTreeSet<TicketId>,
    /// The calls of the reply that is judged whose results will be untrusted.
    pub(super) opening: BTreeSet<TicketId>,
}

impl RunMachine {
    /// Where each value of a call comes from, as far as the run has come.
    pub(super) fn trace_call(&mut self, call: &Planned, spec: &ToolSpec, now: f64) -> Origins {
        self.trace_arguments(&call.arguments, &call.references, spec, now)
    }

    /// The same for a call that stands in the log.
    pub(super) fn trace_opened(&mut self, opened: &Opened, now: f64) -> Origins {
        let tools = Arc::clone(&self.setup.tools);
        let Some(spec) = tools.get(&opened.tool).filter(|spec| matches!(spec.kind, ToolKind::Function)) else {
            return Vec::new();
        };
        let tickets = &self.state.calls.tickets;
        let named = |name: &str| {
            let needs = opened.needs.iter();
            needs.copied().find(|need| tickets.get(*need).and_then(|call| call.call_id.as_deref()) == Some(name))
        };
        let mentions = reference::mentions(&opened.arguments, false).into_iter();
        let references: References =
            mentions.filter_map(|mention| Some((mention.pointer, named(mention.name)?))).collect();
        self.trace_arguments(&opened.arguments, &references, spec, now)
    }

    fn trace_arguments(&mut self, arguments: &Value, references: &References, spec: &ToolSpec, now: f64) -> Origins {
        let Some(arguments) = arguments_of(arguments) else { return Vec::new() };
        let references = references.iter().map(|(pointer, ticket)| {
            let known = self.state.calls.tickets.get(*ticket);
            let untrusted = known.map_or_else(|| self.traced.opening.contains(ticket), |ticket| ticket.untrusted);
            (pointer.clone(), Reference { place: ticket.to_string().into(), untrusted })
        });
        let judging = Judging { references: references.collect(), ..self.judging(spec, now) };
        self.read_texts(now);
        let Some(index) = &self.traced.index else { return Vec::new() };
        let mut origins = trace(index, &arguments, &spec.parameters, &judging);
        // As a log has them.
        origins.sort_by(|(one, _), (other, _)| one.cmp(other));
        origins
    }

    /// Whether a text stands in a message of the user or in a result.
    pub(super) fn is_stated_text(&mut self, text: &str, now: f64) -> bool {
        self.read_texts(now);
        let Some(index) = &self.traced.index else { return true };
        let arguments = Map::from_iter([("value".to_owned(), Json::from(text))]);
        let found = trace(index, &arguments, &Json::Null, &Judging::default());
        found.iter().all(|(_, origin)| origin.is_stated())
    }

    fn judging(&self, spec: &ToolSpec, now: f64) -> Judging {
        let names = spec.parameters.get("properties").and_then(Json::as_object).into_iter().flat_map(Map::keys);
        let strict = names.filter(|name| spec.level(name, self.setup.values) >= Level::Strict);
        Judging {
            description: spec.description.clone(),
            strict: strict.cloned().collect(),
            clock: Clock::of_unix(now),
            media: self.media(),
            ..Judging::default()
        }
    }

    fn media(&self) -> Media {
        let own = self.own_media();
        self.above.as_ref().map_or(own, |above| own.or(above.media()))
    }

    /// Adds what has come since the last call that was judged.
    fn read_texts(&mut self, now: f64) {
        let mut traced = std::mem::take(&mut self.traced);
        let index = traced.index.get_or_insert_with(|| Box::new(self.begun_index()));
        for (source, words) in self.words_since(traced.words) {
            index.add(source, words);
        }
        traced.words = self.state.conversation.words.len();
        for ticket in self.state.calls.tickets.iter() {
            if ticket.outcome.is_some() && traced.results.insert(ticket.id) {
                let echo = self.echo(index, ticket, now);
                if let Some((source, text)) = result_text(ticket, echo) {
                    index.add(source, text);
                }
            }
        }
        self.traced = traced;
    }

    /// An index of what stood there before the first reply.
    fn begun_index(&self) -> Index {
        let mut index = Index::new();
        if let Some(above) = &self.above {
            above.add_to(&mut index, "");
        }
        for (source, text) in self.texts_at_start() {
            index.add(source, text);
        }
        for example in self.setup.examples.iter() {
            index.add(Source::new(Kind::Example, ""), Arc::clone(&example.content));
        }
        if self.has_lost_texts() {
            index.lose();
        }
        index
    }

    /// What a call has said itself: its result does not vouch for it.
    fn echo(&self, index: &Index, ticket: &Ticket, now: f64) -> Vec<Echo> {
        let Some(arguments) = ticket.arguments.as_deref().and_then(arguments_of) else { return Vec::new() };
        let found;
        let origins = match self.setup.tools.get(&ticket.tool) {
            Some(spec) if ticket.origins.is_empty() => {
                found = trace(index, &arguments, &spec.parameters, &self.judging(spec, now));
                &found
            }
            _ => &*ticket.origins,
        };
        echo_of(arguments, origins)
    }
}

/// The values of a call with their origins.
pub(super) fn echo_of(arguments: Map<String, Json>, origins: &[(String, Origin)]) -> Vec<Echo> {
    let known: BTreeMap<&str, &Origin> = origins.iter().map(|(pointer, origin)| (&**pointer, origin)).collect();
    let mut echo = Vec::new();
    let mut add = |pointer: &str, value: &Json| {
        let origin = known.get(pointer).map(|origin| Origin::clone(origin));
        echo.push(Echo { value: value.clone(), origin });
    };
    leaves(&Json::Object(arguments), &mut String::new(), &mut add);
    echo
}

/// The arguments as the index reads them.
pub(super) fn arguments_of(arguments: &Value) -> Option<Map<String, Json>> {
    serde_json::from_str(&arguments.to_json()).ok()
}

/// Visits each value that has no others in it, with its JSON pointer.
fn leaves(value: &Json, pointer: &mut String, visit: &mut impl FnMut(&str, &Json)) {
    let length = pointer.len();
    let mut inside = |name: &str, value: &Json, pointer: &mut String| {
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        leaves(value, pointer, visit);
        pointer.truncate(length);
    };
    match value {
        Json::Object(fields) => fields.iter().for_each(|(name, value)| inside(name, value, pointer)),
        Json::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| inside(&at.to_string(), value, pointer));
        }
        _ => visit(pointer, value),
    }
}
