//! Events as they are shown to programs: with their texts, and without what only the model's service reads.

use super::event::{Event, Record};
use super::snapshot::Snapshot;
use super::state::RunState;
use crate::protocol::{Move, Protocol, Role, ShownTexts};
use crate::reply::Span;
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;

/// The line of an event with narration, thoughts and answer.
#[derive(Serialize)]
struct EventLine<'a> {
    seq: u64,
    at: f64,
    event: &'a Event,
    #[serde(skip_serializing_if = "Option::is_none")]
    texts: Option<ShownTexts>,
}

/// Writes the event at a position of these records as a line with narration, thoughts and answer.
///
/// # Errors
/// The record has no JSON form, which none is without.
pub fn line_with_texts(
    records: &[Arc<Record>],
    position: usize,
    protocol: &dyn Protocol,
) -> serde_json::Result<Option<String>> {
    let Some(record) = records.get(position) else { return Ok(None) };
    let before = records.get(..position).unwrap_or_default();
    let event = without_private(&record.event, before, protocol)?;
    let texts = record
        .event
        .spans()
        .filter(|spans| !spans.is_empty())
        .map(|spans| last_reply(before).map_or_else(ShownTexts::default, |reply| spans.shown(protocol, reply)));
    serde_json::to_string(&EventLine { seq: record.seq, at: record.at, event: &event, texts }).map(Some)
}

fn last_reply(records: &[Arc<Record>]) -> Option<&str> {
    records.iter().rev().find_map(|record| match &record.event {
        Event::ModelReplied { text, .. } => Some(&**text),
        Event::Compacted { state, .. } => state.conversation.messages.last().map(|message| &*message.content),
        _ => None,
    })
}

/// The event without the private parts of replies. Its places are those in the text that is left.
fn without_private<'a>(
    event: &'a Event,
    before: &[Arc<Record>],
    protocol: &dyn Protocol,
) -> serde_json::Result<Cow<'a, Event>> {
    if !protocol.pairs_results() {
        return Ok(Cow::Borrowed(event));
    }
    let cuts = |reply: &str| Cuts(protocol.private_parts(reply));
    let of_reply = || last_reply(before).map(cuts).filter(|cuts| !cuts.0.is_empty());
    let mut event = Cow::Borrowed(event);
    match &*event {
        Event::ModelReplied { text, .. } => {
            let cuts = cuts(text);
            if !cuts.0.is_empty()
                && let Event::ModelReplied { text, repairs, .. } = event.to_mut()
            {
                *text = cuts.without(text).into();
                for repair in repairs.iter_mut() {
                    cuts.shift(&mut repair.span);
                }
            }
        }
        Event::Compacted { state, .. } => {
            let mut shown = RunState::clone(state);
            for message in shown.conversation.messages.iter_mut().filter(|one| one.role == Role::Assistant) {
                message.content = cuts(&message.content).without(&message.content).into();
            }
            if let Event::Compacted { state, .. } = event.to_mut() {
                **state = Snapshot::new(shown)?;
            }
        }
        Event::Violated { .. } => {
            if let (Some(cuts), Event::Violated { violation, .. }) = (of_reply(), event.to_mut()) {
                let related = violation.related.iter_mut().map(|related| &mut related.span);
                for span in violation.span.iter_mut().chain(related) {
                    cuts.shift(span);
                }
            }
        }
        Event::Moved { moved: Move::Call { .. }, .. } => {
            if let (Some(cuts), Event::Moved { moved: Move::Call { calls }, .. }) = (of_reply(), event.to_mut()) {
                for call in calls {
                    for span in [&mut call.span, &mut call.tool_span, &mut call.arguments_span] {
                        cuts.shift(span);
                    }
                }
            }
        }
        _ => {}
    }
    Ok(event)
}

/// Parts of a reply that are left out, in order.
struct Cuts(Vec<Span>);

impl Cuts {
    fn without(&self, text: &str) -> String {
        let mut left = String::with_capacity(text.len());
        let mut start = 0;
        for cut in &self.0 {
            left.push_str(text.get(start..cut.start).unwrap_or_default());
            start = cut.end;
        }
        left.push_str(text.get(start..).unwrap_or_default());
        left
    }

    fn shift(&self, span: &mut Span) {
        let left = |position: usize| {
            let cut = self.0.iter().map(|cut| position.min(cut.end).saturating_sub(cut.start));
            position - cut.sum::<usize>()
        };
        *span = Span::new(left(span.start), left(span.end));
    }
}
