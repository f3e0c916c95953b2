//! The search for one value: which texts have it, and what that makes of its origin.

use super::echo::Echoes;
use super::from::{How, Kind, Origin};
use super::index::{ARGUMENTS, MODEL, OWN, RESULTS, SCHEMA, Texts};
use super::part::Part;
use super::run::{Each, Row, Steps, is_row};
use super::token::Words;
use serde_json::Value;
use std::cell::OnceCell;
use std::rc::Rc;
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
    /// What the model made up for earlier calls.
    Arguments,
    /// One new result.
    Quotes(u32),
}

/// The part of the schema of the call itself, beside those of the index.
const CALLED: usize = 5;
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
    part: OnceCell<Arc<Part>>,
}

impl<'s> Called<'s> {
    pub(crate) fn new(schema: &'s Value, description: &'s str) -> Self {
        Self { schema, description, part: OnceCell::new() }
    }
}

/// Decides on a place from the text of its segment: the span of the value there, or none if it isn't there.
pub(crate) type Check<'c> = &'c mut dyn FnMut(&str, (usize, usize)) -> Option<(usize, usize)>;

pub(crate) struct Look<'a> {
    pub(crate) texts: &'a Texts,
    pub(crate) steps: Steps,
    /// The schema of the called tool.
    called: &'a Called<'a>,
    pub(crate) echoes: Echoes,
    /// The row that is searched.
    row: Row,
}

impl<'a> Look<'a> {
    pub(crate) fn new(texts: &'a Texts, called: &'a Called<'a>) -> Self {
        Self { texts, called, steps: Steps::new(), echoes: Echoes::default(), row: Row::default() }
    }

    /// Begins the search for a value, by its text. Gives its tokens.
    pub(crate) fn begin(&mut self, value: &str) -> Rc<Words> {
        self.echoes.begin(value);
        self.steps.is_capped.set(false);
        self.value()
    }

    /// The tokens of the value that is searched.
    pub(crate) fn value(&self) -> Rc<Words> {
        Rc::clone(&self.echoes.value)
    }

    pub(crate) fn part(&self, part: usize) -> &'a Part {
        if part != CALLED {
            return self.texts.part(part);
        }
        let Called { schema, description, part } = self.called;
        part.get_or_init(|| self.texts.schemas.part(schema, description))
    }

    fn parts(scope: Scope) -> &'static [usize] {
        match scope {
            Scope::Conversation => &[OWN, RESULTS],
            Scope::User => &[OWN],
            Scope::Schema => &[CALLED, SCHEMA],
            Scope::Model => &[MODEL],
            Scope::Arguments => &[ARGUMENTS],
            Scope::Quotes(_) => &[RESULTS],
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

    /// Where words stand in a row, joined or separated in any way.
    pub(crate) fn run(&mut self, scope: Scope, words: &Words, check: Check<'_>) -> Vec<Spot> {
        let is_written = |slice: &str| Words::of(slice).whole == words.whole;
        self.search(scope, &is_written, check, &|part, row, steps, each| part.run(words, row, steps, each))
    }

    /// Where words stand in a row: those of a pattern such as `in|within 3|three days`.
    pub(crate) fn row(&mut self, scope: Scope, pattern: &str, check: Check<'_>) -> Vec<Spot> {
        self.search(scope, &|slice| is_row(slice, pattern), check, &|part, row, steps, each| {
            if row.read(part, pattern) {
                part.row(row, steps, each);
            }
        })
    }

    /// Where one of each of these alternatives stands, all in one segment.
    pub(crate) fn together(&mut self, scope: Scope, words: &[String]) -> Vec<Spot> {
        self.search(scope, &|_| true, &mut |_, span| Some(span), &|part, _, steps, each| {
            let known = |forms: &String| forms.split('|').filter_map(|form| part.id(form)).collect::<Vec<_>>();
            let mut ids: Vec<Vec<u32>> = words.iter().map(known).collect();
            ids.sort_by_cached_key(|ids| ids.iter().map(|id| part.count(*id)).sum::<u32>());
            if ids.first().is_some_and(|rarest| !rarest.is_empty()) {
                part.together(&ids, steps, each);
            }
        })
    }

    fn search(
        &mut self,
        scope: Scope,
        is_written: &dyn Fn(&str) -> bool,
        check: Check<'_>,
        find: &dyn Fn(&Part, &mut Row, &Steps, Each<'_>),
    ) -> Vec<Spot> {
        let mut spots: Vec<Spot> = Vec::new();
        for &number in Self::parts(scope) {
            let part = self.part(number);
            let before = spots.len();
            let was_capped = self.steps.is_capped.get();
            let Self { steps, row, echoes, texts, .. } = self;
            find(part, row, steps, &mut |hit| {
                let Some((segment, text, span)) = part.spot(hit) else { return true };
                let Some(number_of_text) = part.text_of(segment) else { return true };
                if let Scope::Quotes(result) = scope
                    && number_of_text < result
                {
                    return false;
                }
                let is_known = !matches!(scope, Scope::Quotes(_))
                    && spots.iter().any(|spot| spot.part == number && spot.text == number_of_text);
                if is_known
                    || !is_in(scope, part, number_of_text)
                    || !echoes.admits(texts, scope, number, number_of_text)
                {
                    return true;
                }
                // Two words may have the same hash: the text itself decides.
                let checked = check(text, span).filter(|_| text.get(span.0..span.1).is_some_and(is_written));
                let spot = checked.map(|span| Spot { part: number, segment, text: number_of_text, span });
                spots.extend(spot.filter(|spot| echoes.admits_place(texts, scope, spot)));
                goes_on(texts, part, scope, spots.split_at(before.min(spots.len())))
            });
            if spots.len() > before {
                // It is found: what is left out may only be further places.
                self.steps.is_capped.set(was_capped);
            }
        }
        spots
    }

    /// Where a sign that is no token, such as `$`, stands in what the user and the program wrote.
    pub(crate) fn symbol(&self, sign: &str) -> Option<Spot> {
        let (segment, text, at) = self.part(OWN).symbol(sign, SIGNS)?;
        Some(Spot { part: OWN, segment, text, span: (at, at + sign.len()) })
    }

    /// The text of the segment that has a spot.
    pub(crate) fn text(&self, spot: Spot) -> &'a str {
        self.part(spot.part).segment_text(spot.segment).unwrap_or_default()
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

/// Whether a text is one of those that are searched.
fn is_in(scope: Scope, part: &Part, text: u32) -> bool {
    let kind = part.texts.get(text as usize).map(|text| text.source.kind);
    scope != Scope::User || matches!(kind, Some(Kind::Task | Kind::User))
}

/// Whether a value is searched in more texts of a part, which has the second of these places.
fn goes_on(texts: &Texts, part: &Part, scope: Scope, (before, found): (&[Spot], &[Spot])) -> bool {
    if matches!(scope, Scope::Quotes(_)) {
        return found.len() < MOST;
    }
    // The schema is trusted as much as the tool is: its places are all taken.
    let trusts = |spot: &Spot| {
        spot.part != CALLED
            && texts.part(spot.part).texts.get(spot.text as usize).is_some_and(|text| !text.source.untrusted)
    };
    // The newest result and three more are shown; the others matter only if one of them may be trusted.
    let is_uniform = part.is_uniform();
    let enough = if is_uniform && found.first().is_some_and(|spot| spot.part == RESULTS) { SHOWN } else { ENOUGH };
    let is_enough = found.len() >= enough && (is_uniform || before.iter().chain(found).any(trusts));
    found.len() < part.texts.len().min(MOST) && !is_enough
}
