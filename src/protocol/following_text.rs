//! What stands right around a payload: quotes that make it a text about a move, and members that belong into it. A
//! stream is stopped only once what follows shows that the whole reply would be read the same.

use super::around::{is_quote, member};
use super::surrounding_text::fence_before;
use super::{Code, Violation};
use crate::reply::{BoxedViolation, Span};

/// Characters after which no member of the payload is looked for any more.
const LONGEST: usize = 240;

/// Quotes that a text can stand in; backticks may be a fence.
fn quotes(c: char) -> bool {
    c != '`' && is_quote(c)
}

/// Whether a payload touches a quote on both sides: the literal of a program, a `repr`, a mention.
pub(crate) fn in_quotes(text: &str, payload: Span) -> bool {
    opens_quote(text, payload.start) && closes_quote(text.get(payload.end..).unwrap_or("")) == Some(true)
}

/// The violation of a payload in quotes.
pub(crate) fn quoted(payload: Span) -> BoxedViolation {
    let message = "expected the move itself: got a text in quotes that shows one";
    Box::new(
        Violation::new(Code::QuotedMove, message)
            .at(payload)
            .hint("write it without quotes and without code around it"),
    )
}

/// Whether a quote opens right before `at`.
pub(crate) fn opens_quote(text: &str, at: usize) -> bool {
    let mut before = text.get(..at).unwrap_or("");
    let mut line = false;
    loop {
        let trimmed = before.trim_end();
        line |= before.get(trimmed.len()..).is_some_and(|blanks| blanks.contains('\n'));
        let escaped = ["\\n", "\\r", "\\t"].iter().find_map(|escape| trimmed.strip_suffix(escape));
        let shorter = escaped.unwrap_or(trimmed);
        if shorter.len() == before.len() {
            break;
        }
        before = shorter;
    }
    let outside = before.trim_end_matches(quotes);
    if outside.len() == before.len() {
        return false;
    }
    // Across a line, a quote that follows a word closes another text.
    let closing =
        outside.chars().next_back().is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '!' | '?' | '…'));
    !(line && closing)
}

/// Whether a quote stands at the beginning of `after`; `None` where nothing but blanks has come.
pub(crate) fn closes_quote(mut after: &str) -> Option<bool> {
    loop {
        let trimmed = after.trim_start();
        let shorter = ["\\n", "\\r", "\\t"].iter().find_map(|escape| trimmed.strip_prefix(escape)).unwrap_or(trimmed);
        if shorter.len() == after.len() {
            break;
        }
        after = shorter;
    }
    match after.chars().next() {
        None => None,
        Some('\\') if after.len() < 2 => None,
        Some(c) => Some(quotes(c)),
    }
}

/// What is known of the text after a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhatFollows {
    /// More text may change the reading of what is there.
    Open,
    /// The payload stands by itself.
    Apart,
    /// It is refused for what follows it.
    Refused,
}

/// How far the text after a payload was read: blanks are not looked at twice.
#[derive(Debug, Clone, Default)]
pub(crate) struct FollowingText {
    from: usize,
    /// Where the payload, or the last copy of it that is stuck to it, ended.
    edge: usize,
    /// Copies that were looked at.
    copies: usize,
    /// Whether a quote opens right before the payload.
    quote: Option<bool>,
    /// Whether a fence may stand around the payload.
    fences: bool,
    part: Part,
    /// What was found, once more text can't change it.
    found: Option<WhatFollows>,
}

/// What of the text after a payload was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Part {
    #[default]
    Nothing,
    Closers,
    Fence,
    Word,
    /// The opening bracket of an object, or of an array, that is stuck to the payload.
    Object,
    Array,
}

impl FollowingText {
    /// For a payload that a fence may stand around.
    pub(crate) fn fenced() -> Self {
        Self { fences: true, ..Self::default() }
    }

    /// The text after the blanks behind `proven`, or after what was passed before.
    pub(crate) fn begin<'a>(&mut self, text: &'a str, proven: usize) -> &'a str {
        if self.from < proven {
            *self = Self { from: proven, edge: proven, fences: self.fences, ..Self::default() };
        }
        let rest = text.get(self.from..).unwrap_or("");
        if self.quote != Some(true) {
            self.from += rest.len() - rest.trim_start().len();
        }
        text.get(self.from..).unwrap_or("")
    }

    /// Passes copies of the payload that are stuck to it.
    fn pass(&mut self, copies: &[Span]) {
        for copy in copies.get(self.copies..).unwrap_or_default() {
            if copy.start == self.edge {
                (self.from, self.edge, self.part, self.fences) = (copy.end, copy.end, Part::Nothing, true);
            }
        }
        self.copies = copies.len();
    }

    /// Whether JSON is stuck to the payload that was no copy so far.
    pub(crate) fn is_stuck(&self) -> bool {
        matches!(self.part, Part::Object | Part::Array)
    }

    /// What was found, once more text can't change it.
    pub(crate) fn found(&self) -> Option<WhatFollows> {
        self.found
    }

    /// What follows `payload`, which was certain to have ended at `proven`, and the `copies` of it.
    pub(crate) fn look(&mut self, text: &str, payload: Span, proven: usize, copies: Copies<'_>) -> WhatFollows {
        let follows = self.found.unwrap_or_else(|| self.seek(text, payload, proven, copies));
        self.found = (follows != WhatFollows::Open).then_some(follows);
        follows
    }

    fn seek(&mut self, text: &str, payload: Span, proven: usize, copies: Copies<'_>) -> WhatFollows {
        self.begin(text, proven);
        if self.quote.is_none() {
            let before = text.get(..payload.start).unwrap_or("");
            self.quote = Some(opens_quote(text, payload.start));
            self.fences &= fence_before(before).is_some();
        }
        if self.quote == Some(true) {
            match closes_quote(text.get(self.from..).unwrap_or("")) {
                None => return WhatFollows::Open,
                Some(true) => return WhatFollows::Refused,
                Some(false) => self.quote = Some(false),
            }
        }
        self.pass(copies.found);
        loop {
            let after = self.begin(text, proven);
            let Some(c) = after.chars().next() else { return WhatFollows::Open };
            if self.is_stuck() {
                // Stuck to the payload it is a copy, which is passed, or refused once it is whole.
                let json = matches!(c, '{' | '[') || quotes(c) || self.part == Part::Array && c.is_ascii_digit();
                return if json { WhatFollows::Open } else { WhatFollows::Apart };
            }
            match c {
                '}' | ']' if self.part <= Part::Closers => {
                    self.part = Part::Closers;
                    self.from += 1;
                }
                '`' | '~' if self.fences && self.part <= Part::Fence => {
                    self.part = Part::Fence;
                    self.from += 1;
                }
                'j' if self.part == Part::Fence && "json".starts_with(after) && after.len() < 4 => {
                    return WhatFollows::Open;
                }
                'j' if self.part == Part::Fence && after.starts_with("json") => {
                    self.part = Part::Word;
                    self.from += 4;
                }
                '{' | '['
                    if self.part == Part::Nothing && self.from == self.edge && ends_in_bracket(text, self.edge) =>
                {
                    self.part = if c == '{' { Part::Object } else { Part::Array };
                    self.from += 1;
                }
                _ if c == ',' || c == '，' || quotes(c) => return self.member(after, copies),
                // A program continues with the value.
                '.' | '(' if self.from == self.edge => return WhatFollows::Open,
                // A comment, behind which a member may follow.
                '/' | '#' if self.part <= Part::Closers => return WhatFollows::Open,
                _ => return WhatFollows::Apart,
            }
        }
    }

    /// What `after` is, which may be a member of the payload. A copy is none, nor a part of one: the text ends before it.
    fn member(&self, after: &str, copies: Copies<'_>) -> WhatFollows {
        let brackets = after.match_indices(['{', '[']).take_while(|(at, _)| *at < LONGEST);
        for (at, _) in brackets {
            let (place, before) = (self.from + at, after.get(..at).unwrap_or(""));
            let is_copy = copies.begin_at(place);
            if is_copy || place >= copies.until {
                return match member(before) {
                    Some(_) => WhatFollows::Refused,
                    None if is_copy => WhatFollows::Apart,
                    None => WhatFollows::Open,
                };
            }
        }
        match member(after) {
            _ if value_is_due(after) => WhatFollows::Open,
            Some(_) => WhatFollows::Refused,
            // Whatever follows a comma may show more of the move, on any line.
            None if after.starts_with([',', '，']) => WhatFollows::Open,
            None if after.len() < LONGEST && !after.contains('\n') => WhatFollows::Open,
            None => WhatFollows::Apart,
        }
    }
}

/// Copies of a payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copies<'a> {
    /// Those that were found, in the order of the text.
    pub(crate) found: &'a [Span],
    /// No other one begins before this place.
    pub(crate) until: usize,
}

impl Copies<'_> {
    /// None, in text that has none.
    pub(crate) const NONE: Self = Self { found: &[], until: usize::MAX };

    fn begin_at(&self, place: usize) -> bool {
        self.found.binary_search_by_key(&place, |copy| copy.start).is_ok()
    }
}

/// Whether what seems to be a member has no value yet that shows it to be one.
fn value_is_due(after: &str) -> bool {
    let value = || {
        let inside = after.strip_prefix(quotes)?;
        let close = inside.find(|c: char| quotes(c) || c == '\n')?;
        inside.get(close..)?.strip_prefix(quotes)?.trim_start_matches([' ', '\t']).strip_prefix([':', '：', '='])
    };
    value().map(str::trim_start).is_some_and(|value| {
        let begins = |word: &str| value.len() < word.len() && word.starts_with(&value.to_ascii_lowercase());
        value.len() < 10
            && ["true", "false", "null", "none", "nan", "infinity", "undefined"].iter().any(|word| begins(word))
    })
}

fn ends_in_bracket(text: &str, at: usize) -> bool {
    text.get(..at).is_some_and(|before| before.ends_with(['}', ']']))
}

#[cfg(test)]
mod tests {
    use super::{Copies, FollowingText, WhatFollows, in_quotes};
    use crate::reply::Span;

    fn braces(text: &str) -> Span {
        Span::new(text.find('{').unwrap(), text.rfind('}').unwrap() + 1)
    }

    #[test]
    fn quotes_on_both_sides() {
        for text in ["'{}'", "\"{}\"", "print('{}')", "\"\"\"\n{}\n\"\"\"", "x = '\\n{}\\n'", "“{}”", "b'{}'", "['{}']"]
        {
            assert!(in_quotes(text, braces(text)), "{text}");
        }
        for text in ["{}", "'{}", "{}'", "He said \"done.\"\n{}\n\"next\"", "it's {} 'so'", "`{}`"] {
            assert!(!in_quotes(text, braces(text)), "{text}");
        }
    }

    #[test]
    fn what_follows() {
        let after =
            |rest: &str| FollowingText::fenced().look(&format!("```\n{{}}{rest}"), Span::new(4, 6), 6, Copies::NONE);
        for rest in [
            "",
            " \n",
            "}",
            ",",
            ", \"a",
            "```",
            "\"a",
            "]",
            "{",
            "{\"b\": 2}",
            ",\nso",
            ", and so\n",
            " // x",
            "} # so",
        ] {
            assert_eq!(after(rest), WhatFollows::Open, "{rest}");
        }
        for rest in [", \"a\": 1", "}, {", "\"a\": 1", "\n```\n```json\n, \"b\": 1"] {
            assert_eq!(after(rest), WhatFollows::Refused, "{rest}");
        }
        for rest in ["Observation", "\n{\"b\": 2}", "\nso", "```\nso"] {
            assert_eq!(after(rest), WhatFollows::Apart, "{rest}");
        }
    }

    #[test]
    fn a_copy_is_no_member() {
        let look = |rest: &str, copies: Copies<'_>| {
            FollowingText::fenced().look(&format!("{{}}{rest}"), Span::new(0, 2), 2, copies)
        };
        for (rest, start) in [(", {}", 4), (", \"so {}", 8), ("\n\"so {\"\": 1}", 7), (", \"so {x} {}", 12)] {
            let copy = [Span::new(start, start + 2)];
            assert_eq!(look(rest, Copies { found: &[], until: start }), WhatFollows::Open, "{rest}");
            assert_eq!(look(rest, Copies { found: &copy, until: start + 2 }), WhatFollows::Apart, "{rest}");
        }
        for (rest, until) in [(", {\"b\": 1}", 12), (", [{}", 5), (", \"a\": {}", 4), ("\n\"a\": {}", 2)] {
            assert_eq!(look(rest, Copies { found: &[], until }), WhatFollows::Refused, "{rest}");
        }
    }
}
