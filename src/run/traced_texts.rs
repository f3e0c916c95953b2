//! The texts of a run in which the values of its calls are looked up. They are read from its state, when a call is first
//! judged, so shortening, compaction and resuming change nothing.

use super::machine::RunMachine;
use super::opened::Opened;
use super::plan::{Planned, References};
use super::reference;
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
    /// The texts of runs below that have answered, by their calls.
    pub(super) answers: BTreeMap<TicketId, Arc<Index>>,
}

impl RunMachine {
    /// Where each value of a call comes from, as far as the run has come.
    ///
    /// `opening` has those calls of its reply whose results will be untrusted.
    pub(super) fn trace_call(
        &mut self,
        call: &Planned,
        spec: &ToolSpec,
        opening: &BTreeSet<TicketId>,
        now: f64,
    ) -> Origins {
        self.trace_arguments(&call.arguments, &call.references, spec, opening, now)
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
        self.trace_arguments(&opened.arguments, &references, spec, &BTreeSet::new(), now)
    }

    fn trace_arguments(
        &mut self,
        arguments: &Value,
        references: &References,
        spec: &ToolSpec,
        opening: &BTreeSet<TicketId>,
        now: f64,
    ) -> Origins {
        let Some(arguments) = arguments_of(arguments) else { return Vec::new() };
        let references = references.iter().map(|(pointer, ticket)| {
            let known = self.state.calls.tickets.get(*ticket);
            let untrusted = known.map_or_else(|| opening.contains(ticket), |ticket| ticket.untrusted);
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
                let echo = || self.echo(index, ticket, now);
                if let Some((source, text)) = self.result_text(ticket, &traced.answers, echo) {
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
        self.echo_of(ticket, arguments, origins)
    }
}

/// The arguments as the index reads them. A number that doubles can't hold is the text of its digits.
pub(super) fn arguments_of(arguments: &Value) -> Option<Map<String, Json>> {
    match json_of(arguments) {
        Json::Object(fields) => Some(fields),
        _ => None,
    }
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => Json::from(*flag),
        Value::String(text) => Json::from(text.as_str()),
        Value::Array(items) => items.iter().map(json_of).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.to_owned(), json_of(value))).collect(),
        Value::Number(number) => {
            let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
            let text = number.as_str();
            let read = serde_json::from_str::<serde_json::Number>(text).ok();
            // Doubles have 15 decimal digits at least.
            let is_exact =
                |number: &serde_json::Number| !number.is_f64() || text.contains(['e', 'E']) || digits(text) <= 15;
            read.filter(is_exact).map_or_else(|| Json::from(text), Json::Number)
        }
    }
}
