//! The program's own check of an answer, before the run ends with it.

use super::event::Event;
use super::machine::RunMachine;
use super::state::{Offered, Phase};
use crate::codes::Code;
use crate::protocol::TextSpans;
use crate::reply::violation::Violation;

/// Characters of the program's words that the model is told.
const LONG: usize = 4_000;

impl RunMachine {
    /// Whether the answer of this turn is still to be checked.
    pub fn is_checking(&self, turn: u32) -> bool {
        self.state.position.phase == Phase::Checking && self.state.position.turn == turn
    }

    /// The program accepts the answer of this turn. An answer that is checked no more is ignored.
    pub fn accept_answer(&mut self, turn: u32, now: f64) {
        if !self.is_checking(turn) {
            return;
        }
        if let Some(Offered { moved, spans }) = self.state.position.offered.as_deref().cloned() {
            self.emit(Event::Moved { turn, moved, spans }, now);
            self.advance(now);
        }
    }

    /// The program refuses the answer of this turn: the model is told why, and asked again.
    pub fn refuse_answer(&mut self, turn: u32, why: &str, now: f64) {
        if !self.is_checking(turn) {
            return;
        }
        let why: String = why.trim().trim_end_matches('.').chars().take(LONG).collect();
        let why = if why.is_empty() { "the answer was refused".to_owned() } else { why };
        let spans =
            self.state.position.offered.as_ref().map_or_else(TextSpans::default, |offered| offered.spans.clone());
        self.record_violation(Violation::new(Code::InvalidAnswer, why), spans, now);
    }
}
