//! The texts of a conversation, in parts that are searched apart.

use super::echo::Said;
use super::from::{Kind, Origin};
use super::part::Part;
use super::schema::texts;
use super::text::Scripts;
use serde_json::Value;
use std::cell::RefCell;
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
    /// For the answer of a run below: the texts of that run, in which the values of the answer are looked up.
    pub below: Option<Arc<Index>>,
    /// Where the text begins in the one that its place names, in bytes.
    pub offset: usize,
}

impl Source {
    /// A trusted text that belongs to no call.
    #[must_use]
    pub fn new(kind: Kind, place: &str) -> Self {
        Self { kind, place: Arc::from(place), untrusted: false, echo: Vec::new(), below: None, offset: 0 }
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
        texts.has_answers |= source.below.is_some();
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
/// What the model made up for its calls, one text for each argument.
pub(crate) const ARGUMENTS: usize = 4;
const PARTS: usize = 5;

/// How many schemas are kept.
const SCHEMAS: usize = 32;

/// The schema of a tool that was called, and its texts.
#[derive(Debug)]
struct Known {
    schema: Value,
    description: String,
    part: Arc<Part>,
}

/// The schemas of the tools that were called, the latest last.
#[derive(Debug, Default)]
pub(crate) struct Schemas(RefCell<Vec<Known>>);

impl Schemas {
    pub(crate) fn part(&self, schema: &Value, description: &str) -> Arc<Part> {
        let mut all = self.0.borrow_mut();
        if let Some(known) = all.iter().find(|known| known.description == description && known.schema == *schema) {
            return Arc::clone(&known.part);
        }
        let mut part = Part::default();
        for text in std::iter::once(description.to_owned()).chain(texts(schema)) {
            part.add_plain(Source::new(Kind::Schema, ""), Arc::from(text));
        }
        let part = Arc::new(part);
        all.push(Known { schema: schema.clone(), description: description.to_owned(), part: Arc::clone(&part) });
        let surplus = all.len().saturating_sub(SCHEMAS);
        all.drain(..surplus);
        part
    }
}

#[derive(Debug, Default)]
pub(crate) struct Texts {
    pending: Vec<(Source, Arc<str>)>,
    parts: [Part; PARTS],
    /// The result of the call to which each text of `ARGUMENTS` belongs.
    pub(crate) results_of_arguments: Vec<u32>,
    pub(crate) schemas: Schemas,
    pub(crate) is_lost: bool,
    pub(crate) has_untrusted: bool,
    /// Whether runs below have answered.
    pub(crate) has_answers: bool,
    /// The scripts that the user writes.
    pub(crate) scripts: Scripts,
}

impl Texts {
    fn build(&mut self) {
        for (source, text) in std::mem::take(&mut self.pending) {
            if matches!(source.kind, Kind::Task | Kind::User) {
                self.scripts.add(&text);
            }
            let number = match source.kind {
                Kind::Task | Kind::User | Kind::Instructions => OWN,
                Kind::Result => RESULTS,
                Kind::Schema => SCHEMA,
                _ => MODEL,
            };
            let Some(part) = self.parts.get_mut(number) else { continue };
            let text_number = part.texts.len();
            self.is_lost |= !part.add(source, text);
            if number == RESULTS {
                self.add_made_up(text_number);
            }
        }
    }

    /// Notes what was made up for the call that a result belongs to.
    fn add_made_up(&mut self, result: usize) {
        let [_, results, .., arguments] = &mut self.parts;
        let (Some(text), Ok(number)) = (results.texts.get(result), u32::try_from(result)) else { return };
        let made_up: Vec<String> = text.said.iter().filter(|said| said.is_made_up()).map(Said::text).collect();
        if made_up.is_empty() {
            return;
        }
        for text in made_up {
            arguments.add_plain(Source::new(Kind::Model, ""), Arc::from(text));
            self.results_of_arguments.push(number);
        }
        let quotes = self.quotes(number);
        let [_, results, ..] = &mut self.parts;
        if let Some(text) = results.texts.get_mut(result) {
            text.quotes = quotes;
        }
    }

    pub(crate) fn part(&self, part: usize) -> &Part {
        let [own, results, schema, model, arguments] = &self.parts;
        match part {
            OWN => own,
            RESULTS => results,
            SCHEMA => schema,
            MODEL => model,
            _ => arguments,
        }
    }
}
