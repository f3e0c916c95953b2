//! Reads ticket replies: `<thoughts>` then `<output>` with one JSON object.

use crate::protocol::{Decoder, ReadOptions};

/// A decoder of one ticket reply.
pub fn decoder(_options: ReadOptions) -> Box<dyn Decoder> {
    unimplemented!()
}
