//! The values of the runtime's own examples. They are rare, so that one in a call or an answer can be seen to come from
//! there. Numbers, dates and times are not: any of them may be meant.

use super::sample_call::{KINDS, NAMES, OTHERS, SHAPES};

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

/// Whether this is a value that examples have.
pub fn is_made_up(text: &str) -> bool {
    let text = text.trim();
    text.len() >= LETTERS && all().any(|known| known == text)
}

/// The values of examples that stand in a text as whole words.
pub fn made_up_in(text: &str) -> impl Iterator<Item = &'static str> {
    all().filter(|known| {
        let is_border = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        memchr::memmem::find_iter(text.as_bytes(), known.as_bytes()).any(|start| {
            let (before, after) = (text.get(..start), text.get(start + known.len()..));
            is_border(before.and_then(|text| text.chars().next_back()))
                && is_border(after.and_then(|text| text.chars().next()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{is_made_up, made_up_in};

    #[test]
    fn numbers_dates_and_times_may_be_meant() {
        for text in ["1987-03-19", "04:47", "4471", "447 + 82", "1987-03-19T04:47:00Z", ""] {
            assert!(!is_made_up(text), "{text}");
        }
        for text in ["Marlowe", "Grennan", "QF-4471", "Wexcombe 8264", "quillfern@example.org"] {
            assert!(is_made_up(text), "{text}");
        }
    }

    #[test]
    fn whole_words_of_a_text_are_found() {
        let found: Vec<&str> = made_up_in("The code of Tolvane is Wexcombe 8264; Marlowetown is another.").collect();
        assert_eq!(found, ["Tolvane", "Wexcombe 8264"]);
    }
}
