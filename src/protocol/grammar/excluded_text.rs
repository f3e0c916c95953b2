//! Free text in which certain things must not stand: as an automaton for engines that know rules only, and as a regular
//! expression for those that can take one away from another.

use super::chars::CharSet;
use super::rules::{Node, RuleId, Rules};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::protocol) struct Part {
    /// One after the other.
    items: Vec<Item>,
    /// Whether it counts only where the text begins.
    at_start: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Item {
    One(CharSet),
    /// Any number of these.
    Some(CharSet),
}

impl Part {
    pub(in crate::protocol) fn new() -> Self {
        Self { items: Vec::new(), at_start: false }
    }

    /// At the beginning of the text only.
    pub(in crate::protocol) fn at_start() -> Self {
        Self { items: Vec::new(), at_start: true }
    }

    /// Then this text, in any case of its letters.
    pub(in crate::protocol) fn text(mut self, text: &str) -> Self {
        self.items.extend(text.chars().map(|character| {
            let cases = [character.to_ascii_lowercase(), character.to_ascii_uppercase()];
            Item::One(CharSet::ranges(cases.map(|case| (case, case))))
        }));
        self
    }

    /// Then this text as it is.
    pub(in crate::protocol) fn exactly(mut self, text: &str) -> Self {
        self.items.extend(text.chars().map(|character| Item::One(CharSet::ranges([(character, character)]))));
        self
    }

    /// Then one character of a set.
    pub(in crate::protocol) fn one(mut self, set: CharSet) -> Self {
        self.items.push(Item::One(set));
        self
    }

    /// Then any number of them.
    pub(in crate::protocol) fn some(mut self, set: CharSet) -> Self {
        self.items.push(Item::Some(set));
        self
    }

    /// Then any number of blanks.
    pub(in crate::protocol) fn blanks(self) -> Self {
        self.some(CharSet::of(" \t\r\n"))
    }

    fn regex(&self, out: &mut String) {
        for item in &self.items {
            match item {
                Item::One(set) => set.write(out),
                Item::Some(set) => {
                    set.write(out);
                    out.push('*');
                }
            }
        }
    }
}

/// Texts without certain parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(in crate::protocol) struct Without {
    /// What the text is made of.
    pub(in crate::protocol) of: CharSet,
    /// What it must not hold.
    pub(in crate::protocol) never: Vec<Part>,
    /// What it must not end with.
    pub(in crate::protocol) last: Vec<Part>,
}

/// Where an automaton is: in which part, before which item; in order.
type Places = Vec<(usize, usize)>;

impl Without {
    /// The texts as a node.
    pub(in crate::protocol) fn node(self, rules: &mut Rules, hint: &str) -> Node {
        let rule = self.automaton(rules, hint);
        Node::Without(Box::new(self), rule)
    }

    /// As a regular expression of llguidance, with its `&` and `~`.
    pub(in crate::protocol) fn lark(&self, out: &mut String) {
        out.push_str("(/");
        self.of.write(out);
        out.push_str("*/");
        let mut none = |parts: &[Part], at_start: bool, after: &str| {
            for (at, part) in parts.iter().filter(|part| part.at_start == at_start).enumerate() {
                out.push_str(match (at, at_start) {
                    (0, false) => " & ~/(?s:.*)(?:",
                    (0, true) => " & ~/(?:",
                    _ => "|",
                });
                part.regex(out);
            }
            if parts.iter().any(|part| part.at_start == at_start) {
                out.push(')');
                out.push_str(after);
                out.push('/');
            }
        };
        for at_start in [false, true] {
            none(&self.never, at_start, "(?s:.*)");
            none(&self.last, at_start, "");
        }
        out.push(')');
    }

    /// One rule for each state: the characters that lead on, and the end where the text may end.
    fn automaton(&self, rules: &mut Rules, hint: &str) -> RuleId {
        let states = self.merged();
        let ids: Vec<RuleId> = states.iter().map(|_| rules.reserve()).collect();
        for (state, id) in states.iter().zip(&ids) {
            let ways = state.ways.iter().filter_map(|(set, next)| {
                Some(Node::sequence([Node::Class(set.clone()), Node::Rule(*ids.get(*next)?)]))
            });
            let body = Node::choice(ways.chain(state.ends.then(Node::empty))).unwrap_or_else(Node::empty);
            rules.define(*id, hint, body, false);
        }
        ids.first().copied().unwrap_or_else(|| rules.reserve())
    }

    /// The states, the first of which is the text's beginning. Those of texts around calls take a while to find, and
    /// depend on the tags alone: they are kept.
    fn merged(&self) -> Arc<Vec<Merged>> {
        static KEPT: LazyLock<Mutex<HashMap<Without, Arc<Vec<Merged>>>>> = LazyLock::new(Mutex::default);
        const MOST: usize = 16;

        let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().get(self) {
            return Arc::clone(known);
        }
        let automaton = Automaton::new(self);
        let states = automaton.states();
        let kinds = merged(&states);
        let count = kinds.iter().max().map_or(0, |most| most + 1);
        let mut found: Vec<Merged> = Vec::with_capacity(count);
        for (state, &kind) in states.iter().zip(&kinds) {
            // A kind is numbered when it is first met.
            if kind < found.len() {
                continue;
            }
            let mut ways: Vec<(usize, Vec<(char, char)>)> = Vec::new();
            for (letter, next) in automaton.letters.iter().zip(&state.next) {
                let Some(next) = next.and_then(|next| kinds.get(next)) else { continue };
                match ways.iter_mut().find(|(target, _)| target == next) {
                    Some((_, pairs)) => pairs.extend(letter.pairs()),
                    None => ways.push((*next, letter.pairs().collect())),
                }
            }
            let ways = ways.into_iter().map(|(next, pairs)| (CharSet::ranges(pairs), next)).collect();
            found.push(Merged { ways, ends: state.ends });
        }
        let found = Arc::new(found);
        if !self.never.is_empty() {
            let mut kept = kept();
            if kept.len() >= MOST {
                kept.clear();
            }
            kept.insert(self.clone(), Arc::clone(&found));
        }
        found
    }
}

/// States of which nothing that follows tells one from another.
#[derive(Debug)]
struct Merged {
    /// The characters that lead on, with the state that they lead to.
    ways: Vec<(CharSet, usize)>,
    ends: bool,
}

/// Where one is in a text.
struct State {
    /// For each letter, the state that it leads to.
    next: Vec<Option<usize>>,
    /// Whether the text may end here.
    ends: bool,
}

/// The kind of each state: states are of one kind where nothing that follows tells them apart.
fn merged(states: &[State]) -> Vec<usize> {
    let mut kinds: Vec<usize> = states.iter().map(|state| usize::from(state.ends)).collect();
    let mut count = 0;
    loop {
        let mut known: HashMap<(usize, Vec<Option<usize>>), usize> = HashMap::new();
        let next: Vec<usize> = states
            .iter()
            .zip(&kinds)
            .map(|(state, kind)| {
                let targets = state.next.iter().map(|next| next.and_then(|next| kinds.get(next).copied())).collect();
                let fresh = known.len();
                *known.entry((*kind, targets)).or_insert(fresh)
            })
            .collect();
        kinds = next;
        if known.len() == count {
            return kinds;
        }
        count = known.len();
    }
}

/// The parts of a text as an automaton: what each item takes, by the letters that they tell apart.
struct Automaton {
    /// How many parts, the first, must not stand anywhere.
    never: usize,
    parts: Vec<(bool, Vec<Step>)>,
    letters: Vec<CharSet>,
}

struct Step {
    again: bool,
    takes: Vec<bool>,
}

impl Automaton {
    fn new(text: &Without) -> Self {
        let all = || text.never.iter().chain(&text.last);
        let set_of = |item: &Item| match item {
            Item::One(set) | Item::Some(set) => set.clone(),
        };
        // In order, so that the same texts become the same rules.
        let sets: BTreeSet<CharSet> = all().flat_map(|part| &part.items).map(set_of).collect();
        let letters = CharSet::partition(&text.of, sets.iter());
        let takes: BTreeMap<CharSet, Vec<bool>> = sets
            .into_iter()
            .map(|set| {
                let takes = letters.iter().map(|letter| letter.first().is_some_and(|one| set.contains(one))).collect();
                (set, takes)
            })
            .collect();
        let step = |item: &Item| Step {
            again: matches!(item, Item::Some(_)),
            takes: takes.get(&set_of(item)).cloned().unwrap_or_default(),
        };
        let parts = all().map(|part| (part.at_start, part.items.iter().map(step).collect())).collect();
        Self { never: text.never.len(), parts, letters }
    }

    fn states(&self) -> Vec<State> {
        let starts = self.starts(false);
        // What each letter begins, wherever it stands.
        let begun: Vec<Places> = (0..self.letters.len()).map(|letter| self.after(&starts, letter)).collect();
        // Beginnings are everywhere: they are not kept.
        let first: Places = self.starts(true).into_iter().filter(|place| !starts.contains(place)).collect();
        let mut known: HashMap<Places, usize> = HashMap::from([(first.clone(), 0)]);
        let mut pending = vec![first];
        let mut states: Vec<State> = Vec::new();
        while let Some(places) = pending.get(states.len()).cloned() {
            let mut next = Vec::with_capacity(begun.len());
            for (letter, begun) in begun.iter().enumerate() {
                let mut after = self.after(&places, letter);
                after.extend(begun);
                after.sort_unstable();
                after.dedup();
                let broken = after.iter().any(|&(part, item)| part < self.never && self.is_whole(part, item));
                next.push((!broken).then(|| {
                    *known.entry(after).or_insert_with_key(|after| {
                        pending.push(after.clone());
                        pending.len() - 1
                    })
                }));
            }
            let ends = !places.iter().any(|&(part, item)| part >= self.never && self.is_whole(part, item));
            states.push(State { next, ends });
        }
        states
    }

    fn item(&self, part: usize, item: usize) -> Option<&Step> {
        self.parts.get(part)?.1.get(item)
    }

    fn is_whole(&self, part: usize, item: usize) -> bool {
        self.item(part, item).is_none()
    }

    /// A place, and where one may be without another character.
    fn enter(&self, part: usize, mut item: usize, into: &mut Places) {
        into.push((part, item));
        while self.item(part, item).is_some_and(|step| step.again) {
            item += 1;
            into.push((part, item));
        }
    }

    fn starts(&self, anchored: bool) -> Places {
        let mut places = Places::new();
        for (at, (at_start, _)) in self.parts.iter().enumerate() {
            if anchored || !at_start {
                self.enter(at, 0, &mut places);
            }
        }
        places
    }

    /// Where a letter leads from `places`.
    fn after(&self, places: &Places, letter: usize) -> Places {
        let mut next = Places::new();
        for &(part, item) in places {
            let Some(step) = self.item(part, item) else { continue };
            if step.takes.get(letter) == Some(&true) {
                self.enter(part, if step.again { item } else { item + 1 }, &mut next);
            }
        }
        next
    }
}
