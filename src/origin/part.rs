//! Texts of similar kinds, by token.

use super::echo::{Quote, Said};
use super::from::Place;
use super::index::{Echo, Source};
use super::json::{Piece, decode, is_json, pieces, raw_span};
use super::table::{Growing, Neighbours, Pairs, Table};
use super::token::tokens;
use crate::json_pointer::escape;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

/// Where a list ends, or nothing stands.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// What is known of one word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    /// Its last place in `tokens`.
    pub(crate) last: u32,
    pub(crate) count: u32,
    is_number: bool,
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
    /// The arguments of its call.
    pub(crate) said: Vec<Said>,
    /// Where it repeats those that were made up.
    pub(crate) quotes: Vec<Quote>,
}

/// Places of tokens in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// Texts of similar kinds.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) table: Table,
    pub(crate) neighbours: Neighbours,
    pub(crate) numbers: Pairs,
    pub(crate) words: Vec<Word>,
    pub(crate) tokens: Vec<Token>,
    lengths: Vec<u8>,
    segments: Vec<Segment>,
    /// The texts of segments that have escapes.
    decoded: BTreeMap<u32, Box<str>>,
    nodes: Vec<Node>,
    pub(crate) texts: Vec<Text>,
    /// How many of its texts are untrusted.
    untrusted: usize,
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(NOWHERE)
}

impl Part {
    pub(crate) fn id(&self, word: &str) -> Option<u32> {
        self.table.get(Growing::of(word))
    }

    pub(crate) fn count(&self, id: u32) -> u32 {
        self.words.get(id as usize).map_or(0, |word| word.count)
    }

    /// Whether a word is a run of digits.
    pub(crate) fn is_number(&self, id: u32) -> bool {
        self.words.get(id as usize).is_some_and(|word| word.is_number)
    }

    pub(crate) fn token(&self, at: u32) -> Option<Token> {
        self.tokens.get(at as usize).copied()
    }

    /// Adds a text; false if there is no room.
    pub(crate) fn add(&mut self, source: Source, text: Arc<str>) -> bool {
        if self.tokens.len() + text.len() >= FIRST as usize {
            return false;
        }
        let mut said = Vec::new();
        for Echo { value, origin } in &source.echo {
            Said::leaves(value, origin.as_ref(), &mut said);
        }
        let shared = text.clone();
        self.untrusted += usize::from(source.untrusted);
        self.texts.push(Text { source, content: text, said, quotes: Vec::new() });
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
        self.texts.push(Text { source, content: text, said: Vec::new(), quotes: Vec::new() });
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
        let mut keys = BTreeSet::new();
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
            self.join(token as usize);
        } else {
            self.decoded.remove(&number);
        }
    }

    fn push_tokens(&mut self, text: &str) {
        let Self { table, words, tokens: places, lengths, .. } = self;
        tokens(text, |word, start, end| {
            let id = table.add(Growing::of(word));
            let at = small(places.len());
            if id as usize == words.len() {
                words.push(Word { last: NOWHERE, count: 0, is_number: word.starts_with(|c: char| c.is_ascii_digit()) });
            }
            let Some(word) = words.get_mut(id as usize) else { return };
            places.push(Token { id, prev: word.last, start: small(start) });
            lengths.push(u8::try_from(end - start).unwrap_or(u8::MAX));
            word.last = at;
            word.count += 1;
        });
    }

    /// Notes which words stand side by side in a new segment.
    fn join(&mut self, first: usize) {
        let is_new = !self.neighbours.is_full(self.tokens.len());
        if !is_new {
            self.neighbours = Neighbours::for_pairs(self.tokens.len() * 2);
        }
        let from = if is_new { first } else { 0 };
        let mut numbers = std::mem::take(&mut self.numbers);
        for (at, pair) in self.tokens.get(from..).unwrap_or_default().windows(2).enumerate() {
            let [one, next] = pair else { continue };
            if next.is_first() {
                continue;
            }
            self.neighbours.add(one.id, next.id);
            if from + at >= first && self.is_number(one.id) && self.is_number(next.id) {
                numbers.add(one.id, next.id, small(from + at));
            }
        }
        self.numbers = numbers;
    }

    /// Whether its texts are all trusted, or all not.
    pub(crate) fn is_uniform(&self) -> bool {
        self.untrusted == 0 || self.untrusted == self.texts.len()
    }

    /// The number of the segment that has a token.
    pub(crate) fn segment_of(&self, token: u32) -> u32 {
        small(self.segments.partition_point(|segment| segment.token <= token).saturating_sub(1))
    }

    /// The tokens of a segment.
    pub(crate) fn tokens_of(&self, segment: u32) -> Range<u32> {
        let first = |segment: u32| self.segments.get(segment as usize).map(|segment| segment.token);
        let end = segment.checked_add(1).and_then(first).unwrap_or(small(self.tokens.len()));
        first(segment).unwrap_or(end)..end
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
        let start_of = of.start as usize + text.source.offset;
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
            let _ = write!(pointer, "/{}", escape(name));
            pointer
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.tokens.capacity() * size_of::<Token>()
            + self.lengths.capacity()
            + self.words.capacity() * size_of::<Word>()
            + self.table.bytes()
            + self.neighbours.bytes()
            + self.numbers.bytes()
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
