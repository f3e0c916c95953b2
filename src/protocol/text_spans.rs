//! The places of narration, thoughts and answer in a reply.

use super::decoder::read_whole;
use super::{FinishReason, Move, Protocol};
use crate::reply::Span;
use serde::{Deserialize, Serialize};

/// The texts for people in a reply, as ranges of bytes. Each kind can have several ranges: two sections of reasoning are
/// two ranges of thoughts, and cut the narration around them into pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TextSpans {
    /// Text to the user, outside the tool blocks (chatty).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub narration: Vec<Span>,
    /// Thoughts, without the reasoning in front of a react or ticket reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thoughts: Vec<Span>,
    /// The final answer of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answer: Vec<Span>,
}

/// The texts of a reply as people should see them; `None` for an empty text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ShownTexts {
    /// Text to the user, outside the tool blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narration: Option<String>,
    /// The thoughts; each section begins a new line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thoughts: Option<String>,
    /// The final answer; JSON text for any value but a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl TextSpans {
    /// Whether there is no text for people.
    pub fn is_empty(&self) -> bool {
        self.narration.is_empty() && self.thoughts.is_empty() && self.answer.is_empty()
    }

    /// The texts, as the deltas of the reply join to them.
    pub fn shown(&self, protocol: &dyn Protocol, reply: &str) -> ShownTexts {
        let joined = |spans: &[Span], between: &str| {
            let texts: Vec<_> = spans.iter().map(|span| protocol.shown(reply, *span)).collect();
            Some(texts.join(between)).filter(|text| !text.is_empty())
        };
        ShownTexts {
            narration: joined(&self.narration, protocol.between_texts()),
            thoughts: joined(&self.thoughts, "\n"),
            answer: joined(&self.answer, protocol.between_texts()),
        }
    }

    /// Drops narration and answer, for a refused reply.
    pub(crate) fn only_thoughts(self) -> Self {
        Self { thoughts: self.thoughts, ..Self::default() }
    }
}

/// Decodes a JSON string; `None` if the text is no JSON string.
pub(crate) fn string(text: &str) -> Option<String> {
    if text.starts_with('"') { serde_json::from_str(text).ok() } else { None }
}

/// Decodes a span by reading the whole reply again, because its JSON may need a repair.
pub(crate) fn read_again(protocol: &dyn Protocol, reply: &str, span: Span) -> Option<String> {
    let read = read_whole(protocol, protocol.read_options(), reply, FinishReason::Stop);
    if read.spans.thoughts == [span] {
        return read.thoughts;
    }
    match read.outcome {
        Ok(Move::Finish { value, .. }) if read.spans.answer == [span] => {
            value.as_str().map(str::to_owned).or_else(|| string(span.of(reply)))
        }
        _ => None,
    }
}

/// The part `kept` of the text that these spans join to.
pub(crate) fn clipped(spans: &[Span], kept: Span) -> Vec<Span> {
    let mut at = 0;
    let mut clipped = Vec::new();
    for span in spans {
        let length = span.end - span.start;
        let (from, until) = (kept.start.clamp(at, at + length) - at, kept.end.clamp(at, at + length) - at);
        if from < until {
            clipped.push(Span::new(span.start + from, span.start + until));
        }
        at += length;
    }
    clipped
}
