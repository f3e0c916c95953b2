//! Tokens in a row: the search that all rules stand on, and its bounds.

use super::part::{Hit, NOWHERE, Part};
use super::token::Words;

/// How many places of a word are tried, the newest first.
const PLACES: u32 = 256;
/// How many steps the search for the values of one call may take.
const STEPS: u32 = 20_000;
/// Bytes of a value that is searched with its tokens cut in other ways, too.
const RECUT: usize = 64;

/// What is left of the bound of a call.
#[derive(Debug)]
pub(crate) struct Steps {
    left: u32,
    /// Whether something was left out since this was last reset: "not found" then means "not known".
    pub(crate) is_capped: bool,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self { left: STEPS, is_capped: false }
    }

    /// Whether a value that was not found may stand somewhere all the same.
    pub(crate) fn is_unsure(&self) -> bool {
        self.is_capped || self.left == 0
    }

    pub(crate) fn take(&mut self, steps: u32) -> bool {
        if self.left < steps {
            self.left = 0;
            self.is_capped = true;
            return false;
        }
        self.left -= steps;
        true
    }
}

/// A token that may stand at a place of the value: where it ends there, and its word.
type Edges = Vec<Vec<(usize, u32)>>;

impl Part {
    /// Calls `each` with the places where words with these ids stand in a row, the newest first, until it is false.
    pub(crate) fn row(&self, ids: &[u32], steps: &mut Steps, each: &mut dyn FnMut(Hit) -> bool) {
        let rarest = ids.iter().enumerate().min_by_key(|(_, id)| self.count(**id));
        let Some((offset, &anchor)) = rarest else { return };
        let mut at = self.words.get(anchor as usize).map_or(NOWHERE, |word| word.last);
        let mut places = 0;
        while let Some(token) = self.token(at) {
            if places == PLACES {
                steps.is_capped = true;
                return;
            }
            places += 1;
            if !steps.take(1) {
                return;
            }
            let first = (at as usize).checked_sub(offset);
            if let Some(hit) = first.and_then(|first| self.follow(first, ids, steps))
                && !each(hit)
            {
                return;
            }
            at = token.prev;
        }
    }

    fn follow(&self, first: usize, ids: &[u32], steps: &mut Steps) -> Option<Hit> {
        let tokens = self.tokens.get(first..first + ids.len())?;
        let same = tokens.iter().zip(ids).enumerate();
        let equal = same.take_while(|(at, (token, id))| token.id == **id && (*at == 0 || !token.is_first())).count();
        steps.take(u32::try_from(equal / 16).unwrap_or(u32::MAX));
        let last = u32::try_from(first + ids.len() - 1).ok()?;
        (equal == ids.len()).then_some(Hit { first: u32::try_from(first).ok()?, last })
    }

    /// Calls `each` with the places where the value's tokens stand in a row, joined or separated in other ways too.
    pub(crate) fn run(&self, words: &Words, steps: &mut Steps, each: &mut dyn FnMut(Hit) -> bool) {
        let ids: Option<Vec<u32>> = words.iter().map(|word| self.id(word)).collect();
        let mut goes_on = true;
        if let Some(ids) = &ids {
            self.row(ids, steps, &mut |hit| {
                goes_on = each(hit);
                goes_on
            });
        }
        if goes_on && words.whole.len() <= RECUT && !self.tokens.is_empty() {
            self.recut(words, ids.is_some(), steps, each);
        }
    }

    fn recut(&self, words: &Words, is_row: bool, steps: &mut Steps, each: &mut dyn FnMut(Hit) -> bool) {
        let Some(edges) = self.edges(&words.whole, is_row, steps) else { return };
        let back = turned(&edges);
        let end = words.whole.len();
        let places =
            |edges: &Edges, at: usize| edges.get(at).into_iter().flatten().map(|(_, id)| self.count(*id)).sum::<u32>();
        let is_forward = places(&edges, 0) <= places(&back, end);
        let (edges, from, to) = if is_forward { (&edges, 0, end) } else { (&back, end, 0) };
        for &(next, id) in edges.get(from).into_iter().flatten() {
            let mut at = self.words.get(id as usize).map_or(NOWHERE, |word| word.last);
            let mut places = 0;
            while let Some(token) = self.token(at) {
                if places == PLACES {
                    // Values seldom stand with their first one or two letters apart: that is not worth a doubt.
                    steps.is_capped |= next.abs_diff(from) > 2;
                    break;
                }
                places += 1;
                if !steps.take(1) {
                    return;
                }
                if let Some(other) = self.walk(edges, at, (next, to), is_forward) {
                    let hit = Hit { first: at.min(other), last: at.max(other) };
                    if !each(hit) {
                        return;
                    }
                }
                at = token.prev;
            }
        }
    }

    /// The last token of a run that begins with token `at`, which leads to place `next` of the value.
    fn walk(&self, edges: &Edges, mut at: u32, (mut next, to): (usize, usize), is_forward: bool) -> Option<u32> {
        while next != to {
            let here = self.token(at)?;
            at = if is_forward { at.checked_add(1)? } else { at.checked_sub(1)? };
            let token = self.token(at)?;
            if if is_forward { token.is_first() } else { here.is_first() } {
                return None;
            }
            next = edges.get(next)?.iter().find(|(_, id)| *id == token.id)?.0;
        }
        Some(at)
    }

    /// The known words that the value can be cut into, from each of its bytes; none if there is no way, or only the
    /// one that was tried.
    fn edges(&self, whole: &str, is_row: bool, steps: &mut Steps) -> Option<Edges> {
        let mut edges: Edges = vec![Vec::new(); whole.len() + 1];
        let mut is_reached = vec![false; whole.len() + 1];
        *is_reached.first_mut()? = true;
        for (start, first) in whole.char_indices() {
            if !*is_reached.get(start)? {
                continue;
            }
            let mut hash = self.hash();
            let is_digit = first.is_ascii_digit();
            for (at, c) in whole.get(start..)?.char_indices().take_while(|(_, c)| c.is_ascii_digit() == is_digit) {
                let end = start + at + c.len_utf8();
                whole.get(start + at..end)?.bytes().for_each(|byte| hash.push(byte));
                if let Some(id) = self.ids.get(&hash.key()) {
                    edges.get_mut(start)?.push((end, *id));
                    *is_reached.get_mut(end)? = true;
                }
            }
            steps.take(1);
        }
        // The ways from each place to the end; places that lead nowhere are dropped.
        let mut ways = vec![0u32; whole.len() + 1];
        *ways.last_mut()? = 1;
        for start in (0..whole.len()).rev() {
            let list = edges.get_mut(start)?;
            list.retain(|(end, _)| ways.get(*end).is_some_and(|ways| *ways > 0));
            let sum =
                list.iter().filter_map(|(end, _)| ways.get(*end)).fold(0u32, |sum, ways| sum.saturating_add(*ways));
            *ways.get_mut(start)? = sum;
        }
        (*ways.first()? > u32::from(is_row)).then_some(edges)
    }
}

fn turned(edges: &Edges) -> Edges {
    let mut back: Edges = vec![Vec::new(); edges.len()];
    for (start, list) in edges.iter().enumerate() {
        for (end, id) in list {
            if let Some(list) = back.get_mut(*end) {
                list.push((start, *id));
            }
        }
    }
    back
}
