//! Tokens in a row: the search that all rules stand on, and its bounds.

use super::part::{Hit, NOWHERE, Part};
use super::table::Growing;
use super::token::Words;
use std::cell::Cell;
use std::ops::Range;

/// How many places of a word are tried, the newest first.
const PLACES: usize = 256;
/// How many steps the search for the values of one call may take.
const STEPS: u32 = 20_000;
/// Places of a word beyond which two numbers in a row are found by the list of both.
const FEW: u32 = 16;
/// Bytes of a value that is searched with its tokens cut in other ways, too.
const RECUT: usize = 64;

/// The steps that a call may still take.
#[derive(Debug)]
pub(crate) struct Steps {
    left: Cell<u32>,
    /// Whether something was left out since this was last reset: "not found" then means "not known".
    pub(crate) is_capped: Cell<bool>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self { left: Cell::new(STEPS), is_capped: Cell::new(false) }
    }

    /// Whether a value that was not found may stand somewhere all the same.
    pub(crate) fn is_unsure(&self) -> bool {
        self.is_capped.get() || self.is_spent()
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    pub(crate) fn take(&self, steps: usize) -> bool {
        let left = u32::try_from(steps).ok().and_then(|steps| self.left.get().checked_sub(steps));
        self.left.set(left.unwrap_or(0));
        if left.is_none() {
            self.is_capped.set(true);
        }
        left.is_some()
    }
}

/// Words in a row, with alternatives for each.
#[derive(Debug, Default)]
pub(crate) struct Row {
    ids: Vec<u32>,
    /// The end of the alternatives for each word in `ids`.
    ends: Vec<usize>,
}

impl Row {
    fn clear(&mut self) {
        self.ids.clear();
        self.ends.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The words that may stand at one place of the row.
    fn at(&self, at: usize) -> &[u32] {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(at).and_then(|end| self.ids.get(start..*end)).unwrap_or_default()
    }

    /// Adds the known ones of these words as one place of the row; false if there are none.
    fn push<'w>(&mut self, part: &Part, words: impl Iterator<Item = &'w str>) -> bool {
        let before = self.ids.len();
        for id in words.filter_map(|word| part.id(word)) {
            if !self.ids.get(before..).is_some_and(|known| known.contains(&id)) {
                self.ids.push(id);
            }
        }
        self.ends.push(self.ids.len());
        self.ids.len() > before
    }

    /// Takes the words of a pattern such as `in|within 3|three days`; false if the part can't have it.
    pub(crate) fn read(&mut self, part: &Part, pattern: &str) -> bool {
        self.clear();
        pattern.split(' ').all(|words| self.push(part, words.split('|')))
    }

    /// Takes the words as they are; false if the part doesn't have one of them.
    fn take(&mut self, part: &Part, words: &Words) -> bool {
        self.clear();
        words.iter().all(|word| self.push(part, std::iter::once(word)))
    }
}

/// Whether a text has the words of a pattern, and no others.
pub(crate) fn is_row(text: &str, pattern: &str) -> bool {
    let words = Words::of(text);
    let mut wanted = pattern.split(' ');
    words.iter().all(|word| wanted.next().is_some_and(|wanted| wanted.split('|').any(|one| one == word)))
        && wanted.next().is_none()
}

/// A known word that the value has from one of its bytes to another.
#[derive(Clone, Copy, Debug)]
struct Edge {
    start: usize,
    end: usize,
    id: u32,
}

/// Receives each place that a search finds, and ends the search by returning false.
pub(crate) type Each<'e> = &'e mut dyn FnMut(Hit) -> bool;

impl Part {
    /// Calls `each` with the places of a row, the newest first, until it is false.
    pub(crate) fn row(&self, row: &Row, steps: &Steps, each: Each<'_>) {
        let may_follow = |at: usize| {
            let pairs = |one: &u32| row.at(at).iter().any(|next| self.neighbours.may_have(*one, *next));
            row.at(at - 1).iter().any(pairs)
        };
        if !(1..row.len()).all(may_follow) {
            return;
        }
        let places = |at: &usize| row.at(*at).iter().map(|id| self.count(*id)).sum::<u32>();
        let Some(rarest) = (0..row.len()).min_by_key(places) else { return };
        let mut hit = |at: u32, offset: usize| {
            let first = (at as usize).checked_sub(offset);
            first.and_then(|first| self.follow(first, row, steps)).is_none_or(&mut *each)
        };
        let is_number = |at: &usize| [at - 1, *at].iter().flat_map(|at| row.at(*at)).all(|id| self.is_number(*id));
        match (1..row.len()).find(is_number).filter(|_| places(&rarest) > FEW) {
            Some(next) => {
                let pairs = row.at(next - 1).iter().flat_map(|one| row.at(next).iter().map(move |next| (*one, *next)));
                let heads = pairs.filter_map(|(one, next)| self.numbers.last(one, next)).collect();
                newest_first(heads, |link| self.numbers.before(link), steps, &mut |at| hit(at, next - 1));
            }
            None => self.places(row.at(rarest), steps, &mut |at| hit(at, rarest)),
        }
    }

    /// Calls `each` with the places of any of these words, the newest first, until it is false.
    fn places(&self, ids: &[u32], steps: &Steps, each: &mut dyn FnMut(u32) -> bool) {
        let last = |id: &u32| self.words.get(*id as usize).map(|word| (word.last, word.last));
        let before = |at| self.token(at).map(|token| (token.prev, token.prev));
        newest_first(ids.iter().filter_map(last).collect(), before, steps, each);
    }

    fn follow(&self, first: usize, row: &Row, steps: &Steps) -> Option<Hit> {
        let tokens = self.tokens.get(first..first + row.len())?;
        let mut same = tokens.iter().enumerate();
        let equal = same
            .position(|(at, token)| !row.at(at).contains(&token.id) || (at > 0 && token.is_first()))
            .unwrap_or(row.len());
        steps.take(equal / 16);
        let last = u32::try_from(first + row.len() - 1).ok()?;
        (equal == row.len()).then_some(Hit { first: u32::try_from(first).ok()?, last })
    }

    /// Calls `each` with the places of the first words that have one of each of the others in their segment.
    pub(crate) fn together(&self, words: &[Vec<u32>], steps: &Steps, each: Each<'_>) {
        let Some((first, others)) = words.split_first() else { return };
        let mut lacking = None;
        self.places(first, steps, &mut |at| {
            let segment = self.segment_of(at);
            if lacking == Some(segment) {
                return true;
            }
            let mut hit = Hit { first: at, last: at };
            for ids in others {
                let Some(place) = self.nearest(at, &self.tokens_of(segment), ids, steps) else {
                    lacking = Some(segment);
                    return true;
                };
                hit = Hit { first: hit.first.min(place), last: hit.last.max(place) };
            }
            each(hit)
        });
    }

    /// The place of one of these words among some tokens: the nearest one, or in a long text any.
    fn nearest(&self, at: u32, tokens: &Range<u32>, ids: &[u32], steps: &Steps) -> Option<u32> {
        let length = tokens.end - tokens.start;
        if length / 16 > ids.iter().map(|id| self.count(*id)).sum() {
            let mut found = None;
            self.places(ids, steps, &mut |place| {
                found = Some(place).filter(|place| tokens.contains(place));
                found.is_none() && place >= tokens.start
            });
            return found;
        }
        let mut tried = 0;
        let is_it =
            |place: &u32| tokens.contains(place) && self.token(*place).is_some_and(|token| ids.contains(&token.id));
        let found = (1..length).find_map(|away| {
            tried = away;
            [at.checked_add(away), at.checked_sub(away)].into_iter().flatten().find(is_it)
        });
        steps.take(tried as usize / 8);
        found
    }

    /// Calls `each` with the places where the value's tokens stand in a row, joined or separated in other ways too.
    pub(crate) fn run(&self, words: &Words, row: &mut Row, steps: &Steps, each: Each<'_>) {
        let is_known = row.take(self, words);
        let mut goes_on = true;
        if is_known {
            self.row(row, steps, &mut |hit| {
                goes_on = each(hit);
                goes_on
            });
        }
        if goes_on && words.whole.len() <= RECUT {
            self.recut(words, is_known, steps, each);
        }
    }

    fn recut(&self, words: &Words, is_known: bool, steps: &Steps, each: Each<'_>) {
        let length = words.whole.len();
        let mut edges = self.edges(&words.whole, steps);
        // The way that was tried has one edge for each token.
        if edges.is_empty() || (is_known && edges.len() == words.len()) {
            return;
        }
        let places = |is_end: fn(&Edge, usize) -> bool| {
            edges.iter().filter(|edge| is_end(edge, length)).map(|edge| self.count(edge.id)).sum::<u32>()
        };
        let is_forward = places(|edge, _| edge.start == 0) <= places(|edge, length| edge.end == length);
        if !is_forward {
            for edge in &mut edges {
                (edge.start, edge.end) = (length - edge.end, length - edge.start);
            }
            edges.sort_unstable_by_key(|edge| edge.start);
        }
        for edge in edges.iter().take_while(|edge| edge.start == 0) {
            let was_capped = steps.is_capped.get();
            let mut goes_on = true;
            self.places(&[edge.id], steps, &mut |at| {
                if let Some(other) = self.walk(&edges, at, (edge.end, length), is_forward) {
                    goes_on = each(Hit { first: at.min(other), last: at.max(other) });
                }
                goes_on
            });
            if !goes_on || steps.is_spent() {
                return;
            }
            if edge.end <= 2 {
                // Values seldom stand with their first one or two letters apart: that is not worth a doubt.
                steps.is_capped.set(was_capped);
            }
        }
    }

    /// The last token of a run that begins with token `at`, which leads to place `next` of the value.
    fn walk(&self, edges: &[Edge], mut at: u32, (mut next, to): (usize, usize), is_forward: bool) -> Option<u32> {
        while next != to {
            let here = self.token(at)?;
            at = if is_forward { at.checked_add(1)? } else { at.checked_sub(1)? };
            let token = self.token(at)?;
            if if is_forward { token.is_first() } else { here.is_first() } {
                return None;
            }
            next = from(edges, next).iter().find(|edge| edge.id == token.id)?.end;
        }
        Some(at)
    }

    /// The known words that the value can be cut into, by their starts; only those that are on a way through all of it.
    fn edges(&self, whole: &str, steps: &Steps) -> Vec<Edge> {
        let mut edges = Vec::new();
        // Bytes of the value to which a way leads: one bit for each, and the last is its end.
        let mut is_reached = 1u128;
        for (start, first) in whole.char_indices() {
            if is_reached >> start & 1 == 0 {
                continue;
            }
            steps.take(1);
            let is_digit = first.is_ascii_digit();
            let mut hash = Growing::EMPTY;
            let mut end = start;
            let rest = whole.get(start..).unwrap_or_default();
            for c in rest.chars().take_while(|c| c.is_ascii_digit() == is_digit) {
                whole.get(end..end + c.len_utf8()).into_iter().flat_map(str::bytes).for_each(|byte| hash.push(byte));
                end += c.len_utf8();
                if let Some(id) = self.table.get(hash) {
                    edges.push(Edge { start, end, id });
                    is_reached |= 1 << end;
                }
            }
        }
        self.keep_ways(&mut edges, whole.len(), steps);
        edges
    }

    /// Keeps the edges from which a way leads to the end, over words that may stand side by side.
    fn keep_ways(&self, edges: &mut Vec<Edge>, length: usize, steps: &Steps) {
        let mut leads = vec![false; edges.len()];
        for (at, edge) in edges.iter().enumerate().rev() {
            let next = edges.partition_point(|other| other.start < edge.end);
            let later = edges.iter().zip(&leads).skip(next).take_while(|(other, _)| other.start == edge.end);
            let mut tried = 0;
            let is_way = edge.end == length
                || later.filter(|(_, leads)| **leads).any(|(other, _)| {
                    tried += 1;
                    self.neighbours.may_have(edge.id, other.id)
                });
            if !steps.take(tried / 8) {
                break;
            }
            if let Some(leads) = leads.get_mut(at) {
                *leads = is_way;
            }
        }
        let mut leads = leads.into_iter();
        edges.retain(|_| leads.next() == Some(true));
    }
}

/// Calls `each` with the places of several lists. A list is given by its last place and the place's number in it.
fn newest_first(
    mut heads: Vec<(u32, u32)>,
    before: impl Fn(u32) -> Option<(u32, u32)>,
    steps: &Steps,
    each: &mut dyn FnMut(u32) -> bool,
) {
    let most = PLACES * heads.len();
    for tried in 0.. {
        let Some(newest) = heads.iter_mut().filter(|head| head.0 != NOWHERE).max() else { return };
        if tried == most {
            steps.is_capped.set(true);
            return;
        }
        let (at, number) = *newest;
        *newest = before(number).unwrap_or((NOWHERE, NOWHERE));
        if !steps.take(1) || !each(at) {
            return;
        }
    }
}

/// The edges that start at a byte.
fn from(edges: &[Edge], start: usize) -> &[Edge] {
    let first = edges.partition_point(|edge| edge.start < start);
    let rest = edges.get(first..).unwrap_or_default();
    rest.get(..rest.partition_point(|edge| edge.start == start)).unwrap_or_default()
}
