//! Parts of a move outside it: keys of the protocol, names of arguments, and members that a bracket has cut off. All of
//! them in any quoting style.

use crate::protocol::surrounding_text::invents;
use crate::protocol::unknown_keys::{is_condition, is_remark};
use crate::reply::Span;
use std::collections::HashSet;

/// Keys whose names begin lines of prose as well: "Thought: …".
const LABELS: [&str; 2] = ["thought", "thoughts"];
/// Characters of a key that are looked for between two quotes.
const LONGEST_KEY: usize = 200;

/// What stands around or behind every key and name.
pub(super) const KEY: &str = "\"'`:=";
/// Names that are compared one by one.
const FEW: usize = 16;
/// Names of several words that are looked for.
const SEVERAL_WORDS: usize = 40;

/// Whether a character opens or closes a quoted text, in any style.
pub(crate) fn is_quote(c: char) -> bool {
    matches!(
        c,
        '"' | '\''
            | '`'
            | '“'
            | '”'
            | '„'
            | '‟'
            | '‘'
            | '’'
            | '‚'
            | '‛'
            | '«'
            | '»'
            | '‹'
            | '›'
            | '＂'
            | '＇'
            | '「'
            | '」'
            | '『'
            | '』'
            | '《'
            | '》'
            | '❝'
            | '❞'
            | '〝'
            | '〞'
            | '〟'
            | '″'
    )
}

/// What separates a key from its value.
fn separates(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let value = text.strip_prefix([':', '：', '＝']).or_else(|| text.strip_prefix("=>"));
    value.or_else(|| text.strip_prefix('=').filter(|rest| !rest.starts_with('=')))
}

pub(super) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The first key of the protocol, or name of an argument, in a piece of text that is no part of the move.
pub(super) fn find<'a>(raw: &str, piece: Span, keys: &[&'a str], names: &[&'a str]) -> Option<(Span, &'a str)> {
    let text = piece.of(raw);
    let whole = |word: &str| word.chars().all(is_name);
    // Most calls have a few arguments.
    let many: HashSet<&'a str> = if names.len() > FEW { names.iter().copied().collect() } else { HashSet::new() };
    let given = |word: &str| {
        if names.len() > FEW { many.get(word).copied() } else { names.iter().copied().find(|name| *name == word) }
    };
    let mut found = words(text).find_map(|span| {
        let written = span.of(text);
        let key = keys.iter().copied().find(|key| key.eq_ignore_ascii_case(written));
        let name = given(written);
        if key.is_none() && name.is_none() {
            return None;
        }
        let (before, after) = (text.get(..span.start).unwrap_or(""), text.get(span.end..).unwrap_or(""));
        let key = key.filter(|key| is_key(before, key, written, after));
        Some((span, key.or_else(|| name.filter(|_| is_argument(before, after)))?))
    });
    // Names of several words are rare.
    for name in names.iter().filter(|name| !name.is_empty() && !whole(name)).take(SEVERAL_WORDS) {
        let place = text.match_indices(name).map(|(start, _)| Span::new(start, start + name.len())).find(|span| {
            let (before, after) = (text.get(..span.start).unwrap_or(""), text.get(span.end..).unwrap_or(""));
            !before.ends_with(is_name) && !after.starts_with(is_name) && is_argument(before, after)
        });
        if let Some(place) = place
            && found.is_none_or(|(first, _)| place.start < first.start)
        {
            found = Some((place, *name));
        }
    }
    found.map(|(place, key)| (Span::new(piece.start + place.start, piece.start + place.end), key))
}

/// The words of a text.
pub(super) fn words(text: &str) -> impl Iterator<Item = Span> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let begin = rest.find(is_name)?;
        let word = rest.get(begin..)?;
        let length = word.find(|c| !is_name(c)).unwrap_or(word.len());
        let span = Span::new(at + begin, at + begin + length);
        at = span.end;
        Some(span)
    })
}

/// Whether a word stands between quotes, and what follows them.
fn quoted<'t>(before: &str, after: &'t str) -> Option<&'t str> {
    let before = before.strip_suffix('\\').unwrap_or(before);
    let _ = before.chars().next_back().filter(|c| is_quote(*c) || *c == '\\')?;
    let after = after.strip_prefix('\\').unwrap_or(after);
    after.strip_prefix(is_quote)
}

/// A key of the protocol: in quotes, or as a bare key with its value.
fn is_key(before: &str, key: &str, written: &str, after: &str) -> bool {
    // A key that ends the text is one that a grammar has led into the move.
    if let Some(after) = quoted(before, after) {
        return !after.trim().is_empty();
    }
    let Some(value) = separates(after) else { return false };
    // "Here is my next action:" leads to the move.
    let leads = without_fence_start(value.trim()).trim().is_empty();
    if leads && before.rsplit('\n').next().is_some_and(|line| line.split_whitespace().count() >= 2) {
        return false;
    }
    let exact = written == key && !LABELS.contains(&key);
    // "Action: searching" is prose, "Args: {" is none.
    exact || value.trim_start().starts_with(['{', '[']) || value.trim_start().starts_with(is_quote) && written == key
}

/// A key of an object that stands on lines of its own beside the move, if it is no remark: it may say how, when or whether
/// the move is meant. An invented result of the call doesn't count. In `narration`, which is for the user, other objects are
/// text.
pub(super) fn object_beside(raw: &str, piece: Span, narration: bool) -> Option<(Span, &str)> {
    let mut at = piece.start;
    for line in piece.of(raw).split_inclusive('\n') {
        let start = at;
        at += line.len();
        if invents(line) {
            return None;
        }
        let inside = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '[' | '{'));
        let opening = line.trim_start().trim_start_matches(['[', ' ']);
        let Some(rest) = inside.strip_prefix(is_quote).filter(|_| opening.starts_with('{')) else { continue };
        let Some((key, _)) = rest.split_once(is_quote).filter(|(_, after)| separates(after).is_some()) else {
            continue;
        };
        // A list of tickets is the program's.
        if !key.is_empty() && key != "id" && if narration { is_condition(key) } else { !is_remark(key) } {
            let from = start + line.len() - rest.len();
            return Some((Span::new(from, from + key.len()), key));
        }
    }
    None
}

/// Keys behind which a grammar leads a call without tags into the move.
const LEADS: [&str; 4] = ["arguments", "call_id", "parameters", "tool_name"];

/// A piece of text without the beginning of a call at its end: a grammar has led it into the move before it said anything.
pub(super) fn without_lead(raw: &str, piece: Span) -> Span {
    let text = piece.of(raw);
    let end = text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '`' | '~'));
    let key = end.strip_suffix('"').and_then(|text| text.rsplit_once('"')).map(|(_, key)| key);
    if !key.is_some_and(|key| LEADS.contains(&key)) {
        return piece;
    }
    let begins = |line: &str| line.trim_start().starts_with(['{', '[']);
    let lead = end.rfind('\n').map_or(0, |at| at + 1);
    let line = end.get(lead..).unwrap_or("");
    let from = if begins(line) { lead } else { line.find(['{', '[']).map_or(end.len(), |at| lead + at) };
    Span::new(piece.start, piece.start + from)
}

/// The name of an argument with its value.
fn is_argument(before: &str, after: &str) -> bool {
    separates(quoted(before, after).unwrap_or(after)).is_some()
}

/// The length of a member or element that `text` begins with, such as `, "key": 1`, `, {` or `'key' = 1`.
pub(crate) fn member(text: &str) -> Option<usize> {
    let comma = text.starts_with([',', '，']);
    let rest = text.strip_prefix([',', '，']).unwrap_or(text).trim_start();
    if comma && rest.starts_with(['{', '[']) {
        return Some(text.len() - rest.len() + 1);
    }
    let Some(inside) = rest.strip_prefix(is_quote) else {
        let after = rest.trim_start_matches(is_name);
        let bare = after.len() < rest.len() && separates(after).is_some();
        return (comma && bare).then(|| text.len() - after.len());
    };
    let close = inside.char_indices().take(LONGEST_KEY).find(|&(_, c)| is_quote(c) || c == '\n')?;
    if close.1 == '\n' {
        return None;
    }
    let after = inside.get(close.0 + close.1.len_utf8()..)?.trim_start_matches([' ', '\t']);
    let value = separates(after).is_some_and(|value| {
        let value = value.trim_start();
        value.is_empty()
            || value.starts_with(['{', '[', '-', '+', '.'])
            || value.starts_with(is_quote)
            || value.starts_with(|c: char| c.is_ascii_digit())
            || ["true", "false", "null", "none", "nan", "infinity", "undefined"]
                .iter()
                .any(|word| value.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)))
    });
    (comma || value).then(|| text.len() - after.len())
}

/// Text without the beginning of a fence, with its word, that it begins with.
pub(super) fn without_fence_start(text: &str) -> &str {
    let after = text.trim_start_matches(['`', '~']);
    if after.len() == text.len() {
        return text;
    }
    let word = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.'));
    if after.len() - word.len() <= 20 && (word.is_empty() || word.starts_with(char::is_whitespace)) {
        word
    } else {
        after
    }
}

/// JSON that a bracket has cut off: a line that begins with a member, or a closing bracket that nothing opens.
pub(super) fn leftover(raw: &str, piece: Span) -> Option<Span> {
    let text = piece.of(raw);
    let closers = |c: char| c.is_whitespace() || matches!(c, '}' | ']' | '`' | '~');
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let rest = without_fence_start(line.trim_start());
        let rest = rest.trim_start_matches(closers);
        let start = piece.start + at + line.len() - rest.len();
        if let Some(length) = member(rest) {
            return Some(Span::new(start, start + length));
        }
        at += line.len();
    }
    let after = text.trim_start_matches(closers);
    let from = piece.end - after.len();
    let (mut square, mut curly) = (0_usize, 0_usize);
    for (offset, c) in after.char_indices() {
        let open = if matches!(c, '[' | ']') { &mut square } else { &mut curly };
        match c {
            '[' | '{' => *open += 1,
            ']' | '}' if *open == 0 => return Some(Span::new(from + offset, from + offset + 1)),
            ']' | '}' => *open -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{find, leftover, member};
    use crate::reply::Span;

    fn found<'a>(text: &str, keys: &[&'a str], names: &[&'a str]) -> Option<&'a str> {
        find(text, Span::new(0, text.len()), keys, names).map(|(_, key)| key)
    }

    #[test]
    fn keys_in_any_quoting_style() {
        for text in [
            "'args': {}",
            "\"args\" of",
            "so args: {1",
            "“args” so",
            "\\\"args\\\": 1",
            "Args: {",
            "args = 1",
            "`args` so",
        ] {
            assert_eq!(found(text, &["args"], &[]), Some("args"), "{text}");
        }
        for text in ["the args are here", "Args: none", "kwargs: 1", "args_list: 2", "Thought: so", "thought: I go"] {
            assert_eq!(found(text, &["args", "thought"], &[]), None, "{text}");
        }
    }

    #[test]
    fn names_of_arguments_with_a_value() {
        for text in ["city: Oslo", "'city': 1", "(city=Oslo)", "city => x"] {
            assert_eq!(found(text, &[], &["city"]), Some("city"), "{text}");
        }
        for text in ["the city", "City: Oslo", "'city' of", "velocity: 3", "city == 3"] {
            assert_eq!(found(text, &[], &["city"]), None, "{text}");
        }
    }

    #[test]
    fn members() {
        for text in [", \"a\": 1", ", 'a'", ", {", "'a': 1", "“a”: True", ", a: 1", "，a：1", "`a` = 2", "«a»: 'x'"]
        {
            assert!(member(text).is_some(), "{text}");
        }
        for text in [", and so on", "'so' he said", "\"a\" is", "a: 1", "Observation: 4", "'a': he", ""] {
            assert!(member(text).is_none(), "{text}");
        }
    }

    #[test]
    fn cut_off() {
        let cut = |text: &str| leftover(text, Span::new(0, text.len())).is_some();
        for text in ["}, 'a': 1}", "\n```\n```json\n, \"b\": 1}", "so }", "x\n, b: 2", " then ]"] {
            assert!(cut(text), "{text}");
        }
        for text in ["}", "]}\n```\nso", "see [1] and {2}", ", as said"] {
            assert!(!cut(text), "{text}");
        }
    }
}
