//! The texts of a conversation, in parts that are searched apart.

use super::from::{Kind, Origin};
use super::part::Part;
use super::text::Scripts;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

/// An argument of the call that a result belongs to: a result that repeats it doesn't vouch for it.
#[derive(Clone, Debug)]
pub struct Echo {
    /// The argument; a list or object counts leaf by leaf.
    pub value: Value,
    /// The origin that it had in that call, which the repeated value keeps if it was stated.
    pub origin: Option<Origin>,
}

/// What a text is.
#[derive(Clone, Debug)]
pub struct Source {
    /// What kind of text.
    pub kind: Kind,
    /// Which one: `T3`, the number of a message, or empty.
    pub place: Arc<str>,
    /// Whether it comes from outside.
    pub untrusted: bool,
    /// For a result: the arguments of its call.
    pub echo: Vec<Echo>,
}

impl Source {
    /// A trusted text that belongs to no call.
    #[must_use]
    pub fn new(kind: Kind, place: &str) -> Self {
        Self { kind, place: Arc::from(place), untrusted: false, echo: Vec::new() }
    }
}

/// The texts of a conversation, searched by `trace`.
///
/// It is built at the first search, and extended at the first one after more texts were added. Among the results, a
/// text that was added later has precedence.
#[derive(Debug, Default)]
pub struct Index(Mutex<Texts>);

impl Index {
    /// An index without texts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text. A JSON object, list or string is searched leaf by leaf, and by its keys.
    pub fn add(&mut self, source: Source, text: Arc<str>) {
        let texts = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        texts.has_untrusted |= source.untrusted;
        texts.pending.push((source, text));
    }

    /// Says that texts are missing: a value found nowhere is `unknown` from now on.
    pub fn lose(&mut self) {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).is_lost = true;
    }

    /// Bytes that the built index takes, besides the texts themselves.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.with(|texts| texts.parts.iter().map(Part::bytes).sum())
    }

    pub(crate) fn with<T>(&self, search: impl FnOnce(&Texts) -> T) -> T {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        texts.build();
        search(&texts)
    }
}

/// The parts of an index, in the order of `parts`. Separate parts keep the bound of one from hiding the others.
pub(crate) const OWN: usize = 0;
pub(crate) const RESULTS: usize = 1;
pub(crate) const SCHEMA: usize = 2;
pub(crate) const MODEL: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct Texts {
    pending: Vec<(Source, Arc<str>)>,
    pub(crate) parts: [Part; 4],
    pub(crate) is_lost: bool,
    pub(crate) has_untrusted: bool,
    /// The scripts that the user writes.
    pub(crate) scripts: Scripts,
}

impl Texts {
    fn build(&mut self) {
        for (source, text) in std::mem::take(&mut self.pending) {
            if matches!(source.kind, Kind::Task | Kind::User) {
                self.scripts.add(&text);
            }
            let part = match source.kind {
                Kind::Task | Kind::User | Kind::Instructions => OWN,
                Kind::Result => RESULTS,
                Kind::Schema => SCHEMA,
                _ => MODEL,
            };
            let [own, results, schema, model] = &mut self.parts;
            let part = match part {
                OWN => own,
                RESULTS => results,
                SCHEMA => schema,
                _ => model,
            };
            self.is_lost |= !part.add(source, text);
        }
    }

    pub(crate) fn part(&self, part: usize) -> &Part {
        let [own, results, schema, model] = &self.parts;
        match part {
            OWN => own,
            RESULTS => results,
            SCHEMA => schema,
            _ => model,
        }
    }
}
