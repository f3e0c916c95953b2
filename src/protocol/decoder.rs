//! The push decoder: chunks of a reply in, one move or one violation out.

use super::{Move, Protocol, TextSpans, ToolCall, Violation, around, untagged_call};
use crate::reply::{ReadLimits, Repair, RepairPolicy, Span};
use crate::tool::ToolSet;
use serde::{Deserialize, Serialize};

/// How the client says that a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model ended it, or a stop sequence did.
    #[default]
    Stop,
    /// The token limit cut it.
    Length,
    /// The client does not say, or in words that are not known: it may be whole, or a part. A move that is complete is
    /// read; what would have to be completed at its end is refused as cut.
    Unknown,
}

/// How a reply is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadOptions {
    /// What is done where a repair is possible.
    pub repairs: RepairPolicy,
    /// The chat template has already opened `<think>`.
    pub think_prefilled: bool,
    /// The whole reply is at hand: its fields are not published as deltas.
    #[serde(skip)]
    pub whole: bool,
    /// Bounds on the reply; a run has them among its own.
    #[serde(skip)]
    pub limits: ReadLimits,
}

/// What is known of a reply so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Nothing is settled yet.
    Open,
    /// The first whole move ends at this byte. A stream may be cut there once what follows is known not to belong to it:
    /// [`Decoder::settled`].
    Complete(usize),
    /// It can no longer become valid: a stream may be stopped. `finish` gives the violation.
    Doomed,
}

/// A piece of news from a reply that is still arriving. Texts only ever grow: deltas of one kind join to the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// More of the thoughts.
    Thoughts(String),
    /// More of the reasoning in front of a reply whose protocol has thoughts of its own (ticket, react).
    Reasoning(String),
    /// More of the text before a tool block, which may yet turn out to be a direct answer (chatty).
    Text(String),
    /// More of the final answer.
    Answer(String),
    /// More of a final answer that is no text, as the raw text of its JSON (ticket).
    Value(String),
    /// A call's own id is complete, or was given to it (chatty).
    CallId {
        /// Position of the call in the reply, from 0.
        call: usize,
        /// The id.
        id: String,
    },
    /// A call's tool name or route is complete.
    Tool {
        /// Position of the call in the reply, from 0.
        call: usize,
        /// The name or route.
        name: String,
        /// Where it stands.
        span: Span,
    },
    /// More of a call's arguments, as the raw text of their JSON.
    Arguments {
        /// Position of the call in the reply, from 0.
        call: usize,
        /// More of the text.
        text: String,
    },
    /// A call of the block is complete: `Decoder::calls` has it (chatty).
    CallReady {
        /// Position of the call in the reply, from 0.
        call: usize,
    },
    /// The id of the ticket to await or load is complete.
    TicketId {
        /// The id.
        id: String,
        /// Where it stands.
        span: Span,
    },
}

/// One reply, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The whole text that was read.
    pub raw: String,
    /// Scratch notes, the react `thought`, or what a chatty reply has in reasoning tags; `None` where there are none.
    pub thoughts: Option<String>,
    /// What stands in reasoning tags in front of a reply whose protocol has thoughts of its own (ticket, react).
    pub reasoning: Option<String>,
    /// The text before a tool block (chatty); `None` where there is none.
    pub narration: Option<String>,
    /// The places of narration, thoughts and answer.
    pub spans: TextSpans,
    /// The move, or what is wrong.
    pub outcome: Result<Move, Violation>,
    /// What was repaired, in the order of the text.
    pub repairs: Vec<Repair>,
    /// Text that was read and dropped: an invented observation, prose around the payload.
    pub discarded: Vec<Span>,
    /// The text around a move that is no section of the protocol, no reasoning and no copy, in order. Whether it may be a
    /// part of the move depends on the tools as well: `around::judged` looks at them.
    pub around: Vec<Span>,
}

impl Reply {
    /// The reply as a violation: nothing of it was repaired, dropped or told.
    pub(crate) fn refused(self, violation: Violation) -> Self {
        let (repairs, discarded, around) = (Vec::new(), Vec::new(), Vec::new());
        let spans = self.spans.only_thoughts();
        Self { outcome: Err(violation), repairs, discarded, around, narration: None, spans, ..self }
    }
}

/// Reads one reply of one protocol, chunk by chunk. Each byte is seen once.
pub trait Decoder: Send {
    /// Takes the next bytes, which may end inside a character, and appends what is new to `deltas`.
    fn push(&mut self, chunk: &[u8], deltas: &mut Vec<Delta>) -> Status;

    /// The calls that are complete so far (chatty).
    fn calls(&self) -> &[ToolCall] {
        &[]
    }

    /// Where a stream may be cut, once nothing that may still come can change the move before that place. Only where
    /// nothing but blanks, reasoning and the protocol's own sections stand before the move: else what follows decides
    /// whether it was meant.
    fn settled(&self) -> Option<usize>;

    /// Whether nothing but blanks and reasoning stands before the calls, so that they may start early (chatty).
    fn stands_first(&self) -> bool {
        false
    }

    /// Closes the reply. A value that is still open is `truncated`; `Length` says so first, and `Unknown` refuses what was
    /// completed at the end.
    fn finish(self: Box<Self>, reason: FinishReason) -> Reply;
}

/// Reads one whole reply: one push and a finish, without deltas of its fields.
pub fn read_whole(protocol: &dyn Protocol, options: ReadOptions, text: &str, reason: FinishReason) -> Reply {
    let mut decoder = protocol.decoder(ReadOptions { whole: true, ..options });
    decoder.push(text.as_bytes(), &mut Vec::new());
    decoder.finish(reason)
}

/// The reply as a run with these tools takes it: its text, or the text around its calls, may be a call of one of them or a
/// part of one.
pub fn beside_tools(protocol: &dyn Protocol, tools: &ToolSet, reply: Reply) -> Reply {
    around::judged(protocol, tools, untagged_call::checked(protocol, tools, reply))
}
