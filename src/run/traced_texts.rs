//! The texts of a run in which the values of its calls are looked up. They are read from its state, when a call is first
//! judged, so shortening, compaction and resuming change nothing.

use super::event::Start;
use super::machine::RunMachine;
use super::plan::Planned;
use crate::origin::{Clock, Echo, Index, Judging, Kind, Media, Origin, Reference, Source, trace};
use crate::protocol::Role;
use crate::reply::Value;
use crate::ticket::{Ticket, TicketId};
use crate::tool::{Level, ToolSpec};
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Origins by the JSON pointers of the arguments.
pub type Origins = Vec<(String, Origin)>;

/// The index of a run, and what it has of the run.
#[derive(Debug, Default)]
pub(super) struct TracedTexts {
    index: Option<Index>,
    words: usize,
    results: BTreeSet<TicketId>,
}

impl RunMachine {
    /// Where each value of a call comes from, as far as the run has come.
    pub(super) fn trace_call(&mut self, call: &Planned, spec: &ToolSpec, now: f64) -> Origins {
        let Some(arguments) = as_object(&call.arguments) else { return Vec::new() };
        let references = call.references.iter().map(|(pointer, ticket)| {
            let untrusted = self.state.calls.tickets.get(*ticket).is_some_and(|ticket| ticket.untrusted);
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
        if !self.state.conversation.has_parts {
            return Media::Absent;
        }
        let mut with_parts = self.state.calls.tickets.iter().filter(|ticket| !ticket.parts.is_empty());
        if with_parts.any(|ticket| ticket.untrusted) { Media::Untrusted } else { Media::Trusted }
    }

    /// Adds what has come since the last call that was judged.
    fn read_texts(&mut self, now: f64) {
        let mut traced = std::mem::take(&mut self.traced);
        let index = traced.index.get_or_insert_with(|| self.begun_index());
        for (position, words) in self.state.conversation.words.iter().enumerate().skip(traced.words) {
            index.add(Source::new(Kind::User, &(position + 1).to_string()), Arc::clone(words));
        }
        traced.words = self.state.conversation.words.len();
        for ticket in self.state.calls.tickets.iter() {
            if let Some(outcome) = &ticket.outcome
                && traced.results.insert(ticket.id)
            {
                let echo = self.echo(index, ticket, now);
                let source = Source {
                    kind: Kind::Result,
                    place: ticket.id.to_string().into(),
                    untrusted: ticket.untrusted,
                    echo,
                };
                index.add(source, Arc::from(outcome.text()));
            }
        }
        self.traced = traced;
    }

    /// An index of what stood there before the first reply.
    fn begun_index(&self) -> Index {
        let mut index = Index::new();
        let Start { task, messages, parent, untrusted, .. } = &self.start;
        if parent.is_some() {
            // A model has written the task: its words are no origin, and the texts that it had are not here.
            index.lose();
        } else {
            index.add(Source::new(Kind::Task, ""), Arc::clone(task));
        }
        for (position, message) in messages.iter().enumerate() {
            let is_answered = || messages.iter().skip(position).any(|later| later.role == Role::User);
            if message.role == Role::User || (message.role == Role::Assistant && is_answered()) {
                let kind = if *untrusted { Kind::Result } else { Kind::User };
                let source = Source { untrusted: *untrusted, ..Source::new(kind, &format!("M{}", position + 1)) };
                index.add(source, Arc::clone(&message.content));
            }
        }
        if let Some(instructions) = &self.setup.instructions {
            index.add(Source::new(Kind::Instructions, ""), Arc::clone(instructions));
        }
        for example in self.setup.examples.iter() {
            index.add(Source::new(Kind::Example, ""), Arc::clone(&example.content));
        }
        if self.state.conversation.words_lost {
            index.lose();
        }
        index
    }

    /// What a call has said itself: its result does not vouch for it.
    fn echo(&self, index: &Index, ticket: &Ticket, now: f64) -> Vec<Echo> {
        let Some(arguments) = ticket.arguments.as_deref().and_then(as_object) else { return Vec::new() };
        let found;
        let origins = match self.setup.tools.get(&ticket.tool) {
            Some(spec) if ticket.origins.is_empty() => {
                found = trace(index, &arguments, &spec.parameters, &self.judging(spec, now));
                &found
            }
            _ => &*ticket.origins,
        };
        let known: BTreeMap<&str, &Origin> = origins.iter().map(|(pointer, origin)| (&**pointer, origin)).collect();
        let mut echo = Vec::new();
        let mut add = |pointer: &str, value: &Json| {
            let origin = known.get(pointer).map(|origin| Origin::clone(origin));
            echo.push(Echo { value: value.clone(), origin });
        };
        leaves(&Json::Object(arguments), &mut String::new(), &mut add);
        echo
    }
}

/// The arguments as the index reads them.
fn as_object(arguments: &Value) -> Option<Map<String, Json>> {
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
