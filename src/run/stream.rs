//! A reply that is still arriving.

use crate::protocol::{Decoder, Delta, Status};
use crate::reply::violation::Violation;

/// The reply of the running turn, as far as it has come.
pub(super) struct Stream {
    pub(super) decoder: Box<dyn Decoder>,
    /// How many bytes were pushed so far.
    pub(super) length: usize,
    /// Where the first whole move ends, once it has.
    pub(super) complete: Option<usize>,
    /// Why it can no longer become valid in this run, though it may be well formed.
    pub(super) refused: Option<Violation>,
    /// Whether the rest need not be read.
    pub(super) stop: bool,
}

impl Stream {
    pub(super) fn new(decoder: Box<dyn Decoder>) -> Self {
        Self { decoder, length: 0, complete: None, refused: None, stop: false }
    }

    /// Takes the next bytes. Returns what is new.
    pub(super) fn push(&mut self, chunk: &[u8], early_stop: bool) -> Vec<Delta> {
        let mut deltas = Vec::new();
        self.length += chunk.len();
        self.stop |= self.decoder.push(chunk, &mut deltas) == Status::Doomed;
        if let Some(at) = self.decoder.settled() {
            self.complete = Some(at);
            self.stop |= early_stop;
        }
        deltas
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Stream").field("length", &self.length).finish_non_exhaustive()
    }
}

/// What pushing a chunk has led to.
#[derive(Debug)]
pub struct Pushed {
    /// What is new, for a user interface.
    pub deltas: Vec<Delta>,
    /// Whether the stream may be stopped: the first whole move is there, or no valid one can come.
    pub stop: bool,
}
