//! Where the texts for people stand in a reply: what the model says beside its calls, what it thinks, what it answers.

use super::decoder::read_whole;
use super::{FinishReason, Move, Protocol};
use crate::reply::Span;
use serde::{Deserialize, Serialize};

/// The texts for people in a reply, as ranges of bytes in its text. A reply of one message may have several of each: text
/// between two sections of reasoning is one, and so is each of these sections.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TextSpans {
    /// What it says beside its move (chatty).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub narration: Vec<Span>,
    /// Its thoughts. Reasoning in front of a reply whose protocol has thoughts of its own is not among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thoughts: Vec<Span>,
    /// Its final answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answer: Vec<Span>,
}

/// The texts of a reply as people should see them; `None` where there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ShownTexts {
    /// What it says beside its move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narration: Option<String>,
    /// Its thoughts, each section in a paragraph of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thoughts: Option<String>,
    /// Its final answer; one that is no text is the text of its JSON.
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
            narration: joined(&self.narration, ""),
            thoughts: joined(&self.thoughts, "\n"),
            answer: joined(&self.answer, ""),
        }
    }

    /// Only the thoughts.
    pub(crate) fn only_thoughts(self) -> Self {
        Self { thoughts: self.thoughts, ..Self::default() }
    }
}

/// What a JSON string says; `None` if the text is none.
pub(crate) fn string(text: &str) -> Option<String> {
    if text.starts_with('"') { serde_json::from_str(text).ok() } else { None }
}

/// What a span says as the reply is read: its JSON may be one that only a repair makes readable.
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
