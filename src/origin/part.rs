//! Texts of similar kinds, by token.

use super::from::{Origin, Place};
use super::index::{Echo, Source};
use super::json::{Piece, decode, is_json, pieces, raw_span};
use super::number::Decimal;
use super::token::{Words, tokens};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::Arc;

/// Where a list ends, or nothing stands.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// Keys are hashes already.
#[derive(Default)]
pub(crate) struct Plain(u64);

impl Hasher for Plain {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash << 8 | u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A hash that grows byte by byte, so that every prefix of a value is hashed in one pass. Its factor is drawn for each
/// index: nobody can write two words that are one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growing {
    state: u64,
    factor: u64,
}

impl Growing {
    fn drawn() -> Self {
        let random = RandomState::new();
        Self { state: random.hash_one(0), factor: random.hash_one(1) | 1 }
    }

    pub(crate) fn push(&mut self, byte: u8) {
        let product = u128::from(self.state ^ u64::from(byte)).wrapping_mul(u128::from(self.factor));
        let [low, high] = [product, product >> 64].map(|half| u64::try_from(half & u128::from(u64::MAX)).unwrap_or(0));
        self.state = low ^ high;
    }

    pub(crate) fn key(self) -> u64 {
        self.state ^ self.state >> 32
    }
}

/// What is known of one word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    /// Its last place in `tokens`.
    pub(crate) last: u32,
    pub(crate) count: u32,
}

/// One place of a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) id: u32,
    /// The place of the same word before this one.
    pub(crate) prev: u32,
    /// Where it begins in the text of its segment; the highest bit marks the first token of a segment.
    start: u32,
}

const FIRST: u32 = 1 << 31;

impl Token {
    pub(crate) fn is_first(self) -> bool {
        self.start & FIRST != 0
    }

    fn start(self) -> usize {
        (self.start & !FIRST) as usize
    }
}

/// A text without JSON, or a leaf or key of one with JSON.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Its first token.
    token: u32,
    text: u32,
    /// Where it stands in the text, in bytes.
    start: u32,
    end: u32,
    /// The node of the list or object that has it, or `NOWHERE`.
    parent: u32,
    /// Its number in the list, or where its key begins in the text.
    name: u32,
}

/// A list or object.
#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    name: u32,
    is_array: bool,
}

#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) source: Source,
    content: Arc<str>,
    /// The tokens of each argument of its call, with the argument's origin.
    pub(crate) echo: Vec<(Words, Option<Origin>)>,
}

/// Places of tokens in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// Texts of similar kinds.
#[derive(Debug)]
pub(crate) struct Part {
    hash: Growing,
    pub(crate) ids: HashMap<u64, u32, BuildHasherDefault<Plain>>,
    pub(crate) words: Vec<Word>,
    pub(crate) tokens: Vec<Token>,
    lengths: Vec<u8>,
    segments: Vec<Segment>,
    /// The texts of segments that have escapes.
    decoded: HashMap<u32, Box<str>>,
    nodes: Vec<Node>,
    pub(crate) texts: Vec<Text>,
    /// How many of its texts are untrusted.
    untrusted: usize,
}

impl Default for Part {
    fn default() -> Self {
        Self {
            hash: Growing::drawn(),
            ids: HashMap::default(),
            words: Vec::new(),
            tokens: Vec::new(),
            lengths: Vec::new(),
            segments: Vec::new(),
            decoded: HashMap::new(),
            nodes: Vec::new(),
            texts: Vec::new(),
            untrusted: 0,
        }
    }
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(NOWHERE)
}

/// The leaves of an argument as texts.
fn leaves(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(fields) => fields.values().for_each(|item| leaves(item, found)),
        Value::String(text) => found.push(text.clone()),
        Value::Number(number) => found.push(Decimal::of(number).text()),
        Value::Null | Value::Bool(_) => {}
    }
}

impl Part {
    pub(crate) fn hash(&self) -> Growing {
        self.hash
    }

    pub(crate) fn id(&self, word: &str) -> Option<u32> {
        let mut hash = self.hash();
        word.bytes().for_each(|byte| hash.push(byte));
        self.ids.get(&hash.key()).copied()
    }

    pub(crate) fn count(&self, id: u32) -> u32 {
        self.words.get(id as usize).map_or(0, |word| word.count)
    }

    pub(crate) fn token(&self, at: u32) -> Option<Token> {
        self.tokens.get(at as usize).copied()
    }

    /// Adds a text; false if there is no room.
    pub(crate) fn add(&mut self, source: Source, text: Arc<str>) -> bool {
        if self.tokens.len() + text.len() >= FIRST as usize {
            return false;
        }
        let mut echo = Vec::new();
        for Echo { value, origin } in &source.echo {
            let mut found = Vec::new();
            leaves(value, &mut found);
            echo.extend(found.iter().map(|leaf| (Words::of(leaf), origin.clone())));
        }
        let shared = text.clone();
        self.untrusted += usize::from(source.untrusted);
        self.texts.push(Text { source, content: text, echo });
        if is_json(&shared) {
            self.add_json(&shared);
        } else {
            self.segment(&shared, (0, shared.len()), NOWHERE, 0, false);
        }
        true
    }

    /// Adds a text that is no JSON whatever it looks like.
    pub(crate) fn add_plain(&mut self, source: Source, text: Arc<str>) {
        let shared = text.clone();
        self.texts.push(Text { source, content: text, echo: Vec::new() });
        self.segment(&shared, (0, shared.len()), NOWHERE, 0, false);
    }

    /// The first segment with a sign, its text's number, and the place; not beyond so many bytes.
    pub(crate) fn symbol(&self, sign: &str, bytes: usize) -> Option<(u32, u32, usize)> {
        let mut seen = 0;
        for (number, segment) in self.segments.iter().enumerate() {
            let text = self.segment_text(small(number)).unwrap_or_default();
            if let Some(at) = memchr::memmem::find(text.as_bytes(), sign.as_bytes()) {
                return Some((small(number), segment.text, at));
            }
            seen += text.len();
            if seen > bytes {
                break;
            }
        }
        None
    }

    fn add_json(&mut self, text: &str) {
        // Each open list or object, with the number of its items so far or the place of its last key.
        let mut open: Vec<(u32, u32)> = Vec::new();
        let mut keys = HashSet::new();
        pieces(text, |piece| {
            let (parent, name) = open.last().copied().unwrap_or((NOWHERE, 0));
            let is_array = self.nodes.get(parent as usize).is_some_and(|node| node.is_array);
            if is_array && !matches!(piece, Piece::Close) {
                open.last_mut().iter_mut().for_each(|top| top.1 += 1);
            }
            match piece {
                Piece::Open { is_array } => {
                    open.push((small(self.nodes.len()), 0));
                    self.nodes.push(Node { parent, name, is_array });
                }
                Piece::Close => drop(open.pop()),
                Piece::Key { start, end } => {
                    open.last_mut().iter_mut().for_each(|top| top.1 = small(start));
                    // The keys of one row are those of the next.
                    if keys.insert(text.get(start..end)) {
                        self.segment(text, (start, end), parent, small(start), true);
                    }
                }
                Piece::Text { start, end } => self.segment(text, (start, end), parent, name, true),
                Piece::Literal { start, end } => {
                    if text
                        .get(start..end)
                        .is_some_and(|literal| literal.starts_with(|c: char| c == '-' || c.is_ascii_digit()))
                    {
                        self.segment(text, (start, end), parent, name, false);
                    }
                }
            }
        });
    }

    fn segment(&mut self, text: &str, span: (usize, usize), parent: u32, name: u32, may_escape: bool) {
        let raw = text.get(span.0..span.1).unwrap_or_default();
        let token = small(self.tokens.len());
        let number = small(self.segments.len());
        if may_escape && memchr::memchr(b'\\', raw.as_bytes()).is_some() {
            let decoded = decode(raw).into_boxed_str();
            self.push_tokens(&decoded);
            self.decoded.insert(number, decoded);
        } else {
            self.push_tokens(raw);
        }
        if let Some(first) = self.tokens.get_mut(token as usize) {
            first.start |= FIRST;
            let text = small(self.texts.len() - 1);
            self.segments.push(Segment { token, text, start: small(span.0), end: small(span.1), parent, name });
        } else {
            self.decoded.remove(&number);
        }
    }

    fn push_tokens(&mut self, text: &str) {
        let Self { hash: empty, ids, words, tokens: places, lengths, .. } = self;
        tokens(text, |word, start, end| {
            let mut hash = *empty;
            word.bytes().for_each(|byte| hash.push(byte));
            let at = small(places.len());
            let new = small(words.len());
            let id = *ids.entry(hash.key()).or_insert(new);
            if id == new {
                words.push(Word { last: NOWHERE, count: 0 });
            }
            let Some(word) = words.get_mut(id as usize) else { return };
            places.push(Token { id, prev: word.last, start: small(start) });
            lengths.push(u8::try_from(end - start).unwrap_or(u8::MAX));
            word.last = at;
            word.count += 1;
        });
    }

    /// Whether its texts are all trusted, or all not.
    pub(crate) fn is_uniform(&self) -> bool {
        self.untrusted == 0 || self.untrusted == self.texts.len()
    }

    /// The number of the segment that has a token.
    fn segment_of(&self, token: u32) -> u32 {
        small(self.segments.partition_point(|segment| segment.token <= token).saturating_sub(1))
    }

    /// The text of the segment that has these tokens, its number, and their place in that text.
    pub(crate) fn spot(&self, hit: Hit) -> Option<(u32, &str, (usize, usize))> {
        let segment = self.segment_of(hit.first);
        let last = self.token(hit.last)?.start() + usize::from(*self.lengths.get(hit.last as usize)?);
        Some((segment, self.segment_text(segment)?, (self.token(hit.first)?.start(), last)))
    }

    pub(crate) fn segment_text(&self, segment: u32) -> Option<&str> {
        if let Some(decoded) = self.decoded.get(&segment) {
            return Some(decoded);
        }
        let segment = self.segments.get(segment as usize)?;
        self.texts.get(segment.text as usize)?.content.get(segment.start as usize..segment.end as usize)
    }

    /// The number of the text that has a segment.
    pub(crate) fn text_of(&self, segment: u32) -> Option<u32> {
        self.segments.get(segment as usize).map(|segment| segment.text)
    }

    /// The place of a span of a segment's text.
    pub(crate) fn place(&self, segment: u32, span: (usize, usize)) -> Option<Place> {
        let of = self.segments.get(segment as usize)?;
        let text = self.texts.get(of.text as usize)?;
        let raw = text.content.get(of.start as usize..of.end as usize)?;
        let (start, end) = if self.decoded.contains_key(&segment) { raw_span(raw, span) } else { span };
        let start_of = of.start as usize;
        Some(Place {
            kind: text.source.kind,
            place: text.source.place.clone(),
            span: Some((start_of + start, start_of + end)),
            pointer: (of.parent != NOWHERE).then(|| self.pointer(&text.content, of.parent, of.name)),
            untrusted: text.source.untrusted,
        })
    }

    fn pointer(&self, text: &str, mut parent: u32, mut name: u32) -> String {
        let mut names = Vec::new();
        while let Some(node) = self.nodes.get(parent as usize) {
            names.push(if node.is_array { name.to_string() } else { key_at(text, name as usize) });
            (parent, name) = (node.parent, node.name);
        }
        names.iter().rev().fold(String::new(), |mut pointer, name| {
            // Writing into a string has no failing case.
            let _ = write!(pointer, "/{}", name.replace('~', "~0").replace('/', "~1"));
            pointer
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.tokens.capacity() * size_of::<Token>()
            + self.lengths.capacity()
            + self.words.capacity() * size_of::<Word>()
            + self.ids.capacity() * (size_of::<(u64, u32)>() + 1)
            + self.segments.capacity() * size_of::<Segment>()
            + self.nodes.capacity() * size_of::<Node>()
            + self.decoded.values().map(|text| text.len() + 32).sum::<usize>()
    }
}

fn key_at(text: &str, start: usize) -> String {
    let rest = text.get(start..).unwrap_or_default();
    let mut escaped = false;
    let end = rest.bytes().position(|byte| {
        let is_quote = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_quote
    });
    decode(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default())
}
