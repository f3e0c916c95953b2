//! Texts as folded tokens: compatibility forms, case and accents don't count.
//!
//! A token is a run of letters or of digits. It ends where the case changes (`camelCase`) and after `LONGEST`
//! characters; Han, Kana and Thai characters are one token each, because these scripts write no spaces.

use unicode_normalization::char::{canonical_combining_class, decompose_compatible};

/// Characters in a token: a longer word is cut, so that the length of a token fits into a byte.
pub(crate) const LONGEST: usize = 60;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Class {
    #[default]
    Gap,
    Digit,
    Letter,
    Single,
    /// Accents and the like: they belong to the token before them.
    Mark,
}

/// The first digits of the decimal digits in scripts that are not folded to ASCII by compatibility.
const ZEROS: [u32; 6] = [0x0660, 0x06f0, 0x0966, 0x09e6, 0x0e50, 0x0ae6];

/// The ASCII digit that a digit of any common script stands for.
pub(crate) fn digit(c: char) -> Option<char> {
    if c.is_ascii_digit() {
        return Some(c);
    }
    let code = u32::from(c);
    let zero = ZEROS.into_iter().chain([0xff10]).find(|zero| (*zero..zero + 10).contains(&code))?;
    char::from_digit(code - zero, 10)
}

/// Whether this character stands for a word or syllable of its own, in text without spaces.
pub(crate) fn is_single(c: char) -> bool {
    matches!(u32::from(c), 0x0e01..=0x0e4f | 0x3005..=0x3007 | 0x3040..=0x30ff | 0x31f0..=0x31ff | 0x3400..=0x9fff
        | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

/// Appends the folded form of a character, and says what it is.
pub(crate) fn fold(c: char, folded: &mut String) -> Class {
    let mut class = Class::Gap;
    let before = folded.len();
    let mut is_fraction = false;
    decompose_compatible(c, |part| {
        is_fraction |= part == '\u{2044}';
        for lower in part.to_lowercase() {
            let combining = canonical_combining_class(lower);
            // Marks below 10 change the letter: the voiced Kana, the Indic nukta and virama.
            if combining >= 10 {
                if class == Class::Gap {
                    class = Class::Mark;
                }
                continue;
            }
            let kind = match digit(lower) {
                Some(_) => Class::Digit,
                None if combining > 0 => Class::Mark,
                None if is_single(lower) => Class::Single,
                None if lower.is_alphanumeric() => Class::Letter,
                None => Class::Gap,
            };
            if kind == Class::Gap {
                continue;
            }
            if matches!(class, Class::Gap | Class::Mark) {
                class = kind;
            }
            match lower {
                'ß' => folded.push_str("ss"),
                'ς' => folded.push('σ'),
                other => folded.push(digit(other).unwrap_or(other)),
            }
        }
    });
    if is_fraction {
        folded.truncate(before);
        return Class::Gap;
    }
    class
}

/// The token that is being read.
#[derive(Default)]
struct Open {
    word: String,
    class: Class,
    start: usize,
    end: usize,
    chars: usize,
    is_lower: bool,
    is_hangul: bool,
}

impl Open {
    fn close(&mut self, each: &mut impl FnMut(&str, usize, usize)) {
        if self.class != Class::Gap && !self.word.is_empty() {
            each(&self.word, self.start, self.end);
        }
        self.word.clear();
        self.class = Class::Gap;
        self.chars = 0;
    }

    /// Takes a character of this class: it goes on with the token, or ends it and begins another.
    fn step(&mut self, class: Class, at: usize, c: char, each: &mut impl FnMut(&str, usize, usize)) {
        let is_camel = class == Class::Letter && self.is_lower && c.is_uppercase();
        // Korean endings stand directly behind words of other scripts.
        let is_hangul = matches!(u32::from(c), 0xac00..=0xd7a3);
        let is_ending = class == Class::Letter && self.is_hangul != is_hangul;
        if class != self.class || class == Class::Single || is_camel || is_ending || self.chars >= LONGEST {
            self.close(each);
            self.start = at;
        }
        self.class = class;
        self.is_lower = c.is_lowercase();
        self.is_hangul = is_hangul;
        self.end = at + c.len_utf8();
        self.chars += 1;
    }
}

/// Calls `each` with every token: its folded text, and where it begins and ends in `text`, in bytes.
pub(crate) fn tokens(text: &str, mut each: impl FnMut(&str, usize, usize)) {
    let mut open = Open::default();
    let mut folded = String::new();
    for (at, c) in text.char_indices() {
        if c.is_ascii() {
            let class = match c {
                '0'..='9' => Class::Digit,
                'a'..='z' | 'A'..='Z' => Class::Letter,
                _ if open.class == Class::Gap => continue,
                _ => Class::Gap,
            };
            open.step(class, at, c, &mut each);
            if class != Class::Gap {
                open.word.push(c.to_ascii_lowercase());
            }
            continue;
        }
        folded.clear();
        match fold(c, &mut folded) {
            Class::Mark if open.class == Class::Gap => {}
            Class::Mark if open.chars < LONGEST => {
                open.word.push_str(&folded);
                open.end = at + c.len_utf8();
                open.chars += 1;
            }
            class => {
                let class = if class == Class::Mark { Class::Gap } else { class };
                open.step(class, at, c, &mut each);
                if class != Class::Gap {
                    open.word.push_str(&folded);
                }
            }
        }
    }
    open.close(&mut each);
}

/// A token of a short text: where it ends in the joined words, and where it stands in the text.
#[derive(Clone, Copy, Debug)]
struct Place {
    joined_end: usize,
    start: usize,
    end: usize,
}

/// The tokens of a short text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// All of them, without what separates them.
    pub(crate) whole: String,
    places: Vec<Place>,
}

impl Words {
    pub(crate) fn of(text: &str) -> Self {
        let mut words = Self::default();
        tokens(text, |word, start, end| {
            words.whole.push_str(word);
            words.places.push(Place { joined_end: words.whole.len(), start, end });
        });
        words
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// A token by its number; an empty one beyond the last.
    pub(crate) fn word(&self, at: usize) -> &str {
        let end = |at: usize| self.places.get(at).map(|place| place.joined_end);
        let start = at.checked_sub(1).and_then(end).unwrap_or(0);
        end(at).and_then(|end| self.whole.get(start..end)).unwrap_or_default()
    }

    /// Where a token begins and ends in the text.
    pub(crate) fn span(&self, at: usize) -> Option<(usize, usize)> {
        self.places.get(at).map(|place| (place.start, place.end))
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        (0..self.len()).map(|at| self.word(at))
    }

    /// Each token with its place in the text.
    pub(crate) fn placed(&self) -> impl ExactSizeIterator<Item = (&str, usize, usize)> + Clone {
        self.iter().zip(&self.places).map(|(word, place)| (word, place.start, place.end))
    }

    /// Whether there is a number in digits.
    pub(crate) fn has_digits(&self) -> bool {
        self.whole.bytes().any(|byte| byte.is_ascii_digit())
    }

    /// Whether the other's tokens stand here in a row, however either of them is separated.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        let ends = || self.places.iter().map(|place| place.joined_end);
        !other.is_empty()
            && self.whole.len() >= other.whole.len()
            && std::iter::once(0).chain(ends()).any(|start| {
                let end = start + other.whole.len();
                self.whole.get(start..end) == Some(&other.whole) && ends().any(|known| known == end)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        Words::of(text).iter().map(str::to_owned).collect()
    }

    #[test]
    fn tokens_are_runs_of_letters_or_digits() {
        assert_eq!(of("Wi-Fi at 5pm, camelCase"), ["wi", "fi", "at", "5", "pm", "camel", "case"]);
        assert_eq!(of("Ｆｕｌｌ ５ Größe Zürich"), ["full", "5", "grosse", "zurich"]);
        assert_eq!(of("明天去 ガス ｶﾞ"), ["明", "天", "去", "カ\u{3099}", "ス", "カ\u{3099}"]);
        assert_eq!(of("½ ²"), ["2"]);
        assert_eq!(of("KT로 보내").len(), 3);
        assert_eq!(of("e\u{301}te\u{301}"), ["ete"]);
        assert_eq!(of("٤٢"), ["42"]);
        assert_eq!(of(&"x".repeat(130)).len(), 3);
    }

    #[test]
    fn spans_are_those_of_the_text() {
        let text = "Ünïted e\u{301}x";
        let words = Words::of(text);
        let found: Vec<_> = words.placed().filter_map(|(_, start, end)| text.get(start..end)).collect();
        assert_eq!(found, ["Ünïted", "e\u{301}x"]);
    }

    #[test]
    fn containing_ignores_separators() {
        assert!(Words::of("the wi-fi is off").contains(&Words::of("wifi")));
        assert!(!Words::of("cedar").contains(&Words::of("edar")));
    }
}
