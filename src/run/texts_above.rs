//! The texts of the runs above a child run. A model has written its task, and had them when it did: a value of the task
//! keeps the origin that it had there.

use super::event::Start;
use super::machine::RunMachine;
use super::record;
use super::said::Words;
use super::traced_texts::arguments_of;
use crate::origin::{Echo, Index, Kind, Media, Origin, Source};
use crate::protocol::Role;
use crate::ticket::{Outcome, Ticket, TicketId, TicketKind};
use crate::tool::ToolKind;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A text, and what it is.
pub(super) type Text = (Source, Arc<str>);

/// The texts of a run as of the start of a run below it, and those of the runs above.
#[derive(Debug)]
pub(super) struct TextsAbove {
    texts: Vec<Text>,
    /// Whether some are missing.
    is_lost: bool,
    media: Media,
    above: Option<Arc<TextsAbove>>,
    /// How many messages and results there were.
    read: (usize, usize),
}

impl TextsAbove {
    /// Adds them to an index, those of the nearest run last. Places are named from there: `../T3`.
    pub(super) fn add_to(&self, index: &mut Index, to: &str) {
        if let Some(above) = &self.above {
            above.add_to(index, &format!("{to}../"));
        }
        for (source, text) in &self.texts {
            let place = format!("{to}../{}", source.place);
            let place = if source.place.is_empty() { place.trim_end_matches('/') } else { &place };
            index.add(Source { place: place.into(), ..source.clone() }, Arc::clone(text));
        }
        if self.is_lost {
            index.lose();
        }
    }

    /// Whether an image or file is among them.
    pub(super) fn media(&self) -> Media {
        match &self.above {
            Some(above) => self.media.or(above.media()),
            None => self.media,
        }
    }
}

impl RunMachine {
    /// Gives a child run the texts of the run above it, if that run's model has written its task. The code of a tool may
    /// have made the task from anything.
    pub(super) fn read_above(&mut self, above: &mut Self) {
        let call = self.start.parent.as_ref().map(|parent| parent.ticket);
        let call = call.and_then(|call| above.state.calls.tickets.get(call));
        if call.is_some_and(|call| call.kind == TicketKind::Task) {
            self.above = Some(above.texts_below());
        }
    }

    /// Its texts for the runs below it. Runs that start with the same texts share them.
    fn texts_below(&mut self) -> Arc<TextsAbove> {
        let conversation = &self.state.conversation;
        let read = (conversation.words.len(), self.state.calls.tickets.ended().len());
        if let Some(known) = self.below.as_ref().filter(|known| known.read == read) {
            return Arc::clone(known);
        }
        let mut texts = self.texts_at_start();
        texts.extend(self.words_since(0));
        for id in self.state.calls.tickets.ended() {
            if let Some(ticket) = self.state.calls.tickets.get(*id) {
                // A value that was not traced keeps no origin: it has its place elsewhere.
                let echo = || {
                    let arguments = ticket.arguments.as_deref().and_then(arguments_of);
                    arguments.map_or_else(Vec::new, |arguments| self.echo_of(ticket, arguments, &ticket.origins))
                };
                texts.extend(self.result_text(ticket, &self.traced.answers, echo));
            }
        }
        let is_lost = self.has_lost_texts();
        let above = self.above.clone();
        let below = Arc::new(TextsAbove { texts, is_lost, media: self.own_media(), above, read });
        self.below = Some(Arc::clone(&below));
        below
    }

    /// Whether texts are missing that its values may come from.
    pub(super) fn has_lost_texts(&self) -> bool {
        self.state.conversation.words_lost || (self.start.parent.is_some() && self.above.is_none())
    }

    /// What stood there before the first reply, but the example.
    pub(super) fn texts_at_start(&self) -> Vec<Text> {
        let start = &self.start;
        // The task of a child run is a model's words.
        let task = if start.parent.is_some() { Kind::Model } else { Kind::Task };
        let mut texts = vec![(Source::new(task, ""), Arc::clone(&start.task))];
        let is_handed_over = record::is_handed_over(&start.messages);
        for (position, message) in start.messages.iter().enumerate() {
            if is_handed_over && !start.untrusted {
                texts.extend(record::texts_of(message, &format!("M{}", position + 1), self.has_replied(position)));
                continue;
            }
            // The task replies to the last answer.
            if matches!(message.role, Role::User | Role::Assistant) {
                let kind = if start.untrusted { Kind::Result } else { Kind::User };
                let place = format!("M{}", position + 1);
                let source = Source { untrusted: start.untrusted, ..Source::new(kind, &place) };
                texts.push((source, Arc::clone(&message.content)));
            }
        }
        if let Some(instructions) = &self.setup.instructions {
            texts.push((Source::new(Kind::Instructions, ""), Arc::clone(instructions)));
        }
        texts
    }

    /// Whether the user has replied to a message of a conversation that was handed over. The task is new, or the last
    /// words of the user there.
    fn has_replied(&self, position: usize) -> bool {
        let Start { messages, task, .. } = &self.start;
        let later = messages.get(position + 1..).unwrap_or_default();
        let last = messages.iter().rev().find(|message| message.role == Role::User);
        later.iter().any(|message| message.role == Role::User)
            || !last.is_some_and(|message| message.content.contains(&**task))
    }

    /// What a run that has answered, or ended without, leaves to the run above: the texts in which its answer is looked up.
    pub fn texts_of_answer(&mut self) -> Arc<Index> {
        let below = self.texts_below();
        let mut index = Index::new();
        for (source, text) in &below.texts {
            index.add(source.clone(), Arc::clone(text));
        }
        // What it has seen in an image or file is not known.
        if self.state.conversation.words_lost || below.media != Media::Absent {
            index.lose();
        }
        Arc::new(index)
    }

    /// The result of a call, if it has one. A model has written that of a run below.
    pub(super) fn result_text(
        &self,
        ticket: &Ticket,
        answers: &BTreeMap<TicketId, Arc<Index>>,
        echo: impl FnOnce() -> Vec<Echo>,
    ) -> Option<Text> {
        // A person who denies a call may repeat its values.
        let outcome = ticket.outcome.as_ref().filter(|outcome| !matches!(outcome, Outcome::Denied { .. }))?;
        let is_wait = self.setup.tools.get(&ticket.tool).is_some_and(|spec| spec.kind == ToolKind::Wait);
        // Those that it has waited for have results of their own, and so has what it shows a part of.
        if is_wait || ticket.reads.is_some() {
            return None;
        }
        let place = ticket.id.to_string();
        let source = if ticket.kind == TicketKind::Task {
            let below = answers.get(&ticket.id).map_or_else(lost, Arc::clone);
            Source { below: Some(below), ..Source::new(Kind::Model, &place) }
        } else {
            Source { echo: echo(), ..Source::new(Kind::Result, &place) }
        };
        Some((Source { untrusted: ticket.untrusted, ..source }, Arc::from(outcome.text())))
    }

    /// The values of a call with their origins.
    pub(super) fn echo_of(
        &self,
        ticket: &Ticket,
        arguments: Map<String, Json>,
        origins: &[(String, Origin)],
    ) -> Vec<Echo> {
        let parameters = self.setup.tools.get(&ticket.tool).map_or(&Json::Null, |spec| &spec.parameters);
        Echo::of_call(&Json::Object(arguments), origins, parameters)
    }

    /// The user's words after the first `known` ones.
    pub(super) fn words_since(&self, known: usize) -> impl Iterator<Item = Text> {
        let mut said = 0;
        let named = self.state.conversation.words.iter().map(move |words| match words {
            Words::Said(text) => {
                said += 1;
                (Source::new(Kind::User, &said.to_string()), Arc::clone(text))
            }
            Words::Answered([text]) => (Source::new(Kind::User, &format!("A{}", said + 1)), Arc::clone(text)),
        });
        named.skip(known)
    }

    /// Whether an image or file is in its conversation.
    pub(super) fn own_media(&self) -> Media {
        if !self.state.conversation.has_parts {
            return Media::Absent;
        }
        let mut with_parts = self.state.calls.tickets.iter().filter(|ticket| !ticket.parts.is_empty());
        if with_parts.any(|ticket| ticket.untrusted) { Media::Untrusted } else { Media::Trusted }
    }
}

/// The texts of a run that are not at hand.
fn lost() -> Arc<Index> {
    let mut index = Index::new();
    index.lose();
    Arc::new(index)
}

/// Where a text of a run stands, in words.
pub(super) fn place_in_words(place: &str) -> String {
    let own = place.trim_start_matches("../");
    let above = match place.len() - own.len() {
        0 => "",
        3 => " of the run above",
        _ => " of a run above",
    };
    match own.rsplit_once('/') {
        Some((call, text)) => format!("{text} of the run of {}{above}", call.rsplit('/').next().unwrap_or(call)),
        None => format!("{own}{above}"),
    }
}
