//! The search for one value: which texts have it, and what that makes of its origin.

use super::from::{How, Kind, Origin};
use super::index::{MODEL, OWN, RESULTS, SCHEMA, Source, Texts};
use super::part::{Hit, Part};
use super::run::Steps;
use super::schema::texts;
use super::token::Words;
use serde_json::Value;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

/// Which texts are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What the user and the program wrote, and results.
    Conversation,
    /// What the user wrote.
    User,
    /// Texts of the schema.
    Schema,
    /// Texts that vouch for nothing.
    Model,
}

/// The part of the schema of the call itself, beside those of the index.
const CALLED: usize = 4;
/// How many places of a value an origin shows.
const SHOWN: usize = 1 + OTHERS;
/// How many texts a value is searched in, once a trusted one has it.
const ENOUGH: usize = 16;
/// How many texts a value is searched in at all.
const MOST: usize = 64;
/// Bytes in which a sign is searched.
const SIGNS: usize = 65_536;
/// Further places in an origin.
const OTHERS: usize = 3;

/// A place of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) part: usize,
    pub(crate) segment: u32,
    pub(crate) text: u32,
    pub(crate) span: (usize, usize),
}

/// The schema of the called tool, which is indexed if a value needs it.
pub(crate) struct Called<'s> {
    schema: &'s Value,
    description: &'s str,
    part: OnceCell<Part>,
}

impl<'s> Called<'s> {
    pub(crate) fn new(schema: &'s Value, description: &'s str) -> Self {
        Self { schema, description, part: OnceCell::new() }
    }

    fn part(&self) -> &Part {
        self.part.get_or_init(|| {
            let mut part = Part::default();
            for text in std::iter::once(self.description.to_owned()).chain(texts(self.schema)) {
                part.add_plain(Source::new(Kind::Schema, ""), Arc::from(text));
            }
            part
        })
    }
}

/// Decides on a place from the text of its segment: the span of the value there, or none if it isn't there.
pub(crate) type Check<'c> = &'c mut dyn FnMut(&str, (usize, usize)) -> Option<(usize, usize)>;

pub(crate) struct Look<'a> {
    pub(crate) texts: &'a Texts,
    pub(crate) steps: Steps,
    /// The schema of the called tool.
    called: &'a Called<'a>,
    /// The tokens of the value, for the echo rule.
    value: Words,
    /// The origin of an argument of an earlier call whose result only repeats it.
    repeated: Option<Origin>,
}

impl<'a> Look<'a> {
    pub(crate) fn new(texts: &'a Texts, called: &'a Called<'a>) -> Self {
        Self { texts, called, steps: Steps::new(), value: Words::default(), repeated: None }
    }

    /// Begins the search for a value, by its text.
    pub(crate) fn begin(&mut self, value: &str) {
        self.value = Words::of(value);
        self.repeated = None;
        self.steps.is_capped = false;
    }

    /// The origin that an earlier call had for the value, if a result that repeats it is its only place.
    pub(crate) fn repeated(&mut self) -> Option<Origin> {
        self.repeated.take()
    }

    pub(crate) fn part(&self, part: usize) -> &'a Part {
        if part == CALLED { self.called.part() } else { self.texts.part(part) }
    }

    fn parts(scope: Scope) -> &'static [usize] {
        match scope {
            Scope::Conversation => &[OWN, RESULTS],
            Scope::User => &[OWN],
            Scope::Schema => &[CALLED, SCHEMA],
            Scope::Model => &[MODEL],
        }
    }

    /// Whether there is no text at all to search.
    pub(crate) fn is_blank(&self, scope: Scope) -> bool {
        Self::parts(scope).iter().all(|part| self.part(*part).tokens.is_empty())
    }

    /// Whether some text has a word.
    pub(crate) fn has(&self, scope: Scope, word: &str) -> bool {
        Self::parts(scope).iter().any(|part| self.part(*part).id(word).is_some())
    }

    /// How many places a word has.
    pub(crate) fn count(&self, scope: Scope, word: &str) -> u32 {
        let count = |part: &usize| self.part(*part).id(word).map_or(0, |id| self.part(*part).count(id));
        Self::parts(scope).iter().map(count).sum()
    }

    /// Where words stand in a row, joined or separated in any way.
    pub(crate) fn run(&mut self, scope: Scope, words: &Words, check: Check<'_>) -> Vec<Spot> {
        self.search(scope, &words.whole, check, |part, steps, each| part.run(words, steps, each))
    }

    /// Where these tokens stand in a row.
    pub(crate) fn row(&mut self, scope: Scope, tokens: &[&str], check: Check<'_>) -> Vec<Spot> {
        self.search(scope, &tokens.concat(), check, |part, steps, each| {
            if let Some(ids) = tokens.iter().map(|token| part.id(token)).collect::<Option<Vec<u32>>>() {
                part.row(&ids, steps, each);
            }
        })
    }

    fn search(
        &mut self,
        scope: Scope,
        whole: &str,
        check: Check<'_>,
        find: impl Fn(&Part, &mut Steps, &mut dyn FnMut(Hit) -> bool),
    ) -> Vec<Spot> {
        let mut spots: Vec<Spot> = Vec::new();
        for &number in Self::parts(scope) {
            let part = self.part(number);
            // The newest result and three more are shown; the others matter only if one of them may be trusted.
            let is_enough = |found: usize, is_trusted: bool| {
                found >= if number == RESULTS && part.is_uniform() { SHOWN } else { ENOUGH }
                    && (is_trusted || part.is_uniform())
            };
            let before = spots.len();
            let was_capped = self.steps.is_capped;
            let Self { steps, value, repeated, texts, .. } = self;
            // The schema is trusted as much as the tool is: its places are all taken.
            let trusts = |spot: &Spot| {
                spot.part != CALLED
                    && texts.part(spot.part).texts.get(spot.text as usize).is_some_and(|text| !text.source.untrusted)
            };
            find(part, steps, &mut |hit| {
                let Some((segment, text, span)) = part.spot(hit) else { return true };
                let Some(number_of_text) = part.text_of(segment) else { return true };
                let same = |spot: &Spot| spot.part == number && spot.text == number_of_text;
                if spots.iter().any(same) || !admits(part, number_of_text, scope, value, repeated) {
                    return true;
                }
                // Two words may have the same hash: the text itself decides.
                if let Some(span) = check(text, span).filter(|_| is_written(part, hit, whole)) {
                    spots.push(Spot { part: number, segment, text: number_of_text, span });
                }
                let found = spots.len() - before;
                let may_go_on = found < SHOWN || !is_enough(found, spots.iter().any(trusts));
                found < part.texts.len().min(MOST) && may_go_on
            });
            if spots.len() > before {
                // It is found: what is left out may only be further places.
                self.steps.is_capped = was_capped;
            }
        }
        spots
    }

    /// Calls `each` with the segments that have a word.
    pub(crate) fn each_segment(&mut self, scope: Scope, word: &str, each: &mut dyn FnMut(Spot)) {
        let parts: &[usize] = if scope == Scope::Conversation { &[OWN, RESULTS] } else { &[OWN] };
        for &number in parts {
            let part = self.part(number);
            let Some(id) = part.id(word) else { continue };
            let Self { steps, value, repeated, .. } = self;
            part.row(&[id], steps, &mut |hit| {
                if let Some((segment, _, span)) = part.spot(hit)
                    && let Some(text) = part.text_of(segment)
                    && admits(part, text, scope, value, repeated)
                {
                    each(Spot { part: number, segment, text, span });
                }
                true
            });
        }
    }

    /// Keeps the first place in each text.
    pub(crate) fn one_per_text(spots: &mut Vec<Spot>) {
        let mut seen = HashSet::new();
        spots.retain(|spot| seen.insert((spot.part, spot.text)));
        spots.truncate(MOST);
    }

    /// Where a sign that is no token, such as `$`, stands in what the user and the program wrote.
    pub(crate) fn symbol(&mut self, sign: &str) -> Vec<Spot> {
        let spot = self.part(OWN).symbol(sign, SIGNS);
        let spot = spot.map(|(segment, text, at)| Spot { part: OWN, segment, text, span: (at, at + sign.len()) });
        spot.into_iter().collect()
    }

    /// The text of the segment that has a spot.
    pub(crate) fn text(&self, spot: Spot) -> &'a str {
        self.part(spot.part).segment_text(spot.segment).unwrap_or_default()
    }

    /// The segment of a spot, as a key.
    pub(crate) fn segment(spot: Spot) -> (usize, u32) {
        (spot.part, spot.segment)
    }

    /// Whether no text that has one of these places is trusted.
    pub(crate) fn is_untrusted(&self, spots: &[Spot]) -> bool {
        let text = |spot: &Spot| self.part(spot.part).texts.get(spot.text as usize);
        spots.iter().all(|spot| text(spot).is_some_and(|text| text.source.untrusted))
    }

    /// The spots by precedence: task, user, results from the newest on, instructions.
    pub(crate) fn sort(&self, spots: &mut [Spot]) {
        spots.sort_by_key(|spot| {
            let kind = self.part(spot.part).texts.get(spot.text as usize).map_or(Kind::None, |text| text.source.kind);
            (kind, if kind == Kind::Result { u32::MAX - spot.text } else { spot.text })
        });
    }

    /// The origin with these places; none if there are none.
    pub(crate) fn origin(&self, mut spots: Vec<Spot>, how: How) -> Option<Origin> {
        self.sort(&mut spots);
        let mut places = spots.iter().filter_map(|spot| self.part(spot.part).place(spot.segment, spot.span));
        let first = places.next()?;
        let others = places.by_ref().take(OTHERS).collect();
        Some(Origin {
            kind: first.kind,
            place: first.place,
            span: first.span,
            pointer: first.pointer,
            how,
            weak: false,
            untrusted: self.is_untrusted(&spots),
            others,
            pieces: Vec::new(),
        })
    }
}

/// Whether a text may vouch for the value: it is in the scope, and doesn't only repeat an argument of its call.
fn admits(part: &Part, text: u32, scope: Scope, value: &Words, repeated: &mut Option<Origin>) -> bool {
    let Some(text) = part.texts.get(text as usize) else { return false };
    if scope == Scope::User && !matches!(text.source.kind, Kind::Task | Kind::User) {
        return false;
    }
    for (argument, origin) in &text.echo {
        if argument.contains(value) {
            *repeated = origin.clone().filter(Origin::is_stated).or_else(|| repeated.take());
            return false;
        }
    }
    true
}

/// Whether the tokens are the wanted ones, and not others with the same hash.
fn is_written(part: &Part, hit: Hit, whole: &str) -> bool {
    let slice = part.spot(hit).and_then(|(_, text, (start, end))| text.get(start..end));
    slice.is_some_and(|slice| Words::of(slice).whole == whole)
}
