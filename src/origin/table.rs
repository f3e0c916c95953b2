//! The words of a part by their numbers, and which of them stand side by side.
//!
//! The hashes are fixed, so that a search finds the same in every process. Their keys are no secret: somebody may write
//! words that all belong in one place of the table. Only a few places are tried, and the other words go into a tree.

use std::collections::BTreeMap;

/// A hash that grows byte by byte, so that every prefix of a value is hashed in one pass.
///
/// Two words may have the same hash. They are then one word of the index, and the text at a place decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growing(u64);

impl Growing {
    pub(crate) const EMPTY: Self = Self(0x9e37_79b9_7f4a_7c15);

    pub(crate) fn push(&mut self, byte: u8) {
        self.0 = mixed(self.0 ^ u64::from(byte));
    }

    pub(crate) fn of(word: &str) -> Self {
        let mut hash = Self::EMPTY;
        word.bytes().for_each(|byte| hash.push(byte));
        hash
    }
}

fn mixed(number: u64) -> u64 {
    let product = number.wrapping_mul(0xd6e8_feb8_6659_fd93);
    product ^ product >> 32
}

/// Places of the table that are tried for one word.
const TRIES: usize = 32;

/// The numbers of words, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Half of a hash and the word's number plus 1; 0 for an empty place.
    slots: Vec<u64>,
    hashes: Vec<u64>,
    /// The words that found all their places in the table taken.
    crowded: BTreeMap<u64, u32>,
}

impl Table {
    const NUMBER: u64 = 0xffff_ffff;

    pub(crate) fn get(&self, Growing(hash): Growing) -> Option<u32> {
        for at in self.places(hash) {
            match *self.slots.get(at)? {
                0 => return None,
                slot if (slot ^ hash) & !Self::NUMBER == 0 => {
                    let id = u32::try_from((slot & Self::NUMBER) - 1).ok()?;
                    if self.hashes.get(id as usize) == Some(&hash) {
                        return Some(id);
                    }
                }
                _ => {}
            }
        }
        self.crowded.get(&hash).copied()
    }

    /// The number of a word, which is added if it is new.
    pub(crate) fn add(&mut self, hash: Growing) -> u32 {
        if let Some(id) = self.get(hash) {
            return id;
        }
        let id = u32::try_from(self.hashes.len()).unwrap_or(u32::MAX);
        self.hashes.push(hash.0);
        if self.hashes.len() * 2 > self.slots.len() {
            self.slots = vec![0; (self.hashes.len() * 4).next_power_of_two()];
            self.crowded.clear();
            let hashes = std::mem::take(&mut self.hashes);
            hashes.iter().zip(0..).for_each(|(hash, id)| self.put(*hash, id));
            self.hashes = hashes;
        } else {
            self.put(hash.0, id);
        }
        id
    }

    fn put(&mut self, hash: u64, id: u32) {
        let free = self.places(hash).find(|at| self.slots.get(*at) == Some(&0));
        match free.and_then(|at| self.slots.get_mut(at)) {
            Some(slot) => *slot = (hash & !Self::NUMBER) | (u64::from(id) + 1),
            None => drop(self.crowded.insert(hash, id)),
        }
    }

    fn places(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let mask = self.slots.len().wrapping_sub(1);
        let first = usize::try_from(hash & Self::NUMBER).unwrap_or(0);
        (0..TRIES).map(move |step| (first + step) & mask)
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.slots.capacity() + self.hashes.capacity()) * size_of::<u64>()
            + self.crowded.len() * size_of::<(u64, u32)>() * 2
    }
}

fn pair(one: u32, next: u32) -> u64 {
    mixed(mixed(u64::from(one) << 32 | u64::from(next)))
}

/// Which words stand side by side. It may say so of two that don't, and never denies it of two that do.
#[derive(Debug, Default)]
pub(crate) struct Neighbours(Vec<u64>);

impl Neighbours {
    /// Pairs for 64 bits.
    const PAIRS: usize = 8;

    pub(crate) fn for_pairs(count: usize) -> Self {
        Self(vec![0; count.div_ceil(Self::PAIRS).next_power_of_two()])
    }

    /// Whether so many pairs make it say yes too often.
    pub(crate) fn is_full(&self, pairs: usize) -> bool {
        pairs > self.0.len() * Self::PAIRS
    }

    /// The word of 64 bits that keeps a pair, and the pair's three bits in it.
    fn place(&self, one: u32, next: u32) -> (usize, u64) {
        let hash = pair(one, next);
        let bits = (1 << (hash & 63)) | (1 << (hash >> 6 & 63)) | (1 << (hash >> 12 & 63));
        (usize::try_from(hash >> 32).unwrap_or(0) & self.0.len().wrapping_sub(1), bits)
    }

    pub(crate) fn add(&mut self, one: u32, next: u32) {
        let (at, bits) = self.place(one, next);
        self.0.get_mut(at).into_iter().for_each(|word| *word |= bits);
    }

    pub(crate) fn may_have(&self, one: u32, next: u32) -> bool {
        let (at, bits) = self.place(one, next);
        self.0.get(at).is_some_and(|word| word & bits == bits)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }
}

/// A place of a pair.
#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    place: u32,
    /// The entry before it in its list, plus 1.
    before: u32,
}

/// The places of pairs of words, in lists. A list may have places of other pairs, too.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// The last entry of each list, plus 1.
    lasts: Vec<u32>,
    entries: Vec<Entry>,
}

impl Pairs {
    /// The list of a pair.
    fn list(&self, hash: u32) -> usize {
        hash as usize & self.lasts.len().wrapping_sub(1)
    }

    pub(crate) fn add(&mut self, one: u32, next: u32, place: u32) {
        let hash = u32::try_from(pair(one, next) >> 32).unwrap_or(0);
        self.entries.push(Entry { hash, place, before: 0 });
        if self.entries.len() <= self.lasts.len() {
            self.link(self.entries.len() - 1);
            return;
        }
        self.lasts = vec![0; self.entries.len().next_power_of_two().max(16)];
        (0..self.entries.len()).for_each(|entry| self.link(entry));
    }

    fn link(&mut self, number: usize) {
        let Some(list) = self.entries.get(number).map(|entry| self.list(entry.hash)) else { return };
        let (Some(entry), Some(newest)) = (self.entries.get_mut(number), self.lasts.get_mut(list)) else { return };
        entry.before = *newest;
        *newest = u32::try_from(number + 1).unwrap_or(0);
    }

    fn at(&self, number: u32) -> Option<(u32, u32)> {
        let entry = self.entries.get(number.checked_sub(1)? as usize)?;
        Some((entry.place, number))
    }

    /// The last place in the list of a pair, and its number there.
    pub(crate) fn last(&self, one: u32, next: u32) -> Option<(u32, u32)> {
        let hash = u32::try_from(pair(one, next) >> 32).unwrap_or(0);
        self.at(*self.lasts.get(self.list(hash))?)
    }

    /// The place before that with this number, and its number.
    pub(crate) fn before(&self, number: u32) -> Option<(u32, u32)> {
        self.at(self.entries.get(number.checked_sub(1)? as usize)?.before)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lasts.capacity() * size_of::<u32>() + self.entries.capacity() * size_of::<Entry>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_numbers() {
        let mut table = Table::default();
        let word = |number: u32| Growing::of(&format!("word{number}"));
        for number in 0..5000 {
            assert_eq!(table.get(word(number)), None);
            assert_eq!(table.add(word(number)), number);
            assert_eq!(table.add(word(number / 2)), number / 2);
        }
        assert!((0..5000).all(|number| table.get(word(number)) == Some(number)));
        assert!(table.crowded.is_empty());
    }

    #[test]
    fn words_that_belong_in_one_place_do_not_make_it_slow() {
        let mut table = Table::default();
        let colliding = |number: u32| Growing(u64::from(number) << 32);
        for number in 0..50_000 {
            assert_eq!(table.add(colliding(number)), number);
        }
        assert!((0..50_000).all(|number| table.get(colliding(number)) == Some(number)));
        assert_eq!(table.get(colliding(50_000)), None);
        // The others are in the tree. A search in it takes the logarithm of their number.
        assert_eq!(table.crowded.len(), 50_000 - TRIES);
    }

    #[test]
    fn neighbours_are_never_denied_and_others_seldom_asserted() {
        let mut pairs = Neighbours::for_pairs(4000);
        (0..4000).for_each(|one| pairs.add(one, one * 7 % 4000));
        assert!((0..4000).all(|one| pairs.may_have(one, one * 7 % 4000)));
        let wrong = (0..4000).filter(|one| pairs.may_have(*one, (one * 7 + 1) % 4000)).count();
        assert!(wrong < 200 && !pairs.is_full(4000) && pairs.is_full(8000), "{wrong}");
    }

    #[test]
    fn pairs_have_their_places() {
        let mut pairs = Pairs::default();
        let numbers = |place: u32| (place * 7 % 30, place * 11 % 13);
        for place in 0..3000 {
            let (one, next) = numbers(place);
            pairs.add(one, next, place);
        }
        for (one, next) in [(0, 0), (7, 11), (29, 12), (31, 2)] {
            let all = std::iter::successors(pairs.last(one, next), |(_, number)| pairs.before(*number));
            let found: Vec<u32> = all.map(|(place, _)| place).filter(|place| numbers(*place) == (one, next)).collect();
            let expected: Vec<u32> = (0..3000).rev().filter(|place| numbers(*place) == (one, next)).collect();
            assert_eq!(found, expected);
        }
    }
}
