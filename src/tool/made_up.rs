//! The values of the runtime's own examples. They are rare, so that one in a call or an answer can be seen to come from
//! there. Numbers, dates and times are not: any of them may be meant.

use super::sample_call::{KINDS, NAMES, OTHERS, SHAPES};
use aho_corasick::AhoCorasick;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// What the made-up call of an example returns: a name that no other result has.
pub const EXAMPLE_RESULT: &str = "Wexcombe 8264";

/// What those of a pair return. A small model that has seen one result twice gives it as the answer to any task.
pub const PAIR_RESULTS: [&str; 2] = ["Lowmarsh 5917", "Harfield 3046"];

/// Formats whose values may be meant.
const MEANT: [&str; 4] = ["date-time", "datetime", "date", "time"];
/// Letters that make a text more than a number, a date or a time.
const LETTERS: usize = 4;

fn all() -> impl Iterator<Item = &'static str> {
    let kinds = KINDS.into_iter().filter(|(kind, _)| !MEANT.contains(kind)).map(|(_, text)| text);
    let others = OTHERS.into_iter().map(|(_, other)| other);
    let results = PAIR_RESULTS.into_iter().chain([EXAMPLE_RESULT]);
    let texts = NAMES.into_iter().chain(kinds).chain(others).chain(SHAPES).chain(results);
    texts.filter(|text| text.starts_with("QF") || text.chars().filter(char::is_ascii_alphabetic).count() >= LETTERS)
}

/// All of them in one search, in any case.
static SEARCH: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(all()).ok());
static ALL: LazyLock<Vec<&str>> = LazyLock::new(|| all().collect());

/// The values of examples that stand in a text as whole words, in any case.
pub fn made_up_in(text: &str) -> Vec<&'static str> {
    let is_border = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let is_whole = |start: usize, end: usize| {
        is_border(text.get(..start).and_then(|before| before.chars().next_back()))
            && is_border(text.get(end..).and_then(|after| after.chars().next()))
    };
    let found = SEARCH.iter().flat_map(|search| search.find_overlapping_iter(text));
    let whole = found.filter(|found| is_whole(found.start(), found.end()));
    // In the order of the values; each once.
    let numbers: BTreeSet<usize> = whole.map(|found| found.pattern().as_usize()).collect();
    numbers.into_iter().filter_map(|number| ALL.get(number).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::made_up_in;

    #[test]
    fn numbers_dates_and_times_may_be_meant() {
        for text in ["1987-03-19", "04:47", "4471", "447 + 82", "1987-03-19T04:47:00Z", ""] {
            assert_eq!(made_up_in(text), [""; 0], "{text}");
        }
        for text in ["Marlowe", "Grennan", "QF-4471", "Wexcombe 8264", "quillfern@example.org"] {
            assert!(made_up_in(text).contains(&text), "{text}");
            assert!(
                made_up_in(&text.to_lowercase()).contains(&text) && made_up_in(&text.to_uppercase()).contains(&text)
            );
        }
    }

    #[test]
    fn whole_words_of_a_text_are_found() {
        let found = made_up_in("The code of Tolvane is wexcombe 8264; Marlowetown is another.");
        assert_eq!(found, ["Tolvane", "Wexcombe 8264"]);
    }
}
