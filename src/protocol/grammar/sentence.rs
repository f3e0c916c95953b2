//! The end of an answer that has reached its bound: it ends with its sentence.

use super::chars::CharSet;
use super::rules::Node;

/// What a sentence ends with.
const STOPS: &str = ".!?…。！？";
/// Stops in a row.
const MOST_STOPS: u32 = 3;

/// How an answer goes on and ends.
pub(in crate::protocol) struct SentenceEnd {
    /// A piece of the rest of the sentence, mostly a character. A stop and what follows it without a blank are one piece,
    /// such as the point of `3.14`: a sentence ends there only if the model ends the answer.
    pub(in crate::protocol) piece: Node,
    /// The end of the sentence, or of its line.
    pub(in crate::protocol) end: Node,
}

impl SentenceEnd {
    /// Of text that is made of `any`, and of `more` beside it.
    pub(in crate::protocol) fn new(any: &CharSet, more: Option<Node>) -> Self {
        let (stops, breaks) = (CharSet::of(STOPS).intersect(any), CharSet::of("\n\r"));
        let stop = || Node::repeat(Node::Class(stops.clone()), 1, Some(MOST_STOPS));
        let inside = any.minus(&stops).minus(&breaks);
        let follows = Node::Class(inside.minus(&CharSet::blanks()));
        let pieces = [Node::Class(inside), Node::sequence([stop(), follows])].into_iter().chain(more);
        let ends = [stop(), Node::literal("\n")];
        Self {
            piece: Node::choice(pieces).unwrap_or_else(Node::empty),
            end: Node::choice(ends).unwrap_or_else(Node::empty),
        }
    }
}
