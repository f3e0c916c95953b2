//! Where a published form begins: at one of its marks, outside reasoning and Markdown code.

use super::families::{Form, ROWS, Row};
use crate::protocol::chatty::read::displayed_block;
use crate::reply::Span;
use crate::reply::envelope::{Envelope, Look, Mark as Found, Tags};
use crate::reply::tag::Tag;
use std::sync::LazyLock;

static TAGS: LazyLock<Tags> = LazyLock::new(|| ROWS.iter().map(|row| Tag::new(row.mark)).collect::<Vec<_>>().into());
/// What follows the line of an `Action:`.
pub(super) const INPUT: &str = "action input:";
/// Marks of Markdown around the words of such lines.
pub(super) const MARKDOWN: [char; 5] = ['*', '_', '#', '`', ' '];
/// Bytes of a name, and of what stands before it in its line.
const NAME: usize = 120;
const BEFORE: usize = 12;
/// Blanks between the parts of a form.
const BLANKS: usize = 8;
/// Bytes before a mark in which something may stand that shows it.
const LOOK_BACK: usize = 4_000;

/// A mark that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) span: Span,
    pub(super) row: &'static Row,
}

/// Seeks the first mark.
#[derive(Debug)]
pub(super) struct Finder {
    envelope: Envelope,
    /// The protocol's own tag among the marks.
    own: Option<usize>,
    reasoning: Vec<Span>,
    /// A mark that counts only with what follows it.
    pending: Option<Mark>,
    found: Option<Mark>,
}

impl Finder {
    pub(super) fn new(
        reasoning: &[(String, String)],
        no_reasoning: &'static [&'static str],
        prefilled: bool,
        own: Option<&str>,
    ) -> Self {
        Self {
            envelope: Envelope::new(TAGS.clone(), no_reasoning, prefilled).reasoning(reasoning),
            own: own.and_then(|own| ROWS.iter().position(|row| own.eq_ignore_ascii_case(row.mark))),
            reasoning: Vec::new(),
            pending: None,
            found: None,
        }
    }

    pub(super) fn found(&self) -> Option<Mark> {
        self.found
    }

    /// The reasoning before it.
    pub(super) fn reasoning(&self) -> &[Span] {
        &self.reasoning
    }

    /// Reads on. Returns the position up to which there is no mark, whether or not the first one was found; `end` says
    /// that no more text will come.
    pub(super) fn advance(&mut self, text: &str, end: bool) -> usize {
        loop {
            if let Some(mark) = self.pending {
                let begins = self.reasoning.last().is_some_and(|block| block.end == mark.span.start);
                match counts(text, mark, begins, end) {
                    None => return mark.span.start,
                    Some(counts) => self.found = Some(mark).filter(|_| counts && !is_displayed(text, mark)),
                }
                self.pending = None;
            }
            if let Some(mark) = self.found {
                return mark.span.start;
            }
            match self.envelope.next(text, end, Look { brackets: false, reasoning: true, code: true }) {
                Some(Found::Tag { index, .. }) if Some(index) == self.own => {}
                Some(Found::Tag { index, span, .. }) => {
                    self.pending = ROWS.get(index).map(|row| Mark { span, row });
                }
                Some(Found::Reasoning { whole, .. }) => self.reasoning.push(whole),
                Some(Found::Bracket(_)) => {}
                None => return self.envelope.settled(),
            }
        }
    }
}

/// Whether a mark is only shown: in a quotation, in `<pre>`, or deep in a line as code, where its values would be other
/// ones. What stands far above is not looked at, once for each mark.
fn is_displayed(text: &str, mark: Mark) -> bool {
    let at = mark.span.start;
    let before = text.get(..at).unwrap_or("");
    let line = before.trim_end_matches([' ', '\t']);
    let deep = before.len() - line.len() >= 4 || before.ends_with('\t');
    if deep && mark.row.form == Form::Function && (line.is_empty() || line.ends_with('\n')) {
        return true;
    }
    // Calls in this form may stand between tags of another one, and are shown where these are.
    let outer = line.trim_end().strip_suffix("<tool_call>").filter(|_| mark.row.form == Form::Function);
    let at = outer.map_or(at, str::len);
    let mut from = at.saturating_sub(LOOK_BACK);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.get(from..).is_some_and(|near| displayed_block::place(near, at - from).is_some())
}

/// Whether a mark begins its form, given whether the reply proper begins there; `None` where more text is needed.
fn counts(text: &str, mark: Mark, begins: bool, end: bool) -> Option<bool> {
    let unknown = if end { Some(false) } else { None };
    let after = text.get(mark.span.end..).unwrap_or("");
    match mark.row.form {
        Form::Action => {
            if !begins_line(text, mark.span.start) {
                return Some(false);
            }
            let Some(line) = after.find('\n').filter(|line| *line <= NAME) else {
                return if after.len() > NAME { Some(false) } else { unknown };
            };
            let rest = after.get(line..).unwrap_or("");
            let next = rest.trim_start_matches(|c: char| c.is_whitespace() || MARKDOWN.contains(&c));
            if rest.len() - next.len() > BLANKS {
                return Some(false);
            }
            match next.get(..INPUT.len()) {
                Some(word) => Some(word.eq_ignore_ascii_case(INPUT)),
                None if next.len() >= INPUT.len() => Some(false),
                None => INPUT
                    .get(..next.len())
                    .filter(|word| word.eq_ignore_ascii_case(next))
                    .map_or(Some(false), |_| unknown),
            }
        }
        Form::Dotted => {
            if !begins_line(text, mark.span.start) {
                return Some(false);
            }
            let rest =
                after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'));
            let name = after.len() - rest.len();
            let inside = rest.strip_prefix('(');
            let open = inside.unwrap_or(rest);
            let next = open.trim_start();
            if name == 0 && !rest.is_empty() || name > NAME || open.len() - next.len() > BLANKS {
                return Some(false);
            }
            match next.chars().next() {
                Some('{') => Some(true),
                Some(')') => Some(inside.is_some()),
                Some(_) => Some(false),
                None => unknown,
            }
        }
        Form::FinalAnswer => Some(begins_line(text, mark.span.start)),
        Form::Channel if !mark.row.mark.starts_with('<') => Some(begins || begins_line(text, mark.span.start)),
        _ => Some(true),
    }
}

/// Whether nothing but marks of Markdown stands before `at` in its line.
fn begins_line(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or("");
    let line = before.trim_end_matches(MARKDOWN);
    before.len() - line.len() <= BEFORE && (line.is_empty() || line.ends_with('\n'))
}

#[cfg(test)]
mod tests {
    use super::{Finder, Form};

    fn found(text: &str) -> Option<(usize, Form)> {
        let mut finder = Finder::new(&[], &[], false, None);
        finder.advance(text, true);
        let whole = finder.found().map(|mark| (mark.span.start, mark.row.form));
        let mut finder = Finder::new(&[], &[], false, None);
        let mut certain = 0;
        for (at, c) in text.char_indices() {
            certain = finder.advance(text.get(..at + c.len_utf8()).unwrap_or(""), false).max(certain);
        }
        finder.advance(text, true);
        assert_eq!(finder.found().map(|mark| (mark.span.start, mark.row.form)), whole, "{text}");
        assert!(whole.is_none_or(|(start, _)| certain <= start), "{text}");
        whole
    }

    #[test]
    fn marks_count_where_their_form_begins() {
        for (text, form) in [
            ("<tool_call>", Form::Wrapped),
            ("so: [TOOL_CALLS]", Form::Listed),
            ("Action: go\nAction Input:", Form::Action),
            ("**Action:** go\n**Action Input:**", Form::Action),
            ("functions.go({", Form::Dotted),
            ("functions.go:0 {", Form::Dotted),
            ("functions.go()", Form::Dotted),
            ("<think>[TOOL_CALLS]</think><function=go>", Form::Function),
        ] {
            assert_eq!(found(text).map(|(_, form)| form), Some(form), "{text}");
        }
        for text in [
            "`<tool_call>`",
            "```\n<tool_call>\n```",
            "<think><tool_call></think>",
            "Next Action: go\nAction Input: {}",
            "Action: go\nthen Action Input: {}",
            "Action: go",
            "call functions.go({})",
            "functions.go(x)",
            "functions.",
            "[TOOL_CALL]",
            "> <tool_call>",
            "So:\n> Action: go\n> Action Input:",
            "<pre><tool_call>",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn the_protocols_own_tag_is_no_mark() {
        let mut finder = Finder::new(&[], &[], false, Some("<tool_call>"));
        finder.advance("<tool_call>[]</tool_call>", true);
        assert!(finder.found().is_none());
    }
}
