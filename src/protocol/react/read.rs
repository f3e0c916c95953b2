//! Reads react replies: one JSON object.

use crate::protocol::{Decoder, ReadOptions};

/// A decoder of one react reply.
pub fn decoder(_options: ReadOptions) -> Box<dyn Decoder> {
    unimplemented!()
}
