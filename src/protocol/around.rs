//! The one rule for the text around a move, the same for all protocols (docs/explanation/protocols.md has it as a table).
//!
//! Prose may stand around a move. The reply is refused where that text may be a part of the move, where it may be
//! another move, and where it shows that the move is quoted. Quoting styles make no difference: text that is refused in
//! double quotes is refused in any others.

mod characters;
mod code;
mod conditions;
mod enclosure;
mod introduction;
mod keys;
mod neighbours;
mod openings;
mod pairs;
mod quotes;
mod tools;
mod turns;

use super::repair_notes::RepairNotes;
use super::surrounding_text::without_tokens;
use super::{Code, Move, ToolCall, Violation};
use crate::reply::tag::Tag;
use crate::reply::{BoxedViolation, Repair, RepairCode, Span};
use characters::Characters;
pub(crate) use enclosure::{find as shown_by, has_other_tokens, strip_marks};
pub(crate) use introduction::{bracket_of_words, has_words};
pub(crate) use keys::{is_quote, member};
pub(crate) use tools::judged;

/// Repairs after which anything outside the move may have belonged to it.
const FRAGILE: [RepairCode; 4] = [
    RepairCode::ClosedBrackets,
    RepairCode::MissingCloseTag,
    RepairCode::MissingArguments,
    RepairCode::UnclosedThoughts,
];

/// The violation of a move that was closed before its last member.
pub(crate) fn more_of_it(place: Span) -> Violation {
    Violation::new(Code::ExtraData, "expected nothing after the closed object: got more of it")
        .at(place)
        .hint("put every member inside the one object, before its closing bracket")
}

/// Whether a repair of these makes everything outside the move doubtful.
pub(crate) fn is_fragile<'r>(repairs: impl IntoIterator<Item = &'r Repair>) -> bool {
    repairs.into_iter().any(|repair| FRAGILE.contains(&repair.code))
}

/// The pieces without the holes; both are in order.
pub(crate) fn outside(pieces: &[Span], holes: &[Span]) -> Vec<Span> {
    if holes.is_empty() {
        return pieces.to_vec();
    }
    let mut holes = holes.iter().peekable();
    let mut kept = Vec::new();
    for piece in pieces {
        let mut at = piece.start;
        while let Some(hole) = holes.next_if(|hole| hole.start < piece.end) {
            kept.push(Span::new(at, hole.start));
            at = at.max(hole.end);
        }
        kept.push(Span::new(at.min(piece.end), piece.end));
    }
    kept.retain(|piece| piece.start < piece.end);
    kept
}

/// The names of the arguments that a call has.
fn names(call: &ToolCall) -> impl Iterator<Item = &str> {
    call.arguments.as_object().into_iter().flat_map(crate::reply::Object::keys)
}

/// Fences and control tokens that are passed one after the other.
const LAYERS: usize = 8;

/// A move in its reply, and the text around it.
#[derive(Debug, Clone)]
pub(crate) struct Around<'a> {
    raw: &'a str,
    /// The move, with the protocol's own tags around it.
    place: Span,
    /// Other places whose lines count: the JSON of the move, the protocol's sections before it.
    parts: Vec<Span>,
    /// Text before the move, without reasoning and the protocol's own sections, in order.
    before: Vec<Span>,
    /// Text after it, without copies of the move as well.
    after: Vec<Span>,
    /// Code of Markdown before the move, which shows something to the user (chatty).
    shown: Vec<Span>,
    /// The text is for the user (chatty).
    narration: bool,
}

impl<'a> Around<'a> {
    /// `before` and `after` are the pieces of text outside the move, in order.
    pub(crate) fn new(raw: &'a str, place: Span, before: Vec<Span>, after: Vec<Span>) -> Self {
        Self { raw, place, parts: Vec::new(), before, after, shown: Vec::new(), narration: false }
    }

    /// With other places whose lines count: the JSON of the move, the protocol's sections before it.
    pub(crate) fn with_parts(self, parts: Vec<Span>) -> Self {
        Self { parts, ..self }
    }

    /// With code of Markdown before the move, in a protocol whose text is for the user.
    pub(crate) fn showing(self, shown: Vec<Span>) -> Self {
        Self { shown, narration: true, ..self }
    }

    /// Refuses a move whose surroundings need a guess. `keys` are those of the protocol; `end` is the tag that ends the
    /// move.
    pub(crate) fn check(
        &self,
        keys: &[&str],
        outcome: &Move,
        notes: &RepairNotes,
        end: Option<&Tag>,
    ) -> Result<(), BoxedViolation> {
        if self.place.start > 0 && pairs::in_shown_fence(self.raw.get(..self.place.start).unwrap_or("")) {
            return Err(self.quoted(Span::at(self.place.start)));
        }
        if self.is_blank() {
            return Ok(());
        }
        self.alone_if_fragile(notes, end)?;
        let names: Vec<&str> = match outcome {
            Move::Call { calls } => calls.iter().flat_map(names).collect(),
            _ => Vec::new(),
        };
        let before = outside(&self.before, &self.shown);
        let pieces = before.iter().map(|piece| (*piece, false)).chain(self.after.iter().map(|piece| (*piece, true)));
        for (piece, behind) in pieces.filter(|(piece, _)| !piece.of(self.raw).trim().is_empty()) {
            let characters = Characters::of(piece.of(self.raw));
            if characters.may_hold(keys::KEY)
                && let Some((place, name)) = keys::find(self.raw, piece, keys, &names)
            {
                return Err(self.part_outside(place, name));
            }
            if behind && let Some(place) = keys::leftover(self.raw, piece) {
                return Err(self.more_of_it(place));
            }
            if characters.may_hold(conditions::CONDITION)
                && !matches!(outcome, Move::Finish { .. })
                && let Some((place, key)) = self.beside(keys::without_lead(self.raw, piece))
            {
                return Err(self.part_outside(place, key));
            }
        }
        let places: Vec<Span> = std::iter::once(self.place).chain(self.parts.iter().copied()).collect();
        match shown_by(self.raw, &places, &before, &self.after) {
            Some(place) => Err(self.quoted(place)),
            None => Ok(()),
        }
    }

    /// A word that may say how, when or whether the move is meant.
    fn beside(&self, piece: Span) -> Option<(Span, &'a str)> {
        keys::object_beside(self.raw, piece, self.narration).or_else(|| conditions::find(self.raw, piece))
    }

    /// The pieces of text, in order, but for blank ones.
    pub(crate) fn into_pieces(self) -> Vec<Span> {
        if self.is_blank() {
            return Vec::new();
        }
        let raw = self.raw;
        outside(&self.before, &self.shown)
            .into_iter()
            .chain(self.after)
            .filter(|piece| !piece.of(raw).trim().is_empty())
            .collect()
    }

    fn pieces(&self) -> impl Iterator<Item = Span> + '_ {
        self.before.iter().chain(&self.after).copied()
    }

    fn is_blank(&self) -> bool {
        self.pieces().all(|piece| piece.of(self.raw).trim().is_empty())
    }

    /// Where brackets, the end tag or the arguments are missing, whatever else the reply holds may be them.
    fn alone_if_fragile(&self, notes: &RepairNotes, end: Option<&Tag>) -> Result<(), BoxedViolation> {
        let Some((code, place)) = FRAGILE.into_iter().find_map(|code| Some((code, notes.first(code)?))) else {
            return Ok(());
        };
        let Some(other) = self.pieces().find_map(|piece| self.text_in(piece, end)) else { return Ok(()) };
        let (message, hint) = match code {
            RepairCode::MissingArguments => (
                "expected the arguments of the call inside it: got none, and text outside it",
                "put the arguments into the call, and write nothing around it",
            ),
            RepairCode::UnclosedThoughts => (
                "expected </thoughts> before the output: got none, and text behind the output",
                "close the thoughts before the output, and write nothing behind it",
            ),
            RepairCode::MissingCloseTag => {
                ("expected the end tag of the move: got none, and text around it", "end the move with its tag")
            }
            _ => (
                "expected the closing brackets of the move: got none, and text around it",
                "close every bracket, escape every quote inside a text with a backslash, and write nothing around the move",
            ),
        };
        Err(Box::new(
            Violation::new(Code::ExtraData, message).at(other).related(place, "it is missing here").hint(hint),
        ))
    }

    /// The text in a piece that is no fence, no control token and no beginning of the end tag.
    fn text_in(&self, piece: Span, end: Option<&Tag>) -> Option<Span> {
        let (mut from, mut until) = (piece.start, piece.end);
        for _ in 0..LAYERS {
            let rest = Span::new(from, until).of(self.raw);
            let kept = without_tokens(rest).0?;
            let inside = kept.of(rest);
            let (start, stop) = (from + kept.start, from + kept.end);
            let after_fence = keys::without_fence_start(inside);
            let before_fence = inside.trim_end_matches(['`', '~']);
            if after_fence.len() < inside.len() {
                (from, until) = (stop - after_fence.len(), stop);
            } else if before_fence.len() < inside.len() {
                (from, until) = (start, start + before_fence.len());
            } else {
                let cut = end.is_some_and(|tag| {
                    inside.len() >= 2 && tag.literal().starts_with(inside) && inside.len() < tag.literal().len()
                });
                return (!cut).then(|| Span::new(start, stop));
            }
        }
        Some(Span::new(from, until))
    }

    fn part_outside(&self, place: Span, name: &str) -> BoxedViolation {
        Box::new(
            Violation::new(Code::ExtraData, format!("expected all of the move inside it: got '{name}' outside it"))
                .at(place)
                .related(self.place, "the move")
                .hint("put every member inside the one move, and write no part of a move around it"),
        )
    }

    fn more_of_it(&self, place: Span) -> BoxedViolation {
        Box::new(more_of_it(place).related(self.place, "the move"))
    }

    fn quoted(&self, place: Span) -> BoxedViolation {
        Box::new(
            Violation::new(Code::QuotedMove, "expected the move itself: got a text that shows one")
                .at(self.place)
                .related(place, "this stands around it")
                .hint("write the move on lines of its own, without quotes, brackets or words around it"),
        )
    }
}
