//! The origins of a call's arguments, leaf by leaf.

use super::address::Address;
use super::composed::{addresses, is_composed, is_named_composed, pieces};
use super::from::{How, Kind, Origin, Piece, Place};
use super::index::{Index, Texts};
use super::leaves::{Step, inside};
use super::look::{Called, Look, Scope, Spot};
use super::number::Decimal;
use super::relative::Clock;
use super::schema::{Specs, is_example};
use super::text::Found;
use super::token::Words;
use crate::json_pointer::escape;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many values of a call are judged; the rest has one entry, `unknown`, with the empty pointer.
pub const LEAVES: usize = 64;
/// Pieces of a composed text in its origin.
const PIECES: usize = 8;
/// Steps that each of them takes at least.
const PIECE: usize = 8;
/// Characters of a text, and the number, up to which a place in a result may be chance.
const WEAK_TEXT: usize = 3;
const WEAK_NUMBER: u32 = 99;

/// Whether an image or file is in the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Media {
    /// There is none.
    #[default]
    Absent,
    /// There is, and all come from the user or the program.
    Trusted,
    /// One of them comes from outside.
    Untrusted,
}

impl Media {
    /// What is in either of two conversations.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Absent, other) => other,
            (Self::Untrusted, _) | (_, Self::Untrusted) => Self::Untrusted,
            _ => Self::Trusted,
        }
    }
}

/// An argument that is the result of an earlier call.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The call's ticket, such as `T3`.
    pub place: Arc<str>,
    /// Whether its result comes from outside.
    pub untrusted: bool,
}

/// How the arguments of a call are judged.
#[derive(Clone, Debug, Default)]
pub struct Judging {
    /// The description of the tool, which is text of its schema.
    pub description: String,
    /// The arguments (names of the first level) for which an example in the schema is no origin.
    pub strict: BTreeSet<String>,
    /// The arguments (names of the first level) that the model is meant to write.
    pub composed: BTreeSet<String>,
    /// The date of the run; without it, "tomorrow" leads nowhere.
    pub clock: Option<Clock>,
    /// Whether a value found nowhere may have been seen.
    pub media: Media,
    /// The references among the arguments, by JSON pointer.
    pub references: BTreeMap<String, Reference>,
    /// The arguments that the program filled in, by JSON pointer.
    pub filled: BTreeSet<String>,
}

/// A value to judge.
struct Leaf<'v> {
    pointer: String,
    /// The argument of the first level.
    argument: &'v str,
    /// The nearest name.
    name: &'v str,
    value: &'v Value,
    specs: Specs<'v>,
    /// The names on the way to it that the model has chosen.
    chosen: Vec<&'v str>,
}

impl<'v> Leaf<'v> {
    /// A value in this one.
    fn inside(&self, step: Step<'v>, pointer: String, value: &'v Value) -> Self {
        let Leaf { argument, name, specs, .. } = self;
        let mut chosen = self.chosen.clone();
        let (name, specs) = match step {
            // A name that the model has chosen makes no text of a value.
            Step::Name(own) if !specs.declares(own) => {
                if specs.is_data(own) {
                    chosen.push(own);
                }
                (*name, specs.property(own))
            }
            Step::Name(own) => (own, specs.property(own)),
            Step::Position(at) => (*name, specs.item(at)),
        };
        Leaf { pointer, argument, name, value, specs, chosen }
    }
}

/// Collects the leaves; false once there are too many.
fn walk<'v>(leaf: Leaf<'v>, judging: &Judging, found: &mut Vec<Leaf<'v>>) -> bool {
    let is_one = judging.references.contains_key(&leaf.pointer) || judging.filled.contains(&leaf.pointer);
    // A whole value that the schema lists is judged as one.
    if !is_one && leaf.specs.listed(leaf.value).is_none() {
        let before = found.len();
        let is_whole = inside(leaf.value, &leaf.pointer, &mut |step, pointer, value| {
            walk(leaf.inside(step, pointer, value), judging, found)
        });
        // The names that lead to an empty object are judged, too.
        if let Some(is_whole) = is_whole.filter(|_| leaf.chosen.is_empty() || found.len() > before) {
            return is_whole;
        }
    }
    if found.len() == LEAVES {
        return false;
    }
    found.push(leaf);
    true
}

/// Finds where each value of a call comes from.
///
/// `parameters` is the JSON Schema of the tool. Gives one entry for each leaf, with its JSON pointer; after 64 leaves,
/// one entry with the empty pointer that is `unknown`. After 20,000 steps the rest is `unknown`, too.
#[must_use]
pub fn trace(
    index: &Index,
    arguments: &Map<String, Value>,
    parameters: &Value,
    judging: &Judging,
) -> Vec<(String, Origin)> {
    let mut leaves = Vec::new();
    let root = Specs::new(parameters);
    let is_whole = arguments.iter().all(|(name, value)| {
        let pointer = format!("/{}", escape(name));
        let chosen = if root.is_open_to(name) && root.is_data(name) { vec![name.as_str()] } else { Vec::new() };
        walk(Leaf { pointer, argument: name, name, value, specs: root.property(name), chosen }, judging, &mut leaves)
    });
    index.with(|texts| {
        let called = Called::new(parameters, &judging.description);
        let mut tracer = Tracer { look: Look::new(texts, &called), texts, judging, names: BTreeMap::new() };
        let mut origins: Vec<_> = leaves.into_iter().map(|leaf| (leaf.pointer.clone(), tracer.origin(&leaf))).collect();
        if !is_whole {
            origins.push((String::new(), tracer.unknown()));
        }
        origins
    })
}

struct Tracer<'a> {
    look: Look<'a>,
    texts: &'a Texts,
    judging: &'a Judging,
    /// The origins of names that the model has chosen, by the argument and the names.
    names: BTreeMap<(String, String, String), Origin>,
}

impl Tracer<'_> {
    fn unknown(&self) -> Origin {
        Origin { untrusted: self.texts.has_untrusted, ..Origin::of(Kind::Unknown) }
    }

    /// The origin of a value, or that of a name on the way to it which is less certain.
    fn origin(&mut self, leaf: &Leaf<'_>) -> Origin {
        let mut origin = self.of_value(leaf);
        if self.judging.filled.contains(&leaf.pointer) {
            return origin;
        }
        let doubt = |origin: &Origin| (!origin.is_stated(), origin.untrusted && !origin.weak);
        for name in &leaf.chosen {
            let key = (leaf.argument.to_owned(), leaf.name.to_owned(), (*name).to_owned());
            let named = match self.names.get(&key) {
                Some(known) => known.clone(),
                None => Origin { pieces: Vec::new(), ..self.text(name, leaf) },
            };
            if doubt(&named) > doubt(&origin) {
                origin = named.clone();
            }
            self.names.insert(key, named);
        }
        origin
    }

    fn of_value(&mut self, leaf: &Leaf<'_>) -> Origin {
        if let Some(reference) = self.judging.references.get(&leaf.pointer) {
            let Reference { place, untrusted } = reference.clone();
            return Origin { place, untrusted, how: How::Reference, ..Origin::of(Kind::Reference) };
        }
        if self.judging.filled.contains(&leaf.pointer) {
            return Origin::of(Kind::Exempt);
        }
        if let Some(kind) = leaf.specs.listed(leaf.value) {
            return Origin::of(kind);
        }
        match leaf.value {
            Value::Number(number) => self.number(&Decimal::of(number), leaf),
            Value::String(text) => self.text(text, leaf),
            _ => Origin::of(Kind::Exempt),
        }
    }

    fn number(&mut self, number: &Decimal, leaf: &Leaf<'_>) -> Origin {
        if number.small().is_some_and(|small| small < 2) && !number.is_negative {
            return Origin::of(Kind::Exempt);
        }
        self.look.begin(&number.text());
        let is_weak = number.small().is_some_and(|small| small <= WEAK_NUMBER);
        let found = self.look.vouched(|look, scope| {
            let (spots, how) = look.number(scope, number)?;
            Found::new(spots, how)
        });
        let origin = found.map(|found| self.found(found)).or_else(|| self.look.repeated()).or_else(|| {
            let (spots, how) = self.look.digits_of_schema(number, self.is_strict(leaf))?;
            self.look.origin(spots, how)
        });
        let answered = |tracer: &mut Self| {
            tracer.answered(leaf.value, |look| {
                let (spots, how) = look.number(Scope::Model, number)?;
                Found::new(spots, how)
            })
        };
        let origin = origin.or_else(|| answered(self)).unwrap_or_else(|| {
            let words = self.look.number(Scope::Model, number);
            let words = words.and_then(|(spots, how)| self.look.origin(spots, how));
            self.nowhere(words, None)
        });
        weakened(origin, is_weak)
    }

    fn text(&mut self, text: &str, leaf: &Leaf<'_>) -> Origin {
        let words = self.look.begin(text);
        if words.is_empty() {
            return Origin::of(Kind::Exempt);
        }
        let is_named = self.judging.composed.contains(leaf.argument) || is_named_composed(leaf.name, text);
        let composed = is_named || is_composed("", text, words.len());
        let is_weak = words.whole.chars().count() <= WEAK_TEXT;
        let clock = self.judging.clock;
        let is_part = !is_named && Address::of(text).is_none();
        let (inside, is_all) = if is_part { self.address_inside(text) } else { (None, false) };
        // "<ada@home.example>" is that address.
        if let Some(origin) = inside.as_ref().filter(|origin| is_all || !origin.is_stated()) {
            return origin.clone();
        }
        if inside.is_some() {
            self.look.begin(text);
        }
        let with = |origin: Origin| {
            let untrusted = origin.untrusted || inside.as_ref().is_some_and(|inside| inside.untrusted);
            Origin { untrusted, ..origin }
        };
        if let Some(found) = self.look.vouched(|look, scope| look.string(scope, text, composed, clock)) {
            return with(weakened(self.found(found), is_weak));
        }
        if let Some(origin) = self.look.repeated() {
            return with(origin);
        }
        if composed {
            return self.composed(text);
        }
        let is_strict = self.is_strict(leaf);
        let schema = self.look.text_of_schema(text, is_strict);
        let schema = schema.and_then(|(spots, how)| self.look.origin(spots, how));
        let answered = |tracer: &mut Self| {
            tracer.answered(&Value::from(text), |look| look.string(Scope::Model, text, false, None))
        };
        let origin = schema.or_else(|| answered(self)).unwrap_or_else(|| {
            let words = if self.look.is_blank(Scope::Model) { None } else { self.look.exact(Scope::Model, text) };
            let words = words.and_then(|found| self.look.origin(found.spots, found.how));
            self.nowhere(words, Some(text))
        });
        with(weakened(origin, is_weak))
    }

    /// The least trusted origin of the addresses in a value that is more than one address, and whether it has no other
    /// words.
    fn address_inside(&mut self, text: &str) -> (Option<Origin>, bool) {
        let mut rest = text.to_owned();
        let mut found = Vec::new();
        for (start, end) in addresses(text) {
            found.push(self.piece(text.get(start..end).unwrap_or_default()));
            rest = rest.get(..start).unwrap_or_default().to_owned()
                + &" ".repeat(end - start)
                + rest.get(end..).unwrap_or_default();
        }
        let is_all = !found.is_empty() && Words::of(&rest).is_empty();
        (found.into_iter().max_by_key(|origin| (!origin.is_stated(), origin.untrusted)), is_all)
    }

    /// The origin of an address, id or long number inside a text.
    fn piece(&mut self, item: &str) -> Origin {
        self.look.begin(item);
        if !self.look.steps.take(PIECE) {
            return self.unknown();
        }
        if let Some(found) = self.look.vouched(|look, scope| look.string(scope, item, false, None)) {
            return self.found(found);
        }
        let repeated = self.look.repeated();
        let string = |look: &mut Look<'_>| look.string(Scope::Model, item, false, None);
        let found = repeated.or_else(|| self.answered(&Value::from(item), string));
        found.unwrap_or_else(|| self.nowhere(None, Some(item)))
    }

    /// The origin of a value in the answer of a run below: a model has written it, so it is looked up there.
    fn answered(&mut self, value: &Value, search: impl Fn(&mut Look<'_>) -> Option<Found>) -> Option<Origin> {
        if !self.texts.has_answers {
            return None;
        }
        let found = search(&mut self.look)?;
        let arguments = Map::from_iter([("value".to_owned(), value.clone())]);
        let judging = Judging { clock: self.judging.clock, ..Judging::default() };
        found.spots.iter().find_map(|spot| {
            let source = &self.look.part(spot.part).texts.get(spot.text as usize)?.source;
            let (_, there) = trace(source.below.as_ref()?, &arguments, &Value::Null, &judging).pop()?;
            let within = |place: &str| {
                if place.is_empty() { source.place.clone() } else { format!("{}/{place}", source.place).into() }
            };
            let others = there.others.iter().map(|other| Place { place: within(&other.place), ..other.clone() });
            let is_stated = there.is_stated() && there.kind != Kind::Composed;
            is_stated.then(|| Origin { place: within(&there.place), others: others.collect(), ..there.clone() })
        })
    }

    fn is_strict(&self, leaf: &Leaf<'_>) -> bool {
        self.judging.strict.contains(leaf.argument)
    }

    fn found(&self, found: Found) -> Origin {
        let untrusted = found.has_untrusted_part;
        let origin = self.look.origin(found.spots, found.how).unwrap_or_else(|| Origin::of(Kind::None));
        Origin { untrusted: origin.untrusted || untrusted, ..origin }
    }

    /// The origin of a value that nothing vouches for; `words` are those that the model or an example has.
    fn nowhere(&self, words: Option<Origin>, text: Option<&str>) -> Origin {
        let may_translate =
            text.is_some_and(|text| Address::of(text).is_none() && self.texts.scripts.may_translate(text));
        if self.texts.is_lost || self.look.steps.is_unsure() || may_translate {
            return self.unknown();
        }
        match self.judging.media {
            Media::Absent => words.unwrap_or_else(|| Origin::of(Kind::None)),
            media => {
                // It may have been made up after an untrusted text was read.
                let untrusted = media == Media::Untrusted || self.texts.has_untrusted;
                Origin { untrusted, ..Origin::of(Kind::Seen) }
            }
        }
    }

    /// A text that the model wrote, with the origins of the addresses, ids and long numbers in it.
    fn composed(&mut self, text: &str) -> Origin {
        let mut found = Vec::new();
        let (all, is_complete) = pieces(text);
        for (start, end) in all {
            let item = text.get(start..end).unwrap_or_default();
            let origin = self.piece(item);
            // A model that has read others' texts may write an address of theirs in another way.
            let is_new = !origin.is_stated() && self.texts.has_untrusted && Address::of(item).is_some();
            let Origin { kind, place, untrusted, .. } = origin;
            let untrusted = untrusted || is_new;
            found.push(Piece { span: (start, end), kind, place, untrusted });
        }
        let untrusted = found.iter().any(|piece| piece.untrusted) || (!is_complete && self.texts.has_untrusted);
        // Those that a person should look at come first.
        found.sort_by_key(|piece| (!piece.untrusted, piece.kind != Kind::None, piece.span));
        found.truncate(PIECES);
        Origin { untrusted, pieces: found, ..Origin::of(Kind::Composed) }
    }
}

/// Short values stand in long texts by chance; the user's own words are short.
fn weakened(origin: Origin, is_weak: bool) -> Origin {
    let may_be_chance = matches!(origin.kind, Kind::Result | Kind::Instructions | Kind::Schema);
    Origin { weak: is_weak && may_be_chance, ..origin }
}

impl Look<'_> {
    /// Where a number stands in the schema; with `is_strict`, not as an example.
    fn digits_of_schema(&mut self, number: &Decimal, is_strict: bool) -> Option<(Vec<Spot>, How)> {
        let spots = self.digits(Scope::Schema, number, &|text, start, end| {
            Some(end).filter(|_| !(is_strict && is_example(text, start)))
        });
        (!spots.is_empty()).then_some((spots, How::Number))
    }

    /// Where a text stands in the schema; with `is_strict`, not as an example.
    fn text_of_schema(&mut self, text: &str, is_strict: bool) -> Option<(Vec<Spot>, How)> {
        if let Some(kind) = Address::of(text) {
            let (spots, how, _) = self.address(Scope::Schema, kind, text)?;
            return Some((spots, how)).filter(|_| !is_strict);
        }
        let spots = self.run(Scope::Schema, &self.value(), &mut |text, span| {
            (!(is_strict && is_example(text, span.0))).then_some(span)
        });
        (!spots.is_empty()).then_some((spots, How::Exact))
    }
}
