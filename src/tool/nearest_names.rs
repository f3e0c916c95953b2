//! The names that a wrong name may have been meant for.

/// Names longer than this are compared by their beginning: what a model writes may be of any size.
const COMPARED: usize = 96;

/// Below this score two names have nothing to do with each other.
const THRESHOLD: f64 = 0.6;

/// Up to `limit` of `names` that are close to `wanted`, the closest first; ties keep the order given.
pub(crate) fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>, limit: usize) -> Vec<&'a str> {
    ranked(wanted, names, limit, THRESHOLD)
}

/// The same without names in which one word of `wanted` is replaced, as `close` in `open_incident`.
pub(crate) fn meant<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>, limit: usize) -> Vec<&'a str> {
    let words = Words::of(wanted);
    let names = names.into_iter().filter(|name| words.may_mean(&Words::of(name)));
    nearest(wanted, names, limit)
}

/// The `limit` closest of `names`, however far they are.
pub(crate) fn closest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>, limit: usize) -> Vec<&'a str> {
    ranked(wanted, names, limit, 0.0)
}

fn ranked<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>, limit: usize, threshold: f64) -> Vec<&'a str> {
    let wanted = Words::of(wanted);
    let mut scored: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (wanted.likeness(&Words::of(name)), name))
        .filter(|(score, _)| *score >= threshold)
        .collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0));
    scored.truncate(limit);
    scored.into_iter().map(|(_, name)| name).collect()
}

/// The words of a name or text in small letters: `maxResults`, `max-results` and `max results` have the same.
pub(crate) fn words(text: impl Iterator<Item = char>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    let mut before_lower = false;
    for character in text {
        if !character.is_alphanumeric() {
            open = false;
            continue;
        }
        if !open || (before_lower && character.is_uppercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
        open = true;
        before_lower = character.is_lowercase() || character.is_numeric();
    }
    words
}

/// The plural of a word is the same word.
pub(crate) fn stem(mut word: String) -> String {
    if word.len() > 4 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

/// A name taken apart.
struct Words {
    words: Vec<String>,
    joined: String,
}

impl Words {
    fn of(name: &str) -> Self {
        let words = words(name.chars().take(COMPARED));
        let joined = words.concat();
        Self { words, joined }
    }

    /// 1 for the same name, 0 for nothing in common.
    fn likeness(&self, other: &Self) -> f64 {
        if self.joined.is_empty() || other.joined.is_empty() {
            return 0.0;
        }
        if self.joined == other.joined {
            return 1.0;
        }
        let letters = strsim::normalized_damerau_levenshtein(&self.joined, &other.joined);
        letters.max(self.shared_words(other)).max(self.abbreviation(other))
    }

    /// Whether one name has all words of the other, with slips.
    fn may_mean(&self, other: &Self) -> bool {
        let (few, many) = if self.words.len() <= other.words.len() { (self, other) } else { (other, self) };
        let are_there = few.words.iter().all(|word| many.words.iter().any(|other| is_same_word(word, other)));
        // A name may have lost its joints.
        let is_joined = few.words.len() != many.words.len() && is_slip(&few.joined, &many.joined);
        !few.words.is_empty() && (are_there || is_joined)
    }

    fn shared_words(&self, other: &Self) -> f64 {
        let shared = self.words.iter().filter(|word| other.words.contains(word)).count();
        if shared == 0 {
            return 0.0;
        }
        let all = self.words.len() + other.words.len();
        0.5 + 0.49 * (2.0 * as_f64(shared) / as_f64(all)).min(1.0)
    }

    fn abbreviation(&self, other: &Self) -> f64 {
        let (short, long) = if self.joined.len() < other.joined.len() {
            (&self.joined, &other.joined)
        } else {
            (&other.joined, &self.joined)
        };
        if short.len() >= 3 && long.starts_with(short.as_str()) { 0.75 } else { 0.0 }
    }
}

/// Whether two words are the same, with a slip, in the plural or cut short.
fn is_same_word(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    short == long || (short.len() >= 3 && long.starts_with(short)) || is_slip(short, long)
}

/// Whether one text is the other one with a slip. `unlock` is not a slip of `lock`.
fn is_slip(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let is_opposite = OPPOSITES.iter().any(|prefix| long.strip_prefix(prefix) == Some(short));
    !is_opposite && strsim::normalized_damerau_levenshtein(one, other) >= SLIP
}

/// From this likeness on, two words are one with a slip.
const SLIP: f64 = 0.7;

/// Prefixes of opposites.
const OPPOSITES: [&str; 6] = ["un", "dis", "de", "in", "non", "re"];

fn as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

#[cfg(test)]
mod tests {
    use super::{closest, meant, nearest};

    const NAMES: [&str; 5] = ["calculator", "web_search", "get_weather", "read_file", "max_results"];

    #[test]
    fn near_names_are_found_by_letters_words_and_beginnings() {
        assert_eq!(nearest("get_wether", NAMES, 3), ["get_weather"]);
        assert_eq!(nearest("calc", NAMES, 3), ["calculator"]);
        assert_eq!(nearest("search", NAMES, 3), ["web_search"]);
        assert_eq!(nearest("maxResults", NAMES, 3), ["max_results"]);
        assert_eq!(nearest("Web-Search", NAMES, 3), ["web_search"]);
    }

    #[test]
    fn a_name_with_another_word_in_place_of_one_is_not_what_was_meant() {
        for (wanted, name) in [
            ("close_incident", "open_incident"),
            ("deleteCustomer", "create_customer"),
            ("cancel_order", "ship_order"),
            ("unlock_door", "lock_door"),
            ("disable_alarm", "enable_alarm"),
            ("calculate_triangle_area", "weather"),
            ("", "weather"),
        ] {
            assert!(meant(wanted, [name], 3).is_empty(), "{wanted} {name}");
            assert!(meant(name, [wanted], 3).is_empty(), "{name} {wanted}");
        }
        for (wanted, name) in [
            ("book_romm", "book_room"),
            ("sendMail", "send_mail"),
            ("setprice", "set_price"),
            ("order_refund", "refund_order"),
            ("get_phone_of", "phone_of"),
            ("transfer", "transfer_money"),
            ("functions.transfer", "transfer"),
            ("calc", "calculator"),
            ("orders_ship", "ship_order"),
        ] {
            assert_eq!(meant(wanted, [name], 3), [name], "{wanted}");
        }
    }

    #[test]
    fn far_names_are_not_offered() {
        assert!(nearest("frobnicate", NAMES, 3).is_empty());
        assert!(nearest("", NAMES, 3).is_empty());
        assert!(nearest("日本", NAMES, 3).is_empty());
    }

    #[test]
    fn closest_always_answers() {
        assert_eq!(closest("frobnicate", NAMES, 3).len(), 3);
    }

    #[test]
    fn a_huge_name_is_compared_by_its_beginning() {
        let huge = "x".repeat(1 << 20);
        assert!(nearest(&huge, NAMES, 3).is_empty());
    }
}
