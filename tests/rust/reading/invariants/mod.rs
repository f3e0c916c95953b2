//! What holds of every text, whoever wrote it: one place for the property tests, the fuzz targets and the kept seeds.
#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::string_slice, reason = "tests")]

mod envelope;
pub(crate) mod growth;
pub(crate) mod json;
mod origins;
mod outside;
pub(crate) mod reply;

use callslip::protocol::chatty::read::ToolTags;
use callslip::protocol::{
    Chatty, Delta, FinishReason, Protocol, ProtocolKind, ProtocolOptions, React, ReadOptions, Reply, Ticket,
};
use callslip::reply::{ReadLimits, Span};
use std::sync::Arc;

/// Checks what a fuzzer made up for the target of this name.
pub(crate) fn check(target: &str, data: &[u8]) {
    let Some(input) = Input::new(data) else { return };
    match target {
        "json" => json::check(input),
        "envelope" => envelope::check(input),
        "growth" => growth::check(input),
        "openapi" => outside::openapi(input),
        "schema" => outside::schema(input),
        "log" => outside::log(input),
        "declaration" => outside::declaration(input),
        "origins" => origins::check(input),
        protocol => reply::check(protocol, input),
    }
}

/// What a fuzzer's bytes say: the first chooses options, the next two the sizes of chunks, the rest is the text.
/// All three count from `0`, so that seeds can be read and written by people.
#[derive(Clone, Copy)]
struct Input<'a> {
    options: u8,
    sizes: [usize; 2],
    text: &'a [u8],
}

impl<'a> Input<'a> {
    fn new(data: &'a [u8]) -> Option<Self> {
        let [options, first, second, text @ ..] = data else { return None };
        let size = |byte: &u8| usize::from(byte.wrapping_sub(b'0') & 31) + 1;
        Some(Self { options: options.wrapping_sub(b'0'), sizes: [size(first), size(second)], text })
    }

    /// One of the options.
    fn option(self, bit: u8) -> bool {
        self.options >> bit & 1 == 1
    }

    /// The text in chunks of the chosen sizes by turns, and byte by byte.
    fn chunkings(self) -> [Vec<&'a [u8]>; 2] {
        let (mut chunks, mut rest) = (Vec::new(), self.text);
        for size in self.sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, more) = rest.split_at(rest.len().min(*size));
            chunks.push(chunk);
            rest = more;
        }
        [chunks, self.text.chunks(1).collect()]
    }
}

/// Bounds that short texts reach.
fn small_limits() -> ReadLimits {
    ReadLimits { bytes: 400, depth: 4, digits: 8, values: 12, key_bytes: 12, blanks: 8, repairs: 3 }
}

/// How replies are read.
pub(crate) struct Way {
    pub(crate) protocol: Arc<dyn Protocol>,
    pub(crate) options: ReadOptions,
}

/// A reply as it was read.
pub(crate) struct Read {
    pub(crate) reply: Reply,
    pub(crate) deltas: Vec<Delta>,
}

impl Way {
    pub(crate) fn new(protocol: &str, tags: (&str, &str)) -> Self {
        let protocol: Arc<dyn Protocol> = match protocol {
            "react" => Arc::new(React::default()),
            "ticket" => Arc::new(Ticket::default()),
            "chatty" => {
                let tags = ToolTags { start: tags.0.to_owned(), end: tags.1.to_owned() };
                Arc::new(Chatty { tags, ..Chatty::default() })
            }
            other => return Self::of(other),
        };
        Self { protocol, options: ReadOptions::default() }
    }

    /// The protocol of this name in the list, with its defaults.
    fn of(name: &str) -> Self {
        let kind = ProtocolKind::find(name).expect(name);
        let protocol = kind.make(serde_json::json!({}), ProtocolOptions::default()).expect(name);
        Self { protocol, options: ReadOptions::default() }
    }

    /// With the tags that chatty has where nothing else is said.
    pub(crate) fn plain(protocol: &str) -> Self {
        Self::new(protocol, ("<tool>", "</tool>"))
    }

    pub(crate) fn read(&self, chunks: &[&[u8]]) -> Read {
        let mut decoder = self.protocol.decoder(self.options);
        let mut deltas = Vec::new();
        for chunk in chunks {
            decoder.push(chunk, &mut deltas);
        }
        Read { reply: decoder.finish(FinishReason::Stop), deltas }
    }
}

/// The place lies in the text, between characters.
fn lies_inside(span: Span, text: &str) {
    assert!(span.start <= span.end && span.end <= text.len(), "{span:?} in {text:?}");
    assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end), "{span:?} in {text:?}");
}
