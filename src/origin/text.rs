//! Where a text stands, and the rules that lead to a place where it doesn't stand itself.

use super::address::{Address, has_signs, keeps_signs};
use super::calendar::is_weekday;
use super::codes::is_known;
use super::date::{self, Reading};
use super::from::How;
use super::look::{Look, Scope, Spot};
use super::number::{Decimal, scale};
use super::numeral::spoken;
use super::relative::Clock;
use super::time;
use super::token::{Words, is_single};
use super::written::{is_unit, written};
use serde_json::Value;

/// The scripts of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scripts(u8);

impl Scripts {
    const LATIN: u8 = 1;

    pub(crate) fn of(text: &str) -> Self {
        let mut scripts = Self::default();
        scripts.add(text);
        scripts
    }

    pub(crate) fn add(&mut self, text: &str) {
        if text.is_ascii() {
            self.0 |= u8::from(text.bytes().any(|byte| byte.is_ascii_alphabetic()));
            return;
        }
        for c in text.chars().filter(|c| c.is_alphabetic()) {
            self.0 |= match u32::from(c) {
                0..0x370 | 0x1e00..0x1f00 | 0xff00..0xff60 => Self::LATIN,
                0x370..0x400 | 0x1f00..0x2000 => 2,
                0x400..0x530 => 4,
                0x530..0x900 => 8,
                0x900..0x1100 => 16,
                _ => 32,
            };
        }
    }

    /// Whether a value in these scripts may be a translation of what was written in the others.
    pub(crate) fn may_translate(self, value: &str) -> bool {
        let own = Self::of(value);
        let is_mixed = |word: &str| Self::of(word).0 & 7 & (Self::of(word).0 & 7).wrapping_sub(1) != 0;
        if own.0 == 0 || self.0 == 0 || value.split(|c: char| !c.is_alphanumeric()).any(is_mixed) {
            return false;
        }
        // An English value for Chinese words, also if there is a Latin name among them; or the reverse.
        own.0 & !self.0 != 0 || (own.0 == Self::LATIN && self.0 & !Self::LATIN != 0)
    }
}

/// Places of a value, and the rule that led there.
pub(crate) struct Found {
    pub(crate) spots: Vec<Spot>,
    pub(crate) how: How,
    /// A part of the value is in untrusted texts alone.
    pub(crate) has_untrusted_part: bool,
}

impl Found {
    pub(crate) fn new(spots: Vec<Spot>, how: How) -> Option<Self> {
        (!spots.is_empty()).then_some(Self { spots, how, has_untrusted_part: false })
    }
}

const STOP: [&str; 32] = [
    "a", "an", "the", "of", "in", "on", "at", "to", "for", "and", "or", "is", "are", "by", "with", "from", "as", "it",
    "this", "that", "be", "de", "la", "le", "el", "der", "die", "das", "und", "et", "y", "s",
];
/// Words of a value that the rules for parts and numbers are tried with.
const FEW: usize = 6;
/// Characters of a value whose first part before a comma counts.
const PART: usize = 40;
/// Korean endings of a noun.
const PARTICLES: [&str; 20] = [
    "은", "는", "이", "가", "을", "를", "에", "의", "와", "과", "로", "으로", "도", "만", "에서", "에게", "한테",
    "부터", "까지", "라는",
];
/// Bytes of the value's words beyond which it is found only as it is.
const SHORT: usize = 200;

/// The numbers of an English noun, "room" and "rooms"; a Korean one also with its endings.
fn forms(word: &str) -> Vec<String> {
    let mut forms = vec![word.to_owned()];
    if word.chars().all(|c| matches!(u32::from(c), 0x1100..=0x11ff)) {
        forms.extend(PARTICLES.iter().map(|ending| format!("{word}{}", Words::of(ending).whole)));
        return forms;
    }
    let is_sibilant = |word: &str| ["s", "x", "ch", "sh"].iter().any(|end| word.ends_with(end));
    if !word.chars().all(char::is_alphabetic) || word.len() < 3 {
        return forms;
    }
    forms.extend(word.strip_suffix("ies").map(|stem| format!("{stem}y")));
    forms.extend(word.strip_suffix("es").filter(|stem| is_sibilant(stem)).map(str::to_owned));
    forms.extend(word.strip_suffix('s').filter(|stem| stem.len() > 2 && !stem.ends_with('s')).map(str::to_owned));
    forms.extend(word.strip_suffix('y').map(|stem| format!("{stem}ies")));
    forms.push(format!("{word}{}", if is_sibilant(word) { "es" } else { "s" }));
    forms
}

impl Look<'_> {
    /// Where a text stands as it is.
    pub(crate) fn exact(&mut self, scope: Scope, value: &str) -> Option<Found> {
        let spots = self.written(scope, &self.value(), value);
        if spots.is_empty() {
            return None;
        }
        let mut sorted = spots.clone();
        self.sort(&mut sorted);
        let trimmed = value.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let slice = sorted.first().and_then(|spot| self.text(*spot).get(spot.span.0..spot.span.1));
        let is_same = slice.is_some_and(|slice| slice.to_lowercase() == trimmed);
        Found::new(spots, if is_same { How::Exact } else { How::Folded })
    }

    /// Where words of the value stand, with the signs of an address that it has.
    fn written(&mut self, scope: Scope, words: &Words, value: &str) -> Vec<Spot> {
        self.run(scope, words, &mut |text, span| {
            text.get(span.0..span.1).is_some_and(|slice| keeps_signs(value, slice)).then_some(span)
        })
    }

    /// Where a text or number stands, or a rule leads, without the words that follow the clock.
    pub(crate) fn value_of(&mut self, scope: Scope, value: &Value) -> Option<Found> {
        match value {
            Value::Number(number) => {
                let (spots, how) = self.number(scope, &Decimal::of(number))?;
                Found::new(spots, how)
            }
            Value::String(text) => self.string(scope, text, false, None),
            _ => None,
        }
    }

    /// Where a text stands, or a rule leads. Composed and long texts are found only as they are.
    pub(crate) fn string(
        &mut self,
        scope: Scope,
        value: &str,
        is_composed: bool,
        clock: Option<Clock>,
    ) -> Option<Found> {
        if let Some(kind) = Address::of(value) {
            let (spots, how, has_untrusted_part) = self.address(scope, kind, value)?;
            return Some(Found { spots, how, has_untrusted_part });
        }
        let exact = self.exact(scope, value);
        if exact.is_some() || is_composed || value.len() > SHORT {
            return exact;
        }
        let dates = date::read(value);
        let times = time::read(value);
        if dates.is_empty() && times.is_empty() {
            if let Some(found) = self.measure(scope, value) {
                return Some(found);
            }
        } else {
            let found =
                if dates.is_empty() { self.hour(scope, &times) } else { self.day(scope, (&dates, &times), clock) };
            // The numbers of a date that stand somewhere else are no date.
            if found.is_some() || value.chars().all(|c| !c.is_alphabetic() || matches!(c, 'T' | 'Z')) {
                return found;
            }
        }
        self.derived(scope, value)
    }

    fn derived(&mut self, scope: Scope, value: &str) -> Option<Found> {
        let words = self.value();
        let named = spoken(&words).and_then(|number| self.number(scope, &number));
        if let Some((spots, _)) = named {
            return Found::new(spots, How::Numeral);
        }
        self.path(scope, value)
            .or_else(|| self.other_forms(scope, value, &words))
            .or_else(|| self.code(scope, &words.whole).and_then(|(spots, how)| Found::new(spots, how)))
            .or_else(|| self.part_before_comma(scope, value))
    }

    /// Whether a word beside a number or date is a unit or the like, or stands somewhere.
    fn is_plain(&mut self, scope: Scope, word: &str) -> bool {
        is_unit(word)
            || is_known(word)
            || is_weekday(word)
            || STOP.contains(&word)
            || forms(word).iter().any(|form| self.has(scope, form))
            || self.code(scope, word).is_some()
    }

    /// A number with a unit.
    fn measure(&mut self, scope: Scope, value: &str) -> Option<Found> {
        let words = self.value();
        let (number, span) = written(value).filter(|_| words.len() <= FEW)?;
        let is_outside = |start: usize| start < span.0 || start >= span.1;
        let rest: Vec<&str> =
            words.placed().filter(|(_, start, _)| is_outside(*start)).map(|(word, ..)| word).collect();
        if rest.iter().any(|word| word.starts_with(|c: char| c.is_ascii_digit())) || rest.len() > 3 {
            return None;
        }
        let fits = rest.iter().all(|word| scale(word).is_some() || self.is_plain(scope, word));
        // "5k" is 5000, or 5 with a unit of that name.
        let scaled = rest.first().and_then(|word| scale(word)).map(|power| number.shifted(power));
        let found = scaled.filter(|_| fits).and_then(|scaled| self.number(scope, &scaled));
        let (spots, how) = found.or_else(|| self.number(scope, &number))?;
        let how = if rest.is_empty() || how != How::Number { how } else { How::Unit };
        fits.then(|| Found::new(spots, how)).flatten()
    }

    /// Whether all words outside these spans need no place of their own, or have one.
    fn fits_outside(&mut self, scope: Scope, spans: &[(usize, usize)]) -> bool {
        let words = self.value();
        let is_outside = |start: usize| spans.iter().all(|(from, to)| start < *from || start >= *to);
        let rest: Vec<&str> =
            words.placed().filter(|(_, start, _)| is_outside(*start)).map(|(word, ..)| word).collect();
        rest.iter().all(|word| {
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                return word.bytes().all(|byte| byte == b'0');
            }
            word.chars().count() <= 3 || self.is_plain(scope, word)
        })
    }

    fn day(
        &mut self,
        scope: Scope,
        (dates, times): (&[Reading], &[time::Reading]),
        clock: Option<Clock>,
    ) -> Option<Found> {
        let longest = dates.iter().max_by_key(|reading| reading.end - reading.start)?;
        let span = (longest.start, longest.end);
        let time = times.iter().find(|time| time.start >= span.1 || time.end <= span.0);
        let spans: Vec<_> = std::iter::once(span).chain(time.map(|time| (time.start, time.end))).collect();
        if !self.fits_outside(scope, &spans) {
            return None;
        }
        // The first and the last minute of a day stand for the day.
        let is_edge = |time: &time::Reading| matches!((time.hour, time.minute), (0, 0) | (23, 59));
        if let Some(time) = time.filter(|time| !is_edge(time))
            && self.time(scope, *time).is_empty()
        {
            return None;
        }
        let same: Vec<&Reading> = dates.iter().filter(|reading| (reading.start, reading.end) == span).collect();
        let spots: Vec<Spot> = same.iter().flat_map(|reading| self.reading(scope, reading)).collect();
        Found::new(spots, How::Date).or_else(|| {
            if scope != Scope::Conversation {
                return None;
            }
            let mut spots = Vec::new();
            for clock in self.stated_clocks().into_iter().chain(clock) {
                let single = same.iter().filter(|reading| reading.until.is_none());
                spots.extend(single.flat_map(|reading| self.relative(reading.date, clock)));
            }
            Found::new(spots, How::Relative)
        })
    }

    fn hour(&mut self, scope: Scope, times: &[time::Reading]) -> Option<Found> {
        let spans: Vec<_> = times.iter().map(|time| (time.start, time.end)).collect();
        if !self.fits_outside(scope, &spans) {
            return None;
        }
        let mut spots = Vec::new();
        for time in times {
            let found = self.time(scope, *time);
            if found.is_empty() {
                return None;
            }
            spots = found;
        }
        Found::new(spots, How::Time)
    }

    /// A path, each of whose parts stands somewhere.
    fn path(&mut self, scope: Scope, value: &str) -> Option<Found> {
        if !value.contains(['/', '\\']) || value.contains(char::is_whitespace) {
            return None;
        }
        let mut found = Found { spots: Vec::new(), how: How::Path, has_untrusted_part: false };
        for part in value.split(['/', '\\']) {
            let words = Words::of(part);
            if words.is_empty() {
                continue;
            }
            let spots = self.written(scope, &words, part);
            if spots.is_empty() {
                return None;
            }
            found.has_untrusted_part |= self.is_untrusted(&spots);
            found.spots = spots;
        }
        Some(found).filter(|found| !found.spots.is_empty())
    }

    /// The words in another number of the noun; or all content words in one segment, in any order.
    fn other_forms(&mut self, scope: Scope, value: &str, words: &Words) -> Option<Found> {
        if has_signs(value) {
            return None;
        }
        // The forms of each word that stand anywhere, as alternatives.
        let mut known = Vec::new();
        let mut content = Vec::new();
        for word in words.iter() {
            let forms: Vec<String> = forms(word).into_iter().filter(|form| self.has(scope, form)).collect();
            let is_content = !STOP.contains(&word);
            if is_content && forms.is_empty() {
                return None;
            }
            known.push(forms.join("|"));
            if is_content && !content.contains(&word) {
                content.push(word);
            }
        }
        if words.len() <= FEW {
            let spots = self.row(scope, &known.join(" "), &mut |_, span| Some(span));
            if let Some(found) = Found::new(spots, How::Plural) {
                return Some(found);
            }
        }
        let has_letters = content.iter().any(|word| word.starts_with(|c: char| !c.is_ascii_digit()));
        // Single Han or Kana characters stand in every long text.
        let is_scattered = content.iter().all(|word| word.starts_with(is_single));
        // The parts of an id are no words.
        let is_id = !value.contains(char::is_whitespace) && value.contains(|c: char| c.is_ascii_digit());
        if words.len() < 2 || !has_letters || is_scattered || is_id {
            return None;
        }
        let of_content = words.iter().zip(&known).filter(|(word, _)| content.contains(word));
        let mut forms: Vec<String> = of_content.map(|(_, forms)| forms.clone()).collect();
        forms.sort_unstable();
        forms.dedup();
        Found::new(self.together(scope, &forms), How::Words)
    }

    fn part_before_comma(&mut self, scope: Scope, value: &str) -> Option<Found> {
        let (first, _) = value.split_once(',').filter(|_| value.chars().count() <= PART && !has_signs(value))?;
        let words = Words::of(first);
        let spots = self.written(scope, &words, first);
        Found::new(spots, How::Part).or_else(|| {
            let (spots, _) = self.code(scope, &words.whole)?;
            Found::new(spots, How::Part)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_tell_translations_from_look_alikes() {
        assert!(Scripts::of("北京的天气").may_translate("Beijing"));
        assert!(Scripts::of("weather in Beijing").may_translate("北京"));
        assert!(!Scripts::of("weather in Beijing").may_translate("Shanghai"));
        assert!(!Scripts::of("the hotel").may_translate("h\u{43e}tel"));
        assert!(!Scripts::of("北京").may_translate("42"));
    }

    #[test]
    fn nouns_have_two_numbers() {
        assert!(forms("rooms").contains(&"room".to_owned()) && forms("box").contains(&"boxes".to_owned()));
        assert!(forms("city").contains(&"cities".to_owned()) && forms("cities").contains(&"city".to_owned()));
        assert!(!forms("glass").contains(&"glas".to_owned()));
    }
}
