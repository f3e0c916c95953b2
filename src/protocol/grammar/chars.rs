//! Sets of characters: what a class of a grammar admits.

/// A set of characters as sorted ranges that neither touch nor overlap.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(in crate::protocol) struct CharSet {
    ranges: Vec<(u32, u32)>,
}

/// Code points around the surrogates, which are no characters.
const ALL: [(u32, u32); 2] = [(0, 0xD7FF), (0xE000, 0x0010_FFFF)];

impl CharSet {
    /// Every character there is.
    pub(in crate::protocol) fn all() -> Self {
        Self { ranges: ALL.to_vec() }
    }

    /// The characters of these ranges, ends included.
    pub(in crate::protocol) fn ranges(ranges: impl IntoIterator<Item = (char, char)>) -> Self {
        let ranges = ranges.into_iter().map(|(low, high)| (u32::from(low), u32::from(high)));
        let mut ranges: Vec<(u32, u32)> = ranges.filter(|(low, high)| low <= high).collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        let mut set = Self { ranges: merged };
        // A range across the surrogates holds no more than the characters on both sides.
        if set.ranges.iter().any(|&(low, high)| low < 0xD800 && high > 0xDFFF) {
            set = set.complement().complement();
        }
        set
    }

    pub(in crate::protocol) fn of(characters: &str) -> Self {
        Self::ranges(characters.chars().map(|character| (character, character)))
    }

    /// The decimal digits of ASCII.
    pub(in crate::protocol) fn digits() -> Self {
        Self::ranges([('0', '9')])
    }

    /// The controls that JSON escapes.
    pub(in crate::protocol) fn controls() -> Self {
        Self::ranges([('\0', '\u{1f}')])
    }

    /// Every blank of some dialect of regular expressions.
    pub(in crate::protocol) fn blanks() -> Self {
        Self::ranges([
            ('\t', '\r'),
            ('\u{1c}', ' '),
            ('\u{85}', '\u{85}'),
            ('\u{a0}', '\u{a0}'),
            ('\u{1680}', '\u{1680}'),
            ('\u{180e}', '\u{180e}'),
            ('\u{2000}', '\u{200a}'),
            ('\u{2028}', '\u{2029}'),
            ('\u{202f}', '\u{202f}'),
            ('\u{205f}', '\u{205f}'),
            ('\u{3000}', '\u{3000}'),
            ('\u{feff}', '\u{feff}'),
        ])
    }

    pub(in crate::protocol) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(in crate::protocol) fn first(&self) -> Option<char> {
        self.pairs().next().map(|(low, _)| low)
    }

    /// `whole` in parts, each of which is inside or outside every one of `sets`.
    pub(in crate::protocol) fn partition<'a>(whole: &Self, sets: impl Iterator<Item = &'a Self>) -> Vec<Self> {
        let mut parts = vec![whole.clone()];
        for set in sets {
            let split = parts.iter().flat_map(|part| [part.intersect(set), part.minus(set)]);
            parts = split.filter(|part| !part.is_empty()).collect();
        }
        parts
    }

    pub(in crate::protocol) fn contains(&self, character: char) -> bool {
        let code = u32::from(character);
        self.ranges.iter().any(|&(low, high)| low <= code && code <= high)
    }

    pub(in crate::protocol) fn union(&self, other: &Self) -> Self {
        Self::ranges(self.pairs().chain(other.pairs()))
    }

    pub(in crate::protocol) fn complement(&self) -> Self {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 2);
        for (first, last) in ALL {
            let mut next = first;
            for &(low, high) in self.ranges.iter().filter(|&&(low, high)| high >= first && low <= last) {
                if low > next {
                    ranges.push((next, low - 1));
                }
                next = next.max(high.saturating_add(1));
            }
            if next <= last {
                ranges.push((next, last));
            }
        }
        Self { ranges }
    }

    pub(in crate::protocol) fn minus(&self, other: &Self) -> Self {
        self.intersect(&other.complement())
    }

    pub(in crate::protocol) fn intersect(&self, other: &Self) -> Self {
        self.complement().union(&other.complement()).complement()
    }

    /// The ranges as characters.
    pub(in crate::protocol) fn pairs(&self) -> impl Iterator<Item = (char, char)> {
        self.ranges.iter().filter_map(|&(low, high)| Some((char::from_u32(low)?, char::from_u32(high)?)))
    }

    /// The class in brackets. Every engine reads it alike: what has a meaning in some class syntax, and what is not
    /// seen, is written by its number, in the one way that all of them know; the rest stands as it is.
    pub(in crate::protocol) fn write(&self, out: &mut String) {
        let complement = self.complement();
        let negated = complement.ranges.len() < self.ranges.len() || self.contains(char::MAX);
        out.push_str(if negated { "[^" } else { "[" });
        let shown = if negated { &complement } else { self };
        for (low, high) in shown.pairs() {
            write_character(low, out);
            if high > low {
                if u32::from(high) > u32::from(low) + 1 {
                    out.push('-');
                }
                write_character(high, out);
            }
        }
        // An empty negation is every character.
        if negated && complement.is_empty() {
            out.push_str("\\x00");
        }
        out.push(']');
    }
}

fn write_character(character: char, out: &mut String) {
    let code = u32::from(character);
    let text = match code {
        _ if character.is_ascii_alphanumeric() || character == ' ' => character.to_string(),
        0..=0xFF => format!("\\x{code:02x}"),
        0x1000..=0xFFFF => format!("\\u{code:04x}"),
        _ => character.to_string(),
    };
    out.push_str(&text);
}

#[cfg(test)]
mod tests {
    use super::CharSet;

    fn written(set: &CharSet) -> String {
        let mut text = String::new();
        set.write(&mut text);
        text
    }

    #[test]
    fn ranges_merge() {
        assert_eq!(written(&CharSet::ranges([('d', 'f'), ('a', 'c'), ('b', 'e')])), "[a-f]");
        assert_eq!(written(&CharSet::of("ba")), "[ab]");
        assert_eq!(written(&CharSet::of("]-^/")), "[\\x2d\\x2f\\x5d\\x5e]");
    }

    #[test]
    fn sets_combine() {
        let letters = CharSet::ranges([('a', 'z')]);
        assert_eq!(written(&letters.minus(&CharSet::of("x"))), "[a-wyz]");
        assert_eq!(written(&letters.intersect(&CharSet::of("aZ"))), "[a]");
        assert_eq!(written(&CharSet::of("\"\\").complement()), "[^\\x22\\x5c]");
        assert_eq!(letters.complement().complement(), letters);
    }
}
